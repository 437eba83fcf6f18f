"""From a path to a file that is ready: created, checked, migrated, repaired.

Whether the history file is still the one that was opened: it may be moved, deleted or replaced under the program.

SQLite would continue with the file that it has open: one that no longer has a name, or whose name differs from its
write-ahead log's.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import os
import sqlite3
import stat
import time
from pathlib import Path

from msgspec import Struct

from agenteval_tui.core.atomic_write import locked
from agenteval_tui.core.ids import free_name
from agenteval_tui.history import schema
from agenteval_tui.history.connections import (
    OPENING_TRIES,
    connect_reader,
    connect_writer,
    file_bytes,
    prepare_file,
    rescued_path,
    use_wal,
)
from agenteval_tui.history.errors import (
    RUN_SOMETHING,
    UNRELEASED_ID,
    DamagedError,
    HistoryError,
    LockedError,
    explain,
    is_busy,
    is_damage,
    refuse_unreleased,
    unreleased,
)
from agenteval_tui.history.lock_wait import tell_waiting
from agenteval_tui.history.process_liveness import is_alive

_SMALL = 4 << 20  # bytes
# Of an import more may have been to come: its runs are not planned beforehand.
_ALL_ENDED = "kind != 'import' AND passed + failed + errors + skipped + needs_review = runs"


class OpenedDatabase(Struct, frozen=True):
    """A file that is ready to be used, and how. `immutable`: its folder can't be written."""

    path: Path
    read_only: bool
    immutable: bool
    notices: tuple[str, ...]


def open_file(path: Path, *, read_only: bool = False) -> OpenedDatabase:
    """Make `path` ready. Raises HistoryError."""
    path = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - resolve() would follow links
    refuse_unreleased(path)
    # Whoever only reads would find no history where the damaged file was moved already.
    if rescued_path(path).exists() and not (read_only and path.exists()):
        # 13 ms, which only a repair that was cut off needs.
        from agenteval_tui.history.salvage import finish_rescue

        finish_rescue(path)
    if not read_only:
        prepare_file(path)
    for _ in range(OPENING_TRIES - 1):
        try:
            return _open_read_only(path, ()) if read_only else _opened(path)
        except LockedError:
            tell_waiting(path)
    return _open_read_only(path, ()) if read_only else _opened(path)


def _opened(path: Path) -> OpenedDatabase:
    notices: list[str] = []
    try:
        try:
            return _open_for_writing(path, notices)
        except DamagedError:
            # 13 ms, which only a damaged file needs.
            from agenteval_tui.history.salvage import rescue

            notices.append(rescue(path, still_damaged=lambda: not _is_sound(path)))
            return _open_for_writing(path, notices)
    except sqlite3.Error as error:
        raise explain(error, path, doing="opened") from error


def _open_for_writing(path: Path, notices: list[str]) -> OpenedDatabase:
    try:
        connection = connect_writer(path)
    except sqlite3.Error as error:
        raise explain(error, path, doing="opened") from error
    try:
        version = _check(connection, path)
        # Its tables may mean something else: nothing is written into them.
        if version > schema.newest():
            return _open_read_only(path, tuple(notices))
        notice = use_wal(connection, path)
        if notice:
            notices.append(notice)
        if 0 < version < schema.newest():
            notices.extend(_bring_up(connection, path))
        elif version == 0:
            schema.migrate(connection)
        else:
            _refuse_another_shape(connection, path, version)
        _interrupt_dead(connection)
        return OpenedDatabase(path, False, False, tuple(notices))
    except sqlite3.Error as error:
        raise explain(error, path, doing="opened") from error
    finally:
        connection.close()


def _open_read_only(path: Path, notices: tuple[str, ...]) -> OpenedDatabase:
    if not path.is_file():
        raise HistoryError("there is no history file", where=str(path), fix=RUN_SOMETHING)
    problem: sqlite3.Error | None = None
    # Readers share a file beside the history. Where the folder can't be written there may be none: then the history is
    # read as a file that does not change.
    for immutable in (False, True):
        try:
            connection = connect_reader(path, immutable=immutable)
        except sqlite3.Error as error:
            problem = error
            continue
        try:
            version = _check(connection, path)
            if version == schema.newest():
                _refuse_another_shape(connection, path, version)
        except sqlite3.Error as error:
            problem = error
            if is_busy(error):  # to read past the lock would show a file that is half written
                break
            continue
        finally:
            connection.close()
        if version == 0:
            raise HistoryError("the history file is empty", where=str(path), fix=RUN_SOMETHING)
        if version < schema.newest():
            raise HistoryError(
                f"the history file has the old version {version}",
                where=str(path),
                fix="open it once with write permission: that brings it up to date",
            )
        if version > schema.newest():
            notices += (
                f"the history file was written by a newer agenteval (file version {version}, this program knows "
                f"{schema.newest()}): it is read-only here; update agenteval to add runs",
            )
        if immutable:
            notices += ("the history's folder can't be written: runs that end now elsewhere are not seen",)
        return OpenedDatabase(path, True, immutable, notices)
    assert problem is not None
    raise explain(problem, path, doing="read") from problem


def _refuse_another_shape(connection: sqlite3.Connection, path: Path, version: int) -> None:
    if differences := schema.differences(connection, version):
        more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        raise HistoryError(
            f"the history file has unexpected tables: {differences[0]}{more}",
            where=str(path),
            fix="agenteval db salvage writes everything in it into a new history with the right tables",
        )


def tables_of_ours(connection: sqlite3.Connection, path: Path) -> set[str]:
    """The names of its tables. Raises HistoryError for another program's database."""
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if application == UNRELEASED_ID:  # where its header is still in the log
        raise unreleased(path)
    if tables and application != schema.APPLICATION_ID:
        raise HistoryError(
            "this is another program's database, not a history file",
            where=str(path),
            fix="name another file with --db",
        )
    return tables


def _check(connection: sqlite3.Connection, path: Path) -> int:
    """The file's version, after a look whether it is ours and whole, as far as a glance tells.

    A check of a large file takes seconds: it is made when damage was met before (`mark_damaged`). A small one is
    always checked, some milliseconds.
    """
    version = schema.version_of(connection)
    tables = tables_of_ours(connection, path)
    if version == 0 or version > schema.newest():  # what a newer one looks like inside is not ours to judge
        return version
    log = Path(f"{path}-wal")
    # The count of pages includes what is still in the log: only without one can the size be compared.
    if (not log.exists() or log.stat().st_size == 0) and path.stat().st_size < file_bytes(connection):
        raise DamagedError("the history file is damaged: its end is missing", where=str(path))
    try:
        for table in sorted(tables):
            # The tables of the search index are its own; it is looked at by a query.
            if not table.startswith(("sqlite_", "search")):
                # Whoever made the file chose the name: it is one, whatever it holds.
                named = '"' + table.replace('"', '""') + '"'
                # An index might answer, and hide that the table's own pages can't be read.
                connection.execute(f"SELECT 1 FROM {named} NOT INDEXED LIMIT 1").fetchone()
        for table in ("executions", "runs", "transcripts"):
            connection.execute(f"SELECT max(id) FROM {table}").fetchone()
        connection.execute("SELECT rowid FROM search WHERE search MATCH 'a' LIMIT 1").fetchone()
        if path.stat().st_size <= _SMALL:
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise DamagedError(f"the history file is damaged: {problem}", where=str(path))
        if _mark(path).exists():
            problem = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if problem != "ok":
                raise DamagedError(f"the history file is damaged: {problem}", where=str(path))
            # The index is checked by a statement that writes.
            if not connection.execute("PRAGMA query_only").fetchone()[0]:
                connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
            _mark(path).unlink(missing_ok=True)
    except sqlite3.OperationalError as error:
        # SQLite has no code of its own for it.
        if is_damage(error) or "no such table" not in str(error):
            raise
        raise DamagedError(f"the history file is damaged: {error}", where=str(path)) from error
    return version


def _is_sound(path: Path) -> bool:
    """Whether the file can be opened after all: another process may have repaired it in the meantime."""
    try:
        connection = connect_writer(path)
    except sqlite3.Error:
        return False
    try:
        _check(connection, path)
    except (sqlite3.DatabaseError, HistoryError):
        return False
    finally:
        connection.close()
    return True


def _mark(path: Path) -> Path:
    return Path(f"{path}.check")


def mark_damaged(path: Path) -> None:
    """Damage was met while reading: the next opening checks the whole file."""
    try:
        os.close(os.open(_mark(path), os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError:  # a folder that can't be written: then nothing can be repaired there either
        pass


def _bring_up(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Copy an older file, then change its tables. Of several processes that open it at once, one does. Returns notices.

    Raises HistoryError or sqlite3.Error; the file is then as it was, and there is no copy.
    """

    try:
        with locked(Path(f"{path}.lock")):
            # Asked again under the lock: another process may have been quicker.
            version = schema.version_of(connection)
            if version >= schema.newest():
                return []
            _refuse_another_shape(connection, path, version)
            copy = _back_up(connection, path, version)
            try:
                schema.migrate(connection)
            except BaseException:
                copy.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise HistoryError(
            f"the history file can't be copied before it is changed: {error.strerror}",
            where=str(path),
            fix="free some space, or give yourself write permission for the folder",
        ) from error
    return [f"the history file was updated from version {version} to {schema.newest()}; the old one is kept as {copy}"]


def _back_up(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """A copy of the file, under a name that says when it was made."""
    name = f"{path}.version-{version}-{time.strftime('%Y%m%d-%H%M%S')}"
    copy = Path(free_name(name, os.path.exists))
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    target = sqlite3.connect(copy)
    try:
        connection.backup(target)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    finally:
        target.close()
    return copy


def _interrupt_dead(connection: sqlite3.Connection) -> None:
    """Executions whose process died are interrupted; what was in flight goes back to the queue (for `resume`).

    One that died between its last run's end and its own has nothing to resume: it is finished.
    """
    running = connection.execute("SELECT id, owner FROM executions WHERE status = 'running'").fetchall()
    dead = [execution for execution, owner in running if not is_alive(owner)]
    if not dead:
        return
    # Each update asks the status again: another process may have opened the file at the same time.
    connection.execute("BEGIN IMMEDIATE")
    for execution in dead:
        connection.execute(
            f"UPDATE executions SET status = CASE WHEN {_ALL_ENDED} THEN 'finished' ELSE 'interrupted' END,"
            f" message = CASE WHEN {_ALL_ENDED} THEN '' ELSE 'the process that ran it ended without a word' END,"
            " finished_ms = (SELECT max(started_ms + coalesce(duration_ms, 0)) FROM runs WHERE execution = ?1)"
            " WHERE id = ?1 AND status = 'running'",
            (execution,),
        )
        connection.execute(
            "UPDATE runs SET status = 'queued' WHERE execution = ? AND status IN ('running', 'grading')", (execution,)
        )
    connection.execute("COMMIT")


# Whether the history file is still the one that was opened: it may be moved, deleted or replaced under the program


class MovedError(HistoryError):
    """The history file is not where it was opened; nothing was written."""


class FileIdentity:
    """Remembers which file is at a path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _identity(path)

    @property
    def now(self) -> bool:
        """Is it there still? Cheap."""
        return _identity(self._path) == self._file

    def require(self) -> None:
        """Raise `MovedError` when it is not."""
        if self.now:
            return
        what = "replaced by another file" if self._path.exists() else "moved or deleted"
        raise MovedError(
            f"the history file was {what} while it was open, so this was not stored",
            where=str(self._path),
            fix="put it back, with the files -wal and -shm beside it, or start again with a new history",
        )


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - asked before each transaction
    except OSError:
        return None
    return status.st_dev, status.st_ino, stat.S_IFMT(status.st_mode)
