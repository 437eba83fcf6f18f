"""Services of `http` agents: what a server asks its model belongs to the run whose request it answers."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import shutil
import socket
import sys
import types
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer

from agenteval_tui.agents.process import python_http_clients
from agenteval_tui.agents.process.python_server_requests import _Requests
from agenteval_tui.history.store import Store
from agenteval_tui.runs.change.check import CodeCheck
from agenteval_tui.runs.change.model import CodeChange
from agenteval_tui.runs.change.recorded_runs import recorded_runs
from agenteval_tui.runs.change.saves import folders_of
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import load_suite
from agenteval_tui.transcripts.model import Transcript

PROMPTS = ("Where is W1?", "Where is W2?")
KEY = "planted-key-of-the-user-0001"
SHOP = """
import json, os, sys, urllib.request
SYSTEM = "Be brief."
PORT = int(sys.argv[1])
def body(messages):
    return json.dumps({"model": "m", "messages": messages}).encode()
def headers():
    return {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
URL = os.environ["SHOP_MODEL"] + "/chat/completions"
def urllib_ask(messages):
    with urllib.request.urlopen(urllib.request.Request(URL, body(messages), headers())) as reply:
        return json.load(reply)
def begin(prompt):
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
def add(messages, reply):
    messages.append(reply["choices"][0]["message"])
    for call in messages[-1].get("tool_calls") or ():
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "shipped"})
    return messages[-1]["role"] == "assistant"
def answer(prompt, ask=urllib_ask):
    messages = begin(prompt)
    while not add(messages, ask(messages)):
        pass
    return messages[-1]["content"]
"""
STARLETTE = """
import asyncio
from concurrent.futures import ThreadPoolExecutor
import httpx, uvicorn
from shop import *
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
POOL = ThreadPoolExecutor(2)
def httpx_ask(messages):
    return httpx.post(URL, content=body(messages), headers=headers(), timeout=60).json()
async def task(request):
    async with httpx.AsyncClient(timeout=60) as client:
        messages = begin((await request.json())["prompt"])
        while not add(messages, (await client.post(URL, content=body(messages), headers=headers())).json()):
            pass
    return JSONResponse({"answer": messages[-1]["content"]})
async def pool(request):
    prompt = (await request.json())["prompt"]
    loop = asyncio.get_running_loop()
    text = await loop.run_in_executor(None, lambda: POOL.submit(lambda: answer(prompt, httpx_ask)).result())
    return JSONResponse({"answer": text})
async def function(request):
    prompt = (await request.json())["prompt"]
    return JSONResponse({"answer": await run_in_threadpool(answer, prompt, httpx_ask)})
app = Starlette(routes=[
    Route("/health", lambda request: Response()),
    Route("/chat", WAY, methods=["POST"]),
])
uvicorn.run(app, port=PORT, log_level="warning")
"""
AIOHTTP = """
import aiohttp
from aiohttp import web
from shop import *
async def chat(request):
    async with aiohttp.ClientSession() as session:
        messages, ended = begin((await request.json())["prompt"]), False
        while not ended:
            async with session.post(URL, data=body(messages), headers=headers()) as reply:
                ended = add(messages, await reply.json())
    return web.json_response({"answer": messages[-1]["content"]})
async def health(request):
    return web.Response()
app = web.Application()
app.add_routes([web.get("/health", health), web.post("/chat", chat)])
web.run_app(app, host="127.0.0.1", port=PORT, print=None)
"""
TORNADO = """
import asyncio
from tornado.ioloop import IOLoop
from tornado.web import Application, RequestHandler
from shop import *
class Chat(RequestHandler):
    def get(self):
        self.finish()
    async def post(self):
        prompt = json.loads(self.request.body)["prompt"]
        self.finish({"answer": await IOLoop.current().run_in_executor(None, answer, prompt)})
async def main():
    Application([("/chat", Chat), ("/health", Chat)]).listen(PORT, "127.0.0.1")
    await asyncio.Event().wait()
asyncio.run(main())
"""
STANDARD = """
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from shop import *
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204)
        self.end_headers()
    def do_POST(self):
        prompt = json.loads(self.rfile.read(int(self.headers["content-length"])))["prompt"]
        texts = []
        thread = threading.Thread(target=lambda: texts.append(answer(prompt)))
        thread.start()
        thread.join()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"answer": texts[0]}).encode())
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
"""
NODE = """
import http from 'node:http';
const url = process.env.SHOP_MODEL + '/chat/completions';
const headers = { 'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}` };
async function ask(messages) {
  const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ model: 'm', messages }) });
  return (await reply.json()).choices[0].message;
}
http.createServer(async (request, response) => {
  let text = '';
  for await (const piece of request) text += piece;
  if (request.method === 'GET') return response.end();
  const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: JSON.parse(text).prompt }];
  for (;;) {
    messages.push(await ask(messages));
    const calls = messages.at(-1).tool_calls ?? [];
    for (const call of calls) messages.push({ role: 'tool', tool_call_id: call.id, content: 'shipped' });
    if (!calls.length) break;
  }
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ answer: messages.at(-1).content }));
}).listen(Number(process.argv[2]), '127.0.0.1');
"""
SERVERS = {
    "starlette, in a task": STARLETTE.replace("WAY", "task"),
    "starlette, in a pool": STARLETTE.replace("WAY", "pool"),
    "starlette, in a function": STARLETTE.replace("WAY", "function"),
    "aiohttp": AIOHTTP,
    "tornado": TORNADO,
    "http.server, in a thread": STANDARD,
    "node": NODE,
}
SUITE = """
name: Shop
agent: shop
services:
  web: {command: [PROGRAM, SERVER, "PORT"], ready: {url: "http://127.0.0.1:PORT/health"}}
agents:
  shop: {kind: http, url: "http://127.0.0.1:PORT/chat", answer: answer}
tests:
  - id: first
    prompt: Where is W1?
    criteria:
      - name: Looks it up
        prototype_class: ToolResponse
        config_uxon: {metrics: [{type: ToolCheck, tools: [{name: get_order}]}]}
      - name: Is shipped
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: shipped}]}
  - id: second
    prompt: Where is W2?
    criteria:
      - name: Is shipped
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: shipped}]}
"""


class Model:
    """Calls a tool with what it was asked, and then says what the tool gave. It answers first requests two at a time:
    both runs wait for it at once."""

    def __init__(self) -> None:
        self._both = asyncio.Barrier(2)

    async def __call__(self, request: Request) -> Answer:
        messages = request.json["messages"]
        message: dict[str, Any] = {"role": "assistant", "content": f"It is {messages[-1]['content']}."}
        if messages[-1]["role"] == "user":
            await self._both.wait()
            function = {"name": "get_order", "arguments": json.dumps({"of": messages[-1]["content"]})}
            calls = [{"id": "c1", "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return Answer(body=json.dumps({"model": "gpt-4o", "choices": choices, "usage": usage}))


@pytest.fixture
async def model(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedServer]:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    async with ScriptedServer(Model()) as running:
        monkeypatch.setenv("SHOP_MODEL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield running


class Shop:
    """A folder with a server, its suite, and a history."""

    def __init__(self, folder: Path, store: Store, server: str) -> None:
        self.folder = folder
        self.store = store
        is_node = server == NODE
        self.file = folder / ("server.mjs" if is_node else "server.py")
        self.file.write_text(server, "utf-8")
        (folder / "shop.py").write_text(SHOP, "utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        program = "node" if is_node else sys.executable
        suite = SUITE.replace("PROGRAM", program).replace("SERVER", self.file.name).replace("PORT", self.port)
        (folder / "shop.suite.yaml").write_text(suite, "utf-8")

    def plan(self) -> Plan:
        loaded = load_suite(self.folder / "shop.suite.yaml")
        return make_plan([loaded], PlanOptions(trust=True), user_agents={}, store=self.store)

    async def run(self) -> list[Transcript]:
        """The transcripts of a run of the suite, in the order of its tests."""
        plan = self.plan()
        ended = await Engine(plan, self.store, lambda _: None).run()
        assert ended.status == "finished", ended.message
        rows = sorted(self.store.runs_of_execution(plan.execution_id), key=lambda row: row.test_id)
        return [self.store.transcript(row.id) for row in rows]

    async def check(self) -> CodeChange:
        """What the code of now changes."""
        plan = self.plan()
        check = CodeCheck(plan, self.store)
        try:
            return await check.run(recorded_runs(self.store, plan.runs).runs)
        finally:
            await check.close()


@pytest.mark.parametrize("name", SERVERS)
async def test_requests_belong_to_the_run_that_a_server_answers(
    name: str, model: ScriptedServer, tmp_path: Path, store: Store
) -> None:
    if name == "node" and shutil.which("node") is None:
        pytest.skip("Node is not installed")
    transcripts = await Shop(tmp_path, store, SERVERS[name]).run()
    for prompt, transcript in zip(PROMPTS, transcripts, strict=True):
        assert transcript.error is None
        (call,) = transcript.tool_calls
        assert (call.name, call.arguments, call.result) == ("get_order", {"of": prompt}, "shipped")
        assert [(each.role, each.content) for each in transcript.messages] == [
            ("system", "Be brief."),
            ("user", prompt),
            ("assistant", ""),
            ("tool", "shipped"),
            ("assistant", "It is shipped."),
        ]
        assert (transcript.usage.input_tokens, transcript.usage.output_tokens) == (2000, 200)
        assert transcript.usage.cost == pytest.approx(0.007)  # of gpt-4o
    assert len(model.requests) == 4
    for request in model.requests:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert not [header for header in request.headers if "agenteval" in header]


async def test_a_save_of_a_server_is_checked_from_its_recordings(
    model: ScriptedServer, tmp_path: Path, store: Store
) -> None:
    shop = Shop(tmp_path, store, STARLETTE.replace("WAY", "task"))
    await shop.run()
    assert (await shop.check()).unchanged == 2

    text = shop.file.read_text("utf-8")
    shop.file.write_text(text.replace('messages[-1]["content"]})', '"It is lost."})'), "utf-8")
    change = await shop.check()
    assert (change.fails, change.requests) == (2, 0)

    shop.file.write_text(text, "utf-8")
    (tmp_path / "shop.py").write_text(SHOP.replace("Be brief.", "Be long."), "utf-8")
    change = await shop.check()
    assert (change.needs_model, change.requests) == (2, 0)

    shop.file.write_text(text + "(", "utf-8")
    change = await shop.check()
    assert "service web" in change.error
    assert "SyntaxError" in change.error
    assert len(model.requests) == 4  # those of the recording


async def test_a_server_that_asks_past_the_proxy_gets_no_key_after_a_save(
    model: ScriptedServer, tmp_path: Path, store: Store
) -> None:
    shop = Shop(tmp_path, store, STARLETTE.replace("WAY", "task"))
    await shop.run()
    text = shop.file.read_text("utf-8")
    (tmp_path / "shop.py").write_text(SHOP + "open('key', 'w').write(headers()['authorization'])\n", "utf-8")
    shop.file.write_text(text, "utf-8")
    await shop.check()
    assert (tmp_path / "key").read_text() == "Bearer agenteval-recorded"


@pytest.mark.parametrize("of_agent", [False, True])
async def test_a_server_that_runs_already_is_not_asked_after_a_save(
    model: ScriptedServer, tmp_path: Path, store: Store, of_agent: bool
) -> None:
    """It has its own keys, and nothing leads its requests to a recording."""
    shop = Shop(tmp_path, store, STANDARD)
    await shop.run()
    suite = tmp_path / "shop.suite.yaml"
    text = suite.read_text("utf-8").replace('/health"}}', '/health"}, reuse_existing: true}')
    if of_agent:
        head, _, rest = text.partition("services:\n")
        line, _, rest = rest.partition("\n")
        text = head + rest.replace("answer: answer}", f"answer: answer, services: {{{line.strip()}}}}}")
    suite.write_text(text, "utf-8")
    server = await asyncio.create_subprocess_exec(sys.executable, str(shop.file), shop.port)
    try:
        while not await _listens(int(shop.port)):
            await asyncio.sleep(0.02)
        change = await shop.check()
        assert f"port {shop.port}" in change.error
        assert len(model.requests) == 4
        # For real, it is used.
        assert [transcript.error for transcript in await shop.run()] == [None, None]
        assert len(model.requests) == 8
    finally:
        server.kill()
        await server.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def test_a_server_of_which_nothing_is_recorded_is_not_asked_again(
    model: ScriptedServer, tmp_path: Path, store: Store
) -> None:
    """It may have its keys from elsewhere, as a container has."""
    shop = Shop(tmp_path, store, STANDARD.replace("answer(prompt)", "'It is shipped.'"))
    await shop.run()
    change = await shop.check()
    assert (change.needs_model, change.requests, change.execution) == (2, 0, "")


@pytest.mark.parametrize(
    ("header", "address"),
    [
        ("token http://127.0.0.1:1/a", "http://127.0.0.1:1/a"),
        (None, ""),
        ("", ""),
        ("token", ""),
        ("other http://127.0.0.1:1/a", ""),
        ("token https://elsewhere.example/a", ""),
        ("http://127.0.0.1:1/a", ""),
    ],
)
def test_only_the_header_of_who_started_the_server_leads_anywhere(header: str | None, address: str) -> None:
    assert _Requests("token", python_http_clients.of_request)._in(header) == address


def test_only_servers_of_this_machine_are_watched(tmp_path: Path, store: Store) -> None:
    shop = Shop(tmp_path, store, STANDARD)
    suite = tmp_path / "shop.suite.yaml"
    assert len(recorded_runs(store, shop.plan().runs).missing) == 2
    suite.write_text(
        suite.read_text("utf-8").replace('url: "http://127.0.0.1:', 'url: "http://shop.example:', 2), "utf-8"
    )
    assert not recorded_runs(store, shop.plan().runs).missing


def test_folders_of_tools_and_of_what_servers_write_are_not_watched(tmp_path: Path) -> None:
    for name in ("app/prompts", ".next/server", ".venv/lib", "node_modules/ai", "app/.cache"):
        (tmp_path / name).mkdir(parents=True)
    assert folders_of([tmp_path], []) == {tmp_path, tmp_path / "app", tmp_path / "app/prompts"}
    # What an agent is known to have read is watched wherever it is.
    read = tmp_path / ".next/server/prompt.txt"
    read.touch()
    assert folders_of([], [str(read)]) == {read.parent}


def test_an_answer_that_is_left_unfinished_is_closed_quietly() -> None:
    """As when a server ends: another context closes it."""

    @types.coroutine
    def waits() -> Generator[None, None, None]:
        yield

    address = python_http_clients.of_request
    answering = _Requests("token", address)._answered("token http://127.0.0.1:1/a", waits())
    contextvars.copy_context().run(answering.send, None)
    answering.close()
    assert address.get() == ""
