"""The way to a server and back: one request, its reply as events, within time and size. Knows no protocol."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from itertools import groupby
from typing import Any, Protocol

import httpx

from agenteval_tui.agents.base import AgentEvent, Failed, PaidRequests, ReasoningDelta, TextDelta
from agenteval_tui.agents.http import errors
from agenteval_tui.agents.http.errors import error_in
from agenteval_tui.agents.http.proxies import PAGE
from agenteval_tui.agents.http.sse import ServerEvent, SseReader
from agenteval_tui.agents.models.stream import CutReplyError, EmptyResponseError, ProviderError, StreamReply, decoded
from agenteval_tui.agents.network_options import Timeouts
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.transcripts.model import ErrorCode

_ERROR_BODY = 64_000  # bytes of an error's body that are read
_STREAM_SIGNS = ("data:", "event:", "id:", ": ")  # how a stream begins that is not called one


class StreamReader(Protocol):
    """Makes events of the bytes of a stream. `cut`, after `close`: the stream ended within a line that says nothing
    yet. `strange`: its first line that belongs to no event."""

    cut: bool
    strange: str

    def feed(self, data: bytes) -> list[ServerEvent]: ...

    def close(self) -> list[ServerEvent]: ...


class _Stopped(Exception):  # noqa: N818
    """The request was not sent, or its reply is not read any further: `failed` says why."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.error.message)
        self.failed = failed


_FAULTS = (_Stopped, ProviderError, EmptyResponseError, httpx.HTTPError, httpx.InvalidURL, UnicodeError)


class HttpClient:
    """One server, with its headers, parameters, time limits and the size that a reply may have."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        headers: Mapping[str, str],
        server: errors.ErrorMapper,
        timeouts: Timeouts,
        max_bytes: int,
        query: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        # What the client would take by itself is what it can undo.
        accepted = client.headers.get("accept-encoding", "").replace(" ", "").split(",")
        self._unpacked = {"identity", "gzip", "deflate", *accepted}
        self._url = url
        # Compressed streams come in blocks: the first words of an answer would wait for more.
        self._headers = {"accept-encoding": "identity", **headers}
        self._query = dict(query or {})
        self.server = server
        self._timeouts = timeouts
        self._max_bytes = max_bytes
        self.paid: PaidRequests | None = None
        """What answers were paid for before, and where new ones are kept."""

    async def ask(
        self,
        path: str,
        reply: StreamReply,
        *,
        method: str = "POST",
        reader: Callable[[], StreamReader] | None = SseReader,
        always_stream: bool = False,
        **content: Any,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Send a request (`json=` or `content=`); the events of its reply as they come, which `reply` puts together.

        `reader` reads a stream (None: there is none to be read); `always_stream`: whatever the reply calls itself.
        Ends early after a `Failed`. Cancelling closes the connection.
        """
        question = self._question(method, path, content.get("json"))
        # An attempt that is resumed asks what it has asked before: those answers are paid for, and read as if they came
        # now.
        before = self.paid.take(question) if self.paid is not None and question is not None else None
        try:
            if before is not None:
                earlier = httpx.Response(before.status, headers={"content-type": before.type}, content=before.data())
                pieces = _Pieces(earlier, self.server, self._timeouts, time.monotonic(), self._max_bytes)
                async with aclosing(self._read(earlier, pieces, reply, reader, always_stream)) as events:
                    async for event in events:
                        yield event
                return
            async with (
                self._sent(method, path, **content) as (response, pieces),
                aclosing(self._read(response, pieces, reply, reader, always_stream)) as events,
            ):
                pieces.kept = [] if question is not None else None
                async for event in events:
                    yield event
                if question is not None and response.is_success:
                    self._keep(question, response, b"".join(pieces.kept or ()))
        except _FAULTS as error:
            yield self._failure(error, reply.protocol, reply.fix, reply.streamed)

    def _question(self, method: str, path: str, body: object) -> Question | None:
        """A request as it is kept; None: it is not to be."""
        if self.paid is None or not isinstance(body, Mapping):
            return None
        return Question(method, path, body=self.server.secrets.data(dict(body)))

    def _keep(self, question: Question, response: httpx.Response, body: bytes) -> None:
        assert self.paid is not None
        with suppress(UnicodeDecodeError):
            # What is kept lies in a file: no secret goes there.
            text = self.server.secrets.text(body.decode("utf-8"))
            self.paid.add(
                Exchange(question, Answer(response.status_code, response.headers.get("content-type", ""), text))
            )

    async def get(self, path: str) -> tuple[Any, Failed | None]:
        """The JSON value at a path (None where there is none), or why it can't be had."""
        text, failed = await self.request("GET", path)
        if failed is not None:
            return None, failed
        try:
            return decoded(text), None
        except EmptyResponseError:
            return None, None

    async def post(self, path: str, body: Mapping[str, Any]) -> tuple[Any, Failed | None]:
        """Send a request whose reply is one JSON object; (the object, None), or (None, why there is none)."""
        text, failed = await self.request("POST", path, json=dict(body))
        if failed is not None:
            return None, failed
        try:
            value = decoded(text)
        except EmptyResponseError:
            value = None
        if not isinstance(value, dict):
            return None, self.server.failed(
                "protocol", ErrorCode.NOT_AN_OBJECT, f"{self.server.url}/{path} sent no JSON object"
            )
        if value.get("error"):
            return None, errors.from_reply(self.server, value["error"])
        return value, None

    async def request(self, method: str, path: str, **content: Any) -> tuple[str, Failed | None]:
        """The text of a reply; a status other than 2xx is a failure."""
        try:
            async with self._sent(method, path, **content) as (response, pieces):
                if not response.is_success:
                    body = await pieces.text(limit=_ERROR_BODY)
                    return "", errors.from_status(self.server, response.status_code, response.headers, body)
                return await pieces.text(), None
        except _FAULTS as error:
            return "", self._failure(error, "JSON")

    @asynccontextmanager
    async def _sent(self, method: str, path: str, **more: Any) -> AsyncIterator[tuple[httpx.Response, _Pieces]]:
        limits, began = self._timeouts, time.monotonic()
        # Reading has limits of our own: httpx knows only the time between two reads.
        timeout = httpx.Timeout(None, connect=limits.connect, write=limits.silence)
        # Not `params=`, which would take the place of what the address has already.
        url = httpx.URL(f"{self._url}/{path}" if path else self._url).copy_merge_params(self._query)
        headers = self._headers
        # Not httpx' own `json=`: it raises on half characters, which some tools give.
        if "json" in more:
            headers = {"content-type": "application/json", **headers}
            more["content"] = _encoded(self.server, more.pop("json"))
        async with AsyncExitStack() as stack:
            stream = self._client.stream(method, url, headers=headers, timeout=timeout, **more)
            try:
                # Until the status line: a server that accepts a connection and says nothing is told from one that can't
                # be reached.
                async with asyncio.timeout(limits.first_token):
                    response = await stack.enter_async_context(stream)
            except TimeoutError:
                raise _no_answer(self.server, began) from None
            packed = response.headers.get("content-encoding", "")
            unknown = [
                encoding
                for encoding in packed.lower().replace(" ", "").split(",")
                if encoding and encoding not in self._unpacked
            ]
            if unknown:
                why = f"it is compressed with {unknown[0][:40]}, which was not asked for"
                raise _Stopped(errors.undecodable_answer(self.server, why))
            yield response, _Pieces(response, self.server, limits, began, self._max_bytes)

    async def _read(
        self,
        response: httpx.Response,
        pieces: _Pieces,
        reply: StreamReply,
        reader: Callable[[], StreamReader] | None,
        always_stream: bool,
    ) -> AsyncGenerator[AgentEvent, None]:
        kind = reply.content_type = response.headers.get("content-type", "").lower()
        if not response.is_success:
            body = await pieces.text(limit=_ERROR_BODY)
            yield errors.from_status(self.server, response.status_code, response.headers, body)
        elif reader is not None and (always_stream or "text/event-stream" in kind):
            reply.streamed = True
            async with aclosing(_streamed(pieces, reply, reader())) as events:
                async for event in events:
                    yield event
        else:
            # No stream, whether one was asked for or not.
            for event in _whole_reply(await pieces.text(), reply, reader):
                yield event

    def _failure(self, error: Exception, protocol: str, fix: str = "", streamed: bool = False) -> Failed:
        if isinstance(error, _Stopped):
            return error.failed
        if isinstance(error, ProviderError):
            return errors.from_reply(self.server, error.error)
        if isinstance(error, CutReplyError) and streamed:
            return errors.broken_stream(self.server)
        if isinstance(error, CutReplyError):
            message = f"the answer of {self.server.url} stops in the middle of its JSON: {error}"
            fix = "check whether the server, or a proxy in between, sends a wrong content-length"
            return self.server.told("protocol", message, f"{fix}; {PAGE}")
        if isinstance(error, EmptyResponseError):
            return self.server.told(
                "protocol",
                f"{self.server.url} sent no {protocol} reply: {error}",
                error.fix or fix or f"check `{self.server.option}`{self.server.usual}",
            )
        if isinstance(error, UnicodeError):
            return self.server.told(
                "bad_request", f"the request to {self.server.url} can't be sent: {error}", "check `headers` and the key"
            )
        return errors.from_exception(self.server, error)


class _Pieces:
    """A reply's body as it comes, within the limits of time and size. Set `spoke` when the answer itself has begun."""

    def __init__(
        self, response: httpx.Response, server: errors.ErrorMapper, limits: Timeouts, began: float, max_bytes: int
    ) -> None:
        self.spoke = False
        self.kept: list[bytes] | None = None
        """All that came, where it is to be kept."""
        self._bytes = response.aiter_bytes()
        self._server = server
        self._limits = limits
        self._began = began
        self._left = max_bytes
        self._max_bytes = max_bytes

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> bytes:
        wait = self._limits.silence
        if not self.spoke:
            # Also while the server sends signs of life: it is the answer that is waited for.
            wait = max(0.001, self._limits.first_token - (time.monotonic() - self._began))
        try:
            async with asyncio.timeout(wait):
                data = await anext(self._bytes)
        except TimeoutError:
            if not self.spoke:
                raise _no_answer(self._server, self._began) from None
            message = f"{self._server.url} fell silent for {self._limits.silence:g} s in the middle of its answer"
            raise _silent(self._server, message, "silence") from None
        if self.kept is not None:
            self.kept.append(data)
        self._left -= len(data)
        if self._left < 0:
            message = f"{self._server.url}: the reply is longer than {self._max_bytes / 1_000_000:g} MB"
            raise _Stopped(self._server.failed("protocol", ErrorCode.TOO_LONG, message, "raise `max_reply_mb`"))
        return data

    async def text(self, limit: int | None = None) -> str:
        """The whole body as text. With a `limit` its beginning will do."""
        body = bytearray()
        async for data in self:
            self.spoke = True
            body += data
            if limit is not None and len(body) >= limit:
                break
        return body.decode("utf-8", "replace")


def _encoded(server: errors.ErrorMapper, body: object) -> bytes:
    """The JSON of a request. Half characters, which some tools give, become question marks."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the request to {server.url} would be no JSON: {error}"
        fix = "check `extra_body` and the parameters of the tools"
        raise _Stopped(server.told("bad_request", message, fix)) from None


def _no_answer(server: errors.ErrorMapper, began: float) -> _Stopped:
    return _silent(server, f"{server.url} sent no answer within {time.monotonic() - began:.3g} s", "first_token")


def _silent(server: errors.ErrorMapper, message: str, option: str) -> _Stopped:
    """Nothing came for too long; `option` of the time limits allows more."""
    fix = f"raise `timeouts.{option}`"
    return _Stopped(server.failed("timeout", ErrorCode.SILENCE, message, fix, retry=True, after=option))


async def _streamed(pieces: _Pieces, reply: StreamReply, reader: StreamReader) -> AsyncGenerator[AgentEvent, None]:
    async for data in pieces:
        gathered: list[AgentEvent] = []
        failed: Exception | None = None
        try:
            for sent in reader.feed(data):
                gathered.extend(_taken(reply, sent))
                if reply.over:
                    break
        except (ProviderError, EmptyResponseError) as error:
            failed = error
        # All that came at once is told at once, so that a quick server makes few events.
        for event in joined(gathered):
            pieces.spoke = True
            yield event
        # After what came before it in the same piece.
        if failed is not None:
            raise failed
        if reply.over:
            break
    for event in _end_of_stream(reader, reply):
        yield event


def _taken(reply: StreamReply, sent: ServerEvent) -> Iterator[AgentEvent]:
    """The events of one event of a stream. Raises `ProviderError`: whoever calls an event an error means it."""
    if sent.name.lower() == "error":
        value = parsed_json(sent.data)
        raise ProviderError(error_in(value) if isinstance(value, Mapping) else {"message": str(value or sent.data)})
    return reply.take(sent)


def _end_of_stream(reader: StreamReader, reply: StreamReply) -> Iterator[AgentEvent]:
    """The last events. Raises `CutReplyError` where the stream ended before the answer did."""
    for sent in () if reply.over else reader.close():
        if reply.over:
            break
        try:
            yield from _taken(reply, sent)
        except EmptyResponseError as error:
            # The stream ended within this event: what is wrong with it is that its end is missing.
            raise CutReplyError(str(error)) from None
    if reader.cut and not reply.over:
        raise CutReplyError("the stream ended within a line")
    # Not every server says that its stream is over; but one that has no reason why it ended either was cut.
    if not reply.over and not reply.complete:
        if reader.strange:
            raise reply.not_a_stream(reader.strange)
        raise CutReplyError("the stream ended before the answer did")
    yield from reply.rest()


def joined(events: list[AgentEvent]) -> list[AgentEvent]:
    """The same events, with texts that follow one another in one: what a piece of the network brought is one step."""
    if len(events) < 2:  # as nearly always
        return events
    merged: list[AgentEvent] = []
    for kind, group in groupby(events, type):
        if issubclass(kind, TextDelta | ReasoningDelta):
            merged.append(kind("".join([event.text for event in group if isinstance(event, kind)])))
        else:
            merged += group
    return merged


def _whole_reply(text: str, reply: StreamReply, reader: Callable[[], StreamReader] | None) -> list[AgentEvent]:
    if reader is not None and text.lstrip().startswith(_STREAM_SIGNS):
        # A stream that was not called one.
        reply.streamed = True
        read = reader()
        events: list[AgentEvent] = []
        for sent in read.feed(text.encode()):
            if not reply.over:
                events.extend(_taken(reply, sent))
        return [*events, *_end_of_stream(read, reply)]
    return [*reply.take_whole(text), *reply.rest()]
