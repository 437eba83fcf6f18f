"""What a recording into a cassette has paid for so far: a file beside the cassette, until that is written whole."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from msgspec import Struct

from agenteval_tui.agents.recording.cassette import Cassette, left_in, lines
from agenteval_tui.agents.recording.exchange import Exchange, encoded, to_json
from agenteval_tui.core.atomic_write import draft_path, locked
from agenteval_tui.core.errors import AgentevalError

_SUFFIX = ".partial"


class Journals(Struct, frozen=True):
    """The journals of one cassette: what recordings that were cut off have `left`, and in which files; how many
    recordings are `running`. The kernel gives up the lock on a journal when its process ends, however it ends."""

    exchanges: tuple[Exchange, ...] = ()
    left: tuple[Path, ...] = ()
    running: int = 0


def journals_of(path: Path) -> Journals:
    """The journals beside a cassette, in the order of their names. Raises `AgentevalError`."""
    exchanges: list[Exchange] = []
    left: list[Path] = []
    running = 0
    for one in _paths(path):
        try:
            with one.open("rb") as file:
                if _is_running(file.fileno()):
                    running += 1
                    continue
                exchanges += left_in(file.read().decode("utf-8", "replace"))
                left.append(one)
        except FileNotFoundError:
            continue  # its recording has just ended
        except OSError as error:
            raise AgentevalError(f"what a recording left can't be read: {error.strerror}", where=str(one)) from None
    return Journals(tuple(exchanges), tuple(left), running)


class Journal:
    """A cassette that grows with each answer, so that what was paid for outlives the program that keeps it. It is this
    recording's alone: another one into the same cassette has a file of its own.

    `before`: what it holds from the start; those in `left` are in it, too, and go. Raises `AgentevalError`.
    """

    def __init__(self, path: Path, before: Cassette, left: Sequence[Path] = ()) -> None:
        try:
            path.parent.stat()  # else the lock would be a new file of that name
            with locked(path.parent, needed=False):
                self._path = next(one for one in _names(path) if not _is_used(one, left))
                self._descriptor = _written(self._path, before)
        except OSError as error:
            raise AgentevalError(
                f"this file can't be written: {(error.strerror or str(error)).lower()}",
                where=str(path.with_name(path.name + _SUFFIX)),
                mend="check the folder, its permissions and the space on its disk",
            ) from None
        for one in left:
            if one != self._path:
                with suppress(OSError):
                    one.unlink(missing_ok=True)

    def add(self, exchange: Exchange) -> None:
        """One more. A disk that is full costs the journal, not the recording."""
        with suppress(OSError):
            os.write(self._descriptor, (encoded(to_json(exchange)) + "\n").encode())

    def done(self) -> None:
        """The cassette itself is written."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """What is in it now was left, unless it is `done`."""
        os.close(self._descriptor)


def _names(path: Path) -> Iterator[Path]:
    """What journals of a cassette are called: the first one's name, the second one's, ..."""
    yield path.with_name(path.name + _SUFFIX)
    yield from (path.with_name(f"{path.name}{_SUFFIX}{number}") for number in count(2))


def _paths(path: Path) -> list[Path]:
    """Those that are there."""
    first = path.name + _SUFFIX
    with suppress(OSError):
        found = [one for one in path.parent.iterdir() if one.name.startswith(first)]
        return sorted(one for one in found if one.name == first or one.name.removeprefix(first).isdecimal())
    return []


def _is_running(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system that knows no locks
    return False


def _is_used(path: Path, left: Sequence[Path]) -> bool:
    """Whether another recording has this journal, or left something in it that is not known yet."""
    try:
        with path.open("rb") as file:
            return path not in left or _is_running(file.fileno())
    except FileNotFoundError:
        return False


def _written(path: Path, before: Cassette) -> int:
    """The descriptor of a journal, which comes into being whole and locked. Raises OSError."""
    draft = draft_path(path)
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.writelines(line.encode("utf-8", "backslashreplace") for line in lines(before))
        draft.replace(path)
    except BaseException:
        os.close(descriptor)
        draft.unlink(missing_ok=True)
        raise
    return descriptor
