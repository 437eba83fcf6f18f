"""Files that the runs of a check write themselves. No person saved them, and each check would bring the next one."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

_CHECKS = 2.0  # one after another in which a file changed: then it is the runs that write it
_SHARE = 0.25  # of a check that a save ends, for a file that a person edits: one who saves often ends many
_EDITED = (
    ".py",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".mts",
    ".tsx",
    ".jsx",
    ".go",
    ".rs",
    ".rb",
    ".java",
    ".sh",
    ".ipynb",
    ".md",
    ".txt",
    ".yaml",
    ".yml",
    ".toml",
    ".jinja",
    ".jinja2",
    ".j2",
    ".prompt",
    ".tmpl",
)
_CLOCK_S = 0.02  # by which the time of a file may be behind


class OwnWrites:
    """Tells which files change with the checks, and not by a person. New files count by their folder and ending, as a
    program may give each another name."""

    def __init__(self) -> None:
        self._began = self._ended = 0.0
        self._running = False
        self._folders: set[Path] = set()
        self._names: set[str] = set()
        self._checks: defaultdict[str, float] = defaultdict(float)
        self._written: set[str] = set()

    def look(self, folders: Iterable[Path]) -> None:
        """Take the files in these folders as there, those that were looked at before excepted."""
        for folder in folders:
            if folder not in self._folders:
                self._folders.add(folder)
                try:
                    with os.scandir(folder) as entries:
                        self._names.update(entry.path for entry in entries)
                except OSError:
                    pass  # it has gone

    def begin(self) -> None:
        """A check begins."""
        self._began, self._running = time.time(), True

    def end(self) -> None:
        """It has ended."""
        self._ended, self._running = time.time(), False

    def saved(self, paths: Iterable[str], read: Collection[str]) -> tuple[list[str], list[str]]:
        """Of files that changed: those that a person may have saved, and what is known from now on to be written by the
        runs. `read`: the files that the agents read. What changes while no run is made, a person saved: it is no longer
        taken for the runs' own."""
        kinds = {path: self._kind(path) for path in paths}
        # After the kinds are told: a new file is known by its name only from its second save on.
        self._names.update(kinds)
        by_person = [path for path in kinds if not self._is_of_check(path)]
        self._written.difference_update([kinds[path] for path in by_person])
        unexplained = [path for path, kind in kinds.items() if kind not in self._written]
        during = [path for path in unexplained if path not in by_person]
        # Checks are counted one after another: a person's save between them begins the count anew.
        if not during:
            self._checks.clear()
            return unexplained, []
        # One of them may be a save all the same: only what comes again and again is the runs' own.
        for kind in {kinds[path] for path in during}:
            is_edited = kind in read or kind.endswith(_EDITED)
            self._checks[kind] += _SHARE if self._running and is_edited else 1
        new = {kind for kind in {kinds[path] for path in during} if self._checks[kind] > _CHECKS}
        self._written |= new
        return [path for path in unexplained if kinds[path] not in new], sorted(new)

    def without(self, paths: Iterable[str]) -> list[str]:
        """Those of the files of which it is not known that the runs write them."""
        return [path for path in paths if not {path, _alike(path)} & self._written]

    def _kind(self, path: str) -> str:
        return path if path in self._names else _alike(path)

    def _is_of_check(self, path: str) -> bool:
        if self._running:
            return True
        try:
            return self._began - _CLOCK_S <= os.stat(path).st_mtime <= self._ended  # noqa: PTH116
        except OSError:
            return False


def _alike(path: str) -> str:
    """What stands for new files in the same folder with the same ending."""
    file = Path(path)
    return str(file.with_name(f"*{file.suffix}"))
