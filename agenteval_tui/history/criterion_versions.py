"""Which versions of a test's criterion have judged its runs: by hash, since when, how many runs.

How each criterion of a test was written, a text for each of its versions.

A version (`criteria`) is known by its content, and many criteria may have the same: the stored text is that of the
first, with its comments. What is written back into a file is the criterion's own.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agenteval_tui.core.ids import criterion_names
from agenteval_tui.core.storable import storable
from agenteval_tui.history.blobs import json_text
from agenteval_tui.history.bulk_sql import look_up, write_rows
from agenteval_tui.history.recordings import FORK

_TEST = "(SELECT t.id FROM tests t JOIN suites s ON s.id = t.suite WHERE s.key = ? AND t.test_id = ?)"
"""In SQL: the row of the test with this suite's key and this id."""


class CriterionVersion(Struct, frozen=True):
    """One version as it judged the runs of one test. `first_ms`, `last_ms`: when the executions of the first and the
    last started; `runs`, `passed`, `failed` count them."""

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
        f" WHERE r.test = {_TEST} AND o.name = ? AND r.superseded != {FORK}"
        " GROUP BY o.criterion ORDER BY max(r.id) DESC",
        (storable(suite_key), storable(test_id), storable(criterion)),
    )
    return [CriterionVersion(*row) for row in rows.fetchall()]


def criteria_of_test(connection: sqlite3.Connection, suite_key: str, test_id: str) -> list[str]:
    """The names of the criteria that judged the newest runs of a test, in their order."""
    rows = connection.execute(
        f"SELECT o.name FROM criterion_results o WHERE o.run IN (SELECT r.id FROM runs r WHERE r.test = {_TEST}"
        f" AND r.superseded != {FORK} ORDER BY r.id DESC LIMIT 50) ORDER BY o.run DESC, o.position",
        (storable(suite_key), storable(test_id)),
    )
    return list(dict.fromkeys(row[0] for row in rows.fetchall()))


def tests_named(connection: sqlite3.Connection, test_id: str) -> list[tuple[str, str, str]]:
    """(suite key, suite name, test id) of the tests with this id, ignoring case; those that ran last first."""
    rows = connection.execute(
        "SELECT s.key, s.name, t.test_id FROM tests t JOIN suites s ON s.id = t.suite"
        " WHERE t.test_id = ? COLLATE NOCASE ORDER BY (SELECT max(r.id) FROM runs r WHERE r.test = t.id) DESC",
        (storable(test_id),),
    )
    return rows.fetchall()


def note(
    connection: sqlite3.Connection, tests: Sequence[tuple[int, tuple[str, ...], tuple[Mapping[str, Any], ...]]]
) -> None:
    """Keep the criteria of tests (row number, hashes, specs) as they are written now. Their versions are stored."""
    texts: dict[tuple[int, str, str], str] = {}
    written: dict[tuple[int, ...], list[tuple[str, str]]] = {}  # tests with equal criteria share the objects
    for test, hashes, specs in tests:
        which = tuple(map(id, specs))
        if which not in written:
            names = criterion_names(str(spec.get("name", "")) for spec in specs)
            written[which] = [(storable(name), json_text(dict(spec))) for name, spec in zip(names, specs, strict=True)]
        for digest, (name, text) in zip(hashes, written[which], strict=False):
            texts[test, name, digest] = text
    ids = dict(
        look_up(connection, "SELECT hash, id FROM criteria WHERE hash IN {keys}", list({key[2] for key in texts}))
    )
    write_rows(
        connection,
        "INSERT INTO criterion_texts (test, name, criterion, spec) {rows}"
        " ON CONFLICT (test, name, criterion) DO UPDATE SET spec = excluded.spec WHERE spec != excluded.spec",
        [(test, name, ids[digest], spec) for (test, name, digest), spec in texts.items() if digest in ids],
    )


def text_of(
    connection: sqlite3.Connection, suite_key: str, test_id: str, criterion: str, content_hash: str
) -> dict[str, Any] | None:
    """The spec of this version as this criterion had it last; None: how it was written there is unknown."""
    row = connection.execute(
        "SELECT x.spec FROM criterion_texts x JOIN criteria c ON c.id = x.criterion JOIN tests t ON t.id = x.test"
        " JOIN suites s ON s.id = t.suite WHERE s.key = ? AND t.test_id = ? AND x.name = ? AND c.hash = ?",
        (storable(suite_key), storable(test_id), storable(criterion), storable(content_hash)),
    ).fetchone()
    return None if row is None else json.loads(row[0])


def former_name(
    connection: sqlite3.Connection, suite_key: str, test_id: str, criterion: str, names_now: Iterable[str]
) -> str:
    """What the criterion was called before: the name in the same test, gone since, of a criterion whose last version
    is the first of this one, and that judged no run after. "": it was not renamed, as far as is known."""
    rows = connection.execute(
        "SELECT o.name, o.criterion, min(r.id), max(r.id) FROM runs r CROSS JOIN criterion_results o ON o.run = r.id"
        f" WHERE r.test = {_TEST} AND o.criterion IS NOT NULL AND r.superseded != {FORK} GROUP BY o.name, o.criterion",
        (storable(suite_key), storable(test_id)),
    ).fetchall()
    own = sorted((first, version) for name, version, first, _ in rows if name == storable(criterion))
    if not own:
        return ""
    first, version = own[0]
    last_version: dict[str, tuple[int, int]] = {}
    for name, former, _, last in rows:
        last_version[name] = max(last_version.get(name, (0, 0)), (last, former))
    there = {storable(name) for name in (*names_now, criterion)}
    candidates = [
        (last, name)
        for name, (last, former) in last_version.items()
        if name not in there and former == version and last < first
    ]
    return str(max(candidates)[1]) if candidates else ""
