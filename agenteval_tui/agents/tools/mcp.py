"""Tools of MCP servers: which of a server's tools there are, and who owns the server."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from agenteval_tui.agents.base import ToolOutcome, ToolSpec
from agenteval_tui.agents.permission import NOTHING, Permission
from agenteval_tui.agents.process.child_process import LineSplitter, Program, start
from agenteval_tui.agents.process.errors import exit_description, stderr_tail
from agenteval_tui.agents.process.python_secrets import without_secrets
from agenteval_tui.agents.process.python_tree import Lease
from agenteval_tui.agents.tools import mcp_package
from agenteval_tui.agents.tools.command import LONGEST
from agenteval_tui.agents.tools.options import McpServerOptions
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.core.storable import storable
from agenteval_tui.suites.command_words import argv_of
from agenteval_tui.suites.environment import key_from

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # of a surrogate pair, alone or not
_MOST_PAGES = 100
_MOST_TOOLS = 1000
_CLOSING_S = 3.0
_LONGEST_LINE = 4 * LONGEST
# The first six are what the client of the package `mcp` passes on; with the others `npx` and `uvx` reach the network.
_PASSED_ON = {
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "TZ",
    "TMPDIR",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
}
_PASSED_ON_BEGINNINGS = ("LC_", "XDG_", "NPM_CONFIG_", "UV_", "PIP_")


class McpTools:
    """The tools of one entry of a tools list. A server that is not shared lives as long as the run."""

    def __init__(
        self, make: Callable[[], McpServer], options: McpServerOptions, timeout_s: float, host: ToolHost | None
    ) -> None:
        self._make = make
        self._options = options
        self._timeout_s = timeout_s
        self._host = host if options.shared else None
        self._server: McpServer | None = None

    async def open(self) -> list[McpTool]:
        """The tools that the server has and the entry wants. Raises `AgentevalError`."""
        if self._host is not None:
            # Equal options are one server, in whatever list of tools they stand.
            server, specs = await self._host.server(json.dumps(self._options.model_dump(), sort_keys=True), self._make)
        else:
            self._server = server = self._make()
            specs = await server.start()
        only = self._options.only
        names = [spec.name for spec in specs]
        missing = [name for name in only or () if name not in names]
        if missing:
            raise AgentevalError(
                f"the MCP server {server.name} has no tool {missing[0]!r}", fix=f"it has {', '.join(names) or 'none'}"
            )
        prefix = self._options.prefix
        return [
            McpTool(ToolSpec(prefix + spec.name, spec.description, spec.parameters), server, spec.name, self._timeout_s)
            for spec in specs
            if only is None or spec.name in only
        ]

    async def close(self) -> None:
        """End the server, unless others use it too."""
        if self._server is not None:
            await self._server.close()


class McpTool:
    """One tool of a server; `own_name` is what the server calls it."""

    def __init__(self, spec: ToolSpec, server: McpServer, own_name: str, timeout_s: float) -> None:
        self.spec = spec
        self.timeout_s = timeout_s
        self._server = server
        self._own_name = own_name

    async def call(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """What the server says."""
        return await self._server.call(self._own_name, arguments)


class KeptForRun(Protocol):
    """Something that lives as long as a run."""

    def shut(self) -> None:
        """Give it back."""
        ...


Kept = TypeVar("Kept", bound=KeptForRun)


class ToolHost:
    """What outlives one request of an agent: the servers that its runs share (`shared: true`), the processes that
    Python functions are forked from, and what a run keeps for all of its turns. The agent owns it, and closes it when
    it is closed.

    The first run that needs a server starts it; one that fell is started again for the next run.
    """

    def __init__(self) -> None:
        self._kept: dict[str, KeptForRun] = {}
        self._servers: dict[str, tuple[McpServer, list[ToolSpec]]] = {}
        self._starting: dict[str, asyncio.Lock] = {}
        self._lease: Lease | None = None

    @property
    def lease(self) -> Lease:
        """The right to the processes that Python functions are forked from."""
        if self._lease is None:
            self._lease = Lease()
        return self._lease

    async def server(self, key: str, make: Callable[[], McpServer]) -> tuple[McpServer, list[ToolSpec]]:
        """The server of that name, started if it is not there. Raises `AgentevalError`."""
        # Runs that start at once must not start a server each.
        async with self._starting.setdefault(key, asyncio.Lock()):
            running = self._servers.get(key)
            if running is not None and running[0].alive:
                return running
            # It fell: what is left of it must not hold the port or the files that the next one needs.
            if running is not None:
                await running[0].close()
            server = make()
            self._servers[key] = server, await server.start()
            return self._servers[key]

    def kept(self, run: str, turn: int, make: Callable[[], Kept]) -> Kept:
        """What the run keeps: new in its first turn (another attempt begins from the start), then the same."""
        before = self._kept.get(run)
        if before is not None and turn > 1:
            return cast(Kept, before)
        self.release(run)
        kept = self._kept[run] = make()
        return kept

    def release(self, run: str) -> None:
        """The run is over: give back what it kept."""
        kept = self._kept.pop(run, None)
        if kept is not None:
            kept.shut()

    async def close(self) -> None:
        """End all servers and processes, and what runs kept."""
        if self._lease is not None:
            await self._lease.close()
            self._lease = None
        for run in tuple(self._kept):
            self.release(run)
        servers = [server for server, _ in self._servers.values()]
        self._servers.clear()
        await asyncio.gather(*(server.close() for server in servers))


# A connection to an MCP server: a program that speaks the protocol on its standard streams, or an address


def check_installed(server: str) -> None:
    """Raises `AgentevalError` when the package that speaks the protocol is not there."""
    if not mcp_package.is_installed():
        raise AgentevalError(f"the tools of {server} need the package mcp", fix="pip install 'agenteval-tui[mcp]'")


def server_environment(env: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """What a server's program gets: what programs need to run at all, and what was named for it. Other programs' keys
    are none of its business.
    """
    passed = {k: v for k, v in env.items() if k.upper() in _PASSED_ON or k.upper().startswith(_PASSED_ON_BEGINNINGS)}
    return {**passed, **more}


class McpServer:
    """A connection to one server, in a task of its own from beginning to end: the client's cancel scopes may not be
    entered in one task and left in another, and runs come and go in many.
    """

    def __init__(
        self,
        name: str,
        options: McpServerOptions,
        folder: Path,
        env: Mapping[str, str],
        permission: Permission = NOTHING,
    ) -> None:
        self.name = name
        self._options = options
        self._folder = folder
        self._env = env
        self._permission = permission
        self._key = ""
        self._client: Any = None
        self._program: Program | None = None
        self._specs: list[ToolSpec] = []
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._stop = asyncio.Event()
        self._unreadable = ""

    @property
    def alive(self) -> bool:
        """Whether it was started, and answers can still be read."""
        program = self._program
        going = self._client is not None and self._task is not None and not self._task.done()
        return going and not self._unreadable and (program is None or program.returncode is None)

    async def start(self) -> list[ToolSpec]:
        """What tools it has, by their own names. Raises `AgentevalError` when it does not say so in time."""
        self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(self._ready))
        try:
            async with asyncio.timeout(self._options.start_timeout):
                # The other task sets it: this one's time-out must not cancel it.
                await asyncio.shield(self._ready)
        except TimeoutError:
            # Before it is ended: what the program wrote until now may say what it waits for.
            failure = self._failed(f"did not say within {self._options.start_timeout:g} s what tools it has")
            await self.close()
            raise failure from None
        except BaseException:
            await self.close()
            raise
        return self._specs

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """What the server's tool gives; its failures, and the server's, are outcomes with `error`."""
        if self._client is None:
            return ToolOutcome(f"the MCP server {self.name} has ended", error=True)
        task = self._task
        assert task is not None
        call = asyncio.create_task(self._client.call_tool(name, _sendable(arguments)))
        try:
            # A server that falls gives no answer, and the library goes on waiting.
            await asyncio.wait([call, task], return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                return ToolOutcome(self._failed(self._unreadable or "ended in the middle of the call").what, error=True)
            text, error = _text_of(call.result())
        except mcp_package.refusal() as refused:
            if not self.alive:
                return ToolOutcome(self._failed(self._unreadable or "ended in the middle of the call").what, error=True)
            return ToolOutcome(self._clean(storable(str(refused.error.message))), error=True)
        except Exception as broken:  # the session is gone, or the answer is none: the library raises what it likes
            return ToolOutcome(self._failed(f"gave no answer: {_in_a_line(broken)}").what, error=True)
        finally:
            # Waited for: until it has ended, it uses the streams of the session, which may be closed next. Whoever
            # cancels this wait cancels the run: `wait` itself raises nothing of the call.
            call.cancel()
            await asyncio.wait([call], timeout=_CLOSING_S)
        if len(text) > LONGEST:
            return ToolOutcome(f"the tool's result is longer than {LONGEST:,} characters", error=True)
        return ToolOutcome(storable(text), error)

    async def close(self) -> None:
        """End the connection, and the program with all that it started."""
        self._stop.set()
        if self._task is None:
            return
        try:
            if self._client is not None:  # else it still starts, and would not notice
                await asyncio.wait([self._task], timeout=_CLOSING_S)
        finally:
            self._task.cancel()
            if self._program is not None:
                await self._program.end(0)
        await asyncio.wait([self._task], timeout=_CLOSING_S)

    async def _serve(self, ready: asyncio.Future[None]) -> None:
        try:
            _quiet()
            async with mcp_package.connected(self._transport()) as client:
                self._specs = await _specs(client)
                self._client = client
                if not ready.done():
                    ready.set_result(None)
                ended = asyncio.create_task(self._ended())
                stop = asyncio.create_task(self._stop.wait())
                try:
                    await asyncio.wait([ended, stop], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    ended.cancel()
                    stop.cancel()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(self._failed(self._why(error)))
                ready.exception()  # the caller may have stopped waiting
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._client = None

    async def _ended(self) -> None:
        """Returns when the server's program has ended."""
        if self._program is None:
            await asyncio.Event().wait()
        else:
            await self._program.exited()

    def _transport(self) -> AbstractAsyncContextManager[Any]:
        return self._program_streams() if self._options.command is not None else self._http_streams()

    @asynccontextmanager
    async def _http_streams(self) -> AsyncIterator[Any]:
        named = self._options.api_key_env
        if named:
            # The keyring may have to ask the user: nothing else waits for that.
            key = await asyncio.to_thread(key_from, named, self._env)
            self._key = key or ""
            if not self._key:
                raise AgentevalError(
                    f"the environment variable {named} is not set", fix=f"set {named} to the server's key"
                )
        headers = dict(self._options.headers)
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        # Each call has its own time-out.
        async with mcp_package.http_streams(str(self._options.url), headers, connect_s=30.0) as streams:
            yield streams

    @asynccontextmanager
    async def _program_streams(self) -> AsyncIterator[Any]:
        """The client's streams, connected to a program that is ended by its group."""
        import anyio

        argv = argv_of(self._options.command or [])
        env = server_environment(self._env, self._options.env)
        async with await start(argv, cwd=self._folder, env=env, permission=self._permission) as program:
            self._program = program
            # Without room: a client that does not read holds up the server, and nothing fills our memory.
            to_client, incoming = anyio.create_memory_object_stream[Any](0)
            outgoing, from_client = anyio.create_memory_object_stream[Any](0)
            tasks = [
                asyncio.create_task(self._read(program, to_client)),
                asyncio.create_task(_write(program, from_client)),
            ]
            try:
                yield incoming, outgoing
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for stream in (to_client, incoming, outgoing, from_client):
                    stream.close()
                program.close_stdin()  # how the protocol says goodbye; then it is told, then killed
                await program.exited(0.1)

    async def _read(self, program: Program, to_client: Any) -> None:
        lines, held = LineSplitter(), 0
        with suppress(Exception):  # the client is gone and no longer reads
            while data := await program.read():
                messages = lines.feed(data)
                # What has no end of line can't be given to the client, and must not grow for ever.
                held = 0 if messages else held + len(data)
                if held > _LONGEST_LINE:
                    self._unreadable = f"sent a line of more than {_LONGEST_LINE:,} bytes, and is not read any further"
                    break
                for line in messages:
                    if not line.strip():
                        continue
                    try:
                        message = mcp_package.message_of(_readable(line))
                    except (ValueError, RecursionError):
                        continue  # servers print to where they may not; a request that gets no answer has its time-out
                    await to_client.send(message)
        to_client.close()  # so that the client knows

    def _why(self, error: BaseException) -> str:
        program = self._program
        if self._unreadable:
            return self._unreadable
        if program is not None and program.returncode is not None:
            return exit_description(program.returncode)
        # The library's tasks are in groups, and so is what they raise.
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, AgentevalError):
            return f"can't be used: {error.what}" + (f" ({error.fix})" if error.fix else "")
        if isinstance(error, asyncio.CancelledError):
            return "was ended before it said what tools it has"
        return f"does not answer: {_in_a_line(error)}"

    def _failed(self, message: str) -> AgentevalError:
        words = ""
        if self._program is not None:
            words = stderr_tail(self._program.stderr, {**self._env, **self._options.env})
        message = f"the MCP server {self.name} {message}" + (f": {words}" if words else "")
        place = "its program" if self._options.command is not None else "its address"
        return AgentevalError(self._clean(message), fix=f"check {place} in the agent's `tools`")

    def _clean(self, text: str) -> str:
        if self._key:
            text = text.replace(self._key, "***")
        headers = {f"{name}_auth": value for name, value in self._options.headers.items()}
        return without_secrets(text, headers)


def _sendable(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without halves of surrogate pairs, which a model's JSON may have: the library can't send them."""
    text = json.dumps(dict(arguments), ensure_ascii=False)
    whole = storable(text)
    return dict(arguments) if whole is text else dict(json.loads(whole))


def _readable(line: bytes) -> bytes:
    """A line without them: the library takes an answer that has one for no answer at all. Raises ValueError for what is
    not JSON, RecursionError for what is nested too deep."""
    if _HALF.search(line) is None:
        return line
    return storable(json.dumps(json.loads(line), ensure_ascii=False)).encode()


def _in_a_line(error: BaseException) -> str:
    """What a library's exception says, in one line of at most 300 characters."""
    return on_one_line(str(error), 300) or type(error).__name__


def _quiet() -> None:
    """What a server does wrong, the library logs with a traceback; without a handler that would go to the terminal."""
    for name in ("mcp", "client", "httpx2"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


async def _specs(client: mcp_package.McpSession) -> list[ToolSpec]:
    tool_specs: list[ToolSpec] = []
    cursor: str | None = None
    # A server that gives a next page for ever must not hold up the run for ever.
    for _ in range(_MOST_PAGES):
        listed = await client.list_tools(cursor)
        tool_specs += [
            ToolSpec(tool["name"], tool.get("description") or tool.get("title") or "", tool["inputSchema"])
            for tool in listed["tools"]
        ]
        cursor = listed.get("nextCursor")
        if cursor is None or len(tool_specs) > _MOST_TOOLS:
            break
    return tool_specs[:_MOST_TOOLS]


def _text_of(result: Mapping[str, Any]) -> tuple[str, bool]:
    """A result's text and whether it is a failure. Content that is not text is named instead."""
    texts = []
    for part in result["content"]:
        kind, resource = part["type"], part.get("resource") or {}
        if kind == "text":
            texts.append(part["text"])
        elif "text" in resource:
            texts.append(resource["text"])
        elif kind == "resource_link":
            texts.append(f"[resource {part['uri']}]")
        else:
            data = part.get("data") or resource.get("blob") or ""
            mime = part.get("mimeType") or resource.get("mimeType") or kind
            texts.append(f"[{mime}, {len(data) * 3 // 4} bytes]")
    # The protocol wants such content as a text, too; not every server gives it.
    if not texts and "structuredContent" in result:
        texts.append(json.dumps(result["structuredContent"], ensure_ascii=False))
    return "\n".join(texts), bool(result.get("isError"))


async def _write(program: Program, from_client: Any) -> None:
    with suppress(Exception):
        async for message in from_client:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            program.write(text.encode("utf-8", "replace") + b"\n")
