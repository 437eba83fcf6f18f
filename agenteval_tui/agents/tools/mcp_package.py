"""The package `mcp`, whose versions 1 and 2 are both in use: many frameworks work with only one. Where the two
differ is here, and results are as they are on the wire, which is the same for both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage


def is_installed() -> bool:
    """Whether there is one of the versions."""
    return find_spec("mcp") is not None


def _is_second() -> bool:
    return find_spec("mcp_types") is not None


class McpSession:
    """A connection to a server."""

    def __init__(self, client: Any, second: bool) -> None:
        self._client = client
        self._second = second

    async def list_tools(self, cursor: str | None) -> dict[str, Any]:
        """A page of the server's tools: a `ListToolsResult`. Raises `refusal()` and what else the package raises."""
        if self._second:
            return _on_the_wire(await self._client.list_tools(cursor=cursor))
        from mcp.types import PaginatedRequestParams

        page = None if cursor is None else PaginatedRequestParams(cursor=cursor)
        return _on_the_wire(await self._client.list_tools(params=page))

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a tool gives: a `CallToolResult`. Raises as `list_tools`."""
        return _on_the_wire(await self._client.call_tool(name, arguments))


@asynccontextmanager
async def connected(transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[McpSession]:
    """A session with the server behind a transport, after the greeting."""
    if _is_second():
        from mcp import Client

        # Where no tool is cached: each call is what the test asks about.
        async with Client(transport, cache=None) as client:
            yield McpSession(client, second=True)
        return
    from mcp import ClientSession

    async with transport as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        yield McpSession(session, second=False)


@asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str], connect_s: float) -> AsyncIterator[Any]:
    """The transport to an address, by streamable HTTP. An answer may take as long as it takes."""
    from mcp.client.streamable_http import streamable_http_client

    http = import_module("httpx2" if _is_second() else "httpx")
    async with (
        http.AsyncClient(headers=headers, timeout=http.Timeout(connect_s, read=None)) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


def message_of(line: bytes) -> SessionMessage:
    """What a transport gives for a line of a server. Raises ValueError if it isn't a message."""
    from mcp.shared.message import SessionMessage

    types: Any = import_module("mcp_types" if _is_second() else "mcp.types")
    if _is_second():
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    return SessionMessage(types.JSONRPCMessage.model_validate_json(line))


def refusal() -> Any:
    """The type of exception that a server's error is raised as; `error.message` has its words."""
    exceptions = import_module("mcp.shared.exceptions")
    return exceptions.MCPError if _is_second() else exceptions.McpError


def make_server(name: str, instructions: str, version: str) -> Any:
    """A server of tools. Version 1 of the package tells its own version in place of ours."""
    if _is_second():
        from mcp.server.mcpserver import MCPServer

        return MCPServer(name, instructions=instructions, version=version, log_level="ERROR")
    return import_module("mcp.server.fastmcp").FastMCP(name, instructions=instructions, log_level="ERROR")


def tool_error(message: str) -> Exception:
    """What a tool of such a server raises."""
    exceptions = import_module("mcp.server." + ("mcpserver" if _is_second() else "fastmcp") + ".exceptions")
    failure: Exception = exceptions.ToolError(message)
    return failure


def _on_the_wire(result: Any) -> dict[str, Any]:
    plain: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain
