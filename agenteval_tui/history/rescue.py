"""A damaged file: everything that SQLite can still read goes into a new one; the damaged one is kept beside it.

SQLite stops at the first broken page of a table. So each table is read in ranges of its key, and a range that can't
be read is halved until only what is broken is left out.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agenteval_tui.history import schema
from agenteval_tui.history.damaged import copy_readable, open_damaged
from agenteval_tui.history.errors import HistoryError, explain
from agenteval_tui.history.recounting import complete, reindex

_OURS = (".db", ".sqlite", ".sqlite3", "")  # a file of another name may be anything: it is not moved
_HEADER = b"SQLite format 3\0"


def rescue(path: Path, *, still_damaged: Callable[[], bool]) -> str:
    """Replace the damaged file by a new one with what could be saved. Returns the notice.

    Only one process does it; `still_damaged` is asked once the others are locked out.
    Raises HistoryError: no room, no permission, not a history file; the damaged file then stays where it is.
    """
    if path.suffix.lower() not in _OURS and not _has_header(path):
        raise HistoryError("this is not a history file", where=str(path), mend="name another file with --db")
    new, repaired = Path(f"{path}.rescue"), Path(f"{path}.repair")
    with Path(f"{path}.lock").open("ab") as lock:
        os.fchmod(lock.fileno(), 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not still_damaged():
            return f"the history file was damaged; another agenteval has just mended it: {path}"
        try:
            for file in (new, repaired):
                _remove(file)
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            saved = save_readable(path, new, repaired)
            aside = _free_name(f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
            for end in ("", "-wal"):
                with suppress(FileNotFoundError):
                    Path(f"{path}{end}").rename(f"{aside}{end}")
            for end in ("-shm", "-journal", ".check"):
                Path(f"{path}{end}").unlink(missing_ok=True)
            new.rename(path)
        except sqlite3.Error as error:
            raise explain(error, new, doing="written") from error
        except OSError as error:
            raise HistoryError(
                f"the damaged history file can't be mended: {error.strerror}",
                where=str(path),
                mend="free some space, or give yourself write permission for the folder",
            ) from error
        finally:
            for file in (new, repaired):
                _remove(file)
    return (
        f"the history file was damaged; saved from it: {saved['executions']} executions, {saved['runs']} runs, "
        f"{saved['transcripts']} transcripts; the damaged file is kept as {aside}"
    )


def salvage(path: Path, new: Path) -> dict[str, int]:
    """Write everything that can be read of a damaged (or whole) history file into the new file `new`; `path` stays as
    it is. Gives how many executions, runs and transcripts were saved.

    Raises HistoryError: there is a file `new`, no room, no permission, not a history file.
    """
    if not path.is_file() or (path.suffix.lower() not in _OURS and not _has_header(path)):
        raise HistoryError("this is not a history file", where=str(path), mend="name one that agenteval made")
    if new.exists():
        raise _taken(new)
    draft = new.with_name(f".{new.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        try:
            os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            saved = save_readable(path, draft, Path(f"{draft}-repair"))
            if not any(saved.values()):
                raise HistoryError(
                    "nothing of a history can be read in this file", where=str(path), mend="no file was written"
                )
            os.link(draft, new)  # there when all of it is; fails where there is a file, also one that came this moment
        finally:
            for file in (draft, Path(f"{draft}-repair")):
                _remove(file)
    except FileExistsError:
        raise _taken(new) from None
    except OSError as error:
        raise HistoryError(f"what was saved can't be written: {error.strerror}", where=str(new)) from error
    except sqlite3.Error as error:
        raise explain(error, new, doing="written") from error
    return saved


def _taken(new: Path) -> HistoryError:
    return HistoryError(
        "there is a file of this name already, and it is not written over", where=str(new), mend="name another (--to)"
    )


def save_readable(path: Path, new: Path, repaired: Path) -> dict[str, int]:
    """Copy what can be read of `path` into the empty file `new`. `repaired` is a name for a copy that may be needed."""
    target = sqlite3.connect(new, isolation_level=None)
    try:
        target.execute("PRAGMA synchronous = OFF")  # synced as a whole at the end
        source = open_damaged(path, repaired)
        try:
            version = schema.version_of(source) if source is not None else schema.newest()
            schema.migrate(target, upto=version if 0 < version <= schema.newest() else None)
            target.execute("BEGIN")
            if source is not None:
                copy_readable(source, target)
            target.execute("COMMIT")
        finally:
            if source is not None:
                source.close()
        schema.migrate(target)
        target.execute("BEGIN")
        complete(target)
        reindex(target)
        saved = {
            table: int(target.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            for table in ("executions", "runs", "transcripts")
        }
        target.execute("COMMIT")
    finally:
        target.close()
    with new.open("rb") as file:
        os.fsync(file.fileno())
    return saved


def _has_header(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER
    except OSError:
        return False


def _free_name(wanted: str) -> Path:
    number, path = 1, Path(wanted)
    while path.exists():
        number += 1
        path = Path(f"{wanted}-{number}")
    return path


def _remove(file: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        Path(f"{file}{end}").unlink(missing_ok=True)
