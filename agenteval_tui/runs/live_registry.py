"""Executions that live in a process of their own: how they are asked for, and where they can be found."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, ValidationError, convert, field, to_builtins
from msgspec.structs import replace

from agenteval_tui.core.atomic_write import locked
from agenteval_tui.core.directories import runtime_dir
from agenteval_tui.core.errors import InfrastructureError
from agenteval_tui.core.private_files import make_private
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.plan.options import PlanOptions

LONGEST_PATH = 103
"""A socket's path in bytes: 104 with the final zero on macOS, 108 on Linux."""


class ExecutionRequest(Struct, frozen=True):
    """What to run: suite files or folders, the options, the history file, and the folder of the user's agents.

    Or what to continue: `resume` is the reference of an execution whose missing runs are run (`errors`: also those that
    ended in an error); then there are no `paths`. See `runs.resume.resume_plan`. Or which run to continue: `fork`.
    """

    paths: tuple[str, ...] = ()
    options: PlanOptions = field(default_factory=PlanOptions)
    db: str = ""
    config_dir: str = ""
    resume: str = ""
    errors: bool = False
    fork: ForkRequest | None = None


class Live(Struct, frozen=True):
    """An execution whose process lives: its id, the process, the socket to attach to, title and start.

    `notices`: messages for the user who started it, such as a suite that changed since it was planned. `order`:
    executions that started later have higher ones, whatever the clocks say.
    """

    execution: str
    pid: int
    socket: str
    title: str
    started_ms: int
    notices: tuple[str, ...] = ()
    order: int = 0


def live_dir() -> Path:
    """The folder of sockets, created if necessary, for this user only. Raises `AgentevalError` when it can't be created
    or belongs to another user: its owner could answer in our place.
    """
    folder = runtime_dir() / "live"
    fix = "set AGENTEVAL_RUNTIME_DIR to your own folder"
    try:
        make_private(folder.parent)
        make_private(folder)
        state = folder.lstat()  # a link in its place would lead to a folder of somebody else's choice
    except OSError as error:
        raise InfrastructureError(
            f"the folder for running executions cannot be created: {error.strerror}", where=str(folder), fix=fix
        ) from error
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid():
        raise InfrastructureError("the folder for running executions is not yours", where=str(folder), fix=fix)
    if state.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def socket_path(folder: Path, execution: str) -> Path:
    """Where the execution's socket is. Raises `AgentevalError` when the path would be too long for a socket."""
    path = folder / f"{execution.replace('/', '-')}.sock"  # never out of the folder, whoever gave the id
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise InfrastructureError(
            f"the path of the socket is longer than {LONGEST_PATH} bytes",
            where=str(path),
            fix="set AGENTEVAL_RUNTIME_DIR to a folder with a short path",
        )
    return path


def card_path(socket: Path) -> Path:
    """The small file beside a socket that says which execution it is."""
    return socket.with_suffix(".json")


@contextmanager
def registration(live: Live) -> Iterator[Live]:
    """While this lasts, others find the execution: a card beside its socket, locked as long as this process lives.

    Gives the execution as the card has it, with its `order`.
    """
    card = card_path(Path(live.socket))
    new = card.with_suffix(".new")
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        # Locked under its other name: whoever finds the card finds it locked.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with locked(card.parent):  # the folder itself carries the lock
            # Under the folder's lock, so that no two get the same number.
            live = replace(live, order=_next_order(card.parent))
            os.write(descriptor, json.dumps(to_builtins(live)).encode())
            new.rename(card)  # it comes into being whole and locked
        yield live
    finally:
        card.unlink(missing_ok=True)
        os.close(descriptor)


def _next_order(folder: Path) -> int:
    """A number above those of all executions that are shown. No clock has a part in it: clocks are set back."""
    cards = (read_card(card) for card in folder.glob("*.json"))
    return 1 + max((live.order for live, alive in cards if live is not None and alive), default=0)


def read_card(card: Path) -> tuple[Live | None, bool]:
    """The execution that a card describes (None if the card can't be read), and whether its process lives. A card that
    can't be opened may belong to a living process.

    The kernel releases the lock when the process dies, however it dies. A process number may be another's by then.
    """
    try:
        with card.open("rb") as file:
            alive = _is_locked(file.fileno())
            try:
                return convert(json.loads(file.read()), Live), alive
            except (ValueError, ValidationError, RecursionError):
                return None, alive  # another version of this program may have written it
    except FileNotFoundError:
        return None, False
    except OSError:
        return None, True


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
