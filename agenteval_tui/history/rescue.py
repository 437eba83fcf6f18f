"""A damaged file: everything that SQLite can still read goes into a new one; the damaged one is kept beside it.

SQLite stops at the first broken page of a table. So each table is read in ranges of its key, and a range that can't
be read is halved until only what is broken is left out.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from agenteval_tui.history import schema
from agenteval_tui.history.blobs import search_document, unpack_transcript
from agenteval_tui.history.errors import HistoryError, explain, is_damage
from agenteval_tui.history.outcomes import TOTAL_OF, planned_prompt
from agenteval_tui.text.identity import now_ms

_OURS = (".db", ".sqlite", ".sqlite3", "")  # a file of another name may be anything: it is not moved
_PROBES = 20_000  # unreadable ranges a table, before the rest of it is given up
_UNKNOWN_END = 1 << 24
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
    repaired = Path(f"{new}.repair")
    try:
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            return save_readable(path, new, repaired)
        except BaseException:
            _remove(new)
            raise
        finally:
            _remove(repaired)
    except FileExistsError:
        raise HistoryError(
            "there is a file of this name already, and it is not written over", where=str(new), mend="name another"
        ) from None
    except OSError as error:
        raise HistoryError(f"what was saved can't be written: {error.strerror}", where=str(new)) from error
    except sqlite3.Error as error:
        raise explain(error, new, doing="written") from error


def save_readable(path: Path, new: Path, repaired: Path) -> dict[str, int]:
    """Copy what can be read of `path` into the empty file `new`. `repaired` is a name for a copy that may be needed."""
    target = sqlite3.connect(new, isolation_level=None)
    try:
        target.execute("PRAGMA synchronous = OFF")  # synced as a whole at the end
        source = _open_damaged(path, repaired, new)
        try:
            version = schema.version_of(source) if source is not None else schema.newest()
            schema.migrate(target, upto=version if 0 < version <= schema.newest() else None)
            target.execute("BEGIN")
            if source is not None:
                _copy_all(source, target)
            target.execute("COMMIT")
        finally:
            if source is not None:
                source.close()
        schema.migrate(target)
        target.execute("BEGIN")
        _complete(target)
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


def _open_damaged(path: Path, repaired: Path, new: Path) -> sqlite3.Connection | None:
    """The damaged file, readable at least as far as its list of tables; None: not even that."""
    for mend_first_page in (False, True):
        file = path
        if mend_first_page:
            if not _with_new_first_page(path, repaired):
                return None
            file = repaired
        source = sqlite3.connect(file, isolation_level=None)
        source.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            source.execute("PRAGMA query_only = 1")
            if source.execute("SELECT count(*) FROM sqlite_master WHERE name = 'runs'").fetchone()[0]:
                return source
        except sqlite3.DatabaseError:
            pass
        source.close()
    return None


def _with_new_first_page(path: Path, repaired: Path) -> bool:
    """A copy of the file whose first page, which lists the tables, is one as this program makes it.

    Our tables are always made in the same order, so they start at the same pages. Where that is not so, the ranges
    read nothing or rows that don't fit, and those are left out.
    """
    template = Path(f"{repaired}-template")
    try:
        made = sqlite3.connect(template, isolation_level=None)
        try:
            schema.migrate(made)
            size = int(made.execute("PRAGMA page_size").fetchone()[0])
        finally:
            made.close()
        page = bytearray(template.read_bytes()[:size])
    finally:
        _remove(template)
    length = path.stat().st_size
    if length < 2 * size:
        return False
    counter = page[24:28]
    page[28:32] = struct.pack(">I", length // size)
    page[32:40] = bytes(8)  # free pages: none that we know of
    page[92:96] = counter
    shutil.copyfile(path, repaired)
    repaired.chmod(0o600)
    with repaired.open("r+b") as file:
        file.write(page)
    with suppress(FileNotFoundError):
        shutil.copyfile(f"{path}-wal", f"{repaired}-wal")
    return True


def _copy_all(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    from sqlite_utils import Database

    into = Database(target)
    for name in into.table_names():
        if name.startswith(("sqlite_", "search")):
            continue
        wanted = [column.name for column in into[name].columns]
        try:
            there = {row[1] for row in source.execute(f"PRAGMA table_info({name})")}
        except sqlite3.DatabaseError:
            there = set(wanted)
        columns = [column for column in wanted if column in there]
        if columns:
            _copy_table(source, target, name, columns)


def _copy_table(source: sqlite3.Connection, target: sqlite3.Connection, table: str, columns: list[str]) -> None:
    names = ", ".join(columns)
    key = columns[0]  # schema.py promises: an integer, the first of the key
    read = f"SELECT {names} FROM {table} NOT INDEXED WHERE {key} BETWEEN ? AND ?"
    write = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({','.join('?' * len(columns))})"
    low, high = _bounds(source, table, key)
    probes = 0
    pending = [(low, high)]
    while pending and probes < _PROBES:
        low, high = pending.pop()
        rows: list[tuple[Any, ...]] = []
        try:
            for row in source.execute(read, (low, high)):
                rows.append(row)
                if len(rows) >= 1000:
                    target.executemany(write, rows)
                    rows.clear()
        except sqlite3.DatabaseError as error:
            if not is_damage(error) and not isinstance(error, sqlite3.OperationalError):
                raise
            probes += 1
            if low < high:
                middle = (low + high) // 2
                # The end first onto the pile: ranges are read from the start.
                pending += [(middle + 1, high), (low, middle)]
        target.executemany(write, rows)


def _bounds(source: sqlite3.Connection, table: str, key: str) -> tuple[int, int]:
    bounds = []
    for function, unknown in (("min", 0), ("max", _UNKNOWN_END)):
        try:
            # With a plus sign SQLite reads an index if it can: the table itself may be what is broken.
            found = source.execute(f"SELECT {function}(+{key}) FROM {table}").fetchone()[0]
            bounds.append(int(found or 0))
        except (sqlite3.DatabaseError, ValueError, TypeError):
            bounds.append(unknown)
    return bounds[0], bounds[1]


def _complete(target: sqlite3.Connection) -> None:
    """Put something in the place of rows that others need, and count again what was counted."""
    now = now_ms()
    target.execute(
        "INSERT INTO executions (id, uid, title, kind, source, status, started_ms, options, suite_keys, owner)"
        " SELECT DISTINCT execution, 'RECOVERED-' || execution, 'recovered runs', 'run', '', 'interrupted',"
        " ?, '{}', '[]', '' FROM runs WHERE execution NOT IN (SELECT id FROM executions)",
        (now,),
    )
    target.execute(
        "INSERT INTO tests (id, suite, test_id, name) SELECT DISTINCT test, 0, 'recovered-' || test, 'recovered'"
        " FROM runs WHERE test NOT IN (SELECT id FROM tests)"
    )
    target.execute(
        "INSERT INTO suites (id, key, name) SELECT DISTINCT suite, 'recovered:' || suite, 'recovered'"
        " FROM tests WHERE suite NOT IN (SELECT id FROM suites)"
    )
    target.execute(
        "INSERT INTO plans (id, hash, prompt, prompt_head, tags, variables, criteria)"
        " SELECT DISTINCT plan, CAST('recovered' || plan AS BLOB), '', '', '[]', '{}', '[]'"
        " FROM runs WHERE plan NOT IN (SELECT id FROM plans)"
    )
    _never_again(target)
    for table, owner in (
        ("criterion_results", "run"),
        ("evidence", "run"),
        ("failed_attempts", "run"),
        ("tool_calls", "transcript"),
    ):
        target.execute(f"DELETE FROM {table} WHERE {owner} NOT IN (SELECT id FROM {owner}s)")
    target.execute(
        "DELETE FROM run_replies WHERE run NOT IN (SELECT id FROM runs) OR reply NOT IN (SELECT id FROM judge_replies)"
    )
    # The number of a lost task may be given to another one: what named it must not run that.
    target.execute("UPDATE runs SET task = NULL WHERE task NOT IN (SELECT id FROM tasks)")
    target.execute("UPDATE executions SET setup = NULL WHERE setup NOT IN (SELECT id FROM tasks)")
    recount(target)


def _never_again(target: sqlite3.Connection) -> None:
    """Numbers of lost rows must not be given to new ones: what still names them would then speak of something else."""
    for table, mentions in (
        ("executions", (("runs", "execution"), ("baselines", "execution"), ("imports", "execution"))),
        (
            "runs",
            (
                ("criterion_results", "run"),
                ("evidence", "run"),
                ("labels", "run"),
                ("baselines", "run"),
                ("run_replies", "run"),
                ("failed_attempts", "run"),
            ),
        ),
        ("transcripts", (("runs", "transcript"), ("tool_calls", "transcript"))),
    ):
        highest = max(
            int(target.execute(f"SELECT coalesce(max({column}), 0) FROM {name}").fetchone()[0])
            for name, column in ((table, "id"), *mentions)
        )
        target.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, highest))


def recount(connection: sqlite3.Connection) -> None:
    """Make the maintained totals anew from the runs. Within the caller's transaction."""
    sums = ", ".join(
        f"{column} = (SELECT count(*) FROM runs WHERE execution = executions.id AND status = '{status}')"
        for status, column in TOTAL_OF.items()
    )
    connection.execute(
        f"UPDATE executions SET {sums},"
        " runs = (SELECT count(*) FROM runs WHERE execution = executions.id),"
        " input_tokens = 0, output_tokens = 0, cost = NULL"
    )
    # What was paid for: what counts, and attempts that failed; not what came from the history.
    connection.execute(
        "UPDATE executions SET input_tokens = paid.tokens_in, output_tokens = paid.tokens_out, cost = paid.cost FROM ("
        " SELECT execution, coalesce(sum(tokens_in), 0) AS tokens_in, coalesce(sum(tokens_out), 0) AS tokens_out,"
        "  sum(cost) AS cost FROM ("
        "   SELECT execution, input_tokens AS tokens_in, output_tokens AS tokens_out, cost FROM runs WHERE NOT cached"
        "   UNION ALL SELECT r.execution, a.input_tokens, a.output_tokens, a.cost"
        "    FROM failed_attempts a JOIN runs r ON r.id = a.run) GROUP BY execution) AS paid"
        " WHERE paid.execution = executions.id"
    )
    connection.execute(
        "UPDATE tests SET ended = (SELECT count(*) FROM runs WHERE test = tests.id"
        " AND status IN ('passed', 'failed', 'error', 'skipped', 'needs_review'))"
    )


def reindex(connection: sqlite3.Connection) -> None:
    """Make the full-text index anew from the transcripts. Within the caller's transaction."""
    connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
    last = 0
    while True:
        rows = connection.execute(
            "SELECT r.id, r.plan, t.data FROM runs r JOIN transcripts t ON t.id = r.transcript"
            " WHERE r.id > ? ORDER BY r.id LIMIT 500",
            (last,),
        ).fetchall()
        if not rows:
            return
        for run, plan, data in rows:
            last = run
            try:
                prompt, answer, tools = search_document(unpack_transcript(data), "")
            except ValueError:  # broken bytes: this run is listed, but its transcript can't be shown
                continue
            connection.execute(
                "INSERT INTO search (rowid, prompt, answer, tools) VALUES (?, ?, ?, ?)",
                (run, prompt or planned_prompt(connection, plan), answer, tools),
            )


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
