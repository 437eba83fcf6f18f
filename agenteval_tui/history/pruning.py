"""What of the history may go: by age, by count per test. Never a baseline, a labelled run, one in quarantine, an
example of a triage decision, or what runs now."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from agenteval_tui.core.document import Count, Document
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history.baselines import KEPT_RUNS
from agenteval_tui.history.bulk_sql import batches
from agenteval_tui.history.connections import file_bytes, free_bytes
from agenteval_tui.history.delete_runs import DeleteResult, Progress, remove_runs, running_executions
from agenteval_tui.history.recordings import FORK
from agenteval_tui.history.search import moment
from agenteval_tui.history.store import Store

_UNENDED = "('queued', 'running', 'grading')"


class Pruning(Struct, frozen=True):
    """What to delete. With both, a run is deleted only when it is older *and* not among the newest `keep` of its test.
    `before_ms`: runs that started before this moment (imported ones: were imported before it). `keep`: the newest runs
    of each test stay; cancelled ones and forks are not counted. What was never run is deleted by age alone.
    """

    before_ms: int | None = None
    keep: int | None = None


def moment_before(text: str, now_ms: int) -> int:
    """What `before_ms` is for an age ("90d", "6mo") or a day ("2026-08-01") that a person typed. Raises
    AgentevalError."""
    before = moment(text, now_ms)
    if before is None:
        raise AgentevalError(f"{text!r} is not an age or a day", fix="such as 90d, 12h, 2w, 6mo, 1y, or 2026-08-01")
    return before


class PrunableCounts(Document, frozen=True, kw_only=True):
    """How much would go: `executions` of `of_executions`. What is old or many enough to go stays all the same where it
    is running, baseline, labelled, quarantine, triage."""

    of_runs: Count
    executions: Count
    of_executions: Count
    bytes: Annotated[Count, Meta(description="approximate size of these runs in the file")]
    kept: Annotated[Mapping[str, Count], Meta(description="selected runs that stay, by reason")]


class Prunable(PrunableCounts, frozen=True, kw_only=True):
    """What would go: rowids of runs, and of executions that hold no run at all."""

    runs: array[int]
    empty: array[int]


def prunable(store: Store, pruning: Pruning) -> Prunable:
    """Look what would go; changes nothing. Raises AgentevalError when `pruning` names no limit."""
    if pruning.before_ms is None and pruning.keep is None:
        fix = "give an age, such as 90d, or how many runs of each test to keep, or both"
        raise AgentevalError("say what to remove", fix=fix)
    return store.read(lambda c: _look(c, pruning))


def prune(store: Store, prunable: Prunable, on_progress: Progress | None = None) -> DeleteResult:
    """Remove what `prunable` found, but for what was labelled, made a baseline or resumed since. Blocks."""
    return remove_runs(
        store, prunable.runs, executions=prunable.empty, unless=f"({_protected()}) != ''", on_progress=on_progress
    )


def protection(connection: sqlite3.Connection, runs: Sequence[int]) -> dict[str, int]:
    """How many of these runs (rowids) have other uses, by reason: shown before they are deleted. A
    run may have several reasons."""
    counted: Counter[str] = Counter()
    reasons = _reasons()
    sums = ", ".join(f"total({condition})" for condition in reasons.values())
    for chunk in batches(runs, 400):
        cursor = connection.execute(f"SELECT {sums} FROM runs WHERE id IN ({','.join('?' * len(chunk))})", chunk)
        counted.update(dict(zip(reasons, map(int, cursor.fetchone()), strict=True)))
    return {why: number for why, number in counted.items() if number}


def _reasons() -> dict[str, str]:
    """SQL conditions over table `runs` by the reason to keep a run, the weightiest first."""
    return {
        "baseline": f"runs.id IN ({KEPT_RUNS})",
        "labelled": "EXISTS (SELECT 1 FROM labels WHERE labels.run = runs.id)",
        "quarantine": f"runs.test IN (SELECT test FROM quarantines WHERE until_ms IS NULL OR until_ms > {now_ms()})",
        "triage": "runs.uid IN (SELECT one.value FROM triage, json_tree(triage.context) AS one"
        " WHERE json_valid(triage.context) AND one.type = 'text')",
    }


def _protected() -> str:
    """SQL: why a row of `runs` stays; '' when nothing keeps it."""
    whens = " ".join(f"WHEN {where} THEN '{why}'" for why, where in _reasons().items())
    return f"CASE {whens} ELSE '' END"


def _look(connection: sqlite3.Connection, pruning: Pruning) -> Prunable:
    conditions: list[str] = []
    values: list[float] = []
    if pruning.before_ms is not None:
        conditions.append("coalesce(i.at_ms, runs.started_ms, e.started_ms) < ?")
        values.append(pruning.before_ms)
    if pruning.keep is not None:
        # `newer`: runs of the test with an outcome that are as new or newer. One without an outcome is not counted.
        # A cancelled run is not in its own `newer`: it goes as soon as `keep` others are newer.
        by_count = f"CASE WHEN runs.status IN {_UNENDED} THEN ? WHEN runs.status = 'cancelled' THEN newer >= ?"
        conditions.append(f"{by_count} ELSE newer > ? END")
        values += [int(pruning.before_ms is not None), pruning.keep, pruning.keep]
    ranked = (
        f"ranked AS (SELECT id, sum(superseded != {FORK}"
        " AND status NOT IN ('queued', 'running', 'grading', 'cancelled')) OVER"
        " (PARTITION BY test ORDER BY id DESC ROWS UNBOUNDED PRECEDING) AS newer FROM runs)"
    )
    busy = running_executions(connection)
    rows = connection.execute(
        f"WITH {ranked} SELECT runs.id, runs.execution, CASE WHEN runs.execution IN (SELECT value FROM json_each(?))"
        f" THEN 'running' ELSE {_protected()} END FROM runs JOIN ranked ON ranked.id = runs.id"
        " JOIN executions e ON e.id = runs.execution"
        " LEFT JOIN (SELECT execution, max(at_ms) AS at_ms FROM imports GROUP BY execution) i"
        f" ON i.execution = runs.execution WHERE {' AND '.join(conditions)} ORDER BY runs.id",
        [json.dumps(busy), *values],
    ).fetchall()
    going = array("q", [run for run, _, why in rows if not why])
    leaving = Counter(execution for _, execution, why in rows if not why)
    whole = dict(connection.execute("SELECT execution, count(*) FROM runs GROUP BY execution").fetchall())
    empty = _empty(connection, pruning, busy)
    return Prunable(
        runs=going,
        empty=empty,
        executions=len(empty) + sum(whole[execution] == number for execution, number in leaving.items()),
        of_runs=sum(whole.values()),
        of_executions=int(connection.execute("SELECT count(*) FROM executions").fetchone()[0]),
        kept=dict(Counter(why for _, _, why in rows if why).most_common()),
        bytes=_bytes(connection, going, sum(whole.values())),
    )


def _empty(connection: sqlite3.Connection, pruning: Pruning, busy: Sequence[int]) -> array[int]:
    """Executions without a run that started before the limit."""
    if pruning.before_ms is None:
        return array("q")
    rows = connection.execute(
        "SELECT id FROM executions WHERE started_ms < ? AND NOT EXISTS"
        " (SELECT 1 FROM runs WHERE runs.execution = executions.id)",
        (pruning.before_ms,),
    ).fetchall()
    return array("q", [row[0] for row in rows if row[0] not in busy])


def _bytes(connection: sqlite3.Connection, going: array[int], number: int) -> int:
    """About what runs take: their transcripts (those that no other run has) and results, and a share of the rest."""
    if not going:
        return 0
    gone = "gone(id) AS (SELECT value FROM json_each(?))"
    listed = json.dumps(going.tolist())
    own = connection.execute(
        f"WITH {gone} SELECT coalesce(sum(length(data)), 0) FROM transcripts WHERE id IN"
        " (SELECT transcript FROM runs WHERE id IN (SELECT id FROM gone))"
        " AND id NOT IN (SELECT transcript FROM runs WHERE transcript IS NOT NULL AND id NOT IN (SELECT id FROM gone))",
        (listed,),
    ).fetchone()[0]
    own += connection.execute(
        f"WITH {gone} SELECT coalesce(sum(length(data)), 0) FROM evidence WHERE run IN (SELECT id FROM gone)", (listed,)
    ).fetchone()[0]
    own += connection.execute(
        f"WITH {gone} SELECT coalesce(sum(length(data)), 0) FROM tapes WHERE run IN (SELECT id FROM gone)", (listed,)
    ).fetchone()[0]
    blobs = connection.execute(
        "SELECT (SELECT coalesce(sum(length(data)), 0) FROM transcripts)"
        " + (SELECT coalesce(sum(length(data)), 0) FROM evidence)"
        " + (SELECT coalesce(sum(length(data)), 0) FROM tapes)"
    ).fetchone()[0]
    rest = max(file_bytes(connection) - free_bytes(connection) - blobs, 0)
    return int(own + rest * len(going) / max(number, 1))
