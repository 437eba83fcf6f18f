"""What the newest runs of tests and agents used: the figures that an estimate rests on.

Read from windows by index: the size of the history does not matter.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from agenteval_tui.core.storable import storable
from agenteval_tui.history.recordings import FORK
from agenteval_tui.history.replies import OF_USERS

# An error says little of what a run takes, and an answer of the history nothing.
_ENDED = "status IN ('passed', 'failed', 'needs_review', 'skipped')"
# Replies count where they were asked for this run (what was known already cost nothing), and of a server that counts
# its tokens: a function or a model on this machine costs time only.
_FIGURES = (
    " SELECT {key}, r.agent, r.variation, r.duration_ms, r.input_tokens + r.output_tokens, r.cost, {judges}, {users}"
)
_REPLIES = (
    "(SELECT json_array(count(*), sum(coalesce(p.input_tokens, 0) + coalesce(p.output_tokens, 0)), sum(p.cost),"
    " count(p.cost)) FROM run_replies l JOIN judge_replies p ON p.id = l.reply WHERE l.run = r.id AND l.paid"
    " AND coalesce(p.input_tokens, p.output_tokens, p.cost) IS NOT NULL AND {whose})"
)
_WHOSE = {"judges": _REPLIES.format(whose=f"NOT {OF_USERS}"), "users": _REPLIES.format(whose=OF_USERS)}
_OF_TESTS = (
    "WITH wanted AS (SELECT t.id, t.test_id FROM tests t JOIN suites s ON s.id = t.suite WHERE s.key = ?1"
    " AND t.test_id IN (SELECT value FROM json_each(?2))"
    # By index: the runs of a test that the agents never ran are not looked through in vain.
    " AND EXISTS (SELECT 1 FROM json_each(?3) a CROSS JOIN runs f INDEXED BY runs_facets"
    f" WHERE f.{_ENDED} AND f.agent = a.value AND f.test = t.id))"
    + _FIGURES.format(key="wanted.test_id", **_WHOSE)
    + " FROM wanted JOIN runs r ON r.id IN (SELECT w.id FROM runs w WHERE w.test = wanted.id"
    " AND w.agent IN (SELECT value FROM json_each(?3)) AND NOT w.cached AND w.recording = ''"
    f" AND w.superseded != {FORK} AND w.{_ENDED} ORDER BY w.id DESC LIMIT ?4)"
    " ORDER BY r.id DESC"
)
_OF_AGENT = (
    _FIGURES.format(key="''", **_WHOSE)
    + " FROM runs r WHERE r.id IN (SELECT id FROM runs WHERE {range} agent = ?2 AND NOT cached AND recording = ''"
    f" AND superseded != {FORK} AND {_ENDED} ORDER BY id DESC LIMIT ?3) ORDER BY r.id DESC"
)
_NEAR = 5_000  # newest runs of the history that are looked through for an agent


class RunUsage(Struct, frozen=True):
    """What one run used. None: not measured. `replies` of judges and others were asked for it, with their tokens
    and their cost (None: no price is known of some). `user_replies`: the same of its simulated user.
    """

    test_id: str
    agent: str
    variation: str
    duration_ms: float | None
    tokens: int | None
    cost: float | None
    replies: int
    judge_tokens: int
    judge_cost: float | None
    user_replies: int = 0
    user_tokens: int = 0
    user_cost: float | None = None


def figures_of_tests(
    connection: sqlite3.Connection, suite_key: str, tests: Sequence[str], agents: Sequence[str], window: int
) -> list[RunUsage]:
    """The newest `window` ended runs of each test with one of the agents, newest first."""
    rows = connection.execute(
        _OF_TESTS,
        (
            storable(suite_key),
            json.dumps([storable(test) for test in tests]),
            json.dumps([storable(agent) for agent in agents]),
            window,
        ),
    ).fetchall()
    return [_figures(row) for row in rows]


def figures_of_agent(connection: sqlite3.Connection, agent: str, window: int) -> list[RunUsage]:
    """The newest `window` ended runs of an agent, whatever was tested, among the newest of the history."""
    newest = connection.execute("SELECT coalesce(max(id), 0) FROM runs").fetchone()[0]
    statement = _OF_AGENT.format(range="id > ?1 AND")
    return [
        _figures(row) for row in connection.execute(statement, (newest - _NEAR, storable(agent), window)).fetchall()
    ]


def _figures(row: tuple[Any, ...]) -> RunUsage:
    values = (*row[:6], *_asked(row[6]), *_asked(row[7]))
    return RunUsage(*values)


def _asked(packed: str) -> tuple[int, int, float | None]:
    replies, tokens, cost, priced = json.loads(packed)
    # A sum over some of the replies would be said as if it were all of it.
    return replies, tokens or 0, cost if priced == replies else None
