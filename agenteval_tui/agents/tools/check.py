"""What is wrong in the tools of an agent's configuration, said without starting anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.agents.tools.mock import mock_tool
from agenteval_tui.agents.tools.options import McpEntry, MockEntry, read_entry
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.tool_files import load_tools


def tool_problems(config: Mapping[str, Any], base_dir: Path) -> list[str]:
    """Each wrong tool in one sentence; empty when all is well, or when only a run can tell (`${VAR}` in a path).

    Whether a program is there is not looked at: it may be on the machine that runs the suite.
    """
    tools = config.get("tools")
    if not isinstance(tools, str | list):
        return []  # what it must be is said with the other options
    if isinstance(tools, str) and (tools.startswith("builtin:") or "${" in tools):
        return []
    try:
        entries = load_tools(tools, base_dir, trusted=True)
    except AgentevalError as error:
        return [str(error)]
    problems, names = [], set[str]()
    for raw in entries:
        try:
            entry = read_entry(raw)
            if isinstance(entry, MockEntry):
                mock_tool(entry)
        except AgentevalError as error:
            if "${" not in str(raw):
                problems.append(str(error))
            continue
        if not isinstance(entry, McpEntry):
            if entry.name in names:
                problems.append(f"two tools are called {entry.name!r}")
            names.add(entry.name)
    return problems
