"""The rows of datasets that tests ran with: each once, by what it is (`suites.row_keys`), and where it stood last.

A run names its row here, so that runs of one row are found wherever it stood in its file. Runs that other tools made
come without a key: theirs is made of all variables of the run, the test's own ones among them (`assumed`). The first
plan that has a row with those variables gives it the key that it really has.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from agenteval_tui.core.storable import storable
from agenteval_tui.history.bulk_sql import look_up, rows_among, write_rows
from agenteval_tui.history.records import PlannedRun
from agenteval_tui.suites.row_keys import ID_COLUMN, content_key, id_in, id_key, number_of, numbered

_UNKNOWN = "place:"  # of a run whose variables are not stored


def row_ids(connection: sqlite3.Connection, runs: Sequence[PlannedRun], tests: Sequence[int]) -> list[int | None]:
    """For each run the number of its row; None: its test has no dataset. `tests` are the numbers of the runs' tests.

    Rows that are new are stored. Runs that come without a key (from other tools) get one made of their variables.
    """
    keys = _keys_of(runs, tests)
    runs_by_key: dict[tuple[int, str], PlannedRun] = {}
    for run, test, key in zip(runs, tests, keys, strict=True):
        if key:
            runs_by_key.setdefault((test, key), run)
    if not runs_by_key:
        return [None] * len(runs)
    numbers = _known(connection, runs_by_key)
    missing = [key for key in runs_by_key if key not in numbers]
    numbers.update(_adopted(connection, {key: runs_by_key[key] for key in missing}))
    inserted = write_rows(
        connection,
        "INSERT INTO dataset_rows (test, key, place, assumed) {rows} RETURNING test, key, id",
        [
            (test, key, runs_by_key[test, key].row, int(not runs_by_key[test, key].row_key))
            for test, key in missing
            if (test, key) not in numbers
        ],
    )
    numbers.update(((test, key), number) for test, key, number in inserted)
    connection.executemany(
        "UPDATE dataset_rows SET place = ?1 WHERE id = ?2 AND place != ?1",
        [(run.row, numbers[key]) for key, run in runs_by_key.items()],
    )
    return [numbers[test, key] if key else None for test, key in zip(tests, keys, strict=True)]


def _keys_of(runs: Sequence[PlannedRun], tests: Sequence[int]) -> list[str]:
    keys = [storable(run.row_key) for run in runs]
    without = [
        (test, run.row, place)
        for place, (run, test) in enumerate(zip(runs, tests, strict=True))
        if run.row and not keys[place]
    ]
    for _, group in groupby(sorted(without), key=lambda entry: entry[0]):
        listed = list(group)
        first = {row: place for _, row, place in reversed(listed)}
        keys_by_row = _assumed_keys({row: runs[place].variables for row, place in sorted(first.items())})
        for _, row, place in listed:
            keys[place] = keys_by_row[row]
    return keys


def _assumed_keys(rows: Mapping[int, Mapping[str, Any]]) -> dict[int, str]:
    """Keys for the rows of one test in one execution, made of all variables that their runs had, by place."""
    names = {row: id_in(variables, ID_COLUMN) for row, variables in rows.items()}
    repeated = any(count > 1 for name, count in Counter(names.values()).items() if name is not None)
    keys: dict[int, str] = {}
    counts: Counter[str] = Counter()
    for row in sorted(rows):
        name = names[row]
        if not rows[row]:
            keys[row] = f"{_UNKNOWN}{row}"
        elif name is not None and not repeated:
            keys[row] = id_key(name)
        else:
            key = content_key(rows[row])
            counts[key] += 1
            keys[row] = numbered(key, counts[key])
    return keys


def _known(
    connection: sqlite3.Connection, runs_by_key: Mapping[tuple[int, str], PlannedRun]
) -> dict[tuple[int, str], int]:
    """The numbers of those that are stored. What a dataset has as it is assumed is assumed no longer."""
    rows = look_up(
        connection,
        "SELECT key, test, id, assumed FROM dataset_rows WHERE key IN {keys}",
        list(dict.fromkeys(key for _, key in runs_by_key)),
    )
    numbers = {}
    for key, test, number, assumed in rows:
        run = runs_by_key.get((test, key))
        if run is not None:
            numbers[test, key] = number
            if assumed and run.row_key:
                connection.execute("UPDATE dataset_rows SET assumed = 0 WHERE id = ?", (number,))
    return numbers


def _adopted(
    connection: sqlite3.Connection, missing: Mapping[tuple[int, str], PlannedRun]
) -> dict[tuple[int, str], int]:
    """Rows that were stored with the same variables and no key get it: their numbers by it."""
    tests = json.dumps(sorted({test for test, _ in missing}))
    rows = connection.execute(
        "SELECT test, key, id FROM dataset_rows WHERE assumed AND test IN (SELECT value FROM json_each(?))", (tests,)
    ).fetchall()
    if not rows:
        return {}
    assumed = {(test, key): number for test, key, number in rows}
    numbers = {}
    for (test, key), run in missing.items():
        if not run.row_key:
            continue
        number = assumed.pop((test, numbered(content_key(dict(run.variables)), number_of(key))), None)
        if number is not None:
            connection.execute("UPDATE dataset_rows SET key = ?, assumed = 0 WHERE id = ?", (key, number))
            numbers[test, key] = number
    return numbers


def key_runs(connection: sqlite3.Connection) -> None:
    """Give the runs of datasets' rows that name no row one, made of what is stored. Within the caller's transaction."""
    rows = connection.execute(
        "SELECT execution, test, row, min(plan) FROM runs WHERE row > 0 AND dataset_row IS NULL"
        " GROUP BY execution, test, row ORDER BY execution, test, row"
    ).fetchall()
    if not rows:
        return
    variables = _variables(connection, sorted({row[3] for row in rows}))
    places: dict[tuple[int, str], int] = {}
    keyed = []
    for (execution, test), group in groupby(rows, key=lambda entry: (entry[0], entry[1])):
        plans = {row: plan for _, _, row, plan in group}
        for row, key in _assumed_keys({row: variables.get(plan, {}) for row, plan in plans.items()}).items():
            places[test, key] = row
            keyed.append((execution, test, row, key))
    write_rows(
        connection,
        "INSERT INTO dataset_rows (test, key, place, assumed) {rows} ON CONFLICT (key, test) DO NOTHING",
        [(test, key, place, 1) for (test, key), place in places.items()],
    )
    connection.execute(
        "CREATE TEMP TABLE keyed (execution INTEGER, test INTEGER, row INTEGER, key TEXT,"
        " PRIMARY KEY (execution, test, row)) WITHOUT ROWID"
    )
    write_rows(connection, "INSERT INTO temp.keyed (execution, test, row, key) {rows}", keyed)
    connection.execute(
        "UPDATE runs SET dataset_row = (SELECT d.id FROM temp.keyed k JOIN dataset_rows d ON d.key = k.key"
        " AND d.test = k.test WHERE k.execution = runs.execution AND k.test = runs.test AND k.row = runs.row)"
        " WHERE row > 0 AND dataset_row IS NULL"
    )
    connection.execute("DROP TABLE temp.keyed")


def _variables(connection: sqlite3.Connection, plans: Sequence[int]) -> dict[int, dict[str, Any]]:
    by_plan: dict[int, dict[str, Any]] = {}
    for number, text in rows_among(connection, "SELECT id, variables FROM plans WHERE id IN {keys}", plans):
        try:
            value = json.loads(text)
        except ValueError:  # broken bytes
            continue
        if isinstance(value, dict):
            by_plan[number] = value
    return by_plan
