"""The suite of an agent that was found: it runs as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agenteval_tui.agents.finding.first_tests import first_tests, is_own_question
from agenteval_tui.agents.finding.model import FoundAgent
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.new_suite import file_for, write_text

_TIMEOUT_S = 120


def suite_path(agent: FoundAgent, root: Path) -> Path:
    """Where its suite is written: in the folder of its project."""
    return root / agent.folder / file_for(agent.name)


def write_first_suite(agent: FoundAgent, root: Path, path: Path | None = None) -> tuple[Path, LoadedSuite]:
    """Write the suite of an agent that was found in `root`: (its file, the suite as it then is). Nothing is ever
    overwritten. Raises `AgentevalError`."""
    target = path or suite_path(agent, root)
    config: dict[str, Any] = dict(agent.config)
    head = [f"# {agent.place} has the agent: {_comment(agent.source)}"]
    if is_own_question(agent):
        head.append(
            "# It is a program: it gets the prompt on its standard input. If it asks its model something of its"
        )
        head.append("# own, that is what its runs show.")
    for field in agent.incomplete:
        head.append(f"# Its context needs `{field}`: write `context: package.module:function` to make it.")
    for field in agent.examples:
        head.append(f"# `{field}` in its input is only an example: write what your agent needs there.")
    document: dict[str, Any] = {"name": agent.name, "agent": agent.name}
    if agent.services:
        document["services"] = dict(agent.services)
    document["agents"] = {agent.name: config}
    document["defaults"] = {"timeout": _TIMEOUT_S}
    tests = first_tests(agent)
    document["tests"] = [test.document for test in tests]
    for test in tests:
        if test.names_tool:
            head.append(f"# The prompt of `{test.document['id']}` names a tool. Write what a person would ask instead.")
    return target, write_text(target, document, head)


def _comment(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:100]
