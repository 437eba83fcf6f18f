"""What can go wrong with the history file, said as one sentence with the place and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agenteval_tui.core.errors import INFRASTRUCTURE, AgentevalError

if TYPE_CHECKING:
    import sqlite3


class HistoryError(AgentevalError):
    """The history file could not be opened, read or written. What was stored before is still there. Exit code 3."""

    exit_code = INFRASTRUCTURE


class DamagedError(HistoryError):
    """The history file is damaged; opening it again moves it aside and saves what can be read."""


class LockedError(HistoryError):
    """Another program keeps the history file locked: trying again may succeed."""


# Primary result codes of SQLite (the low byte of an extended code).
_PERM, _BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _PROTOCOL, _NOTADB = (
    *(3, 5, 6, 8, 10, 11, 13, 14, 15),
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


def explain(error: sqlite3.Error, path: Path, *, doing: str) -> HistoryError:
    """`error` as a sentence. `doing` completes "the history file can't be ..." ("read", "written", "opened")."""
    code = result_code(error)
    where = str(path)
    if code in (_CORRUPT, _NOTADB):
        return DamagedError(
            "the history file is damaged",
            where=where,
            mend="start agenteval again: it moves the file aside and saves every run that can still be read",
        )
    if code in (_BUSY, _LOCKED, _PROTOCOL):
        return LockedError(
            "another program keeps the history file locked",
            where=where,
            mend="wait until it has finished, or end it; nothing that was stored is lost",
        )
    if code == _FULL:
        return HistoryError(
            "the disk is full", where=where, mend="free some space and try again; everything stored before is safe"
        )
    if code in (_READONLY, _PERM, _CANTOPEN):
        return HistoryError(
            f"the history file can't be {doing}: no permission, or the folder is read-only",
            where=where,
            mend="give yourself write permission for the file and its folder, or name another file with --db",
        )
    if code == _IOERR:
        return HistoryError(
            f"the history file can't be {doing}: the disk reports an error ({error})",
            where=where,
            mend="check the disk and its free space",
        )
    return HistoryError(f"the history file can't be {doing}: {error}", where=where)
