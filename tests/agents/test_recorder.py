"""The recorder: events in, transcripts out."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentNamed,
    Done,
    Failed,
    PromptSent,
    ReasoningDelta,
    Recorded,
    Restarted,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.transcripts.codec import from_json, to_json
from agenteval_tui.transcripts.model import Message, Note, RunError, Transcript, Usage


class Clock:
    """A clock that moves by 10 ms whenever it is read."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 0.010
        return self.seconds


def record(*events: AgentEvent, messages: tuple[Message, ...] = (Message("user", "hello"),)) -> Transcript:
    recorder = Recorder(messages, Clock())
    for event in events:
        recorder.apply(event)
    return recorder.transcript()


def test_text_alone_is_one_message() -> None:
    transcript = record(TextDelta("Good "), TextDelta("day."), Done("stop", "m-1"))
    assert transcript.messages == (Message("user", "hello"), Message("assistant", "Good day."))
    assert (transcript.final_output, transcript.finish_reason, transcript.model) == ("Good day.", "stop", "m-1")
    assert transcript.timing.first_token_ms == 10.0
    assert transcript.timing.total_ms == 30.0


def test_calls_of_a_turn_are_answered_in_their_order_whichever_ends_first() -> None:
    transcript = record(
        TextDelta("Let me look."),
        ToolCallStarted(1, "call_a", "get_order"),
        ToolArgumentsDelta(1, '{"order_'),
        ToolCallStarted(2, "call_b", "get_policy"),
        ToolArgumentsDelta(1, 'id": "#W1"}'),
        TurnEnded(),
        ToolCallFinished(2, "no such tool", error=True),
        ToolCallFinished(1, "shipped", duration_ms=5.0),
        TextDelta("It is on its way."),
        TurnEnded(),
        Done(),
    )
    assert [message.role for message in transcript.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert transcript.messages[1].tool_calls == (0, 1)
    assert [message.tool_call for message in transcript.messages[2:4]] == [0, 1]
    first, second = transcript.tool_calls
    assert (first.name, first.arguments, first.result, first.status) == (
        "get_order",
        {"order_id": "#W1"},
        "shipped",
        "ok",
    )
    assert (second.arguments, second.status, second.message) == ({}, "error", 1)
    assert first.duration_ms == 5.0
    assert transcript.final_output == "It is on its way."
    assert [step.name for step in transcript.timing.steps] == ["turn 1", "get_order", "get_policy", "turn 2"]


def test_without_turn_ended_a_result_ends_the_turn() -> None:
    transcript = record(ToolCallStarted(1, "a", "x"), ToolCallFinished(1, "1"), TextDelta("done"), Done())
    assert [message.role for message in transcript.messages] == ["user", "assistant", "tool", "assistant"]


def test_arguments_that_are_not_json_stay_text() -> None:
    transcript = record(ToolCallStarted(1, "a", "x"), ToolArgumentsDelta(1, '{"city": "Os'), TurnEnded(), Done())
    assert (transcript.tool_calls[0].arguments, transcript.tool_calls[0].malformed) == ('{"city": "Os', True)
    assert transcript.tool_calls[0].status == "pending"


def test_the_same_id_twice_makes_two_calls() -> None:
    transcript = record(
        ToolCallStarted(1, "same", "x"),
        ToolCallStarted(2, "same", "x"),
        TurnEnded(),
        ToolCallFinished(2, "second"),
        ToolCallFinished(1, "first"),
        Done(),
    )
    assert [call.result for call in transcript.tool_calls] == ["first", "second"]


def test_a_broken_run_keeps_what_it_had() -> None:
    error = RunError("connection", "the server hung up")
    transcript = record(ReasoningDelta("hm"), TextDelta("I thi"), Failed(error))
    assert transcript.messages[-1] == Message("assistant", "I thi", reasoning="hm")
    assert transcript.error == error
    assert transcript.final_output == "I thi"


def test_an_answer_in_the_request_is_not_the_answer_of_the_run() -> None:
    given_messages = (Message("user", "a"), Message("assistant", "old answer"), Message("user", "b"))
    transcript = record(Failed(RunError("timeout", "no answer")), messages=given_messages)
    assert transcript.final_output == ""


def test_usage_of_several_requests_adds_up_and_what_is_unmeasured_stays_so() -> None:
    measured = (
        UsageReported(Usage(10, 2, cost=0.25)),
        UsageReported(Usage(20, 3, cached_tokens=5, cost=0.5, cache_write_tokens=7)),
    )
    assert record(*measured).usage == Usage(30, 5, 5, None, 0.75, 7)
    unknown = record(*measured, UsageReported(Usage()))  # a request that nobody counted
    assert (unknown.usage.input_tokens, unknown.usage.output_tokens, unknown.usage.cost) == (None, None, None)
    assert unknown.notes == (Note("partly_counted", "30 in, 5 out"),)
    half = record(*measured, UsageReported(Usage(4)))
    assert (half.usage.input_tokens, half.usage.output_tokens) == (34, None)
    assert half.notes == (Note("partly_counted", "5 out"),)
    assert record(UsageReported(Usage(4)), UsageReported(Usage(None, 2))).usage == Usage(4, 2), "one side each"


def test_the_system_prompt_is_in_the_transcript() -> None:
    messages = (Message("system", "be brief"), Message("user", "hello"))
    assert record(PromptSent(messages), TextDelta("hi"), Done()).messages[:2] == messages


def test_a_recorded_transcript_is_given_back_whole() -> None:
    whole = Transcript(messages=(Message("user", "x"), Message("assistant", "y")), final_output="y", model="old")
    assert record(TextDelta("shown on the way"), Recorded(whole), Done("stop", "other")) == whole


EVENTS: st.SearchStrategy[Any] = st.one_of(
    st.builds(TextDelta, st.text(max_size=5)),
    st.builds(ReasoningDelta, st.text(max_size=5)),
    st.builds(ToolCallStarted, st.integers(0, 3), st.sampled_from(["", "a", "b"]), st.sampled_from(["x", "y"])),
    st.builds(ToolArgumentsDelta, st.integers(0, 4), st.sampled_from(["{", '"a": 1', "}", "null", "[]"])),
    st.builds(ToolCallFinished, st.integers(0, 4), st.text(max_size=5), st.booleans()),
    st.just(TurnEnded()),
    st.builds(UsageReported, st.builds(Usage, st.none() | st.integers(0, 9))),
    st.just(Done()),
    st.builds(Failed, st.just(RunError("server", "x"))),
)


@given(st.lists(EVENTS, max_size=25))
def test_any_events_at_any_time_give_a_transcript_that_can_be_stored(events: list[AgentEvent]) -> None:
    recorder = Recorder((Message("user", "hello"),), Clock())
    for event in events:
        recorder.apply(event)
        transcript = recorder.transcript()
        assert from_json(to_json(transcript)) == transcript
        for index, message in enumerate(transcript.messages):
            for call in message.tool_calls:
                assert transcript.tool_calls[call].message == index


def test_each_message_has_the_agent_that_wrote_it() -> None:
    transcript = record(
        *(TextDelta("I'll "), AgentNamed("desk"), TextDelta("hand over"), ToolCallStarted(0, "a", "transfer")),
        *(ToolCallFinished(0, "done"), AgentNamed("shop"), TextDelta("3 pairs"), TurnEnded()),
        *(AgentNamed(""), TextDelta("Bye"), Done()),
    )
    assert [message.name for message in transcript.messages] == [None, "desk", "transfer", "shop", None]


def test_what_is_told_again_counts_once() -> None:
    recorder = Recorder((Message("user", "one"),))
    recorder.apply(TextDelta("so"))
    recorder.next_turn(Message("user", "two"))
    for _ in range(2):
        recorder.apply(TextDelta("the answer"))
        recorder.apply(ToolCallStarted(0, "c", "f"))
        recorder.apply(ToolCallFinished(0, "r"))
        recorder.apply(Restarted())
    recorder.apply(ToolCallStarted(1, "c", "f"))
    recorder.apply(ToolCallFinished(1, "r"))
    recorder.apply(TextDelta("the answer"))
    recorder.apply(Done())
    transcript = recorder.transcript()
    assert [(m.role, m.content) for m in transcript.messages] == [
        ("user", "one"),
        ("assistant", "so"),
        ("user", "two"),
        ("assistant", ""),
        ("tool", "r"),
        ("assistant", "the answer"),
    ]
    assert len(transcript.tool_calls) == 1
