"""An agent's run is recorded once and can be graded many times. The newest grading of each recording counts.

A run that only grades again names the recorded run (`runs.recording`, its id; "" for the recorded run itself). If a
recording has several runs, all but the newest ended one are `superseded`: the index for trends and all statistics over
the history leave them out. An execution that somebody opens by name shows its own runs anyway.

A run that continues a step of another run (`runs.fork_of`) never counts, from the moment it is planned: its
`superseded` is `FORK`, and grading does not change that. So queries without superseded runs are also without forks.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from agenteval_tui.history.blobs import clean

FORK = 2
"""`superseded` of a run that continues another run; 1: a newer grading replaces the run, 0: the run counts."""
COUNTED = "kind != 'fork'"
"""SQL condition on an execution: "last", "the execution before" and similar names may refer to it."""
UNGRADED = "recorded programs"
"""The suite of programs that were recorded without a test. Its tests have the names of the programs."""
PROGRAM = "program"
"""The option of an execution that recorded a program: its command, without keys."""
ASKED = "cached OR recording != ''"
"""SQL condition on a run: no agent was asked for it, so it cost nothing."""
_ENDED = "status IN ('passed', 'failed', 'error', 'needs_review')"


def mark_superseded(connection: sqlite3.Connection, recordings: Iterable[str]) -> None:
    """Mark which runs of these recordings (ids of the recorded runs) count. Within the caller's transaction."""
    names = sorted(set(recordings) - {""})
    if not names:
        return
    connection.execute(
        "WITH wanted AS MATERIALIZED (SELECT value AS name FROM json_each(?)), members AS ("
        " SELECT r.id, w.name, r.status, e.started_ms FROM wanted w JOIN runs r ON r.uid = w.name"
        "  JOIN executions e ON e.id = r.execution"
        " UNION ALL SELECT r.id, w.name, r.status, e.started_ms FROM wanted w JOIN runs r ON r.recording = w.name"
        "  JOIN executions e ON e.id = r.execution WHERE r.recording != ''),"
        f" ranked AS (SELECT id, {_ENDED} AND row_number() OVER (PARTITION BY name"
        f"  ORDER BY {_ENDED} DESC, started_ms DESC, id DESC) > 1 AS older FROM members)"
        " UPDATE runs SET superseded = ranked.older FROM ranked"
        f" WHERE ranked.id = runs.id AND runs.superseded NOT IN (ranked.older, {FORK})",
        (json.dumps(names),),
    )


def mark_all_superseded(connection: sqlite3.Connection) -> None:
    """The same for all recordings that were graded again."""
    connection.execute("UPDATE runs SET superseded = 0 WHERE superseded = 1")
    mark_superseded(
        connection, [row[0] for row in connection.execute("SELECT DISTINCT recording FROM runs WHERE recording != ''")]
    )


def recordings_of(connection: sqlite3.Connection, run_ids: Sequence[str]) -> dict[str, str]:
    """By run id: the id of the run that was recorded, its own for one that was not graded again."""
    rows = connection.execute(
        "SELECT uid, iif(recording = '', uid, recording) FROM runs WHERE uid IN (SELECT value FROM json_each(?))",
        (json.dumps([clean(run_id) for run_id in run_ids]),),
    )
    return dict(rows.fetchall())


def superseded(connection: sqlite3.Connection) -> set[int]:
    """The row numbers of all runs that do not count: a newer grading takes their place, or they are forks."""
    return {row[0] for row in connection.execute("SELECT id FROM runs WHERE superseded")}


def find_recordings(connection: sqlite3.Connection) -> None:
    """Of runs that an older program graded again: which run was recorded. Within the caller's transaction.

    They are at the same place of the graded execution, with the same test and the same transcript.
    """
    gradings = connection.execute(
        "SELECT id, uid, json_extract(options, '$.graded_from') FROM executions"
        " WHERE json_valid(options) AND json_type(options, '$.graded_from') = 'text' ORDER BY started_ms, id"
    ).fetchall()
    found: dict[str, str] = {}
    for execution, _, source in gradings:
        rows = connection.execute(
            "SELECT g.uid, o.uid, g.position FROM runs g LEFT JOIN executions e ON e.uid = ?1 LEFT JOIN runs o"
            " ON o.execution = e.id AND o.position = g.position AND o.test = g.test AND o.transcript = g.transcript"
            " WHERE g.execution = ?2",
            (source, execution),
        )
        for run, recorded, position in rows.fetchall():
            # Where the recorded run is gone its gradings still are of one recording.
            found[run] = recorded if recorded is not None else f"{source}.{position}"
    if not found:
        return
    roots = {run: _root(found, run) for run in found}
    connection.executemany("UPDATE runs SET recording = ? WHERE uid = ?", [(root, run) for run, root in roots.items()])
    # What was graded was paid for when it was recorded.
    connection.executemany(
        "UPDATE executions SET input_tokens = 0, output_tokens = 0, cost = NULL WHERE id = ?",
        [(execution,) for execution, _, _ in gradings],
    )
    mark_all_superseded(connection)


def _root(found: dict[str, str], run: str) -> str:
    seen = {run}
    while (source := found.get(run)) is not None and source not in seen:
        seen.add(source)
        run = source
    return run
