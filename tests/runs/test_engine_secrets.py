"""Keys that come by other ways than the environment or an agent's words reach neither watchers nor the history."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer, stream_of

from agenteval_tui.runs.events import encode
from agenteval_tui.suites import environment

Execute = Callable[..., Any]
KEY = "sk-0f-the-keyring-0123456789"

# A server of tools that says too much.
MCP = """
import json, os, sys
def answer(number, result): print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    number, method = asked.get("id"), asked["method"]
    if method == "initialize":
        answer(number, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                        "serverInfo": {"name": "leaky", "version": "1"}})
    elif method == "tools/list":
        answer(number, {"tools": [{"name": "leak", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        answer(number, {"content": [{"type": "text", "text": "the key is " + os.environ["SERVICE_TOKEN"]}]})
    elif number is not None:  # what it does not know: a client that asks for more waits for an answer
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}), flush=True)
"""


def suite(agent: dict[str, Any]) -> str:
    metrics = [{"type": "TextMatch", "contains": "hello"}]
    criterion = {"name": "Greets", "prototype_class": "TextResponse", "config_uxon": {"metrics": metrics}}
    tests = [{"id": "hello", "prompt": "Say hello", "criteria": [criterion]}]
    return json.dumps({"name": "Served", "agent": "bot", "agents": {"bot": agent}, "tests": tests})


def words(text: str) -> list[dict[str, Any]]:
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    return [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]


END = {"model": "m-1", "choices": [{"delta": {}, "finish_reason": "stop"}]}


def nowhere(one: Any, key: str) -> None:
    """The key is in no event and nothing that is stored."""
    assert not any(key in encode(event) for event in one.events)
    one.store.flush()
    run = one.engine.plan.runs[0].ref.run
    stored = (one.store.transcript(run), one.store.run(run), one.store.results(run), one.store.failed_attempts(run))
    assert key not in str(stored)


@pytest.fixture
def in_keyring() -> Iterator[None]:
    keyring: Any = pytest.importorskip("keyring")
    backend: Any = pytest.importorskip("keyring.backend")

    class Memory(backend.KeyringBackend):  # type: ignore[misc]
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return KEY if (service, username) == ("agenteval", "OPENAI_API_KEY") else None

        def set_password(self, service: str, username: str, password: str) -> None:
            raise NotImplementedError

    before = keyring.get_keyring()
    keyring.set_keyring(Memory())
    environment._from_keyring.cache_clear()
    yield
    keyring.set_keyring(before)
    environment._from_keyring.cache_clear()


@pytest.mark.usefixtures("in_keyring")
async def test_a_key_of_the_keyring(execution: Execute) -> None:
    def answer(request: Request) -> Answer:
        return stream_of(*words(f"hello {request.headers['authorization']}!"), END)

    async with ScriptedServer(answer) as server:
        agent = {"kind": "openai", "base_url": server.url, "model": "m-1", "api_key_env": "OPENAI_API_KEY"}
        one = execution(suite(agent), trust=True)
        await one.run()
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert one.statuses() == {"hello#1": "passed"}
    assert one.view.runs[one.engine.plan.runs[0].ref.run].text in ("hello Bearer ***!", "hello ***!")
    nowhere(one, KEY)


@pytest.mark.xdist_group("mcp")
async def test_a_key_in_what_tools_say(execution: Execute, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(MCP)
    program = "import os; print('the key is ' + os.environ['SERVICE_TOKEN'])"
    tools = [
        {"name": "program", "command": [sys.executable, "-c", program]},
        {"mcp": {"command": [sys.executable, "server.py"], "env": {"SERVICE_TOKEN": "${SERVICE_TOKEN}"}}},
    ]

    def answer(request: Request) -> Answer:
        results = [one["content"] for one in request.json["messages"] if one["role"] == "tool"]
        if results:
            assert results == [f"the key is {KEY}"] * 2, "the model gets what the tool said"
            return stream_of(*words("hello. " + " ".join(results)), END)
        calls = [
            {"index": n, "id": f"c{n}", "function": {"name": name, "arguments": "{}"}}
            for n, name in enumerate(("program", "leak"))
        ]
        return stream_of({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]})

    env = {**os.environ, "SERVICE_TOKEN": KEY}
    async with ScriptedServer(answer) as server:
        agent = {"kind": "openai", "base_url": server.url, "model": "m-1", "tools": tools}
        one = execution(suite(agent), env=env, trust=True)
        await one.run()
    assert one.statuses() == {"hello#1": "passed"}
    one.store.flush()
    transcript = one.store.transcript(one.engine.plan.runs[0].ref.run)
    assert [call.result for call in transcript.tool_calls] == ["the key is ***"] * 2
    nowhere(one, KEY)
