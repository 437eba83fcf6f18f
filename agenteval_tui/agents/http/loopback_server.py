"""A small HTTP server of this program, on loopback: the requests that come, and how they are answered.

HTTP itself is h11's, which httpx stands on. What browsers send is refused by the name of the host: a page whose name
leads to this machine must not reach what listens here.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import h11
from msgspec import Struct

from agenteval_tui.agents.http.local_servers import closed, opened
from agenteval_tui.agents.http.proxies import is_local

log = logging.getLogger(__name__)

_HEAD = 64 * 1024
_READ_AT_ONCE = 64 * 1024
_DRAIN_BYTES, _DRAIN_SECONDS = 1_000_000_000, 20.0
"""How much of a request that is refused is read on, so that its client gets to the answer."""
Headers = Iterable[tuple[bytes, bytes]]


def why_not_listening(error: OSError | UnicodeError) -> str:
    """Why a server can't have its address, in the system's words: asyncio repeats the address in Python's.
    UnicodeError: a part of the host's name is empty, or too long."""
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "no address of this machine has this name"
    number = error.errno or 0
    return os.strerror(number).lower() if number in errno.errorcode else str(error)


def require_host(host: str) -> str:
    """The name of a host, which must not be empty: asyncio would listen on all addresses. Raises UnicodeError."""
    if not host.strip():
        raise UnicodeError
    return host


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


class _TooLargeError(Exception):
    """A request's body is larger than the server takes."""


class LoopbackServer:
    """Gives each request to `answer`, which answers it on its connection. `largest`: bytes of a request's body.

    `unread` is told why a request could not be read, or what broke while it was answered.
    """

    def __init__(
        self,
        answer: Callable[[ServerConnection, ServedRequest], Awaitable[None]],
        largest: int,
        unread: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._answer = answer
        self._largest = largest
        self._unread = unread
        self._clients: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self._own: list[tuple[str, int]] = []

    async def start(self, host: str, port: int, listening: socket.socket | None = None) -> None:
        """Listen from now on; port 0 takes a free one. Raises OSError when the port can't be had. `listening`: a socket
        that listens already."""
        try:
            if listening is not None:
                self._server = await asyncio.start_server(self._connected, sock=listening)
            else:
                self._server = await asyncio.start_server(self._connected, require_host(host), port)
        except (OSError, UnicodeError) as error:
            raise OSError(getattr(error, "errno", None), why_not_listening(error)) from None
        # Noted, so that no request of ours is sent to a proxy of the network for it.
        self._own = [socket.getsockname()[:2] for socket in self._server.sockets]
        for name, number in self._own:
            opened(name, number)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._name[1])

    @property
    def address(self) -> str:
        """The server as the beginning of a URL."""
        host, port = self._name[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def close(self) -> None:
        """Stop listening, and end what is in flight."""
        for name, number in self._own:
            closed(name, number)
        self._own = []
        # Without `wait_closed`: that would wait for clients, which are ended below.
        if self._server is not None:
            self._server.close()
        # After the server is closed, so that no new client comes.
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    @property
    def _name(self) -> tuple[str, int]:
        assert self._server is not None
        name: tuple[str, int] = self._server.sockets[0].getsockname()
        return name

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(ServerConnection(reader, writer, self._largest)))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve(self, client: ServerConnection) -> None:
        try:
            while (request := await client.request()) is not None:
                await self._answer(client, request)
                if not client.next():
                    break
        except h11.RemoteProtocolError as error:
            # h11 says more, with the bytes as Python writes them.
            self._unread("not HTTP")
            await client.refuse(error.error_status_hint or 400, "this is not HTTP that can be read")
        except _TooLargeError:
            message = f"a request may have {self._largest // 1_000_000} MB"
            self._unread(message)
            await client.refuse(413, message)
        except (ConnectionError, h11.LocalProtocolError):
            pass  # the client went away
        except Exception as error:
            log.exception("a request broke its server")
            self._unread(f"{type(error).__name__}: {error}")
            await client.refuse(500, "this request broke the server; the error is in its log")
        finally:
            client.close()


class ServerConnection:
    """One client. `largest`: bytes of a body."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, largest: int) -> None:
        self._reader = reader
        self._writer = writer
        self._largest = largest
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD)
        self._head = b""
        self._began = False

    async def request(self) -> ServedRequest | None:
        """The next request; None: there is none any more.

        Raises `h11.RemoteProtocolError` for what is not HTTP, `_TooLargeError`, and ConnectionError.
        """
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                # Such a client sends its body only when it is told to.
                if self._http.they_are_waiting_for_100_continue:
                    await self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
                self._http.receive_data(await self._reader.read(_READ_AT_ONCE))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > self._largest:
                    raise _TooLargeError
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
        # With a length, the client knows the end of it and can use the connection again.
        headers = [(b"content-length", str(len(body)).encode())]
        if kind:
            headers.append((b"content-type", kind.encode("latin-1", "replace")))
        await self.begin(status, headers, joined=True)
        await self.send(body)
        await self.end()

    async def begin(self, status: int, headers: Headers, *, joined: bool = False) -> None:
        """The head of an answer; its pieces follow with `send`, then `end`. `joined`: it goes with the first piece."""
        self._began = True
        head = self._http.send(h11.Response(status_code=status, headers=list(headers)))
        if joined:
            self._head = head or b""
        else:
            await self._write(head)

    async def send(self, data: bytes) -> None:
        """A piece of an answer."""
        if data:
            await self._write(self._http.send(h11.Data(data=data)))

    async def end(self) -> None:
        """The answer is complete."""
        await self._write(self._http.send(h11.EndOfMessage()))

    async def refuse(self, status: int, message: str) -> None:
        """An error of the server itself, after which the connection is closed; nothing where an answer has begun.

        What the client still sends is read first, up to a limit: many clients send all of a request before they read,
        and a connection that is closed before that is reset, its answer with it.
        """
        if self._began or self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        data = f"agenteval: {message}\n".encode()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(data)).encode()),
            (b"connection", b"close"),
        ]
        with suppress(ConnectionError, OSError, h11.LocalProtocolError):
            await self.begin(status, headers)
            await self.send(data)
            await self.end()
            if self._http.their_state is not h11.DONE:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_DRAIN_SECONDS):
                        await self._drain()

    async def _drain(self) -> None:
        # Some clients send on until they see that nobody listens.
        self._writer.write_eof()
        room = _DRAIN_BYTES
        while room > 0 and (data := await self._reader.read(min(room, _READ_AT_ONCE))):
            room -= len(data)

    def abort(self) -> None:
        """Break the connection in the middle of an answer. Raises ConnectionAbortedError."""
        self._writer.transport.abort()
        raise ConnectionAbortedError

    def close(self) -> None:
        """No more answers."""
        self._writer.close()

    async def _write(self, data: bytes | None) -> None:
        if data or self._head:
            data, self._head = self._head + (data or b""), b""
            self._writer.write(data)
            await self._writer.drain()
