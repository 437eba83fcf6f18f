"""A model that calls all sorts of tools in one turn: what it gets back, and what the transcript says."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import lives, until
from scripted import Answer, Request, ScriptedServer, stream_of

from .conftest import Run
from .test_mcp import SERVER

TOOLS = """
- {name: mock, request_response_pairs: [{arguments: {x: 1}, response: canned}]}
- {name: function, python: "mine:double"}
- {name: program, command: [cat]}
- {name: broken, command: "echo no luck >&2; exit 3", shell: true}
- mcp: {command: [PYTHON, server.py], prefix: s_, only: [pids]}
"""
CALLS = [("mock", '{"x": 1}'), ("function", '{"n": 4}'), ("program", '{"a": "b"}'), ("broken", "{}"), ("s_pids", "{}")]


def turn(request: Request) -> Answer:
    """The first answer calls everything at once, the second says what came back."""
    results = [one["content"] for one in request.json["messages"] if one["role"] == "tool"]
    if results:
        return stream_of({"choices": [{"delta": {"content": "done"}, "finish_reason": "stop"}]})
    calls = [
        {"index": n, "id": f"c{n}", "function": {"name": name, "arguments": text}}
        for n, (name, text) in enumerate(CALLS)
    ]
    return stream_of({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]})


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "tools.yaml").write_text(TOOLS.replace("PYTHON", sys.executable))
    (tmp_path / "mine.py").write_text("def double(n: int) -> int:\n    'Twice.'\n    return 2 * n\n")
    (tmp_path / "server.py").write_text(SERVER)
    return {"kind": "openai", "model": "m", "tools": "tools.yaml"}


@pytest.mark.xdist_group("mcp")
async def test_all_sorts_of_tools_in_one_turn(run_agent: Run, config: dict[str, Any]) -> None:
    async with ScriptedServer(turn) as server:
        ran = await run_agent({**config, "base_url": server.url}, env=dict(os.environ))
    assert ran.transcript.error is None
    offered = [one["function"] for one in server.requests[0].json["tools"]]
    assert [one["name"] for one in offered] == ["mock", "function", "program", "broken", "s_pids"]
    assert offered[1]["description"] == "Twice."
    assert offered[1]["parameters"]["required"] == ["n"]
    calls = {call.name: call for call in ran.transcript.tool_calls}
    assert [(calls[name].result, calls[name].status) for name, _ in CALLS[:4]] == [
        ("canned", "ok"),
        ("8", "ok"),
        ('{"a": "b"}', "ok"),
        ("the tool ended with exit code 3: no luck", "error"),
    ]
    sent = [one["content"] for one in server.requests[1].json["messages"] if one["role"] == "tool"]
    assert sent == [call.result for call in ran.transcript.tool_calls]
    processes = [int(one) for one in (calls["s_pids"].result or "").split()]
    assert len(processes) == 2
    await until(lambda: not any(lives(pid) for pid in processes), "the end of the MCP server")


async def test_a_tool_that_can_not_be_started_is_an_error_of_the_run(run_agent: Run, config: dict[str, Any]) -> None:
    async with ScriptedServer(turn) as server:
        tools = [{"name": "f", "python": "absent:f"}]
        ran = await run_agent({**config, "base_url": server.url, "tools": tools}, env=dict(os.environ))
    assert server.requests == []
    assert ran.transcript.error is not None
    assert (ran.transcript.error.kind, "No module named 'absent'" in ran.transcript.error.message) == ("tool", True)


async def test_a_shared_server_ends_with_the_agent(run_agent: Run, config: dict[str, Any]) -> None:
    tools = [{"mcp": {"command": [sys.executable, "server.py"], "shared": True, "prefix": "s_"}}]
    async with ScriptedServer(turn) as server:
        ran = await run_agent({**config, "base_url": server.url, "tools": tools}, env=dict(os.environ))
    result = next(call.result for call in ran.transcript.tool_calls if call.name == "s_pids")
    processes = [int(one) for one in str(result).split()]
    await until(lambda: not any(lives(pid) for pid in processes), "the end of the MCP server")
