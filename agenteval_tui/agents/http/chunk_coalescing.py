"""Streams of many small pieces, gathered: each HTTP chunk costs the parser and the client what a large one does.

Servers send a token a chunk. 500 streams of 50 tokens a second are 25,000 chunks, more than a core can take apart one
by one. So what a connection has received is put together to one chunk before the HTTP parser sees it, and where many
streams are open at once, a connection is read the less often the more they are. With a few streams nothing waits.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

A_STREAM_S = 0.0004
"""With n streams open, each is read every n times this many seconds..."""
LONGEST_S = 0.2
SHORTEST_S = 0.01
"""... but at least this often; a shorter wait is skipped."""

_LONGEST_HEAD = 100_000
_LONGEST_BEGINNING = 200  # bytes of what is not HTTP that are kept
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r\n]*\bchunked[ \t]*\r\n", re.IGNORECASE)
_REQUEST = re.compile(rb"[A-Z]+ \S+ HTTP/1\.1\r\n")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")


class NoAnswerBytesError(httpcore.RemoteProtocolError):
    """The connection closed before the first byte of an answer. `tunnel`: the client asked a proxy for a tunnel."""

    def __init__(self, tunnel: bool) -> None:
        super().__init__("closed without an answer")
        self.tunnel = tunnel


class NotHttpError(httpcore.RemoteProtocolError):
    """The response is not HTTP. `head`: its first bytes; `tunnel`: the client asked a proxy for a tunnel."""

    def __init__(self, head: bytes, tunnel: bool) -> None:
        super().__init__("not HTTP")
        self.head = head
        self.tunnel = tunnel


class Gatherer:
    """Reads the bytes of a connection's responses and returns the same responses in fewer chunks.

    What it does not understand it passes on unchanged: the parser judges that. `streaming`: in the middle of a chunked
    body.
    """

    def __init__(self) -> None:
        self.streaming = False
        self._head: bytearray | None = bytearray()  # None: what comes is passed on
        self._rest = b""  # of a chunk's frame, cut by the network
        self._left = 0  # bytes of the current chunk that are still to come

    def asked(self, *, begins: bool = False) -> None:
        """A request was sent: what comes next is a new response. `begins`: this was its first part."""
        # A request with a body is written in parts, and the response may begin before the last of them.
        # What has come of its head must stay, then.
        if not self.streaming and (begins or self._head is None):
            self._head = bytearray()

    def feed(self, data: bytes) -> bytes:
        """What the parser shall see of it; may be empty where more is needed."""
        if self.streaming:
            return self._gathered(data)
        if self._head is None:
            return data
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        # The head goes to the parser as it comes: only what follows it can be changed.
        if end < 0:
            if len(self._head) > _LONGEST_HEAD:
                self._head = None
            return data
        head = bytes(self._head[: end + 4])
        body = bytes(self._head[end + 4 :])
        self._head = None
        if head[9:10] == b"1":  # 100 Continue and its like: the response itself is still to come
            self._head = bytearray()
            passed = data[: len(data) - len(body)]
            return passed + (self.feed(body) if body else b"")
        # A body with a length costs the parser one step however it comes; only chunks are many.
        if _CHUNKED.search(head[: end + 2]) is None:
            return data
        self.streaming, self._rest, self._left = True, b"", 0
        return data[: len(data) - len(body)] + self._gathered(body)

    def _gathered(self, data: bytes) -> bytes:
        data = self._rest + data
        parts: list[bytes] = []
        at, size = 0, len(data)
        while True:
            # `_left` counts the line end behind the chunk, too.
            if self._left > 2:
                piece = data[at : at + self._left - 2]
                parts.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if self._left > 2:
                    break
            if self._left:
                # The line end behind the chunk.
                if size - at < 2:
                    break
                if data[at : at + 2] != b"\r\n":
                    return self._as_it_is(parts, data[at:])
                at, self._left = at + 2, 0
            match = _SIZE.match(data, at)
            # Either the size is cut by the network, or this is no chunk, and the parser is to say so.
            if match is None:
                if size - at > 200 or b"\n" in data[at:]:
                    return self._as_it_is(parts, data[at:])
                break
            length = int(match[1], 16)
            # The last chunk, with what may follow it.
            if length == 0:
                return self._as_it_is(parts, data[at:])
            at, self._left = match.end(), length + 2
        self._rest = data[at:]
        return _chunk(parts)

    def _as_it_is(self, parts: Iterable[bytes], rest: bytes) -> bytes:
        """The body's end (or something invalid): the parser gets it unchanged."""
        self.streaming = False
        return _chunk(parts) + rest


def _chunk(parts: Iterable[bytes]) -> bytes:
    data = b"".join(parts)
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


class _Stream(httpcore.AsyncNetworkStream):
    """A connection whose chunks are gathered."""

    open = 0
    """How many streams of this process are in the middle of a body."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._gatherer = Gatherer()
        self._counted = False
        self._read_at = 0.0
        self._awaited = False  # a response whose first bytes have not come
        self._tunnel = False  # it is that of a proxy, asked for a tunnel

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - as httpcore has it
        gatherer = self._gatherer
        while True:
            # The first bytes of a body are never held up.
            if gatherer.streaming and self._read_at:
                wait = min(LONGEST_S, _Stream.open * A_STREAM_S)
                if wait >= SHORTEST_S:
                    wait -= asyncio.get_running_loop().time() - self._read_at
                    if wait > 0:
                        await asyncio.sleep(wait)
            data = await self._stream.read(max_bytes, timeout)
            self._read_at = asyncio.get_running_loop().time()
            if not data:
                self._count(False)
                if self._awaited:
                    raise NoAnswerBytesError(self._tunnel)
                return data
            if self._awaited:
                self._first(data)
            data = gatherer.feed(data)
            self._count(gatherer.streaming)
            if data:
                return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        # The exchange with a SOCKS proxy is not HTTP.
        begins = _REQUEST.match(buffer) is not None
        if begins:
            self._awaited, self._tunnel = True, buffer.startswith(b"CONNECT ")
        self._gatherer.asked(begins=begins)
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        self._count(False)
        await self._stream.aclose()

    async def start_tls(self, *arguments: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(*arguments, **options))

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)

    def _first(self, data: bytes) -> None:
        """Look at how a response begins. Raises `NotHttpError`; the parser would only say that its line is illegal."""
        self._awaited = False
        began = data.lstrip(b"\r\n")
        if began and not began.startswith(b"HTTP/"[: len(began)]):
            raise NotHttpError(data[:_LONGEST_BEGINNING], self._tunnel)

    def _count(self, streaming: bool) -> None:
        if streaming != self._counted:
            self._counted = streaming
            _Stream.open += 1 if streaming else -1


class _Backend(httpcore.AsyncNetworkBackend):
    def __init__(self, backend: httpcore.AsyncNetworkBackend) -> None:
        self._backend = backend

    async def connect_tcp(self, *arguments: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._backend.connect_tcp(*arguments, **options))

    async def connect_unix_socket(self, *arguments: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._backend.connect_unix_socket(*arguments, **options))

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


class GatheringTransport(httpx.AsyncHTTPTransport):
    """The transport of httpx, on connections that gather.

    httpx offers no way to name the backend of its connection pool, httpcore does: what it keeps is replaced. Where a
    new version keeps it elsewhere, connections are as they always were (and a test says so).
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        pool: Any = self._pool
        backend = getattr(pool, "_network_backend", None)
        if isinstance(backend, httpcore.AsyncNetworkBackend):
            pool._network_backend = _Backend(backend)
