"""The files of a project in which an agent can be: read once each, within limits."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from agenteval_tui.agents.process.project_interpreter import ENVIRONMENT_FOLDERS
from agenteval_tui.suites.env_files import PROJECT_FILES

MOST_FILES = 4_000
MOST_FOLDERS = 6_000
MOST_BYTES = 400_000
"""Of a file. A longer one was made by a program."""
MOST_SECONDS = 10.0
_DEEPEST = 12
_SKIPPED = frozenset(
    (
        *("node_modules", "site-packages", "__pycache__", "dist", "build", "vendor", *ENVIRONMENT_FOLDERS),
        *("third_party", "tests", "test", "__tests__", "__mocks__", "fixtures", "testdata", "e2e"),
        *("migrations", "benchmarks"),
    )
)
_NAMES = frozenset(
    (
        *(
            "package.json",
            "langgraph.json",
            "pyproject.toml",
            "setup.cfg",
            ".env",
            ".env.example",
            "docker-compose.yml",
        ),
        *("compose.yaml", "docker-compose.yaml", "compose.yml", "litellm_config.yaml", "litellm.yaml"),
    )
)
_ENDINGS = (".py", ".ts", ".tsx", ".js", ".mjs", ".mts", ".cjs")


class ProjectFiles:
    """The files below `root`, nearest first. Links, hidden folders, virtual environments and vendored code are passed
    over. `names`: of more files than those that every search reads. `reason` says which limit ended the walk."""

    def __init__(self, root: Path, *, names: Iterable[str] = (), seconds: float = MOST_SECONDS) -> None:
        self.root = root
        self.reason: Literal["", "files", "time"] = ""
        self.read = 0
        self.notebooks = 0
        self._names = _NAMES.union(names)
        self._ends = time.monotonic() + seconds
        self._texts: dict[str, bytes | None] = {}
        self._there: dict[str, bool] = {}
        self._projects: dict[str, str] = {"": ""}

    def __iter__(self) -> Iterator[str]:
        """Paths relative to the root, with `/`."""
        waiting, folders = deque([("", 0)]), 0
        while waiting:
            place, depth = waiting.popleft()
            folders += 1
            if folders > MOST_FOLDERS or self.read >= MOST_FILES:
                self.reason = "files"
                return
            try:
                entries = sorted(os.scandir(self.root / place), key=lambda entry: entry.name)
            except OSError:
                continue
            names = {entry.name for entry in entries}
            if place and "pyvenv.cfg" in names:
                continue
            for entry in entries:
                if self.is_late():
                    return
                path = f"{place}/{entry.name}" if place else entry.name
                if entry.is_symlink():
                    continue
                if entry.is_dir():
                    # What a generator of projects makes folders of is no project yet.
                    is_template = "{{" in entry.name
                    if depth < _DEEPEST and not (entry.name.startswith(".") or entry.name in _SKIPPED or is_template):
                        waiting.append((path, depth + 1))
                elif entry.name.endswith(".ipynb"):
                    self.notebooks += 1
                elif entry.name in self._names or (entry.name.endswith(_ENDINGS) and not _is_test(entry.name)):
                    yield path

    def is_late(self) -> bool:
        """Whether the time of the search is over, which is its `reason` then."""
        if time.monotonic() > self._ends:
            self.reason = "time"
        return self.reason == "time"

    def text(self, path: str) -> bytes | None:
        """What is in a file of the project; None if it is not there, too long, a link, or can't be read."""
        if path not in self._texts:
            self._texts[path] = self._read(self.root / path)
        return self._texts[path]

    def _read(self, path: Path) -> bytes | None:
        try:
            if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
                return None
            self.read += 1
            return path.read_bytes()
        except OSError:
            return None

    def has(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        if path not in self._there:
            try:
                self._there[path] = (self.root / path).exists()
            except OSError:  # the name is too long for a file
                self._there[path] = False
        return self._there[path]

    def project_of(self, path: str) -> str:
        """The folder of the nearest project around a file; "" is the root."""
        folder = path.rpartition("/")[0]
        if folder not in self._projects:
            # In a package, setup.py and the like are modules.
            is_package = (self.root / folder / "__init__.py").is_file()
            is_project = not is_package and any((self.root / folder / name).is_file() for name in PROJECT_FILES)
            self._projects[folder] = folder if is_project else self.project_of(folder)
        return self._projects[folder]


def _is_test(name: str) -> bool:
    stem = name.partition(".")[0]
    return stem.startswith("test_") or stem.endswith("_test") or stem == "conftest" or ".test." in name or ".d." in name
