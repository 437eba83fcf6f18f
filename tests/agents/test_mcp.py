"""Tools of MCP servers: somebody else's servers over stdio and HTTP, and servers that do not do their part."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import npm_mcp
import pytest
from programs import lives, script, until
from scripted import Answer, ScriptedServer

from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.tools import mcp_package
from agenteval_tui.agents.tools.mcp import McpServer, ToolHost
from agenteval_tui.agents.tools.options import McpServerOptions
from agenteval_tui.agents.tools.toolset import Toolbox, make_toolbox
from agenteval_tui.core.errors import AgentevalError

pytestmark = pytest.mark.xdist_group("mcp")  # half a second to import: in one worker

ALLOWED = permission_for((), everything=True)


# A server with a process beside it, which does as its tools are called.
SERVER = r"""
import json, os, subprocess, sys, time
child = subprocess.Popen(["sleep", "600"])
if "silent" in sys.argv: time.sleep(600)
if "falls" in sys.argv: sys.exit("no license")
if "unended" in sys.argv: print("x" * 5_000_000, end="", flush=True); time.sleep(600)
if "chatty" in sys.argv: print("Server started!", flush=True)
tools = [{"name": name, "inputSchema": {"type": "object"}} for name in
         ("pids", "dies", "hangs", "refuses", "fails", "data", "link", "big", "env", "half",
          *(("nonsense", "deep", "garbage", "unended") if "odd" in sys.argv else ()))]
def answer(number, **more): print(json.dumps({"jsonrpc": "2.0", "id": number, **more}), flush=True)
def said(text, **more): return {"content": [{"type": "text", "text": text}], **more}
for line in sys.stdin:
    asked = json.loads(line)
    number, method = asked.get("id"), asked["method"]
    if number is None: continue
    if method == "initialize":
        answer(number, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                               "serverInfo": {"name": "ours", "version": "1"}})
    elif method == "tools/list":
        at = int(asked.get("params", {}).get("cursor") or 0)
        more = {"nextCursor": str(at + 5)} if at + 5 < len(tools) else {}
        answer(number, result={"tools": tools[at:at + 5], **more})
    elif method == "tools/call":
        name = asked["params"]["name"]
        if name == "pids": answer(number, result=said(f"{os.getpid()} {child.pid}"))
        if name == "dies": sys.exit("out of cheese")
        if name == "refuses": answer(number, error={"code": -32602, "message": "not with these arguments"})
        if name == "fails": answer(number, result=said("it broke", isError=True))
        if name == "data": answer(number, result={"content": [], "structuredContent": {"n": 1}})
        if name == "link": answer(number, result={"content": [
            {"type": "resource", "resource": {"uri": "x:y", "text": "inside"}},
            {"type": "resource_link", "uri": "x:z", "name": "z"}]})
        if name == "big": answer(number, result=said("x" * 1_500_000))
        if name == "nonsense": answer(number, result={"content": [{"type": "text", "text": {"a": 1}}]})
        nested = "[" * 50000 + "]" * 50000
        if name == "deep": print('{"jsonrpc": "2.0", "id": %d, "result": %s}' % (number, nested), flush=True)
        if name == "garbage": print("\\0\\xff{", flush=True); answer(number, result=3)
        if name == "unended": print("x" * 5_000_000, end="", flush=True); time.sleep(600)
        if name == "half": answer(number, result=said(asked["params"]["arguments"]["text"] + "\ud83d"))
        if name == "env": answer(number, result=said(json.dumps(sorted(os.environ))))
    else:
        answer(number, error={"code": -32601, "message": "no such method"})
"""


def box(folder: Path, server: dict[str, Any], *, host: ToolHost | None = None, timeout: float = 60) -> Toolbox:
    env = {**os.environ, "SOME_API_KEY": "secret-12345"}
    return make_toolbox([{"mcp": server, "timeout": timeout}], {}, folder, env=env, host=host, permission=ALLOWED)


def ours(folder: Path, *words: str, **more: Any) -> dict[str, Any]:
    return {"command": [*script(folder, SERVER, "server.py"), *words], **more}


async def pids(tools: Toolbox) -> list[int]:
    return [int(one) for one in (await tools.call("pids", "{}")).text.split()]


async def gone(*processes: int) -> None:
    await until(lambda: not any(lives(pid) for pid in processes), "the end of the server and its child")


@pytest.fixture(scope="module")
def everything() -> list[str]:
    try:
        return [*npm_mcp.server("mcp-server-everything"), "stdio"]
    except npm_mcp.NotAvailable as error:
        pytest.skip(str(error))


async def test_the_reference_server(everything: list[str], tmp_path: Path) -> None:
    async with box(
        tmp_path, {"command": everything, "prefix": "all_", "only": ["echo", "get-sum", "get-env"]}
    ) as tools:
        specs = {spec.name: spec for spec in tools.specs()}
        assert list(specs) == ["all_echo", "all_get-env", "all_get-sum"]
        assert specs["all_echo"].parameters["required"] == ["message"]
        outcomes = await asyncio.gather(
            *(tools.call("all_get-sum", json.dumps({"a": n, "b": 1})) for n in range(20)),
        )
        assert [one.text for one in outcomes] == [f"The sum of {n} and 1 is {n + 1}." for n in range(20)]
        wrong = await tools.call("all_echo", '{"mesage": 1}')
        assert wrong.error
        assert "Invalid arguments for tool echo" in wrong.text
        assert "SOME_API_KEY" not in (await tools.call("all_get-env", "{}")).text


async def test_the_reference_server_for_files(tmp_path: Path) -> None:
    try:
        command = [*npm_mcp.server("mcp-server-filesystem"), "."]
    except npm_mcp.NotAvailable as error:
        pytest.skip(str(error))
    (tmp_path / "a.txt").write_text("grüß ✓")
    async with box(tmp_path, {"command": command}) as tools:
        assert (await tools.call("read_text_file", '{"path": "a.txt"}')).text == "grüß ✓"
        outside = await tools.call("read_text_file", '{"path": "/etc/passwd"}')
        assert outside.error
        assert "Access denied" in outside.text


async def test_what_a_server_says(tmp_path: Path) -> None:
    async with box(tmp_path, ours(tmp_path, "chatty")) as tools:
        assert len(tools.specs()) == 10  # on two pages
        assert await tools.call("refuses", "{}") == _failure("not with these arguments")
        assert await tools.call("fails", "{}") == _failure("it broke")
        assert (await tools.call("data", "{}")).text == '{"n": 1}'
        assert (await tools.call("link", "{}")).text == "inside\n[resource x:z]"
        assert await tools.call("big", "{}") == _failure("the tool's result is longer than 1,000,000 characters")
        # Texts that a model, or a server, cut in the middle of an emoji.
        assert (await tools.call("half", '{"text": "a \\ud83d, \\ud83d\\ude00"}')).text == "a \ufffd, \U0001f600\ufffd"
        names = json.loads((await tools.call("env", "{}")).text)
        assert "PATH" in names
        assert "SOME_API_KEY" not in names
        processes = await pids(tools)
    await gone(*processes)


def _failure(text: str) -> Any:
    from agenteval_tui.agents.base import ToolOutcome

    return ToolOutcome(text, error=True)


async def test_a_server_that_dies_in_a_call(tmp_path: Path) -> None:
    async with box(tmp_path, ours(tmp_path)) as tools:
        hanging, dying = await asyncio.gather(tools.call("hangs", "{}"), tools.call("dies", "{}"))
        assert "ended in the middle of the call: out of cheese" in dying.text
        assert hanging.error
        assert dying.error
        assert (await tools.call("fails", "{}")).error


async def test_a_call_that_takes_too_long_and_the_next(tmp_path: Path) -> None:
    async with box(tmp_path, ours(tmp_path), timeout=3) as tools:
        assert await tools.call("hangs", "{}") == _failure("the tool did not answer within 3 s")
        assert len(await pids(tools)) == 2


async def test_a_cancelled_run_leaves_no_server(tmp_path: Path) -> None:
    processes: list[int] = []

    async def run() -> None:
        async with box(tmp_path, ours(tmp_path)) as tools:
            processes.extend(await pids(tools))
            await tools.call("hangs", "{}")

    task = asyncio.create_task(run())
    await until(lambda: bool(processes), "the server's start")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(*processes)


async def test_a_cancel_that_comes_while_a_call_ends_is_not_lost(tmp_path: Path) -> None:
    options = McpServerOptions.model_validate(ours(tmp_path))
    server = McpServer("shop", options, tmp_path, os.environ, ALLOWED)
    await server.start()
    before = asyncio.all_tasks()
    task = asyncio.create_task(server.call("pids", {}))
    await asyncio.sleep(0)
    (call,) = asyncio.all_tasks() - before - {task}
    # The answer wakes the task first, which then waits for the end of the call: there the cancel arrives.
    loop = asyncio.get_running_loop()
    call.add_done_callback(lambda _: loop.call_soon(task.cancel))
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.close()


async def test_a_run_that_is_cancelled_while_its_server_starts(tmp_path: Path) -> None:
    (tmp_path / "note.py").write_text(
        "import os; open('pid', 'w').write(str(os.getpid())); import time; time.sleep(600)"
    )
    tools = box(tmp_path, {"command": [sys.executable, "note.py"]})
    task = asyncio.create_task(tools.__aenter__())
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "", "the server's start")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("words", "more", "said"),
    [
        (["silent"], {"start_timeout": 0.3}, "did not say within 0.3 s what tools it has"),
        (["falls"], {}, "ended with exit code 1: no license"),
        ([], {"only": ["absent"]}, "has no tool 'absent'"),
    ],
)
async def test_a_server_that_does_not_start(tmp_path: Path, words: list[str], more: dict[str, Any], said: str) -> None:
    with pytest.raises(AgentevalError) as caught:
        await box(tmp_path, ours(tmp_path, *words, **more)).__aenter__()
    assert said in str(caught.value)


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match="no program 'no-such-server' in PATH"):
        await box(tmp_path, {"command": "no-such-server x"}).__aenter__()


async def test_two_servers_with_the_same_tools_need_a_prefix(tmp_path: Path) -> None:
    servers = [{"mcp": ours(tmp_path)}, {"mcp": ours(tmp_path, "x", prefix="b_")}, {"mcp": ours(tmp_path, "y")}]
    with pytest.raises(AgentevalError, match="two tools are called 'pids'"):
        await make_toolbox(servers, {}, tmp_path, env=os.environ, permission=ALLOWED).__aenter__()
    async with make_toolbox(servers[:2], {}, tmp_path, env=os.environ, permission=ALLOWED) as tools:
        assert not set(await pids(tools)) & {int(n) for n in (await tools.call("b_pids", "{}")).text.split()}


async def test_runs_share_a_server_only_if_asked(tmp_path: Path) -> None:
    host = ToolHost()
    for shared in (False, True):
        seen = []
        for _ in range(2):
            async with box(tmp_path, ours(tmp_path, shared=shared), host=host) as tools:
                seen.append(await pids(tools))
        assert (seen[0] == seen[1], all(map(lives, seen[1]))) == (shared, shared)
    async with (
        box(tmp_path, ours(tmp_path, shared=True), host=host) as one,
        box(tmp_path, ours(tmp_path, shared=True), host=host) as other,
    ):
        assert await pids(one) == await pids(other) == seen[1]
        assert (await one.call("dies", "{}")).error
    async with box(tmp_path, ours(tmp_path, shared=True), host=host) as tools:
        again = await pids(tools)  # started anew
    await host.close()
    await gone(*seen[1], *again)


async def test_a_missing_package_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_package, "find_spec", lambda name: None)
    with pytest.raises(AgentevalError) as caught:
        box(tmp_path, {"command": "x"})
    assert "pip install 'agenteval-tui[mcp]'" in caught.value.fix


@pytest.fixture(scope="module")
async def mcp_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """aimock's server, over HTTP."""
    import socket

    from aimock import NotAvailable, installed

    try:
        program = installed() / "node_modules" / ".bin" / "aimock"
    except NotAvailable as error:
        pytest.skip(str(error))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("aimock")
    tool = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}, "result": "3"}
    (folder / "aimock.json").write_text(json.dumps({"mcp": {"tools": [tool]}}))
    words = ["node", str(program), "--config", str(folder / "aimock.json"), "--port", str(port), "--host", "127.0.0.1"]
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log)
    try:
        for _ in range(600):
            assert process.returncode is None, (folder / "log").read_text()
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


async def test_a_server_over_http(mcp_url: str, tmp_path: Path) -> None:
    async with box(tmp_path, {"url": mcp_url, "headers": {"x-team": "a"}}) as tools:
        assert [spec.name for spec in tools.specs()] == ["add"]
        outcomes = await asyncio.gather(*(tools.call("add", '{"a": 1}') for _ in range(5)))
        assert [(one.text, one.error) for one in outcomes] == [("3", False)] * 5


async def test_an_address_where_nobody_is(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError) as caught:
        await box(tmp_path, {"url": "http://127.0.0.1:9/mcp"}).__aenter__()
    assert "the MCP server http://127.0.0.1:9/mcp does not answer" in caught.value.what
    with pytest.raises(AgentevalError, match="the environment variable NO_SUCH_KEY is not set"):
        await box(tmp_path, {"url": "http://127.0.0.1:9/mcp", "api_key_env": "NO_SUCH_KEY"}).__aenter__()


async def test_the_key_is_sent_and_never_said(tmp_path: Path) -> None:
    async with ScriptedServer(lambda asked: Answer(401, f"bad key {asked.headers['authorization']}")) as server:
        with pytest.raises(AgentevalError) as caught:
            await box(tmp_path, {"url": f"{server.url}/mcp", "api_key_env": "SOME_API_KEY"}).__aenter__()
    assert {one.headers["authorization"] for one in server.requests} == {"Bearer secret-12345"}
    assert "secret-12345" not in str(caught.value)


async def test_a_line_that_is_too_long_is_said(tmp_path: Path) -> None:
    said = "sent a line of more than 4,000,000 bytes, and is not read any further"
    async with box(tmp_path, ours(tmp_path, "odd")) as tools:
        outcome = await tools.call("unended", "{}")
        assert outcome.error
        assert said in outcome.text
    with pytest.raises(AgentevalError) as caught:
        await box(tmp_path, ours(tmp_path, "unended")).__aenter__()
    assert said in caught.value.what


@pytest.mark.parametrize("name", ["nonsense", "deep", "garbage"])
async def test_an_answer_that_is_none_is_a_failure_in_a_line_without_a_traceback(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with box(tmp_path, ours(tmp_path, "odd"), timeout=2) as tools:
        outcome = await tools.call(name, "{}")
    assert outcome.error
    assert "\n" not in outcome.text
    assert "Traceback" not in outcome.text + "".join(capfd.readouterr())
