"""Writing that runs started and ended. Runs in the writer's thread, inside its transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

from msgspec import field
from msgspec.structs import replace

from agenteval_tui.core.ids import criterion_names
from agenteval_tui.core.storable import storable
from agenteval_tui.grading.causes import signatures
from agenteval_tui.history.blobs import json_text, pack_results, pack_transcript, search_document, unpack_transcript
from agenteval_tui.history.bulk_sql import look_up, write_rows
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.execution_writes import plan_with
from agenteval_tui.history.recordings import ASKED, mark_superseded
from agenteval_tui.history.records import HEAD, FailedAttempt, RunEnded
from agenteval_tui.history.tapes import pack_tape
from agenteval_tui.history.writer import Operation, Totals
from agenteval_tui.transcripts.finish_reason import ending_of, with_ending
from agenteval_tui.transcripts.impossible_figures import duration_in, with_possible_figures
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.observed import unseen

# Which of an execution's totals a status counts in.
TOTAL_OF = {
    "passed": "passed",
    "failed": "failed",
    "error": "errors",
    "skipped": "skipped",
    "cancelled": "cancelled",
    "needs_review": "needs_review",
}
_unique = lru_cache(maxsize=256)(criterion_names)  # the runs of an execution have few sets of criteria
_SPENT = ("input_tokens", "output_tokens", "cost")


class StartRun(Operation):
    """A run left the queue."""

    patient: ClassVar[bool] = True
    run_id: str
    attempt: int
    at_ms: int

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Only of a run that has not ended: a late message must not take an outcome away."""
        start_runs(connection, [self])


def start_runs(connection: sqlite3.Connection, started: Sequence[StartRun]) -> None:
    """Many runs left the queue; of several messages about one run the last counts."""
    last = {start_run.run_id: (start_run.run_id, start_run.attempt, start_run.at_ms) for start_run in started}
    write_rows(
        connection,
        "WITH new AS ({rows}) UPDATE runs SET status = 'running', attempts = new.column2,"
        " started_ms = coalesce(runs.started_ms, new.column3) FROM new"
        " WHERE runs.uid = new.column1 AND runs.status IN ('queued', 'running', 'grading')",
        list(last.values()),
    )


class EndRuns(Operation):
    """A run with its transcript and results."""

    patient: ClassVar[bool] = True
    ended: RunEnded
    hash: bytes = b""
    transcript: bytes = b""
    evidence: bytes = b""
    document: tuple[str, str, str] = ("", "", "")
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    steps: int | None = None
    """How many tools were called; None: unknown."""
    causes: Sequence[str | None] = ()
    why: str = ""
    tape: bytes = b""
    is_prepared: bool = False

    def prepare(self) -> None:
        """Encode and compress; say why it failed, where it did. Only the first time."""
        # An import has done it in its own thread, and the writer calls it all the same.
        if self.is_prepared:
            return
        ended = self.ended
        duration = ended.duration_ms
        transcript = with_possible_figures(ended.transcript)
        if transcript is not ended.transcript or (duration is not None and duration_in(duration) is None):
            # One figure that no column takes would cost the run, and all others of its statement.
            ended = self.ended = replace(
                ended, transcript=transcript, duration_ms=None if duration is None else duration_in(duration)
            )
        self.tape = pack_tape(ended.tape) if ended.tape else b""
        if ended.status not in TOTAL_OF:
            raise HistoryError(f"a run can't end as {ended.status!r}")
        own_names = tuple([result.criterion for result in ended.results])
        names = _unique(own_names)
        if names != own_names:  # of another tool, as a rule: ours have names of their own since they were planned
            results = tuple(
                [
                    replace(criterion_result, criterion=name)
                    for criterion_result, name in zip(ended.results, names, strict=True)
                ]
            )
            ended = self.ended = replace(ended, results=results)
        self.hash, self.transcript = pack_transcript(transcript)
        self.evidence = pack_results(ended.results) if ended.results else b""
        self.document = search_document(transcript)
        error = transcript.error
        ending = ending_of(transcript)
        self.why = ended.why
        if ending is not None and ended.status in ("passed", "failed"):
            self.why = with_ending(ended.why, transcript)
        self.causes = signatures(
            ended.status,
            ended.results,
            error,
            "" if ending is None else ending.code,
        )
        self.calls = tool_call_rows(transcript)
        self.steps = None if unseen(transcript, frozenset(("tool_calls",))) is not None else len(self.calls)
        self.is_prepared = True

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Write the run; one that had ended already is replaced."""
        end_runs(connection, totals, [self])


def tool_call_rows(transcript: Transcript) -> list[tuple[Any, ...]]:
    """The rows of a transcript's tool calls, but for its number."""
    return [
        (
            position,
            storable(call.name),
            storable(call.arguments) if isinstance(call.arguments, str) else json_text(call.arguments),
            call.status,
            call.duration_ms,
        )
        for position, call in enumerate(transcript.tool_calls)
    ]


def end_runs(connection: sqlite3.Connection, totals: Totals, ends: Sequence[EndRuns]) -> None:
    """Write runs that ended, each at most once. Of one that had ended before, the new end replaces the old."""
    # As one text for each statement: Python gives the interpreter away with each row that it gets.
    planned = {
        uid: rest
        for uid, *rest in (
            row
            for (text,) in look_up(
                connection,
                "SELECT json_group_array(json_array("
                "uid, id, execution, test, plan, status, cached, recording))"
                " FROM runs WHERE uid IN {keys}",
                [end.ended.run_id for end in ends],
            )
            for row in json.loads(text)
        )
    }
    blobs = _store_transcripts(connection, ends)
    criteria = _criterion_ids(connection, ends)
    updates, results, evidence, documents, tapes = [], [], [], [], []
    for end in ends:
        ended, transcript = end.ended, end.ended.transcript
        if ended.run_id not in planned:
            raise HistoryError(f"there is no planned run {ended.run_id}")
        run, execution, test, plan, was, was_cached, recording = planned[ended.run_id]
        # Hooks brought variables: it was asked something else than planned.
        if ended.asked is not None:
            plan = plan_with(connection, plan, *ended.asked)
            connection.execute("UPDATE runs SET plan = ? WHERE id = ?", (plan, run))
        # Before the new row is written: what search has of the run is rebuilt from its old transcript.
        if was in TOTAL_OF:
            withdraw(connection, totals, run)
        cached = ended.cached or bool(was_cached)  # graded again it is still an answer that was known before
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
                storable(transcript.final_output[:HEAD]),
                storable(end.why[:HEAD]),
                storable(error.kind) if error else "",
                storable(error.message) if error else "",
                storable(ended.request) or None,
                cached,
                end.steps,
            )
        )
        if ended.failed_attempts:
            keep_attempts(connection, totals, execution, run, ended.failed_attempts)
        for position, (criterion_result, cause) in enumerate(zip(ended.results, end.causes, strict=True)):
            criterion = criteria.get(criterion_result.criterion_hash)
            name, source = storable(criterion_result.criterion), storable(criterion_result.source)
            results.append(
                (
                    run,
                    position,
                    criterion,
                    name,
                    criterion_result.outcome.value,
                    criterion_result.score,
                    source,
                    cause and storable(cause),
                )
            )
        if ended.results:
            evidence.append((run, end.evidence))
        if end.tape:
            tapes.append((run, end.tape))
        prompt, answer, tools = end.document
        documents.append((run, prompt or planned_prompt(connection, plan), answer, tools))
        totals.add(execution, TOTAL_OF[ended.status], 1)
        # What came from the history was paid for there.
        spent = () if cached or recording else (usage.input_tokens, usage.output_tokens, usage.cost)
        for column, number in zip(_SPENT, spent, strict=False):
            if number is not None:
                totals.add(execution, column, number)
        # One that was cancelled says nothing of its test.
        if ended.status != "cancelled":
            totals.tests[test] = totals.tests.get(test, 0) + 1
    write_rows(connection, _UPDATE_RUNS, updates)
    # Of the gradings of one recording the newest counts, and this may be it.
    mark_superseded(connection, [entry[-1] for entry in planned.values()])
    write_rows(
        connection,
        "INSERT INTO criterion_results (run, position, criterion, name, outcome, score, source, cause) {rows}",
        results,
    )
    write_rows(connection, "INSERT INTO evidence (run, data) {rows}", evidence)
    write_rows(connection, "INSERT OR REPLACE INTO tapes (run, data) {rows}", tapes)
    # One by one: a statement for several rows makes FTS5 write a segment for each statement, at three times the cost.
    connection.executemany("INSERT INTO search (rowid, prompt, answer, tools) VALUES (?, ?, ?, ?)", documents)


_UPDATE_RUNS = (
    "WITH new AS ({rows}) UPDATE runs SET status = new.column2, score = new.column3,"
    " started_ms = coalesce(new.column4, runs.started_ms), duration_ms = new.column5, attempts = new.column6,"
    " warnings = new.column7, input_tokens = new.column8, output_tokens = new.column9, cost = new.column10,"
    " transcript = new.column11, output_head = new.column12, why = new.column13, error_kind = new.column14,"
    " error_message = new.column15, request = coalesce(new.column16, runs.request), cached = new.column17,"
    " steps = new.column18"
    " FROM new WHERE runs.id = new.column1"
)


def _store_transcripts(connection: sqlite3.Connection, ends: Sequence[EndRuns]) -> dict[bytes, int]:
    """The ids of the transcripts, by hash; those that are not stored yet are, with their tool calls."""
    by_hash = {end.hash: end for end in ends}
    ids: dict[bytes, int] = dict(
        look_up(connection, "SELECT hash, id FROM transcripts WHERE hash IN {keys}", list(by_hash))
    )
    # The write lock is ours, so the next numbers are too: tool calls can be written without asking for them.
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'transcripts'").fetchone()
    number = int(row[0]) if row else 0
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


def _criterion_ids(connection: sqlite3.Connection, ends: Sequence[EndRuns]) -> dict[str, int]:
    hashes = {storable(result.criterion_hash) for end in ends for result in end.ended.results} - {""}
    return dict(look_up(connection, "SELECT hash, id FROM criteria WHERE hash IN {keys}", list(hashes)))


def planned_prompt(connection: sqlite3.Connection, plan: int) -> str:
    """The prompt that was planned; "" where the plan is lost."""
    row = connection.execute("SELECT prompt FROM plans WHERE id = ?", (plan,)).fetchone()
    return str(row[0]) if row else ""


def withdraw(connection: sqlite3.Connection, totals: Totals, run: int) -> None:
    """Take a run's results, search entry and share of the totals away, if it has ended; its row stays."""
    execution, test, status, asked_nobody, *spent = connection.execute(
        f"SELECT execution, test, status, {ASKED}, input_tokens, output_tokens, cost FROM runs WHERE id = ?",  # noqa: S608 - words of ours
        (run,),
    ).fetchone()
    if status not in TOTAL_OF:
        return
    entry = _stored_document(connection, run)
    if entry is not None:
        # The index keeps no texts: it forgets an entry only if it gets the same texts again.
        connection.execute(
            "INSERT INTO search (search, rowid, prompt, answer, tools) VALUES ('delete', ?, ?, ?, ?)", (run, *entry)
        )
    connection.execute("DELETE FROM criterion_results WHERE run = ?", (run,))
    connection.execute("DELETE FROM evidence WHERE run = ?", (run,))
    totals.add(execution, TOTAL_OF[status], -1)
    for column, number in zip(_SPENT, () if asked_nobody else spent, strict=False):
        if number is not None:
            totals.add(execution, column, -number)
    if status != "cancelled":
        totals.tests[test] = totals.tests.get(test, 0) - 1


class KeepAttempts(Operation):
    """The failed attempts of a run that has not ended and goes back to the queue."""

    patient: ClassVar[bool] = True
    run_id: str
    attempts: Sequence[FailedAttempt]

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Add them."""
        row = connection.execute("SELECT id, execution FROM runs WHERE uid = ?", (self.run_id,)).fetchone()
        if row is None:
            raise HistoryError(f"there is no planned run {self.run_id}")
        keep_attempts(connection, totals, row[1], row[0], self.attempts)


def keep_attempts(
    connection: sqlite3.Connection, totals: Totals, execution: int, run: int, attempts: Sequence[FailedAttempt]
) -> None:
    """Add failed attempts to those that the run has (they are numbered on from there), and to what was paid for."""
    for attempt in attempts:
        for column, spent in zip(_SPENT, (attempt.input_tokens, attempt.output_tokens, attempt.cost), strict=True):
            if spent is not None:
                totals.add(execution, column, spent)
    last = connection.execute("SELECT max(number) FROM failed_attempts WHERE run = ?", (run,)).fetchone()[0]
    write_rows(
        connection,
        "INSERT INTO failed_attempts"
        " (run, number, kind, message, duration_ms, at_ms, input_tokens, output_tokens, cost) {rows}",
        [
            (
                run,
                number,
                storable(failed_attempt.kind),
                storable(failed_attempt.message),
                failed_attempt.duration_ms,
                failed_attempt.at_ms,
                failed_attempt.input_tokens,
                failed_attempt.output_tokens,
                failed_attempt.cost,
            )
            for number, failed_attempt in enumerate(attempts, (last or 0) + 1)
        ],
    )


def _stored_document(connection: sqlite3.Connection, run: int) -> tuple[str, str, str] | None:
    """The texts under which a run can be found, rebuilt from its transcript; None: it is not in the index."""
    row = connection.execute(
        "SELECT t.data, r.plan FROM runs r JOIN transcripts t ON t.id = r.transcript WHERE r.id = ?", (run,)
    ).fetchone()
    if row is None:
        return None
    try:
        prompt, answer, tools = search_document(unpack_transcript(row[0]))
    except ValueError:  # broken bytes: its words stay in the index, and lists leave out rows that are gone
        return None
    return prompt or planned_prompt(connection, row[1]), answer, tools
