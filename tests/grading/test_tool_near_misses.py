"""Near misses of tool calls: which actual call each expected one is nearest to, and in what it differs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tool_checks import calls, check, evidence

from agenteval_tui.grading.explain import headline
from agenteval_tui.grading.metrics.tool_check import Tool, ToolCheckData, differences, nearest_calls
from agenteval_tui.grading.results import Outcome, Span
from agenteval_tui.grading.sentences import argument_phrase, evidence_sentence
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model import ToolCall, Transcript

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


def test_of_several_wrong_calls_the_nearest_is_said_first() -> None:
    wanted = {"user": "u1", "from": "JFK", "to": "SEA"}
    transcript = calls(
        ("book", {"user": "u9", "from": "LAX", "to": "ORD"}),
        ("book", {"user": "u1", "from": "JFK", "to": "sea"}),
        ("book", {"user": "u1", "from": "LAX"}),
    )
    result = check(transcript, tools=[{"name": "book", "arguments": wanted}])
    said = 'the 2nd call of book differs only in to: expected "SEA", got "sea" (would match ignoring case)'
    assert headline(result) == f"it: {said} (and 2 more)"
    near = evidence(result, "tools[0].nearest")
    assert near.passed is None
    assert evidence_sentence(near) == f"nearest to the expected call: {said}"
    assert near.near == (Span("tool", 1),)


def test_each_expected_call_gets_its_own() -> None:
    """Taken one by one both entries would take the 1st call; together the differences are smallest this way."""
    transcript = calls(("get", {"id": "#W2", "full": True}), ("get", {"id": "#W1", "full": True}))
    tools = [
        {"name": "get", "arguments": {"id": "#W1", "full": True}},
        {"name": "get", "arguments": {"id": "#W2", "full": True}},
    ]
    result = check(transcript, tools=tools)
    assert evidence_sentence(evidence(result, "tools[0].nearest")) == "the expected call is the 2nd call of get"
    assert evidence_sentence(evidence(result, "tools[1].nearest")) == "the expected call is the 1st call of get"


TWO_ENTRIES = [{"name": "get", "arguments": {"id": 1}}, {"name": "get", "arguments": {"id": 2}}]


@pytest.mark.parametrize(
    ("ids", "score", "misses"),
    [
        ([1, 9], 0.775, ["tools[1].arguments[2]"]),
        ([9, 2], 0.775, ["tools[0].arguments[1]"]),
        ([8, 9], 0.7, ["tools[0].arguments[1]", "tools[1].arguments[2]"]),
        ([1, 2, 9], 0.8, ["tools[0].arguments[3]", "tools[1].arguments[3]"]),
        # No call is wrong by its own entry: that every entry checks every call is the fault.
        ([1, 2], 0.85, ["tools[0].arguments[2]", "tools[1].arguments[1]"]),
    ],
)
def test_a_call_is_a_miss_of_its_own_entry_only(ids: list[int], score: float, misses: list[str]) -> None:
    """The verdict and the score count every call against every entry, as before."""
    result = check(calls(*(("get", {"id": number}) for number in ids)), tools=TWO_ENTRIES)
    assert (result.outcome, result.score) == (Outcome.FAILED, pytest.approx(score))
    assert [one.condition for one in result.metrics[0].evidence if one.passed is False] == misses


def test_what_a_call_of_another_entry_is_compared_with_is_said_beside_the_verdict() -> None:
    result = check(calls(("get", {"id": 1}), ("get", {"id": 9})), tools=TWO_ENTRIES)
    assert headline(result) == "it: the 2nd call of get differs only in id: expected 2, got 9"
    other = evidence(result, "tools[1].arguments[1]")
    assert other.passed is None
    assert evidence_sentence(other) == (
        "the 1st call of get differs only in id: expected 2, got 1; it is the call of tools[0], and every entry of a "
        "tool checks all its calls"
    )


def test_min_calls_stand_for_as_many_expected_calls() -> None:
    transcript = calls(("get", {"id": 1}), ("get", {"id": "1"}), ("get", {"id": 5}))
    result = check(transcript, tools=[{"name": "get", "min_calls": 2, "arguments": {"id": 1}}])
    assert evidence_sentence(evidence(result, "tools[0].nearest[1]")) == "the 1st expected call is the 1st call of get"
    second = evidence_sentence(evidence(result, "tools[0].nearest[2]"))
    assert second == (
        "nearest to the 2nd expected call: the 2nd call of get differs only in id: "
        'expected 1, got "1" (a string instead of a number)'
    )


def test_a_call_that_is_right_elsewhere_is_no_near_miss() -> None:
    transcript = calls(("get_orders", {}))
    both = check(transcript, tools=[{"name": "get_order"}, {"name": "get_orders"}])
    assert (
        evidence_sentence(evidence(both, "tools[0].usage")) == "get_order was never called; the agent called get_orders"
    )
    alone = check(transcript, tools=[{"name": "get_order"}])
    assert (
        evidence_sentence(evidence(alone, "tools[0].usage"))
        == "get_order was never called; nearest get_orders (1 call)"
    )


def test_the_same_arguments_under_another_name() -> None:
    transcript = calls(("ping", {}), ("find_customer", {"email": "a@b.c", "limit": 10}))
    tools = [{"name": "lookup", "arguments": {"email": "a@b.c", "limit": 10}}]
    usage = evidence(check(transcript, tools=tools), "tools[0].usage")
    assert (
        evidence_sentence(usage)
        == "lookup was never called; nearest find_customer (1 call), with the expected arguments"
    )
    assert usage.near == (Span("tool", 1),)


def test_too_few_calls_name_what_may_be_the_missing_one() -> None:
    transcript = calls(("get_order", {"id": 1}), ("get_orders", {"id": 1}))
    usage = evidence(check(transcript, tools=[{"name": "get_order", "min_calls": 2}]), "tools[0].usage")
    assert evidence_sentence(usage) == (
        "get_order was called once, expected at least twice; perhaps call 2, get_orders was meant"
    )
    assert usage.near == (Span("tool", 1),)


@pytest.mark.parametrize(
    ("expected", "got", "path", "at", "said"),
    [
        ("Berlin", "berlin", "a", 0, "would match ignoring case"),
        ("it’s here", "it's here", "a", 2, "with straight quotes and plain dashes"),
        ("a  b", "a b", "a", 2, "with white space made equal"),
        ("5000", "5.000", "a", 1, "without the separators in numbers"),
        ("Straße 12, Berlin", "Straße 21, Berlin", "a", 7, 'differs at character 8: "2" instead of "1"'),
        ("SELECT name FROM users", "SELECT name FROM users WHERE 1", "a", 22, 'continues with " WHERE 1"'),
        ("SELECT name FROM users WHERE 1", "SELECT name FROM users", "a", 22, 'ends before " WHERE 1"'),
        ({"city": {"name": "Rome"}, "n": 1}, {"city": {"name": "Roma"}, "n": 1}, "a.city.name", 3, ""),
        ([1, {"x": 2}], [1, {"x": 3}], "a.1.x", None, "expected 2, got 3"),
        ({"b": 1}, {"b": 2, "c": 3}, "a", None, ""),
        (["x"], "x", "a", None, ""),
    ],
)
def test_one_argument(expected: Any, got: Any, path: str, at: int | None, said: str) -> None:
    tool = Tool(ToolCheckData.model_validate({"name": "f", "arguments": {"a": expected, "same": 1}}))
    (one,) = differences(tool, ToolCall("c", "f", {"a": got, "same": 1}))
    assert (one.kind, one.path, one.at) == ("differs", path, at)
    assert said in argument_phrase(one.fields())
    assert 0 < one.cost <= 1


def test_missing_and_extra() -> None:
    tool = Tool(ToolCheckData.model_validate({"name": "f", "arguments": {"order_id": 1, "x": 2}}))
    found = differences(tool, ToolCall("c", "f", {"orderId": 1, "y": 5}))
    assert [(one.kind, one.name, one.elsewhere) for one in found] == [
        ("missing", "order_id", "orderId"),
        ("missing", "x", ""),
        ("extra", "orderId", ""),
        ("extra", "y", ""),
    ]


def test_what_runs_wild_stays_bounded() -> None:
    tools = [{"name": f"tool_{n}", "min_calls": 1000, "arguments": {"n": n}} for n in range(20)]
    transcript = calls(*[(f"tool_{n % 30}", {"n": n}) for n in range(3000)])
    found = nearest_calls([Tool(ToolCheckData.model_validate(one)) for one in tools], transcript.tool_calls)
    assert len(found) == 40
    assert len({one.call for one in found}) == 40


def recorded() -> Iterator[Transcript]:
    path = SHARED / "data" / "tau_bench" / "gpt-4o-airline-tasks-00-24.json"
    for one in json.loads(path.read_text("utf-8")):
        yield from_openai_messages(one["traj"])


@pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here")
def test_on_recordings_a_changed_argument_is_found() -> None:
    """The expectation is made from the calls themselves, with one argument of one call changed: that call is near."""
    tried = 0
    for transcript in recorded():
        made = [call for call in transcript.tool_calls if isinstance(call.arguments, dict) and call.arguments]
        once = [call for call in made if sum(other.name == call.name for other in made) == 1]
        if not once:
            continue
        tried += 1
        target = once[-1]
        name = next(iter(target.arguments))
        tools = [
            {"name": call.name, "arguments": {**call.arguments, name: "changed"} if call is target else call.arguments}
            for call in once
        ]
        result = check(transcript, tools=tools)
        assert result.outcome is Outcome.FAILED
        assert f"the call of {target.name} differs only in {name}" in headline(result)
    assert tried > 10
