"""What frameworks' own hooks tell of requests to models, without a proxy: what the proxy sees."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from contextlib import nullcontext
from typing import Any

import pytest
from framework_runs import play_all
from scripted import Answer, Request, ScriptedServer, stream_of

from agenteval_tui.agents.base import TextDelta, TurnEnded
from agenteval_tui.agents.process import python_model_requests
from agenteval_tui.agents.process.protocol import EventError, EventReader
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.recording.proxy import Proxy
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.transcripts.model_request import ModelRequests
from agenteval_tui.transcripts.observed import observes
from benchmarks.accuracy.context_frameworks import FRAMEWORKS, is_named, model, recorded

# As in test_frameworks.py: one worker imports a framework.
LANGGRAPH, OPENAI_AGENTS, PYDANTIC_AI = map(pytest.mark.xdist_group, ("langgraph", "openai_agents", "pydantic_ai"))
GROUPS = {"LangGraph": LANGGRAPH, "openai-agents": OPENAI_AGENTS, "pydantic-ai": PYDANTIC_AI}
PACKAGES = {"LangGraph": "langchain_openai", "openai-agents": "agents", "pydantic-ai": "pydantic_ai"}


def texts(requests: ModelRequests) -> list[Any]:
    return [
        (
            one.system,
            [(message["role"], message.get("content") or "", _calls(message)) for message in one.messages],
            [tool.name for tool in one.tools],
        )
        for one in requests.all
    ]


def _calls(message: Any) -> list[Any]:
    return [(one["id"], one["function"]["name"]) for one in message.get("tool_calls") or ()]


@pytest.mark.sweep
@pytest.mark.parametrize("framework", [pytest.param(name, marks=GROUPS[name]) for name in FRAMEWORKS])
@pytest.mark.parametrize("plant", ["truncation", "masking", "changed tools", "changed system prompt"])
async def test_hooks_tell_what_the_proxy_sees(framework: str, plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(PACKAGES[framework])
    pytest.importorskip("openai")
    importlib.import_module(PACKAGES[framework])
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1")
    async with ScriptedServer(model) as server:
        proxy = Proxy({"openai": server.url})
        await proxy.start()
        before = dict(os.environ)
        captured, told = await recorded(proxy, server.url, FRAMEWORKS[framework], plant, 3)
        await proxy.close()
    assert dict(os.environ) == before
    assert texts(told) == texts(captured)
    tokens = [one.input_tokens for one in captured.all]
    assert all(tokens)
    assert [one.input_tokens for one in told.all] == tokens
    assert len(told.references) == 12
    assert is_named(told, plant, 3)


@PYDANTIC_AI
async def test_an_agent_that_a_tool_asks_has_its_own_line() -> None:
    pytest.importorskip("pydantic_ai")
    played, _ = await play_all("of_pydantic_ai", ("delegating", "delegates", "only_text"), {}, later=())
    for target, answers in (("delegating", [1, None, 3]), ("delegates", [1, None, 3]), ("only_text", [2, 5, 7])):
        requests = played[target].transcript.requests
        assert requests is not None, played[target].raised
        assert [one.answer for one in requests.all] == answers, target
        assert [requests.line(one.line).name for one in requests.all] == ["main", "joker", "main"]
        assert [one.system for one in requests.all] == ["ask the joker", "tell jokes", "ask the joker"]
    assert requests.line(2).about == "tell jokes"
    called = played["delegates"].transcript.requests
    assert called is not None
    assert called.line(2).called_by == 0


class Flaky:
    """A server whose first answers are errors."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def __call__(self, request: Request) -> Answer:
        self.failures -= 1
        if self.failures >= 0:
            return Answer(400, b'{"error": {"message": "no room"}}')
        message = {"role": "assistant", "content": "yes?"}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        if request.json.get("stream"):
            return stream_of({**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": "stop"}]})
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return Answer(body=json.dumps({**chunk, "object": "chat.completion", "choices": [choice]}))


@OPENAI_AGENTS
@pytest.mark.parametrize("way", ["run", "run_sync", "run_streamed"])
async def test_a_failed_request_of_openai_agents_is_told_where_it_failed(way: str) -> None:
    agents = pytest.importorskip("agents")
    openai = pytest.importorskip("openai")
    agents.set_tracing_disabled(True)

    async def ask(agent: Any) -> Any:
        if way == "run_streamed":
            return [event async for event in agents.Runner.run_streamed(agent, "hello").stream_events()]
        if way == "run_sync":
            return await asyncio.to_thread(in_context, agents.Runner.run_sync, agent)
        return await agents.Runner.run(agent, "hello")

    def in_context(run: Any, agent: Any) -> Any:
        asyncio.set_event_loop(asyncio.new_event_loop())
        return run(agent, "hello")

    told: list[dict[str, Any]] = []
    async with ScriptedServer(Flaky(2)) as server:
        client = openai.AsyncOpenAI(base_url=server.url, api_key="x", max_retries=0)
        with python_model_requests.watching(told.append):
            for number in range(3):
                agent = agents.Agent("shop", model=agents.OpenAIChatCompletionsModel("m", client))
                failing = pytest.raises(openai.BadRequestError) if number < 2 else nullcontext()
                with failing:
                    await ask(agent)
                assert len(told) == number + 1, "each is told when it has failed"
    assert ["no room" in request["error"] for request in told] == [True, True, False]
    assert told[2]["answer"]["content"] == "yes?"
    ends = [request["started_ms"] + request["duration_ms"] for request in told]
    assert ends[0] <= told[1]["started_ms"]
    assert ends[1] <= told[2]["started_ms"]


@PYDANTIC_AI
@pytest.mark.parametrize("error", [AssertionError("out of stock"), NotImplementedError("no such city"), KeyError("x")])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_request_of_pydantic_ai_that_failed_in_the_model_is_told(error: Exception, streamed: bool) -> None:
    pytest.importorskip("pydantic_ai")
    function = importlib.import_module("pydantic_ai.models.function")
    asked_of = importlib.import_module("agenteval_tui.agents.process.python_objects").runner
    calls: list[str] = []

    def whole(messages: Any, info: Any) -> Any:
        calls.append("whole")
        raise error

    async def pieces(messages: Any, info: Any) -> Any:
        calls.append("pieces")
        raise error
        yield ""

    model = function.FunctionModel(whole, stream_function=pieces if streamed else None)
    agent = importlib.import_module("pydantic_ai").Agent(model)
    told: list[dict[str, Any]] = []
    request = {"prompt": "hello", "messages": [HELLO], "context": {}, "variables": {}, "config": {}}
    with python_model_requests.watching(told.append), pytest.raises(type(error)):
        async for _ in asked_of(agent, "mine:agent")(request):
            pass
    assert calls == ["pieces" if streamed else "whole"], "it is asked once"
    assert [request["error"] for request in told] == [str(error)]


# Events of programs.

SYSTEM = {"role": "system", "content": "be kind"}
HELLO = {"role": "user", "content": "hello"}
FIRST = {"role": "assistant", "content": "yes?"}
LATER = {"role": "user", "content": "and now?"}


def transcript_of(*events: Any, given: tuple[Message, ...] = (Message("user", "hello"),)) -> Transcript:
    recorder, reader = Recorder(given), EventReader()
    for event in events:
        for one in [event] if not isinstance(event, dict) else reader.read(event):
            recorder.apply(one)
    return recorder.stored()


def asked(*messages: Any, **about: Any) -> dict[str, Any]:
    return {"type": "model_request", "messages": list(messages), **about}


def test_a_program_may_tell_its_requests_each_message_once() -> None:
    transcript = transcript_of(
        asked(SYSTEM, HELLO, answer=FIRST, tools=[], parameters={"temperature": 0}, model="m"),
        TextDelta("yes?"),
        TurnEnded(),
        asked(0, 1, FIRST, LATER, answer={"role": "assistant", "content": "now"}, usage={"prompt_tokens": 90}),
        asked(0, 3, answer=None, error="overloaded", agent="other"),
        TextDelta("now"),
    )
    requests = transcript.requests
    assert requests is not None
    first, second, third = requests.all
    assert (first.system, first.messages, first.model, first.answer) == ("be kind", (HELLO,), "m", 1)
    assert first.parameters == {"temperature": 0}
    assert (second.messages, second.answer) == ((HELLO, FIRST, LATER), 2)
    assert (third.messages, third.answer, third.error, third.line) == ((LATER,), None, "overloaded", 2)
    assert requests.unrecorded == ("tools", "parameters"), "the second one does not say"
    assert [one.input_tokens for one in requests.all] == [None, 90, None]
    assert transcript.usage.input_tokens is None, "what a request took is counted by the events of usage"
    assert "requests" in observes(transcript)


def test_requests_are_put_together_once_at_the_end() -> None:
    """A run with many turns asks for what was said until then before each."""
    recorder, reader = Recorder((Message("user", "hello"),)), EventReader()
    for event in (asked(HELLO, answer=FIRST), {"type": "text", "text": "yes?"}):
        for read in reader.read(event):
            recorder.apply(read)
    said = recorder.transcript()
    assert (said.final_output, said.requests) == ("yes?", None)
    assert recorder.stored().requests is not None


def test_an_answer_is_not_one_that_was_given_before() -> None:
    given = (Message("user", "hello"), Message("assistant", "yes?"), Message("user", "and now?"))
    transcript = transcript_of(asked(HELLO, FIRST, LATER, answer=FIRST), TextDelta("yes?"), given=given)
    assert transcript.requests is not None
    assert transcript.requests.request(1).answer == 3


def test_where_one_request_is_not_known_none_is() -> None:
    transcript = transcript_of(asked(HELLO, answer=FIRST), {"type": "model_request"}, TextDelta("yes?"))
    assert transcript.requests is None
    assert "requests" not in observes(transcript)


BAD_CALLS = [{"role": "assistant", "content": "", "tool_calls": "find"}]


@pytest.mark.parametrize("messages", ["hello", [3], [True], [-1], [{"content": "hello"}], ["hello"], [None], BAD_CALLS])
def test_what_is_no_message_is_said(messages: Any) -> None:
    with pytest.raises(EventError, match="model_request"):
        EventReader().read({"type": "model_request", "messages": messages})


def test_content_of_parts_is_kept_as_text() -> None:
    parts = [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": "x"}}]
    transcript = transcript_of(asked({"role": "user", "content": parts}, answer=FIRST), TextDelta("yes?"))
    assert transcript.requests is not None
    (message,) = transcript.requests.request(1).messages
    assert message["content"] == "what is this?\n[image_url]"


@pytest.mark.parametrize("call", [{}, {"function": None}, {"id": 3, "function": {"name": 1, "arguments": {}}}])
def test_odd_calls_are_kept(call: Any) -> None:
    answer = {"role": "assistant", "content": "", "tool_calls": [call]}
    transcript = transcript_of(asked(HELLO, answer=answer), asked(0, answer, LATER, answer=FIRST), TextDelta("yes?"))
    assert transcript.requests is not None
    assert [one.answer for one in transcript.requests.all] == [None, 1]


def test_answers_in_another_order_than_their_requests() -> None:
    """Two sub-agents at the same time, with equal prompts: the one that was asked first answers last."""
    slow, fast = ({"role": "assistant", "content": text} for text in ("slow", "fast"))
    transcript = transcript_of(
        asked(HELLO, answer=fast, duration_ms=0, agent="b"),
        asked(0, answer=slow, duration_ms=50, agent="a"),
        TextDelta("fast"),
        TurnEnded(),
        TextDelta("slow"),
    )
    assert transcript.requests is not None
    lines = {one.answer: transcript.requests.line(one.line).name for one in transcript.requests.all}
    assert lines == {1: "b", 2: "a"}


def test_requests_one_after_the_other_are_of_one_agent_however_late_their_events_come() -> None:
    other = {"role": "system", "content": "be brief"}
    transcript = transcript_of(
        asked(SYSTEM, HELLO, answer=FIRST, started_ms=0, duration_ms=10),
        TextDelta("yes?"),
        TurnEnded(),
        asked(
            other, HELLO, FIRST, LATER, answer={"role": "assistant", "content": "now"}, started_ms=20, duration_ms=9e4
        ),
        TextDelta("now"),
    )
    assert transcript.requests is not None
    assert [request.line for request in transcript.requests.all] == [1, 1]
