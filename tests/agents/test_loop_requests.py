"""What the kinds that ask a model themselves keep of each request: exactly what was sent, with the answer it led to."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from dialects import Call, Dialect, Text
from scripted import Answer, ScriptedServer, stream_of

from agenteval_tui.agents.base import ModelAsked
from agenteval_tui.agents.models.requests import read_body
from agenteval_tui.transcripts.model import Message, Transcript

TOOL = {"name": "f", "description": "finds", "sample_response": "F", "parameters": {"type": "object"}}
GEMINI_CALL = {"functionCall": {"name": "f", "args": {"q": 1}}}


def gemini(*parts: dict[str, Any]) -> Answer:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}
    return stream_of({"candidates": [candidate]}, done=False)


def replies(name: str) -> list[Answer]:
    """A call with a word before it, then an answer."""
    if name == "gemini":
        return [gemini({"text": "One moment."}, GEMINI_CALL), gemini({"text": "done"})]
    dialect = Dialect(name)
    call = Call("c1", "f", ['{"q"', ": 1}"])
    return [dialect.stream(Text(["One ", "moment."]), call), dialect.stream(Text(["do", "ne"]))]


async def ask(run_agent: Any, name: str, answers: list[Answer], **options: Any) -> tuple[Transcript, list[Any]]:
    left = list(answers)
    async with ScriptedServer(lambda _: left.pop(0)) as server:
        if name == "gemini":
            config = {"kind": "gemini", "base_url": server.url, "model": "m", **options}
        else:
            config = Dialect(name).config(server.url, **options)
        ran = await run_agent({"tools": [TOOL], "system": "Be brief.", "temperature": 0.5, **config})
    return ran.stored, server.requests


KINDS = ("chat", "responses", "anthropic", "gemini")


@pytest.mark.parametrize("name", KINDS)
async def test_each_answer_has_the_request_that_was_sent(run_agent: Any, name: str) -> None:
    transcript, sent = await ask(run_agent, name, replies(name))
    assert transcript.requests is not None
    first, second = transcript.requests.all
    for request, own in zip((first, second), sent, strict=True):
        read = read_body(own.path.partition("?")[0], own.json)
        assert read is not None
        assert (request.messages, request.system, request.model) == (read.messages, "Be brief.", "m")
        assert (request.tools, request.parameters) == (read.tools, read.parameters)
        assert request.line == 1
    assert [tool.name for tool in first.tools] == ["f"]
    assert [message["role"] for message in second.messages] == ["user", "assistant", "tool"]
    assert transcript.requests.unrecorded == ()
    assert first.input_tokens == second.input_tokens == (3 if name in ("responses", "anthropic") else None)
    answers = [place for place, message in enumerate(transcript.messages) if message.role == "assistant"]
    assert [first.answer, second.answer] == answers


@pytest.mark.parametrize("name", KINDS)
async def test_a_message_that_is_sent_again_is_told_as_the_same_object(run_agent: Any, name: str) -> None:
    """A recorder looks at each message once: the requests of a long run have all earlier messages in them."""
    left = replies(name)
    async with ScriptedServer(lambda _: left.pop(0)) as server:
        config = {"kind": "gemini", "base_url": server.url, "model": "m"} if name == "gemini" else None
        ran = await run_agent({"tools": [TOOL], **(config or Dialect(name).config(server.url))})
    first, second = [event.messages or () for event in ran.events if isinstance(event, ModelAsked)]
    assert second[0] is first[0]
    assert len(second) == 3


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize(
    "refusal",
    [
        lambda _: Answer(status=400, body=json.dumps({"error": {"message": "too long", "type": "invalid"}})),
        lambda dialect: Answer(
            body=b"".join([*dialect.chunks(Text(["Hal"]), end=False), dialect.error_event("invalid", "too long")]),
            content_type="text/event-stream",
        ),
    ],
)
async def test_a_request_that_failed_says_why(run_agent: Any, name: str, refusal: Callable[[Dialect], Answer]) -> None:
    transcript, _ = await ask(run_agent, name, [replies(name)[0], refusal(Dialect(name))], max_attempts=1)
    assert transcript.error is not None
    assert transcript.requests is not None
    first, second = transcript.requests.all
    assert first.error == ""
    assert "too long" in second.error
    assert [message["role"] for message in second.messages] == ["user", "assistant", "tool"]


async def test_a_run_without_an_answer_keeps_the_messages_as_they_were_given(run_agent: Any) -> None:
    asked = Message("user", "Where is it?", simulated=True)
    async with ScriptedServer(lambda _: Answer(status=400, body='{"error": {"message": "no"}}')) as server:
        ran = await run_agent({**Dialect("chat").config(server.url), "max_attempts": 1}, messages=(asked,))
    assert ran.stored.messages == (asked,)
    assert ran.stored.requests is not None


async def test_thinking_between_tags_is_not_part_of_the_answer(run_agent: Any) -> None:
    transcript, _ = await ask(run_agent, "chat", [Dialect("chat").stream(Text(["<think>hm</th", "ink>done"]))])
    assert transcript.final_output == "done"
    assert transcript.requests is not None
    (request,) = transcript.requests.all
    assert request.answer == len(transcript.messages) - 1


async def test_tools_of_the_server_stand_in_the_next_request(run_agent: Any) -> None:
    hosted = [
        {"type": "text", "text": "I search."},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "text", "text": "found"}]},
        {"type": "text", "text": "Now I ask."},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
    ]
    first = Answer(body=json.dumps({"type": "message", "content": hosted, "stop_reason": "tool_use"}))
    transcript, _ = await ask(run_agent, "anthropic", [first, Dialect("anthropic").whole("done")], stream=False)
    assert transcript.error is None
    assert transcript.requests is not None
    requests = transcript.requests.all
    assert [transcript.messages[request.answer or 0].content for request in requests] == ["Now I ask.", "done"]
