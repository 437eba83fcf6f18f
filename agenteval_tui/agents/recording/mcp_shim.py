"""A process in place of an MCP server over stdio: everything goes through to the server and back byte for byte, and a
recording is told of each request and its answer. What the recording answers itself never reaches the server, which is
started only where it has something to do.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, BinaryIO, Protocol
from urllib.parse import urlsplit

from agenteval_tui.agents.recording.exchange import encoded
from agenteval_tui.agents.recording.mcp_requests import (
    Told,
    ToldAnswer,
    ToldMissed,
    ToldRequest,
    WhatToDo,
    from_wire,
    to_wire,
)
from agenteval_tui.core.json_values import parsed_json

_LARGEST = 32_000_000  # a longer line goes through untold
_INITIALIZE, _INITIALIZED = "initialize", "notifications/initialized"
_PATIENCE_S = 30.0  # for an answer of the recording
_RETRY_S = 1.0  # for an answer of a recording that did not answer the last time


class Recorder:
    """The recording that a shim tells what it sees. `address`: where it is, "" for none. `keys`: what must not be
    stored. If it does not answer within `patience_s` seconds, it is asked again with the next message, and told how
    many it missed."""

    def __init__(self, address: str, server: str, keys: Sequence[str] = (), *, patience_s: float = _PATIENCE_S) -> None:
        self._address = urlsplit(address)
        self._server = server
        self._keys = tuple(keys)
        self._patience_s = patience_s
        self._there = bool(address)
        self._wire: http.client.HTTPConnection | None = None
        self._missed = 0
        self._alone = threading.Lock()

    def asked(self, method: str, params: Any) -> WhatToDo:
        """The program made this request: what to do with it."""
        return self._tell(ToldRequest(self._server, method, params, self._keys))

    def answered(self, request: int, response: Mapping[str, Any]) -> None:
        """The server answered the request of this number."""
        self._tell(ToldAnswer(request, dict(response)))

    def close(self) -> None:
        """Tell how many messages the recording missed, if it answers again."""
        with self._alone, suppress(OSError, ValueError, http.client.HTTPException):
            self._tell_missed()

    def _tell(self, event: Told) -> WhatToDo:
        with self._alone:
            if not self._there:
                return WhatToDo()
            try:
                body = to_wire(event)
            except RecursionError:
                return WhatToDo()  # nested too deep to be kept: it goes through untold
            try:
                # Before the message: it belongs after those that were missed.
                self._tell_missed()
                return self._send(body)
            except (OSError, ValueError, http.client.HTTPException):
                self._missed += 1
                return WhatToDo()

    def _tell_missed(self) -> None:
        if self._missed:
            self._send(to_wire(ToldMissed(self._server, self._missed)))
            self._missed = 0

    def _send(self, body: bytes) -> WhatToDo:
        """What the recording answers. Raises OSError, ValueError or HTTPException if it gives no answer."""
        try:
            if self._wire is None:
                patience = min(_RETRY_S, self._patience_s) if self._missed else self._patience_s
                host, port = self._address.hostname or "", self._address.port
                self._wire = http.client.HTTPConnection(host, port, timeout=patience)
            self._wire.request("POST", self._address.path, body)
            reply = self._wire.getresponse()
            data = reply.read()
            if reply.status != 200:
                raise OSError(data.decode(errors="replace"))
            # The recording answers again: it gets its full time from now on.
            if self._wire.sock is not None:
                self._wire.sock.settimeout(self._patience_s)
            return from_wire(data, WhatToDo)
        except (OSError, ValueError, http.client.HTTPException):
            if self._wire is not None:
                self._wire.close()
            self._wire = None
            raise


class StartedServer(Protocol):
    """A process with pipes, as `subprocess.Popen` is."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        ...

    def terminate(self) -> None:
        """Tell it to end."""
        ...


class Shim:
    """One server. `start` starts it; the program speaks on `stdin` and listens on `stdout`. `ended` gets the server's
    exit code where it ends before the program does, in a thread of its own."""

    def __init__(
        self,
        start: Callable[[], StartedServer],
        recorder: Recorder,
        stdin: BinaryIO,
        stdout: BinaryIO,
        ended: Callable[[int], None],
    ) -> None:
        self._start = start
        self._recorder = recorder
        self._in = stdin
        self._out = stdout
        self._ended = ended
        self._writing = threading.Lock()
        self._server: StartedServer | None = None
        self._pump: threading.Thread | None = None
        self._waiting: dict[Any, int] = {}  # id of a request that the server has -> its number in the recording
        self._hello: list[bytes] = []  # how the program introduced itself, where the recording answered that
        self._unheard: set[Any] = set()  # ids whose answers the program has already
        self._greeted = threading.Event()

    def run(self) -> int:
        """Pass on until one side ends; gives the server's exit code."""
        try:
            return self._passed_on()
        finally:
            self._recorder.close()

    def _passed_on(self) -> int:
        for line in iter(self._in.readline, b""):
            self._from_program(line)
        if self._server is None or self._pump is None:
            return 0
        assert self._server.stdin is not None
        with suppress(OSError):
            self._server.stdin.close()
        self._pump.join()
        return self._server.wait()

    def stop(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.terminate()

    def _from_program(self, line: bytes) -> None:
        messages = _messages(line)
        requests = [
            message for message in messages if isinstance(message.get("method"), str) and message.get("id") is not None
        ]
        # The recording hears of a request before the server does: else an answer could come before it.
        decisions = [(request, self._recorder.asked(request["method"], request.get("params"))) for request in requests]
        for request, what in decisions:
            if what.request is not None:
                self._waiting[_key(request)] = what.request
        answered = [(request, what) for request, what in decisions if what.answer is not None]
        for request, what in answered:
            self._give(request, what)
            # The server may be needed later, and must be introduced to the program then, with what the program said
            # here.
            if request["method"] == _INITIALIZE:
                self._hello, self._unheard = [line], {_key(request)}
        if answered and len(answered) == len(decisions):
            return
        if answered:
            handled = [request for request, _ in answered]
            # Of a batch, the server gets what the recording did not answer.
            line = _line([message for message in messages if message not in handled])
        if any(message.get("method") == _INITIALIZED for message in messages) and self._hello and self._server is None:
            self._hello.append(line)
            return
        if not requests and self._server is None and self._hello:
            return  # about what the recording answered: a server that was not asked knows nothing of it
        self._to_server(line)

    def _give(self, request: Mapping[str, Any], what: WhatToDo) -> None:
        """A recorded answer, at its time."""
        # A recording has no ids: the answer gets that of the request, whatever it was when it was recorded.
        line = _line({"jsonrpc": "2.0", "id": request["id"], **(what.answer or {})})
        if what.wait_ms <= 0:
            self._to_program(line)
        else:
            # Not waited for here: the program may ask the next thing meanwhile, as it could of the server.
            later = threading.Timer(what.wait_ms / 1000, self._to_program, (line,))
            later.daemon = True
            later.start()

    def _to_server(self, line: bytes) -> None:
        if self._server is None:
            self._server = self._start()
            self._pump = threading.Thread(target=self._from_server, args=(self._server,), daemon=True)
            self._pump.start()
            for hello in self._hello:
                self._write(hello)
                self._greeted.wait(_PATIENCE_S)  # nothing else may be said to a server before it has answered
        self._write(line)

    def _write(self, line: bytes) -> None:
        assert self._server is not None
        assert self._server.stdin is not None
        with suppress(OSError):  # it ended: the program hears that
            self._server.stdin.write(line)
            self._server.stdin.flush()

    def _from_server(self, server: StartedServer) -> None:
        assert server.stdout is not None
        for line in iter(server.stdout.readline, b""):
            heard = False
            # A line that nobody waits for is not even read as JSON.
            for message in _messages(line) if self._waiting or self._unheard else ():
                key = None if "method" in message else _key(message)
                if key in self._unheard:
                    self._unheard.discard(key)
                    self._greeted.set()
                    heard = True
                elif key is not None and key in self._waiting:
                    self._recorder.answered(self._waiting.pop(key), message)
            if not heard:
                self._to_program(line)
        # Its output has ended: who waits for the greeting need not.
        self._greeted.set()
        self._ended(server.wait())

    def _to_program(self, line: bytes) -> None:
        with self._writing, suppress(OSError, ValueError):
            self._out.write(line)
            self._out.flush()


def _line(message: Any) -> bytes:
    return encoded(message).encode() + b"\n"


def _messages(line: bytes) -> list[dict[str, Any]]:
    """The messages in a line; none where it is something else."""
    if len(line) > _LARGEST:
        return []
    value = parsed_json(line)
    return [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, dict)]


def _key(message: Mapping[str, Any]) -> str | int | float | None:
    """A request's id; a text and a number are never equal."""
    identifier = message.get("id")
    return identifier if isinstance(identifier, str | int | float) else None
