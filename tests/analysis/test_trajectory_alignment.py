"""Two transcripts, step by step: what matches what, whatever they hold."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agenteval_tui.analysis.trajectory_alignment import Alignment, align, steps_of
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript
from agenteval_tui.transcripts.state import ProbeState, Reading

Turn = tuple[str, list[tuple[str, Any, str | None]], str]


def transcript(*turns: Turn, error: str = "") -> Transcript:
    """Turns of (prompt, [(tool, arguments, result)], answer)."""
    messages: list[Message] = []
    calls: list[ToolCall] = []
    for prompt, made, answer in turns:
        messages.append(Message("user", prompt))
        for name, arguments, result in made:
            messages.append(Message("assistant", "", tool_calls=(len(calls),)))
            calls.append(ToolCall(f"id-{len(calls)}", name, arguments, result))
        if answer:
            messages.append(Message("assistant", answer))
    ended = RunError(error, "it broke") if error else None
    return Transcript(tuple(messages), tuple(calls), error=ended)


words = st.sampled_from(["yes", "no", "order", "refund", "Österreich", "a b", ""])
arguments = st.one_of(st.none(), words, st.dictionaries(words, st.one_of(words, st.integers(0, 2)), max_size=2))
call = st.tuples(st.sampled_from(["look", "find", "pay"]), arguments, st.one_of(st.none(), words))
turns = st.lists(st.tuples(words, st.lists(call, max_size=4), words), max_size=4)
transcripts = turns.map(lambda made: transcript(*made))


def said(alignment: Alignment) -> list[str]:
    return [f"{pair.state} {pair.step.kind} {pair.step.name}".strip() for pair in alignment.pairs]


@given(transcripts, transcripts)
def test_every_step_of_both_is_there_once_and_in_order(left: Transcript, right: Transcript) -> None:
    alignment = align(left, right)
    assert align(left, right) == alignment
    assert [pair.left for pair in alignment.pairs if pair.left is not None] == steps_of(left)
    assert [pair.right for pair in alignment.pairs if pair.right is not None] == steps_of(right)
    for pair in alignment.pairs:
        assert (pair.left is None) == (pair.state == "right")
        assert (pair.right is None) == (pair.state == "left")
        if pair.left is not None and pair.right is not None:
            assert (pair.left.kind, pair.left.name) == (pair.right.kind, pair.right.name)
            assert (pair.state == "same") == (pair.left.text == pair.right.text)


@given(transcripts)
def test_a_transcript_beside_itself_is_the_same_whatever_its_ids_and_times(one: Transcript) -> None:
    other = replace(one, tool_calls=tuple(replace(c, id="other " + c.id, duration_ms=9.0) for c in one.tool_calls))
    alignment = align(one, other)
    assert {pair.state for pair in alignment.pairs} <= {"same"}
    assert alignment.differences == []


def test_a_call_that_one_left_out_does_not_move_the_others() -> None:
    look, pay = ("look", {"id": 1}, "ok"), ("pay", {"id": 1}, "ok")
    found = align(transcript(("hi", [look, pay], "done")), transcript(("hi", [pay], "done")))
    assert said(found) == [
        "same user", "left call look", "left result look", "same call pay", "same result pay", "same assistant",
    ]  # fmt: skip
    assert found.differences == [1, 2]


def test_of_several_calls_of_a_tool_the_most_similar_is_the_changed_one() -> None:
    calls = [("look", {"id": "#W1", "all": True}, "a"), ("look", {"id": "#W2", "all": True}, "b")]
    other = [("look", {"id": "#W2", "all": False}, "b")]
    found = align(transcript(("hi", list(calls), "")), transcript(("hi", list(other), "")))
    states = said(found)
    assert states == ["same user", "left call look", "left result look", "changed call look", "same result look"]


def test_steps_are_matched_within_their_turn() -> None:
    look = ("look", {"id": 1}, "ok")
    left = transcript(("first", [look], "one"), ("second", [], "two"))
    right = transcript(("first", [], "one"), ("second", [look], "two"))
    assert said(align(left, right)) == [
        "same user", "left call look", "left result look", "same assistant",
        "same user", "right call look", "right result look", "same assistant",
    ]  # fmt: skip


def test_the_order_of_arguments_is_no_difference_and_a_failed_result_is_one() -> None:
    left = transcript(("hi", [("look", {"a": 1, "b": 2}, "gone")], ""))
    right = transcript(("hi", [("look", {"b": 2, "a": 1}, "gone")], ""))
    assert align(left, right).differences == []
    failed = replace(right, tool_calls=(replace(right.tool_calls[0], status="error"),))
    assert said(align(left, failed)) == ["same user", "same call look", "changed result look"]


def test_other_thoughts_are_seen_but_are_no_difference_in_what_was_done() -> None:
    left = Transcript((Message("user", "hi"), Message("assistant", "yes", "I think so")))
    right = Transcript((Message("user", "hi"), Message("assistant", "yes", "why not")))
    found = align(left, right)
    assert said(found) == ["same user", "changed reasoning", "same assistant"]
    assert found.differences == []
    assert found.thoughts == 1


def test_an_error_and_a_call_that_no_message_made_are_steps_too() -> None:
    left = transcript(("hi", [], ""), error="timeout")
    right = replace(left, error=None, tool_calls=(ToolCall("x", "lost", {"deep": [[["in"]]]}),))
    assert said(align(left, right)) == ["same user", "left error", "right call lost"]


def test_thousands_of_steps_that_all_differ_are_matched_by_kind() -> None:
    left = transcript(*((f"ask {n}", [("look", {"n": n}, f"r{n}")], f"answer {n}") for n in range(700)))
    right = transcript(*((f"say {n}", [("look", {"n": -n}, f"s{n}")], f"reply {n}") for n in range(700)))
    found = align(left, right)
    assert len(found.pairs) == 2_800
    # n = 0 is the same call.
    assert sum(pair.state == "changed" for pair in found.pairs) == 2_799


def test_what_the_runs_left_behind_comes_last() -> None:
    def left(**values: Any) -> Transcript:
        probes = tuple(ProbeState(name, Reading(None), Reading(value)) for name, value in values.items())
        return replace(transcript(("hello", [], "done")), state=probes)

    made = align(left(orders=[1], mails={}), left(mails={}, orders=[2], log="x"))
    assert said(made)[-3:] == ["changed state orders", "same state mails", "right state log"]
    assert [pair.step.place for pair in made.pairs[-3:]] == [("state", 0), ("state", 1), ("state", 2)]
    assert len(made.differences) == 2


def test_a_state_that_could_not_be_read_differs_from_one_that_was() -> None:
    base = transcript(("hello", [], "done"))
    read, unread = (
        replace(base, state=(ProbeState("a", None, one),))
        for one in (Reading("x"), Reading(problem="no_file", fields={"file": "a"}))
    )
    assert said(align(read, unread))[-1] == "changed state a"
    assert align(unread, unread).differences == []
