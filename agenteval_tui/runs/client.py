"""Starting executions in processes of their own, finding those that live, and watching them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from msgspec import ValidationError, to_builtins
from msgspec.structs import replace

from agenteval_tui.core.directories import config_dir, data_dir, history_file, own_command, own_environment, runtime_dir
from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.core.ids import new_id
from agenteval_tui.core.private_files import make_private
from agenteval_tui.runs.events import Command, Event, decode_event, encode
from agenteval_tui.runs.handshake import parse_line, read_line
from agenteval_tui.runs.live_registry import ExecutionRequest, Live, live_dir, read_card

START_S = 60.0
"""How long a process may take until it runs: it loads suites, opens the history, plans."""
PIECE = 1 << 16


def start(request: ExecutionRequest) -> Live:
    """Begin an execution in a process of its own, and wait until it runs (some tenths of a second: call in a thread).

    An empty `db` or `config_dir` in the request means the user's own. Raises the `AgentevalError` that the process
    met (an invalid suite, a history that can't be written, an execution that can't be resumed, ...), with its place
    and remedy.
    """
    live_dir()  # say at once, and here, when there is no place for sockets
    whole = replace(
        request,
        paths=tuple(str(Path(path).absolute()) for path in request.paths),
        db=str(Path(request.db or history_file()).absolute()),
        config_dir=str(Path(request.config_dir or config_dir()).absolute()),
    )
    log_file = _log_file()
    sent = json.dumps(to_builtins(whole)).encode()
    live = _understood(_started(("agenteval_tui.runs.process",), own_environment(), log_file, sent=sent))
    if live is None:
        last = _last_line(log_file)
        reason = f": {last}" if last else ""
        raise InfrastructureError(f"the execution's process did not start{reason}", where=str(log_file))
    return live


def start_verb(arguments: Sequence[str], db: Path) -> Live:
    """Start a command of the command line in a separate process, and wait until it can be watched (call in a thread).
    `db`: the history. Raises the `AgentevalError` that the process reports, or one with the last line of its log."""
    live_dir()
    log_file = _log_file()
    verb, *options = arguments
    words = ("agenteval_tui", "--db", str(db), verb)
    live = _understood(_started(words, {**own_environment(), "NO_COLOR": "1"}, log_file, options))
    if live is None:
        message = _last_line(log_file).removeprefix("agenteval: ")
        raise InfrastructureError(message or "it did not start", where=str(log_file))
    return live


def _started(
    words: Sequence[str],
    environment: Mapping[str, str],
    log_file: Path,
    more: Sequence[str] = (),
    *,
    sent: bytes | None = None,
) -> bytes:
    """Start `python -m WORDS --ready N MORE`, and return its report (see `handshake`). `sent`: its standard input.

    A process that reports nothing in time is killed, because the user reads that it did not start, and starts it again.
    """
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as answer:
        try:
            descriptor = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "wb") as log:
                child = subprocess.Popen(  # noqa: S603 - our own program
                    own_command(*words, "--ready", str(writing), *more),
                    stdin=subprocess.DEVNULL if sent is None else subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    pass_fds=(writing,),
                    # In a session of its own: the hang-up or the Ctrl+C of this terminal does not reach it.
                    start_new_session=True,
                    env=environment,
                )
        except OSError as error:
            raise InfrastructureError(
                f"the execution's process can't be started: {error.strerror}",
                where=str(error.filename or log_file),
                fix="make the data folder writable, or set AGENTEVAL_DATA_DIR to another folder",
            ) from error
        finally:
            # Our own end of the pipe: as long as it is open, the end of the process would not end the reading.
            os.close(writing)
        # Somebody must wait for it, or it stays a zombie when it ends before we do.
        threading.Thread(target=_reap, args=(child, log_file), daemon=True, name="reap-execution").start()
        if sent is not None:
            assert child.stdin is not None
            # It may have ended before it read all of it: its report, or its log, says why.
            with contextlib.suppress(BrokenPipeError), child.stdin:
                child.stdin.write(sent)
        line = read_line(answer.fileno(), START_S)
        if not line:
            child.kill()
        return line


async def attach(live: Live) -> Attachment:
    """Watch an execution. Raises `AgentevalError` when it has ended meanwhile."""
    try:
        reader, writer = await asyncio.open_unix_connection(live.socket)
    except OSError as error:
        raise InfrastructureError(
            "this execution is no longer running",
            where=f"execution {live.execution}",
            fix="its runs are in the history",
        ) from error
    return Attachment(live, reader, writer)


class Attachment:
    """A watcher's end of the socket: `async for event in attachment` gives a `Snapshot`, then what happens.

    The iteration ends when the execution does (the last event is `Ended`) or its process dies (it is not).
    """

    def __init__(self, live: Live, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.live = live
        self._reader = reader
        self._writer = writer

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events()

    async def _events(self) -> AsyncIterator[Event]:
        # Read by pieces, not by lines: a line may be a snapshot of any size, and a limit as large as that would be
        # what a watcher that is slow heaps up.
        pieces: list[bytes] = []
        with contextlib.suppress(ConnectionError):
            while piece := await self._reader.read(PIECE):
                *ends, rest = piece.split(b"\n")
                for end in ends:
                    pieces.append(end)
                    line = b"".join(pieces)
                    pieces.clear()
                    try:
                        event = decode_event(line)
                    except ValueError:
                        continue  # of another version of this program
                    yield event
                pieces.append(rest)

    async def send(self, command: Command) -> None:
        """Tell the execution to do something. Does nothing when it is over."""
        with contextlib.suppress(ConnectionError):
            self._writer.write(encode(command).encode("ascii") + b"\n")
            await self._writer.drain()

    async def close(self) -> None:
        """Stop watching; the execution continues."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


def live_executions() -> list[Live]:
    """The executions of this user whose processes live, in the order in which they started, whatever the clocks said.
    Removes the files of dead executions.
    """
    folder = runtime_dir() / "live"
    running = []
    for card in folder.glob("*.json"):
        live, alive = read_card(card)
        if live is not None and alive:
            running.append(live)
        elif not alive:
            for path in (card, card.with_suffix(".sock")):
                with contextlib.suppress(OSError):
                    path.unlink()
    return sorted(running, key=lambda live: (live.order, live.started_ms, live.execution))


def find(reference: str = "") -> Live:
    """The living execution that `reference` means: its id, a beginning or the end of it, or "last" for the newest; ""
    where there is only one.

    Raises `AgentevalError` when there is none, or more than one.
    """
    living = live_executions()
    if not living:
        raise AgentevalError(
            "no execution is running", fix="start one: agenteval run PATH; agenteval history lists those that ended"
        )
    sought = reference.strip().upper()
    if sought == "LAST":
        return living[-1]
    matching = [
        live for live in living if live.execution.upper().startswith(sought) or live.execution.upper().endswith(sought)
    ]
    # A whole id may be the beginning or the end of another one.
    exact = [live for live in matching if live.execution.upper() == sought]
    if len(exact or matching) == 1:
        return (exact or matching)[0]
    listed = "; ".join(f"{live.execution} ({live.title})" for live in (matching or living)[:5])
    if matching:
        what = f"{reference!r} matches more than one execution" if sought else "more than one execution is running"
        raise AgentevalError(what, fix=f"name one: {listed}")
    raise AgentevalError(f"no execution {reference!r} is running", fix=f"running: {listed}")


def _understood(line: bytes) -> Live | None:
    """The execution that was started; None if the report can't be read. Raises the `AgentevalError` in the report."""
    try:
        return parse_line(line)
    except (ValueError, KeyError, TypeError, ValidationError, RecursionError):
        return None


def _last_line(log_file: Path) -> str:
    try:
        return "".join(log_file.read_text("utf-8", errors="replace").strip().splitlines()[-1:])
    except OSError:  # it was empty, and whoever waits for the process has removed it
        return ""


def _log_file() -> Path:
    folder = data_dir() / "logs"
    try:
        make_private(folder.parent)
        make_private(folder)
    except OSError as error:
        raise InfrastructureError(
            f"the folder for logs cannot be created: {error.strerror}",
            where=str(folder),
            fix="set AGENTEVAL_DATA_DIR to a folder that you may write",
        ) from error
    return folder / f"execution-{new_id()}.log"


def _reap(child: subprocess.Popen[bytes], log_file: Path) -> None:
    child.wait()
    with contextlib.suppress(OSError):
        if log_file.stat().st_size == 0:
            log_file.unlink()
