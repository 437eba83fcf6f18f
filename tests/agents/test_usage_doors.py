"""The same usage (100 tokens, 1,000 written into a cache, 5,000 read from one, 200 answered) from every kind of agent,
and from what a program sends through the proxy."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, ScriptedServer, stream_of

from agenteval_tui.agents.prices import Prices
from agenteval_tui.agents.recording.exchange import Answer as RecordedAnswer
from agenteval_tui.agents.recording.exchange import Question
from agenteval_tui.agents.recording.protocols import used_by
from agenteval_tui.transcripts.model import Usage

WHOLE = Usage(6100, 200, cached_tokens=5000, cache_write_tokens=1000)
ANTHROPIC = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 1000,
    "cache_read_input_tokens": 5000,
    "output_tokens": 200,
}
DETAILS = {"cached_tokens": 5000, "cache_write_tokens": 1000}
OPENAI = {
    "prompt_tokens": 6100,
    "completion_tokens": 200,
    "total_tokens": 6300,
    "prompt_tokens_details": DETAILS,
}
RESPONSES = {"input_tokens": 6100, "output_tokens": 200, "total_tokens": 6300, "input_tokens_details": DETAILS}
BLOCK = {"type": "text", "text": "hi"}
MESSAGE = {"model": "m", "content": [BLOCK], "stop_reason": "end_turn", "usage": ANTHROPIC}
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
COMPLETION = {"model": "m", "choices": [CHOICE], "usage": OPENAI}
ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
RESPONSE = {"object": "response", "model": "m", "status": "completed", "output": [ITEM], "usage": RESPONSES}
STREAMED_MESSAGE = (
    {"type": "message_start", "message": {"model": "m", "usage": {**ANTHROPIC, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 200}},
    {"type": "message_stop"},
)
STREAMED_COMPLETION = (
    {"model": "m", "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]},
    {"model": "m", "choices": [], "usage": OPENAI},
)

SERVERS: dict[str, tuple[dict[str, Any], Answer]] = {
    "openai": ({"kind": "openai", "stream": False}, Answer(body=json.dumps(COMPLETION))),
    "openai, streamed": ({"kind": "openai"}, stream_of(*STREAMED_COMPLETION)),
    "openai, Responses": ({"kind": "openai", "api": "responses", "stream": False}, Answer(body=json.dumps(RESPONSE))),
    "anthropic": ({"kind": "anthropic", "stream": False, "api_key_env": "KEY"}, Answer(body=json.dumps(MESSAGE))),
    "anthropic, streamed": ({"kind": "anthropic", "api_key_env": "KEY"}, stream_of(*STREAMED_MESSAGE, done=False)),
}


@pytest.mark.parametrize("name", SERVERS)
async def test_servers_of_models(run_agent: Any, name: str) -> None:
    config, answer = SERVERS[name]
    async with ScriptedServer(lambda request: answer) as server:
        ran = await run_agent({**config, "base_url": server.url, "model": "m"}, env={"KEY": "x"})
    assert (ran.transcript.error, ran.transcript.usage) == (None, WHOLE)
    assert Prices({}).cost("claude-sonnet-4-5", ran.transcript.usage) == pytest.approx(0.00855)


@pytest.mark.parametrize("usage", [ANTHROPIC, OPENAI, RESPONSES])
async def test_an_endpoint_with_the_usage_of_any_provider(run_agent: Any, usage: dict[str, Any]) -> None:
    async with ScriptedServer(lambda request: Answer(body=json.dumps({"answer": "hi", "usage": usage}))) as server:
        config = {"kind": "http", "url": f"{server.url}/ask", "body": {"q": "{{ prompt }}"}, "answer": "answer"}
        ran = await run_agent(config)
        assert ran.transcript.usage == WHOLE
        told = await run_agent({**config, "usage": {"input": "usage.input_tokens || usage.prompt_tokens"}})
        assert told.transcript.usage.input_tokens == usage.get("input_tokens", 6100), "an expression of the user wins"
    async with ScriptedServer(lambda request: stream_of(*STREAMED_MESSAGE, done=False)) as server:
        streamed = {
            **config,
            "url": f"{server.url}/ask",
            "stream": "sse",
            "answer": None,
            "delta": "content_block.text",
        }
        ran = await run_agent({key: value for key, value in streamed.items() if value is not None})
        assert ran.transcript.usage == WHOLE


@pytest.mark.parametrize("usage", [ANTHROPIC, OPENAI, RESPONSES])
async def test_programs_and_functions(run_agent: Any, tmp_path: Path, usage: dict[str, Any]) -> None:
    code = f"""
import json
print(json.dumps({{"type": "text", "text": "hi"}}))
print(json.dumps({{"type": "usage", **{usage!r}}}))
"""
    ran = await run_agent({"kind": "command", "command": [sys.executable, "-c", code]})
    assert ran.transcript.usage == WHOLE
    (tmp_path / "mine.py").write_text(f"def agent(prompt):\n    return {{'answer': 'hi', 'usage': {usage!r}}}\n")
    ran = await run_agent({"kind": "python", "callable": "mine:agent"})
    assert (ran.transcript.error, ran.transcript.usage) == (None, WHOLE)
    wrong = {**usage, next(iter(usage)): -1}
    (tmp_path / "mine.py").write_text(f"def agent(prompt):\n    return {{'answer': 'hi', 'usage': {wrong!r}}}\n")
    ran = await run_agent({"kind": "python", "callable": "mine:agent"})
    assert ran.transcript.usage.input_tokens is None
    assert [note.code for note in ran.transcript.notes] == ["text_only", "usage"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("openai/v1/chat/completions", COMPLETION),
        ("openai/v1/responses", RESPONSE),
        ("anthropic/v1/messages", MESSAGE),
        ("cohere/v1/other", {"model": "m", "usage": OPENAI}),
    ],
)
def test_what_went_through_the_proxy(path: str, body: dict[str, Any]) -> None:
    question = Question("POST", path, {}, {"model": "m", "messages": []})
    assert used_by(question, RecordedAnswer(200, "application/json", body)) == ("m", WHOLE)


def test_an_embedding_has_no_output() -> None:
    question = Question("POST", "openai/v1/embeddings", {}, {"model": "m", "input": "x"})
    for usage in ({"prompt_tokens": 8, "total_tokens": 8}, {"total_tokens": 8}):
        answer = RecordedAnswer(200, "application/json", {"model": "m", "data": [], "usage": usage})
        assert used_by(question, answer) == ("m", Usage(8, 0))
