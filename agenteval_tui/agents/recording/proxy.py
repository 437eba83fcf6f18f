"""A proxy on loopback: programs ask model servers through it, and it keeps what they ask and get.

A stream is passed on chunk by chunk as it comes. The program's key goes through in the request's headers, and is kept
nowhere. Each run of a program has an address of its own, with a secret in it.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qsl, urlsplit

import httpx

from agenteval_tui.agents.http.connection_pool import Connections
from agenteval_tui.agents.http.loopback_server import LoopbackServer, ServedRequest, ServerConnection
from agenteval_tui.agents.process.python_http_clients import SERVER, UNREACHED
from agenteval_tui.agents.recording.exchange import Answer, Question, events_of, is_stream, received
from agenteval_tui.agents.recording.keys import sent_keys
from agenteval_tui.agents.recording.mcp_requests import (
    Told,
    ToldAnswer,
    ToldMissed,
    WhatToDo,
    answer_of,
    from_wire,
    question_of,
    to_wire,
)
from agenteval_tui.agents.recording.protocols import error_answer
from agenteval_tui.agents.recording.providers import MCP, provider_of
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.agents.secrets import is_secret_name
from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.core.groups import grouped

HOST = "127.0.0.1"
LARGEST = 64_000_000
"""Bytes that are kept. A larger request is refused, a larger answer is passed on and not kept."""
_TIMEOUT = httpx.Timeout(None, connect=30.0)
_SHORT_TIMEOUT = httpx.Timeout(None, connect=5.0)  # then the program tries it
# Of one connection, not of the message.
_HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "content-length",
        "expect",
    )
)
_NOT_SENT = _HOP | {"accept-encoding", SERVER}
_UNREACHED = 502
_SHORT = 64_000  # bytes of an answer whose head needn't come before it
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)


class Proxy:
    """The proxy of one process. `open` gives a run of a program its address. `asides`: it steps aside where it can't
    reach a server, and the program sees what it would see without a proxy. `session_of` finds the run of an address
    that `open` has not given."""

    def __init__(
        self,
        upstreams: Mapping[str, str],
        *,
        asides: bool = False,
        session_of: Callable[[str], Session | None] = lambda secret: None,
    ) -> None:
        self._upstreams = upstreams
        self._asides = asides
        self._session_of = session_of
        self._connections = Connections()
        self._sessions: dict[str, Session] = {}
        self._unreached: set[str] = set()
        self._in_flight: dict[Session, set[asyncio.Task[object]]] = {}
        self._server = LoopbackServer(self._answer, LARGEST)
        self.alone: Session | None = None
        """The session of requests whose address has no secret, as of a program that was started before."""

    async def start(self, port: int = 0, listening: socket.socket | None = None) -> None:
        """Listen from now on, or with a socket that listens already. Raises `InfrastructureError` when the port can't
        be had."""
        try:
            await self._server.start(HOST, port, listening)
        except OSError as error:
            raise InfrastructureError(
                f"port {port} can't be had: {error.strerror}",
                where=HOST,
                fix="choose another with --port, or leave it out to get a free one",
            ) from None

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.port

    def open(self, session: Session) -> str:
        """The address for a run of a program: `providers.environment` leads the program to it."""
        # By it a run is told from others, and other programs of the machine can't write into its recording.
        secret = secrets.token_hex(8)
        self._sessions[secret] = session
        return f"http://{HOST}:{self.port}/{secret}"

    def shut(self, session: Session) -> None:
        """The run is over: its address leads nowhere from now on."""
        session.over.set()
        self._sessions = {secret: own for secret, own in self._sessions.items() if own is not session}

    def cut(self, session: Session) -> None:
        """End what is in flight of a run that was stopped: its servers need not answer any more."""
        for task in self._in_flight.get(session, ()):
            task.cancel()

    async def close(self) -> None:
        """Stop listening, and end what is in flight."""
        await self._server.close()
        await self._connections.close()

    async def _answer(self, client: ServerConnection, request: ServedRequest) -> None:
        headers, target = request.headers, urlsplit(request.target)
        if not request.is_local:
            # A page in a browser whose name leads to this machine.
            await client.refuse(403, "this address is for programs of this machine")
            return
        first, _, rest = target.path.lstrip("/").partition("/")
        session, path = self._sessions.get(first) or self._session_of(first), rest
        if session is not None and rest == MCP and request.method == "POST":
            await self._take_mcp(client, session, request)
            return
        if session is None:
            session, path = self.alone, target.path.lstrip("/")
        place, server = provider_of(path), headers.get(SERVER)
        if session is None and server is not None and self._asides:
            await _step_aside(client)  # its run is over
            return
        if session is None or place is None or (server is None and place[0].name not in self._upstreams):
            await client.refuse(
                404,
                "there is nothing here; the address of a run is in its program's OPENAI_BASE_URL and similar variables",
            )
            return
        query = parse_qsl(target.query, keep_blank_values=True)
        # Before anything of the request is kept.
        session.know(sent_keys(headers, dict(query)))
        kind = headers.get("content-type", "")
        # Clients differ in a slash at the end: it is one endpoint.
        question = Question(
            request.method,
            path.rstrip("/"),
            # A parameter that is there twice is not one that is there once.
            {key: "&".join(values) for key, values in grouped(query).items() if not is_secret_name(key)},
            received(_unpacked(request.body, headers.get("content-encoding", "")), kind),
        )
        async with self._cuttable(session), session.asking(question) as open_exchange:
            answer = await session.answer(open_exchange)
            if answer is not None:
                await play(client, answer, session.pace, lambda: session.tell(open_exchange))
                return
            provider, behind = place
            if (server or "") in self._unreached:
                session.has_stepped_aside = open_exchange.unreached = True
                await _step_aside(client)
                return
            # The client says which server the program's code names (`python_http_clients`).
            address = (server or self._upstreams[provider.name]) + behind + (f"?{target.query}" if target.query else "")
            sent = [(name, value) for name, value in request.sent if name.decode("latin-1").lower() not in _NOT_SENT]
            pieces = _Pieces(session.news.set, lambda: session.tell(open_exchange))
            open_exchange.so_far = pieces.answer
            try:
                await self._pass_on(client, request, address, sent, pieces)
                session.unreached = ""
            except _UnreachableError as error:
                session.unreached = urlsplit(address).netloc.rpartition("@")[2]
                message = f"agenteval's proxy can't reach {session.unreached}: {error}"
                pieces.error, open_exchange.unreached = message, True
                if self._asides and error.sent_nothing and server is not None:
                    session.has_stepped_aside = True
                    if error.took_long:
                        self._unreached.add(server)  # the next one need not wait
                    await _step_aside(client)
                    return
                if self._asides:
                    client.abort()
                await play(client, error_answer(question, _UNREACHED, message), 0, lambda: session.tell(open_exchange))
            finally:
                # Also where the program went away in the middle: what had come is paid for.
                open_exchange.answered(pieces.answer(), live=True)

    @asynccontextmanager
    async def _cuttable(self, session: Session) -> AsyncIterator[None]:
        task = asyncio.current_task()
        assert task is not None
        tasks = self._in_flight.setdefault(session, set())
        tasks.add(task)
        try:
            yield
        finally:
            tasks.discard(task)
            if not tasks:
                self._in_flight.pop(session, None)

    async def _take_mcp(self, client: ServerConnection, session: Session, request: ServedRequest) -> None:
        """What the shim of an MCP server tells: a request (whether the server is to be asked), or the answer to one."""
        message = _told(request.body)
        if message is None:
            await client.refuse(400, "this is not what the shim of an MCP server tells")
            return
        if isinstance(message, ToldMissed):
            session.miss(message.server, message.count)
            reply = WhatToDo()
        elif isinstance(message, ToldAnswer):
            exchange = session.open_exchange(message.request)
            if exchange is not None:
                exchange.answered(answer_of(message.message, session.now_ms - exchange.started_ms), live=True)
                session.end(exchange)
            reply = WhatToDo()
        else:
            session.know(message.keys)
            exchange = session.begin(question_of(message.server, message.method, message.params))
            answer = await session.answer(exchange)
            if answer is None:
                reply = WhatToDo(exchange.number)
            else:
                session.end(exchange)
                wait = answer.at_ms[-1] * session.pace if answer.at_ms else 0.0
                reply = WhatToDo(answer=answer.body if isinstance(answer.body, dict) else {}, wait_ms=wait)
        await client.answer(200, to_wire(reply), "application/json")

    async def _pass_on(
        self,
        client: ServerConnection,
        request: ServedRequest,
        address: str,
        headers: list[tuple[bytes, bytes]],
        pieces: _Pieces,
    ) -> None:
        """Ask the server, and send its answer on as it comes. Raises `_UnreachableError` where there is none."""
        try:
            wire = self._connections.to(address).client
        except AgentevalError as error:
            raise _UnreachableError(error.sentence, sent_nothing=True) from None
        # What is packed could not be read on its way.
        try:
            upstream_request = wire.build_request(
                request.method,
                address,
                headers=[*headers, (b"accept-encoding", b"identity")],
                content=request.body or None,
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise _UnreachableError(f"this address can't be asked: {error}", sent_nothing=True) from None
        upstream_request.extensions["timeout"] = (_SHORT_TIMEOUT if self._asides else _TIMEOUT).as_dict()
        try:
            answer = await wire.send(upstream_request, stream=True)
        except httpx.HTTPError as error:
            raise _UnreachableError(
                _words(error),
                sent_nothing=isinstance(error, _UNSENT),
                took_long=isinstance(error, httpx.ConnectTimeout),
            ) from None
        try:
            pieces.begin(answer.status_code, answer.headers)
            # A short answer goes out in one write with its head, which saves its client a wait.
            is_short = int(answer.headers.get("content-length") or LARGEST) < _SHORT
            await client.begin(answer.status_code, _passed(answer.headers), joined=is_short)
            async for chunk in answer.aiter_raw():
                # Noted before it goes out: a program that ends with the last piece has its whole answer recorded.
                pieces.add(chunk)
                await client.send(chunk)
            pieces.whole = True
            await client.end()
        except httpx.HTTPError:
            client.abort()  # as the server did
        finally:
            with suppress(httpx.HTTPError, RuntimeError):
                await answer.aclose()


class _UnreachableError(Exception):
    """There is no answer. `sent_nothing`: the server did not even get the request; `took_long`: it gave no sign."""

    def __init__(self, message: str, *, sent_nothing: bool, took_long: bool = False) -> None:
        super().__init__(message)
        self.sent_nothing = sent_nothing
        self.took_long = took_long


async def _step_aside(client: ServerConnection) -> None:
    """Let the program ask the server by itself."""
    await client.begin(_UNREACHED, [(UNREACHED.encode(), b"1"), (b"content-length", b"0")])
    await client.end()


def _told(body: bytes) -> Told | None:
    try:
        event: Told = from_wire(body, Told)  # type: ignore[arg-type]  # mypy takes no union here
        return event
    except ValueError:
        return None


async def play(client: ServerConnection, answer: Answer, pace: float, tell: Callable[[], None]) -> None:
    """Give a recorded answer, a stream event by event. `pace` 1: as fast as it was recorded. `tell` is called before
    each piece."""
    headers = [(b"content-type", answer.type.encode("latin-1", "replace"))] if answer.type else []
    # It was recorded that there was no answer: the connection breaks again.
    if answer.status == 0:
        client.abort()
        return
    if not answer.streamed:
        data = answer.data()
        if pace and answer.at_ms:
            await asyncio.sleep(answer.at_ms[-1] / 1000 * pace)
        tell()
        await client.begin(answer.status, [*headers, (b"content-length", str(len(data)).encode())])
        await client.send(data)
    else:
        await client.begin(answer.status, headers)
        before = 0
        for event, at_ms in zip(answer.body, (*answer.at_ms, *[0] * len(answer.body)), strict=False):
            if pace and at_ms > before:
                await asyncio.sleep((at_ms - before) / 1000 * pace)
                before = at_ms
            tell()
            await client.send(event.encode("utf-8", "surrogatepass"))
    if answer.whole:
        await client.end()
    else:
        # The stream broke off when it was recorded, and breaks off again.
        client.abort()


class _Pieces:
    """The answer of a server, as far as it has come. `news` is called with each piece of a stream, `tell` with each
    piece of any answer, before the program gets it."""

    def __init__(self, news: Callable[[], None], tell: Callable[[], None]) -> None:
        self._news = news
        self._tell = tell
        self.error = ""
        self.whole = False
        self._began = time.perf_counter()
        self._status = 0
        self._type = self._packed = ""
        self._pieces: list[tuple[int, bytes]] = []
        self._size = 0

    def begin(self, status: int, headers: httpx.Headers) -> None:
        self._status = status
        self._type = headers.get("content-type", "")
        self._packed = headers.get("content-encoding", "")

    def add(self, data: bytes) -> None:
        self._tell()
        self._size += len(data)
        if self._size <= LARGEST:
            self._pieces.append((round((time.perf_counter() - self._began) * 1000), data))
        if is_stream(self._type):
            self._news()

    def answer(self) -> Answer:
        if self._status == 0:
            return Answer(0, error=self.error or "the program did not wait for the answer", whole=False)
        whole = self.whole and self._size <= LARGEST
        # A packed stream has no events until it is unpacked, and then no times of them.
        if is_stream(self._type) and not self._packed:
            events, times = events_of(self._pieces, self._type)
            return Answer(self._status, self._type, events, times, whole)
        data = _unpacked(b"".join(piece for _, piece in self._pieces), self._packed)
        took = self._pieces[-1][0] if self._pieces else 0
        return Answer(self._status, self._type, received(data, self._type), (took,), whole)


def _passed(headers: httpx.Headers) -> list[tuple[bytes, bytes]]:
    """The headers of an answer that a program gets. Its length stays: without it, it comes in chunks."""
    return [
        (name, value)
        for name, value in headers.raw
        if (lower := name.decode("latin-1").lower()) not in _HOP or lower == "content-length"
    ]


def _unpacked(data: bytes, packed: str) -> bytes:
    if packed.strip().lower() not in ("gzip", "x-gzip", "deflate"):
        return data
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, LARGEST)
    except zlib.error:
        return data


def _words(error: httpx.HTTPError) -> str:
    return " ".join(str(error).split()) or type(error).__name__
