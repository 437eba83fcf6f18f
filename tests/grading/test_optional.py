"""The matcher `$optional`: an argument may be left out, but if it is given it must be right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import ToolCall, Transcript

EXPECTED = {"id": "W1", "note": {"$optional": {"$contains": "please"}}}


def checked(metric: dict[str, Any], *calls: dict[str, Any]) -> CriterionResult:
    made = tuple(ToolCall(f"c{n}", "find", arguments) for n, arguments in enumerate(calls))
    return compile_criterion(CriterionSpec("c", "ToolResponse", {"metrics": [metric]})).check(Transcript((), made))


def tool_check(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"type": "ToolCheck", "tools": [{"name": "find", "arguments": arguments, **more}]}


@pytest.mark.parametrize(
    ("arguments", "given", "right"),
    [
        (EXPECTED, {"id": "W1"}, True),
        (EXPECTED, {"id": "W1", "note": "yes please"}, True),
        (EXPECTED, {"id": "W1", "note": "no"}, False),
        (EXPECTED, {"id": "W1", "note": None}, False),
        (EXPECTED, {"note": "please"}, False),
        (EXPECTED, {"id": "W1", "other": 1}, False),
        (EXPECTED, {"id": "W1", "note": "please", "other": 1}, False),
        (EXPECTED, {}, False),
        ({"id": {"$optional": "W1"}}, {}, True),
        ({"id": {"$optional": None}}, {"id": None}, True),
        ({"id": {"$optional": None}}, {"id": "x"}, False),
        ({"n": {"$optional": {"$gte": 1, "$lte": 5}}}, {"n": 6}, False),
        ({"n": {"$optional": {"$any": True}}}, {"n": [1]}, True),
        ({"n": {"$optional": {"$not": "x"}}}, {"n": "x"}, False),
        ({"n": {"$optional": 1, "$type": "number"}}, {"n": 1.0}, True),
        ({"n": {"$optional": 1, "$type": "number"}}, {}, True),
        ({"f": {"city": "B", "zip": {"$optional": "1"}}}, {"f": {"city": "B"}}, True),
        ({"f": {"city": "B", "zip": {"$optional": "1"}}}, {"f": {"city": "B", "zip": "1"}}, True),
        ({"f": {"city": "B", "zip": {"$optional": "1"}}}, {"f": {"city": "B", "zip": "2"}}, False),
        ({"f": {"city": "B", "zip": {"$optional": "1"}}}, {"f": {"zip": "1"}}, False),
        ({"f": {"city": "B", "zip": {"$optional": "1"}}}, {"f": {"city": "B", "x": 1}}, False),
        ({"f": {"$optional": {"a": {"$optional": 1}}}}, {"f": {}}, True),
        ([{"n": {"$optional": 1}}, {"n": 2}], {"n": 2}, True),
        ([{"n": {"$optional": 1}}, {"n": 2}], {}, True),
        ([{"n": {"$optional": 1}}, {"n": 2}], {"n": 3}, False),
    ],
)
def test_optional_arguments(arguments: Any, given: dict[str, Any], right: bool) -> None:
    result = checked(tool_check(arguments), given)
    assert (result.outcome is Outcome.PASSED) is right
    assert criterion_sentence(result) == "" or not right
    plain = compile_criterion(CriterionSpec("c", "ToolResponse", {"metrics": [tool_check(arguments)]}))
    made = Transcript((), (ToolCall("c", "find", given),))
    assert plain.check(made, explain=False).outcome is result.outcome


def test_what_is_wrong_is_said_and_nothing_is_said_to_be_missing() -> None:
    result = checked(tool_check(EXPECTED), {"id": "W1", "note": "no"})
    assert "if given" in criterion_sentence(result)
    assert "missing" not in criterion_sentence(checked(tool_check(EXPECTED), {"id": "W2"}))


@pytest.mark.parametrize("mode", ["strict", "unordered", "subset", "superset", "exact", "any", "all"])
@pytest.mark.parametrize(
    ("given", "right"),
    [({"id": "W1"}, True), ({"id": "W1", "note": "please"}, True), ({"id": "W1", "note": "x"}, False)],
)
def test_in_a_trajectory(mode: str, given: dict[str, Any], right: bool) -> None:
    metric = {"type": "Trajectory", "mode": mode, "calls": [{"name": "find", "arguments": EXPECTED}]}
    assert (checked(metric, given).outcome is Outcome.PASSED) is right


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": [{"$optional": 1}]},
        {"a": {"$one_of": [{"$optional": 1}]}},
        {"a": {"$not": {"$optional": 1}}},
        {"a": {"$optional": {"$optional": 1}}},
        {"a": {"$optional": {"$regex": "("}}},
        {"a": {"$optional": {"$bogus": 1}}},
    ],
)
def test_where_nothing_can_be_left_out_it_is_a_mistake(arguments: Any) -> None:
    found = diagnose(json.dumps({"metrics": [tool_check(arguments)]}), "ToolResponse")
    assert [one.severity for one in found].count("error") == 1
    assert checked(tool_check(arguments), {"a": 1}).outcome is Outcome.ERROR


def test_a_misspelled_optional_is_guessed() -> None:
    (found,) = diagnose(json.dumps({"metrics": [tool_check({"a": {"$optinal": 1}})]}), "ToolResponse")
    assert "did you mean `$optional`?" in found.message
