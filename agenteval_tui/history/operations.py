"""The statements of each thing that is written. All run in the writer's thread, inside its transaction."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval_tui.history.blobs import (
    clean,
    json_text,
    pack_results,
    pack_transcript,
    search_document,
    unpack_transcript,
)
from agenteval_tui.history.bulk import look_up, write_rows
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.liveness import owner_name
from agenteval_tui.history.rows import HEAD, ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.writer import Operation, Totals
from agenteval_tui.text.identity import now_ms
from agenteval_tui.transcripts.model import Transcript

# Which of an execution's totals a status counts in.
TOTAL_OF = {
    "passed": "passed",
    "failed": "failed",
    "error": "errors",
    "skipped": "skipped",
    "cancelled": "cancelled",
    "needs_review": "needs_review",
}
_NAMES = 20  # of suites and agents that an execution's row lists


@dataclass(slots=True)
class Begin:
    """An execution and its planned runs."""

    record: ExecutionRecord
    runs: Sequence[PlannedRun]

    def prepare(self) -> None:
        """Nothing to encode."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Insert all of it."""
        record = self.record
        connection.execute(
            "INSERT INTO executions"
            " (uid, title, kind, source, status, started_ms, batch_id, options, suite_keys, owner)"
            " VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?)",
            (
                clean(record.id),
                clean(record.title),
                record.kind,
                clean(record.source),
                record.started_ms,
                record.batch_id,
                json_text(dict(record.options)),
                json_text(record.suite_keys),
                owner_name(record.pid),
            ),
        )
        AddRuns(record.id, self.runs).apply(connection, totals)


@dataclass(slots=True)
class AddRuns:
    """More planned runs of an execution."""

    execution_id: str
    runs: Sequence[PlannedRun]

    def prepare(self) -> None:
        """Nothing to encode."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Insert them, with the suites, tests, criteria and plans that are new."""
        found = connection.execute(
            "SELECT id, suites, agents FROM executions WHERE uid = ?", (self.execution_id,)
        ).fetchone()
        if found is None:
            raise HistoryError(f"there is no execution {self.execution_id}")
        execution: int = found[0]
        suites: list[str] = json.loads(found[1])
        agents: list[str] = json.loads(found[2])
        ids = _Known(connection)
        rows = []
        for run in self.runs:
            _note(suites, run.suite_name)
            _note(agents, run.agent)
            rows.append(
                (
                    clean(run.id),
                    execution,
                    run.position,
                    ids.test(run),
                    ids.plan(run),
                    clean(run.variation),
                    run.row,
                    run.repetition,
                    clean(run.agent),
                    "queued",
                )
            )
        write_rows(
            connection,
            "INSERT INTO runs (uid, execution, position, test, plan, variation, row, repetition, agent, status) {rows}",
            rows,
        )
        connection.execute(
            "UPDATE executions SET runs = runs + ?, suites = ?, agents = ? WHERE id = ?",
            (len(rows), json_text(suites), json_text(agents), execution),
        )


class _Known:
    """Ids of suites, tests, plans and criteria that this operation has met already."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tests: dict[tuple[str, str], int] = {}
        self._plans: dict[bytes, int] = {}
        self._shared: dict[tuple[str, tuple[str, ...], tuple[str, ...]] | None, int] = {}
        self._criteria: set[str] = set()

    def test(self, run: PlannedRun) -> int:
        """The id of the run's test; names are brought up to date."""
        key = (run.suite_key, run.test_id)
        if key not in self._tests:
            suite = self._id(
                "INSERT INTO suites (key, name) VALUES (?1, ?2)"
                " ON CONFLICT (key) DO UPDATE SET name = excluded.name RETURNING id",
                (clean(run.suite_key), clean(run.suite_name)),
            )
            self._tests[key] = self._id(
                "INSERT INTO tests (suite, test_id, name) VALUES (?1, ?2, ?3)"
                " ON CONFLICT (suite, test_id) DO UPDATE SET name = excluded.name RETURNING id",
                (suite, clean(run.test_id), clean(run.test_name)),
            )
        return self._tests[key]

    def plan(self, run: PlannedRun) -> int:
        """The id of what the run has in common with other repetitions."""
        shared = (run.prompt, run.tags, run.criteria) if not run.variables else None
        if shared in self._shared:  # spares the JSON and the hash of most runs
            return self._shared[shared]
        number = self._plan(run)
        if shared is not None:
            self._shared[shared] = number
        return number

    def _plan(self, run: PlannedRun) -> int:
        tags, variables, criteria = json_text(run.tags), json_text(dict(run.variables)), json_text(run.criteria)
        parts = "\0".join((json_text(run.prompt), tags, variables, criteria))
        digest = hashlib.sha256(parts.encode("ascii")).digest()[:16]
        if digest not in self._plans:
            for number, one in enumerate(run.criteria):
                if one not in self._criteria:
                    self._criteria.add(one)
                    spec = json_text(dict(run.specs[number])) if number < len(run.specs) else None
                    self._connection.execute(
                        "INSERT INTO criteria (hash, spec, first_ms) VALUES (?1, ?2, ?3) ON CONFLICT (hash)"
                        " DO UPDATE SET spec = excluded.spec WHERE criteria.spec IS NULL",
                        (one, spec, now_ms()),
                    )
            prompt = clean(run.prompt)
            found = self._connection.execute("SELECT id FROM plans WHERE hash = ?", (digest,)).fetchone()
            self._plans[digest] = (
                int(found[0])
                if found
                else self._id(
                    "INSERT INTO plans (hash, prompt, prompt_head, tags, variables, criteria)"
                    " VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
                    (digest, prompt, prompt[:HEAD], tags, variables, criteria),
                )
            )
        return self._plans[digest]

    def _id(self, statement: str, values: tuple[Any, ...]) -> int:
        return int(self._connection.execute(statement, values).fetchone()[0])


def _note(names: list[str], name: str) -> None:
    if name and name not in names and len(names) < _NAMES:
        names.append(name)


@dataclass(slots=True)
class Started:
    """A run left the queue."""

    run_id: str
    attempt: int
    at_ms: int

    def prepare(self) -> None:
        """Nothing to encode."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Only of a run that has not ended: a late message must not take an outcome away."""
        start_runs(connection, [self])


def start_runs(connection: sqlite3.Connection, started: Sequence[Started]) -> None:
    """Many runs left the queue; of several messages about one run the last counts."""
    last = {one.run_id: (one.run_id, one.attempt, one.at_ms) for one in started}
    write_rows(
        connection,
        "WITH new AS ({rows}) UPDATE runs SET status = 'running', attempts = new.column2,"
        " started_ms = coalesce(runs.started_ms, new.column3) FROM new"
        " WHERE runs.uid = new.column1 AND runs.status IN ('queued', 'running', 'grading')",
        list(last.values()),
    )


@dataclass(slots=True)
class End:
    """A run with its transcript and results."""

    ended: RunEnded
    hash: bytes = b""
    transcript: bytes = b""
    evidence: bytes = b""
    document: tuple[str, str, str] = ("", "", "")
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def prepare(self) -> None:
        """Encode and compress."""
        ended = self.ended
        if ended.status not in TOTAL_OF:
            raise HistoryError(f"a run can't end as {ended.status!r}")
        transcript = ended.transcript
        self.hash, self.transcript = pack_transcript(transcript)
        self.evidence = pack_results(ended.results) if ended.results else b""
        self.document = search_document(transcript, "")
        self.calls = [
            (
                position,
                clean(call.name),
                clean(call.arguments) if isinstance(call.arguments, str) else json_text(call.arguments),
                call.status,
                call.duration_ms,
            )
            for position, call in enumerate(transcript.tool_calls)
        ]

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Write the run; one that had ended already is replaced."""
        end_runs(connection, totals, [self])


def end_runs(connection: sqlite3.Connection, totals: Totals, ends: Sequence[End]) -> None:
    """Write runs that ended, each at most once. Of one that had ended before, the new end replaces the old."""
    planned = {
        uid: rest
        for uid, *rest in (
            row
            for (text,) in look_up(
                connection,
                "SELECT json_group_array(json_array("
                "uid, id, execution, test, plan, status, input_tokens, output_tokens, cost))"
                " FROM runs WHERE uid IN {keys}",
                [end.ended.run_id for end in ends],
            )
            for row in json.loads(text)
        )
    }
    blobs = _store_transcripts(connection, ends)
    criteria = _criterion_ids(connection, ends)
    updates, results, evidence, documents = [], [], [], []
    for end in ends:
        ended, transcript = end.ended, end.ended.transcript
        if ended.run_id not in planned:
            raise HistoryError(f"there is no planned run {ended.run_id}")
        run, execution, test, plan, was, *spent_before = planned[ended.run_id]
        if was in TOTAL_OF:
            withdraw(connection, totals, run, execution, test, was, spent_before)
        usage, error = transcript.usage, transcript.error
        updates.append(
            (
                run,
                ended.status,
                ended.score,
                ended.started_ms,
                ended.duration_ms,
                ended.attempts,
                ended.warnings,
                usage.input_tokens,
                usage.output_tokens,
                usage.cost,
                blobs[end.hash],
                clean(transcript.final_output[:HEAD]),
                clean(ended.why[:HEAD]),
                clean(error.kind) if error else "",
                clean(error.message) if error else "",
            )
        )
        for position, one in enumerate(ended.results):
            criterion = criteria.get(one.criterion_hash)
            results.append(
                (run, position, criterion, clean(one.criterion), one.outcome.value, one.score, clean(one.source))
            )
        if ended.results:
            evidence.append((run, end.evidence))
        prompt, answer, tools = end.document
        documents.append((run, prompt or planned_prompt(connection, plan), answer, tools))
        totals.add(execution, TOTAL_OF[ended.status], 1)
        for column, number in zip(_SPENT, (usage.input_tokens, usage.output_tokens, usage.cost), strict=True):
            if number is not None:
                totals.add(execution, column, number)
        if ended.status != "cancelled":
            totals.tests[test] = totals.tests.get(test, 0) + 1
    write_rows(connection, _UPDATE_RUNS, updates)
    write_rows(
        connection,
        "INSERT INTO criterion_results (run, position, criterion, name, outcome, score, source) {rows}",
        results,
    )
    write_rows(connection, "INSERT INTO evidence (run, data) {rows}", evidence)
    # One by one: a statement for several rows makes FTS5 write a segment for each statement, at three times the cost.
    connection.executemany("INSERT INTO search (rowid, prompt, answer, tools) VALUES (?, ?, ?, ?)", documents)


_UPDATE_RUNS = (
    "WITH new AS ({rows}) UPDATE runs SET status = new.column2, score = new.column3,"
    " started_ms = coalesce(new.column4, runs.started_ms), duration_ms = new.column5, attempts = new.column6,"
    " warnings = new.column7, input_tokens = new.column8, output_tokens = new.column9, cost = new.column10,"
    " transcript = new.column11, output_head = new.column12, why = new.column13, error_kind = new.column14,"
    " error_message = new.column15 FROM new WHERE runs.id = new.column1"
)


def _store_transcripts(connection: sqlite3.Connection, ends: Sequence[End]) -> dict[bytes, int]:
    """The ids of the transcripts, by hash; those that are not stored yet are, with their tool calls."""
    by_hash = {end.hash: end for end in ends}
    ids: dict[bytes, int] = dict(
        look_up(connection, "SELECT hash, id FROM transcripts WHERE hash IN {keys}", list(by_hash))
    )
    # The write lock is ours, so the next numbers are too.
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'transcripts'").fetchone()
    number = int(found[0]) if found else 0
    new, calls = [], []
    for content_hash, end in by_hash.items():
        if content_hash not in ids:
            number += 1
            ids[content_hash] = number
            new.append((number, content_hash, end.transcript))
            calls += [(number, *call) for call in end.calls]
    write_rows(connection, "INSERT INTO transcripts (id, hash, data) {rows}", new)
    write_rows(
        connection,
        "INSERT INTO tool_calls (transcript, position, name, arguments, status, duration_ms) {rows}",
        calls,
    )
    return ids


def _criterion_ids(connection: sqlite3.Connection, ends: Sequence[End]) -> dict[str, int]:
    hashes = {result.criterion_hash for end in ends for result in end.ended.results} - {""}
    return dict(look_up(connection, "SELECT hash, id FROM criteria WHERE hash IN {keys}", list(hashes)))


def apply_all(connection: sqlite3.Connection, totals: Totals, waiting: Sequence[Operation]) -> list[Any]:
    """Apply a batch. Starts and ends of runs that lie between two other operations are written together.

    Starts go first: one that comes behind its run's end would change nothing anyway.
    """
    values: list[Any] = []
    starts: list[Started] = []
    ends: dict[str, End] = {}

    def write_runs() -> None:
        if starts:
            start_runs(connection, starts)
            starts.clear()
        if ends:
            end_runs(connection, totals, list(ends.values()))
            ends.clear()

    for operation in waiting:
        if isinstance(operation, Started):
            starts.append(operation)
            values.append(None)
        elif isinstance(operation, End):
            if operation.ended.run_id in ends:
                write_runs()
            ends[operation.ended.run_id] = operation
            values.append(None)
        else:
            write_runs()
            values.append(operation.apply(connection, totals))
    write_runs()
    return values


_SPENT = ("input_tokens", "output_tokens", "cost")


def planned_prompt(connection: sqlite3.Connection, plan: int) -> str:
    """The prompt that was planned; "" where the plan is lost."""
    found = connection.execute("SELECT prompt FROM plans WHERE id = ?", (plan,)).fetchone()
    return str(found[0]) if found else ""


def withdraw(
    connection: sqlite3.Connection,
    totals: Totals,
    run: int,
    execution: int,
    test: int,
    status: str,
    spent: Sequence[float | None],
) -> None:
    """Take an ended run's results, search entry and share of the totals away; its row stays."""
    entry = stored_document(connection, run)
    if entry is not None:
        connection.execute(
            "INSERT INTO search (search, rowid, prompt, answer, tools) VALUES ('delete', ?, ?, ?, ?)", (run, *entry)
        )
    connection.execute("DELETE FROM criterion_results WHERE run = ?", (run,))
    connection.execute("DELETE FROM evidence WHERE run = ?", (run,))
    totals.add(execution, TOTAL_OF[status], -1)
    for column, number in zip(_SPENT, spent, strict=True):
        if number is not None:
            totals.add(execution, column, -number)
    if status != "cancelled":
        totals.tests[test] = totals.tests.get(test, 0) - 1


def stored_document(connection: sqlite3.Connection, run: int) -> tuple[str, str, str] | None:
    """The texts under which a run can be found, made anew from its transcript; None: it is not in the index."""
    found = connection.execute(
        "SELECT t.data, r.plan FROM runs r JOIN transcripts t ON t.id = r.transcript WHERE r.id = ?", (run,)
    ).fetchone()
    if found is None:
        return None
    transcript: Transcript = unpack_transcript(found[0])
    prompt, answer, tools = search_document(transcript, "")
    return prompt or planned_prompt(connection, found[1]), answer, tools


@dataclass(slots=True)
class EndExecution:
    """An execution is over."""

    execution_id: str
    status: str
    message: str = ""
    at_ms: int = field(default_factory=now_ms)

    def prepare(self) -> None:
        """Refuse a status that no list knows."""
        if self.status not in ("finished", "cancelled", "failed", "interrupted"):
            raise HistoryError(f"an execution can't end as {self.status!r}")

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Set the status. Cancelled: what had not ended is cancelled too. Else it goes back to the queue."""
        found = connection.execute("SELECT id FROM executions WHERE uid = ?", (self.execution_id,)).fetchone()
        if found is None:
            raise HistoryError(f"there is no execution {self.execution_id}")
        execution: int = found[0]
        connection.execute(
            "UPDATE executions SET status = ?, finished_ms = ?, message = ? WHERE id = ?",
            (self.status, self.at_ms, clean(self.message), execution),
        )
        left = "execution = ? AND status IN ('queued', 'running', 'grading')"
        if self.status == "cancelled":
            cursor = connection.execute(f"UPDATE runs SET status = 'cancelled' WHERE {left}", (execution,))
            totals.add(execution, "cancelled", cursor.rowcount)
        else:
            connection.execute(f"UPDATE runs SET status = 'queued' WHERE {left}", (execution,))


@dataclass(slots=True)
class Imported:
    """A file was imported: by its digest, so that it is not imported twice."""

    digest: str
    execution_id: str
    path: str

    def prepare(self) -> None:
        """Nothing to encode."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Remember it; a new import of the same file replaces the old one's note."""
        connection.execute(
            "INSERT INTO imports (digest, execution, path, at_ms)"
            " SELECT ?, id, ?, ? FROM executions WHERE uid = ?"
            " ON CONFLICT (digest) DO UPDATE SET execution = excluded.execution, path = excluded.path,"
            " at_ms = excluded.at_ms",
            (self.digest, clean(self.path), now_ms(), self.execution_id),
        )


@dataclass(slots=True)
class DeleteExecution:
    """An execution with all its runs."""

    execution_id: str

    def prepare(self) -> None:
        """Nothing to encode."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> int:
        """Delete it and what only it used. Returns how many runs went."""
        found = connection.execute("SELECT id FROM executions WHERE uid = ?", (self.execution_id,)).fetchone()
        if found is None:
            return 0
        execution: int = found[0]
        rows = connection.execute(
            "SELECT id, test, status, input_tokens, output_tokens, cost, transcript FROM runs WHERE execution = ?",
            (execution,),
        ).fetchall()
        for run, test, status, *spent, _ in rows:
            if status in TOTAL_OF:
                withdraw(connection, totals, run, execution, test, status, spent)
        connection.execute("DELETE FROM runs WHERE execution = ?", (execution,))
        for transcript in {row[-1] for row in rows if row[-1] is not None}:
            if connection.execute("SELECT 1 FROM runs WHERE transcript = ?", (transcript,)).fetchone() is None:
                connection.execute("DELETE FROM transcripts WHERE id = ?", (transcript,))
                connection.execute("DELETE FROM tool_calls WHERE transcript = ?", (transcript,))
        connection.execute("DELETE FROM imports WHERE execution = ?", (execution,))
        connection.execute("DELETE FROM executions WHERE id = ?", (execution,))
        totals.executions.pop(execution, None)
        return len(rows)


@dataclass(slots=True)
class Nothing:
    """Done when all before it is done."""

    def prepare(self) -> None:
        """Nothing to encode."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Nothing to write."""
