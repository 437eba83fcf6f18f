"""ToolCheck: usage, arguments with all matchers, forbidden tools, and what its evidence says and marks."""

from __future__ import annotations

from typing import Any

import pytest
from tool_checks import calls, check, evidence

from agenteval_tui.grading.metrics.matchers import MatcherError, compile_matcher, same_json
from agenteval_tui.grading.results import Outcome, Span
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence
from agenteval_tui.transcripts.model import ToolCall, Transcript

GET = ("get_order", {"order_id": "#W1"})


@pytest.mark.parametrize(
    ("transcript", "metric", "score"),
    [
        (calls(GET), {"tools": [{"name": "get_order"}]}, 1.0),
        (calls(GET), {"tool": [{"name": "get_order"}]}, 1.0),
        # Required and missing: usage 0, arguments 0, capped.
        (calls(), {"tools": [{"name": "get_order"}]}, 0.2),
        (calls(), {"tools": [{"name": "get_order", "required": False}]}, 1.0),
        # An optional tool with a minimum: right when never called, half right when called too rarely.
        (calls(), {"tools": [{"name": "get_order", "required": False, "min_calls": 2}]}, 1.0),
        (calls(GET), {"tools": [{"name": "get_order", "required": False, "min_calls": 2}]}, 0.75),
        (calls(GET, GET), {"tools": [{"name": "get_order", "max_calls": 1}]}, 0.75),
        (calls(GET), {"tools": [{"name": "get_order", "min_calls": 2, "max_calls": 3}]}, 0.75),
        # Required with `min_calls` 0 is still required.
        (calls(), {"tools": [{"name": "get_order", "min_calls": 0}]}, 0.2),
        (calls(GET), {"tools": [{"name": "get_order", "arguments": {"order_id": "W1"}}]}, 0.7),
        (calls(GET, ("get_order", {})), {"tools": [{"name": "get_order", "arguments": {"order_id": "#W1"}}]}, 0.85),
        (calls(GET), {"tools": [{"name": "get_order", "arguments": {}}]}, 0.7),
        (calls(GET), {"tools": [{"name": "get_order", "arguments": {}, "allow_additional_arguments": True}]}, 1.0),
        # Two tools, one missing: 0.25 + 0.15 + 0.2, capped.
        (calls(GET), {"tools": [{"name": "get_order"}, {"name": "query"}]}, 0.25),
        (calls(GET), {"forbidden_tools": ["get_order"]}, 0.25),
        (calls(GET), {"forbidden_tools": ["query"]}, 1.0),
        (calls(GET), {"tools": [{"name": "get_order"}], "forbidden_tools": ["get_order"]}, 0.25),
        (calls(), {"tool_call_forbidden": True}, 1.0),
        (calls(GET), {"tool_call_forbidden": True}, 0.0),
        (calls(GET), {"tool_call_forbidden": False, "forbidden_tools": ["x"]}, 1.0),
    ],
)
def test_scores(transcript: Transcript, metric: dict[str, Any], score: float) -> None:
    result = check(transcript, **metric)
    assert result.score == pytest.approx(score)
    assert result.outcome is (Outcome.PASSED if score == 1.0 else Outcome.FAILED)
    marks = [one.passed for one in result.metrics[0].evidence]
    assert all(marks) is (score == 1.0)


@pytest.mark.parametrize("metric", [{}, {"tools": []}, {"forbidden_tools": []}, {"tool_call_forbidden": False}])
def test_nothing_configured_is_neutral(metric: dict[str, Any]) -> None:
    result = check(calls(GET), **metric)
    assert result.metrics[0].neutral
    assert result.metrics[0].rating == 3
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("expected", "right", "wrong"),
    [
        ("a", ["a"], ["A", 1, None, ["a"]]),
        (1, [1, 1.0], ["1", True, None]),
        (True, [True], [1, "true", None]),
        (None, [None], [0, "", False]),
        ([1, {"a": 2}], [[1.0, {"a": 2}]], [[{"a": 2}, 1], [1], {"0": 1}]),
        ({"a": 1, "b": [True]}, [{"b": [True], "a": 1}], [{"a": 1, "b": [1]}, {"a": 1}]),
        ({}, [{}], [[], None, {"a": 1}]),
        ({"$any": True}, [1, None, "x", {}], []),
        ({"$contains": "ab"}, ["xaby"], ["AB", 5, ["ab"]]),
        ({"$ignore_case": "Berlin"}, ["berlin", "BERLIN"], ["Berlin ", 5]),
        ({"$regex": "/^#w\\d+$/i"}, ["#W12", "#w1"], ["W12", 12]),
        ({"$regex": "\\d+"}, ["a1"], ["a"]),
        ({"$one_of": ["a", 1, {"$gt": 5}]}, ["a", 1, 6], ["b", 5, True]),
        ({"$gt": 1}, [1.5, 2], [1, True, "2"]),
        ({"$gte": 1}, [1, 2], [0.5, "1"]),
        ({"$lt": 1}, [0, -1.5], [1, False]),
        ({"$lte": 1}, [1, 0], [2]),
        ({"$gte": 1, "$lte": 3}, [1, 2, 3], [0, 4, "2"]),
        ({"$not": "a"}, ["b", None], ["a"]),
        ({"$not": {"$contains": "a"}}, ["b", 5], ["cab"]),
        ({"$type": "string"}, ["", "a"], [1, None]),
        ({"$type": "number"}, [1, 1.5], [True, "1"]),
        ({"$type": "boolean"}, [True, False], [0, "true"]),
        ({"$type": "array"}, [[], [1]], [{}, "[]"]),
        ({"$type": "object"}, [{}, {"a": 1}], [[], None]),
        ({"$type": "null"}, [None], [0, ""]),
        ({"where": {"id": {"$gt": 5}}, "n": 1}, [{"where": {"id": 6}, "n": 1}], [{"where": {"id": 6}}, {"where": {}}]),
        ([{"$any": True}, 2], [["x", 2]], [[2], ["x", 3]]),
        ({"$ref": 1, "plain": 2}, [{"$ref": 1, "plain": 2}], [{"plain": 2}]),
    ],
)
def test_matchers(expected: Any, right: list[Any], wrong: list[Any]) -> None:
    matcher = compile_matcher(expected)
    assert matcher.description
    metric = {"tools": [{"name": "f", "arguments": {"x": expected}}]}
    for value in right:
        assert matcher.holds(value), value
        assert check(calls(("f", {"x": value})), **metric).outcome is Outcome.PASSED
    for value in wrong:
        assert not matcher.holds(value), value
        result = check(calls(("f", {"x": value})), **metric)
        assert result.outcome is Outcome.FAILED
        (span,) = evidence(result, "tools[0].arguments").spans
        assert (span.kind, span.index, span.path.split(".")[0]) == ("arguments", 0, "x")


@pytest.mark.parametrize(
    ("expected", "words", "path"),
    [
        ({"$foo": 1}, "no matcher `$foo`", ("$foo",)),
        ({"$contain": "x"}, "did you mean `$contains`", ("$contain",)),
        ({"$any": False}, "`$any`", ("$any",)),
        ({"$contains": 5}, "needs a string, not a number", ("$contains",)),
        ({"$regex": "(a"}, "never closed", ("$regex",)),
        ({"$one_of": "a"}, "needs a list", ("$one_of",)),
        ({"$gt": "5"}, "needs a number", ("$gt",)),
        ({"$gt": True}, "needs a number", ("$gt",)),
        ({"$type": "text"}, "one of string, number", ("$type",)),
        ({"$not": {"$bar": 1}}, "no matcher `$bar`", ("$not", "$bar")),
        ([1, {"$one_of": [{"$gt": "x"}]}], "needs a number", (1, "$one_of", 0, "$gt")),
    ],
)
def test_broken_matchers(expected: Any, words: str, path: tuple[str | int, ...]) -> None:
    with pytest.raises(MatcherError) as caught:
        compile_matcher(expected)
    assert words in caught.value.message
    assert caught.value.path == path
    result = check(calls(("f", {"x": 1})), tools=[{"name": "f", "arguments": {"x": expected}}])
    assert result.outcome is Outcome.ERROR
    assert words in criterion_sentence(result)
    assert "metrics[0].tools[0].arguments.x" in criterion_sentence(result)


def test_json_equality_is_symmetric_about_booleans() -> None:
    assert not same_json(1, True)
    assert not same_json(True, 1)
    assert not same_json(False, 0)
    assert same_json(1, 1.0)


def test_arguments_as_a_list_of_objects() -> None:
    metric = {"tools": [{"name": "f", "arguments": [{"a": 1}, {"b": "x"}, {"b": "y"}]}]}
    assert check(calls(("f", {"a": 1, "b": "x"})), **metric).outcome is Outcome.PASSED
    assert check(calls(("f", {"a": 1, "b": "y"})), **metric).outcome is Outcome.PASSED
    result = check(calls(("f", {"a": 1, "b": "z"})), **metric)
    assert result.outcome is Outcome.FAILED
    assert 'expected "x" or "y", got "z"' in evidence_sentence(evidence(result, "tools[0].arguments"))


def test_the_difference_of_one_argument_is_named() -> None:
    transcript = calls(("get_order", {"order_id": "#W1"}), ("query", {}), ("get_order", {"order_id": "W1"}))
    result = check(transcript, tools=[{"name": "get_order", "arguments": {"order_id": "#W1"}}])
    one = evidence(result, "tools[0].arguments[2]")
    assert evidence_sentence(one) == 'the 2nd call of get_order differs only in order_id: expected "#W1", got "W1"'
    assert one.spans == (Span("arguments", 2, path="order_id"),)
    assert one.found == {"order_id": "W1"}
    assert evidence(result, "tools[0].arguments[1]").passed
    assert criterion_sentence(result) == evidence_sentence(one)


@pytest.mark.parametrize(
    ("arguments", "given", "words"),
    [
        ({"city": "Berlin"}, {"city": "berlin"}, ["would match ignoring case"]),
        ({"city": "Berlin"}, {"city": " Berlin "}, ["white space"]),
        ({"limit": 10}, {"limit": "10"}, ["a string instead of a number"]),
        ({"id": "7"}, {"id": 7}, ["a number instead of a string"]),
        (
            {"order_id": 1},
            {"orderId": 1},
            ["order_id is missing", "perhaps it is orderId", "orderId = 1 is not expected"],
        ),
        ({"a": 1}, {"a": 1, "b": 2}, ["differs only in its arguments", "b = 2 is not expected"]),
        ({"a": 1, "b": 2, "c": 3}, {"a": 2, "b": 3, "c": 3}, ["differs in 2 arguments", "a: expected 1, got 2"]),
        ({"a": {"$gte": 5}}, {"a": 4}, ["expected at least 5, got 4"]),
    ],
)
def test_differences_in_words(arguments: Any, given: Any, words: list[str]) -> None:
    one = evidence(check(calls(("f", given)), tools=[{"name": "f", "arguments": arguments}]), "tools[0].arguments")
    for word in words:
        assert word in evidence_sentence(one)


def test_arguments_that_are_no_object() -> None:
    broken = Transcript((), (ToolCall("c", "f", '{"a": ', malformed=True),))
    result = check(broken, tools=[{"name": "f", "arguments": {"a": 1}}])
    assert "not valid JSON" in evidence_sentence(evidence(result, "tools[0].arguments"))
    assert check(calls(("f", [1])), tools=[{"name": "f", "arguments": {}}]).outcome is Outcome.FAILED
    assert check(calls(("f", None)), tools=[{"name": "f", "arguments": {}}]).outcome is Outcome.PASSED
    assert check(calls(("f", "")), tools=[{"name": "f", "arguments": {}}]).outcome is Outcome.PASSED
    assert check(broken, tools=[{"name": "f"}]).outcome is Outcome.PASSED


def test_a_missing_tool_names_the_nearest() -> None:
    result = check(calls(("get_orders", {}), ("query", {})), tools=[{"name": "get_order", "arguments": {}}])
    one = evidence(result, "tools[0].usage")
    assert evidence_sentence(one) == "get_order was never called; nearest get_orders (1 call)"
    assert one.near == (Span("tool", 0),)
    assert "never called" in evidence_sentence(evidence(result, "tools[0].arguments"))
    none = evidence(check(calls(), tools=[{"name": "f"}]), "tools[0].usage")
    assert evidence_sentence(none) == "f was never called: the agent called no tool"
    other = evidence(check(calls(("query", {})), tools=[{"name": "zzz"}]), "tools[0].usage")
    assert evidence_sentence(other) == "zzz was never called; the agent called query"


def test_usage_and_forbidden_in_words() -> None:
    transcript = calls(GET, GET, GET)
    one = evidence(check(transcript, tools=[{"name": "get_order", "max_calls": 2}]), "tools[0].usage")
    assert evidence_sentence(one) == "get_order was called 3 times, expected 1 to 2 times"
    assert one.spans == tuple(Span("tool", index) for index in range(3))
    forbidden = evidence(check(transcript, forbidden_tools=["x", "get_order"]), "forbidden_tools[1]")
    assert evidence_sentence(forbidden) == "get_order must not be called, but was called 3 times"
    assert evidence(check(transcript, forbidden_tools=["x"]), "forbidden_tools[0]").passed
    assert "3 calls: get_order" in evidence_sentence(
        evidence(check(transcript, tool_call_forbidden=True), "tool_call_forbidden")
    )


def test_thousands_of_calls_are_counted() -> None:
    transcript = calls(*[("f", {"n": n}) for n in range(5000)], ("f", {"n": "x" * 100_000}))
    metric = {"tools": [{"name": "f", "arguments": {"n": {"$type": "number"}}}]}
    result = check(transcript, **metric)
    assert result.outcome is Outcome.FAILED
    lines = [one for one in result.metrics[0].evidence if one.group == "arguments"]
    assert len(lines) == 101
    assert lines[-2].condition == "tools[0].arguments[5001]"
    assert lines[-2].passed is False
    assert len(lines[-2].found) <= 300
    assert evidence_sentence(lines[-1]) == "4,901 more calls of f, 0 with other arguments"
    assert lines[-1].passed
    wild = check(transcript, tools=[{"name": "f", "arguments": {"n": {"$type": "null"}}}])
    assert evidence_sentence(wild.metrics[0].evidence[-1]) == "4,901 more calls of f, 4,901 with other arguments"
    assert len(wild.metrics[0].evidence[1].spans) == 1


def test_a_slow_pattern_is_an_error_and_not_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.grading.regex_search.TIME_LIMIT", 0.05)
    transcript = calls(("f", {"x": "a" * 60}))
    result = check(transcript, tools=[{"name": "f", "arguments": {"x": {"$regex": "^(a|a|aa)+$b"}}}])
    assert result.outcome is Outcome.ERROR
    assert "longer than" in criterion_sentence(result)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ({"tools": {"name": "f"}}, ["metrics[0].tools", "a list"]),
        ({"tools": [{}]}, ["metrics[0].tools[0].name", "missing"]),
        ({"tools": [{"name": ""}]}, ["must not be empty"]),
        ({"tools": [{"name": "f", "min_calls": "1"}]}, ["metrics[0].tools[0].min_calls", "a whole number"]),
        ({"tools": [{"name": "f", "min_calls": 1.5}]}, ["min_calls", "a whole number"]),
        ({"tools": [{"name": "f", "min_calls": True}]}, ["min_calls", "a whole number"]),
        ({"tools": [{"name": "f", "required": 1}]}, ["required", "true or false"]),
        ({"tools": [{"name": "f", "arguments": "x"}]}, ["arguments", "an object"]),
        ({"tools": [{"name": "f", "max_call": 1}]}, ["max_call", "did you mean `max_calls`"]),
        ({"forbidden_tools": "f"}, ["forbidden_tools", '["f"]']),
        ({"tool_call_forbidden": "yes"}, ["tool_call_forbidden", "true or false"]),
    ],
)
def test_wrong_types_are_an_error_with_the_reason(metric: dict[str, Any], words: list[str]) -> None:
    result = check(calls(GET), **metric)
    assert result.outcome is Outcome.ERROR
    for word in words:
        assert word in criterion_sentence(result)
