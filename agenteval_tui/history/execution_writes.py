"""Writing an execution and its planned runs. Runs in the writer's thread, inside its transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import field, to_builtins

from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.storable import storable
from agenteval_tui.history import criterion_versions
from agenteval_tui.history.blobs import json_text, plan_hash
from agenteval_tui.history.bulk_sql import look_up, write_rows
from agenteval_tui.history.dataset_rows import row_ids
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.process_liveness import owner_name
from agenteval_tui.history.recordings import FORK
from agenteval_tui.history.records import HEAD, ExecutionRecord, PlannedRun
from agenteval_tui.history.task_specs import PackedTask, PackedTasks, pack, store_packed
from agenteval_tui.history.writer import Operation, Totals
from agenteval_tui.suites.projects import project_of_keys

_NAMES = 20  # of suites and agents that an execution's row lists


class Begin(Operation):
    """An execution and its planned runs."""

    record: ExecutionRecord
    runs: Sequence[PlannedRun]
    setup: PackedTask | None = None
    tasks: PackedTasks = field(default_factory=PackedTasks)
    project: str = ""

    def prepare(self) -> None:
        """Encode and compress what resuming needs; find the project of the suites if it was not given."""
        # Here, without the lock: to find the project, files beside the suites are read.
        project = self.record.project
        self.project = project_of_keys(self.record.suite_keys) if project is None else project
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
            " (uid, title, kind, source, status, started_ms, batch_id, options, suite_keys, owner, setup, project,"
            " name, note, meta, commits) VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                storable(record.id),
                storable(record.title),
                record.kind,
                storable(record.source),
                record.started_ms,
                record.batch_id,
                json_text(dict(record.options)),
                json_text(record.suite_keys),
                owner_name(record.pid),
                task_ids[self.setup.hash] if self.setup is not None else None,
                storable(self.project),
                storable(record.name),
                storable(record.note),
                json_text(dict(record.meta)),
                json_text({commit.repository: to_builtins(commit) for commit in record.commits}),
            ),
        )
        _add_runs(connection, record.id, self.runs, self.tasks, task_ids)


class AddRuns(Operation):
    """More planned runs of an execution."""

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
    of_execution = connection.execute(
        "SELECT id, suites, agents FROM executions WHERE uid = ?", (execution_id,)
    ).fetchone()
    if of_execution is None:
        raise HistoryError(f"there is no execution {execution_id}")
    execution: int = of_execution[0]
    suites: list[str] = json.loads(of_execution[1])
    agents: list[str] = json.loads(of_execution[2])
    test_ids, plans = _test_ids(connection, runs), _plan_ids(connection, runs)
    tests = [test_ids[run.suite_key, run.test_id] for run in runs]
    criterion_versions.note(connection, _written(runs, test_ids))
    rows = []
    for run, test, plan, row in zip(runs, tests, plans, row_ids(connection, runs, tests), strict=True):
        # Kept with the execution, so that a list of executions reads no runs.
        _note(suites, run.suite_name)
        _note(agents, run.agent)
        rows.append(
            (
                storable(run.id),
                execution,
                run.position,
                test,
                plan,
                storable(run.variation),
                run.row,
                run.repetition,
                storable(run.agent),
                "queued",
                *tasks.place_of(run.task, task_ids),
                run.seed,
                row,
                storable(run.recording),
                storable(run.agent_version),
                storable(run.fork_of),
                storable(run.fork),
                FORK if run.fork_of else 0,  # no statistics count it, from its beginning
            )
        )
    write_rows(
        connection,
        "INSERT INTO runs"
        " (uid, execution, position, test, plan, variation, row, repetition, agent, status, task,"
        " task_number, seed, dataset_row, recording, agent_version, fork_of, fork, superseded)"
        " {rows}",
        rows,
    )
    connection.execute(
        "UPDATE executions SET runs = runs + ?, suites = ?, agents = ? WHERE id = ?",
        (len(rows), json_text(suites), json_text(agents), execution),
    )


def _written(
    runs: Sequence[PlannedRun], tests: Mapping[tuple[str, str], int]
) -> list[tuple[int, tuple[str, ...], tuple[Mapping[str, Any], ...]]]:
    """The criteria of each of the tests, once: row number, hashes, specs."""
    written: dict[tuple[int, tuple[str, ...]], tuple[Mapping[str, Any], ...]] = {}
    for run in runs:
        if run.specs:
            written[tests[run.suite_key, run.test_id], run.criteria] = run.specs
    return [(test, hashes, specs) for (test, hashes), specs in written.items()]


def _test_ids(connection: sqlite3.Connection, runs: Sequence[PlannedRun]) -> dict[tuple[str, str], int]:
    """The ids of the runs' tests, by suite key and test id; names are brought up to date."""
    named = {(run.suite_key, run.test_id): run for run in runs}
    suites = {storable(run.suite_key): storable(run.suite_name) for run in named.values()}
    suite_ids = dict(
        write_rows(
            connection,
            "INSERT INTO suites (key, name) {rows}"
            " ON CONFLICT (key) DO UPDATE SET name = excluded.name RETURNING key, id",
            list(suites.items()),
        )
    )
    places = {key: (suite_ids[storable(key[0])], storable(key[1])) for key in named}
    names = {places[key]: storable(run.test_name) for key, run in named.items()}
    # DO UPDATE, also of a name that is the same: with DO NOTHING nothing would be returned of tests that are there.
    rows = write_rows(
        connection,
        "INSERT INTO tests (suite, test_id, name) {rows}"
        " ON CONFLICT (suite, test_id) DO UPDATE SET name = excluded.name RETURNING suite, test_id, id",
        [(*place, name) for place, name in names.items()],
    )
    ids = {(suite, test): number for suite, test, number in rows}
    return {key: ids[place] for key, place in places.items()}


def _plan_ids(connection: sqlite3.Connection, runs: Sequence[PlannedRun]) -> list[int]:
    """For each run the id of what it has in common with other repetitions."""
    # Each of these spares work that would be done again for each run: runs are many, and plans few.
    shared: dict[tuple[str, tuple[str, ...], tuple[str, ...]], bytes] = {}
    tuples: dict[tuple[str, ...], str] = {}
    new: dict[bytes, tuple[Any, ...]] = {}
    criteria: dict[str, Mapping[str, Any] | None] = {}
    digests = []

    def tuple_text(names: tuple[str, ...]) -> str:
        text = tuples.get(names)
        if text is None:
            text = tuples[names] = json_text(names)
        return text

    for run in runs:
        key = (run.prompt, run.tags, run.criteria)
        digest = shared.get(key) if not run.variables else None  # spares the JSON and the hash of most runs
        if digest is None:
            tags, hashes = tuple_text(run.tags), tuple_text(run.criteria)
            variables = json_text(dict(run.variables)) if run.variables else "{}"
            digest = plan_hash(run.prompt, tags, variables, hashes)
            if not run.variables:
                shared[key] = digest
            if digest not in new:
                prompt = storable(run.prompt)
                new[digest] = (digest, prompt, prompt[:HEAD], tags, variables, hashes)
                for number, criterion_hash in enumerate(run.criteria):
                    if criterion_hash not in criteria:
                        criteria[criterion_hash] = run.specs[number] if number < len(run.specs) else None
        digests.append(digest)
    _note_criteria(connection, criteria)
    ids = dict(look_up(connection, "SELECT hash, id FROM plans WHERE hash IN {keys}", list(new)))
    # The lock is held, so no other process inserts them in between.
    ids.update(
        write_rows(
            connection,
            "INSERT INTO plans (hash, prompt, prompt_head, tags, variables, criteria) {rows} RETURNING hash, id",
            [row for digest, row in new.items() if digest not in ids],
        )
    )
    return [ids[digest] for digest in digests]


def plan_with(connection: sqlite3.Connection, plan: int, prompt: str, variables: Mapping[str, Any]) -> int:
    """The id of a plan that differs from another only in its prompt and its variables."""
    tags, hashes = connection.execute("SELECT tags, criteria FROM plans WHERE id = ?", (plan,)).fetchone()
    text = json_text(dict(variables)) if variables else "{}"
    digest = plan_hash(prompt, tags, text, hashes)
    connection.execute(
        "INSERT INTO plans (hash, prompt, prompt_head, tags, variables, criteria) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (hash) DO NOTHING",
        (digest, storable(prompt), storable(prompt)[:HEAD], tags, text, hashes),
    )
    row: tuple[int] = connection.execute("SELECT id FROM plans WHERE hash = ?", (digest,)).fetchone()
    return row[0]


def _note_criteria(connection: sqlite3.Connection, criteria: Mapping[str, Mapping[str, Any] | None]) -> None:
    now = now_ms()
    # Of a criterion that was imported only the hash may be known: then its text is added.
    write_rows(
        connection,
        "INSERT INTO criteria (hash, spec, first_ms) {rows} ON CONFLICT (hash)"
        " DO UPDATE SET spec = excluded.spec WHERE criteria.spec IS NULL",
        [
            (criterion_hash, None if spec is None else json_text(dict(spec)), now)
            for criterion_hash, spec in criteria.items()
        ],
    )


def _note(names: list[str], name: str) -> None:
    if name and name not in names and len(names) < _NAMES:
        names.append(name)
