"""Ports on loopback that do not speak the HTTP that they are asked in, byte for byte; and a SOCKS proxy."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def port(
    answer: bytes, *, first: bool = False, tls: ssl.SSLContext | None = None, asked: list[bytes] | None = None
) -> AsyncIterator[int]:
    """A port that sends these bytes to whoever asks, or (`first`) before anybody asked, and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            if first:
                writer.write(answer)
                await writer.drain()
            got = await reader.readuntil(b"\r\n\r\n")
            if asked is not None:
                asked.append(got)
            if not first:
                writer.write(answer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def socks_proxy(to: int, asked: list[bytes]) -> AsyncIterator[int]:
    """A SOCKS5 proxy without a password, which leads every request to one port of this machine."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            _, count = await reader.readexactly(2)
            await reader.readexactly(count)
            writer.write(b"\x05\x00")
            _, _, _, kind = await reader.readexactly(4)
            length = (await reader.readexactly(1))[0] if kind == 3 else 4
            asked.append(await reader.readexactly(length))
            await reader.readexactly(2)
            writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
            inner, outer = await asyncio.open_connection("127.0.0.1", to)
            await asyncio.gather(_pass(reader, outer), _pass(inner, writer))

    async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        target.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
