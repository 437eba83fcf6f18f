"""promptfoo's results: `{evalId, results: {prompts, results: [...]}, config}`, or a result a line.

Rows of one test are its repetitions: promptfoo numbers each repetition as a test of its own, so a test is told by its
description, variables and assertions.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.extensions.promptfoo import config
from agenteval_tui.extensions.promptfoo.asserts import criteria_of
from agenteval_tui.formats.importers.derived_criteria import local_criteria
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import (
    as_list,
    as_object,
    is_message,
    messages_in,
    objects_in,
    plain_text,
    transcript_of,
    value_at,
)
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_id
from agenteval_tui.formats.importers.suite_import import FoundTests
from agenteval_tui.formats.importers.usage_import import moment_ms, number, with_usage
from agenteval_tui.formats.omitted_texts import texts_of
from agenteval_tui.formats.stream.json_reader import JsonReader, skipped_by
from agenteval_tui.formats.stream.json_stream import BrokenElement, UnreadableFile
from agenteval_tui.formats.stream.small_document import read_document
from agenteval_tui.formats.stream.sniff import sniff
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.transcripts.model import RunError, Timing, Transcript
from agenteval_tui.transcripts.observed import without_calls

NAME = "promptfoo"

LONGEST_LABEL = 80
_LONGEST = 20_000  # characters of a reason or an error
_ERROR = 2  # promptfoo's failureReason: the provider broke; 1 is a failed assertion


def can_read(value: Any) -> bool:
    """Whether a file's first value is a promptfoo result, or a list of results."""
    if not isinstance(value, Mapping):
        return False
    results = value.get("results")
    inner = isinstance(results, Mapping) and ("evalId" in value or "results" in results or "stats" in results)
    return inner or ("testIdx" in value and "testCase" in value)


def fits_yaml(keys: frozenset[str]) -> bool:
    """Whether these keys of a document are those of results (`-o results.yaml`)."""
    return "evalId" in keys and "results" in keys


def _reader(source: Source) -> JsonReader:
    """The results as one document, also where they are YAML."""
    if not sniff(source).yaml:
        return source.reader()
    return JsonReader(io.BytesIO(json.dumps(read_document(source, "js-yaml")).encode()))


def recordings(source: Source) -> Iterator[Recording | Skipped]:
    """The rows that ran, each a run."""
    names = _Names()
    first = next(iter(sniff(source).values), None)
    if isinstance(first, Mapping) and "testCase" in first:
        # It does not list its columns: the rows are read once to find them.
        for element in source.values():
            if not isinstance(element, BrokenElement) and isinstance(element.value, Mapping):
                names.learn_row(element.value)
        for element in source.values():
            if isinstance(element, BrokenElement):
                yield Skipped(element.reason, element.line, element.cut_off, counts=not element.note)
            else:
                yield _row(element.value, names, element.line)
        return
    reader = _reader(source)
    prompts: Any = None
    try:
        for key in reader.members():
            if key != "results":
                continue
            for inner in reader.members():
                if inner == "timestamp":
                    names.at = moment_ms(reader.bounded())
                elif inner == "prompts":
                    prompts = reader.bounded()
                    names.learn(prompts)
                elif inner == "results":
                    if not names.has_learned:
                        _learn_rows(source, names)
                    for _ in reader.elements():
                        line = reader.line
                        yield _row(reader.bounded(), names, line)
    except UnreadableFile as error:
        yield Skipped(f"from here on the file can't be read: {error.reason}", reader.line, error.cut_off)
    if unread := _of_prompts(prompts, names.seen):
        yield Skipped("", counts=False, fields=unread)
    yield from skipped_by(reader)


def _learn_rows(source: Source, names: _Names) -> None:
    """The columns of results that do not say them before their rows (before 2024 they stood in a table)."""
    reader = _reader(source)
    try:
        for key in reader.members():
            if key == "results":
                for inner in reader.members():
                    if inner == "results":
                        for _ in reader.elements():
                            row = reader.bounded()
                            if isinstance(row, Mapping):
                                names.learn_row(row)
    except UnreadableFile:
        pass  # said when it is read again


def _of_prompts(prompts: Any, seen: set[str]) -> Counter[str]:
    """What the columns of the results say that no row does; `seen`: prompts' and providers' names of rows."""
    fields: Counter[str] = Counter()
    for prompt in as_list(prompts):
        fields.update(path for path, text in texts_of(prompt, "results.prompts[]") if text not in seen)
    return fields


def tests(source: Source) -> FoundTests:
    """The tests of the configuration in the results."""
    configuration: Any = None
    reader = _reader(source)
    try:
        for key in reader.members():
            if key == "config":
                configuration = reader.bounded()
    except UnreadableFile:
        configuration = None
    if not isinstance(configuration, Mapping):
        raise AgentevalError("these results hold no configuration to take tests from", where=str(source.path))
    return config.tests_of(configuration, source.path)


class _Names:
    """Ids of tests and names of variations, which promptfoo has none of."""

    def __init__(self) -> None:
        self._tests: dict[str, str] = {}
        self._taken: Counter[str] = Counter()
        self._prompts: Counter[str] = Counter()
        self._labels: Counter[tuple[str, str]] = Counter()
        self._variations: int | None = None
        self._expected: dict[str, tuple[Mapping[str, Any], ...]] = {}
        self._columns: dict[tuple[str, Any], str] = {}  # of rows: (provider, prompt's number) and the prompt's label
        self.seen: set[str] = set()  # names of providers, and prompts, that rows have
        self.at: float | None = None  # when the evaluation was made; its rows do not say it

    def learn(self, prompts: Any) -> None:
        """From the columns of the results: how many variations there are, and which need their prompt's name."""
        if isinstance(prompts, list):
            columns = objects_in(prompts)
            self._variations = len(prompts)
            self._prompts = Counter(plain_text(column.get("provider")) for column in columns)
            self._labels = Counter((plain_text(column.get("provider")), _label(column)) for column in columns)

    @property
    def has_learned(self) -> bool:
        """Whether the columns are known."""
        return self._variations is not None

    def learn_row(self, row: Mapping[str, Any]) -> None:
        """The same, row by row."""
        column = (_provider(row), _prompt_number(row))
        if column not in self._columns:
            label = self._columns[column] = _label(row.get("prompt"))
            self._variations = len(self._columns)
            self._prompts[column[0]] += 1
            self._labels[column[0], label] += 1

    def test(self, case: Mapping[str, Any], variables: Mapping[str, Any]) -> tuple[str, str]:
        """(id, name) of a test."""
        description = plain_text(case.get("description"))
        name = description or ", ".join(f"{key}={plain_text(value)}" for key, value in variables.items()) or "test"
        # Tests with the same description may differ in what is asked or asserted: those are two tests.
        identity = json.dumps([description, variables, case.get("assert")], sort_keys=True, default=str)
        digest = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()
        if digest not in self._tests:
            base = as_id(name.lower())[:60].strip("-.") or "test"
            self._taken[base] += 1
            self._tests[digest] = base if self._taken[base] == 1 else f"{base}-{self._taken[base]}"
        return self._tests[digest], name[:200]

    def expected(self, case: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
        """The assertions of a test as criteria, as far as they can be checked here."""
        assertions = case.get("assert")
        if not isinstance(assertions, list) or not assertions:
            return ()
        # Most rows have the same assertions, and making criteria of them takes long.
        key = json.dumps(assertions, sort_keys=True, default=str)
        if key not in self._expected:
            self._expected[key] = local_criteria(criteria_of(assertions))
        return self._expected[key]

    def variation(self, row: Mapping[str, Any]) -> str:
        """The provider, where there are several columns; with the prompt's label where it had several prompts, and with
        its number where those have no label or the same."""
        if self._variations == 1:
            return ""
        label = _provider(row)
        names = {label, plain_text(value_at(row, "provider", "id"))}
        if not any(self._prompts[name] > 1 for name in names):
            return label
        prompt = _label(row.get("prompt"))
        if not prompt or any(self._labels[name, prompt] > 1 for name in names):
            prompt = " ".join(filter(None, (prompt, f"prompt {_prompt_number(row)}")))
        return f"{label} / {prompt}"


def _provider(row: Mapping[str, Any]) -> str:
    provider = as_object(row.get("provider"))
    return plain_text(provider.get("label") or provider.get("id") or row.get("provider"))


def _prompt_number(row: Mapping[str, Any]) -> object:
    """What tells a row's prompt from others: its number, else its label."""
    number = row.get("promptIdx")
    return number if isinstance(number, int) and not isinstance(number, bool) else _label(row.get("prompt"))


def _label(prompt: Any) -> str:
    """What a prompt is called, on one line; promptfoo calls one without a name by its whole text."""
    return on_one_line(plain_text(value_at(prompt, "label")), LONGEST_LABEL)


def _row(row: Any, names: _Names, line: int) -> Recording | Skipped:
    if not isinstance(row, Mapping) or not (row.keys() & {"testCase", "gradingResult", "response"}):
        return Skipped("no result: it has neither a `testCase` nor a `response`", line)
    # Before 2024 a row did not hold its test.
    case = row["testCase"] if isinstance(row.get("testCase"), Mapping) else {"description": row.get("description")}
    written = as_object(row.get("vars", case.get("vars")))
    variables = {key: value for key, value in written.items() if not key.startswith("_")}
    test_id, test_name = names.test(case, variables)
    agent, provider_id = _provider(row), plain_text(value_at(row, "provider", "id"))
    names.seen.update((agent, provider_id))
    notes: list[str] = []
    try:
        transcript = _transcript(row, provider_id or agent, notes)
    except AgentevalError as error:
        return Skipped(error.what, line)
    return Recording(
        test_id=test_id,
        test_name=test_name,
        transcript=transcript,
        prompt=plain_text(value_at(row, "prompt", "raw")),
        agent=agent,
        variables=variables,
        results=() if transcript.error is not None else _verdicts(row),
        expected=names.expected(case),
        variation=names.variation(row),
        started_ms=names.at,
        notes=tuple(notes),
        source=(("results[]", row),),
    )


def _transcript(row: Mapping[str, Any], model: str, notes: list[str]) -> Transcript:
    response = as_object(row.get("response"))
    messages = [*_asked(plain_text(value_at(row, "prompt", "raw"))), *_answered(response.get("output"))]
    transcript = transcript_of(messages, notes=notes)
    if not _has_calls_in_it(response.get("output")):
        transcript = without_calls(transcript, NAME)
    error = row.get("error") or response.get("error")
    # Older results do not say why a row failed: an error without an output is the provider's.
    broke = row.get("failureReason") == _ERROR or ("failureReason" not in row and not response.get("output") and error)
    lines = plain_text(error).strip().splitlines()
    latency = number(row.get("latencyMs"))
    used = UsageReader()
    figures = as_object(row.get("tokenUsage") or response.get("tokenUsage"))
    costs = {} if row.get("cost") is None else {"cost": row["cost"]}
    used.add({**figures, **costs})
    return replace(
        with_usage(transcript, used),
        timing=Timing(total_ms=latency),
        model=model,
        finish_reason=plain_text(response.get("finishReason")),
        error=RunError.told(NAME, (lines or ["the provider gave an error"])[0][:_LONGEST]) if broke else None,
        log="\n".join(lines)[:_LONGEST] if broke and len(lines) > 1 else "",
    )


def _asked(raw: str) -> list[Any]:
    """The prompt: a conversation where it is JSON of one, else what a user says."""
    if raw.lstrip().startswith("["):
        conversation = messages_in(parsed_json(raw))
        if conversation:
            return conversation
    return [{"role": "user", "content": raw}] if raw else []


def _has_calls_in_it(output: Any) -> bool:
    """Whether an output would tell of tool calls: a message, or calls. A text is what a provider made of its answer."""
    return not isinstance(output, str) and any(
        "tool_calls" in message or is_message(output) for message in _answered(output)
    )


def _answered(output: Any) -> list[Any]:
    if is_message(output):
        return [output]
    calls = output.get("tool_calls") if isinstance(output, Mapping) else output
    if isinstance(calls, list) and calls and all(isinstance(call, Mapping) and "function" in call for call in calls):
        content = output.get("content") if isinstance(output, Mapping) else ""
        return [{"role": "assistant", "content": plain_text(content), "tool_calls": calls}]
    return [] if output is None else [{"role": "assistant", "content": plain_text(output)}]


def _verdicts(row: Mapping[str, Any]) -> tuple[CriterionResult, ...]:
    """A result for each assertion. Where they alone would say something else than promptfoo did (a threshold over
    all, a function of its own), promptfoo's verdict decides and they are for information."""
    grading = as_object(row.get("gradingResult"))
    parts = objects_in(grading.get("componentResults"))
    success = row.get("success")
    whole = success if isinstance(success, bool) else grading.get("pass")
    taken: Counter[str] = Counter()
    verdicts = [_verdict(part, taken) for part in parts]
    passed = all(part.outcome is Outcome.PASSED for part in verdicts if part.severity == "error")
    if verdicts and (not isinstance(whole, bool) or passed == whole):
        return tuple(verdicts)
    if not isinstance(whole, bool):
        return tuple(verdicts)
    if not verdicts and whole and grading.get("reason", "No assertions") == "No assertions":
        return ()  # promptfoo passes what is not checked
    score = number(row.get("score", grading.get("score")))
    reason = plain_text(grading.get("reason") or row.get("error"))[:_LONGEST]
    over = foreign_result(f"{NAME} verdict", score=score, passed=whole, source=NAME, reason=reason)
    return (over, *(replace(part, severity="info") for part in verdicts))


def _verdict(part: Mapping[str, Any], taken: Counter[str]) -> CriterionResult:
    assertion = as_object(part.get("assertion"))
    name = f"{NAME} {plain_text(assertion.get('metric') or assertion.get('type')) or 'assertion'}"
    taken[name] += 1
    if taken[name] > 1:
        name = f"{name} {taken[name]}"
    passed = part.get("pass")
    result = foreign_result(
        name,
        score=number(part.get("score")),
        passed=passed if isinstance(passed, bool) else None,
        source=NAME,
        reason=plain_text(part.get("reason"))[:_LONGEST],
    )
    weight = number(assertion.get("weight"))
    if weight is not None and weight >= 0:
        # promptfoo lets an assertion of weight 0 never fail.
        result = replace(result, weight=weight, severity="error" if weight else "info")
    return result


FORMAT = Format(
    name=NAME,
    title="promptfoo results",
    looks_like="an object with `evalId` and `results`, or lines with `gradingResult`",
    can_read=can_read,
    recordings=recordings,
    tests=tests,
    yaml=fits_yaml,
    page="coming-from/promptfoo",
    rank=20,
)
