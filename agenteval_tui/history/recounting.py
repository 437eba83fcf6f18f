"""What stands in the history twice, made anew from what it rests on: totals, the search index, names of lost rows."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import sqlite3

from agenteval_tui.history.blobs import search_document, unpack_transcript
from agenteval_tui.history.dataset_rows import key_runs
from agenteval_tui.history.outcomes import TOTAL_OF, planned_prompt
from agenteval_tui.history.recordings import ASKED, settle_all
from agenteval_tui.text.identity import now_ms

LOST = 0
"""The transcript of a run that had one, which is gone. No row has this number."""


def admit_losses(connection: sqlite3.Connection) -> None:
    """Runs whose transcript is not there say so. Within the caller's transaction."""
    connection.execute(
        "UPDATE runs SET transcript = ? WHERE transcript IS NOT NULL"
        " AND transcript NOT IN (SELECT id FROM transcripts)",
        (LOST,),
    )


def complete(target: sqlite3.Connection) -> None:
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
    target.execute("UPDATE runs SET dataset_row = NULL WHERE dataset_row NOT IN (SELECT id FROM dataset_rows)")
    key_runs(target)
    settle_all(target)
    _never_again(target)
    admit_losses(target)
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
    target.execute(
        "DELETE FROM criterion_texts WHERE test NOT IN (SELECT id FROM tests)"
        " OR criterion NOT IN (SELECT id FROM criteria)"
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
