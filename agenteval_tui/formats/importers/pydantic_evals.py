"""pydantic-evals' datasets: YAML or JSON with `cases` and `evaluators`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import plain_text
from agenteval_tui.formats.importers.pydantic_evals_report import recordings
from agenteval_tui.formats.importers.suite_import import FoundTests, checked, needs_manual_work
from agenteval_tui.formats.importers.usage_import import number
from agenteval_tui.formats.stream.small_document import read_document
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.suites.datasets import PROMPT_COLUMNS


def fits(value: Any) -> bool:
    """Whether a file's first value is a dataset."""
    return isinstance(value, Mapping) and isinstance(value.get("cases"), list)


def fits_yaml(keys: frozenset[str]) -> bool:
    """Whether these keys of a document are those of a dataset."""
    return "cases" in keys and "tests" not in keys


def tests(source: Source) -> FoundTests:
    """A test for each case: its own evaluators, and those of the dataset."""
    document = read_document(source)
    cases = document.get("cases") if isinstance(document, Mapping) else None
    if not isinstance(cases, list):
        raise AgentevalError("this is no pydantic-evals dataset: it has no list `cases`", where=str(source.path))
    found = FoundTests(name=plain_text(document.get("name")) or source.path.stem)
    shared = document.get("evaluators")
    for index, case in enumerate(cases, 1):
        if not isinstance(case, Mapping) or "inputs" not in case:
            found.skipped.append(f"case {index} has no `inputs`")
            continue
        own = case.get("evaluators")
        evaluators = [*(own if isinstance(own, list) else []), *(shared if isinstance(shared, list) else [])]
        found.tests.append(_test(case, evaluators, index))
    if document.get("report_evaluators"):
        found.note("evaluators of the whole report are not translated: `agenteval stats` has such figures")
    return found


def _test(case: Mapping[str, Any], evaluators: list[Any], index: int) -> dict[str, Any]:
    expected = case.get("expected_output")
    name = plain_text(case.get("name")) or f"case {index}"
    criteria = [_criterion(one, expected) for one in evaluators]
    if not criteria:
        criteria = [needs_manual_work("As expected", "Does the answer say what the expected value says?")]
    if expected is not None:
        for one in criteria:
            one["expected_value"] = plain_text(expected)
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
    shown = {"input": json.dumps(inputs, ensure_ascii=False, default=str)}
    return {"prompt": "{{ input }}", "variables": {**inputs, **shown}}


def _criterion(evaluator: Any, expected: Any) -> dict[str, Any]:
    """`Name`, `{Name: first argument}` or `{Name: {keyword: value}}`."""
    if isinstance(evaluator, Mapping) and "name" in evaluator:  # the long form
        name, given = plain_text(evaluator["name"]), evaluator.get("arguments")
    elif isinstance(evaluator, Mapping) and len(evaluator) == 1:
        name, given = next(iter(evaluator.items()))
    else:
        name, given = plain_text(evaluator), None
    first = given[0] if isinstance(given, list) and given else None if isinstance(given, Mapping | list) else given
    keywords: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    return _translated(name, first, keywords, expected) or needs_manual_work(
        name or "Evaluator", f"pydantic-evals' {name} {json.dumps(given, default=str) if given else ''}".strip()
    )


def _translated(name: str, first: Any, keywords: Mapping[str, Any], expected: Any) -> dict[str, Any] | None:
    called = plain_text(keywords.get("evaluation_name")) or name
    if name in ("Equals", "EqualsExpected"):
        value = keywords.get("value", first) if name == "Equals" else expected
        if isinstance(value, str):
            return checked(called, {"type": "TextMatch", "equals": value})
        return None if value is None else checked(called, {"type": "Json", "equals": value})
    if name == "Contains":
        value = keywords.get("value", first)
        if isinstance(value, str) and value:
            any_case = keywords.get("case_sensitive") is False
            key = "contains_ignore_case" if any_case else "contains"
            return checked(called, {"type": "TextMatch", key: value})
    if name == "MaxDuration":
        seconds = keywords.get("seconds", first)
        parsed = number(seconds)
        if parsed is not None and parsed >= 0:
            return checked(called, {"type": "Latency", "max": parsed * 1000}, prototype="Transcript")
    if name in ("LLMJudge", "GEval"):
        rubric = keywords.get("rubric") or keywords.get("criteria") or first
        if isinstance(rubric, str) and rubric:
            return checked(called, {"type": "Judge", "criteria": rubric})
    return None


FORMAT = Format(
    name="pydantic-evals",
    looks_like="a pydantic-evals dataset (YAML or JSON with `cases`), or a report (JSON)",
    fits=fits,
    recordings=recordings,
    tests=tests,
    yaml=fits_yaml,
    rank=90,
)
