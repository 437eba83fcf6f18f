"""pydantic-evals' reports: `{name, cases: [{name, inputs, output, assertions, scores, ...}], failures: [...]}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.derived_criteria import of_target
from agenteval_tui.formats.importers.message_formats import is_message, plain_text, transcript_of
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_id
from agenteval_tui.formats.importers.usage_import import number
from agenteval_tui.formats.stream.json_reader import said_of
from agenteval_tui.formats.stream.json_stream import UnreadableFile
from agenteval_tui.formats.stream.sniff import sniff
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.grade import foreign_result, unreadable_result
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.model import RunError, Timing, Usage

NAME = "pydantic-evals"
_OF_RUNS = ("task_duration", "total_duration", "output", "assertions", "scores", "error_message")
_REPEATED = re.compile(r"(.*) \[(\d{1,6})/\d{1,6}\]")
_LONGEST = 20_000


def is_report(value: Any) -> bool:
    """Whether a file's first value is a report: its cases were run."""
    if not isinstance(value, Mapping):
        return False
    if "failures" in value and "cases" in value:
        return True
    cases = value.get("cases")
    return isinstance(cases, list) and any(
        isinstance(one, Mapping) and any(key in one for key in _OF_RUNS) for one in cases[:5]
    )


def recordings(source: Source) -> Iterator[Recording | Skipped]:
    """A run for each case, and for each case that broke."""
    first = next(iter(sniff(source).values), None)
    if not is_report(first):
        raise AgentevalError(
            f"there are tests in this file ({NAME}) and no runs",
            where=str(source.path),
            mend="write them into a suite: --to NAME.suite.yaml",
        )
    reader = source.reader()
    try:
        for key in reader.members():
            if key not in ("cases", "failures"):
                continue
            for _ in reader.elements():
                line = reader.line
                case = reader.bounded()
                if not isinstance(case, Mapping) or not ("output" in case or "inputs" in case):
                    yield Skipped("no case: it has neither `inputs` nor an `output`", line)
                    continue
                try:
                    yield _recording(case, key)
                except AgentevalError as error:
                    yield Skipped(error.what, line)
    except UnreadableFile as error:
        yield Skipped(f"from here on the report can't be read: {error.reason}", reader.line, error.cut_off)
    yield from said_of(reader)


def _recording(case: Mapping[str, Any], field: str) -> Recording:
    name, repetition = _named(case)
    asked, answered = case.get("inputs"), case.get("output")
    transcript = transcript_of([*_messages(asked, "user"), *_messages(answered, "assistant")])
    duration = number(case.get("task_duration"))
    metrics = case["metrics"] if isinstance(case.get("metrics"), Mapping) else {}
    error = plain_text(case.get("error_message")).strip()
    usage = Usage(
        input_tokens=_whole(metrics.get("input_tokens")),
        output_tokens=_whole(metrics.get("output_tokens")),
        cost=number(metrics.get("cost")),
    )
    trace = plain_text(case.get("error_stacktrace")).strip()
    transcript = replace(
        transcript,
        timing=Timing(total_ms=None if duration is None else duration * 1000),
        usage=transcript.usage if usage == Usage() else usage,
        final_output=transcript.final_output or plain_text(answered),
        error=RunError.told(NAME, error[:_LONGEST] or "the task broke") if error or field == "failures" else None,
        log=trace[:_LONGEST],
    )
    more = {"expected_value": case.get("expected_output"), "metadata": case.get("metadata")}
    about = {key: case.get(key) for key in ("metrics", "attributes")}
    return Recording(
        test_id=as_id(name),
        test_name=name[:500],
        transcript=transcript,
        repetition=repetition,
        prompt=plain_text(asked),
        variables={key: value for key, value in {**more, **about}.items() if value not in (None, {}, [])},
        results=() if transcript.error is not None else tuple(_results(case)),
        expected=of_target(case.get("expected_output")),
        source=((f"{field}[]", case),),
    )


def _named(case: Mapping[str, Any]) -> tuple[str, int | None]:
    """(name, repetition) of a case: one that was repeated is called `name [2/3]`, and says what it was made of."""
    name = plain_text(case.get("name")) or "case"
    match = _REPEATED.fullmatch(name)
    told = plain_text(case.get("source_case_name"))
    if told:
        return told, int(match.group(2)) if match is not None else None
    return name, None


def _messages(value: Any, role: str) -> list[Any]:
    """What went in or came out: messages where it is some, else what one side says."""
    if isinstance(value, Mapping) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if isinstance(value, list) and value and all(is_message(one) for one in value):
        return value
    if is_message(value):
        return [value]
    return [] if value is None else [{"role": role, "content": plain_text(value)}]


def _whole(value: Any) -> int | None:
    found = number(value)
    return int(found) if found is not None and 0 <= found < 2**63 else None


def _results(case: Mapping[str, Any]) -> Iterator[CriterionResult]:
    """Assertions decide; scores and labels say nothing on what is enough, and are for information beside them."""
    decides = bool(case.get("assertions")) or bool(case.get("evaluator_failures"))
    for name, one in _named_results(case.get("assertions")):
        value, reason = _value(one)
        passed = value if isinstance(value, bool) else None
        yield foreign_result(f"{NAME} {name}", passed=passed, source=NAME, reason=reason or f"gave {plain_text(value)}")
    for kind in ("scores", "labels"):
        for name, one in _named_results(case.get(kind)):
            value, reason = _value(one)
            said = f"gave {plain_text(value)}" + (f": {reason}" if reason else "")
            score = None if isinstance(value, str | bool) else number(value)
            within = score if score is not None and 0 <= score <= 1 else None
            found = foreign_result(f"{NAME} {name}", score=within, source=NAME, reason=said)
            if kind == "scores" and score is None and not isinstance(value, bool):
                found = unreadable_result(f"{NAME} {name}", source=NAME, reason=f"the score can't be read: {said}")
            yield replace(found, severity="info") if decides or kind == "labels" else found
    failures = case.get("evaluator_failures")
    for one in failures if isinstance(failures, list) else ():
        about = one if isinstance(one, Mapping) else {"error_message": one}
        said = "; ".join(filter(None, (plain_text(about.get(key)).strip() for key in _FAILURE)))
        yield unreadable_result(
            f"{NAME} {plain_text(about.get('name')) or 'evaluator'}", source=NAME,
            reason=f"the evaluator broke: {said}"[:_LONGEST],
        )  # fmt: skip


_FAILURE = ("error_message", "error_stacktrace")


def _named_results(given: Any) -> list[tuple[str, Any]]:
    return [(str(name), one) for name, one in given.items()] if isinstance(given, Mapping) else []


def _value(given: Any) -> tuple[Any, str]:
    """(value, reason) of a result, which may also be a plain value."""
    if not isinstance(given, Mapping):
        return given, ""
    return given.get("value"), plain_text(given.get("reason"))[:_LONGEST]
