"""The agents of a plan whose commands run an installed copy of the project's code, which no edit changes."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from agenteval_tui.agents.process.child_process import find_program
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.change.model import InstalledCopy
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.suites.command_words import argv_of
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.suites.trust import working_copy_of


def remedy_for_copy(config: Mapping[str, Any], base_dir: Path) -> str:
    """How to let the agent's command run the code that is edited; "" if it does, or if no folder of this
    repository was installed for that command. Reads a few files."""
    if config.get("kind") != "command" or not config.get("command"):
        return ""
    try:
        words = argv_of(config["command"], bool(config.get("shell")))
        cwd = base_dir / str(config.get("cwd") or ".")
        program = Path(os.path.normpath(find_program(words[0], cwd, environment_for(base_dir, config=config))))
    except (AgentevalError, ValueError, IndexError):  # the run says what is wrong
        return ""
    repository = working_copy_of(base_dir)
    # `bin/shop` of an environment, which has the package in `lib/python3.12/site-packages`.
    for record in program.parent.parent.glob("lib/python*/site-packages/*.dist-info/direct_url.json"):
        source = _copied_from(record)
        if source is not None and source.is_relative_to(repository) and _has_script(record, program.name):
            install = shlex.join([str(program.with_name("python")), "-m", "pip", "install", "-e", str(source)])
            return f"install it with links to the code: {install}"
    return ""


def _copied_from(record: Path) -> Path | None:
    """The folder that a package was copied from; None: it was not, or is a link to the folder (PEP 610)."""
    try:
        origin = json.loads(record.read_text("utf-8"))
        address = urlsplit(origin["url"])
        is_link = bool(origin.get("dir_info", {}).get("editable"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return None if address.scheme != "file" or is_link else Path(unquote(address.path)).resolve()


def _has_script(record: Path, name: str) -> bool:
    """Whether a package has installed the command."""
    try:
        lines = record.with_name("RECORD").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return False
    return any(line.partition(",")[0].endswith(f"/bin/{name}") for line in lines)


def installed_copies(runs: Iterable[RunPlan]) -> tuple[InstalledCopy, ...]:
    """Those of the agents of these runs; each once. Reads a few files for each command."""
    agents = {agent.hash: agent for run in runs for agent in run.agents}.values()
    fixes = [(agent.name, remedy_for_copy(agent.config, agent.base_dir)) for agent in agents]
    return tuple([InstalledCopy(name, fix) for name, fix in fixes if fix])
