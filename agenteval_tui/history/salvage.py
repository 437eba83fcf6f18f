"""A damaged file: everything that can still be read goes into a new one; the damaged one is kept beside it."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from msgspec import Struct

from agenteval_tui.core.atomic_write import draft_path, locked
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import free_name
from agenteval_tui.history import schema
from agenteval_tui.history.connections import rescued_path
from agenteval_tui.history.damaged_file import Found, copy_readable
from agenteval_tui.history.errors import MAGIC, HistoryError, explain, is_foreign, refuse_unreleased
from agenteval_tui.history.rebuild_totals import REBUILT, RebuildResult, complete, reindex

_LOGS = ("-wal", "-journal")
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
    "tapes": ("program's requests", "programs' requests"),
    "tasks": ("group of runs' inputs", "groups of runs' inputs"),
    "dataset_rows": ("row of a dataset", "rows of datasets"),
    "imports": ("record of an import", "records of imports"),
    "taken_back": ("record of what was taken back", "records of what was taken back"),
}


class Loss(Struct, frozen=True):
    """The rows that a table lost. `unknown`: the file doesn't tell how many."""

    table: str
    rows: int = 0
    unknown: bool = False


class SalvageResult(Struct, frozen=True):
    """Rows that were saved (of executions, runs, transcripts), and everything that was lost."""

    rows: dict[str, int]
    lost: tuple[Loss, ...]


def rescue(path: Path, *, still_damaged: Callable[[], bool]) -> str:
    """Replace the damaged file by a new one with what could be saved. Returns the notice.

    Only one process does it; `still_damaged` is asked once the others are locked out.
    Raises HistoryError: no room, no permission; the damaged file then stays where it is.
    """
    new = Path(f"{path}.rescue")
    # Two that repair the same file would move each other's result aside.
    with locked(Path(f"{path}.lock")):
        if not still_damaged():
            return f"the history file was damaged; another agenteval has just repaired it: {path}"
        try:
            # Left by a process that was killed while it repaired.
            _remove(new)
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            saved = save_readable(path, new)
            # Synced by now: this name never stands for a file that is only half on the disk. If this process is killed
            # from here on, the next opening goes on (`finish_rescue`).
            new.rename(rescued_path(path))
            aside = _put_in_place(path)
        except sqlite3.Error as error:
            raise explain(error, new, doing="written") from error
        except OSError as error:
            raise _not_repaired(path, error) from error
        finally:
            _remove(new)
    return (
        f"the history file was damaged; saved from it: {saved.rows['executions']:,} executions,"
        f" {saved.rows['runs']:,} runs, {saved.rows['transcripts']:,} transcripts; "
        + (
            f"lost: {', '.join(map(describe_loss, saved.lost))}; "
            if saved.lost
            else "nothing is lost; "
            if any(saved.rows.values())
            else ""
        )
        + f"the damaged file is kept as {aside}"
    )


def finish_rescue(path: Path) -> None:
    """Put in place what a process had saved when it was killed. Raises HistoryError: no permission."""
    try:
        with locked(Path(f"{path}.lock")):
            if rescued_path(path).exists():  # else another process was still at it, and has done so
                _put_in_place(path)
    except OSError as error:
        raise _not_repaired(path, error) from error


def _not_repaired(path: Path, error: OSError) -> HistoryError:
    return HistoryError(
        f"the damaged history file can't be repaired: {error.strerror}",
        where=str(path),
        fix="free some space, or give yourself write permission for the folder",
    )


def _put_in_place(path: Path) -> Path:
    """Move the damaged file aside, and what was saved of it into its place. Returns where the damaged file is."""
    aside = Path(free_name(f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}", os.path.exists))
    if not path.exists():  # it was moved before the process was killed
        moved = [file for file in path.parent.glob(f"{path.name}.damaged-*") if not file.name.endswith(_LOGS)]
        aside = max(moved, default=aside)
    # The log goes with its file: SQLite would play it into the new one.
    for end in ("", *_LOGS):
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").rename(f"{aside}{end}")
    for end in ("-shm", ".check"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    rescued_path(path).rename(path)
    return aside


def describe_loss(loss: Loss) -> str:
    """The loss in words."""
    singular, plural = _NAMES.get(loss.table, (loss.table, loss.table))
    return (
        f"an unknown number of {plural}" if loss.unknown else f"{loss.rows:,} {plural if loss.rows != 1 else singular}"
    )


def salvage(path: Path, new: Path) -> SalvageResult:
    """Write everything that can be read of a damaged (or whole) history file into the new file `new`; `path` stays as
    it is. Gives how many executions, runs and transcripts were saved.

    Raises HistoryError: no room, no permission; `AgentevalError`: there is a file `new`, or `path` is not a history.
    """
    if not path.exists():
        raise AgentevalError("there is no such history file", where=str(path), fix="check the path")
    if not path.is_file() or is_foreign(path):
        raise AgentevalError("this is not a history file", where=str(path), fix="name one that agenteval made")
    refuse_unreleased(path)
    if new.exists():
        raise _taken(new)
    draft = draft_path(new)
    try:
        try:
            os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            saved = save_readable(path, draft)
            if not any(saved.rows.values()):
                raise HistoryError(
                    "this file has no readable part of a history", where=str(path), fix="no file was written"
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


def _taken(new: Path) -> AgentevalError:
    return AgentevalError("this file already exists and is not overwritten", where=str(new), fix="name another (--to)")


def save_readable(path: Path, new: Path) -> SalvageResult:
    """Copy what can be read of `path` into the empty file `new`."""
    scratch = draft_path(new)
    try:
        with closing(sqlite3.connect(new, isolation_level=None)) as target:
            target.execute("PRAGMA synchronous = OFF")  # synced as a whole at the end
            # First the tables as the old file has them, so that its rows fit; they are brought up to date with their
            # rows.
            schema.migrate(target, upto=_version(path))
            target.execute("BEGIN")
            copied = copy_readable(path, target, scratch)
            target.execute("COMMIT")
            schema.migrate(target)
            target.execute("BEGIN")
            completed = complete(target, copied.damaged)
            reindex(target)
            saved = {
                table: int(target.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
                for table in ("executions", "runs", "transcripts")
            }
            target.execute("COMMIT")
    finally:
        _remove(scratch)
    # Before anybody gives the file its name: until here nothing of it had to be on the disk.
    with new.open("rb") as file:
        os.fsync(file.fileno())
    return SalvageResult(saved, _losses(copied, completed))


def _version(path: Path) -> int:
    """Of the file's tables; the newest where it does not say."""
    with path.open("rb") as file:
        head = file.read(64)
    version = int.from_bytes(head[60:], "big")
    return version if head.startswith(MAGIC) and 0 < version < schema.newest() else schema.newest()


def _losses(copied: Found, completed: RebuildResult) -> tuple[Loss, ...]:
    """By table: what its indexes know, or what other rows name, whichever is more."""
    losses = []
    for table in sorted({*copied.missing, *copied.unknown, *completed.lost}, key=_place):
        missing = copied.missing.get(table, 0) - completed.rebuilt.get(table, 0)
        rows = max(missing, completed.lost.get(table, 0), 0)
        if rows:
            losses.append(Loss(table, rows))
        elif table in copied.unknown and table not in (*REBUILT, "evidence"):  # of these others tell
            losses.append(Loss(table, unknown=True))
    return tuple(losses)


def _place(table: str) -> tuple[int, str]:
    """What matters most comes first."""
    return (_ORDER.index(table) if table in _ORDER else len(_ORDER)), table


def _remove(file: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        Path(f"{file}{end}").unlink(missing_ok=True)
