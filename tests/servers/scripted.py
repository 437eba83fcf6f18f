"""A real HTTP server on loopback that answers as a test tells it, byte for byte if need be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Request:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.body)


@dataclass
class Answer:
    """What is sent back. `cut`: the connection is closed without the end that HTTP demands. `pieces` are sent apart."""

    status: int = 200
    body: bytes | str = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    pieces: Sequence[bytes] = ()
    cut: bool = False


Handler = Callable[[Request], Answer | Awaitable[Answer]]


def stream_of(*chunks: Any, done: bool = True) -> Answer:
    """An SSE answer of JSON chunks."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + (["data: [DONE]\n\n"] if done else [])
    return Answer(body="".join(lines), content_type="text/event-stream")


class ScriptedServer:
    """`async with ScriptedServer(handler) as server`: `server.url` ends with /v1; `server.requests` holds what came."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.requests: list[Request] = []
        self.open_connections = 0
        self.idle = asyncio.Event()

    async def __aenter__(self) -> ScriptedServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_connections += 1
        self.idle.clear()
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            request = Request(method, path, headers, body)
            self.requests.append(request)
            made = self._handler(request)
            answer = made if isinstance(made, Answer) else await made
            await self._send(answer, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.open_connections -= 1
            if not self.open_connections:
                self.idle.set()

    async def _send(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        pieces = list(answer.pieces) or [body]
        headers = {"content-type": answer.content_type, "transfer-encoding": "chunked", "connection": "close"}
        lines = [f"{key}: {value}" for key, value in {**headers, **answer.headers}.items() if value]
        head = "\r\n".join([f"HTTP/1.1 {answer.status} X", *lines, "", ""])
        writer.write(head.encode())
        for piece in pieces:
            if piece:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
        if not answer.cut:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
