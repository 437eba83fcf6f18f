"""The code of an execution's agents when it began: the files of each agent's project, with their digests.

Which state of a project answered can't be asked later: files that were never committed are gone with the next save.
Executions of the same state share what is stored.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from agenteval_tui.core.storable import storable
from agenteval_tui.history.blobs import json_text
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.task_specs import PackedTask, pack, store_packed, unpack
from agenteval_tui.history.writer import Operation, Totals

ProgramFiles = Mapping[str, str]
"""By its name in the project: a hash of what is in a file."""
_DIGITS = 16


class KeepPrograms(Operation):
    """The files of the projects of an execution's agents, by the agent's name."""

    patient: ClassVar[bool] = True
    execution_id: str
    programs: Mapping[str, ProgramFiles]
    packed: PackedTask | None = None

    def prepare(self) -> None:
        """Encode them; agents of the same project share one list."""
        projects: list[dict[str, Any]] = []
        for agent, files in sorted(self.programs.items()):
            digests = {name: digest[:_DIGITS] for name, digest in sorted(files.items())}
            same = next((project for project in projects if project["files"] == digests), None)
            if same is None:
                projects.append({"agents": [agent], "files": digests})
            else:
                same["agents"].append(agent)
        self.packed = pack(projects)

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Keep them. Of an execution that was resumed the first ones stay, as its commits do."""
        assert self.packed is not None
        row = connection.execute(
            "SELECT 1 FROM executions WHERE uid = ? AND programs IS NULL", (storable(self.execution_id),)
        ).fetchone()
        if row is not None:
            ids = store_packed(connection, [self.packed])
            connection.execute(
                "UPDATE executions SET programs = ? WHERE uid = ?",
                (ids[self.packed.hash], storable(self.execution_id)),
            )


def programs_of(connection: sqlite3.Connection, execution_ids: Iterable[str]) -> dict[str, Mapping[str, ProgramFiles]]:
    """By execution, then by agent: the files of the agent's project. What is not known is left out."""
    rows = connection.execute(
        "SELECT e.uid, t.id, t.data FROM executions e JOIN tasks t ON t.id = e.programs"
        " WHERE e.uid IN (SELECT value FROM json_each(?))",
        (json_text([storable(execution_id) for execution_id in execution_ids]),),
    )
    by_row: dict[int, Mapping[str, ProgramFiles]] = {}
    programs = {}
    for execution_id, row, data in rows:
        if row not in by_row:
            try:
                by_row[row] = {agent: project["files"] for project in unpack(data) for agent in project["agents"]}
            except (HistoryError, KeyError, TypeError):
                by_row[row] = {}  # a damaged row: nothing is known
        programs[execution_id] = by_row[row]
    return programs
