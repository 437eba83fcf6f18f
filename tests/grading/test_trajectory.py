"""Trajectory: eight ways to compare calls, four to compare arguments, and what is said about the ones that differ."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.metrics.trajectory import largest_matching
from agenteval_tui.grading.results import CriterionResult, Outcome, Span
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.uxon.serialize import to_text

MODES = ("strict", "unordered", "subset", "superset", "any", "all", "exact", "none")


def made(*calls: str | tuple[str, Any], at_once: bool = False) -> Transcript:
    """Calls one after the other, or all in one message. "a" stands for ("a", {})."""
    pairs = [(call, {}) if isinstance(call, str) else call for call in calls]
    listed = tuple(ToolCall(f"c{n}", name, given, message=0 if at_once else n) for n, (name, given) in enumerate(pairs))
    groups = [tuple(range(len(listed)))] if at_once else [(n,) for n in range(len(listed))]
    return Transcript(tuple(Message("assistant", "", tool_calls=group) for group in groups), listed)


def run(transcript: Transcript, *calls: str | tuple[str, Any], **metric: Any) -> CriterionResult:
    listed = [{"name": c} if isinstance(c, str) else {"name": c[0], "arguments": c[1]} for c in calls]
    config = {"metrics": [{"type": "Trajectory", **({} if "reference" in metric else {"calls": listed}), **metric}]}
    checker = Checker(CriterionSpec("it", "ToolResponse", config))
    result = checker.check(transcript)
    quick = checker.check(transcript, explain=False)
    assert (quick.outcome, quick.score) == (result.outcome, result.score)
    assert result.outcome in (Outcome.PASSED, Outcome.FAILED), criterion_sentence(result)
    return result


def passes(transcript: Transcript, *calls: str | tuple[str, Any], **metric: Any) -> bool:
    return run(transcript, *calls, **metric).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("actual", "expected", "right"),
    [
        ("ab", "ab", "strict unordered subset superset any all exact"),
        ("ba", "ab", "unordered subset superset any all exact"),
        ("abc", "ab", "superset any all"),
        ("a", "ab", "subset any"),
        ("aab", "ab", "superset any all"),
        ("ab", "aab", "subset any all"),
        ("cd", "ab", "none"),
        ("", "ab", "subset none"),
        ("ab", "", "superset all none"),
        ("", "", "strict unordered subset superset all exact none"),
        ("A", "a", "any all exact"),
    ],
)
def test_modes(actual: str, expected: str, right: str) -> None:
    assert [mode for mode in MODES if passes(made(*actual), *expected, mode=mode)] == right.split()


def test_calls_of_one_message_have_no_order() -> None:
    assert passes(made("b", "a", "c", at_once=True), "a", "b", "c", mode="strict")
    assert not passes(made("b", "a", "c"), "a", "b", "c", mode="strict")


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ({"x": 1, "y": 2}, "exact ignore subset superset"),
        ({"x": 1.0, "y": 2}, "exact ignore subset superset"),
        ({"x": 1}, "ignore subset"),
        ({"x": 1, "y": 2, "z": 3}, "ignore superset"),
        ({"x": 1, "y": 3}, "ignore"),
        ({}, "ignore subset"),
        ("not json", "ignore"),
    ],
)
@pytest.mark.parametrize("mode", ["strict", "unordered", "subset", "superset", "any", "exact"])
def test_arguments_are_compared_from_where_they_are_written_in_every_mode(given: Any, right: str, mode: str) -> None:
    """agentevals turns the sides round in `subset` and in half of `unordered`; here they stay as they are written."""
    transcript = made(("a", given))
    wanted = ("a", {"x": 1, "y": 2})
    how = [
        one
        for one in ("exact", "ignore", "subset", "superset")
        if passes(transcript, wanted, mode=mode, arguments_mode=one)
    ]
    assert how == right.split()


def test_the_order_in_which_calls_are_listed_does_not_matter() -> None:
    """agentevals takes the first that fits: with `superset` arguments one order fails and the other does not."""
    transcript = made(("a", {"x": 1, "y": 2}), ("a", {"x": 1}))
    wanted = [("a", {"x": 1}), ("a", {"x": 1, "y": 2})]
    for order in permutations(wanted):
        assert passes(transcript, *order, mode="unordered", arguments_mode="superset")


def test_matchers_and_overrides() -> None:
    transcript = made(("a", {"x": "2026-01-05", "y": {"z": 1, "w": 2}}))
    assert passes(transcript, ("a", {"x": {"$regex": "^2026"}, "y": {"$any": True}}), mode="strict")
    assert passes(transcript, ("a", {"x": "no", "y": {"z": 1}}), mode="strict", overrides={"a": ["y.z", "nowhere"]})
    assert not passes(transcript, ("a", {"x": "no", "y": {"z": 2}}), mode="strict", overrides={"a": ["y.z"]})
    assert not passes(transcript, ("a", {"y": {"w": 2}, "new": 1}), mode="strict", overrides={"a": ["new"]})
    assert passes(transcript, ("a", {"q": 0}), mode="strict", overrides={"a": "ignore"})
    assert not passes(transcript, ("a", {"q": 0}), mode="strict", overrides={"b": "ignore"})


def test_a_recorded_run_as_reference() -> None:
    call = {"function": {"name": "a", "arguments": '{"$any": true}'}}
    reference = [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]}]
    same = (Message("user", "other words"), Message("assistant", "", tool_calls=(0,)))
    # What was recorded is data: a `$any` in it is no matcher.
    right = Transcript(same, (ToolCall("c", "a", {"$any": True}, message=1),))
    assert passes(right, mode="strict", reference=reference)
    assert not passes(Transcript(same, (ToolCall("c", "a", {"x": 1}, message=1),)), mode="strict", reference=reference)
    longer = Transcript((*same, Message("assistant", "done")), right.tool_calls)
    result = run(longer, mode="strict", reference=reference)
    assert result.outcome is Outcome.FAILED
    assert "there are 3 messages, expected 2" in criterion_sentence(result)
    assert passes(longer, mode="unordered", reference=reference)


def test_evidence_names_calls_and_arguments() -> None:
    transcript = made("login", ("book", {"date": "2026-01-06", "seat": "A"}), "pay")
    result = run(transcript, "login", ("book", {"date": "2026-01-05", "seat": "A"}), mode="unordered")
    assert result.score == pytest.approx(2 / 5)
    lines = {line.condition: line for line in result.metrics[0].evidence}
    assert lines["calls[0]"].spans == (Span("tool", 0),)
    assert "the 2nd call, book, differs only in date: expected" in evidence_sentence(lines["calls[1]"])
    assert lines["calls[1]"].near == (Span("arguments", 1, path="date"),)
    assert evidence_sentence(lines["calls[+2]"]) == "the 3rd call, pay({}), is not expected"
    assert lines["calls[+2]"].spans == (Span("tool", 2),)
    wrong_order = run(made("b", "a"), "a", "b", mode="strict")
    assert criterion_sentence(wrong_order).startswith("a was not called as the 1st call, b was; it is the 2nd call")
    forbidden = run(made("a", ("refund", {"id": 1})), "refund", mode="none")
    assert "refund must not be called, but is the 2nd call" in {
        evidence_sentence(one) for one in forbidden.metrics[0].evidence
    }
    close = run(made("get_orders"), "get_order", mode="all")
    assert "nearest get_orders, the 1st call" in criterion_sentence(close)


def test_an_agent_that_ran_wild_is_compared_in_reasonable_time() -> None:
    wild = made(*["query"] * 5000)
    result = run(wild, *["query"] * 20, mode="unordered")
    assert result.score == pytest.approx(40 / 5020)
    assert len(result.metrics[0].evidence) < 200
    alike = made(*[("q", {"n": n % 3}) for n in range(400)])
    assert not passes(alike, *[("q", {"n": 0})] * 400, mode="unordered")


def said(**metric: Any) -> dict[str, str]:
    config = {"metrics": [{"type": "Trajectory", **metric}]}
    return {one.code: one.message for one in diagnose(to_text(config), "ToolResponse")}


def test_findings() -> None:
    assert "checks-nothing" in said()
    assert "cannot-fail" in said(mode="superset", calls=[])
    assert "contradictory" in said(mode="any", calls=[])
    assert said(mode="strict", calls=[]) == {}
    assert "without-effect" in said(calls=[{"name": "a"}], arguments_mode="superset")
    assert "without-effect" in said(calls=[{"name": "a"}], overrides={"b": "ignore"})
    for mode in ("strict", "subset"):
        calls = [{"name": "a", "arguments": {"x": 1}}]
        assert "without-effect" in said(calls=calls, arguments_mode="ignore", mode=mode)
    assert "without-effect" in said(calls=[{"name": "a"}], reference=[])
    assert "no matcher `$contain`" in said(calls=[{"name": "a", "arguments": {"x": {"$contain": "y"}}}])["wrong-value"]
    assert "has no role" in said(reference=[{"content": "x"}])["wrong-value"]


@settings(max_examples=120, deadline=None)
@given(st.lists(st.lists(st.integers(0, 5), max_size=6, unique=True), max_size=6))
def test_the_matching_is_a_largest_one(candidates: list[list[int]]) -> None:
    found = largest_matching(candidates)
    assert len(set(found.values())) == len(found)
    assert all(right in candidates[left] for left, right in found.items())

    def best(left: int, taken: frozenset[int]) -> int:
        if left == len(candidates):
            return 0
        options = [best(left + 1, taken)]
        options += [1 + best(left + 1, taken | {right}) for right in candidates[left] if right not in taken]
        return max(options)

    assert len(found) == best(0, frozenset())


_calls = st.lists(
    st.tuples(st.sampled_from("ab"), st.dictionaries(st.sampled_from("xy"), st.integers(0, 1))), max_size=4
)


@settings(max_examples=100, deadline=None)
@given(_calls, _calls)
def test_unordered_is_subset_and_superset(actual: list[Any], expected: list[Any]) -> None:
    transcript = made(*actual)
    sub, sup = (passes(transcript, *expected, mode=mode) for mode in ("subset", "superset"))
    assert passes(transcript, *expected, mode="unordered") is (sub and sup)
    if passes(transcript, *expected, mode="strict"):
        assert sub
        assert sup
    if expected:
        anything = passes(transcript, *expected, mode="any")
        assert passes(transcript, *expected, mode="none") is not anything
