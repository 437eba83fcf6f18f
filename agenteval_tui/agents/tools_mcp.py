"""Tools of MCP servers: which of a server's tools there are, and who owns the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, cast

from agenteval_tui.agents.interface import ToolSpec
from agenteval_tui.agents.shop.tools import ToolOutcome
from agenteval_tui.agents.tools_entries import McpServerOptions
from agenteval_tui.agents.tools_mcp_server import McpServer
from agenteval_tui.text.problems import AgentevalError


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
            server, specs = await self._host.server(json.dumps(self._options.model_dump(), sort_keys=True), self._make)
        else:
            self._server = server = self._make()
            specs = await server.start()
        only = self._options.only
        names = [spec.name for spec in specs]
        missing = [name for name in only or () if name not in names]
        if missing:
            raise AgentevalError(
                f"the MCP server {server.name} has no tool {missing[0]!r}", mend=f"it has {', '.join(names) or 'none'}"
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


class Kept(Protocol):
    """Something that lives as long as a run."""

    def shut(self) -> None:
        """Give it back."""
        ...


Thing = TypeVar("Thing", bound=Kept)


class ToolHost:
    """What outlives one request of an agent: the servers that its runs share (`shared: true`), and what a run keeps
    for all of its turns. The agent owns it, and closes it when it is closed.

    The first run that needs a server starts it; one that fell is started again for the next run.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}
        self._servers: dict[str, tuple[McpServer, list[ToolSpec]]] = {}
        self._starting: dict[str, asyncio.Lock] = {}

    async def server(self, key: str, make: Callable[[], McpServer]) -> tuple[McpServer, list[ToolSpec]]:
        """The server of that name, started if it is not there. Raises `AgentevalError`."""
        async with self._starting.setdefault(key, asyncio.Lock()):
            known = self._servers.get(key)
            if known is not None and known[0].alive:
                return known
            if known is not None:
                await known[0].close()
            server = make()
            self._servers[key] = server, await server.start()
            return self._servers[key]

    def kept(self, run: str, turn: int, make: Callable[[], Thing]) -> Thing:
        """What the run keeps: new in its first turn (another attempt begins from the start), then the same."""
        known = self._kept.get(run)
        if known is not None and turn > 1:
            return cast(Thing, known)
        self.release(run)
        made = make()
        self._kept[run] = made
        return made

    def release(self, run: str) -> None:
        """The run is over: give back what it kept."""
        known = self._kept.pop(run, None)
        if known is not None:
            known.shut()

    async def close(self) -> None:
        """End all servers, and what runs kept."""
        for run in tuple(self._kept):
            self.release(run)
        servers = [server for server, _ in self._servers.values()]
        self._servers.clear()
        await asyncio.gather(*(server.close() for server in servers))
