"""Finding suite files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from agenteval_tui.core.errors import AgentevalError

ENDINGS = (".suite.yaml", ".suite.yml")
NAMES = ("suite.yaml", "suite.yml")
MOST_FOLDERS = 50_000
"""Folders that are searched below one."""
# Their links lead back to the whole file system (/proc/self/root).
_OF_SYSTEM = (Path("/proc"), Path("/sys"), Path("/dev"))
_OF_PEOPLE = Path("/dev/shm")  # noqa: S108  # nothing is written there
"""Below these, but a folder in memory where people keep files, as in `/tmp`."""
_SKIPPED = {"node_modules", "__pycache__", "site-packages"}


def is_suite_name(name: str) -> bool:
    """Whether a file of this name is a suite: `*.suite.yaml` or `suite.yaml`."""
    return not name.startswith(".") and (name in NAMES or name.endswith(ENDINGS))


def require_project(folder: Path) -> None:
    """Raises `AgentevalError` for the root of the file system, and for a folder of the operating system."""
    real = folder.resolve()
    if real == Path(real.anchor):
        what = "the root of the file system"
    elif any(real.is_relative_to(path) for path in _OF_SYSTEM) and not real.is_relative_to(_OF_PEOPLE):
        what = "a folder of the operating system"
    else:
        return
    raise AgentevalError(f"this is {what}, not a project", where=str(folder), fix="name the folder of your suites")


def discover(paths: Iterable[Path | str]) -> list[Path]:
    """The suite files at `paths`, sorted within each (a folder's own first), none twice.

    A file is taken whatever its name. In a folder all suites below it are found; hidden folders are passed over, and
    links are followed, each real folder once. A folder without suites adds nothing. Raises `AgentevalError` when a
    path does not exist, when a folder can't be a project's, and when too many folders are below it.
    """
    files: dict[str, Path] = {}
    for place in paths:
        path = Path(place).expanduser()
        try:
            there = path.exists()
        except OSError as error:
            raise AgentevalError(f"this can't be read: {error.strerror}", where=str(place)) from None
        if not there:
            raise AgentevalError("there is no such file or folder", where=str(place), fix="check the path")
        for file in _below(path) if path.is_dir() else [path]:
            files.setdefault(os.path.realpath(file), file)
    return list(files.values())


def _below(folder: Path) -> list[Path]:
    require_project(folder)
    suites: list[Path] = []
    visited: set[tuple[int, int]] = set()
    for here, folders, files in os.walk(folder, followlinks=True):
        # A loop of links comes back to a folder that was seen; its device and inode say so.
        state = Path(here).stat()
        if (state.st_dev, state.st_ino) in visited:
            folders.clear()
            continue
        visited.add((state.st_dev, state.st_ino))
        if len(visited) > MOST_FOLDERS:
            raise AgentevalError(
                f"there are more than {MOST_FOLDERS:,} folders below this one",
                where=str(folder),
                fix="name the folder of your suites",
            )
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        suites.extend(Path(here) / name for name in files if is_suite_name(name))
    return sorted((path for path in suites if path.is_file()), key=_place)


def _place(path: Path) -> tuple[tuple[int, str], ...]:
    """Sorts a folder's own suites before those of the folders in it."""
    return (*((1, part) for part in path.parent.parts), (0, path.name))
