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

from agenteval_tui.core.storable import storable
from agenteval_tui.history.bulk_sql import rows_among

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
    recorded = "SELECT uid, iif(recording = '', uid, recording) FROM runs WHERE uid IN {keys}"
    return dict(rows_among(connection, recorded, map(storable, run_ids)))
