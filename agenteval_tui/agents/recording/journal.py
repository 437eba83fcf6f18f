"""The paid answers of a recording into a cassette, in a file beside the cassette until the cassette is complete."""

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
from agenteval_tui.core.atomic_write import append_whole, draft_path, locked
from agenteval_tui.core.errors import AgentevalError

_SUFFIX = ".partial"


class Journals(Struct, frozen=True):
    """The journals of one cassette: the exchanges of recordings that were cut off, the files that these recordings
    `left`, and the number of `running` recordings. The kernel releases the lock on a journal whenever its process
    ends."""

    exchanges: tuple[Exchange, ...] = ()
    left: tuple[Path, ...] = ()
    running: int = 0


def journals_of(path: Path) -> Journals:
    """The journals beside a cassette, in the order of their names. Raises `AgentevalError`."""
    exchanges: list[Exchange] = []
    stale: list[Path] = []
    running = 0
    for journal in _paths(path):
        try:
            with journal.open("rb") as file:
                if _is_running(file.fileno()):
                    running += 1
                    continue
                # The last line may be cut off in the middle of a character.
                exchanges += left_in(file.read().decode("utf-8", "replace"))
                stale.append(journal)
        except FileNotFoundError:
            continue  # its recording has just ended
        except OSError as error:
            raise AgentevalError(f"what a recording left can't be read: {error.strerror}", where=str(journal)) from None
    return Journals(tuple(exchanges), tuple(stale), running)


class Journal:
    """A cassette that grows with each answer, so that paid answers survive if the recording program is killed. It
    belongs to one recording: a second recording into the same cassette uses a separate file.

    `before`: its contents at the start, including the exchanges of the files in `stale`, which it removes. Raises
    `AgentevalError`.
    """

    def __init__(self, path: Path, before: Cassette, stale: Sequence[Path] = ()) -> None:
        try:
            path.parent.stat()  # else the lock would be a new file of that name
            # Two recordings that start at once must not take the same name, nor one remove what the other has just
            # made.
            with locked(path.parent, needed=False):
                self._path = next(name for name in _names(path) if not _is_used(name, stale))
                self._descriptor = _written(self._path, before)
                for name in stale:
                    if name != self._path and not _is_locked(name):  # another recording may have its name by now
                        with suppress(OSError):
                            name.unlink(missing_ok=True)
        except OSError as error:
            raise AgentevalError(
                f"this file can't be written: {(error.strerror or str(error)).lower()}",
                where=str(path.with_name(path.name + _SUFFIX)),
                fix="check the folder, its permissions and the space on its disk",
            ) from None

    def add(self, exchange: Exchange) -> None:
        """Add an exchange. If it does not fit onto the disk, the journal lacks it, and the recording continues."""
        with suppress(OSError):
            append_whole(self._descriptor, (encoded(to_json(exchange)) + "\n").encode())

    def done(self) -> None:
        """The cassette is complete: remove the journal."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file. Its contents are left for a later recording, unless `done` removed it."""
        os.close(self._descriptor)


def _names(path: Path) -> Iterator[Path]:
    """The names for journals of a cassette: the first name, the second name, ..."""
    yield path.with_name(path.name + _SUFFIX)
    yield from (path.with_name(f"{path.name}{_SUFFIX}{number}") for number in count(2))


def _paths(path: Path) -> list[Path]:
    """The existing journals."""
    first = path.name + _SUFFIX
    with suppress(OSError):
        paths = [file for file in path.parent.iterdir() if file.name.startswith(first)]
        return sorted(path for path in paths if path.name == first or path.name.removeprefix(first).isdecimal())
    return []


def _is_running(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system that knows no locks
    return False


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _is_running(file.fileno())
    except OSError:
        return False


def _is_used(path: Path, stale: Sequence[Path]) -> bool:
    """Whether another recording uses this journal, or left exchanges in it that have not been read yet."""
    try:
        with path.open("rb") as file:
            return path not in stale or _is_running(file.fileno())
    except FileNotFoundError:
        return False


def _written(path: Path, before: Cassette) -> int:
    """Create a journal, complete and locked, and return its descriptor. Raises OSError."""
    draft = draft_path(path)
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        with suppress(OSError):
            # Locked as a draft, before it has its name: whoever sees the name sees that it is in use.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.writelines(line.encode("utf-8", "backslashreplace") for line in lines(before))
        draft.replace(path)
    except BaseException:
        os.close(descriptor)
        draft.unlink(missing_ok=True)
        raise
    return descriptor
