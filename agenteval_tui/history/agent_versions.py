"""The configurations of agents that older programs stored with what it takes to resume an execution."""

from __future__ import annotations

import sqlite3
from typing import Any

from agenteval_tui.agents.agent_version import agent_version
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.tasks import unpack


def find_versions(connection: sqlite3.Connection) -> None:
    """Give runs without a version of their agent the one that their task names. Within the caller's transaction.

    Runs that have no task (imported ones, and those of the oldest programs) stay without: it is not known.
    """
    packs: dict[int, list[Any]] = {}
    for execution, setup in connection.execute(
        "SELECT id, setup FROM executions WHERE setup IS NOT NULL ORDER BY id"
    ).fetchall():
        versions = _versions(connection, setup)
        if not versions:
            continue
        if len(set(versions.values())) == 1:
            (version,) = set(versions.values())
            connection.execute(
                "UPDATE runs SET agent_version = ? WHERE execution = ? AND agent_version = '' AND recording = ''",
                (version, execution),
            )
            continue
        found = []
        for run, pack, number in connection.execute(
            "SELECT id, task, task_number FROM runs WHERE execution = ? AND task IS NOT NULL AND agent_version = ''",
            (execution,),
        ).fetchall():
            if pack not in packs:
                packs[pack] = _data(connection, pack, list)
            tasks = packs[pack]
            task = tasks[number] if 0 <= number < len(tasks) else None
            version = versions.get(str(task.get("agent")), "") if isinstance(task, dict) else ""
            if version:
                found.append((version, run))
        connection.executemany("UPDATE runs SET agent_version = ? WHERE id = ?", found)
    # What is graded again was answered by the agent that was recorded.
    connection.execute(
        "UPDATE runs SET agent_version ="
        " coalesce((SELECT o.agent_version FROM runs o WHERE o.uid = runs.recording), '')"
        " WHERE recording != '' AND agent_version = ''"
    )


def _versions(connection: sqlite3.Connection, setup: int) -> dict[str, str]:
    """By the hash that tasks name: the versions of an execution's agents."""
    agents = _data(connection, setup, dict).get("agents")
    if not isinstance(agents, dict):
        return {}
    return {
        name: agent_version(one["config"])
        for name, one in agents.items()
        if isinstance(one, dict) and isinstance(one.get("config"), dict)
    }


def _data(connection: sqlite3.Connection, number: int, kind: type[Any]) -> Any:
    found = connection.execute("SELECT data FROM tasks WHERE id = ?", (number,)).fetchone()
    try:
        value = unpack(found[0]) if found is not None else kind()
    except (HistoryError, TypeError):
        return kind()  # broken bytes: not known
    return value if isinstance(value, kind) else kind()
