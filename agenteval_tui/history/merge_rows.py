"""Rows of another history file: read by the execution that they belong to, and put in under numbers of this one."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
# What a column names: a row of this table, by its number there. The first to come are those that others name.
_NAMES = {
    "tests": {"suite": "suites"},
    "executions": {"setup": "tasks"},
    "dataset_rows": {"test": "tests"},
    "runs": {
        "execution": "executions",
        "test": "tests",
        "plan": "plans",
        "dataset_row": "dataset_rows",
        "transcript": "transcripts",
        "task": "tasks",
    },
    "criterion_results": {"run": "runs", "criterion": "criteria"},
    "evidence": {"run": "runs"},
    "tool_calls": {"transcript": "transcripts"},
    "labels": {"run": "runs", "criterion": "criteria"},
    "failed_attempts": {"run": "runs"},
    "run_replies": {"run": "runs", "reply": "judge_replies", "criterion": "criteria"},
    "baselines": {"test": "tests", "execution": "executions", "run": "runs"},
    "quarantines": {"test": "tests"},
    "criterion_texts": {"test": "tests", "criterion": "criteria"},
    "imports": {"execution": "executions"},
    "triage": {},
}
# By which columns rows of the two files are the same.
_SAME = {
    "suites": ("key",),
    "tests": ("suite", "test_id"),
    "dataset_rows": ("test", "key"),
    "criteria": ("hash",),
    "plans": ("hash",),
    "tasks": ("hash",),
    "transcripts": ("hash",),
    "executions": ("uid",),
    "runs": ("uid",),
    "judge_replies": ("request", "answerer", "at_ms", "data"),
    "labels": ("run", "criterion", "criterion_name", "rating", "passed", "comment", "who", "at_ms"),
    "baselines": ("test",),
    "quarantines": ("test", "criterion", "at_ms"),
    "criterion_texts": ("test", "name", "criterion"),
    "imports": ("digest",),
    "triage": ("signature",),
}
_DECIDED = ("baselines", "quarantines", "triage", "imports", "taken_back")
_OF_RUN = ("criterion_results", "evidence", "labels", "failed_attempts", "run_replies")


@dataclass(slots=True)
class Batch:
    """Rows of the other file by table: an execution, some of its runs, and all that those name."""

    tables: dict[str, list[Row]]


def read_rows(connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> list[Row]:
    cursor = connection.execute(statement, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _by_id(connection: sqlite3.Connection, table: str, ids: Iterator[int | None] | Sequence[int | None]) -> list[Row]:
    wanted = sorted({one for one in ids if one is not None})
    found: list[Row] = []
    for start in range(0, len(wanted), 400):
        chunk = wanted[start : start + 400]
        found += read_rows(connection, f"SELECT * FROM {table} WHERE id IN ({','.join('?' * len(chunk))})", chunk)
    return found


def read_batch(connection: sqlite3.Connection, execution: Row, runs: Sequence[int]) -> Batch:
    marks = ",".join("?" * len(runs))
    tables: dict[str, list[Row]] = {"executions": [execution], "runs": _by_id(connection, "runs", runs)}
    for table in _OF_RUN:
        tables[table] = read_rows(connection, f"SELECT * FROM {table} WHERE run IN ({marks})", runs)
    rows = tables["runs"]
    tables["transcripts"] = _by_id(connection, "transcripts", [row["transcript"] for row in rows])
    numbers = [row["id"] for row in tables["transcripts"]]
    tables["tool_calls"] = read_rows(
        connection, f"SELECT * FROM tool_calls WHERE transcript IN ({','.join('?' * len(numbers))})", numbers
    )
    tables["plans"] = _by_id(connection, "plans", [row["plan"] for row in rows])
    tables["dataset_rows"] = _by_id(connection, "dataset_rows", [row["dataset_row"] for row in rows])
    tables["tasks"] = _by_id(connection, "tasks", [*(row["task"] for row in rows), execution["setup"]])
    tables["judge_replies"] = _by_id(connection, "judge_replies", [row["reply"] for row in tables["run_replies"]])
    tables["tests"] = _by_id(connection, "tests", [row["test"] for row in rows])
    tables["suites"] = _by_id(connection, "suites", [row["suite"] for row in tables["tests"]])
    tests = [row["id"] for row in tables["tests"]]
    tables["criterion_texts"] = read_rows(
        connection, f"SELECT * FROM criterion_texts WHERE test IN ({','.join('?' * len(tests))})", tests
    )
    name_criteria = ("criterion_results", "labels", "run_replies", "criterion_texts")
    named = [row["criterion"] for table in name_criteria for row in tables[table]]
    hashes = {one for row in tables["plans"] for one in _hashes(row["criteria"])}
    tables["criteria"] = _by_id(connection, "criteria", named) + [
        row
        for one in sorted(hashes)
        for row in read_rows(connection, "SELECT * FROM criteria WHERE hash = ?", (one,))
        if row["id"] not in set(named)
    ]
    return Batch(tables)


def _hashes(text: str) -> list[str]:
    found = json.loads(text)
    return [one for one in found if isinstance(one, str)]


def read_decisions(connection: sqlite3.Connection) -> Batch:
    """What people decided, with the tests, executions and runs that it names by their ids."""
    tables = {name: read_rows(connection, f"SELECT * FROM {name}") for name in _DECIDED}
    tests = [row["test"] for name in ("baselines", "quarantines") for row in tables[name]]
    tables["tests"] = _by_id(connection, "tests", tests)
    tables["suites"] = _by_id(connection, "suites", [row["suite"] for row in tables["tests"]])
    ids = [row["execution"] for name in ("baselines", "imports") for row in tables[name]]
    tables["executions"] = [{"id": row["id"], "uid": row["uid"]} for row in _by_id(connection, "executions", ids)]
    runs = [row["run"] for row in tables["baselines"]]
    tables["runs"] = [{"id": row["id"], "uid": row["uid"]} for row in _by_id(connection, "runs", runs)]
    return Batch(tables)


@dataclass(slots=True)
class Numbers:
    """From the numbers of rows in the other file to those in this one, by table."""

    maps: dict[str, dict[int, int]] = field(default_factory=dict)

    def translated(self, table: str, row: Row) -> Row | None:
        """The row as it is here, without its own number; None: it names something that is not here."""
        made = {name: value for name, value in row.items() if name != "id"}
        for column, other in _NAMES.get(table, {}).items():
            if made.get(column) is not None:
                found = self.maps.get(other, {}).get(made[column])
                if found is None:
                    return None
                made[column] = found
        return made

    def take(self, connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> int:
        """Insert those that are not here yet, and learn the numbers of all. Gives how many came."""
        numbers = self.maps.setdefault(table, {})
        came = 0
        for row in rows:
            made = self.translated(table, row)
            if made is None:
                continue
            known = _find(connection, table, made)
            if known is None:
                known = insert(connection, table, made)
                came += 1
            numbers[row["id"]] = known
        return came

    def find(self, connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
        """Learn the numbers of those that are here."""
        numbers = self.maps.setdefault(table, {})
        for row in rows:
            known = _find(connection, table, row)
            if known is not None:
                numbers[row["id"]] = known


def _find(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int | None:
    where = " AND ".join(f"{column} IS ?" for column in _SAME[table])
    found = connection.execute(
        f"SELECT id FROM {table} WHERE {where}", [row[column] for column in _SAME[table]]
    ).fetchone()
    return None if found is None else int(found[0])


def insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    names = ", ".join(row)
    cursor = connection.execute(
        f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values())
    )
    return int(cursor.lastrowid or 0)
