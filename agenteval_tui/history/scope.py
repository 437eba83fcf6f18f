"""The runs of some projects among those of all: a project is a path, and holds the projects below it."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from agenteval_tui.core.storable import storable
from agenteval_tui.history.recordings import COUNTED


def executions_in(projects: Sequence[str]) -> tuple[str, list[str]]:
    """The condition on table `executions`, and the values for its `?`: of one of these projects, or of one below it.

    Of no project: everything.
    """
    if not projects:
        return "1", []
    values: list[str] = []
    for project in map(storable, projects):
        below = project.rstrip("/")
        values += [project, f"{below}/", f"{below}0"]  # "0" is the character behind "/"
    return f"({' OR '.join(['project = ? OR (project >= ? AND project < ?)'] * len(projects))})", values


def in_scope(project: str, projects: Sequence[str]) -> bool:
    """Whether `executions_in` lets an execution of this project through; so of the path of a suite."""
    return not projects or any(project == folder or project.startswith(f"{folder.rstrip('/')}/") for folder in projects)


def runs_in(projects: Sequence[str], column: str = "execution") -> tuple[str, list[str]]:
    """The same condition on runs, whose execution is in this column."""
    condition, values = executions_in(projects)
    return f"{column} IN (SELECT id FROM executions WHERE {condition})", values


def count_elsewhere(connection: sqlite3.Connection, projects: Sequence[str]) -> int:
    """How many executions belong to other projects, or to none that is known."""
    condition, values = executions_in(projects)
    row = connection.execute(f"SELECT count(*) FROM executions WHERE {COUNTED} AND NOT {condition}", values).fetchone()
    return int(row[0])


def several_projects(connection: sqlite3.Connection) -> bool:
    """Whether the history has executions of more than one project; read from both ends of an index."""
    low, high = connection.execute(
        "SELECT (SELECT min(project) FROM executions), (SELECT max(project) FROM executions)"
    ).fetchone()
    return bool(low != high)


def newer_elsewhere(connection: sqlite3.Connection, projects: Sequence[str], execution: int) -> tuple[int, str]:
    """How many executions of other projects are newer than this one (row number), and the project of the newest."""
    condition, values = executions_in(projects)
    rows = connection.execute(
        f"SELECT project FROM executions WHERE {COUNTED} AND id > ? AND NOT {condition} ORDER BY id DESC",
        [execution, *values],
    ).fetchall()
    return len(rows), rows[0][0] if rows else ""
