"""Transcripts to JSON and back; OpenAI messages of all shapes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.codec import from_json, from_openai_messages, to_json, to_openai_messages
from agenteval_tui.transcripts.model import Message, RunError, Step, Timing, ToolCall, Transcript, Usage
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, OfferedTool, RequestLine

CALL = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "#W1"}'}}


def test_a_full_transcript_survives_a_round_trip() -> None:
    transcript = Transcript(
        messages=(
            Message("user", "hi"),
            Message("assistant", "", "thinking", (0,)),
            Message("tool", "42", tool_call=0, tool_call_id="c1", name="get_order"),
            Message("assistant", "It is 42."),
        ),
        tool_calls=(ToolCall("c1", "get_order", "{broken", "42", "error", 1.0, 2.5, 1, malformed=True),),
        timing=Timing(3.0, 10.0, (Step("model", 0.0, 5.0),)),
        usage=Usage(10, 5, 2, 1, 0.001),
        model="demo-rules",
        finish_reason="stop",
        final_output="It is 42.",
        error=RunError("timeout", "no answer", "wait longer"),
    )
    assert from_json(json.loads(json.dumps(to_json(transcript)))) == transcript


TEXT = st.text(max_size=30)
ARGUMENTS = st.dictionaries(TEXT, TEXT | st.integers() | st.none() | st.lists(st.integers(), max_size=3), max_size=3)
ITEMS = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "assistant"]), "content": TEXT | st.none()}),
    st.fixed_dictionaries(
        {
            "role": st.just("assistant"),
            "content": TEXT | st.none() | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT})),
            "tool_calls": st.lists(
                st.fixed_dictionaries(
                    {
                        "id": st.sampled_from(["a", "b", ""]) | TEXT,
                        "function": st.fixed_dictionaries(
                            {"name": TEXT, "arguments": ARGUMENTS.map(json.dumps) | ARGUMENTS | TEXT | st.none()}
                        ),
                    }
                ),
                max_size=3,
            ),
        }
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "content": TEXT, "tool_call_id": st.sampled_from(["a", "b", "x"])}),
)


@given(st.lists(ITEMS, max_size=8))
def test_any_messages_make_a_transcript_that_survives(items: list[dict[str, object]]) -> None:
    transcript = from_openai_messages(items)
    assert len(transcript.messages) == len(items)
    assert from_json(json.loads(json.dumps(to_json(transcript)))) == transcript
    for index, message in enumerate(transcript.messages):
        assert all(transcript.tool_calls[call].message == index for call in message.tool_calls)


def test_results_find_their_calls_by_id_and_an_id_may_come_twice() -> None:
    twice = [
        {"role": "assistant", "tool_calls": [CALL, {**CALL}]},
        {"role": "tool", "tool_call_id": "c1", "content": "first"},
        {"role": "tool", "tool_call_id": "c1", "content": "second"},
    ]
    calls = from_openai_messages(twice).tool_calls
    assert [(call.result, call.status) for call in calls] == [("first", "ok"), ("second", "ok")]


def test_a_result_goes_to_its_id_else_to_the_first_open_call_of_its_name_else_to_the_first() -> None:
    calls = [{"id": f"c{number}", "function": {"name": name, "arguments": "{}"}} for number, name in enumerate("aabbc")]
    results = [
        {"role": "tool", "tool_call_id": "c2", "content": "by id"},
        {"role": "tool", "name": "b", "content": "by name"},
        {"role": "tool", "content": "first"},
        {"role": "tool", "name": "a", "content": "second of its name"},
        {"role": "tool", "tool_call_id": "c2", "content": "again"},
        {"role": "tool", "tool_call_id": "nobody's", "content": "of none"},
        {"role": "tool", "name": "nobody", "content": "of no name"},
        {"role": "tool", "tool_call_id": ["c4"], "content": "of no text"},
        {"role": "tool", "tool_call_id": "", "content": "without an id"},
    ]
    transcript = from_openai_messages([{"role": "assistant", "tool_calls": calls}, *results])
    assert [call.result for call in transcript.tool_calls] == [
        "first", "second of its name", "by id", "by name", "without an id"
    ]  # fmt: skip
    assert [message.tool_call for message in transcript.messages[1:]] == [2, 3, 0, 1, None, None, None, None, 4]
    assert [note.place for note in transcript.notes] == ["messages[6]", "messages[8]"]


def test_thousands_of_results_are_looked_up_and_not_searched() -> None:
    """Searching takes many minutes for as many."""
    calls = [{"id": f"c{number}", "function": {"name": "f", "arguments": "{}"}} for number in range(50_000)]
    results = [{"role": "tool", "tool_call_id": f"other{number}", "content": ""} for number in range(len(calls))]
    transcript = from_openai_messages([{"role": "assistant", "tool_calls": calls}, *results])
    assert len(transcript.notes) == len(calls)


def test_arguments_that_are_no_json_are_kept_and_marked() -> None:
    broken = {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": "{oops"}}]}
    transcript = from_openai_messages([broken])
    assert transcript.tool_calls[0].arguments == "{oops"
    assert transcript.tool_calls[0].malformed
    sent = to_openai_messages(transcript)
    assert sent[0]["tool_calls"][0]["function"]["arguments"] == "{oops"


def test_a_call_without_an_answer_is_pending() -> None:
    assert from_openai_messages([{"role": "assistant", "tool_calls": [CALL]}]).tool_calls[0].status == "pending"


def test_the_final_answer_is_the_last_text_of_the_assistant() -> None:
    transcript = from_openai_messages(
        [
            {"role": "assistant", "content": "first"},
            {"role": "user", "content": "more"},
            {"role": "assistant", "content": "last"},
            {"role": "assistant", "content": None},
        ]
    )
    assert transcript.final_output == "last"
    assert transcript.final_message == 2


@pytest.mark.parametrize("wrong", [7, "text", {"messages": 3}, [{"no": "role"}], [3], {"version": 1, "messages": [{}]}])
def test_what_is_no_transcript_is_one_clear_error(wrong: object) -> None:
    with pytest.raises(AgentevalError):
        from_json(wrong)


def test_real_recordings_survive(shared: Path) -> None:
    recorded = json.loads((shared / "data/tau_bench/gpt-4o-airline-tasks-00-24.json").read_text())
    for one in recorded:
        transcript = from_openai_messages(one["traj"])
        assert from_json(json.loads(json.dumps(to_json(transcript)))) == transcript
        assert all(call.status != "pending" or call.result is None for call in transcript.tool_calls)


REQUESTS = ModelRequests.of(
    [ModelRequest(1, 1, system="Be kind.", tools=(OfferedTool("look_up"),), cached_tokens=3, answer=1)],
    [RequestLine("agent", called_by=0, used_in=1)],
)


@pytest.mark.parametrize("place", ["system", "tools", "parameters", "answer", "cached_tokens", "called_by", "used_in"])
def test_a_request_does_not_count_from_the_end_of_a_table(place: str) -> None:
    stored = to_json(Transcript((Message("user", "hi"), Message("assistant", "hello")), requests=REQUESTS))
    part = stored["requests"]["lines" if place in ("called_by", "used_in") else "requests"][0]
    assert part[place] >= 0
    assert from_json(stored).requests == REQUESTS
    part[place] = -1
    with pytest.raises(AgentevalError):
        from_json(stored)
