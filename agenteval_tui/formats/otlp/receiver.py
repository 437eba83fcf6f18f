"""The server that OTLP exporters send to: OTLP/HTTP, protobuf and JSON, on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import h11

from agenteval_tui.agents.http.proxies import is_local
from agenteval_tui.agents.http.server_connection import ServedRequest, ServerConnection, TooLargeError
from agenteval_tui.core.errors import InfrastructureError
from agenteval_tui.formats.otlp.export_request import (
    LARGEST,
    LOGS,
    METRICS,
    TRACES,
    RefusedExportError,
    SentEvent,
    SentSpan,
    decoded,
    events_of,
    reply,
    spans_of,
    unpacked,
)

HOST, PORT = "127.0.0.1", 4318
Take = Callable[[Sequence[SentSpan], Sequence[SentEvent]], None]


class Receiver:
    """Gives what exporters send to `take`, in the event loop's thread. `refused`: requests that could not be read."""

    def __init__(self, take: Take) -> None:
        self.refused = 0
        self.last_refusal = ""
        """What was said to the last of them."""
        self._take = take
        self._clients: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self._for_others = False

    async def start(self, port: int = PORT, host: str = HOST) -> None:
        """Listen from now on; port 0 takes a free one. On a `host` of this machine alone, requests must name it.

        Raises `InfrastructureError` when the port can't be had.
        """
        self._for_others = not is_local(host)
        try:
            self._server = await asyncio.start_server(self._connected, host, port)
        except OSError as error:
            raise InfrastructureError(
                f"port {port} is not free: {error.strerror or error}",
                where=host,
                mend="choose another with --port, and tell the exporter: OTEL_EXPORTER_OTLP_ENDPOINT",
            ) from None

    @property
    def address(self) -> str:
        """What exporters have as their OTEL_EXPORTER_OTLP_ENDPOINT."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def close(self) -> None:
        """Stop listening, and end what is in flight."""
        if self._server is not None:
            self._server.close()
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(ServerConnection(reader, writer, LARGEST)))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve(self, client: ServerConnection) -> None:
        try:
            while (request := await client.request()) is not None:
                await self._answer(client, request)
                if not client.next():
                    break
        except h11.RemoteProtocolError as error:
            self._refuse(f"not HTTP: {error}")
            await client.refuse(error.error_status_hint or 400, f"this is not HTTP that can be read: {error}")
        except TooLargeError:
            self._refuse("a request is too large")
            await client.refuse(413, f"a request may have {LARGEST // 1_000_000} MB")
        except (ConnectionError, h11.LocalProtocolError):
            pass  # the client went away
        finally:
            client.close()

    async def _answer(self, client: ServerConnection, request: ServedRequest) -> None:
        path, kind = request.path.rstrip("/"), request.headers.get("content-type", "")
        if not (request.is_local or self._for_others) or "origin" in request.headers:
            # A page in a browser, maybe one whose name leads to this machine.
            await client.refuse(403, "this address is for programs of this machine")
            return
        if path not in (TRACES, LOGS, METRICS):
            await client.refuse(404, f"OTLP is at {TRACES}; set OTEL_EXPORTER_OTLP_ENDPOINT to this server's address")
            return
        if request.method != "POST":
            await client.refuse(405, "OTLP is sent with POST")
            return
        try:
            if path != METRICS:  # nothing of them is kept: an exporter that also sends them is not to complain
                sent = decoded(path, unpacked(request.body, request.headers.get("content-encoding", "")), kind)
                self._take(tuple(spans_of(sent)), tuple(events_of(sent)))
        except RefusedExportError as error:
            self._refuse(str(error))
            await client.refuse(error.status, str(error))
            return
        body, answered = reply(kind)
        await client.answer(200, body, answered)

    def _refuse(self, said: str) -> None:
        self.refused += 1
        self.last_refusal = said
