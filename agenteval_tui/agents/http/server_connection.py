"""A connection to a small HTTP server of this program, on loopback: the requests that come, and how they are answered.

HTTP itself is h11's, which httpx stands on. What browsers send is refused by the name of the host: a page whose name
leads to this machine must not reach what listens here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlsplit

import h11
from msgspec import Struct

from agenteval_tui.agents.http.proxies import is_local

_HEAD = 64 * 1024
Headers = Iterable[tuple[bytes, bytes]]


class ServedRequest(Struct, frozen=True):
    """A request. `headers` by their names in small letters, of equal names the last; `sent`: all, as they came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    sent: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def path(self) -> str:
        """The target without its query."""
        return urlsplit(self.target).path

    @property
    def is_local(self) -> bool:
        """Whether it was sent to this machine by a name of it."""
        try:
            return is_local(urlsplit(f"//{self.headers.get('host', '')}").hostname or "")
        except ValueError:
            return False


class TooLargeError(Exception):
    """A request's body is larger than the server takes."""


class ServerConnection:
    """One client. `largest`: bytes of a body."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, largest: int) -> None:
        self._reader = reader
        self._writer = writer
        self._largest = largest
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD)
        self._began = False

    async def request(self) -> ServedRequest | None:
        """The next request; None: there is none any more.

        Raises `h11.RemoteProtocolError` for what is not HTTP, `TooLargeError`, and ConnectionError.
        """
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    await self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
                self._http.receive_data(await self._reader.read(65536))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > self._largest:
                    raise TooLargeError
            elif isinstance(event, h11.EndOfMessage):
                assert request is not None
                self._began = False
                headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers}
                return ServedRequest(
                    request.method.decode("latin-1"),
                    request.target.decode("latin-1"),
                    headers,
                    bytes(body),
                    tuple(request.headers),
                )
            else:  # the connection was closed, or is to speak another protocol
                return None

    def next(self) -> bool:
        """Whether another request may follow on this connection."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            return True
        return False

    async def answer(self, status: int, body: bytes, kind: str) -> None:
        """A whole answer."""
        headers = [(b"content-length", str(len(body)).encode())]
        if kind:
            headers.append((b"content-type", kind.encode("latin-1", "replace")))
        await self.begin(status, headers)
        await self.send(body)
        await self.end()

    async def begin(self, status: int, headers: Headers) -> None:
        """The head of an answer; its pieces follow with `send`, then `end`."""
        self._began = True
        await self._write(self._http.send(h11.Response(status_code=status, headers=list(headers))))

    async def send(self, data: bytes) -> None:
        """A piece of an answer."""
        if data:
            await self._write(self._http.send(h11.Data(data=data)))

    async def end(self) -> None:
        """The answer is complete."""
        await self._write(self._http.send(h11.EndOfMessage()))

    async def refuse(self, status: int, said: str) -> None:
        """An error of the server itself, after which the connection is closed; nothing where an answer has begun."""
        if self._began or self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        data = f"agenteval: {said}\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(data)).encode()),
                   (b"connection", b"close")]  # fmt: skip
        with suppress(ConnectionError, h11.LocalProtocolError):
            await self.begin(status, headers)
            await self.send(data)
            await self.end()

    def abort(self) -> None:
        """Break the connection in the middle of an answer. Raises ConnectionAbortedError."""
        self._writer.transport.abort()
        raise ConnectionAbortedError

    def close(self) -> None:
        """No more answers."""
        self._writer.close()

    async def _write(self, data: bytes | None) -> None:
        if data:
            self._writer.write(data)
            await self._writer.drain()
