"""What a person took back: remembered, so that it does not come again with another history that still has it.

A label is named by its run, criterion (version and name), person and time, and feedback by its key too; a decision by
the signature of its cause, a baseline by its test and what it rests on: then whatever was decided about it until it was
taken back counts no more.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Literal

from agenteval_tui.core.storable import storable
from agenteval_tui.history.blobs import json_text

Kind = Literal["label", "triage", "baseline"]


def name_of_label(run_id: str, criterion_hash: str, who: str, at_ms: int, criterion: str = "", key: str = "") -> str:
    """How a label is told from all others, in any history.

    Without hash and name it is of the run as a whole. `key`: it is feedback.
    """
    more = [criterion, key] if key else [criterion] if criterion else []
    return json_text([run_id, criterion_hash, who, at_ms, *more])


def add_tombstone(connection: sqlite3.Connection, kind: Kind, name: str, at_ms: int) -> None:
    """It was taken back at this time. Within the caller's transaction."""
    connection.execute(
        "INSERT INTO taken_back (kind, name, at_ms) VALUES (?, ?, ?)"
        " ON CONFLICT (kind, name) DO UPDATE SET at_ms = max(at_ms, excluded.at_ms)",
        (kind, storable(name), at_ms),
    )


def tombstone_time(connection: sqlite3.Connection, kind: Kind, name: str) -> int | None:
    """When it was taken back; None: never."""
    row = connection.execute("SELECT at_ms FROM taken_back WHERE kind = ? AND name = ?", (kind, name)).fetchone()
    return None if row is None else int(row[0])


def remove_labels(connection: sqlite3.Connection, name: str) -> Iterator[str]:
    """Delete the label with this name, and return its run's id; nothing for one that is not here."""
    try:
        run, digest, who, at_ms, *of = json.loads(name)
    except (ValueError, TypeError, RecursionError):
        return
    if not (isinstance(run, str) and isinstance(digest, str) and isinstance(who, str) and type(at_ms) is int):
        return
    if len(of) > 2 or not all(isinstance(part, str) for part in of):
        return
    criterion, key = (of[0] or None if of else None), (of[1] if len(of) > 1 else "")
    removed = connection.execute(
        "DELETE FROM labels WHERE run = (SELECT id FROM runs WHERE uid = ?1) AND who = ?2 AND at_ms = ?3"
        " AND coalesce((SELECT hash FROM criteria WHERE id = labels.criterion), '') = ?4"
        " AND (?5 IS NULL OR criterion_name = ?5) AND key = ?6",
        (run, who, at_ms, digest, criterion, key),
    ).rowcount
    if removed:
        yield run


_BASELINES = (
    "SELECT b.id, s.key, t.test_id, coalesce(e.uid, ''), coalesce(r.uid, '') FROM baselines b"
    " JOIN tests t ON t.id = b.test JOIN suites s ON s.id = t.suite"
    " LEFT JOIN executions e ON e.id = b.execution LEFT JOIN runs r ON r.id = b.run"
)


def baseline_names(connection: sqlite3.Connection, test: tuple[str, str] | None = None) -> dict[int, str]:
    """How the baselines (of one test: suite's key and id) are told from all others in any history, by rowid."""
    where, values = ("", ()) if test is None else (" WHERE s.key = ? AND t.test_id = ?", test)
    return {rowid: json_text(named) for rowid, *named in connection.execute(_BASELINES + where, values).fetchall()}


def remove_baseline(connection: sqlite3.Connection, name: str, at_ms: int) -> int:
    """Delete the baseline with this name, if it was set until then. Returns how many were deleted."""
    try:
        suite, test, _, _ = json.loads(name)
    except (ValueError, TypeError, RecursionError):
        return 0
    if not (isinstance(suite, str) and isinstance(test, str)):
        return 0
    return sum(
        connection.execute("DELETE FROM baselines WHERE id = ? AND at_ms <= ?", (rowid, at_ms)).rowcount
        for rowid, other in baseline_names(connection, (suite, test)).items()
        if other == name
    )
