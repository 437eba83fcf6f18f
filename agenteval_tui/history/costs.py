"""What an execution used, by test and agent, and by the criteria that asked judges.

Computed on request, not maintained: an index leads to the execution's runs, so the size of the history does not matter.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import sqlite3

from agenteval_tui.history.blobs import clean
from agenteval_tui.history.recordings import ASKED
from agenteval_tui.history.records import CostRow
from agenteval_tui.history.replies import OF_USERS, USER_NAME

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
    uid = clean(execution_id)
    return [
        *(CostRow("agent", *row) for row in connection.execute(_AGENTS, (uid,)).fetchall()),
        *(CostRow("judge", *row) for row in connection.execute(_JUDGES, (uid,)).fetchall()),
        *(CostRow("user", *row) for row in connection.execute(_USERS, (uid,)).fetchall()),
    ]
