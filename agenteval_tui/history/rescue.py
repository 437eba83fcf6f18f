"""A damaged file: everything that can still be read goes into a new one; the damaged one is kept beside it."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from agenteval_tui.history import schema
from agenteval_tui.history.damaged import Damaged, Found
from agenteval_tui.history.errors import HistoryError, explain
from agenteval_tui.history.pages import MAGIC
from agenteval_tui.history.recounting import REBUILT, Completed, complete, reindex

_OURS = (".db", ".sqlite", ".sqlite3", "")  # a file of another name may be anything: it is not moved

_ORDER = ("executions", "runs", "transcripts", "evidence", "labels", "baselines", "triage", "quarantines")
_NAMES = {
    "executions": ("title and settings of an execution", "titles and settings of executions"),
    "runs": ("run", "runs"),
    "transcripts": ("transcript", "transcripts"),
    "evidence": ("run's evidence", "runs' evidence"),
    "labels": ("label", "labels"),
    "baselines": ("baseline", "baselines"),
    "triage": ("decision", "decisions"),
    "quarantines": ("quarantine", "quarantines"),
    "criterion_results": ("criterion's result", "criteria's results"),
    "tool_calls": ("tool call", "tool calls"),
    "plans": ("prompt with its variables", "prompts with their variables"),
    "tests": ("test's name", "tests' names"),
    "suites": ("suite's name", "suites' names"),
    "criteria": ("version of a criterion", "versions of criteria"),
    "criterion_texts": ("criterion's text", "criteria's texts"),
    "judge_replies": ("judge's reply", "judges' replies"),
    "run_replies": ("reference to a judge's reply", "references to judges' replies"),
    "failed_attempts": ("failed attempt", "failed attempts"),
    "tasks": ("group of runs' inputs", "groups of runs' inputs"),
    "dataset_rows": ("row of a dataset", "rows of datasets"),
    "imports": ("record of an import", "records of imports"),
    "taken_back": ("record of what was taken back", "records of what was taken back"),
}


@dataclass(frozen=True, slots=True)
class Loss:
    """What is lost of a table: whole rows, and parts of rows (`cut`); `pages` that were destroyed where nothing says
    how many rows were on them."""

    table: str
    rows: int = 0
    cut: int = 0
    pages: int = 0


@dataclass(frozen=True, slots=True)
class Salvaged:
    """Rows that were saved (of executions, runs, transcripts), and everything that was lost."""

    rows: dict[str, int]
    lost: tuple[Loss, ...]


def rescue(path: Path, *, still_damaged: Callable[[], bool]) -> str:
    """Replace the damaged file by a new one with what could be saved. Returns the notice.

    Only one process does it; `still_damaged` is asked once the others are locked out.
    Raises HistoryError: no room, no permission, not a history file; the damaged file then stays where it is.
    """
    if path.suffix.lower() not in _OURS and not _has_header(path):
        raise HistoryError("this is not a history file", where=str(path), mend="name another file with --db")
    new = Path(f"{path}.rescue")
    with Path(f"{path}.lock").open("ab") as lock:
        os.fchmod(lock.fileno(), 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not still_damaged():
            return f"the history file was damaged; another agenteval has just mended it: {path}"
        try:
            _remove(new)
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            saved = save_readable(path, new)
            aside = _free_name(f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
            for end in ("", "-wal", "-journal"):
                with suppress(FileNotFoundError):
                    Path(f"{path}{end}").rename(f"{aside}{end}")
            for end in ("-shm", ".check"):
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
            _remove(new)
    return (
        f"the history file was damaged; saved from it: {saved.rows['executions']} executions,"
        f" {saved.rows['runs']} runs, {saved.rows['transcripts']} transcripts; "
        + (
            f"lost: {', '.join(map(said, saved.lost))}; "
            if saved.lost
            else "nothing is lost; "
            if any(saved.rows.values())
            else ""
        )
        + f"the damaged file is kept as {aside}"
    )


def said(loss: Loss) -> str:
    """The loss in words."""
    what = _NAMES.get(loss.table, (loss.table, loss.table))
    parts = []
    if loss.rows:
        parts.append(f"{loss.rows:,} {what[loss.rows != 1]}")
    if loss.cut:
        parts.append(f"parts of {loss.cut:,} {what[loss.cut != 1]}")
    if loss.pages:
        parts.append(f"an unknown number of {what[1]} ({loss.pages:,} {'page' if loss.pages == 1 else 'pages'})")
    return ", ".join(parts)


def salvage(path: Path, new: Path) -> Salvaged:
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
            saved = save_readable(path, draft)
            if not any(saved.rows.values()):
                raise HistoryError(
                    "nothing of a history can be read in this file", where=str(path), mend="no file was written"
                )
            os.link(draft, new)  # there when all of it is; fails where there is a file, also one that came this moment
        finally:
            _remove(draft)
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


def save_readable(path: Path, new: Path) -> Salvaged:
    """Copy what can be read of `path` into the empty file `new`."""
    with Damaged(path) as source, closing(sqlite3.connect(new, isolation_level=None)) as target:
        target.execute("PRAGMA synchronous = OFF")  # synced as a whole at the end
        schema.migrate(target, upto=source.version)
        target.execute("BEGIN")
        found = source.copy(target)
        target.execute("COMMIT")
        schema.migrate(target)
        target.execute("BEGIN")
        completed = complete(target, found.damaged)
        reindex(target)
        saved = {
            table: int(target.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            for table in ("executions", "runs", "transcripts")
        }
        target.execute("COMMIT")
    with new.open("rb") as file:
        os.fsync(file.fileno())
    return Salvaged(saved, _losses(found, completed))


def _losses(found: Found, completed: Completed) -> tuple[Loss, ...]:
    """By table: what its indexes know, what other rows name, or what is there and can't be used, whichever is more."""
    losses = []
    for table in sorted({*found.missing, *found.pages, *found.cut, *found.unreadable, *completed.lost}, key=_place):
        known = max(found.missing.get(table, 0), found.unreadable.get(table, 0)) - completed.rebuilt.get(table, 0)
        rows = max(known, completed.lost.get(table, 0), 0)
        pages = 0 if rows or table in found.missing or table in REBUILT else found.pages.get(table, 0)
        if rows or pages or found.cut.get(table):
            losses.append(Loss(table, rows, found.cut.get(table, 0), pages))
    return tuple(losses)


def _place(table: str) -> tuple[int, str]:
    """What matters most comes first."""
    return (_ORDER.index(table) if table in _ORDER else len(_ORDER)), table


def _has_header(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
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
