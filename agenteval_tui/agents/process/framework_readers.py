"""Where the readers of Python frameworks are, for processes in which agenteval need not be installed."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from agenteval_tui.agents.process.python_frameworks import of_script, without_name
from agenteval_tui.agents.process.python_target import Script, WrongTarget
from agenteval_tui.core import entry_points
from agenteval_tui.core.errors import AgentevalError

_PACKAGE = Path(__file__).resolve().parents[2]


@cache
def reader_files() -> dict[str, tuple[str, str]]:
    """By package whose objects it reads, the file of a reader, and the name of the `Framework` in it. No reader is
    imported here: a process imports the one that it needs."""
    files = {}
    for package in entry_points.names(entry_points.FRAMEWORKS):
        # The doctor tells of two plug-ins that offer the same.
        with suppress(AgentevalError):
            entry = entry_points.find(entry_points.FRAMEWORKS, package)
            assert entry is not None
            files[package] = _file_of(entry.module), entry.attribute
    return files


def script_problem(file: Path, target: str) -> str:
    """What is wrong with naming a whole file as an agent; "" where a framework runs it, or it can't be read."""
    with suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError, WrongTarget):
        if of_script(Script(str(file)).packages()) is None:
            return without_name(target)
    return ""


def _file_of(module: str) -> str:
    first, *names = module.split(".")
    if first == _PACKAGE.name:
        return str(_PACKAGE.joinpath(*names).with_suffix(".py"))
    try:
        spec = find_spec(module)
    except Exception:  # the code of others: of the packages that the module is in
        spec = None
    # Where it can't be found, the process that needs it says so.
    return (spec and spec.origin) or "/".join((first, *names)) + ".py"
