"""Everything that is read. Each function takes a reader's connection and gives back plain rows.

No query holds a cursor open between calls: an open one would keep the log from being cut.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import functools
import json
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agenteval_tui.core.errors import AgentevalError, AmbiguousError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import median
from agenteval_tui.core.storable import storable
from agenteval_tui.history.bulk_sql import batches
from agenteval_tui.history.errors import NothingRanError
from agenteval_tui.history.execution_names import newest_named
from agenteval_tui.history.process_liveness import is_alive
from agenteval_tui.history.recordings import ASKED, COUNTED
from agenteval_tui.history.records import (
    SUMMARY_WINDOW,
    CostRow,
    Counts,
    CriterionSummary,
    ExecutionRow,
    RunFilter,
    RunRow,
    TestSummary,
)
from agenteval_tui.history.replies import OF_USERS, USER_NAME
from agenteval_tui.history.scope import executions_in
from agenteval_tui.history.search import match_expression, run_conditions
from agenteval_tui.suites.commits import read_commits

_EXECUTION = (
    "SELECT id, uid, title, kind, source, status, started_ms, finished_ms, message, runs, passed, failed, errors,"
    " skipped, cancelled, needs_review, input_tokens, output_tokens, cost, suites, agents, suite_keys, batch_id,"
    " options, owner, project, startup_ms, name, note, meta, commits FROM executions"
)
_RUN = (
    "SELECT r.id, r.uid, e.uid, r.position, s.key, s.name, t.test_id, t.name, r.variation, r.row, r.repetition,"
    " r.agent, r.status, r.score, r.started_ms, r.duration_ms, r.attempts, r.input_tokens, r.output_tokens, r.cost,"
    " p.prompt_head, r.output_head, r.why, r.error_kind, r.error_message, p.variables, p.tags, p.criteria, r.warnings,"
    " r.cached, (SELECT count(*) FROM criterion_results c WHERE c.run = r.id AND c.outcome = 'error'),"
    " coalesce(d.key, ''), r.recording, r.superseded, r.agent_version, r.fork_of, r.fork"
    " FROM runs r JOIN executions e ON e.id = r.execution JOIN tests t ON t.id = r.test"
    " JOIN suites s ON s.id = t.suite JOIN plans p ON p.id = r.plan LEFT JOIN dataset_rows d ON d.id = r.dataset_row"
)
_CHUNK = 400  # ids in one statement
SHORTEST_REF = 4
"""Characters of an id that name it."""


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether the history has no execution at all."""
    return connection.execute("SELECT 1 FROM executions LIMIT 1").fetchone() is None


def executions(connection: sqlite3.Connection, limit: int, before: int | None) -> list[ExecutionRow]:
    """Newest first; `before` is the rowid of the last one already shown."""
    if before is None:
        rows = connection.execute(f"{_EXECUTION} ORDER BY id DESC LIMIT ?", (limit,))
    else:
        rows = connection.execute(f"{_EXECUTION} WHERE id < ? ORDER BY id DESC LIMIT ?", (before, limit))
    return [_execution(row) for row in rows.fetchall()]


def execution(connection: sqlite3.Connection, ref: str) -> ExecutionRow:
    """By id, unique start or end of an id, or "last": the one that came into the history last, forks not counted.

    Clocks have no say in that: one execution that was begun on a machine with a wrong clock would be last for years.
    Raises AgentevalError.
    """
    if ref == "last":
        last = connection.execute(f"SELECT id FROM executions WHERE {COUNTED} ORDER BY id DESC LIMIT 1").fetchone()
        if last is None:
            raise NothingRanError
        return execution_rows(connection, [last[0]])[0]
    rowid = _resolve(connection, "executions", ref, kind="execution")
    return _execution(connection.execute(f"{_EXECUTION} WHERE id = ?", (rowid,)).fetchone())


def execution_rows(connection: sqlite3.Connection, rowids: Sequence[int]) -> list[ExecutionRow]:
    """In the order of `rowids`; those that are gone are left out."""
    by_id = {row[0]: row for row in _by_ids(connection, f"{_EXECUTION} WHERE id IN", rowids)}
    return [_execution(by_id[rowid]) for rowid in rowids if rowid in by_id]


def runs_state(connection: sqlite3.Connection) -> tuple[int, ...]:
    """Figures that differ after an execution was added, deleted, started or ended, or one of its runs ended."""
    statement = """
        SELECT count(*), coalesce(max(id), 0), coalesce(sum(runs), 0), count(finished_ms),
            coalesce(sum(passed + failed + errors + skipped + cancelled + needs_review), 0),
            coalesce(sum(status = 'running'), 0)
        FROM executions"""
    return tuple(connection.execute(statement).fetchone())


def execution_ids(connection: sqlite3.Connection, run_filter: RunFilter) -> array[int]:
    """Rowids of executions with at least one run that the filter lets through, newest first; no filter: all."""
    if run_filter == RunFilter():
        return _newest_first(connection, "SELECT id FROM executions", [])
    if run_filter == RunFilter(kind=run_filter.kind, projects=run_filter.projects, counted=run_filter.counted):
        condition, values = executions_in(run_filter.projects)
        kind = f"{f' AND {COUNTED}' if run_filter.counted else ''}{' AND kind = ?' if run_filter.kind else ''}"
        values += [run_filter.kind] * bool(run_filter.kind)
        return _newest_first(connection, f"SELECT id FROM executions WHERE {condition}{kind}", values)
    statement, values = _matching(run_filter, "DISTINCT execution")
    return _newest_first(connection, statement, values)


def run_ids(connection: sqlite3.Connection, run_filter: RunFilter) -> array[int]:
    """Rowids of the runs that the filter lets through, newest first."""
    if run_filter == RunFilter():
        low, high, number = connection.execute(
            "SELECT (SELECT min(id) FROM runs), (SELECT max(id) FROM runs), (SELECT count(*) FROM runs)"
        ).fetchone()
        if number and high - low + 1 == number:  # nothing was ever deleted: no need to ask for each
            return array("q", range(high, low - 1, -1))
    statement, values = _matching(run_filter, "id")
    return _newest_first(connection, statement, values)


def _matching(run_filter: RunFilter, what: str) -> tuple[str, list[str]]:
    conditions, values = run_conditions(run_filter)
    expression = match_expression(run_filter.text)
    if not expression:
        if run_filter.text.strip():  # nothing but punctuation: no text has it as a word
            conditions.append("0")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {what} FROM runs{where}", values
    if not conditions and what == "id":
        return "SELECT rowid FROM search WHERE search MATCH ?", [expression]
    conditions.append("id IN (SELECT rowid FROM search WHERE search MATCH ?)")
    return f"SELECT {what} FROM runs WHERE {' AND '.join(conditions)}", [*values, expression]


def _newest_first(connection: sqlite3.Connection, statement: str, values: Sequence[str]) -> array[int]:
    # One JSON text from SQLite instead of a Python tuple for each row: a third of the time for 100,000 rows. Sorted
    # here, because an ORDER BY would make SQLite walk the wide table instead of a narrow index.
    wrapped = f"WITH ids(x) AS ({statement}) SELECT json_group_array(x) FROM ids"
    rowids: list[int] = json.loads(connection.execute(wrapped, values).fetchone()[0])
    rowids.sort(reverse=True)
    return array("q", rowids)


def run_rows(connection: sqlite3.Connection, rowids: Sequence[int]) -> list[RunRow]:
    """In the order of `rowids`; those that are gone are left out."""
    by_id = {row[0]: row for row in _by_ids(connection, f"{_RUN} WHERE r.id IN", rowids)}
    return [_run(by_id[rowid]) for rowid in rowids if rowid in by_id]


def runs_of_execution(connection: sqlite3.Connection, execution_id: str) -> list[RunRow]:
    """In the order of the plan."""
    rows = connection.execute(
        f"{_RUN} WHERE r.execution = (SELECT id FROM executions WHERE uid = ?) ORDER BY r.position, r.id",
        (storable(execution_id),),
    )
    return [_run(row) for row in rows.fetchall()]


def steps_of_execution(connection: sqlite3.Connection, execution_id: str) -> dict[str, int]:
    """The number of tool calls of each run in which they could be seen, by run id."""
    rows = connection.execute(
        "SELECT r.uid, r.steps FROM runs r"
        " WHERE r.execution = (SELECT id FROM executions WHERE uid = ?) AND r.steps IS NOT NULL",
        (storable(execution_id),),
    )
    return dict(rows.fetchall())


def runs_of_test(connection: sqlite3.Connection, suite_key: str, test_id: str, limit: int) -> list[RunRow]:
    """The newest `limit` runs of a test, newest first; of each recording its newest grading."""
    rows = connection.execute(
        f"{_RUN} WHERE r.test = (SELECT t2.id FROM tests t2 JOIN suites s2 ON s2.id = t2.suite"
        " WHERE s2.key = ? AND t2.test_id = ?) AND r.superseded = 0 ORDER BY r.id DESC LIMIT ?",
        (storable(suite_key), storable(test_id), limit),
    )
    return [_run(row) for row in rows.fetchall()]


def repetitions(
    connection: sqlite3.Connection,
    suite_key: str,
    test_id: str,
    variation: str,
    row_key: str,
    limit: int,
    execution_id: str = "",
) -> list[RunRow]:
    """The newest `limit` ended runs of one row of one variation of a test, newest first; of each recording its newest
    grading, and in execution `execution_id` its own."""
    rows = connection.execute(
        f"{_RUN} WHERE r.test = (SELECT t2.id FROM tests t2 JOIN suites s2 ON s2.id = t2.suite"
        " WHERE s2.key = ? AND t2.test_id = ?) AND r.variation = ? AND coalesce(d.key, '') = ?"
        " AND r.status IN ('passed', 'failed', 'error', 'needs_review')"
        " AND (r.superseded = 0 OR e.uid = ?) ORDER BY r.id DESC LIMIT ?",
        (storable(suite_key), storable(test_id), storable(variation), storable(row_key), storable(execution_id), limit),
    )
    return [_run(row) for row in rows.fetchall()]


def forks_of(connection: sqlite3.Connection, run_id: str) -> list[RunRow]:
    """The runs that continue a run, oldest first; of each recording its own, not what was graded again."""
    rows = connection.execute(
        f"{_RUN} WHERE r.fork_of = ? AND r.fork_of != '' AND r.recording = '' ORDER BY r.id", (storable(run_id),)
    )
    return [_run(row) for row in rows.fetchall()]


def run(connection: sqlite3.Connection, ref: str) -> RunRow:
    """By id, or a unique start or end of an id. Raises AgentevalError."""
    rowid = _resolve(connection, "runs", ref, kind="run")
    row = connection.execute(f"{_RUN} WHERE r.id = ?", (rowid,)).fetchone()
    if row is None:
        raise AgentevalError(f"run {ref} is there, but not its test or execution", fix="see agenteval doctor")
    return _run(row)


def transcript_blob(connection: sqlite3.Connection, run_id: str) -> tuple[bytes | None, bool] | None:
    """The packed transcript, and whether the run says it has one; None: no such run."""
    row = connection.execute(
        "SELECT t.data, r.transcript IS NOT NULL FROM runs r LEFT JOIN transcripts t ON t.id = r.transcript"
        " WHERE r.uid = ?",
        (storable(run_id),),
    ).fetchone()
    return None if row is None else (row[0], bool(row[1]))


def transcript_blobs(connection: sqlite3.Connection, run_ids: Sequence[str]) -> dict[str, bytes]:
    """Packed transcripts by run id, for at most some hundred runs; runs without one are left out."""
    marks = ",".join("?" * len(run_ids))
    rows = connection.execute(
        f"SELECT r.uid, t.data FROM runs r JOIN transcripts t ON t.id = r.transcript WHERE r.uid IN ({marks})",
        [storable(run_id) for run_id in run_ids],
    )
    return dict(rows.fetchall())


def evidence_blob(connection: sqlite3.Connection, run_id: str) -> bytes | None:
    """The packed results; None when the run has none. Raises AgentevalError when there is no such run."""
    row = connection.execute(
        "SELECT e.data FROM runs r LEFT JOIN evidence e ON e.run = r.id WHERE r.uid = ?", (storable(run_id),)
    ).fetchone()
    if row is None:
        raise AgentevalError(f"there is no run {run_id} in the history", fix="see agenteval history")
    data: bytes | None = row[0]
    return data


def criterion(connection: sqlite3.Connection, content_hash: str) -> dict[str, Any] | None:
    """The stored criterion with this hash. None if it is unknown, if only its hash is stored, or if it is damaged."""
    row = connection.execute("SELECT spec FROM criteria WHERE hash = ?", (storable(content_hash),)).fetchone()
    spec = json.loads(row[0]) if row is not None and row[0] is not None else None
    return spec if isinstance(spec, dict) else None


def newest_criteria(connection: sqlite3.Connection, most: int) -> list[dict[str, Any]]:
    """The versions of criteria that were stored last, the newest first."""
    rows = connection.execute(
        "SELECT spec FROM criteria WHERE spec IS NOT NULL ORDER BY id DESC LIMIT ?", (most,)
    ).fetchall()
    return [spec for row in rows if isinstance(spec := json.loads(row[0]), dict)]


def imported(connection: sqlite3.Connection, digest: str) -> str | None:
    """The execution that a file with this digest became; None: not imported, or not to the end."""
    row = connection.execute(
        "SELECT e.uid FROM imports i JOIN executions e ON e.id = i.execution"
        " WHERE i.digest = ? AND e.status = 'finished'",
        (storable(digest),),
    ).fetchone()
    return None if row is None else str(row[0])


def counts(connection: sqlite3.Connection) -> Counts:
    """Totals over all executions; of each recording its newest grading. Forks are in what was used, and in nothing
    else."""
    row = connection.execute(
        f"SELECT count(*) FILTER (WHERE {COUNTED}), total(runs), total(passed), total(failed), total(errors),"
        " total(skipped), total(cancelled), total(needs_review), total(input_tokens), total(output_tokens), sum(cost)"
        " FROM executions"
    ).fetchone()
    numbers = [int(number) for number in row[:10]]
    tests = int(connection.execute("SELECT count(*) FROM tests").fetchone()[0])
    # What was recorded once is one run, however often it was graded; a fork is none.
    # Without being told, SQLite walks an index of all runs for the order of GROUP BY, and looks up each row.
    older = dict(
        connection.execute(
            "SELECT status, count(*) FROM runs INDEXED BY runs_superseded WHERE superseded GROUP BY status"
        ).fetchall()
    )
    numbers[1] -= sum(older.values())
    for place, status in enumerate(("passed", "failed", "error", "skipped", "cancelled", "needs_review"), 2):
        numbers[place] -= older.get(status, 0)
    return Counts(
        executions=numbers[0],
        runs=numbers[1],
        passed=numbers[2],
        failed=numbers[3],
        errors=numbers[4],
        skipped=numbers[5],
        cancelled=numbers[6],
        needs_review=numbers[7],
        tests=tests,
        input_tokens=numbers[8],
        output_tokens=numbers[9],
        cost=row[10],
    )


def _by_ids(connection: sqlite3.Connection, statement: str, rowids: Sequence[int]) -> Iterable[tuple[Any, ...]]:
    for chunk in batches(rowids, _CHUNK):
        yield from connection.execute(f"{statement} ({','.join('?' * len(chunk))})", chunk).fetchall()


def _resolve(connection: sqlite3.Connection, table: str, ref: str, *, kind: str) -> int:
    """The rowid of the one id that is, starts with, or ends with `ref`."""
    ref = storable(ref.strip())
    row = connection.execute(f"SELECT id FROM {table} WHERE uid = ?", (ref,)).fetchone()
    if row is not None:
        return int(row[0])
    if kind == "execution" and (named := newest_named(connection, ref)) is not None:
        return named
    if len(ref) < SHORTEST_REF:
        raise AgentevalError(
            f"there is no {kind} {ref!r} in the history", fix=f"give at least {SHORTEST_REF} characters of its id"
        )
    rows = begin_with(connection, table, ref, 3) or end_with(connection, table, ref, 3)
    if len(rows) == 1:
        return rows[0][0]
    if rows:
        raise AmbiguousError(
            f"{ref!r} matches more than one {kind}: {', '.join(row[1] for row in rows)}",
            fix="give more characters of the id",
        )
    raise AgentevalError(f"there is no {kind} {ref!r} in the history", fix="see agenteval history")


def begin_with(connection: sqlite3.Connection, table: str, ref: str, most: int) -> list[tuple[int, str]]:
    """(rowid, id) of rows whose id begins with `ref`, at most this many; none for a few letters."""
    return _parts(connection, table, ref, "uid >= ? AND uid < ?", lambda part: (part, part + "\U0010ffff"), most)


def end_with(connection: sqlite3.Connection, table: str, ref: str, most: int) -> list[tuple[int, str]]:
    """(rowid, id) of what has an id that ends with `ref`, as ids are shown in short (`short_id`)."""
    return _parts(connection, table, ref, "substr(uid, -?) = ?", lambda part: (len(part), part), most)


def _parts(
    connection: sqlite3.Connection,
    table: str,
    ref: str,
    condition: str,
    values: Callable[[str], tuple[Any, ...]],
    most: int,
) -> list[tuple[int, str]]:
    ref = storable(ref.strip())
    if len(ref) < SHORTEST_REF:
        return []
    for spelling in dict.fromkeys((ref, ref.upper())):
        statement = f"SELECT id, uid FROM {table} WHERE {condition} LIMIT ?"
        if rows := connection.execute(statement, (*values(spelling), most)).fetchall():
            return rows
    return []


def _mapping(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("it is not a mapping")
    return value


def _names(text: str) -> str:
    return ", ".join(json.loads(text))


def _execution(row: tuple[Any, ...]) -> ExecutionRow:
    status = row[5]
    if status == "running" and not is_alive(row[24]):
        kind, runs, ended = row[3], row[9], sum(row[10:14]) + row[15]
        # Of an import more may have been to come: its runs are not planned beforehand.
        status = "finished" if kind != "import" and ended == runs else "interrupted"
    suites, agents, suite_keys, batch_id, options = row[19:24]
    keys = tuple(json.loads(suite_keys))
    values = (
        *row[:5],
        status,
        *row[6:19],
        _names(suites),
        _names(agents),
        keys,
        batch_id,
        _mapping(options),
        *row[25:29],
        {} if row[29] == "{}" else {key: str(value) for key, value in _mapping(row[29]).items()},
        () if row[30] == "{}" else read_commits(_mapping(row[30]).values()),
    )
    return ExecutionRow(*values)


@functools.lru_cache(maxsize=1024)
def _texts(text: str) -> tuple[str, ...]:
    """A plan's tags or criteria: the runs of a page have few plans."""
    return tuple(json.loads(text))


def _run(row: tuple[Any, ...]) -> RunRow:
    variables, tags, criteria, warnings, cached, not_made, row_key, recording, superseded, *rest = row[25:]
    values = (
        *row[:25],
        {} if variables == "{}" else _mapping(variables),
        _texts(tags),
        _texts(criteria),
        warnings,
        bool(cached),
        not_made,
        row_key,
        recording,
        bool(superseded),
        *rest,
    )
    return RunRow(*values)


# What an execution used: computed on request, not maintained. An index leads to the execution's runs, so the size of
# the history does not matter.
_RUNS = (
    f"WITH mine AS (SELECT id, test, agent, status, ({ASKED}) AS cached, input_tokens, output_tokens, cost FROM runs"
    " WHERE execution = (SELECT id FROM executions WHERE uid = ?))"
)
_AGENTS = (
    _RUNS + ", used (test, agent, n, tokens_in, tokens_out, cost) AS ("
    "  SELECT test, agent, 1, input_tokens, output_tokens, cost FROM mine"
    "   WHERE NOT cached AND status IN ('passed', 'failed', 'error', 'skipped', 'needs_review', 'cancelled')"
    "  UNION ALL SELECT m.test, m.agent, 0, a.input_tokens, a.output_tokens, a.cost"
    "   FROM mine m JOIN failed_attempts a ON a.run = m.id)"
    " SELECT s.key, t.test_id, t.name, u.agent, '', '', sum(u.n), coalesce(sum(u.tokens_in), 0),"
    " coalesce(sum(u.tokens_out), 0), sum(u.cost)"
    " FROM used u JOIN tests t ON t.id = u.test JOIN suites s ON s.id = t.suite"
    " GROUP BY u.test, u.agent ORDER BY u.test, u.agent"
)
_JUDGES = (
    _RUNS + " SELECT s.key, t.test_id, t.name, p.model, coalesce(c.hash, ''),"
    " coalesce(json_extract(c.spec, '$.name'), ''), count(*), coalesce(sum(p.input_tokens), 0),"
    " coalesce(sum(p.output_tokens), 0), sum(p.cost)"
    " FROM mine m JOIN run_replies l ON l.run = m.id AND l.paid JOIN judge_replies p ON p.id = l.reply"
    " JOIN tests t ON t.id = m.test JOIN suites s ON s.id = t.suite LEFT JOIN criteria c ON c.id = l.criterion"
    f" WHERE NOT {OF_USERS}"
    " GROUP BY m.test, l.criterion, p.model ORDER BY m.test, l.criterion, p.model"
)
_USERS = (
    _RUNS + f" SELECT s.key, t.test_id, t.name, {USER_NAME}, '', '', count(*), coalesce(sum(p.input_tokens), 0),"
    " coalesce(sum(p.output_tokens), 0), sum(p.cost)"
    " FROM mine m JOIN run_replies l ON l.run = m.id AND l.paid JOIN judge_replies p ON p.id = l.reply"
    " JOIN tests t ON t.id = m.test JOIN suites s ON s.id = t.suite"
    f" WHERE {OF_USERS} GROUP BY m.test, p.answerer ORDER BY m.test, p.answerer"
)


def costs(connection: sqlite3.Connection, execution_id: str) -> list[CostRow]:
    """The rows of agents, then those of judges, then those of simulated users; each in the order of the tests."""
    uid = storable(execution_id)
    return [
        *(CostRow("agent", *row) for row in connection.execute(_AGENTS, (uid,)).fetchall()),
        *(CostRow("judge", *row) for row in connection.execute(_JUDGES, (uid,)).fetchall()),
        *(CostRow("user", *row) for row in connection.execute(_USERS, (uid,)).fetchall()),
    ]


# How the tests of a suite did recently: from a window of runs by index, so the size of the history does not matter.
_WINDOW = (
    "WITH recent AS (SELECT t.id AS test, t.test_id, t.ended, r.id AS run FROM tests t"
    " JOIN suites s ON s.id = t.suite JOIN runs r ON r.id IN ("
    "   SELECT w.id FROM runs w WHERE w.test = t.id"
    "   AND w.status IN ('passed', 'failed', 'error', 'skipped', 'needs_review') AND w.superseded = 0"
    "   ORDER BY w.id DESC LIMIT ?)"
    " WHERE s.key = ?)"
)
_RECENT_RUNS = (
    " SELECT recent.test_id, recent.ended, r.status, r.started_ms, r.duration_ms, r.cost, r.execution,"
    " iif(r.agent_version = '', r.agent, r.agent_version) || char(31)"
    " || ifnull((SELECT group_concat(c.criterion) FROM criterion_results c WHERE c.run = r.id), '')"
    " FROM recent JOIN runs r ON r.id = recent.run ORDER BY recent.run"
)
# Without being told, SQLite counts them in the index of all runs of a test, and looks up each row.
_SUPERSEDED = (
    "SELECT t.test_id, count(*) FROM suites s JOIN tests t ON t.suite = s.id"
    " JOIN runs o INDEXED BY runs_superseded ON o.test = t.id WHERE s.key = ? AND o.superseded GROUP BY t.id"
)
# Of another agent, or of another version of the criterion, figures are others.
# SQLite promises: beside max() the other columns (here the outcome) are those of the row with the maximum,
# as long as there is no second min() or max().
_CRITERIA = (
    " SELECT recent.test_id, c.name, sum(c.outcome IN ('passed', 'failed')), sum(c.outcome = 'passed'),"
    " c.outcome, max(c.run) AS newest"
    " FROM recent JOIN criterion_results c ON c.run = recent.run JOIN runs r ON r.id = recent.run"
    " GROUP BY recent.test, c.name, c.criterion, iif(r.agent_version = '', r.agent, r.agent_version)"
    " ORDER BY recent.test, avg(c.position), newest"
)
_LAST_WORDS = (
    " SELECT recent.test_id,"
    " substr(coalesce(nullif(r.why, ''), nullif(r.error_message, ''), r.output_head), 1, 300), r.agent, max(r.id)"
    " FROM recent JOIN runs r ON r.id = recent.run GROUP BY recent.test"
)


def test_summaries(connection: sqlite3.Connection, suite_key: str) -> dict[str, TestSummary]:
    """By test id; tests that never ended a run are left out."""
    which = (SUMMARY_WINDOW, storable(suite_key))
    runs = grouped((test, tuple(row)) for test, *row in connection.execute(_WINDOW + _RECENT_RUNS, which).fetchall())
    criteria: dict[str, dict[str, CriterionSummary]] = {}
    newest: dict[tuple[str, str], int] = {}
    for test, name, n, passed, last, run in connection.execute(_WINDOW + _CRITERIA, which).fetchall():
        by_name = criteria.setdefault(test, {})
        if run >= newest.get((test, name), 0):  # of its versions and agents those of the last run
            newest[test, name], by_name[name] = run, CriterionSummary(n, passed, last)
    older = dict(connection.execute(_SUPERSEDED, which[1:]).fetchall())
    last_answers = {
        test: (words, agent) for test, words, agent, _ in connection.execute(_WINDOW + _LAST_WORDS, which).fetchall()
    }
    return {
        test: _summary(test, rows, criteria.get(test, {}), older.get(test, 0), *last_answers.get(test, ("", "")))
        for test, rows in runs.items()
    }


def _summary(
    test: str,
    runs: list[tuple[Any, ...]],
    criteria: dict[str, CriterionSummary],
    superseded: int,
    answer: str,
    agent: str,
) -> TestSummary:
    total, outcomes, started, durations, costs, executions, settings = zip(*runs, strict=True)
    measured = [duration for duration in durations if duration is not None]
    spent = [cost for cost in costs if cost is not None]
    return TestSummary(
        test_id=test,
        n=len(runs),
        passed=outcomes.count("passed"),
        errors=outcomes.count("error"),
        recent=outcomes,
        last_ms=max((moment for moment in started if moment is not None), default=None),
        p50_ms=median(measured) if measured else None,
        cost=sum(spent) / len(spent) if spent else None,
        criteria=criteria,
        total=total[0] - superseded,
        settings=settings,
        executions=executions,
        answer=answer,
        agent=agent,
    )
