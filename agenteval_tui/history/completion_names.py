"""Names and ids that a history knows, for completion: read at once, without waiting and without the store.

A shell asks at each press of a key: nothing is migrated or repaired for it, and a history that is locked, damaged or of
another version gives nothing.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

Named = tuple[str, str]
"""A name or an id, and what it is."""

_EXECUTIONS = 40
_RUNS = 60
_NAMES = 500
_WAIT_S = 0.05


class KnownNames:
    """What the history at `path` knows of these projects (none: of all)."""

    def __init__(self, path: Path, projects: Sequence[str] = ()) -> None:
        self._path = path
        self._projects = projects

    def executions(self, *, running: bool = False) -> list[Named]:
        """The newest executions, by their whole ids; `running`: only those that are."""
        which, values = self._of_projects("e.project")
        status = " AND e.status = 'running'" if running else ""
        rows = self._rows(
            "SELECT e.uid, e.title, e.status, e.passed, e.runs, datetime(e.started_ms / 1000, 'unixepoch', 'localtime')"
            f" FROM executions e WHERE {which}{status} ORDER BY e.id DESC LIMIT {_EXECUTIONS}",
            values,
        )
        return [
            (uid, f"{at[:16]} {title}: {passed}/{runs} passed, {how}") for uid, title, how, passed, runs, at in rows
        ]

    def runs(self) -> list[Named]:
        """The runs of the newest executions, by their whole ids: those that did not pass first."""
        which, values = self._of_projects("e.project")
        rows = self._rows(
            "SELECT r.uid, t.test_id, r.status, r.repetition FROM runs r JOIN tests t ON t.id = r.test"
            f" WHERE r.execution IN (SELECT e.id FROM executions e WHERE {which} ORDER BY e.id DESC LIMIT 5)"
            f" ORDER BY r.status NOT IN ('failed', 'error'), r.id DESC LIMIT {_RUNS}",
            values,
        )
        return [(uid, f"{test}, run {number}, {status}") for uid, test, status, number in rows]

    def tests(self) -> list[Named]:
        """The tests by their ids."""
        which, values = self._of_projects("s.key")
        rows = self._rows(
            "SELECT DISTINCT t.test_id, t.name FROM tests t JOIN suites s ON s.id = t.suite"
            f" WHERE {which} ORDER BY t.id DESC LIMIT {_NAMES}",
            values,
        )
        return [(test, name if name != test else "") for test, name in rows]

    def agents(self) -> list[Named]:
        """The agents of the newest executions, by their names."""
        which, values = self._of_projects("e.project")
        rows = self._rows(f"SELECT e.agents FROM executions e WHERE {which} ORDER BY e.id DESC LIMIT 100", values)
        return [(name, "agent") for name in dict.fromkeys(name for (listed,) in rows for name in _texts(listed))]

    def variations(self) -> list[Named]:
        """The variations of the newest executions."""
        which, values = self._of_projects("e.project")
        rows = self._rows(
            "SELECT DISTINCT r.variation FROM runs r WHERE r.variation != '' AND r.execution IN"
            f" (SELECT e.id FROM executions e WHERE {which} ORDER BY e.id DESC LIMIT 10) LIMIT {_NAMES}",
            values,
        )
        return [(name, "variation") for (name,) in rows]

    def _of_projects(self, column: str) -> tuple[str, list[str]]:
        """As `scope.executions_in`, for what is a project or lies in one."""
        if not self._projects:
            return "1", []
        values = [
            part
            for project in self._projects
            for part in (project, f"{project.rstrip('/')}/", f"{project.rstrip('/')}0")
        ]
        return f"({' OR '.join([f'{column} = ? OR ({column} >= ? AND {column} < ?)'] * len(self._projects))})", values

    def _rows(self, statement: str, values: Sequence[str]) -> list[tuple[str, ...]]:
        try:
            if not self._path.is_file():
                return []
            address = f"file:{quote(str(self._path.absolute()))}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=_WAIT_S)) as connection:
                return connection.execute(statement, values).fetchall()
        except (sqlite3.Error, OSError, ValueError):
            return []


def _texts(listed: object) -> Iterator[str]:
    try:
        values = json.loads(str(listed))
    except ValueError:
        return
    yield from (value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
