"""Writing an execution and its planned runs. Runs in the writer's thread, inside its transaction."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agenteval_tui.history.blobs import clean, json_text
from agenteval_tui.history.bulk import write_rows
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.liveness import owner_name
from agenteval_tui.history.rows import HEAD, ExecutionRecord, PlannedRun
from agenteval_tui.history.tasks import Packed, PackedTasks, pack, store_packed
from agenteval_tui.history.writer import Totals
from agenteval_tui.text.identity import now_ms

_NAMES = 20  # of suites and agents that an execution's row lists


@dataclass(slots=True)
class Begin:
    """An execution and its planned runs."""

    patient: ClassVar[bool] = False
    record: ExecutionRecord
    runs: Sequence[PlannedRun]
    setup: Packed | None = None
    tasks: PackedTasks = field(default_factory=PackedTasks)

    def prepare(self) -> None:
        """Encode and compress what resuming needs."""
        self.tasks.add(run.task for run in self.runs)
        self.tasks.pack()
        if self.record.setup is not None:
            self.setup = pack(dict(self.record.setup))

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Insert all of it."""
        record = self.record
        task_ids = store_packed(connection, [*self.tasks.packed, *([self.setup] if self.setup is not None else [])])
        connection.execute(
            "INSERT INTO executions"
            " (uid, title, kind, source, status, started_ms, batch_id, options, suite_keys, owner, setup)"
            " VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?)",
            (
                clean(record.id),
                clean(record.title),
                record.kind,
                clean(record.source),
                record.started_ms,
                record.batch_id,
                json_text(dict(record.options)),
                json_text(record.suite_keys),
                owner_name(record.pid),
                task_ids[self.setup.hash] if self.setup is not None else None,
            ),
        )
        _add_runs(connection, record.id, self.runs, self.tasks, task_ids)


@dataclass(slots=True)
class AddRuns:
    """More planned runs of an execution."""

    patient: ClassVar[bool] = False
    execution_id: str
    runs: Sequence[PlannedRun]
    tasks: PackedTasks = field(default_factory=PackedTasks)

    def prepare(self) -> None:
        """Encode and compress what resuming needs."""
        self.tasks.add(run.task for run in self.runs)
        self.tasks.pack()

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Insert them, with the suites, tests, criteria and plans that are new."""
        _add_runs(connection, self.execution_id, self.runs, self.tasks, store_packed(connection, self.tasks.packed))


def _add_runs(
    connection: sqlite3.Connection,
    execution_id: str,
    runs: Sequence[PlannedRun],
    tasks: PackedTasks,
    task_ids: Mapping[bytes, int],
) -> None:
    found = connection.execute("SELECT id, suites, agents FROM executions WHERE uid = ?", (execution_id,)).fetchone()
    if found is None:
        raise HistoryError(f"there is no execution {execution_id}")
    execution: int = found[0]
    suites: list[str] = json.loads(found[1])
    agents: list[str] = json.loads(found[2])
    ids = _Known(connection)
    rows = []
    for run in runs:
        _note(suites, run.suite_name)
        _note(agents, run.agent)
        rows.append(
            (
                clean(run.id),
                execution,
                run.position,
                ids.test(run),
                ids.plan(run),
                clean(run.variation),
                run.row,
                run.repetition,
                clean(run.agent),
                "queued",
                *tasks.place_of(run.task, task_ids),
                run.seed,
            )
        )
    write_rows(
        connection,
        "INSERT INTO runs"
        " (uid, execution, position, test, plan, variation, row, repetition, agent, status, task,"
        " task_number, seed) {rows}",
        rows,
    )
    connection.execute(
        "UPDATE executions SET runs = runs + ?, suites = ?, agents = ? WHERE id = ?",
        (len(rows), json_text(suites), json_text(agents), execution),
    )


class _Known:
    """Ids of suites, tests, plans and criteria that this operation has met already."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tests: dict[tuple[str, str], int] = {}
        self._plans: dict[bytes, int] = {}
        self._shared: dict[tuple[str, tuple[str, ...], tuple[str, ...]] | None, int] = {}
        self._criteria: set[str] = set()

    def test(self, run: PlannedRun) -> int:
        """The id of the run's test; names are brought up to date."""
        key = (run.suite_key, run.test_id)
        if key not in self._tests:
            suite = self._id(
                "INSERT INTO suites (key, name) VALUES (?1, ?2)"
                " ON CONFLICT (key) DO UPDATE SET name = excluded.name RETURNING id",
                (clean(run.suite_key), clean(run.suite_name)),
            )
            self._tests[key] = self._id(
                "INSERT INTO tests (suite, test_id, name) VALUES (?1, ?2, ?3)"
                " ON CONFLICT (suite, test_id) DO UPDATE SET name = excluded.name RETURNING id",
                (suite, clean(run.test_id), clean(run.test_name)),
            )
        return self._tests[key]

    def plan(self, run: PlannedRun) -> int:
        """The id of what the run has in common with other repetitions."""
        shared = (run.prompt, run.tags, run.criteria) if not run.variables else None
        if shared in self._shared:  # spares the JSON and the hash of most runs
            return self._shared[shared]
        number = self._plan(run)
        if shared is not None:
            self._shared[shared] = number
        return number

    def _plan(self, run: PlannedRun) -> int:
        tags, variables, criteria = json_text(run.tags), json_text(dict(run.variables)), json_text(run.criteria)
        parts = "\0".join((json_text(run.prompt), tags, variables, criteria))
        digest = hashlib.sha256(parts.encode("ascii")).digest()[:16]
        if digest not in self._plans:
            for number, one in enumerate(run.criteria):
                if one not in self._criteria:
                    self._criteria.add(one)
                    spec = json_text(dict(run.specs[number])) if number < len(run.specs) else None
                    self._connection.execute(
                        "INSERT INTO criteria (hash, spec, first_ms) VALUES (?1, ?2, ?3) ON CONFLICT (hash)"
                        " DO UPDATE SET spec = excluded.spec WHERE criteria.spec IS NULL",
                        (one, spec, now_ms()),
                    )
            prompt = clean(run.prompt)
            found = self._connection.execute("SELECT id FROM plans WHERE hash = ?", (digest,)).fetchone()
            self._plans[digest] = (
                int(found[0])
                if found
                else self._id(
                    "INSERT INTO plans (hash, prompt, prompt_head, tags, variables, criteria)"
                    " VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
                    (digest, prompt, prompt[:HEAD], tags, variables, criteria),
                )
            )
        return self._plans[digest]

    def _id(self, statement: str, values: tuple[Any, ...]) -> int:
        return int(self._connection.execute(statement, values).fetchone()[0])


def _note(names: list[str], name: str) -> None:
    if name and name not in names and len(names) < _NAMES:
        names.append(name)
