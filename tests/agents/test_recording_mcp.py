"""MCP servers of a recorded program: what passes through the shim, what is recorded, and what a recording answers."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import pytest

from agenteval_tui.agents.recording.cassette import Cassette, lines, parse
from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.mcp_config import shim_command, shimmed
from agenteval_tui.agents.recording.mcp_shim import Recorder, Shim
from agenteval_tui.agents.recording.playback import Playback
from agenteval_tui.agents.recording.providers import environment, mcp_address
from agenteval_tui.agents.recording.proxy import Proxy
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.cli.mcp_shim import server_name
from agenteval_tui.core.errors import AgentevalError

KEY = "planted-key-of-a-server-0001"
SERVER = """
import sys
import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
open("started", "a").write("x")
async def tools(context, params):
    return types.ListToolsResult(tools=[types.Tool(name="get_order", input_schema={"type": "object"})])
async def call(context, params):
    order = params.arguments["order"]
    text = types.TextContent(type="text", text=f"{order} is shipped")
    return types.CallToolResult(content=[text], is_error=order == "none")
server = Server("shop", on_list_tools=tools, on_call_tool=call)
async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
anyio.run(main)
"""


@asynccontextmanager
async def recording(session: Session) -> AsyncIterator[str]:
    """A proxy; the address of the run that it records."""
    proxy = Proxy({})
    await proxy.start()
    try:
        yield proxy.open(session)
    finally:
        await proxy.close()


async def test_the_packages_client_and_server_are_recorded_and_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    monkeypatch.setenv("SHOP_API_KEY", KEY)
    words = [sys.executable, "server.py"]
    path = os.environ["PATH"]

    async def use(session: Session, *orders: str) -> list[str]:
        said = []
        async with recording(session) as base:
            # The package's client gives a server PATH, and not our variable.
            monkeypatch.setenv("PATH", environment(base, {}, {"PATH": path})["PATH"])
            command, *arguments = shim_command(words, "shop")
            env = {"SHOP_API_KEY": KEY, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
            started = StdioServerParameters(command=command, args=arguments, env=env, cwd=tmp_path)
            async with stdio_client(started, sys.__stderr__) as (read, write), ClientSession(read, write) as client:
                await client.initialize()
                said += [one.name for one in (await client.list_tools()).tools]
                for order in orders:
                    try:
                        found = await client.call_tool("get_order", {"order": order})
                        said.append(f"{found.content[0].text} {found.is_error}")  # type: ignore[union-attr]
                    except Exception as error:
                        said.append(str(error))
        return said

    first = Session()
    whole = ["get_order", "W1 is shipped False", "none is shipped True"]
    assert await use(first, "W1", "none") == whole
    text = "".join(lines(Cassette(first.exchanges())))
    assert [one.question.title for one in first.exchanges()] == [
        "initialize mcp/shop", "tools/list mcp/shop", "tools/call mcp/shop/get_order", "tools/call mcp/shop/get_order"
    ]  # fmt: skip
    again = Session(answers=Playback(parse(text, "c")))
    *same, missed = await use(again, "W1", "none", "W2")
    assert same == whole
    assert 'arguments.order: recorded "W1", now "W2"' in missed
    assert (tmp_path / "started").read_text() == "x"  # nobody started it for the replay
    assert [(one.arguments, one.result, one.status) for one in transcript_of(again.exchanges()).tool_calls] == [
        ({"order": "W1"}, "W1 is shipped", "ok"), ({"order": "none"}, "none is shipped", "error")
    ]  # fmt: skip


class Pipes:
    """A server in this process, for a shim: it answers each line with what `answer` says."""

    def __init__(self, answer: Callable[[bytes], list[bytes]]) -> None:
        self.got: list[bytes] = []
        out_of_server, into_program = os.pipe()
        from_program, into_server = os.pipe()
        self.stdin = os.fdopen(into_server, "wb")
        self.stdout = os.fdopen(out_of_server, "rb")
        self._in, self._out = os.fdopen(from_program, "rb"), os.fdopen(into_program, "wb", buffering=0)
        self._answer = answer
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for line in iter(self._in.readline, b""):
            self.got.append(line)
            for said in self._answer(line):
                self._out.write(said)
        self._out.close()

    def wait(self) -> int:
        self._thread.join()
        return 5

    def terminate(self) -> None: ...


@contextmanager
def shim(server: Callable[[], Any], base: str) -> Iterator[tuple[BinaryIO, BinaryIO, list[int]]]:
    """A shim in a thread: what the program writes to, what it reads, and the exit codes."""
    inside, write = os.pipe()
    read, outside = os.pipe()
    codes: list[int] = []
    made = Shim(server, Recorder(f"{base}/mcp" if base else "", "shop", (KEY,)), os.fdopen(inside, "rb"),
                os.fdopen(outside, "wb"), lambda code: None)  # fmt: skip
    thread = threading.Thread(target=lambda: codes.append(made.run()), daemon=True)
    thread.start()
    with os.fdopen(write, "wb", buffering=0) as program, os.fdopen(read, "rb") as answers:
        yield program, answers, codes
        program.close()
        thread.join(100)
    assert not thread.is_alive()


def rpc(number: object, method: str, **params: Any) -> bytes:
    return (json.dumps({"id": number, "method": method, "params": params, "jsonrpc": "2.0"}) + "\n").encode()


def answered(line: bytes) -> list[bytes]:
    """What a server says: a notification, a request of its own, then the answer, each in its own spelling."""
    asked = json.loads(line) if line.startswith((b"{", b'[{"')) else {}
    if isinstance(asked, list):
        return [b"[%s]\n" % b",".join(answered(json.dumps(one).encode())[1].strip() for one in asked)]
    if asked.get("id") is None:
        return []
    said = f'{{ "result":{{"content":[{{"type":"text","text":"{asked["method"]} {KEY}"}}]}},'
    own = b'{"method":"roots/list", "id":%s}\r\n' % json.dumps(asked["id"]).encode()
    return [own, f'{said}  "id" : {json.dumps(asked["id"])}}}\n'.encode()]


async def through(
    server: Callable[[], Any], base: str, sent: list[bytes], expected: int
) -> tuple[list[bytes], list[int]]:
    """What the program hears, that many lines, when it says these."""

    def speak() -> tuple[list[bytes], list[int]]:
        heard = []
        with shim(server, base) as (program, answers, codes):
            for line in sent:
                program.write(line)
            for _ in range(expected):
                heard.append(answers.readline())
        return heard, codes

    return await asyncio.to_thread(speak)


async def test_everything_passes_byte_for_byte_and_requests_are_recorded_without_keys() -> None:
    odd = [b"\xff not JSON\r\n", b"[1, 2]\n", b'{"method": "notifications/x"}\n', b"[" * 5000 + b"\n"]
    sent = [
        rpc("a", "initialize"),
        rpc(1, "tools/call", name="get", arguments={"key": KEY}, _meta={"progressToken": 7}),
    ]
    server = Pipes(answered)
    session = Session()
    async with recording(session) as base:
        heard, codes = await through(lambda: server, base, [*sent, *odd, b"no end"], 4)
    assert heard == [line for one in sent for line in answered(one)]
    assert server.got == [*sent, *odd, b"no end"]
    assert codes == [5]
    first, call = session.exchanges()
    assert (first.question.title, first.answer.body) == (
        "initialize mcp/shop", {"result": {"content": [{"type": "text", "text": "initialize ***"}]}}
    )  # fmt: skip
    assert call.question.body == {"arguments": {"key": "***"}}
    assert KEY not in "".join(lines(Cassette(session.exchanges())))


async def test_half_of_a_surrogate_pair_is_recorded_and_replayed_and_what_is_nested_too_deep_passes_untold() -> None:
    def cut(line: bytes) -> list[bytes]:
        """A server that cuts a text in the middle of an emoji, as programs that count UTF-16 do."""
        number = json.loads(line)["id"]
        return [b'{"id": %d, "result": {"content": [{"type": "text", "text": "ok \\ud83d"}]}}\n' % number]

    half = [rpc(number, "tools/call", name="get", arguments={"text": "a \ud83d", "n": number}) for number in (1, 2)]
    deep = b'{"id": 3, "method": "tools/call", "params": {"name": "get", "arguments": %s}}\n' % (
        b"[" * 985 + b"]" * 985
    )
    last = rpc(4, "tools/call", name="get", arguments={})
    session = Session()
    async with recording(session) as base:
        heard, _ = await through(lambda: Pipes(cut), base, [*half, deep, last], 4)
    told = [one.question.body["arguments"] for one in session.exchanges()]
    assert told[:2] == [{"text": "a \ud83d", "n": 1}, {"text": "a \ud83d", "n": 2}]
    assert told[-1] == {}
    again = Session(answers=Playback(parse("".join(lines(Cassette(session.exchanges()))), "c")))
    async with recording(again) as base:
        replayed, _ = await through(lambda: Pipes(cut), base, half, 2)
    assert [json.loads(one)["result"] for one in replayed] == [json.loads(one)["result"] for one in heard[:2]]
    assert len(again.exchanges()) == 2
    assert not any(one.live for one in again.exchanges())


async def test_without_a_recording_it_only_passes_on() -> None:
    sent = [rpc(1, "initialize"), rpc(2, "ping")]
    for base in ("", "http://127.0.0.1:9/gone"):
        heard, _ = await through(lambda: Pipes(answered), base, sent, 4)
        assert heard == [line for one in sent for line in answered(one)]


async def test_a_recording_that_does_not_answer_for_a_while_goes_on_and_says_what_it_missed() -> None:
    session, first = Session(), True
    proxy = Proxy({})
    await proxy.start()
    base = urlsplit(proxy.open(session))

    async def front(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal first
        if first:  # it takes the request, and never answers
            first = False
            await reader.read()
        else:
            other, behind = await asyncio.open_connection(base.hostname, base.port)
            await asyncio.gather(pump(reader, behind), pump(other, writer))
        writer.close()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(front, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    recorder = Recorder(f"http://127.0.0.1:{port}{base.path}/mcp", "shop", patience_s=0.2)
    try:
        assert (await asyncio.to_thread(recorder.asked, "ping", None)).request is None
        what = await asyncio.to_thread(recorder.asked, "tools/list", None)
        assert what.request == 0
        await asyncio.to_thread(recorder.answered, 0, {"result": {}})
        assert [one.question.title for one in session.exchanges()] == ["tools/list mcp/shop"]
        assert [note.description for note in session.notes] == [
            "not recorded, because the recording did not answer in time: 1 message of shop"
        ]
    finally:
        server.close()
        await proxy.close()


async def test_from_the_first_other_request_on_the_server_is_asked_and_introduced_to_the_program() -> None:
    recorded = Session()
    begin = [rpc(1, "initialize", clientInfo={"name": "a"}), b'{"method": "notifications/initialized"}\n']
    get = [rpc(number, "tools/call", name="get", arguments={"n": number}) for number in (2, 3, 4)]
    async with recording(recorded) as base:
        await through(lambda: Pipes(answered), base, [*begin, *get[:2]], 6)
    server, started = Pipes(answered), []
    tape = Playback(Cassette(recorded.exchanges()))
    session = Session(answers=tape, on_miss="live")

    def start() -> Any:
        started.append(session.missed_at)
        return server

    other = [rpc("x", "initialize", clientInfo={"name": "b"}), begin[1]]
    async with recording(session) as base:
        # A batch: what is recorded of it is answered, the rest is asked for.
        batch = b"[" + get[1].strip() + b"," + get[2].strip() + b"]\n"
        heard, _ = await through(start, base, [*other, get[0], b'{"method": "notifications/cancelled"}\n', batch], 5)
    assert [json.loads(one)["id"] for one in heard[:4]] == ["x", 2, 3, "x"]
    assert [one["id"] for one in json.loads(heard[4])] == [4]
    assert started == [3]
    assert server.got[:2] == other
    assert [one["id"] for one in json.loads(server.got[2])] == [4]
    assert session.went_live
    assert [one.live for one in session.exchanges()] == [False, False, False, True]


async def test_a_server_that_was_not_recorded_is_asked_though_the_rest_is_replayed() -> None:
    session = Session(answers=Playback(Cassette()))
    async with recording(session) as base:
        heard, _ = await through(lambda: Pipes(answered), base, [rpc(1, "initialize")], 2)
    assert heard == answered(rpc(1, "initialize"))
    assert not session.misses
    assert not session.went_live


async def test_nonsense_at_the_address_is_refused() -> None:
    import httpx

    async with recording(Session()) as base, httpx.AsyncClient(trust_env=False) as client:
        for body in (b"", b"{}", b'{"type": "request"}', b"[" * 5000):
            assert (await client.post(f"{base}/mcp", content=body)).status_code == 400
        assert (await client.post(f"{base}/mcp", content=b'{"type": "answer", "request": 9, "message": {}}')).is_success


def test_the_address_comes_in_a_variable_or_in_path() -> None:
    base = "http://127.0.0.1:4711/5ec"
    made = environment(base, {}, {"PATH": "/bin:/agenteval-recording/1/old"})
    assert made["PATH"] == "/bin:/agenteval-recording/4711/5ec"
    assert mcp_address(made) == mcp_address({"PATH": made["PATH"]}) == f"{base}/mcp"
    assert mcp_address({"PATH": "/bin"}) == mcp_address({"AGENTEVAL_MCP_RECORDING": "http://far/x"}) == ""
    assert mcp_address({"AGENTEVAL_MCP_RECORDING": "http://127.0.0.1:80@far/x"}) == ""
    assert mcp_address({"PATH": "/bin:/agenteval-recording/80@far/x"}) == ""


def test_a_configurations_servers_are_behind_shims_in_a_copy(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    before = {
        "mcpServers": {"shop": {"command": "uvx", "args": ["shop"], "env": {"A": "b"}}, "far": {"url": "http://x"}}
    }
    file.write_text(json.dumps(before))
    for words in (("agent", str(file)), ("agent", f"--mcp-config={file}")):
        with shimmed(file, words, tmp_path) as argv:
            copy = Path(argv[1].removeprefix("--mcp-config="))
            found = json.loads(copy.read_text())["mcpServers"]
            assert found["far"] == before["mcpServers"]["far"]
            assert [found["shop"]["command"], *found["shop"]["args"]][-7:] == [
                "record", "--mcp", "--server", "shop", "--", "uvx", "shop"
            ]  # fmt: skip
            assert found["shop"]["env"] == {"A": "b"}
        assert not copy.exists()
    assert json.loads(file.read_text()) == before
    for text, words, why in (
        (json.dumps(before), ("agent",), "no word of the program's command is"),
        ("// no", ("agent", str(file)), "not JSON"),
        ('{"mcpServers": {"a": {"url": "x"}}}', ("agent", str(file)), "a is asked over HTTP, which can't be recorded"),
        ('{"mcpServers": {"a": {"command": "x", "args": 7}}}', ("agent", str(file)), "no server that is a command"),
        ("[]", ("agent", str(file)), "no server that is a command"),
    ):
        file.write_text(text)
        with pytest.raises(AgentevalError, match=why), shimmed(file, words, tmp_path):
            pass


@pytest.mark.parametrize(
    "before",
    [
        ["agenteval", "record", "--mcp", "--"],
        ["uvx", "agenteval-tui", "record", "--mcp", "--server", "mine", "--"],
        shim_command([], "mine"),
    ],
)
def test_a_server_that_is_behind_a_shim_gets_no_second_one(tmp_path: Path, before: list[str]) -> None:
    # Each shim would tell of each call.
    file = tmp_path / "mcp.json"
    server = {"command": before[0], "args": [*before[1:], "uvx", "shop"]}
    file.write_text(json.dumps({"mcpServers": {"shop": server}}))
    with shimmed(file, ("agent", str(file)), tmp_path) as argv:
        assert json.loads(Path(argv[1]).read_text())["mcpServers"]["shop"] == server


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("uvx mcp-server-git@1.2 --repository .", "mcp-server-git"),
        ("npx -y @modelcontextprotocol/server-filesystem .", "server-filesystem"),
        ("python3.12 -m shop.server", "shop"),
        ("node", "node"),
    ],
)
def test_a_server_is_called_after_its_command(command: str, name: str) -> None:
    assert server_name(command.split()) == name
