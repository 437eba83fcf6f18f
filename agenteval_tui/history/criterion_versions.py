"""Which versions of a test's criterion have judged its runs: by hash, since when, how many runs."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from agenteval_tui.history.blobs import clean


@dataclass(frozen=True, slots=True)
class CriterionVersion:
    """One version as it judged the runs of one test. `first_ms`, `last_ms`: when the executions of the first and of
    the last of them began; `runs`, `passed`, `failed` count them."""

    hash: str
    first_ms: int
    last_ms: int
    runs: int
    passed: int
    failed: int


def versions_of(connection: sqlite3.Connection, suite_key: str, test_id: str, criterion: str) -> list[CriterionVersion]:
    """Newest first. A version whose runs are all gone is not known any more."""
    rows = connection.execute(
        "SELECT c.hash, min(e.started_ms), max(e.started_ms), count(*), sum(o.outcome = 'passed'),"
        " sum(o.outcome = 'failed') FROM runs r CROSS JOIN criterion_results o ON o.run = r.id"
        " CROSS JOIN criteria c ON c.id = o.criterion CROSS JOIN executions e ON e.id = r.execution"
        " WHERE r.test = (SELECT t.id FROM tests t JOIN suites s ON s.id = t.suite WHERE s.key = ? AND t.test_id = ?)"
        " AND o.name = ? GROUP BY o.criterion ORDER BY max(r.id) DESC",
        (clean(suite_key), clean(test_id), clean(criterion)),
    )
    return [CriterionVersion(*row) for row in rows.fetchall()]


def criteria_of_test(connection: sqlite3.Connection, suite_key: str, test_id: str) -> list[str]:
    """The names of the criteria that judged the newest runs of a test, in their order."""
    rows = connection.execute(
        "SELECT o.name FROM criterion_results o WHERE o.run IN (SELECT r.id FROM runs r WHERE r.test ="
        " (SELECT t.id FROM tests t JOIN suites s ON s.id = t.suite WHERE s.key = ? AND t.test_id = ?)"
        " ORDER BY r.id DESC LIMIT 50) ORDER BY o.run DESC, o.position",
        (clean(suite_key), clean(test_id)),
    )
    return list(dict.fromkeys(row[0] for row in rows.fetchall()))


def tests_named(connection: sqlite3.Connection, test_id: str) -> list[tuple[str, str, str]]:
    """(suite key, suite name, test id) of the tests with this id, ignoring case; those that ran last first."""
    rows = connection.execute(
        "SELECT s.key, s.name, t.test_id FROM tests t JOIN suites s ON s.id = t.suite"
        " WHERE t.test_id = ? COLLATE NOCASE ORDER BY (SELECT max(r.id) FROM runs r WHERE r.test = t.id) DESC",
        (clean(test_id),),
    )
    return rows.fetchall()
