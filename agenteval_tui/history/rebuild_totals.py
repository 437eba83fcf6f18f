"""Rebuilds derived data from its sources: totals, the search index, names of lost rows."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator
from typing import Any

from msgspec import Struct

from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.storable import storable
from agenteval_tui.history.blobs import json_text, search_document, unpack_results, unpack_transcript
from agenteval_tui.history.bulk_sql import rows_among
from agenteval_tui.history.dataset_rows import key_runs
from agenteval_tui.history.recordings import ASKED, FORK, mark_all_superseded
from agenteval_tui.history.run_writes import TOTAL_OF, planned_prompt, tool_call_rows

LOST = 0
"""The transcript of a run that had one, which is gone. No row has this number."""


def admit_losses(connection: sqlite3.Connection) -> None:
    """Runs whose transcript is not there say so. Within the caller's transaction."""
    connection.execute(
        "UPDATE runs SET transcript = ? WHERE transcript IS NOT NULL"
        " AND transcript NOT IN (SELECT id FROM transcripts)",
        (LOST,),
    )


REBUILT = ("tool_calls", "criterion_results")
"""Tables whose rows are all in transcripts and evidence too."""
_OF_RUNS = ("criterion_results", "evidence", "labels", "failed_attempts", "run_replies", "tapes")


class RebuildResult(Struct, frozen=True):
    """Rows that are known to be lost, and lost rows that were rebuilt, by table."""

    lost: dict[str, int]
    rebuilt: dict[str, int]


def complete(target: sqlite3.Connection, damaged: Collection[str] = ()) -> RebuildResult:
    """Put something in the place of rows that others need, remove references to lost ones, and count again. `damaged`:
    tables that may have lost rows; their derived data is rebuilt.
    """
    lost: dict[str, int] = {}
    rebuilt: dict[str, int] = {}

    def run(table: str, statement: str, values: tuple[Any, ...] = ()) -> None:
        number = target.execute(statement, values).rowcount
        if number:
            lost[table] = lost.get(table, 0) + number

    # Before anything is deleted: what runs had tells how many of them are lost.
    lost_runs = _lost_runs(target, counted="runs" in damaged)
    if lost_runs:
        lost["runs"] = lost_runs
    run(
        "executions",
        "INSERT INTO executions (id, uid, title, kind, source, status, started_ms, options, suite_keys, owner)"
        " SELECT execution, 'RECOVERED-' || execution, 'recovered runs', 'run', '', 'interrupted',"
        " coalesce(min(started_ms), ?), '{}', '[]', '' FROM runs WHERE execution NOT IN (SELECT id FROM executions)"
        " GROUP BY execution",
        (now_ms(),),
    )
    run(
        "tests",
        "INSERT INTO tests (id, suite, test_id, name) SELECT DISTINCT test, 0, 'recovered-' || test, 'recovered'"
        " FROM runs WHERE test NOT IN (SELECT id FROM tests)",
    )
    suites = (
        "INSERT INTO suites (id, key, name) SELECT DISTINCT suite, 'recovered:' || suite, 'recovered'"
        " FROM tests WHERE suite {} AND suite NOT IN (SELECT id FROM suites)"
    )
    run("suites", suites.format("!= 0"))
    target.execute(suites.format("= 0"))  # of the tests above: their suites are unknown
    run(
        "plans",
        "INSERT INTO plans (id, hash, prompt, prompt_head, tags, variables, criteria)"
        " SELECT DISTINCT plan, CAST('recovered' || plan AS BLOB), '', '', '[]', '{}', '[]'"
        " FROM runs WHERE plan NOT IN (SELECT id FROM plans)",
    )
    target.execute("UPDATE runs SET dataset_row = NULL WHERE dataset_row NOT IN (SELECT id FROM dataset_rows)")
    key_runs(target)
    # Read as it came: only a fork may say of itself that it never counts.
    target.execute(f"UPDATE runs SET superseded = iif(fork_of = '', min(superseded, 1), {FORK})")
    mark_all_superseded(target)
    _never_again(target)
    gone = target.execute(
        "SELECT count(DISTINCT transcript) FROM runs WHERE transcript NOT IN (SELECT id FROM transcripts)"
        " AND transcript != ?",
        (LOST,),
    ).fetchone()[0]
    if gone:
        lost["transcripts"] = gone
    admit_losses(target)
    # From transcripts and evidence, which have the same rows: only what is lost there as well is lost.
    if "tool_calls" in damaged:
        rebuilt["tool_calls"] = _rebuild_calls(target)
    if "criterion_results" in damaged:
        rebuilt["criterion_results"] = _rebuild_results(target)
    for table in _OF_RUNS:
        run(table, f"DELETE FROM {table} WHERE run NOT IN (SELECT id FROM runs)")
    run("tool_calls", "DELETE FROM tool_calls WHERE transcript NOT IN (SELECT id FROM transcripts)")
    run("run_replies", "DELETE FROM run_replies WHERE reply NOT IN (SELECT id FROM judge_replies)")
    for table, column, other in (
        ("baselines", "test", "tests"),
        ("baselines", "execution", "executions"),
        ("baselines", "run", "runs"),
        ("quarantines", "test", "tests"),
        ("imports", "execution", "executions"),
        ("criterion_texts", "test", "tests"),
    ):
        run(table, f"DELETE FROM {table} WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT id FROM {other})")
    forget_lost_examples(target)
    rebuilt["criteria"] = _name_criteria(target, run)
    without = int(target.execute(f"SELECT count(*) FROM ({WITHOUT_EVIDENCE})").fetchone()[0])
    if "evidence" in damaged and without:
        lost["evidence"] = lost.get("evidence", 0) + without
    # The number of a lost task may be given to a new one: references to the lost one must not run that.
    tasks = "SELECT task FROM runs UNION SELECT setup FROM executions"
    gone = target.execute(f"SELECT count(task) FROM ({tasks}) WHERE task NOT IN (SELECT id FROM tasks)").fetchone()[0]
    if gone:
        lost["tasks"] = gone
    target.execute("UPDATE runs SET task = NULL WHERE task NOT IN (SELECT id FROM tasks)")
    target.execute("UPDATE executions SET setup = NULL WHERE setup NOT IN (SELECT id FROM tasks)")
    # Last: the totals rest on all rows that are left.
    recount(target)
    return RebuildResult(lost, rebuilt)


WITHOUT_EVIDENCE = (
    "SELECT DISTINCT run FROM criterion_results WHERE run NOT IN (SELECT run FROM evidence)"
    " AND run IN (SELECT id FROM runs)"
)
"""Runs that have results and whose evidence is lost."""


def lost_examples(connection: sqlite3.Connection) -> dict[int, str]:
    """By the row of a triage decision: its context without the runs that are not in the history."""
    contexts = {}
    for number, text in connection.execute("SELECT id, context FROM triage WHERE context != '{}'").fetchall():
        try:
            context = json.loads(text)
        except (ValueError, RecursionError):
            continue
        examples = context.get("examples") if isinstance(context, dict) else None
        if not isinstance(examples, list) or not examples:
            continue
        ids = {row[0] for row in rows_among(connection, "SELECT uid FROM runs WHERE uid IN {keys}", examples)}
        remaining = [example for example in examples if example in ids]
        if len(remaining) < len(examples):
            contexts[number] = json_text({**context, "examples": remaining})
    return contexts


def forget_lost_examples(connection: sqlite3.Connection) -> int:
    """Triage decisions stay, without the runs that are not in the history. Gives how many had such."""
    contexts = lost_examples(connection)
    connection.executemany(
        "UPDATE triage SET context = ? WHERE id = ?", [(context, number) for number, context in contexts.items()]
    )
    return len(contexts)


def _lost_runs(target: sqlite3.Connection, *, counted: bool) -> int:
    """How many runs are lost, as far as what they had says, and (`counted`) their executions."""
    named = " UNION ".join(f"SELECT run FROM {table}" for table in _OF_RUNS)
    lost = target.execute(f"SELECT count(*) FROM ({named}) WHERE run NOT IN (SELECT id FROM runs)").fetchone()[0]
    if not counted:
        return int(lost)
    number = target.execute(
        "SELECT coalesce(sum(max(e.runs - (SELECT count(*) FROM runs WHERE execution = e.id), 0)), 0) FROM executions e"
    ).fetchone()[0]
    return max(int(lost), int(number))


def _rebuild_calls(target: sqlite3.Connection) -> int:
    """The rows of tool calls of all transcripts, where they are missing. Gives their number."""
    number_of = 0
    for number, data in _each(target, "SELECT id, data FROM transcripts WHERE id > ? ORDER BY id LIMIT 500"):
        try:
            calls = tool_call_rows(unpack_transcript(data))
        except ValueError:
            continue
        number_of += target.executemany(
            "INSERT OR IGNORE INTO tool_calls (transcript, position, name, arguments, status, duration_ms)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [(number, *call) for call in calls],
        ).rowcount
    return number_of


def _rebuild_results(target: sqlite3.Connection) -> int:
    """The rows of criteria's results of all runs, where they are missing. Gives their number.

    Their causes are found when they are asked for.
    """
    number_of = 0
    for number, data in _each(target, "SELECT run, data FROM evidence WHERE run > ? ORDER BY run LIMIT 500"):
        try:
            results = unpack_results(data)
        except ValueError:
            continue
        number_of += target.executemany(
            "INSERT OR IGNORE INTO criterion_results (run, position, criterion, name, outcome, score, source)"
            " VALUES (?, ?, (SELECT id FROM criteria WHERE hash = ?), ?, ?, ?, ?)",
            [
                (
                    number,
                    place,
                    storable(r.criterion_hash),
                    storable(r.criterion),
                    r.outcome.value,
                    r.score,
                    storable(r.source),
                )
                for place, r in enumerate(results)
            ],
        ).rowcount
    return number_of


def _name_criteria(target: sqlite3.Connection, run: Callable[[str, str, tuple[Any, ...]], None]) -> int:
    """Lost versions of criteria: the evidence has their hashes, and their tests have the text. Returns how many were
    restored completely.
    """
    whole = 0
    named = " UNION ".join(
        f"SELECT criterion FROM {table}" for table in ("criterion_results", "labels", "run_replies", "criterion_texts")
    )
    for (number,) in target.execute(
        f"SELECT criterion FROM ({named}) WHERE criterion NOT IN (SELECT id FROM criteria)"
    ).fetchall():
        digest = ""
        for position, data in target.execute(
            "SELECT c.position, e.data FROM criterion_results c JOIN evidence e ON e.run = c.run"
            " WHERE c.criterion = ? LIMIT 20",
            (number,),
        ):
            try:
                digest = storable(unpack_results(data)[position].criterion_hash)
            except (ValueError, IndexError):
                continue
            break
        spec = target.execute("SELECT min(spec) FROM criterion_texts WHERE criterion = ?", (number,)).fetchone()[0]
        statement = (
            "INSERT OR IGNORE INTO criteria (id, hash, spec, first_ms) VALUES (?1, ?2, ?3, coalesce((SELECT"
            " min(r.started_ms) FROM criterion_results c JOIN runs r ON r.id = c.run WHERE c.criterion = ?1), 0))"
        )
        if digest and spec is not None:
            whole += target.execute(statement, (number, digest, spec)).rowcount
        else:
            run("criteria", statement, (number, digest or f"recovered-{number}", spec))
    return whole


def _each(target: sqlite3.Connection, statement: str) -> Iterator[tuple[Any, ...]]:
    """Rows by their number, some at a time: their table may be written meanwhile."""
    last = 0
    while rows := target.execute(statement, (last,)).fetchall():
        yield from rows
        last = rows[-1][0]


def _never_again(target: sqlite3.Connection) -> None:
    """Numbers of lost rows must not be given to new ones: what still names them would then speak of something else."""
    for table, mentions in (
        ("executions", (("runs", "execution"), ("baselines", "execution"), ("imports", "execution"))),
        ("runs", tuple((name, "run") for name in (*_OF_RUNS, "baselines"))),
        ("transcripts", (("runs", "transcript"), ("tool_calls", "transcript"))),
    ):
        highest = max(
            int(target.execute(f"SELECT coalesce(max({column}), 0) FROM {name}").fetchone()[0])
            for name, column in ((table, "id"), *mentions)
        )
        target.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, highest))


def recount(connection: sqlite3.Connection) -> None:
    """Rebuild the maintained totals from the runs. Within the caller's transaction."""
    sums = ", ".join(
        f"{column} = (SELECT count(*) FROM runs WHERE execution = executions.id AND status = '{status}')"
        for status, column in TOTAL_OF.items()
    )
    connection.execute(
        f"UPDATE executions SET {sums},"
        " runs = (SELECT count(*) FROM runs WHERE execution = executions.id),"
        " input_tokens = 0, output_tokens = 0, cost = NULL"
    )
    # Paid work: runs that count, and failed attempts; not answers from the history.
    connection.execute(
        "UPDATE executions SET input_tokens = paid.tokens_in, output_tokens = paid.tokens_out, cost = paid.cost FROM ("
        " SELECT execution, coalesce(sum(tokens_in), 0) AS tokens_in, coalesce(sum(tokens_out), 0) AS tokens_out,"
        "  sum(cost) AS cost FROM ("
        "   SELECT execution, input_tokens AS tokens_in, output_tokens AS tokens_out, cost FROM runs"
        f"   WHERE NOT ({ASKED})"
        "   UNION ALL SELECT r.execution, a.input_tokens, a.output_tokens, a.cost"
        "    FROM failed_attempts a JOIN runs r ON r.id = a.run) GROUP BY execution) AS paid"
        " WHERE paid.execution = executions.id"
    )
    connection.execute(
        "UPDATE tests SET ended = (SELECT count(*) FROM runs WHERE test = tests.id"
        " AND status IN ('passed', 'failed', 'error', 'skipped', 'needs_review'))"
    )


def reindex(connection: sqlite3.Connection) -> None:
    """Rebuild the full-text index from the transcripts. Within the caller's transaction."""
    connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
    for run, plan, data in _each(
        connection,
        "SELECT r.id, r.plan, t.data FROM runs r JOIN transcripts t ON t.id = r.transcript"
        " WHERE r.id > ? ORDER BY r.id LIMIT 500",
    ):
        try:
            prompt, answer, tools = search_document(unpack_transcript(data))
        except ValueError:  # broken bytes: this run is listed, but its transcript can't be shown
            continue
        connection.execute(
            "INSERT INTO search (rowid, prompt, answer, tools) VALUES (?, ?, ?, ?)",
            (run, prompt or planned_prompt(connection, plan), answer, tools),
        )
