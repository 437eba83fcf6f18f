"""The code of an execution's agents at its start: the state of each agent's project, and the files of that state.

Which state of a project answered can't be asked later: files that were never committed are gone with the next save. A
state is named by its hash, and stored once, with the tasks (`task_specs.py`).
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import ClassVar

from agenteval_tui.core.storable import storable
from agenteval_tui.history.blobs import json_text
from agenteval_tui.history.bulk_sql import rows_among
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
    packed: Mapping[str, PackedTask] = {}

    def prepare(self) -> None:
        """Encode them."""
        self.packed = {agent: pack(as_stored(files)) for agent, files in self.programs.items()}

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Keep them. Of an execution that was resumed the first ones stay, as its commits do."""
        hashes = {agent: packed.hash.hex() for agent, packed in self.packed.items()}
        changed = connection.execute(
            "UPDATE executions SET programs = ? WHERE uid = ? AND programs = '{}'",
            (json_text(hashes), storable(self.execution_id)),
        )
        if changed.rowcount:
            store_packed(connection, list(self.packed.values()))


def as_stored(files: ProgramFiles) -> dict[str, str]:
    """The files of a state as `program_files` gives them."""
    return {name: digest[:_DIGITS] for name, digest in sorted(files.items())}


def programs_of(connection: sqlite3.Connection, execution_ids: Iterable[str]) -> dict[str, Mapping[str, str]]:
    """By execution, then by agent: the hash of the state of the agent's project. What is not known is left out."""
    rows = rows_among(
        connection,
        "SELECT uid, programs FROM executions WHERE programs != '{}' AND uid IN {keys}",
        map(storable, execution_ids),
    )
    return {execution_id: json.loads(programs) for execution_id, programs in rows}


def hashes_of(programs: str) -> list[bytes]:
    """The hashes of the rows of tasks that the column `programs` names."""
    hashes = []
    for program in json.loads(programs).values():
        with contextlib.suppress(TypeError, ValueError):  # another program may have written it
            hashes.append(bytes.fromhex(program))
    return hashes


def program_files(connection: sqlite3.Connection, program: str) -> ProgramFiles:
    """The files of a state; none where they are not known any more."""
    try:
        row = connection.execute("SELECT data FROM tasks WHERE hash = ?", (bytes.fromhex(program),)).fetchone()
        files = {} if row is None else unpack(row[0])
    except (ValueError, HistoryError):
        files = {}  # damaged, or written by another program
    return files if isinstance(files, dict) else {}
