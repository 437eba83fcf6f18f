"""The program of an agent in an earlier state: whether runs were answered by the same code, and which files differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from agenteval_tui.core.document import Count, Document
from agenteval_tui.history.programs import ProgramFiles
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store


class FileChange(Document, frozen=True):
    """A file of an agent's project that is not as it was."""

    name: str
    change: Literal["changed", "added", "removed"]


class EarlierProgram(Document, frozen=True, kw_only=True):
    """The newest state of the agent's project, before this run, with which the test passed; none of the runs with the
    state of this run passed."""

    run: Annotated[str, Meta(description="the newest run that passed with it")]
    runs: Annotated[Count, Meta(description="stored repetitions with it")]
    passed: Count
    files: Annotated[tuple[FileChange, ...], Meta(description="what changed since, in the whole project")]


class Programs:
    """The files of the projects whose agents answered these runs. Reads them at once."""

    def __init__(self, store: Store, rows: Iterable[RunRow]) -> None:
        self._by_execution = store.programs_of(dict.fromkeys(row.execution_id for row in rows))

    def of(self, row: RunRow) -> ProgramFiles:
        """Those of one run; none where they are not known."""
        return self._by_execution.get(row.execution_id, {}).get(row.agent, {})

    def differ(self, row: RunRow, other: RunRow) -> bool:
        """Whether the code is known to be another."""
        files, others = self.of(row), self.of(other)
        return bool(files and others) and files != others


def earlier_program(programs: Programs, row: RunRow, rows: Sequence[RunRow]) -> EarlierProgram | None:
    """What `row` did not have any more: out of the repetitions of its test by the same agent in the same
    configuration. None: with the same code a run passed as well, or none passed before it with another."""
    if any(other.status == "passed" and not programs.differ(row, other) for other in rows):
        return None
    passed = [other for other in rows if other.status == "passed" and other.rowid < row.rowid]
    if not passed:
        return None
    last = max(passed, key=lambda other: other.rowid)
    alike = [other for other in rows if programs.of(other) == programs.of(last)]
    return EarlierProgram(
        run=last.id,
        runs=len(alike),
        passed=sum(other.status == "passed" for other in alike),
        files=file_changes(programs.of(last), programs.of(row)),
    )


def file_changes(was: ProgramFiles, now: ProgramFiles) -> tuple[FileChange, ...]:
    """The files that differ between two states of a project, by name."""
    changes: Mapping[str, Literal["changed", "added", "removed"]] = {
        **{name: "changed" for name, digest in now.items() if was.get(name, digest) != digest},
        **dict.fromkeys(now.keys() - was.keys(), "added"),
        **dict.fromkeys(was.keys() - now.keys(), "removed"),
    }
    return tuple(FileChange(name, changes[name]) for name in sorted(changes))
