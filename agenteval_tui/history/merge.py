"""Another history file comes in: what it has and this one has not, by the ids of executions and runs.

The same file a second time adds nothing. Of an execution that is in both, runs that are missing come in, and ends of
runs that had not ended here. Rows get new numbers; whatever names them follows.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from agenteval_tui.core.document import Count, Document
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.history import import_validation, schema, tombstones
from agenteval_tui.history.backup import copy_history
from agenteval_tui.history.blobs import json_text, search_document
from agenteval_tui.history.bulk_sql import batches
from agenteval_tui.history.delete_runs import running_executions, spent_by_attempts
from agenteval_tui.history.errors import HistoryError, explain, refuse_unreleased
from agenteval_tui.history.programs import hashes_of
from agenteval_tui.history.rebuild_totals import LOST
from agenteval_tui.history.recordings import FORK, mark_superseded
from agenteval_tui.history.run_writes import TOTAL_OF, withdraw
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation, Totals

_BATCH = 100  # runs in a transaction
_UNENDED = ("queued", "running", "grading")
COMING = "it was running in the history that it was merged from"
MERGED = "merged"
"""The option of an execution of which something came from another history: to resume it needs a person's word."""
_NOT_HERE = ("executor", "scheduler")
_LEFT_OUT = "what can't be read of {} runs: they are listed without it"
Row = dict[str, Any]
# What a column names: a row of this table, by its number there. The first to come are those that others name.
_NAMES = {
    "tests": {"suite": "suites"},
    "executions": {"setup": "tasks"},
    "dataset_rows": {"test": "tests"},
    "runs": {
        "execution": "executions",
        "test": "tests",
        "plan": "plans",
        "dataset_row": "dataset_rows",
        "transcript": "transcripts",
        "task": "tasks",
    },
    "criterion_results": {"run": "runs", "criterion": "criteria"},
    "evidence": {"run": "runs"},
    "tool_calls": {"transcript": "transcripts"},
    "labels": {"run": "runs", "criterion": "criteria"},
    "failed_attempts": {"run": "runs"},
    "tapes": {"run": "runs"},
    "run_replies": {"run": "runs", "reply": "judge_replies", "criterion": "criteria"},
    "baselines": {"test": "tests", "execution": "executions", "run": "runs"},
    "quarantines": {"test": "tests"},
    "criterion_texts": {"test": "tests", "criterion": "criteria"},
    "imports": {"execution": "executions"},
    "triage": {},
}
# By which columns rows of the two files are the same.
_SAME = {
    "suites": ("key",),
    "tests": ("suite", "test_id"),
    "dataset_rows": ("test", "key"),
    "criteria": ("hash",),
    "plans": ("hash",),
    "tasks": ("hash",),
    "transcripts": ("hash",),
    "executions": ("uid",),
    "runs": ("uid",),
    "judge_replies": ("request", "answerer", "at_ms", "data"),
    "labels": ("run", "criterion", "criterion_name", "rating", "passed", "comment", "who", "at_ms", "key", "score"),
    "baselines": ("test",),
    "quarantines": ("test", "criterion", "at_ms"),
    "criterion_texts": ("test", "name", "criterion"),
    "imports": ("digest",),
    "triage": ("signature",),
}
_DECIDED = ("baselines", "quarantines", "triage", "imports", "taken_back")
_OF_RUN = ("criterion_results", "evidence", "labels", "failed_attempts", "run_replies", "tapes")


def merge_history(store: Store, path: Path, on_progress: Callable[[int, int], None] | None = None) -> MergeResult:
    """Take in another history file, which is not changed. Blocks; others can write between batches.

    Criteria of `relabelled` runs that wait for a person must be graded again (`analysis.labels.resolve_review`).
    Raises AgentevalError: it is this history itself, no history, or made by a newer program.
    """
    if path.exists() and path.samefile(store.path):
        raise AgentevalError("this is the history itself", where=str(path), fix="name another file")
    with open_other_history(path) as source:
        total = int(source.read(lambda c: c.execute("SELECT count(*) FROM runs").fetchone()[0]))
        done = MergeResult()
        merged = 0
        for execution in source.read(lambda c: read_rows(c, "SELECT * FROM executions ORDER BY id")):
            runs: list[int] = source.read(
                lambda c, execution_row=execution: [  # type: ignore[misc]
                    row[0]
                    for row in c.execute("SELECT id FROM runs WHERE execution = ? ORDER BY id", (execution_row["id"],))
                ]
            )
            # In batches, so that others can write between them; an execution without a run comes in as well.
            for start in range(0, len(runs), _BATCH) or (0,):
                some = runs[start : start + _BATCH]
                batch = source.read(lambda c, execution_row=execution, some=some: read_batch(c, execution_row, some))  # type: ignore[misc]
                done += store.write(_Merge(batch)).result()
                merged += len(some)
                if on_progress is not None:
                    on_progress(merged, total)
        # After all runs: baselines name executions and runs.
        decided: MergeResult = store.write(MergeDecisions(source.read(read_decisions))).result()
        return done + decided


class MergeBatch(Struct):
    """Rows of the other file by table: an execution, some of its runs, and all that those name."""

    tables: dict[str, list[Row]]


class _Merge(Operation):
    """A batch of runs of one execution."""

    batch: MergeBatch
    documents: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    unreadable: int = 0

    def prepare(self) -> None:
        """What search finds of the transcripts (by their number in the other file); what is broken is left out."""
        tables = self.batch.tables
        transcripts = [import_validation.transcript_in(row) for row in tables["transcripts"]]
        for row, transcript in transcripts:
            if transcript is not None:
                self.documents[row["id"]] = search_document(transcript)
        results = [row for row in tables["evidence"] if import_validation.are_results(row["data"])]
        self.unreadable = len(transcripts) - len(self.documents) + len(tables["evidence"]) - len(results)
        tables["transcripts"] = [row for row, _ in transcripts]
        tables["evidence"] = results
        tables["tapes"] = [row for row in tables["tapes"] if import_validation.is_packed(row["data"])]
        tables["plans"] = [import_validation.plan_in(row) for row in tables["plans"]]
        tables["tasks"] = [row for row in tables["tasks"] if import_validation.is_packed(row["data"], row["hash"])]
        tables["judge_replies"] = [row for row in tables["judge_replies"] if import_validation.is_packed(row["data"])]
        # What can't be read can't be run again; what was lost there is lost here.
        readable_tasks = {row["id"] for row in tables["tasks"]}
        there = {row["id"] for row in tables["transcripts"]}
        tables["runs"] = [
            {
                **row,
                "task": row["task"] if row["task"] in readable_tasks else None,
                "transcript": LOST
                if row["transcript"] is not None and row["transcript"] not in there
                else row["transcript"],
                # What it says of itself there: a run that continues another one counts nowhere, and no other is such.
                "superseded": FORK if row["fork_of"] else int(row["superseded"] == 1),
            }
            for row in tables["runs"]
        ]
        execution = tables["executions"][0]
        # Where it was run there is nothing that anything here should be sent to.
        options = {name: value for name, value in json.loads(execution["options"]).items() if name not in _NOT_HERE}
        setup = execution["setup"] if execution["setup"] in readable_tasks else None
        tables["executions"] = [{**execution, "setup": setup, "options": json_text(options)}]

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> MergeResult:
        """Insert what is not here."""
        # In this order: rows that others name first, so that their new numbers are known.
        tables, numbers = self.batch.tables, IdMap()
        for table in ("suites", "criteria", "plans", "tasks", "judge_replies"):
            numbers.take(connection, table, tables[table])
        # Counted again from the runs that come in.
        numbers.take(connection, "tests", [{**row, "ended": 0} for row in tables["tests"]])
        numbers.take(connection, "dataset_rows", tables["dataset_rows"])
        numbers.take(connection, "criterion_texts", tables["criterion_texts"])
        execution, new = self._execution(connection, numbers)
        # Its own process writes these runs, and its end would come twice.
        if not new and execution in running_executions(connection):
            return MergeResult(left_out=(f"execution {tables['executions'][0]['uid']}: it is running here",))
        coming, completed, already = self._coming(connection)
        numbers.maps["transcripts"] = {LOST: LOST}
        self._transcripts(connection, numbers, {row["transcript"] for row in coming})
        done = MergeResult(int(new), len(coming) - len(completed), len(completed), 0, already)
        # Also those that are here already: labels on them may be new.
        numbers.find(connection, "runs", tables["runs"])
        for row in coming:
            self._run(connection, totals, numbers, row, completed)
        mark_superseded(connection, [name for row in coming for name in (row["recording"], row["uid"])])
        here = {row["id"] for row in coming}
        for table in ("criterion_results", "evidence", "failed_attempts", "run_replies", "tapes"):
            for row in tables[table]:
                own_row = numbers.translated(table, row)
                if row["run"] in here and own_row is not None:
                    insert(connection, table, own_row)
        labels, relabelled = self._labels(connection, numbers, here)
        if completed:
            self._end(connection, execution)
        if coming:
            connection.execute(
                "UPDATE executions SET options = json_set(options, ?, json('true')) WHERE id = ?",
                (f"$.{MERGED}", execution),
            )
        unread = (_LEFT_OUT.format(self.unreadable),) if self.unreadable and coming else ()
        return replace(done, labels=labels, relabelled=relabelled, left_out=unread)

    def _labels(self, connection: sqlite3.Connection, numbers: IdMap, coming: set[int]) -> tuple[int, tuple[str, ...]]:
        """Insert what is new and was not taken back here: how many, and the runs whose verdict doesn't know it yet."""
        uids = {row["id"]: row["uid"] for row in self.batch.tables["runs"]}
        hashes = {row["id"]: row["hash"] for row in self.batch.tables["criteria"]}
        inserted, relabelled = 0, dict[str, None]()
        for row in self.batch.tables["labels"]:
            named = (uids[row["run"]], hashes.get(row["criterion"], ""), row["who"], row["at_ms"])
            name = tombstones.name_of_label(*named, row["criterion_name"] or "", row["key"])
            taken_back = tombstones.tombstone_time(connection, "label", name) is not None
            new = not taken_back and bool(numbers.take(connection, "labels", [row]))
            inserted += new
            if taken_back if row["run"] in coming else new:
                relabelled[uids[row["run"]]] = None
        return inserted, tuple(relabelled)

    def _execution(self, connection: sqlite3.Connection, numbers: IdMap) -> tuple[int, bool]:
        row = self.batch.tables["executions"][0]
        none = dict.fromkeys(("runs", "input_tokens", "output_tokens", *TOTAL_OF.values()), 0)
        # What ran there is not run here; where it ended after all, its runs that come in later say so.
        status = {"status": "interrupted", "message": COMING} if row["status"] == "running" else {}
        inserted = numbers.take(connection, "executions", [{**row, **none, **status, "cost": None}])
        return numbers.maps["executions"][row["id"]], bool(inserted)

    def _end(self, connection: sqlite3.Connection, execution: int) -> None:
        """What was finished there is finished here, when nothing of it is missing any more."""
        row = self.batch.tables["executions"][0]
        connection.execute(
            "UPDATE executions SET status = 'finished', message = ?, finished_ms = ? WHERE id = ? AND ? = 'finished'"
            " AND NOT EXISTS (SELECT 1 FROM runs WHERE execution = executions.id"
            " AND status IN ('queued', 'running', 'grading', 'cancelled'))",
            (row["message"], row["finished_ms"], execution, row["status"]),
        )

    def _coming(self, connection: sqlite3.Connection) -> tuple[list[Row], dict[int, int], int]:
        """The runs to take in, those that are here and have not ended (there: here), and how many others."""
        coming, completed, already = [], {}, 0
        for row in self.batch.tables["runs"]:
            present = connection.execute("SELECT id, status FROM runs WHERE uid = ?", (row["uid"],)).fetchone()
            if present is None:
                coming.append(row)
            elif present[1] in (*_UNENDED, "cancelled") and row["status"] not in (*_UNENDED, "cancelled"):
                coming.append(row)
                completed[row["id"]] = present[0]
            else:
                already += 1
        return coming, completed, already

    def _transcripts(self, connection: sqlite3.Connection, numbers: IdMap, numbers_wanted: set[int | None]) -> None:
        calls = grouped((row["transcript"], row) for row in self.batch.tables["tool_calls"])
        for row in self.batch.tables["transcripts"]:
            if row["id"] in numbers_wanted and numbers.take(connection, "transcripts", [row]):
                for call in calls.get(row["id"], ()):
                    own_call = numbers.translated("tool_calls", call)
                    if own_call is not None:
                        insert(connection, "tool_calls", own_call)

    def _run(
        self, connection: sqlite3.Connection, totals: Totals, numbers: IdMap, row: Row, completed: Mapping[int, int]
    ) -> None:
        own_row = numbers.translated("runs", row)
        if own_row is None:
            raise HistoryError(f"run {row['uid']} of the other history refers to something that is not in it")
        if own_row["status"] in ("running", "grading"):
            own_row["status"] = "queued"
        execution, status = own_row["execution"], own_row["status"]
        if row["id"] in completed:
            number = completed[row["id"]]
            self._withdraw(connection, totals, number, execution)
            sets = ", ".join(f"{name} = ?" for name in own_row)
            connection.execute(f"UPDATE runs SET {sets} WHERE id = ?", [*own_row.values(), number])
        else:
            number = insert(connection, "runs", own_row)
            totals.add(execution, "runs", 1)
        numbers.maps["runs"][row["id"]] = number
        if status in TOTAL_OF:
            totals.add(execution, TOTAL_OF[status], 1)
            if status != "cancelled":
                totals.tests[own_row["test"]] = totals.tests.get(own_row["test"], 0) + 1
        attempts = [usage_row for usage_row in self.batch.tables["failed_attempts"] if usage_row["run"] == row["id"]]
        for usage_row in (*attempts, *(() if own_row["cached"] or own_row["recording"] else (own_row,))):
            for column in ("input_tokens", "output_tokens", "cost"):
                if usage_row[column] is not None:
                    totals.add(execution, column, usage_row[column])
        document = self.documents.get(row["transcript"] or 0)
        if document is not None and status in TOTAL_OF:
            prompt, answer, tools = document
            planned = connection.execute("SELECT prompt FROM plans WHERE id = ?", (own_row["plan"],)).fetchone()[0]
            connection.execute(
                "INSERT INTO search (rowid, prompt, answer, tools) VALUES (?, ?, ?, ?)",
                (number, prompt or planned, answer, tools),
            )

    @staticmethod
    def _withdraw(connection: sqlite3.Connection, totals: Totals, run: int, execution: int) -> None:
        """Of a run that is completed by the other file: what it had here comes from there too."""
        for column, number in spent_by_attempts(connection, [run]).get(run, ()):
            totals.add(execution, column, -number)
        connection.execute("DELETE FROM failed_attempts WHERE run = ?", (run,))
        connection.execute("DELETE FROM tapes WHERE run = ?", (run,))
        connection.execute("DELETE FROM run_replies WHERE run = ?", (run,))
        withdraw(connection, totals, run)


# Rows of another history file: read by the execution that they belong to, and put in under numbers of this one


def read_rows(connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> list[Row]:
    cursor = connection.execute(statement, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _by_id(connection: sqlite3.Connection, table: str, ids: Iterator[int | None] | Sequence[int | None]) -> list[Row]:
    numbers = sorted({number for number in ids if number is not None})
    rows: list[Row] = []
    for chunk in batches(numbers, 400):
        rows += read_rows(connection, f"SELECT * FROM {table} WHERE id IN ({','.join('?' * len(chunk))})", chunk)
    return rows


def read_batch(connection: sqlite3.Connection, execution: Row, runs: Sequence[int]) -> MergeBatch:
    marks = ",".join("?" * len(runs))
    tables: dict[str, list[Row]] = {"executions": [execution], "runs": _by_id(connection, "runs", runs)}
    for table in _OF_RUN:
        tables[table] = read_rows(connection, f"SELECT * FROM {table} WHERE run IN ({marks})", runs)
    rows = tables["runs"]
    tables["transcripts"] = _by_id(connection, "transcripts", [row["transcript"] for row in rows])
    numbers = [row["id"] for row in tables["transcripts"]]
    tables["tool_calls"] = read_rows(
        connection, f"SELECT * FROM tool_calls WHERE transcript IN ({','.join('?' * len(numbers))})", numbers
    )
    tables["plans"] = _by_id(connection, "plans", [row["plan"] for row in rows])
    tables["dataset_rows"] = _by_id(connection, "dataset_rows", [row["dataset_row"] for row in rows])
    tables["tasks"] = _by_id(connection, "tasks", [*(row["task"] for row in rows), execution["setup"]])
    programs = hashes_of(execution["programs"])
    tables["tasks"] += read_rows(
        connection, f"SELECT * FROM tasks WHERE hash IN ({','.join('?' * len(programs))})", programs
    )
    tables["judge_replies"] = _by_id(connection, "judge_replies", [row["reply"] for row in tables["run_replies"]])
    tables["tests"] = _by_id(connection, "tests", [row["test"] for row in rows])
    tables["suites"] = _by_id(connection, "suites", [row["suite"] for row in tables["tests"]])
    tests = [row["id"] for row in tables["tests"]]
    tables["criterion_texts"] = read_rows(
        connection, f"SELECT * FROM criterion_texts WHERE test IN ({','.join('?' * len(tests))})", tests
    )
    name_criteria = ("criterion_results", "labels", "run_replies", "criterion_texts")
    named = [row["criterion"] for table in name_criteria for row in tables[table]]
    hashes = {digest for row in tables["plans"] for digest in _hashes(row["criteria"])}
    tables["criteria"] = _by_id(connection, "criteria", named) + [
        row
        for digest in sorted(hashes)
        for row in read_rows(connection, "SELECT * FROM criteria WHERE hash = ?", (digest,))
        if row["id"] not in set(named)
    ]
    return MergeBatch(tables)


def _hashes(text: str) -> list[str]:
    digests = json.loads(text)
    return [digest for digest in digests if isinstance(digest, str)]


def read_decisions(connection: sqlite3.Connection) -> MergeBatch:
    """What people decided, with the tests, executions and runs that it names by their ids."""
    tables = {name: read_rows(connection, f"SELECT * FROM {name}") for name in _DECIDED}
    tests = [row["test"] for name in ("baselines", "quarantines") for row in tables[name]]
    tables["tests"] = _by_id(connection, "tests", tests)
    tables["suites"] = _by_id(connection, "suites", [row["suite"] for row in tables["tests"]])
    ids = [row["execution"] for name in ("baselines", "imports") for row in tables[name]]
    tables["executions"] = [{"id": row["id"], "uid": row["uid"]} for row in _by_id(connection, "executions", ids)]
    runs = [row["run"] for row in tables["baselines"]]
    tables["runs"] = [{"id": row["id"], "uid": row["uid"]} for row in _by_id(connection, "runs", runs)]
    return MergeBatch(tables)


class IdMap(Struct):
    """From the numbers of rows in the other file to those in this one, by table."""

    maps: dict[str, dict[int, int]] = field(default_factory=dict)

    def translated(self, table: str, row: Row) -> Row | None:
        """The row as it is here, without its own number; None: it names something that is not here."""
        own_row = {name: value for name, value in row.items() if name != "id"}
        for column, other in _NAMES.get(table, {}).items():
            if own_row.get(column) is not None:
                number = self.maps.get(other, {}).get(own_row[column])
                if number is None:
                    return None
                own_row[column] = number
        return own_row

    def take(self, connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> int:
        """Insert those that are not here yet, and learn the numbers of all. Gives how many came."""
        numbers = self.maps.setdefault(table, {})
        inserted = 0
        for row in rows:
            own_row = self.translated(table, row)
            if own_row is None:
                continue
            number = _find(connection, table, own_row)
            if number is None:
                number = insert(connection, table, own_row)
                inserted += 1
            numbers[row["id"]] = number
        return inserted

    def find(self, connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
        """Learn the numbers of those that are here."""
        numbers = self.maps.setdefault(table, {})
        for row in rows:
            number = _find(connection, table, row)
            if number is not None:
                numbers[row["id"]] = number


def _find(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int | None:
    where = " AND ".join(f"{column} IS ?" for column in _SAME[table])
    same = connection.execute(
        f"SELECT id FROM {table} WHERE {where}", [row[column] for column in _SAME[table]]
    ).fetchone()
    return None if same is None else int(same[0])


def insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    names = ", ".join(row)
    cursor = connection.execute(
        f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values())
    )
    return int(cursor.lastrowid or 0)


# What people decided in another history comes in: baselines, quarantines, triage; and what they took back there


class MergeCounts(Document, frozen=True):
    """What came in. `left_out` says what did not come, and why."""

    executions: Count = 0
    runs: Count = 0
    completed: Annotated[Count, Meta(description="runs that had not ended in this history")] = 0
    labels: Count = 0
    already: Count = 0
    left_out: tuple[str, ...] = ()
    taken_back: Annotated[
        Count, Meta(description="labels, decisions and baselines that were removed, as in the file")
    ] = 0


class MergeResult(MergeCounts, frozen=True):
    """What came in, and the ids of runs whose stored verdict may rest on other labels than they have now."""

    relabelled: tuple[str, ...] = ()

    def __add__(self, other: MergeResult) -> MergeResult:
        """Both together."""
        return MergeResult(
            self.executions + other.executions,
            runs=self.runs + other.runs,
            completed=self.completed + other.completed,
            labels=self.labels + other.labels,
            already=self.already + other.already,
            left_out=tuple(dict.fromkeys((*self.left_out, *other.left_out))),
            taken_back=self.taken_back + other.taken_back,
            relabelled=tuple(dict.fromkeys((*self.relabelled, *other.relabelled))),
        )


class MergeDecisions(Operation):
    """Baselines, quarantines, triage, what was taken back, and which files were imported."""

    batch: MergeBatch

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> MergeResult:
        """A test's baseline here stays; of two decisions about one cause the newer counts, and taking back is one."""
        tables, numbers = self.batch.tables, IdMap()
        numbers.take(connection, "suites", tables["suites"])
        numbers.take(connection, "tests", [{**row, "ended": 0} for row in tables["tests"]])
        for table in ("executions", "runs"):
            numbers.find(connection, table, tables[table])
        left_out = _baselines(connection, numbers, tables["baselines"])
        _quarantines(connection, numbers, tables["quarantines"])
        numbers.take(connection, "imports", tables["imports"])
        for row in tables["triage"]:
            own_row = {name: value for name, value in row.items() if name != "id"}
            at = connection.execute("SELECT at_ms FROM triage WHERE signature = ?", (own_row["signature"],)).fetchone()
            taken_back_at = tombstones.tombstone_time(connection, "triage", own_row["signature"])
            if max(at[0] if at else -1, taken_back_at if taken_back_at is not None else -1) < own_row["at_ms"]:
                connection.execute("DELETE FROM triage WHERE signature = ?", (own_row["signature"],))
                insert(connection, "triage", own_row)
        removed, relabelled = _take_back(connection, tables["taken_back"])
        return MergeResult(left_out=left_out, taken_back=removed, relabelled=relabelled)


def _baselines(connection: sqlite3.Connection, numbers: IdMap, rows: Sequence[Row]) -> tuple[str, ...]:
    """A test's baseline here stays; one that was cleared here after it was set there does not come."""
    other, inserted = 0, set[int]()
    for row in rows:
        own_row = numbers.translated("baselines", row)
        if own_row is None:
            continue
        current = connection.execute(
            "SELECT execution, run FROM baselines WHERE test = ?", (own_row["test"],)
        ).fetchone()
        if current is None:
            inserted.add(insert(connection, "baselines", own_row))
        elif current != (own_row["execution"], own_row["run"]):
            other += 1
        else:
            # The same, maybe said again after it was cleared.
            connection.execute(
                "UPDATE baselines SET who = ?1, at_ms = ?2 WHERE test = ?3 AND at_ms < ?2",
                (own_row["who"], own_row["at_ms"], own_row["test"]),
            )
    if inserted:
        # Those that were here before are left alone: only what came in can have been taken back before.
        for rowid, name in tombstones.baseline_names(connection).items():
            taken_back_at = tombstones.tombstone_time(connection, "baseline", name) if rowid in inserted else None
            if taken_back_at is not None:
                tombstones.remove_baseline(connection, name, taken_back_at)
    return (f"{other} baselines: these tests have a different one here",) if other else ()


def _quarantines(connection: sqlite3.Connection, numbers: IdMap, rows: Sequence[Row]) -> None:
    """One that is known, and was ended before its day there, ends here too."""
    numbers.take(connection, "quarantines", rows)
    connection.executemany(
        "UPDATE quarantines SET until_ms = ?1 WHERE id = ?2 AND (until_ms IS NULL OR until_ms > ?1)",
        [
            (row["until_ms"], numbers.maps["quarantines"][row["id"]])
            for row in rows
            if row["until_ms"] is not None and row["id"] in numbers.maps["quarantines"]
        ],
    )


def _take_back(connection: sqlite3.Connection, rows: Sequence[Row]) -> tuple[int, tuple[str, ...]]:
    """What was taken back there goes here: how much that was, and the runs that have lost a label."""
    removed, relabelled = 0, dict[str, None]()
    for row in rows:
        tombstones.add_tombstone(connection, row["kind"], row["name"], row["at_ms"])
        if row["kind"] == "triage":
            removed += connection.execute(
                "DELETE FROM triage WHERE signature = ? AND at_ms <= ?", (row["name"], row["at_ms"])
            ).rowcount
        elif row["kind"] == "baseline":
            removed += tombstones.remove_baseline(connection, row["name"], row["at_ms"])
        else:
            lost = list(tombstones.remove_labels(connection, row["name"]))
            removed += len(lost)
            relabelled.update(dict.fromkeys(lost))
    return removed, tuple(relabelled)


# The other file of a merge: opened to read only, looked at before anything of it is taken


@contextmanager
def open_other_history(path: Path) -> Iterator[Store]:
    """The other file, read only; one of an older version is copied and brought up to date first."""

    if not path.is_file():
        raise AgentevalError("there is no such history file", where=str(path), fix="check the path")
    refuse_unreleased(path)
    with tempfile.TemporaryDirectory(prefix="agenteval-") as folder:
        opened = path
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                version = schema.version_of(connection)
                ours = connection.execute("PRAGMA application_id").fetchone()[0] == schema.APPLICATION_ID
                if ours and 0 < version <= schema.newest():
                    import_validation.check_tables(connection, version, str(path))
        except sqlite3.DatabaseError:
            ours, version = False, 0
        if not ours or not version:
            raise AgentevalError("this is not a history file", where=str(path), fix="name one that agenteval made")
        if version > schema.newest():
            raise HistoryError(
                f"this history was made by a newer agenteval (file version {version})",
                where=str(path),
                fix="update agenteval",
            )
        # The file itself is not changed.
        if version < schema.newest():
            opened = Path(folder, "history.db")
            copy_history(path, opened)
            Store.open(opened).close()
        source = Store.open(opened, read_only=True)
        try:
            source.read(lambda c: _check_rows(c, path))
            yield source
        finally:
            source.close()


def _check_rows(connection: sqlite3.Connection, path: Path) -> None:
    try:
        import_validation.check_rows(connection, str(path))
    except sqlite3.Error as error:
        raise explain(error, path, doing="read") from error
