"""The way to a Chat Completions server and back: one request, its reply as events, within time and size."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import httpx

from agenteval_tui.agents import http_errors
from agenteval_tui.agents.chat_reply import NoReplyError, Reply, ServerSaidError
from agenteval_tui.agents.interface import AgentEvent, Failed
from agenteval_tui.agents.openai_options import Timeouts
from agenteval_tui.agents.sse import ServerEvent, SseReader

_ERROR_BODY = 64_000  # bytes of an error's body that are read


class _TooLong(Exception):  # noqa: N818
    """The reply is larger than it may be."""


class _Silent(Exception):  # noqa: N818
    """Nothing came for too long; the text says since when and which option allows more."""


class Wire:
    """One server, with its headers, time limits and the size that a reply may have."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        headers: Mapping[str, str],
        server: http_errors.Server,
        timeouts: Timeouts,
        max_bytes: int,
    ) -> None:
        self._client = client
        self._url = url
        self._headers = dict(headers)
        self.server = server
        self._timeouts = timeouts
        self._max_bytes = max_bytes

    async def ask(self, body: Mapping[str, Any], reply: Reply) -> AsyncGenerator[AgentEvent, None]:
        """Send a request; the events of its reply as they come, which is also put together in `reply`.

        Ends early after a `Failed`. Cancelling closes the connection.
        """
        try:
            async with (
                self._sent("POST", "chat/completions", json=dict(body)) as (response, pieces),
                aclosing(self._read(response, pieces, reply)) as events,
            ):
                async for event in events:
                    yield event
        except (ServerSaidError, NoReplyError, _TooLong, _Silent, httpx.HTTPError, httpx.InvalidURL) as error:
            yield self._failure(error)

    async def models(self) -> tuple[set[str] | None, Failed | None]:
        """The names of the server's models (None: it does not say), or why they can't be had."""
        try:
            async with self._sent("GET", "models") as (response, pieces):
                text = await pieces.text()
                if response.status_code != 200:
                    return None, http_errors.from_status(self.server, response.status_code, response.headers, text)
        except (_TooLong, _Silent, httpx.HTTPError, httpx.InvalidURL) as error:
            return None, self._failure(error)
        try:
            listed = json.loads(text)["data"]
            return {one["id"] for one in listed}, None
        except (ValueError, KeyError, TypeError):
            return None, None

    async def post(self, path: str, body: Mapping[str, Any]) -> tuple[Any, Failed | None]:
        """Send a request whose reply is one JSON object; (the object, None), or (None, why there is none)."""
        try:
            async with self._sent("POST", path, json=dict(body)) as (response, pieces):
                text = await pieces.text()
                if response.status_code != 200:
                    return None, http_errors.from_status(self.server, response.status_code, response.headers, text)
        except (_TooLong, _Silent, httpx.HTTPError, httpx.InvalidURL) as error:
            return None, self._failure(error)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            return None, self.server.failed("protocol", f"{self.server.url}/{path} sent no JSON object")
        if value.get("error"):
            return None, http_errors.from_reply(self.server, value["error"])
        return value, None

    @asynccontextmanager
    async def _sent(self, method: str, path: str, **more: Any) -> AsyncIterator[tuple[httpx.Response, _Pieces]]:
        limits, began = self._timeouts, time.monotonic()
        # Reading has limits of our own: httpx knows only the time between two reads.
        timeout = httpx.Timeout(None, connect=limits.connect, write=limits.silence)
        async with AsyncExitStack() as stack:
            stream = self._client.stream(method, f"{self._url}/{path}", headers=self._headers, timeout=timeout, **more)
            try:
                async with asyncio.timeout(limits.first_token):
                    response = await stack.enter_async_context(stream)
            except TimeoutError:
                raise _no_answer(self.server.url, began) from None
            yield response, _Pieces(response, self.server.url, limits, began, self._max_bytes)

    async def _read(self, response: httpx.Response, pieces: _Pieces, reply: Reply) -> AsyncGenerator[AgentEvent, None]:
        if response.status_code != 200:
            body = await pieces.text(limit=_ERROR_BODY)
            yield http_errors.from_status(self.server, response.status_code, response.headers, body)
        elif "text/event-stream" in response.headers.get("content-type", "").lower():
            async with aclosing(_streamed(pieces, reply)) as events:
                async for event in events:
                    yield event
        else:
            # No stream, whether one was asked for or not.
            for event in _whole_reply(await pieces.text(), reply):
                yield event

    def _failure(self, error: Exception) -> Failed:
        if isinstance(error, ServerSaidError):
            return http_errors.from_reply(self.server, error.error)
        if isinstance(error, NoReplyError):
            return self.server.failed(
                "protocol",
                f"{self.server.url} sent no Chat Completions reply: {error}",
                "check `base_url` (it usually ends with /v1)",
            )
        if isinstance(error, _TooLong):
            return self.server.failed("protocol", f"{self.server.url}: {error}", "raise `max_reply_mb`")
        if isinstance(error, _Silent):
            return self.server.failed("timeout", error.args[0], error.args[1], retry=True)
        return http_errors.from_exception(self.server, error)


class _Pieces:
    """A reply's body as it comes, within the limits of time and size. Set `spoke` when the answer itself has begun."""

    def __init__(self, response: httpx.Response, url: str, limits: Timeouts, began: float, max_bytes: int) -> None:
        self.spoke = False
        self._bytes = response.aiter_bytes()
        self._url = url
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
                raise _no_answer(self._url, self._began) from None
            said = f"{self._url} fell silent for {self._limits.silence:g} s in the midst of its answer"
            raise _Silent(said, "raise `timeouts.silence`") from None
        self._left -= len(data)
        if self._left < 0:
            raise _TooLong(f"the reply is longer than {self._max_bytes / 1_000_000:g} MB")
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


def _no_answer(url: str, began: float) -> _Silent:
    said = f"{url} sent no answer within {time.monotonic() - began:.3g} s"
    return _Silent(said, "raise `timeouts.first_token`")


async def _streamed(pieces: _Pieces, reply: Reply) -> AsyncGenerator[AgentEvent, None]:
    reader = SseReader()
    finished = False
    async for data in pieces:
        for sent in reader.feed(data):
            if sent.data.strip() == "[DONE]":
                finished = True
                break
            for event in _of_chunk(sent, reply):
                pieces.spoke = True
                yield event
        if finished:
            break
    else:
        for sent in reader.close():
            if sent.data.strip() == "[DONE]":
                finished = True
            else:
                for event in _of_chunk(sent, reply):
                    yield event
    # Not every server sends [DONE]; but a stream that has neither that nor a reason why it ended was cut.
    if not finished and not reply.finish_reason:
        raise httpx.RemoteProtocolError("the stream ended before the answer did")
    for event in reply.announce_rest():
        yield event


def _of_chunk(sent: ServerEvent, reply: Reply) -> list[AgentEvent]:
    chunk = _decoded(sent.data)
    if sent.name == "error" and not (isinstance(chunk, Mapping) and chunk.get("error")):
        raise ServerSaidError(chunk)
    return list(reply.take(chunk))


def _whole_reply(text: str, reply: Reply) -> list[AgentEvent]:
    if text.lstrip().startswith("data:"):
        # A stream that was not called one.
        reader = SseReader()
        sent = [*reader.feed(text.encode()), *reader.close()]
        streamed = [event for one in sent if one.data.strip() != "[DONE]" for event in _of_chunk(one, reply)]
        return [*streamed, *reply.announce_rest()]
    value = _decoded(text)
    events = list(reply.take(value))
    if not isinstance(value.get("choices"), list) or not value["choices"]:
        raise NoReplyError(f"an object without `choices` ({http_errors.message_in(text)[:200]})")
    return [*events, *reply.announce_rest()]


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise NoReplyError(f"not JSON ({http_errors.message_in(text)[:200]})") from None
