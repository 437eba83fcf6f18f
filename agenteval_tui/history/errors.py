"""What can go wrong with the history file, said as one sentence with the place and the remedy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval_tui.core import directories
from agenteval_tui.core.errors import INFRASTRUCTURE, AgentevalError

if TYPE_CHECKING:
    import sqlite3


RUN_SOMETHING = "run a suite with `agenteval run PATH`, or open the samples with `agenteval demo`"


class NothingRanError(AgentevalError):
    """The history has no execution, so what is asked for (by this name) is not in it."""

    def __init__(self, name: str = "") -> None:
        unknown = f"there is no {name!r}: " if name else ""
        super().__init__(f"{unknown}nothing has run yet", fix=RUN_SOMETHING)


class HistoryError(AgentevalError):
    """The history file could not be opened, read or written. What was stored before is still there. Exit code 3."""

    exit_code = INFRASTRUCTURE


class DamagedError(HistoryError):
    """The history file is damaged; opening it again moves it aside and saves what can be read."""


class ForeignFileError(HistoryError):
    """The file is not a history and was never one: it stays as it is."""


class LockedError(HistoryError):
    """Another program keeps the history file locked: trying again may succeed."""


MAGIC = b"SQLite format 3\0"
"""How each file of SQLite begins."""
UNRELEASED_ID = 0x41474556
"""SQLite's `application_id` in files of development versions: their tables are others, whatever version they name."""
_HEADER = 100  # bytes
_OURS = (".db", ".sqlite", ".sqlite3")  # a file of another name may be anything
_LOOKED_AT = 1 << 20  # bytes; each page of SQLite holds NUL bytes

# Primary result codes of SQLite (the low byte of an extended code).
_PERM, _BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _PROTOCOL, _NOTADB = (
    3,
    5,
    6,
    8,
    10,
    11,
    13,
    14,
    15,
    26,
)


def result_code(error: Exception) -> int:
    """SQLite's primary result code of `error`; 0 where the error came from Python's own checks."""
    code = getattr(error, "sqlite_errorcode", None)
    return 0 if code is None else int(code) & 0xFF


def is_busy(error: Exception) -> bool:
    """Another program holds the lock: trying again may succeed."""
    return result_code(error) in (_BUSY, _LOCKED, _PROTOCOL)


def is_damage(error: sqlite3.Error) -> bool:
    """The file is not what SQLite wrote."""
    return result_code(error) in (_CORRUPT, _NOTADB)


def application_id(path: Path) -> int | None:
    """The `application_id` in the header of a file of SQLite; None for any other file. Changes nothing: neither the
    file nor the write-ahead log beside it.

    SQLite itself reads it. If we opened the file beside SQLite, closing it would drop the locks of all connections that
    this process has to it (so POSIX says); another process could then remove the log that they still write to.
    """
    if not path.is_file() or 0 < path.stat().st_size < _HEADER:
        return None  # SQLite takes a file of one byte for an empty one
    import sqlite3  # who only names these errors has no history to open

    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)
    except sqlite3.Error:
        return None
    try:
        return int(connection.execute("PRAGMA application_id").fetchone()[0])
    except sqlite3.Error:
        return None
    finally:
        connection.close()


def is_foreign(path: Path) -> bool:
    """Whether a file that SQLite can't read is an unrelated text or picture, not a damaged history. agenteval's own
    data folder has no other files: a broken file there is a history.
    """
    if application_id(path) is not None:
        return False
    try:
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
            if not head or head == MAGIC:
                return False
            if path.suffix.lower() in _OURS and b"\0" in head + file.read(_LOOKED_AT):
                return False
    except OSError:
        return False
    return not Path(os.path.abspath(path)).is_relative_to(directories.data_dir())  # noqa: PTH100 - as it is named


def foreign_file(path: Path) -> ForeignFileError:
    """What is said of such a file."""
    return ForeignFileError(
        "this is not a history file", where=str(path), fix="name another file with --db or AGENTEVAL_DB"
    )


def refuse_unreleased(path: Path) -> None:
    """Raise HistoryError for a history of a development version before 0.1.0. Changes nothing."""
    if application_id(path) == UNRELEASED_ID:
        raise unreleased(path)


def unreleased(path: Path) -> HistoryError:
    """What is said of a history of a development version."""
    return HistoryError(
        "this history was written by a development version before agenteval 0.1.0, and its tables are others; "
        "nothing in it was changed",
        where=str(path),
        fix="to start a new one, move the file away or name another with --db; to keep its runs, check out the commit "
        "that wrote it, run `agenteval --db FILE export EXECUTION OUT` there, and `agenteval import OUT` here",
    )


def explain(error: sqlite3.Error, path: Path, *, doing: str) -> HistoryError:
    """`error` as a sentence. `doing` completes "the history file can't be ..." ("read", "written", "opened")."""
    code = result_code(error)
    where = str(path)
    if code == _NOTADB and is_foreign(path):
        return foreign_file(path)
    if code in (_CORRUPT, _NOTADB):
        return DamagedError(
            "the history file is damaged",
            where=where,
            fix="start agenteval again: it moves the file aside and saves every run that can still be read",
        )
    if code in (_BUSY, _LOCKED, _PROTOCOL):
        return LockedError(
            "another program keeps the history file locked",
            where=where,
            fix="wait until it has finished, or end it; nothing that was stored is lost",
        )
    if code == _FULL:
        return HistoryError(
            "the disk is full", where=where, fix="free some space and try again; everything stored before is safe"
        )
    if code in (_READONLY, _PERM, _CANTOPEN):
        return HistoryError(
            f"the history file can't be {doing}: no permission, or the folder is read-only",
            where=where,
            fix="give yourself write permission for the file and its folder, or name another file with --db",
        )
    if code == _IOERR:
        return HistoryError(
            f"the history file can't be {doing}: the disk reports an error ({error})",
            where=where,
            fix="check the disk and its free space",
        )
    return HistoryError(f"the history file can't be {doing}: {error}", where=where)
