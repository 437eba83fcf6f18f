"""The packages that a project for Node has installed: the programs in them, and what installs them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from agenteval_tui.core.json_values import json_object
from agenteval_tui.suites.trust import working_copy_of

_PROGRAMS = Path("node_modules", ".bin")
_MISSING = re.compile(r"Cannot find (?:package|module) '((?:@[\w.-]+/)?[\w][\w.-]*)(?:/[^']*)?'")
_LOCKS = {
    "pnpm-lock.yaml": "pnpm install",
    "yarn.lock": "yarn install",
    "bun.lock": "bun install",
    "bun.lockb": "bun install",
}


def program_of_package(name: str, folder: Path) -> str | None:
    """The program of this name in `node_modules/.bin`, in `folder` or above it in its working copy, as `npm run` finds
    it; None where none is."""
    programs = (place / _PROGRAMS / name for place in _around(folder))
    return next((str(program) for program in programs if os.access(program, os.X_OK) and program.is_file()), None)


def install_command(folder: Path) -> str:
    """What installs the packages of the project around `folder`; "" where it is none for Node."""
    places = list(_around(folder))
    if not any((place / "package.json").is_file() for place in places):
        return ""
    return next((_LOCKS[lock] for place in places for lock in _LOCKS if (place / lock).is_file()), "npm install")


def remedy_for_package(message: str, folder: Path) -> str:
    """What to do where Node says with this message that it did not find a package; "" where it says something else."""
    missing = _MISSING.match(message)
    if missing is None:
        return ""
    name, install = missing[1], install_command(folder)
    # A package that is declared lacks only its installation.
    if not install or _declares(name, folder):
        return f"install the project's packages: {install or 'npm install'}"
    return f"package.json doesn't list {name}: {install.partition(' ')[0]} add {name}"


def _declares(name: str, folder: Path) -> bool:
    for place in _around(folder):
        try:
            read = json_object((place / "package.json").read_bytes()) or {}
        except OSError:
            continue
        if any(name in table for table in read.values() if isinstance(table, dict)):
            return True
    return False


def _around(folder: Path) -> Iterator[Path]:
    # Not further than the working copy: a `node_modules` in somebody's home is nothing of the project's.
    place, top = folder.resolve(), working_copy_of(folder)
    yield place
    while place != top and place != place.parent:
        place = place.parent
        yield place
