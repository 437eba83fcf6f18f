"""The history on another disk or machine: a copy of one moment, made while others write; and suites that moved."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from agenteval_tui.core.atomic_write import draft_path
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.storable import storable
from agenteval_tui.history.blobs import json_text
from agenteval_tui.history.connections import READING_TRIES, connect_to_look
from agenteval_tui.history.errors import HistoryError, explain
from agenteval_tui.history.lock_wait import retry_while_locked
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation, Totals
from agenteval_tui.suites.projects import project_of_keys

COPIED = "it was running when this copy of the history was made"


def copy_history(path: Path, target: Path, *, force: bool = False) -> int:
    """Write a copy of the history file, as it is at this moment, without unused pages. Gives its size in bytes.

    Writers don't wait (except on a network file system, where SQLite has no log). The file appears only when it is
    complete. Executions that are running are interrupted in the copy, and can be resumed there. Raises HistoryError: no
    room, no permission; `AgentevalError`: there is a file and `force` is not set.
    """
    if target.exists() and (not force or not target.is_file() or target.samefile(path)):
        raise AgentevalError(
            "this file already exists and is not overwritten" if target.is_file() else "this is a folder",
            where=str(target),
            fix="name another",
        )
    draft = draft_path(target)
    try:
        try:
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            retry_while_locked(path, lambda: _write_copy(path, draft), READING_TRIES)
            # On the disk before it gets its name: after a power failure there is a whole copy or none.
            with draft.open("rb") as file:
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
            if force:
                draft.replace(target)
            else:
                os.link(draft, target)  # fails where there is a file, also one that came this moment
        finally:
            for end in ("", "-journal", "-wal", "-shm"):
                Path(f"{draft}{end}").unlink(missing_ok=True)
    except OSError as error:
        raise HistoryError(f"the copy can't be written: {error.strerror or error}", where=str(target)) from error
    except sqlite3.Error as error:
        raise explain(error, target, doing="written") from error
    return size


def _write_copy(path: Path, draft: Path) -> None:
    """`VACUUM INTO` reads one moment of the file. A file that no other process knows of needs no locks: some network
    file systems have none."""
    address = f"file:{quote(str(draft.absolute()))}?vfs=unix-none"
    with closing(connect_to_look(path)) as source:
        source.execute("PRAGMA query_only = 0")  # the connection is read only all the same
        source.execute("VACUUM INTO ?", (address,))
    with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as copy:
        copy.execute("BEGIN")
        copy.execute(
            "UPDATE runs SET status = 'queued' WHERE status IN ('running', 'grading')"
            " AND execution IN (SELECT id FROM executions WHERE status = 'running')"
        )
        copy.execute("UPDATE executions SET status = 'interrupted', message = ? WHERE status = 'running'", (COPIED,))
        copy.execute("COMMIT")


class MoveResult(Struct, frozen=True):
    """How many suites go by another path now, and how many tests were there under both and are one now."""

    suites: int
    merged: int


def move_suites(store: Store, old: str, new: str) -> MoveResult:
    """Suites in folder (or file) `old` are in `new` now: their earlier runs belong to the suites at `new`. Blocks.
    Suites are known by their absolute path, which changes when a project moves, or the history moves to another
    machine. Raises HistoryError.
    """
    moved: MoveResult = store.write(_Move(old.rstrip("/"), new.rstrip("/"))).result()
    return moved


def _moved_key(key: str, old: str, new: str) -> str:
    """The suite's path after the move; as it was when it is not in `old`, or in `new` already (a folder in it)."""
    if key == new or key.startswith(f"{new}/"):
        return key
    if key == old or key.startswith(f"{old}/"):
        return new + key[len(old) :]
    return key


class _Move(Operation):
    old: str
    new: str

    def prepare(self) -> None:
        """The paths as they are stored."""
        self.old, self.new = storable(self.old), storable(self.new)

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> MoveResult:
        """Rename the suites; tests that exist under both names become one."""
        suites = merged = 0
        for suite, key in connection.execute("SELECT id, key FROM suites").fetchall():
            to = _moved_key(key, self.old, self.new)
            if to == key:
                continue
            suites += 1
            row = connection.execute("SELECT id FROM suites WHERE key = ?", (to,)).fetchone()
            if row is None:
                connection.execute("UPDATE suites SET key = ? WHERE id = ?", (to, suite))
                continue
            for test, test_id in connection.execute(
                "SELECT id, test_id FROM tests WHERE suite = ?", (suite,)
            ).fetchall():
                other = connection.execute(
                    "SELECT id FROM tests WHERE suite = ? AND test_id = ?", (row[0], test_id)
                ).fetchone()
                if other is None:
                    connection.execute("UPDATE tests SET suite = ? WHERE id = ?", (row[0], test))
                else:
                    merged += 1
                    _merge_tests(connection, test, other[0])
            connection.execute("DELETE FROM suites WHERE id = ?", (suite,))
        rows = connection.execute("SELECT id, suite_keys, project FROM executions").fetchall()
        for execution, keys, project in rows:
            was = json.loads(keys)
            now = [_moved_key(key, self.old, self.new) for key in was]
            # A root of a repository may lie above what was moved: it is looked for where the suites are now.
            belongs = storable(project_of_keys(now)) if now != was else _moved_key(project, self.old, self.new)
            if now != was or belongs != project:
                connection.execute(
                    "UPDATE executions SET suite_keys = ?, project = ? WHERE id = ?",
                    (json_text(now), belongs, execution),
                )
        for signature, context in connection.execute("SELECT signature, context FROM triage").fetchall():
            held = json.loads(context)
            tests = [[_moved_key(key, self.old, self.new), test] for key, test in held.get("tests", ())]
            if tests != held.get("tests", tests):
                changed = json_text({**held, "tests": tests})
                connection.execute("UPDATE triage SET context = ? WHERE signature = ?", (changed, signature))
        return MoveResult(suites, merged)


def _merge_tests(connection: sqlite3.Connection, test: int, into: int) -> None:
    """All that belongs to `test` belongs to `into`; of two baselines that of `into` stays."""
    # Rows that exist under both become one; the others follow their test.
    connection.execute(
        "UPDATE runs SET dataset_row = coalesce((SELECT b.id FROM dataset_rows a JOIN dataset_rows b ON b.key = a.key"
        " WHERE a.id = runs.dataset_row AND b.test = ?), dataset_row) WHERE test = ? AND dataset_row IS NOT NULL",
        (into, test),
    )
    for table in ("runs", "quarantines"):
        connection.execute(f"UPDATE {table} SET test = ? WHERE test = ?", (into, test))
    for table in ("dataset_rows", "baselines", "criterion_texts"):
        # What `into` has already is left behind by the update, and deleted.
        connection.execute(f"UPDATE OR IGNORE {table} SET test = ? WHERE test = ?", (into, test))
        connection.execute(f"DELETE FROM {table} WHERE test = ?", (test,))
    connection.execute(
        "UPDATE tests SET ended = ended + (SELECT ended FROM tests WHERE id = ?) WHERE id = ?", (test, into)
    )
    connection.execute("DELETE FROM tests WHERE id = ?", (test,))
