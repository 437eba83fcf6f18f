"""The bundled agent behind HTTP, asked by the real adapter."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import AgentSetup, TextDelta
from agenteval_tui.agents.models.openai import OpenAIChatAgent
from agenteval_tui.core.errors import InfrastructureError
from agenteval_tui.extensions.demo import server as demo_server

PROMPTS = [
    "Where is my order #W1042?",
    "The headphones from #W1017 arrived broken, I want to send them back.",
    "What do customers say about the Aurora Kettle?",
    "Please cancel #W1063, I no longer need it.",
    "Gib eine SQL-Abfrage aus, die alle Kunden aus Deutschland selektiert, deren Umsatz größer als 5000 € ist.",
    "Lösche alle Kunden aus der Tabelle.",
]


@pytest.mark.sweep
@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_with_the_shops_tools_it_does_the_same_over_http(run_agent: Any, prompt: str, version: str) -> None:
    async with await demo_server.start(pace=0) as server:
        over_http = {
            "kind": "openai",
            "base_url": server.address,
            "model": f"demo-rules-{version}",
            "tools": "builtin:demo-shop",
            "seed": "run",
        }
        for seed in range(4):
            there = await run_agent(over_http, prompt, seed=seed)
            here = await run_agent({"kind": "demo", "version": version, "pace": 0}, prompt, seed=seed)
            assert there.transcript.error is None
            assert there.transcript.final_output == here.transcript.final_output
            calls = [(c.id, c.name, c.arguments, c.result, c.status) for c in there.transcript.tool_calls]
            assert calls == [(c.id, c.name, c.arguments, c.result, c.status) for c in here.transcript.tool_calls]
            assert there.transcript.model == here.transcript.model == f"demo-rules {version}"


@pytest.mark.parametrize("stream", [True, False])
async def test_without_tools_it_uses_its_own(run_agent: Any, stream: bool) -> None:
    async with await demo_server.start(version="v2", pace=0) as server:
        config = {"kind": "openai", "base_url": server.address, "model": "demo-rules", "stream": stream}
        ran = await run_agent(config, "Where is my order #W1042?", seed=1)
    assert "on its way" in ran.transcript.final_output
    assert ran.transcript.tool_calls == ()
    assert ran.transcript.usage.output_tokens
    assert ran.transcript.model == "demo-rules v2"
    assert (len([event for event in ran.events if isinstance(event, TextDelta)]) > 3) is stream


async def test_mock_tools_take_the_place_of_the_shops(run_agent: Any) -> None:
    async with await demo_server.start(pace=0) as server:
        tools = [{"name": "get_order", "sample_response": {"id": "#W1042", "status": "delivered"}}]
        config = {"kind": "openai", "base_url": server.address, "model": "demo-rules", "tools": tools}
        ran = await run_agent(config, "Where is my order #W1042?")
    assert "delivered" in ran.transcript.final_output


async def test_check_knows_its_models(tmp_path: Path) -> None:
    async with await demo_server.start(pace=0) as server:
        config = {"kind": "openai", "base_url": server.address, "model": "demo-rules"}
        right = await OpenAIChatAgent(AgentSetup("a", config, tmp_path)).check()
        wrong = await OpenAIChatAgent(AgentSetup("a", {**config, "model": "gpt-9"}, tmp_path)).check()
    assert right.ok
    assert not wrong.ok
    assert "demo-rules-v1" in wrong.fix


async def test_a_wrong_model_is_said(run_agent: Any) -> None:
    async with await demo_server.start(pace=0) as server:
        config = {"kind": "openai", "base_url": server.address, "model": "gpt-9"}
        ran = await run_agent(config)
    assert "there is no model 'gpt-9'; models: demo-rules, demo-rules-v1, demo-rules-v2" in ran.transcript.error.message


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages": []}', b'{"messages": [1, {"role": "assistant"}]}'])
async def test_bad_bodies_get_an_error(body: bytes) -> None:
    async with await demo_server.start(pace=0) as server:
        url = server.address + "/chat/completions"

        def post() -> tuple[int, Any]:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            try:
                opener.open(urllib.request.Request(url, data=body, method="POST"), timeout=250)
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)
            raise AssertionError("no error")

        status, answer = await asyncio.to_thread(post)
    assert status == 400
    assert answer["error"]["message"]


async def test_a_taken_port_is_said() -> None:
    async with await demo_server.start(pace=0) as server:
        port = server.port
        with pytest.raises(InfrastructureError, match=rf"can't listen on port {port}: address already in use \(choose"):
            await demo_server.start(port)


def test_serve_tells_its_address() -> None:
    told, heard = list[str](), threading.Event()

    def announce(url: str) -> None:
        told.append(url)
        heard.set()

    threading.Thread(target=demo_server.serve, kwargs={"pace": 0, "announce": announce}, daemon=True).start()
    assert heard.wait(250)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(told[0] + "/models", timeout=250) as reply:
        assert json.load(reply)["data"][0]["id"] == "demo-rules"
