"""Part of `python_child`: whether code that a metric names belongs to the project. A module is looked at before it is
imported: importing it runs it."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import types
from typing import TYPE_CHECKING, Any

from . import python_target as targets
from .python_target import WrongTarget as WrongTarget

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from agenteval_tui.agents.process.python_message import IsInstalled

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg")
_GROUPS = "agenteval."
EVALUATORS = ("agentevals", "autoevals", "deepeval", "openevals", "pydantic_evals")
"""Packages of evaluators: what they have may be named, where it is an evaluator (`python_evaluator`)."""
_OWN = "agenteval_tui"  # its own functions are not metrics, although it offers entry points as plug-ins do
_IN_C = (
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
)


def module_of(target: str, is_installed: IsInstalled) -> ModuleType:
    """Import the module of `package.module:name`, or of `path/to/file.py:name`. Raises `WrongTarget` if it, or a
    package around it, lies outside of the project and is not a plug-in's; then nothing of it ran."""
    folder = os.getcwd()  # noqa: PTH109
    place = targets.split(target)[0]
    # A link may lead out of the project: real paths count.
    if place.endswith(".py"):
        _check(target, place, [os.path.realpath(place)], is_installed)
    parts = targets.imported_name(target, folder).split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        # The packages around it were looked at, and are imported for this.
        spec = importlib.util.find_spec(name) if name else None
        if spec is None:
            break  # the import says it
        _check(target, name, _places(spec), is_installed)
    return targets.load(target, folder)


def function_of(target: str, is_installed: IsInstalled) -> object:
    """What a target names. Raises `WrongTarget` as `module_of`, and for code that a module of the project
    has imported from elsewhere (`checks:os.system`)."""
    current = module_of(target, is_installed)
    for part in target.rpartition(":")[2].split("."):
        current = getattr(current, part)
        # `checks:os.system` goes through a module that `checks` imported.
        if isinstance(current, types.ModuleType):
            _check_module(target, current.__name__, is_installed)
    code = current
    while hasattr(code, "func") and type(code).__module__ == "functools":
        code = code.func  # partial
    code = getattr(code, "__func__", code)
    if isinstance(code, (types.FunctionType, type)):
        _check_module(target, code.__module__, is_installed)
    elif isinstance(code, _IN_C):
        owner = getattr(code, "__module__", None) or type(getattr(code, "__self__", None)).__module__
        _check_module(target, owner, is_installed)
    return current


def _check_module(target: str, name: str | None, is_installed: IsInstalled) -> None:
    module = sys.modules.get(name or "")
    spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None)
    # A file that only its path leads to has no specification.
    places = _places(spec) if spec is not None else [file] if file else []
    _check(target, str(name), places, is_installed)


def _check(target: str, name: str, places: list[str], is_installed: IsInstalled) -> None:
    root = _root()
    if places and all(_is_within(place, root) and not is_installed(place) for place in places):
        return
    if name.partition(".")[0] in EVALUATORS or name.partition(".")[0] in _plugins():
        return
    where = places[0] if places else "Python itself"
    raise WrongTarget(
        f"{target} can't be a metric: {name} is not in the project {root} (it is in {where}); write a function in a "
        "module of the project that calls it, and name that one"
    )


def _places(spec: ModuleSpec) -> list[str]:
    """The files, real ones, of a module; of a package without `__init__.py`, a file that each of its folders would
    have."""
    if spec.origin and spec.has_location:
        return [os.path.realpath(spec.origin)]
    folders = list(spec.submodule_search_locations or ())
    return [os.path.join(os.path.realpath(folder), "__init__.py") for folder in folders]  # noqa: PTH118


def _is_within(place: str, root: str) -> bool:
    return place.startswith(root.rstrip(os.sep) + os.sep)


def _root() -> str:
    """The project's folder: the repository's; without one, the nearest above the suite's that is a Python project's."""
    here = os.path.realpath(os.getcwd())  # noqa: PTH109
    above = [here]
    while os.path.dirname(above[-1]) != above[-1]:  # noqa: PTH120
        above.append(os.path.dirname(above[-1]))  # noqa: PTH120
    wide = (os.path.realpath(os.path.expanduser("~")), os.path.dirname(above[-1]))  # noqa: PTH111, PTH120
    above = [folder for folder in above if folder not in wide]  # as for `suites/trust.py`
    for marks in ((".git",), _MARKS):
        for folder in above:
            if any(os.path.exists(os.path.join(folder, mark)) for mark in marks):  # noqa: PTH110, PTH118
                return folder
    return here


def _plugins() -> set[str]:
    """The packages that offer agenteval something. Asked for only where something is about to be refused."""
    from importlib import metadata

    names: set[str] = set()
    for distribution in metadata.distributions():
        offered: Any = ()
        with contextlib.suppress(Exception):  # what is installed may be broken
            offered = distribution.entry_points
        names.update(
            point.value.partition(":")[0].partition(".")[0] for point in offered if point.group.startswith(_GROUPS)
        )
    return names - {_OWN}
