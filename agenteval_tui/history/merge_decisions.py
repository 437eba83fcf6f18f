"""What people decided in another history comes in: baselines, quarantines, triage; and what they took back there."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from agenteval_tui.history import taken_back
from agenteval_tui.history.merge_rows import Batch, Numbers, Row, insert
from agenteval_tui.history.writer import Totals


@dataclass(frozen=True, slots=True)
class Merged:
    """What came in. `completed`: runs that had not ended here. `left_out` says what did not come, and why.

    `taken_back`: labels, decisions and baselines that went here, as they were taken back there. `relabelled`: ids of
    runs whose stored verdict may rest on other labels than they have now.
    """

    executions: int = 0
    runs: int = 0
    completed: int = 0
    labels: int = 0
    already: int = 0
    left_out: tuple[str, ...] = ()
    taken_back: int = 0
    relabelled: tuple[str, ...] = ()

    def __add__(self, other: Merged) -> Merged:
        """Both together."""
        return Merged(
            self.executions + other.executions,
            self.runs + other.runs,
            self.completed + other.completed,
            self.labels + other.labels,
            self.already + other.already,
            tuple(dict.fromkeys((*self.left_out, *other.left_out))),
            self.taken_back + other.taken_back,
            tuple(dict.fromkeys((*self.relabelled, *other.relabelled))),
        )


@dataclass(slots=True)
class MergeDecisions:
    """Baselines, quarantines, triage, what was taken back, and which files were imported."""

    patient: ClassVar[bool] = False
    batch: Batch

    def prepare(self) -> None:
        """Nothing to encode."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> Merged:
        """A test's baseline here stays; of two decisions about one cause the newer counts, and taking back is one."""
        tables, numbers = self.batch.tables, Numbers()
        numbers.take(connection, "suites", tables["suites"])
        numbers.take(connection, "tests", [{**row, "ended": 0} for row in tables["tests"]])
        for table in ("executions", "runs"):
            numbers.find(connection, table, tables[table])
        left_out = _baselines(connection, numbers, tables["baselines"])
        _quarantines(connection, numbers, tables["quarantines"])
        numbers.take(connection, "imports", tables["imports"])
        for row in tables["triage"]:
            made = {name: value for name, value in row.items() if name != "id"}
            at = connection.execute("SELECT at_ms FROM triage WHERE signature = ?", (made["signature"],)).fetchone()
            gone = taken_back.when(connection, "triage", made["signature"])
            if max(at[0] if at else -1, gone if gone is not None else -1) < made["at_ms"]:
                connection.execute("DELETE FROM triage WHERE signature = ?", (made["signature"],))
                insert(connection, "triage", made)
        went, relabelled = _take_back(connection, tables["taken_back"])
        return Merged(left_out=left_out, taken_back=went, relabelled=relabelled)


def _baselines(connection: sqlite3.Connection, numbers: Numbers, rows: Sequence[Row]) -> tuple[str, ...]:
    """A test's baseline here stays; one that was cleared here after it was set there does not come."""
    other, came = 0, set[int]()
    for row in rows:
        made = numbers.translated("baselines", row)
        if made is None:
            continue
        known = connection.execute("SELECT execution, run FROM baselines WHERE test = ?", (made["test"],)).fetchone()
        if known is None:
            came.add(insert(connection, "baselines", made))
        elif known != (made["execution"], made["run"]):
            other += 1
        else:
            # The same, maybe said again after it was cleared.
            connection.execute(
                "UPDATE baselines SET who = ?1, at_ms = ?2 WHERE test = ?3 AND at_ms < ?2",
                (made["who"], made["at_ms"], made["test"]),
            )
    if came:
        for rowid, name in taken_back.baseline_names(connection).items():
            gone = taken_back.when(connection, "baseline", name) if rowid in came else None
            if gone is not None:
                taken_back.remove_baseline(connection, name, gone)
    return (f"{other} baselines: these tests have another one here",) if other else ()


def _quarantines(connection: sqlite3.Connection, numbers: Numbers, rows: Sequence[Row]) -> None:
    """One that is known, and was ended before its day there, ends here too."""
    numbers.take(connection, "quarantines", rows)
    connection.executemany(
        "UPDATE quarantines SET until_ms = ?1 WHERE id = ?2 AND (until_ms IS NULL OR until_ms > ?1)",
        [
            (row["until_ms"], numbers.maps["quarantines"][row["id"]])
            for row in rows
            if row["until_ms"] is not None and row["id"] in numbers.maps["quarantines"]
        ],
    )


def _take_back(connection: sqlite3.Connection, rows: Sequence[Row]) -> tuple[int, tuple[str, ...]]:
    """What was taken back there goes here: how much that was, and the runs that have lost a label."""
    went, relabelled = 0, dict[str, None]()
    for row in rows:
        taken_back.remember(connection, row["kind"], row["name"], row["at_ms"])
        if row["kind"] == "triage":
            went += connection.execute(
                "DELETE FROM triage WHERE signature = ? AND at_ms <= ?", (row["name"], row["at_ms"])
            ).rowcount
        elif row["kind"] == "baseline":
            went += taken_back.remove_baseline(connection, row["name"], row["at_ms"])
        else:
            lost = list(taken_back.remove_labels(connection, row["name"]))
            went += len(lost)
            relabelled.update(dict.fromkeys(lost))
    return went, tuple(relabelled)
