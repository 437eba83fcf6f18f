"""Conversations of several turns: one run, one transcript, whatever kind of agent answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentRequest,
    Done,
    Failed,
    PromptSent,
    Recorded,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.runs.events import AttemptFailed, ToolStarted, TurnStarted
from agenteval_tui.transcripts.model import Message, RunError, Transcript, Usage

Execute = Callable[..., Any]

TALK = """
name: Talks
agent: bot
agents:
  bot: {kind: scripted}
tests:
  - id: talk
    turns: [hello, look, bye]
    criteria:
      - name: Says bye
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "answer to bye"}]}'
"""


async def answers(request: AgentRequest) -> AsyncIterator[AgentEvent]:
    """Calls a tool in each turn, with the same key and the same id every time; has a system prompt."""
    said = request.messages[-1].content
    if not any(message.role == "system" for message in request.messages):
        yield PromptSent((Message("system", "be nice"), *request.messages))
    yield ToolCallStarted(0, "call_1", "look_up")
    yield ToolArgumentsDelta(0, json.dumps({"what": said}))
    yield TurnEnded()
    yield ToolCallFinished(0, f"found {said}")
    yield TextDelta(f"answer to {said}")
    yield UsageReported(Usage(10 * request.turn, 1))
    yield Done(f"stop {request.turn}", "m")


async def test_all_turns_make_one_transcript(execution: Execute, scripts: Any) -> None:
    scripts.script = answers
    one = execution(TALK)
    await one.run()
    run = one.engine.plan.runs[0].ref.run
    assert one.statuses() == {"talk#1": "passed"}
    transcript = one.store.transcript(run)
    assert [message.role for message in transcript.messages] == [
        "system", *("user", "assistant", "tool", "assistant") * 3]  # fmt: skip
    assert [message.content for message in transcript.messages if message.role == "user"] == ["hello", "look", "bye"]
    assert [call.arguments["what"] for call in transcript.tool_calls] == ["hello", "look", "bye"]
    for index, call in enumerate(transcript.tool_calls):
        assert call.message is not None
        assert transcript.messages[call.message].tool_calls == (index,)
        assert transcript.messages[call.message + 1].tool_call == index
    assert (transcript.final_output, transcript.finish_reason) == ("answer to bye", "stop 3")
    assert (transcript.usage.input_tokens, transcript.usage.output_tokens) == (60, 3)
    assert [(event.turn, event.text) for event in one.of(TurnStarted)] == [(2, "look"), (3, "bye")]
    assert [event.key for event in one.of(ToolStarted)] == [0, 1, 2]
    parts = one.view.runs[run].parts
    assert [part.kind for part in parts] == ["tool", "text", "user", "tool", "text", "user", "tool", "text"]
    assert [part.result for part in parts if part.kind == "tool"] == ["found hello", "found look", "found bye"]


async def test_each_request_holds_the_whole_conversation(execution: Execute, scripts: Any) -> None:
    scripts.script = answers
    one = execution(TALK)
    await one.run()
    first, second, third = scripts.requests
    assert [request.turn for request in scripts.requests] == [1, 2, 3]
    assert len({request.run for request in scripts.requests}) == 1
    assert first.messages == (Message("user", "hello"),)
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert (len(second.tool_calls), len(third.tool_calls)) == (1, 2)
    assert third.messages[6].tool_calls == (1,)


async def test_calls_that_were_given_keep_their_place(execution: Execute, scripts: Any) -> None:
    scripts.script = answers
    given = """
    messages:
      - {role: user, content: earlier}
      - {role: assistant, content: "", tool_calls: [{id: old, type: function, function: {name: get, arguments: "{}"}}]}
      - {role: tool, tool_call_id: old, content: was there}
      - {role: assistant, content: it was there}
    turns: [hello, bye]
"""
    one = execution(TALK.replace("\n    turns: [hello, look, bye]\n", given))
    await one.run()
    transcript = one.store.transcript(one.engine.plan.runs[0].ref.run)
    assert [call.name for call in transcript.tool_calls] == ["get", "look_up", "look_up"]
    assert all(
        transcript.messages[call.message or 0].tool_calls == (index,)
        for index, call in enumerate(transcript.tool_calls)
    )
    assert len(scripts.requests[0].tool_calls) == 1
    assert transcript.messages[0] == Message("system", "be nice")


@pytest.mark.parametrize("retry", [False, True])
async def test_a_turn_that_fails_ends_the_run_or_begins_it_anew(execution: Execute, scripts: Any, retry: bool) -> None:
    failed = False

    async def second_fails(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal failed
        if request.turn == 2 and not failed:
            failed = True
            yield UsageReported(Usage(7, cost=0.5))
            yield TextDelta("well")
            yield Failed(RunError("server", "503", "try again"), retry=retry)
            return
        async for event in answers(request):
            yield event

    scripts.script = second_fails
    one = execution(TALK)
    await one.run()
    run = one.engine.plan.runs[0].ref.run
    transcript = one.store.transcript(run)
    assert [request.turn for request in scripts.requests] == ([1, 2, 1, 2, 3] if retry else [1, 2])
    if retry:
        assert (one.statuses(), transcript.final_output) == ({"talk#1": "passed"}, "answer to bye")
        kept = one.store.failed_attempts(run)  # of its tokens, 10 have no price
        assert [(a.number, a.kind, a.message, a.input_tokens, a.cost) for a in kept] == [(1, "server", "503", 17, None)]
        told = one.of(AttemptFailed)[0]
        assert (told.kind, told.fix) == ("server", "try again")
    else:
        assert one.statuses() == {"talk#1": "error"}
        assert (transcript.final_output, transcript.tool_calls[0].result) == ("well", "found hello")
        assert one.view.runs[run].fix == "try again"


async def test_a_recording_is_taken_whole(execution: Execute, scripts: Any) -> None:
    recorded = Transcript(
        (Message("user", "hello"), Message("assistant", "answer to bye")), final_output="answer to bye"
    )

    async def replay(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield Recorded(recorded)
        yield Done()

    scripts.script = replay
    one = execution(TALK)
    await one.run()
    assert len(scripts.requests) == 1
    assert one.statuses() == {"talk#1": "passed"}
    assert one.of(TurnStarted) == []


async def test_the_bundled_agent_remembers_what_it_did(execution: Execute) -> None:
    text = TALK.replace("{kind: scripted}", "{kind: demo, pace: 0, version: v1}").replace(
        "[hello, look, bye]", '["Please cancel my order #W1050", "Where is my order #W1050?"]'
    )
    one = execution(text)
    await one.run()
    transcript = one.store.transcript(one.engine.plan.runs[0].ref.run)
    calls = [(call.name, call.status) for call in transcript.tool_calls]
    assert len({call.id for call in transcript.tool_calls}) == len(calls)
    assert ("cancel_order", "ok") in calls
    assert "cancelled" in (transcript.tool_calls[-1].result or "")
