"""pydantic-evals: datasets (YAML or JSON with `cases` and `evaluators`) as tests, reports of evaluations as runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.derived_criteria import criteria_of_target
from agenteval_tui.formats.importers.format import Format, run_per_element
from agenteval_tui.formats.importers.message_formats import (
    as_list,
    as_object,
    messages_in,
    objects_in,
    plain_text,
    transcript_of,
    value_at,
)
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_id
from agenteval_tui.formats.importers.suite_import import FoundTests, checked, checked_literally, needs_manual_work
from agenteval_tui.formats.importers.usage_import import number, share, with_usage
from agenteval_tui.formats.stream.small_document import read_document
from agenteval_tui.formats.stream.sniff import sniff
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.grade import foreign_result, unreadable_result
from agenteval_tui.grading.placeholders import literally
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.suites.datasets import PROMPT_COLUMNS
from agenteval_tui.transcripts.model import RunError, Timing
from agenteval_tui.transcripts.observed import without_calls

NAME = "pydantic-evals"
_OF_RUNS = ("task_duration", "total_duration", "output", "assertions", "scores", "error_message")
_REPEATED = re.compile(r"(.*) \[(\d{1,6})/\d{1,6}\]")
_LONGEST = 20_000


def _is_report(value: Any) -> bool:
    """Whether a file's first value is a report: its cases were run."""
    if not isinstance(value, Mapping):
        return False
    if "failures" in value and "cases" in value:
        return True
    return any(key in case for case in objects_in(value.get("cases"))[:5] for key in _OF_RUNS)


def recordings(source: Source) -> Iterator[Recording | Skipped]:
    """A run for each case, and for each case that broke."""
    first = next(iter(sniff(source).values), None)
    if not _is_report(first):
        raise AgentevalError(
            f"there are tests in this file ({NAME}) and no runs",
            where=str(source.path),
            fix="write them into a suite: --to NAME.suite.yaml",
        )
    yield from _runs(source)


def _recording(case: Mapping[str, Any], field: str, _: int) -> Recording:
    name, repetition = _named(case)
    inputs, answered = case.get("inputs"), case.get("output")
    transcript = transcript_of([*_messages(inputs, "user"), *_messages(answered, "assistant")])
    if not _messages_in(answered):
        transcript = without_calls(transcript, NAME)
    duration = number(case.get("task_duration"))
    metrics = as_object(case.get("metrics"))
    error = plain_text(case.get("error_message")).strip()
    used = UsageReader()
    used.add(metrics)
    trace = plain_text(case.get("error_stacktrace")).strip()
    transcript = replace(
        with_usage(transcript, used),
        timing=Timing(total_ms=None if duration is None else duration * 1000),
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
        prompt=plain_text(inputs),
        variables={key: value for key, value in {**more, **about}.items() if value not in (None, {}, [])},
        results=() if transcript.error is not None else tuple(_results(case)),
        expected=criteria_of_target(case.get("expected_output")),
        source=((f"{field}[]", case),),
    )


_runs = run_per_element(
    ("cases", "failures"),
    _recording,
    needs=("output", "inputs"),
    refusal="no case: it has neither `inputs` nor an `output`",
    document="report",
)


def _named(case: Mapping[str, Any]) -> tuple[str, int | None]:
    """(name, repetition) of a case: one that was repeated is called `name [2/3]`, and says what it was made of."""
    name = plain_text(case.get("name")) or "case"
    match = _REPEATED.fullmatch(name)
    case_name = plain_text(case.get("source_case_name"))
    if case_name:
        return case_name, int(match.group(2)) if match is not None else None
    return name, None


def _messages(value: Any, role: str) -> list[Any]:
    """What went in or came out: messages where it is some, else what one side says."""
    messages = _messages_in(value)
    return messages or ([] if value is None else [{"role": role, "content": plain_text(value)}])


def _messages_in(value: Any) -> list[Any]:
    if isinstance(value, Mapping) and isinstance(value.get("messages"), list):
        value = value["messages"]
    return messages_in(value)


def _results(case: Mapping[str, Any]) -> Iterator[CriterionResult]:
    """Assertions decide; scores and labels say nothing on what is enough, and are for information beside them."""
    decides = bool(case.get("assertions")) or bool(case.get("evaluator_failures"))
    for name, entry in _named_results(case.get("assertions")):
        value, reason = _value(entry)
        passed = value if isinstance(value, bool) else None
        yield foreign_result(f"{NAME} {name}", passed=passed, source=NAME, reason=reason or f"gave {plain_text(value)}")
    for kind in ("scores", "labels"):
        for name, entry in _named_results(case.get(kind)):
            value, reason = _value(entry)
            sentence = f"gave {plain_text(value)}" + (f": {reason}" if reason else "")
            score = None if isinstance(value, str | bool) else number(value)
            criterion_result = foreign_result(f"{NAME} {name}", score=share(score), source=NAME, reason=sentence)
            if kind == "scores" and score is None and not isinstance(value, bool):
                criterion_result = unreadable_result(
                    f"{NAME} {name}", source=NAME, reason=f"the score can't be read: {sentence}"
                )
            yield replace(criterion_result, severity="info") if decides or kind == "labels" else criterion_result
    for entry in as_list(case.get("evaluator_failures")):
        about = entry if isinstance(entry, Mapping) else {"error_message": entry}
        sentence = "; ".join(filter(None, (plain_text(about.get(key)).strip() for key in _FAILURE)))
        yield unreadable_result(
            f"{NAME} {plain_text(about.get('name')) or 'evaluator'}",
            source=NAME,
            reason=f"the evaluator broke: {sentence}"[:_LONGEST],
        )


_FAILURE = ("error_message", "error_stacktrace")


def _named_results(results: Any) -> list[tuple[str, Any]]:
    return [(str(name), result) for name, result in results.items()] if isinstance(results, Mapping) else []


def _value(result: Any) -> tuple[Any, str]:
    """(value, reason) of a result, which may also be a plain value."""
    if not isinstance(result, Mapping):
        return result, ""
    return result.get("value"), plain_text(result.get("reason"))[:_LONGEST]


def can_read(value: Any) -> bool:
    """Whether a file's first value is a dataset."""
    return isinstance(value, Mapping) and isinstance(value.get("cases"), list)


def fits_yaml(keys: frozenset[str]) -> bool:
    """Whether these keys of a document are those of a dataset."""
    return "cases" in keys and "tests" not in keys


def tests(source: Source) -> FoundTests:
    """A test for each case: its own evaluators, and those of the dataset."""
    document = read_document(source, "PyYAML")
    cases = value_at(document, "cases")
    if not isinstance(cases, list):
        raise AgentevalError("this is not a pydantic-evals dataset: it has no list `cases`", where=str(source.path))
    found_tests = FoundTests(name=plain_text(document.get("name")) or source.path.stem)
    for index, case in enumerate(cases, 1):
        if not isinstance(case, Mapping) or "inputs" not in case:
            found_tests.skipped.append(f"case {index} has no `inputs`")
            continue
        evaluators = [*as_list(case.get("evaluators")), *as_list(document.get("evaluators"))]
        found_tests.tests.append(_test(case, evaluators, index))
    if document.get("report_evaluators"):
        found_tests.note("evaluators of the whole report are not translated: `agenteval stats` has such figures")
    return found_tests


def _test(case: Mapping[str, Any], evaluators: list[Any], index: int) -> dict[str, Any]:
    expected = case.get("expected_output")
    name = plain_text(case.get("name")) or f"case {index}"
    criteria = [_criterion(evaluator, expected) for evaluator in evaluators]
    if not criteria:
        criteria = [needs_manual_work("As expected", "Does the answer say what the expected value says?")]
    if expected is not None:
        for criterion in criteria:
            criterion["expected_value"] = literally(plain_text(expected))
    test: dict[str, Any] = {"name": name, **_asked(case["inputs"])}
    if isinstance(case.get("metadata"), Mapping) and case["metadata"]:
        test.setdefault("variables", {})["metadata"] = dict(case["metadata"])
    return {**test, "criteria": criteria}


def _asked(inputs: Any) -> dict[str, Any]:
    if not isinstance(inputs, Mapping):
        return {"prompt": "{{ input }}", "variables": {"input": plain_text(inputs)}}
    variables = {"variables": dict(inputs)} if inputs else {}
    for column in PROMPT_COLUMNS:
        if isinstance(inputs.get(column), str):
            return {"prompt": "{{ " + column + " }}", **variables}
    if len(inputs) == 1 and next(iter(inputs)).isidentifier():
        return {"prompt": "{{ " + next(iter(inputs)) + " }}", **variables}
    rendered = {"input": json.dumps(inputs, ensure_ascii=False, default=str)}
    return {"prompt": "{{ input }}", "variables": {**inputs, **rendered}}


def _criterion(evaluator: Any, expected: Any) -> dict[str, Any]:
    """`Name`, `{Name: first argument}` or `{Name: {keyword: value}}`."""
    if isinstance(evaluator, Mapping) and "name" in evaluator:  # the long form
        name, arguments = plain_text(evaluator["name"]), evaluator.get("arguments")
    elif isinstance(evaluator, Mapping) and len(evaluator) == 1:
        name, arguments = next(iter(evaluator.items()))
    else:
        name, arguments = plain_text(evaluator), None
    first = (
        arguments[0]
        if isinstance(arguments, list) and arguments
        else None
        if isinstance(arguments, Mapping | list)
        else arguments
    )
    keywords: Mapping[str, Any] = as_object(arguments)
    return _translated(name, first, keywords, expected) or needs_manual_work(
        name or "Evaluator", f"pydantic-evals' {name} {json.dumps(arguments, default=str) if arguments else ''}".strip()
    )


def _translated(name: str, first: Any, keywords: Mapping[str, Any], expected: Any) -> dict[str, Any] | None:
    called = plain_text(keywords.get("evaluation_name")) or name
    if name in ("Equals", "EqualsExpected"):
        value = keywords.get("value", first) if name == "Equals" else expected
        if isinstance(value, str):
            return checked_literally(called, {"type": "TextMatch", "equals": value})
        return None if value is None else checked_literally(called, {"type": "Json", "equals": value})
    if name == "Contains":
        value = keywords.get("value", first)
        if isinstance(value, str) and value:
            any_case = keywords.get("case_sensitive") is False
            key = "contains_ignore_case" if any_case else "contains"
            return checked_literally(called, {"type": "TextMatch", key: value})
    if name == "MaxDuration":
        seconds = keywords.get("seconds", first)
        parsed = number(seconds)
        if parsed is not None and parsed >= 0:
            return checked(called, {"type": "Latency", "max": parsed * 1000}, prototype="Transcript")
    if name in ("LLMJudge", "GEval"):
        rubric = keywords.get("rubric") or keywords.get("criteria") or first
        if isinstance(rubric, str) and rubric:
            return checked_literally(called, {"type": "Judge", "criteria": rubric})
    return None


FORMAT = Format(
    name="pydantic-evals",
    title="a pydantic-evals dataset",
    looks_like="YAML or JSON with `cases`; or a report, JSON",
    can_read=can_read,
    recordings=recordings,
    tests=tests,
    yaml=fits_yaml,
    page="coming-from/pydantic-evals",
    rank=90,
)
