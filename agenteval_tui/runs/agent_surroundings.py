"""What the project around an agent gives it: the Python that its code runs with, and the `.env`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.base import CheckStep
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.agents.process.project_words import env_files_in_words, python_in_words
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.env_files import env_files
from agenteval_tui.suites.environment import environment_for, expand
from agenteval_tui.suites.tool_files import declared_tools

_PROGRAMS = ("python", "command")


class Surrounding(Struct, frozen=True):
    """One thing that an agent gets from the project: its name (`python`, `.env`), which one it is, and what to do if it
    can't be used (`fix`; "": it can)."""

    name: str
    said: str
    fix: str = ""

    @property
    def step(self) -> CheckStep:
        """As a step of a check."""
        return CheckStep(self.name, not self.fix, f"{self.said}: {self.fix}" if self.fix else self.said)


def surroundings_of(config: Mapping[str, Any], base_dir: Path) -> tuple[Surrounding, ...]:
    """What an agent of this configuration gets. Only files are read, and nothing is raised."""
    return (*_pythons(config, base_dir), *_env_files(config, base_dir))


def _pythons(config: Mapping[str, Any], base_dir: Path) -> Iterator[Surrounding]:
    by_interpreter: dict[str, list[str]] = {}
    paths: dict[str, list[Path]] = {}
    code = [(config, "python", config.get("callable"))] if config.get("kind") == "python" else []
    code += [(entry, "interpreter", entry.get("python")) for entry in declared_tools(config, base_dir)]
    for entry, option, target in code:
        if isinstance(target, str):
            named = _expanded(entry.get(option), config, base_dir)
            by_interpreter.setdefault(named, []).append(target)
            listed = entry.get("path")
            folders = (
                [base_dir / entry for entry in listed if isinstance(entry, str)] if isinstance(listed, list) else []
            )
            paths.setdefault(named, []).extend(folders)
    for named, targets in by_interpreter.items():
        try:
            used = project_environment(base_dir, targets=targets, interpreter=named or None, path=paths[named])
        except AgentevalError as error:
            yield Surrounding("python", error.what, error.fix or "name another Python in `python`")
        else:
            yield Surrounding("python", python_in_words(used))


def _env_files(config: Mapping[str, Any], base_dir: Path) -> Iterator[Surrounding]:
    try:
        files = env_files(base_dir, config)
    except AgentevalError as error:
        place = f"{error.where}: " if error.where else ""
        yield Surrounding(".env", f"{place}{error.what}", error.fix or "correct it")
        return
    if files.files or config.get("kind") in _PROGRAMS:
        yield Surrounding(".env", env_files_in_words(files))


def _expanded(value: object, config: Mapping[str, Any], base_dir: Path) -> str:
    if not isinstance(value, str):
        return ""
    try:
        return str(expand(value, environment_for(base_dir, os.environ, config)))
    except AgentevalError:
        return value
