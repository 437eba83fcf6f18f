"""What is installed beside us: optional packages, and others that have a command or a module of our name.

At least four packages on PyPI do. If such a package is installed too, the script that was written last is the one that
starts.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterator
from importlib import metadata, util
from importlib.machinery import ModuleSpec
from pathlib import Path

from msgspec import Struct


def installed(module: str) -> bool:
    """Whether the module can be imported; it is not."""
    return _spec(module) is not None


def _spec(module: str) -> ModuleSpec | None:
    try:
        return util.find_spec(module)
    except (ImportError, ValueError):
        return None


def version_of(package: str) -> str:
    """The package's version, "unknown" where it has none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


COMMANDS = ("agenteval", "agenteval-tui")
PACKAGE = "agenteval-tui"
OUR_MODULE = "agenteval_tui"
THEIR_MODULE = "agenteval"
_SHIMS = "shims"
_SCRIPT = 4_096  # bytes of a script that say which module it starts


class CommandState(Struct, frozen=True):
    """Where a command of ours is. `path`: the script of this environment, `first`: what PATH finds ("" for nothing);
    `starts_ours`: whether the script starts this program, and not another package's.
    """

    name: str
    path: str
    first: str
    starts_ours: bool

    @property
    def shadowed(self) -> bool:
        """Whether another program of that name comes first on PATH. (A shim of pyenv or asdf starts the active one.)"""
        shim = not self.first or _SHIMS in Path(self.first).parts
        return not shim and os.path.realpath(self.first) != os.path.realpath(self.path)


def command_states() -> list[CommandState]:
    """Our commands that this environment has."""
    folder = sysconfig.get_path("scripts")
    states = []
    for name in COMMANDS:
        path = os.path.join(folder, name)  # noqa: PTH118 - compared with what PATH gives, as it is written
        if os.path.isfile(path):  # noqa: PTH113
            states.append(CommandState(name, path, shutil.which(name) or "", _starts_ours(Path(path))))
    return states


def _starts_ours(script: Path) -> bool:
    try:
        with script.open("rb") as file:
            return OUR_MODULE.encode() in file.read(_SCRIPT)
    except OSError:
        return True  # not known


def other_owners() -> Iterator[tuple[str, str]]:
    """(package, command) of the other packages in this environment that install a command of one of our names."""
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"] or ""
        if name.lower().replace("_", "-") == PACKAGE:
            continue
        for point in distribution.entry_points:
            if point.group in ("console_scripts", "gui_scripts") and point.name in COMMANDS:
                yield f"{name} {distribution.version}", point.name


def their_module() -> str:
    """Where a module `agenteval` lies, which is not ours; "" if there is none."""
    spec = _spec(THEIR_MODULE)
    if spec is None:
        return ""
    places = [*(spec.submodule_search_locations or ())]
    return spec.origin or (places[0] if places else THEIR_MODULE)
