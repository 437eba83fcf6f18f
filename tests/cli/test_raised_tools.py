"""A tool whose function raised ends nothing, for the model is told of it; `run` names it, and a watcher that joins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer, stream_of
from threaded import serving

SUITE = """
name: Orders
agent: bot
agents:
  bot:
    kind: openai
    model: m
    base_url: {url}
    tools:
      - {{name: find, python: "shop:find"}}
      - {{name: stop, python: "shop:stop"}}
      - {{name: fine, python: "shop:fine"}}
tests:
  - id: order
    prompt: Where is it?
    repeat: 2
    criteria:
      - name: Answers
        prototype_class: TextResponse
        config_uxon: {{metrics: [{{type: TextMatch, contains: done}}]}}
"""
TOOLS = """
def find(order):
    return {}[order]
def stop(order):
    breakpoint()
def fine(order):
    return order
"""


def turn(request: Request) -> Answer:
    if any(message["role"] == "tool" for message in request.json["messages"]):
        return stream_of({"choices": [{"delta": {"content": "done"}, "finish_reason": "stop"}]})
    calls = [
        {"index": index, "id": f"c{index}", "function": {"name": name, "arguments": '{"order": "W1"}'}}
        for index, name in enumerate(("find", "stop", "fine", "find"))
    ]
    return stream_of({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]})


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving(turn) as running:
        yield running


def test_run_names_the_tools_that_raised(cli: Any, server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TOOLS)
    suite = tmp_path / "orders.suite.yaml"
    suite.write_text(SUITE.format(url=server.url))
    ran = cli("run", suite, "--trust")
    assert ran.code == 0, ran.out
    (line,) = [line for line in ran.out.splitlines() if line.startswith("✓ order")]
    assert line.endswith("  2 tools raised: find, stop")
