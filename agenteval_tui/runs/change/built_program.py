"""Programs that are built from their sources, such as `node dist/agent.js` from TypeScript: a save of a source changes
nothing until the program is built again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

_OUTPUTS = frozenset(("dist", "build", "out", "target"))
_INSTALLED = frozenset(("node_modules", "site-packages", ".venv", "venv", "env"))
_SOURCES = (
    ".ts",
    ".tsx",
    ".mts",
    ".cts",
    ".go",
    ".rs",
    ".c",
    ".cc",
    ".cpp",
    ".h",
    ".hpp",
    ".java",
    ".kt",
    ".cs",
    ".swift",
)
_MOST = 4_000  # files that are looked at


class BuiltProgram(Struct, frozen=True):
    """A program of a command in the folder of a build."""

    folder: Path

    def lacking(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of the files that are sources and were saved after the last build."""
        saved: dict[str, int] = {}
        for path in paths:
            if path.endswith(_SOURCES) and not Path(path).is_relative_to(self.folder):
                with suppress(OSError):  # it was deleted
                    saved[path] = os.stat(path).st_mtime_ns  # noqa: PTH116
        if not saved:
            return frozenset()
        # Once for all of a checkout.
        built = max(_times(self.folder), default=0)
        return frozenset(path for path, time in saved.items() if time > built)


def built_program(files: Iterable[Path], project: Path) -> BuiltProgram | None:
    """The built program that the files of a command belong to: those that it names, or that it loads; None: they belong
    to none."""
    project = project.resolve()
    files = list(files)
    if any(file.suffix in (".ts", ".tsx", ".mts", ".cts") for file in files):
        return None  # it runs from its sources
    for file in files:
        if not file.is_relative_to(project):
            continue
        parts = file.relative_to(project).parts[:-1]
        depth = next((number for number, part in enumerate(parts, 1) if part in _OUTPUTS), None)
        if depth is not None and _INSTALLED.isdisjoint(parts):
            return BuiltProgram(project.joinpath(*parts[:depth]))
    return None


def _times(folder: Path) -> list[int]:
    """When the files of a folder were written."""
    times: list[int] = []
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                times.append(os.stat(os.path.join(place, name)).st_mtime_ns)  # noqa: PTH116, PTH118 - thousands
            except OSError:
                continue
            if len(times) >= _MOST:
                return times
    return times
