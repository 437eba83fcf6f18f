"""The server that OTLP exporters send to: OTLP/HTTP, protobuf and JSON, on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agenteval_tui.agents.http.loopback_server import LoopbackServer, ServedRequest, ServerConnection
from agenteval_tui.agents.http.proxies import is_local
from agenteval_tui.core.errors import InfrastructureError
from agenteval_tui.extensions.otel.export_request import (
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
    said_unread,
    spans_of,
    unpacked,
    unread_in,
)

HOST, PORT = "127.0.0.1", 4318
Take = Callable[[Sequence[SentSpan], Sequence[SentEvent]], None]


class Receiver:
    """Gives what exporters send to `take`, in the event loop's thread. `refused`: requests that could not be read, or
    not whole."""

    def __init__(self, take: Take) -> None:
        self.refused = 0
        self.last_refusal = ""
        """The answer to the last refused request."""
        self._take = take
        self._server = LoopbackServer(self._answer, LARGEST, self._refuse)
        self._for_others = False

    async def start(self, port: int = PORT, host: str = HOST) -> None:
        """Listen from now on; port 0 takes a free one. On a `host` of this machine alone, requests must name it.

        Raises `InfrastructureError` when the port can't be had.
        """
        self._for_others = not is_local(host)
        try:
            await self._server.start(host, port)
        except OSError as error:
            raise InfrastructureError(
                f"port {port} can't be had: {error.strerror}",
                where=host,
                fix="choose another with --port, and set OTEL_EXPORTER_OTLP_ENDPOINT to match",
            ) from None

    @property
    def address(self) -> str:
        """What exporters have as their OTEL_EXPORTER_OTLP_ENDPOINT."""
        return self._server.address

    async def close(self) -> None:
        """Stop listening, and end what is in flight."""
        await self._server.close()

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
            unread = 0
            if path != METRICS:  # nothing of them is kept: an exporter that also sends them is not to complain
                sent = decoded(path, unpacked(request.body, request.headers.get("content-encoding", "")), kind)
                unread = unread_in(path, sent)
                self._take(tuple(spans_of(sent)), tuple(events_of(sent)))
        except RefusedExportError as error:
            self._refuse(str(error))
            await client.refuse(error.status, str(error))
            return
        if unread:
            self._refuse(said_unread(unread))
        body, answered = reply(path, kind, unread)
        await client.answer(200, body, answered)

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        self.last_refusal = reason
