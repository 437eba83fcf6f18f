"""The module that a target names: "package.module:name", or "path/to/file.py:name"; of an agent also a whole file,
"path/to/app.py". Runs in the child: only the standard library, of Python 3.8 or later.

A file is imported as the module that it is: in a package, under the package's name, so that its relative imports work;
else under its own name, with its folder as the first place for modules, as `python file.py` does it. So is a module
beside a suite that lies in a package: with its folder as the first place, its modules would hide libraries.
"""

# pathlib takes longer to load than all else.
# ruff: noqa: PTH100, PTH112, PTH113, PTH118, PTH119, PTH120
from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import python_django as django

if TYPE_CHECKING:
    from types import ModuleType


class WrongTarget(Exception):  # noqa: N818
    """A target that names nothing that can be called, or what it gave can't be read. The text is the whole message."""


def split(target: str) -> tuple[str, str]:
    """(module or file, name); "" names the whole file."""
    # The last colon: the path of a file may have others.
    if ".py:" in target:
        place, _, name = target.rpartition(":")
        return place, name
    module, _, name = target.partition(":")
    return module, name


def places(folder: str, first: Iterable[str], last: Iterable[str]) -> tuple[list[str], list[str]]:
    """The places for modules of a process that works in `folder`: those before installed packages, and those after."""
    return ([*first], [*last, folder]) if _is_package(folder) else ([folder, *first], [*last])


def within(target: str, folder: str) -> str:
    """A target whose module lies beside a suite in a package, as a module of that package; any other as it is."""
    first = split(target)[0].partition(".")[0]
    beside = os.path.join(folder, first)
    if target.endswith(".py") or ".py:" in target or not _is_package(folder):
        return target
    if not os.path.isfile(beside + ".py") and not os.path.isdir(beside):
        return target
    return _parts(os.path.join(folder, "__init__.py"))[1] + "." + target


def _is_package(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "__init__.py"))


def module_name(target: str, folder: str) -> str:
    """Under which name the module is imported. The place of a file becomes the first place for modules. `folder` is
    where relative paths begin."""
    place = split(within(target, folder))[0]
    if not place.endswith(".py"):
        return place
    root, name = _parts(os.path.join(folder, place))
    # As `python file.py` has it: what lies beside the file is imported by its bare name.
    if not sys.path or sys.path[0] != root:
        sys.path[:] = [root, *(entry for entry in sys.path if entry != root)]
    return name


def imported_name(target: str, folder: str) -> str:
    """Under which name `load` imports the module; "" where only the path of its file leads to it: another module has
    its name, such as `types`, or the name can't be imported."""
    place = split(within(target, folder))[0]
    if not place.endswith(".py"):
        return place
    path = os.path.join(folder, place)
    name = module_name(target, folder)
    loaded = sys.modules.get(name)
    return name if "." not in os.path.basename(path)[:-3] and (loaded is None or _is_of(loaded, path)) else ""


def load(target: str, folder: str) -> ModuleType:
    """Import the module; of a Django project, make that ready for it. Raises what the import raises, and `WrongTarget`
    if there is no such file."""
    place = split(within(target, folder))[0]
    home = os.path.join(folder, os.path.dirname(place)) if place.endswith(".py") else folder
    unready: Exception | None = None
    try:
        module = _load(target, folder)
    except Exception as error:
        if not django.is_unready(error):
            raise
        unready = error
    # Outside of `except`: what its settings raise has another cause.
    if django.set_up(home) and unready is not None:
        return _load(target, folder)
    if unready is not None:
        raise unready
    return module


def _load(target: str, folder: str) -> ModuleType:
    place = split(within(target, folder))[0]
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = os.path.join(folder, place)
    own = "_agenteval_file_" + os.path.realpath(path)
    if own in sys.modules:
        return sys.modules[own]
    if not os.path.isfile(path):
        raise WrongTarget("there is no file " + place + " in " + folder)
    name = imported_name(target, folder)
    if name:
        module = importlib.import_module(name)
        if _is_of(module, path):
            return module
    # Another module has its name: the file is imported under a name that only its path can have.
    spec: Any = importlib.util.spec_from_file_location(own, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        # A module whose import failed is imported again next time, as Python does.
        del sys.modules[own]
        raise
    return module


def find(target: str, folder: str) -> object:
    """The object. Raises what the import raises, and AttributeError."""
    current = load(target, folder)
    for part in split(target)[1].split("."):
        current = getattr(current, part)
    return current


class Method:
    """A method of a class: what it names is asked of an object of `owner` that each run makes anew."""

    def __init__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name
        self.__name__ = name


class Script:
    """A whole file, which is not imported: a framework runs it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.__name__ = os.path.basename(path)

    def packages(self) -> list[str]:
        """What it imports, by the names of the top-level packages, in its order. Raises what reading it raises."""
        with open(self.path, "rb") as file:  # noqa: PTH123
            tree = ast.parse(file.read(), self.path)
        names = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names.append(node.module)
        return list(dict.fromkeys(name.partition(".")[0] for name in names))


def find_agent(target: str, folder: str) -> object:
    """The object; of a method that needs an object of its class, the `Method`; of a whole file, the `Script`."""
    if not split(target)[1]:
        path = os.path.join(folder, target)
        if not os.path.isfile(path):
            raise WrongTarget("there is no file " + target + " in " + folder)
        module_name(target, folder)  # it imports what lies beside it
        return Script(path)
    named = find(target, folder)
    path, _, name = split(target)[1].rpartition(".")
    if not path or not isinstance(named, types.FunctionType):
        return named
    owner = find(target[: -len(name) - 1], folder)
    # A static method is called as a function; a class method, bound to its class, never comes here.
    static = isinstance(owner, type) and isinstance(inspect.getattr_static(owner, name), staticmethod)
    return Method(owner, name) if isinstance(owner, type) and not static else named


def _parts(path: str) -> tuple[str, str]:
    """The folder from which a file is imported, and the name of its module."""
    path = os.path.abspath(path)
    root, name = os.path.split(path)
    names = [] if name == "__init__.py" else [name[:-3]]
    while os.path.isfile(os.path.join(root, "__init__.py")):
        root, package = os.path.split(root)
        names.insert(0, package)
    return root, ".".join(names)


def _is_of(module: ModuleType, path: str) -> bool:
    file: Any = getattr(module, "__file__", None)
    return bool(file) and os.path.realpath(file) == os.path.realpath(path)
