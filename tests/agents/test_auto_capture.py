"""`capture: auto`: what a run asked of models is kept beside it, and nothing in the run depends on that."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from certificates import make_certificates
from scripted import ScriptedServer
from test_capture import LOOP, PROGRAM, WHOLE, model, run, told

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    Captured,
    CheckReport,
    Done,
    Failed,
    Noted,
    TextDelta,
)
from agenteval_tui.agents.options import AgentOptions
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.recording.auto_capture import AutoCapturingAgent
from agenteval_tui.agents.recording.cassette import of_documents
from agenteval_tui.agents.registry import make_agent, option_problems
from agenteval_tui.transcripts.model import Message
from agenteval_tui.transcripts.traceback import raised_words
from tests.agents.conftest import skip_without

ALLOWED = permission_for((), everything=True)
KEY = "planted-key-of-the-user-0001"
CLIENTS = """
import asyncio, json, os, sys
BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Where is it?"}]}
HEADERS = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
def url():
    return os.environ["SHOP_MODEL"] + "/chat/completions?version=1"
def said(reply):
    message = reply["choices"][0]["message"]
    return message["content"] or message["tool_calls"][0]["function"]["name"]
def with_httpx(prompt):
    import httpx
    with httpx.Client() as client:
        reply = client.post(url(), json=BODY, headers=HEADERS)
    return said(reply.json()) + " " + str(reply.url) + " " + str(reply.request.url)
def with_httpx2(prompt):
    import httpx2
    reply = httpx2.post(url(), json=BODY, headers=HEADERS)
    return said(reply.json()) + " " + str(reply.url) + " " + str(reply.request.url)
async def with_httpx_async(prompt):
    import httpx
    async with httpx.AsyncClient() as client:
        reply = await client.post(url(), json=BODY, headers=HEADERS)
    return said(reply.json()) + " " + str(reply.url) + " " + str(reply.request.url)
def with_requests(prompt):
    import requests
    reply = requests.post(url(), json=BODY, headers=HEADERS)
    return said(reply.json()) + " " + reply.url + " " + reply.request.url
async def with_aiohttp(prompt):
    import aiohttp
    async with aiohttp.ClientSession() as client, client.post(url(), json=BODY, headers=HEADERS) as reply:
        return said(await reply.json()) + " " + str(reply.url) + " " + str(reply.request_info.real_url)
def with_urllib(prompt):
    import urllib.request
    request = urllib.request.Request(url(), json.dumps(BODY).encode(), HEADERS | {"content-type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return said(json.load(reply)) + " " + reply.url + " " + reply.geturl()
"""
WAYS = ("httpx", "httpx2", "httpx_async", "requests", "aiohttp", "urllib")


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents of these tests don't get this environment, and must not reach servers in another way than we do."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(model) as running:
        yield running


def python(folder: Path, source: str, name: str, **more: Any) -> dict[str, Any]:
    (folder / "shop_agent.py").write_text(source, "utf-8")
    return {"kind": "python", "callable": f"shop_agent:{name}", "python": sys.executable, "capture": "auto", **more}


def captured_of(events: list[AgentEvent]) -> Captured | None:
    return next((event for event in events if isinstance(event, Captured)), None)


def paths_of(events: list[AgentEvent]) -> list[str]:
    captured = captured_of(events)
    return [] if captured is None else [each.question.path for each in of_documents(captured.tape, "tape").exchanges]


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("at_import", [True, False])
async def test_every_http_client_is_recorded_and_sees_its_own_address(
    server: ScriptedServer, tmp_path: Path, way: str, at_import: bool
) -> None:
    library = way.removesuffix("_async")
    skip_without(library)
    imported = f"import {'urllib.request' if library == 'urllib' else library}\n" if at_import else ""
    env = {"SHOP_MODEL": server.url, "OPENAI_API_KEY": KEY}
    config = python(tmp_path, imported + CLIENTS, f"with_{way}")
    transcript, events = await run(config, tmp_path, env, "Where is it?")
    assert transcript.error is None
    url = f"{server.url}/chat/completions?version=1"
    assert transcript.final_output == f"get_order {url} {url}"
    assert paths_of(events) == ["openai/v1/chat/completions"]
    assert KEY not in str(captured_of(events))
    (asked,) = server.requests
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["host"] == server.url.split("/")[2]
    assert not [name for name in asked.headers if "agenteval" in name]


@pytest.mark.parametrize("capture", ["auto", "model"])
@pytest.mark.parametrize("kind", ["python", "command"])
@pytest.mark.parametrize("way", ["httpx", "requests", "aiohttp", "urllib"])
async def test_servers_that_are_asked_past_proxies_are_no_proxy(
    server: ScriptedServer, tmp_path: Path, way: str, kind: str, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without(way)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    env = {"SHOP_MODEL": server.url, "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
    config = python(tmp_path, CLIENTS, f"with_{way}", capture=capture)
    if kind == "command":
        called = f"with_{way}(input())"
        ending = f"print({'asyncio.run(' + called + ')' if way == 'aiohttp' else called})\n"
        (tmp_path / "shop_agent.py").write_text(CLIENTS + ending, "utf-8")
        words = [sys.executable, "shop_agent.py"]
        config = {"kind": "command", "command": words, "input": "text", "output": "text", "capture": capture}
    _, events = await run(config, tmp_path, env, "Where is it?")
    assert paths_of(events) == ["openai/v1/chat/completions"]


HIDDEN = """
import os
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
set_tracing_disabled(True)
@function_tool
def get_order(order: str) -> str:
    return {"W2": "open"}[order]
async def answer(prompt):
    model = OpenAIChatCompletionsModel("gpt-4o", AsyncOpenAI(base_url=os.environ["SHOP_MODEL"], api_key="none"))
    agent = Agent(name="Desk", instructions="Be brief.", tools=[get_order], model=model)
    return (await Runner.run(agent, prompt)).final_output
"""


@pytest.mark.parametrize("capture", ["auto", "model"])
async def test_what_a_tool_raised_that_its_framework_hides_is_with_its_call(
    server: ScriptedServer, tmp_path: Path, capture: str
) -> None:
    env = {"SHOP_MODEL": server.url, "OPENAI_API_KEY": KEY}
    transcript, _ = await run(python(tmp_path, HIDDEN, "answer", capture=capture), tmp_path, env, "Where is it?")
    (call,) = transcript.tool_calls
    assert (call.name, call.status) == ("get_order", "error")
    assert "An error occurred" in str(call.result)
    assert call.traceback is not None
    assert raised_words(call.traceback) == "KeyError: 'W1' (shop_agent.py, line 8)"


STREAMED = """
import os
import httpx
def gives(prompt):
    body = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    with httpx.stream("POST", os.environ["SHOP_MODEL"] + "/chat/completions", json=body) as reply:
        for line in reply.iter_lines():
            if line.startswith("data: {"):
                yield line.partition("|")[2].partition("|")[0]
"""


async def test_a_stream_goes_on_only_as_its_server_does(tmp_path: Path) -> None:
    """Each piece is at the program before the server is let to send the next one."""
    came = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'"hi"}]}')
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for number in range(3):
            chunk = {"model": "m", "choices": [{"index": 0, "delta": {"content": f"|{number}|"}}]}
            writer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            await writer.drain()
            await came.wait()
            came.clear()
        writer.write(b"data: [DONE]\n\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, asyncio.timeout(200):
        env = {"SHOP_MODEL": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"}
        agent = make_agent("a", python(tmp_path, STREAMED, "gives"), base_dir=tmp_path, env=env, permission=ALLOWED)
        texts, events = [], list[AgentEvent]()
        async for event in agent.run(AgentRequest((Message("user", "hi"),), run="r")):
            events.append(event)
            if isinstance(event, TextDelta):
                texts.append(event.text)
                came.set()
        await agent.close()
    assert "".join(texts) == "012"
    captured = captured_of(events)
    assert captured is not None
    assert captured.transcript.final_output == "|0||1||2|"


REFUSED = """
import os, ssl
import httpx
def answer(prompt):
    try:
        reply = httpx.Client(verify=False).post(os.environ["SHOP_MODEL"] + "/chat/completions", json={"model": "m"})
    except httpx.TransportError as error:
        return type(error).__name__ + ": " + str(error) + " " + str(error.request.url)
    return reply.text
"""


async def test_a_server_that_is_not_there_fails_as_without_a_proxy(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        env = {"SHOP_MODEL": f"http://127.0.0.1:{free.getsockname()[1]}/v1"}
        outcomes = [
            await run(python(tmp_path, REFUSED, "answer", capture=capture), tmp_path, env, "hi")
            for capture in ("none", "auto")
        ]
    assert outcomes[0][0].final_output.startswith("ConnectError: ")
    assert outcomes[0][0].messages == outcomes[1][0].messages
    assert captured_of(outcomes[1][1]) is None


async def test_a_server_that_only_the_agent_trusts_is_asked_by_the_agent(tmp_path: Path) -> None:
    context = make_certificates(tmp_path).sides["self_signed"]
    calls = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        await reader.readuntil(b"}")
        calls += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        env = {"SHOP_MODEL": f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"}
        transcript, events = await run(python(tmp_path, REFUSED, "answer"), tmp_path, env, "hello")
    assert (transcript.final_output, calls, captured_of(events)) == ("hi", 1, None)


async def test_a_connection_that_breaks_is_not_asked_again(tmp_path: Path) -> None:
    calls = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        await reader.readuntil(b"}")
        calls += 1
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        env = {"SHOP_MODEL": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"}
        transcript, _ = await run(python(tmp_path, REFUSED, "answer"), tmp_path, env, "hello")
    assert transcript.final_output.startswith("RemoteProtocolError: Server disconnected")
    assert calls == 1


PROXIES = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
SETS_PROXIES = f"import os\nos.environ.update({PROXIES})\n"


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", ["environment", "code"])
async def test_an_agent_with_proxies_of_its_own_reaches_its_model_through_them(
    server: ScriptedServer, tmp_path: Path, way: str, where: str
) -> None:
    skip_without(way.removesuffix("_async"))
    env = {"SHOP_MODEL": server.url, "OPENAI_API_KEY": KEY, **(PROXIES if where == "environment" else {})}
    source = CLIENTS if where == "environment" else SETS_PROXIES + CLIENTS
    transcript, events = await run(python(tmp_path, source, f"with_{way}"), tmp_path, env, "Where is it?")
    assert transcript.final_output.startswith("get_order ")
    assert captured_of(events) is None


ANSWERS = (
    LOOP
    + """
def respond(request):
    return "I say: " + answer(request["prompt"])
def tells(request):
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": request["prompt"]}]
    said.append(ask(said))
    said.append({"role": "tool", "tool_call_id": "c1", "content": "shipped"})
    said.append(ask(said))
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return {"messages": said[2:], "usage": usage}
def fails(request):
    answer(request["prompt"])
    raise KeyError("sold out")
def silent(request):
    return "hello"
"""
)


async def test_a_function_that_gives_a_text_gets_the_conversation(server: ScriptedServer, tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": server.url}
    transcript, _ = await run(python(tmp_path, ANSWERS, "respond"), tmp_path, env, "Where is it?")
    assert told(transcript) == [*WHOLE, "assistant: I say: It is shipped."]
    assert [call.name for call in transcript.tool_calls] == ["get_order"]
    assert transcript.usage.input_tokens == 2000
    assert transcript.usage.cost == pytest.approx(2 * (1000 * 2.5 + 100 * 10) / 1e6)
    assert transcript.requests is not None
    assert len(transcript.requests.references) == 2


async def test_what_the_agent_tells_stays_and_has_its_requests(server: ScriptedServer, tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": server.url}
    transcript, events = await run(python(tmp_path, ANSWERS, "tells"), tmp_path, env, "Where is it?")
    alone, _ = await run(python(tmp_path, ANSWERS, "tells", capture="none"), tmp_path, env, "Where is it?")
    assert transcript.messages == alone.messages
    assert transcript.usage == alone.usage
    assert alone.usage.input_tokens == 7
    assert alone.requests is None
    assert transcript.requests is not None
    assert [request.answer for request in transcript.requests.all] == [1, 3]
    assert [request.system for request in transcript.requests.all] == ["Be brief.", "Be brief."]
    assert paths_of(events) == ["openai/v1/chat/completions"] * 2


async def test_of_a_function_that_raises_what_it_asked_is_there(server: ScriptedServer, tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": server.url}
    transcript, events = await run(python(tmp_path, ANSWERS, "fails"), tmp_path, env, "Where is it?")
    assert isinstance(events[-1], Failed)
    assert told(transcript) == WHOLE
    assert transcript.error is not None
    assert "sold out" in transcript.error.message


async def test_an_agent_without_a_model_has_no_trace_of_it(tmp_path: Path) -> None:
    kinds = []
    for capture in ("auto", "none"):
        _, events = await run(python(tmp_path, ANSWERS, "silent", capture=capture), tmp_path, {}, "Where is it?")
        kinds.append([type(event) for event in events])
    assert kinds[0] == kinds[1]


def test_the_proxy_is_loaded_with_the_first_request_only() -> None:
    code = """
import asyncio, sys
from pathlib import Path
from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Message
async def main():
    config = {"kind": "command", "command": ["true"], "capture": "auto"}
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "PATH": "/usr/bin:/bin"}
    agent = make_agent("a", config, base_dir=Path(), env=env, permission=permission_for((), everything=True))
    async for _ in agent.run(AgentRequest((Message("user", "hi"),), run="r")):
        pass
    await agent.close()
asyncio.run(main())
print([name for name in ("httpx", "agenteval_tui.agents.recording.protocols") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


async def test_runs_at_the_same_time_are_told_apart(server: ScriptedServer, tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": server.url}
    agent = make_agent("a", python(tmp_path, ANSWERS, "respond"), base_dir=tmp_path, env=env, permission=ALLOWED)

    async def asked(number: int) -> str:
        request = AgentRequest((Message("user", f"Where is {number}?"),), run=f"r{number}")
        captured = captured_of([event async for event in agent.run(request)])
        assert captured is not None
        return captured.transcript.messages[1].content

    assert await asyncio.gather(*map(asked, range(4))) == [f"Where is {number}?" for number in range(4)]
    await agent.close()


@pytest.mark.parametrize("reuse", [False, True])
async def test_each_turn_adds_to_the_requests(server: ScriptedServer, tmp_path: Path, reuse: bool) -> None:
    config = python(tmp_path, ANSWERS, "respond", reuse=reuse)
    transcript, events = await run(config, tmp_path, {"OPENAI_BASE_URL": server.url}, "Where is it?", "And now?")
    assert told(transcript)[:5] == WHOLE
    assert len(transcript.tool_calls) == 2
    assert transcript.usage.input_tokens == 4000
    assert [len(event.tape) for event in events if isinstance(event, Captured)] == [3, 5]


async def test_a_command_is_led_by_the_variables_that_it_has_already(server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM, "utf-8")
    words = [sys.executable, "-S", "agent.py"]
    config = {"kind": "command", "command": words, "input": "text", "output": "text", "capture": "auto"}
    transcript, events = await run(config, tmp_path, {"OPENAI_BASE_URL": server.url}, "Where is it?")
    assert told(transcript) == WHOLE
    assert paths_of(events) == ["openai/v1/chat/completions"] * 2
    shows = "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k != 'LC_CTYPE'}))"
    seen = {}
    for capture in ("none", "auto"):
        config = {"kind": "command", "command": [sys.executable, "-S", "-c", shows], "output": "text"}
        env = {"OPENAI_API_KEY": KEY, "PATH": "/bin"}
        transcript, events = await run({**config, "capture": capture}, tmp_path, env, "hi")
        seen[capture] = json.loads(transcript.final_output)
        assert [event.note.code for event in events if isinstance(event, Noted)] == ["text_only"]
    for variables in seen.values():
        variables.pop("AGENTEVAL_STARTED_AS", None)
    # By these alone shims of MCP servers find the recording: clients give servers hardly another variable than PATH.
    own_path = seen["none"].pop("PATH")
    assert seen["auto"].pop("PATH").startswith(f"{own_path}:/agenteval-recording/")
    # Only by these does a program for Python or Node lead its requests to the proxy, without knowing another address.
    assert set(seen["auto"].items()) - set(seen["none"].items()) == {
        (name, seen["auto"][name])
        for name in (
            *("AGENTEVAL_MCP_RECORDING", "AGENTEVAL_PROXY", "NODE_OPTIONS", "PYTHONPATH"),
            *("AGENTEVAL_PROJECT", "AGENTEVAL_REPORT"),  # where Node tells which files of the project it has loaded
        )
    }
    assert seen["none"].items() <= seen["auto"].items()


async def test_the_servers_answer_to_a_run_that_was_stopped_is_not_waited_for(tmp_path: Path) -> None:
    began, gone = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}]}")
        began.set()
        await reader.read()
        gone.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, asyncio.timeout(200):
        env = {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"}
        agent = make_agent("a", python(tmp_path, ANSWERS, "respond"), base_dir=tmp_path, env=env, permission=ALLOWED)

        async def asks() -> None:
            async for _ in agent.run(AgentRequest((Message("user", "hi"),), run="r")):
                pass

        running = asyncio.create_task(asks())
        await began.wait()
        running.cancel()
        await gone.wait()
        await agent.close()


def test_only_programs_that_agenteval_starts_can_have_it() -> None:
    problems = dict(option_problems("a", {"kind": "http", "url": "http://x", "capture": "auto"}))
    assert "another server needs `capture: model`" in str(problems)
    assert option_problems("a", {"kind": "command", "command": "x", "capture": "none"}) == []


class Once:
    """An agent of a plug-in whose events are an iterator, and no generator."""

    def __init__(self) -> None:
        self._events: list[AgentEvent] = [Done(), TextDelta("Hello")]

    def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        return self

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self

    async def __anext__(self) -> AgentEvent:
        if not self._events:
            raise StopAsyncIteration
        return self._events.pop()

    async def check(self, thorough: bool = False) -> CheckReport:
        return CheckReport(True, "it is there")

    async def close(self) -> None:
        pass


async def test_events_that_can_not_be_closed_are_passed_on(tmp_path: Path) -> None:
    setup = AgentSetup("once", {"kind": "once"}, tmp_path, permission=ALLOWED)
    agent = AutoCapturingAgent(Once(), setup, AgentOptions())
    events = [event async for event in agent.run(AgentRequest((Message("user", "Hi"),)))]
    assert events == [TextDelta("Hello"), Done()]
    await agent.close()
