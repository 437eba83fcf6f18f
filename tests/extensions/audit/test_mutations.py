"""Mutations: each changes one thing, stays a well formed transcript, and what looks at that thing notices."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agenteval_tui.extensions.audit.mutations import KINDS, REFUSAL, Forbidden, mutations
from agenteval_tui.transcripts.codec import from_json, to_json
from agenteval_tui.transcripts.model import Message, Timing, ToolCall, Transcript, Usage

VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab1 ", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
CALL = st.tuples(st.sampled_from("fgh"), st.dictionaries(st.sampled_from("xyz"), VALUE, max_size=3))


def made(text: str, calls: list[tuple[str, Any]]) -> Transcript:
    messages = [Message("user", "hello")]
    for number in range(len(calls)):
        messages.append(Message("assistant", "", tool_calls=(number,)))
        messages.append(Message("tool", "ok", tool_call=number, tool_call_id=f"c{number}"))
    messages.append(Message("assistant", text))
    tools = tuple(ToolCall(f"c{n}", name, given, "ok", message=2 * n + 1) for n, (name, given) in enumerate(calls))
    return Transcript(tuple(messages), tools, final_output=text)


@given(st.text("Ab1 \n", max_size=30), st.lists(CALL, max_size=6))
def test_each_is_another_well_formed_transcript(text: str, calls: list[tuple[str, Any]]) -> None:
    transcript = made(text, calls)
    found = list(mutations(transcript))
    assert found == list(mutations(transcript))
    for one in found:
        assert one.kind in KINDS
        changed = one.transcript
        assert (changed.final_output, changed.tool_calls) != (transcript.final_output, transcript.tool_calls)
        assert from_json(to_json(changed)) == changed
        for number, message in enumerate(changed.messages):
            assert all(changed.tool_calls[index].message == number for index in message.tool_calls)
            assert message.tool_call is None or message.tool_call < len(changed.tool_calls)
        pointed = sorted(index for message in changed.messages for index in message.tool_calls)
        assert pointed == list(range(len(changed.tool_calls)))


def test_all_kinds_there_are() -> None:
    transcript = made("Order 12 is on its way.", [("f", {"a": 1, "b": "x"}), ("g", {"a": "Berlin"})])
    found = list(mutations(transcript, Forbidden(["drop_table"], ["sorry"])))
    assert next(one.transcript.tool_calls[-1].name for one in found if one.kind == "extra-call") == "drop_table"
    leaks = [("secret", "hunter2"), ("personal-data", "jane@example.org"), ("canary", "PWNED")]
    system = replace(transcript, messages=(Message("system", "You are a kind helper"), *transcript.messages))
    leaking = list(mutations(system, Forbidden(leaks=leaks, overlap=4)))
    spent = replace(transcript, usage=Usage(input_tokens=3, output_tokens=4), timing=Timing(total_ms=5.0))
    bounded = list(mutations(spent, Forbidden(words=500, characters=9_000, calls=7)))
    assert {one.kind for one in (*found, *leaking, *bounded)} == set(KINDS)
    made_of = {one.kind: one.transcript for one in bounded}
    assert len(made_of["long"].final_output.split()) > 500
    assert len(made_of["long"].final_output) > 9_000
    assert len(made_of["loop"].tool_calls) > 7
    assert made_of["wasteful"].usage.cost is None, "what was not measured stays unknown"
    assert made_of["wasteful"].usage.input_tokens == made_of["wasteful"].timing.total_ms == 1_000_000_000
    assert "system-prompt" not in {one.kind for one in mutations(system, Forbidden(overlap=6))}
    in_answer, in_call = (one.transcript for one in leaking if one.kind == "canary")
    assert in_answer.final_output == "Order 12 is on its way. PWNED"
    assert in_call.tool_calls[-1].arguments == {"a": "Berlin", "note": "PWNED"}
    texts = {one.kind: one.transcript.final_output for one in found}
    assert texts["refuse"] == REFUSAL
    assert texts["empty"] == ""
    assert texts["truncate"] == "Order 12 is"
    assert texts["case"] == "ORDER 12 IS ON ITS WAY."
    assert texts["numbers"] != transcript.final_output
    dropped = next(one for one in found if one.kind == "drop-call")
    assert [call.name for call in dropped.transcript.tool_calls] == ["g"]
    roles = [message.role for message in dropped.transcript.messages]
    assert roles == ["user", "assistant", "assistant", "tool", "assistant"]
    changed = [one.transcript.tool_calls[1].arguments for one in found if one.kind == "change-argument"]
    assert {"a": "nilreB x"} in changed


def test_nothing_to_change() -> None:
    assert [one.kind for one in mutations(Transcript())] == ["refuse", "unrelated", "short", "long", "extra-call"]


def test_hundreds_of_calls_get_a_few() -> None:
    assert len(list(mutations(made("x", [("f", {"n": n}) for n in range(500)])))) < 30
