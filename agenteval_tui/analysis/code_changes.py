"""Whether runs were answered by the same code, and which files changed since a test passed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from agenteval_tui.analysis.repetitions import BESIDE, is_same_agent, is_same_test, repetitions
from agenteval_tui.core.document import Count, Document
from agenteval_tui.history.programs import ProgramFiles
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store

MOST_TESTS = 20
"""Tests of an execution that `passed_before` looks at: each has up to a hundred repetitions to read."""


class FileChange(Document, frozen=True):
    """A file of an agent's project that is not as it was."""

    name: str
    change: Literal["changed", "added", "removed"]


class EarlierProgram(Document, frozen=True, kw_only=True):
    """The code with which the test last passed before this run. No run with the code of this run passed."""

    run: Annotated[str, Meta(description="the newest run that passed with it")]
    runs: Annotated[Count, Meta(description="stored repetitions with it")]
    passed: Count
    files: Annotated[tuple[FileChange, ...], Meta(description="what changed since, in the whole project")]


class PassedBefore(Struct, frozen=True):
    """Tests that passed with earlier code of their agent, and not with the code of an execution; the files that changed
    since."""

    tests: tuple[str, ...]
    files: tuple[FileChange, ...]


class Programs:
    """Which state of their project the agents of these runs had."""

    def __init__(self, store: Store, rows: Iterable[RunRow]) -> None:
        self._store = store
        self._by_execution = store.programs_of(dict.fromkeys(row.execution_id for row in rows))
        self._changes: dict[tuple[str, str], tuple[FileChange, ...]] = {}

    def of(self, row: RunRow) -> str:
        """The hash of the state; "" where it is not known."""
        return self._by_execution.get(row.execution_id, {}).get(row.agent, "")

    def differ(self, row: RunRow, other: RunRow) -> bool:
        """Whether the code is known to be another."""
        program, other_program = self.of(row), self.of(other)
        return bool(program and other_program) and program != other_program

    def changes(self, was: RunRow, now: RunRow) -> tuple[FileChange, ...]:
        """The files that differ. The tests of an execution mostly have the same two states: read once."""
        states = self.of(was), self.of(now)
        if states not in self._changes:
            self._changes[states] = file_changes(*map(self._store.program_files, states))
        return self._changes[states]


def earlier_program(programs: Programs, row: RunRow, rows: Sequence[RunRow]) -> EarlierProgram | None:
    """The code with which the test of `row` last passed, out of `rows`: the repetitions by the same agent in the same
    configuration. None: a run with the same code passed too, none passed before, or it is not known what changed."""
    if any(other.status == "passed" and not programs.differ(row, other) for other in rows):
        return None
    passed = [other for other in rows if other.status == "passed" and other.rowid < row.rowid]
    if not passed:
        return None
    last = max(passed, key=lambda other: other.rowid)
    alike = [other for other in rows if programs.of(other) == programs.of(last)]
    files = programs.changes(last, row)
    if not files:
        return None
    return EarlierProgram(
        run=last.id,
        runs=len(alike),
        passed=sum(other.status == "passed" for other in alike),
        files=files,
    )


def stored_earlier_program(store: Store, run: RunRow) -> EarlierProgram | None:
    """The same of a stored run; None if it did not fail."""
    if run.status not in ("failed", "error") or not store.programs_of([run.execution_id]):
        return None
    rows = _of_same_agent(store, run)
    return earlier_program(Programs(store, [run, *rows]), run, rows)


def _of_same_agent(store: Store, run: RunRow) -> list[RunRow]:
    return [
        row
        for row in repetitions(store, run, everywhere=True, most=BESIDE)
        if is_same_test(row, run) and is_same_agent(row, run)
    ]


def passed_before(store: Store, runs: Sequence[RunRow]) -> tuple[PassedBefore, ...]:
    """The tests among the runs of an execution that passed with earlier code, together where the same files changed.
    Looks at the first `MOST_TESTS` that did not pass."""
    failed: dict[tuple[object, ...], RunRow] = {}
    for run in runs:
        if run.status in ("failed", "error"):
            failed.setdefault((run.suite_key, run.test_id, run.variation, run.row, run.agent), run)
    chosen = list(failed.values())[:MOST_TESTS]
    if not store.programs_of(dict.fromkeys(run.execution_id for run in chosen)):
        return ()
    listed = [(run, _of_same_agent(store, run)) for run in chosen]
    programs = Programs(store, [row for run, rows in listed for row in (run, *rows)])
    tests: dict[tuple[FileChange, ...], dict[str, None]] = {}
    for run, rows in listed:
        earlier = earlier_program(programs, run, rows)
        if earlier is not None:
            tests.setdefault(earlier.files, {})[run.test_id] = None
    return tuple(PassedBefore(tuple(names), files) for files, names in tests.items())


def file_changes(was: ProgramFiles, now: ProgramFiles) -> tuple[FileChange, ...]:
    """The files that differ between two states of a project, by name; none where a state is not known any more."""
    if not (was and now):
        return ()
    changes: Mapping[str, Literal["changed", "added", "removed"]] = {
        **{name: "changed" for name, digest in now.items() if was.get(name, digest) != digest},
        **dict.fromkeys(now.keys() - was.keys(), "added"),
        **dict.fromkeys(was.keys() - now.keys(), "removed"),
    }
    return tuple(FileChange(name, changes[name]) for name in sorted(changes))
