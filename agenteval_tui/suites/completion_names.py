"""The names in suites, for completion: tests, agents, variations, tags. Reading them is fast, and never an error.

Loading a suite (`load`) takes five times as long, and reports problems; this module leaves out what it can't read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from agenteval_tui.suites.slugs import slug

_ENDINGS = (".suite.yaml", ".suite.yml")
_NAMES = ("suite.yaml", "suite.yml")
_SKIPPED = {"node_modules", "__pycache__", "site-packages"}
_FOLDERS = 400
"""The most folders to search, because the current folder may be very large."""
_BYTES = 150_000
"""The most bytes of suites to read, which takes 60 ms."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class WrittenNames:
    """The names in the suites below `folder`, and in the user's agents.yaml."""

    def __init__(self, folder: Path, agents_file: Path | None = None) -> None:
        self._agents_file = agents_file
        self._suites = [data for path in _suite_files(folder) if isinstance(data := _read(path), dict)]

    def tests(self) -> Iterator[tuple[str, str]]:
        """Each test's id, and its name."""
        for test in self._tests():
            name = str(test.get("name") or "")
            test_id = test.get("id")
            yield str(test_id) if test_id is not None else slug(name), name

    def agents(self) -> Iterator[tuple[str, str]]:
        """Each agent's name, and its kind."""
        users = _read(self._agents_file) if self._agents_file is not None else None
        for data in (*self._suites, users):
            agents = data.get("agents") if isinstance(data, dict) else None
            for name, agent in agents.items() if isinstance(agents, dict) else ():
                yield str(name), str(agent.get("kind") or "") if isinstance(agent, dict) else ""

    def variations(self) -> Iterator[tuple[str, str]]:
        """Each variation's name."""
        for test in self._tests():
            for variation in _dicts(test.get("variations")):
                yield str(variation.get("name") or ""), "variation"

    def tags(self) -> Iterator[tuple[str, str]]:
        """Each tag."""
        for holder in (*self._suites, *self._tests()):
            listed = holder.get("tags")
            for tag in listed if isinstance(listed, list) else ():
                yield str(tag), "tag"

    def _tests(self) -> Iterator[dict[Any, Any]]:
        for data in self._suites:
            yield from _dicts(data.get("tests"))


def _dicts(listed: object) -> Iterable[dict[Any, Any]]:
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else ()


def _suite_files(folder: Path) -> Iterator[Path]:
    remaining, size = _FOLDERS, 0
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(files):
            if name.startswith(".") or not (name in _NAMES or name.endswith(_ENDINGS)):
                continue
            path = Path(here, name)
            try:
                size += path.stat().st_size
            except OSError:
                continue
            if size > _BYTES:
                return
            yield path
        remaining -= 1
        if remaining <= 0:
            return


def _read(path: Path) -> object:
    try:
        if path.stat().st_size > _BYTES:
            return None
        return yaml.load(path.read_bytes(), Loader=_LOADER)  # noqa: S506 - one of the two safe loaders
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
