"""The kind `litellm` with the real package: what it sends to servers, and what is made of their answers and failures.

`tests/agents/frameworks/install.py` makes an environment that has it; test_frameworks_apart.py runs this file there.
"""

from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from dialects import ANTHROPIC, CHAT, Call, Dialect, Text
from scripted import Answer, ScriptedServer

from agenteval_tui.agents.base import Failed, Prepared
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.prices import Prices
from agenteval_tui.agents.registry import make_agent

if find_spec("litellm") is None:
    pytest.skip("litellm has an environment of its own (frameworks/install.py)", allow_module_level=True)

KEY = "sk-very-secret-0123456789"
TOOLS = [{"name": "f", "sample_response": "F", "parameters": {"type": "object"}}]


FUNCTION = {"name": "f", "arguments": '{"city": "Rome"}'}
CALLS = {
    "chat": {"choices": [{"message": {"tool_calls": [{"id": "a", "type": "function", "function": FUNCTION}]},
                          "finish_reason": "tool_calls"}]},
    "anthropic": {"type": "message", "stop_reason": "tool_use",
                  "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"city": "Rome"}}]},
}  # fmt: skip
WHOLE = {"chat": {}, "anthropic": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 2}}}


async def ask(run_agent: Any, *replies: Answer, model: str = "openai/m", **options: Any) -> tuple[Any, list[Any]]:
    left = list(replies)
    request = options.pop("request", {})
    async with ScriptedServer(lambda _: left.pop(0)) as server:
        base = server.url if model.startswith(("openai/", "groq/")) else server.url.removesuffix("/v1")
        config = {"kind": "litellm", "model": model, "base_url": base, "api_key_env": "MY_KEY", **options}
        ran = await run_agent(config, env={"MY_KEY": KEY}, **request)
    assert KEY not in repr(ran)
    return ran, server.requests


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("model", "dialect"), [("openai/m", CHAT), ("anthropic/m", ANTHROPIC)])
async def test_a_whole_conversation(run_agent: Any, model: str, dialect: Dialect, stream: bool) -> None:
    first, last = dialect.stream(Call("a", "f", ['{"city": "Rome"}'])), dialect.stream(Text(["do", "ne"]))
    if not stream:
        end = {**json.loads(dialect.whole("done").body), **WHOLE[dialect.name]}
        first, last = (
            Answer(body=json.dumps({**CALLS[dialect.name], **WHOLE[dialect.name]})),
            Answer(body=json.dumps(end)),
        )
    options = {"tools": TOOLS, "system": "Be brief.", "temperature": 0.5, "max_tokens": 50, "stream": stream}
    ran, sent = await ask(run_agent, first, last, model=model, **options)
    transcript = ran.transcript
    assert transcript.error is None
    assert [m.role for m in transcript.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [(c.name, c.arguments, c.result) for c in transcript.tool_calls] == [("f", {"city": "Rome"}, "F")]
    assert transcript.final_output == "done"
    assert transcript.finish_reason == "stop"
    assert all(KEY in repr(one.headers) for one in sent)
    body = sent[1].json
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("m", 0.5, 50)
    assert bool(body.get("stream")) is stream
    assert "F" in json.dumps(body["messages"][-1])
    assert "Rome" in json.dumps(body["messages"][-2])


async def test_the_mock_of_litellm_has_tokens_and_its_cost(run_agent: Any) -> None:
    for stream in (True, False):
        config = {"kind": "litellm", "model": "openai/gpt-4o", "params": {"mock_response": "Hello there"}}
        ran = await run_agent({**config, "stream": stream})
        assert ran.transcript.error is None
        assert ran.transcript.final_output == "Hello there"
        usage = ran.transcript.usage
        assert usage.input_tokens
        assert usage.output_tokens
        assert usage.cost == pytest.approx((usage.input_tokens * 2.5 + usage.output_tokens * 10) / 1e6)
        own = {"input": 1_000_000, "output": 0}
        priced = (await run_agent({**config, "stream": stream, "price": own})).transcript.usage
        assert priced.cost is None  # the suite's own price counts
        assert Prices({}).cost("gpt-4o", priced, own) == priced.input_tokens
    free = (await run_agent({**config, "model": "openai/nobody-knows-it"})).transcript
    assert (free.error, free.usage.cost) == (None, None)


async def test_importing_is_not_the_agents_time(run_agent: Any) -> None:
    ran = await run_agent({"kind": "litellm", "model": "openai/gpt-4o", "params": {"mock_response": "x"}})
    assert all(one.name == "import of litellm" for one in ran.events if isinstance(one, Prepared))


OVERLOADED = '{"error": {"message": "we are busy", "type": "overloaded", "code": "busy"}}'


@pytest.mark.parametrize("model", ["openai/m", "anthropic/m", "groq/m", "ollama_chat/m", "gemini/m"])
@pytest.mark.parametrize(
    ("status", "kind", "retry"),
    [(401, "auth", False), (404, "bad_request", False), (429, "rate_limit", True), (503, "server", True)],
)
async def test_failures_have_our_codes_and_are_asked_once(
    run_agent: Any, model: str, status: int, kind: str, retry: bool
) -> None:
    ran, sent = await ask(run_agent, Answer(status=status, body=OVERLOADED, headers={"retry-after": "7"}), model=model)
    assert len(sent) == 1
    failed = ran.events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.retry) == (kind, retry)
    assert "we are busy" in failed.error.message
    assert "litellm." not in failed.error.message
    assert failed.retry_after_s == (7 if retry else None)


@pytest.mark.parametrize("model", ["openai/m", "anthropic/m", "groq/m"])
async def test_nobody_listens(run_agent: Any, model: str) -> None:
    ran = await run_agent({"kind": "litellm", "model": model, "base_url": "http://127.0.0.1:9/v1"})
    assert (ran.transcript.error.kind, ran.transcript.error.code) == ("connection", "no_connection")
    assert ran.events[-1].retry


async def test_what_litellm_does_not_know_is_an_error_in_words(run_agent: Any) -> None:
    ran = await run_agent({"kind": "litellm", "model": "nonsense"})
    assert ran.transcript.error.kind == "bad_request"
    assert "provider" in ran.transcript.error.message.lower()
    ran = await run_agent({"kind": "litellm", "model": "openai/m", "params": {"mock_response": "x", "mock_delay": "y"}})
    assert ran.transcript.error.kind == "bad_request"


async def test_an_answer_that_litellm_can_not_read_is_not_called_an_answer_with_an_error(run_agent: Any) -> None:
    ran, _ = await ask(run_agent, ANTHROPIC.whole("no model, no usage"), model="anthropic/m", stream=False)
    assert ran.transcript.error.kind == "protocol"
    assert "KeyError" in ran.transcript.error.message
    assert "Traceback" not in ran.transcript.error.message


async def test_a_key_that_is_missing_is_named(run_agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    ran = await run_agent({"kind": "litellm", "model": "groq/m"})
    assert (ran.transcript.error.kind, ran.transcript.error.code) == ("auth", "key_missing")
    assert ran.transcript.error.message == "the environment variable GROQ_API_KEY is not set"


async def test_the_keys_of_the_environment_go_to_no_server_of_a_suite(
    run_agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    for model, dialect in (("openai/m", CHAT), ("anthropic/m", ANTHROPIC)):
        ran, (sent,) = await ask(run_agent, dialect.stream(Text(["ok"])), model=model, api_key_env=None)
        assert ran.transcript.error is None
        assert KEY not in repr(sent)


async def test_a_server_that_is_silent_is_left(run_agent: Any) -> None:
    async def never(_: Any) -> Answer:
        await asyncio.Event().wait()
        return Answer()

    async with ScriptedServer(never) as server:
        config = {"kind": "litellm", "model": "openai/m", "base_url": server.url, "timeouts": {"first_token": 0.05}}
        ran = await run_agent(config)
    assert (ran.transcript.error.kind, ran.transcript.error.code) == ("timeout", "silence")
    assert ran.events[-1].retry


async def test_a_reply_may_be_too_long(run_agent: Any) -> None:
    ran, _ = await ask(run_agent, CHAT.stream(Text(["x" * 600, "y" * 600])), max_reply_mb=0.001)
    assert ran.transcript.error.code == "too_long"


async def test_what_a_model_thought_goes_back_with_its_call(run_agent: Any) -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "model": "m", "content": [],
                                              "usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "I look."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1,
         "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]  # fmt: skip
    lines = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
    thinking = Answer(body=lines, content_type="text/event-stream")
    params = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    ran, sent = await ask(
        run_agent, thinking, ANTHROPIC.stream(Text(["done"])), model="anthropic/claude-sonnet-4-5", tools=TOOLS,
        params=params, max_tokens=2000,
    )  # fmt: skip
    assert ran.transcript.error is None
    assert next(m for m in ran.transcript.messages if m.role == "assistant").reasoning == "I look."
    back = sent[1].json["messages"][1]["content"]
    assert {"type": "thinking", "thinking": "I look.", "signature": "c2ln"} in back


@pytest.mark.parametrize("thorough", [False, True])
async def test_a_check_says_step_by_step_what_works(tmp_path: Path, thorough: bool) -> None:
    def handler(request: Any) -> Answer:
        assert request.method == "POST"
        if request.json.get("tools"):
            return CHAT.stream(Call("p", "ping", ['{"text": "hello"}']))
        return CHAT.stream(Text(["o", "k"])) if request.json.get("stream") else CHAT.whole("ok")

    async with ScriptedServer(handler) as server:
        config = {"kind": "litellm", "model": "openai/m", "base_url": server.url}
        agent = make_agent("a", config, base_dir=tmp_path, env={}, permission=permission_for((), everything=True))
        report = await agent.check(thorough)
        gone = make_agent("a", {**config, "base_url": "http://127.0.0.1:9/v1"}, base_dir=tmp_path, env={},
                          permission=permission_for((), everything=True))  # fmt: skip
        broken = await gone.check(thorough)
        await agent.close()
    assert report.ok
    named = ["reachable", "key", "model"] + (["streams", "tools"] if thorough else [])
    assert [(one.name, one.ok) for one in report.steps] == [(name, True) for name in named]
    assert not broken.ok
    assert (broken.steps[0].name, broken.steps[0].ok) == ("reachable", False)
