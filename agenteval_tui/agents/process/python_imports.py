"""What the modules of a project import from outside of it, found by reading them. Runs in the child: only the standard
library, of Python 3.8 or later.

Imports are followed in the order in which Python would make them. Reading ends where a module does something between
imports that may change what a later one does: it sets a variable of the environment, changes `sys.path`, or calls a
function. What is imported after that is left to the module itself. Imports in functions are left to the call.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from importlib import machinery
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from agenteval_tui.agents.process.python_message import IsInstalled

# Calls between imports that change nothing for the imports after them.
_HARMLESS = {"load_dotenv", "basicConfig", "filterwarnings", "simplefilter", "getLogger", "print", "setLevel"}
_SETTERS = {"setdefault", "update", "pop", "clear", "putenv", "insert", "append", "extend", "remove", "__setitem__"}
_STATE = {"environ", "path", "modules", "meta_path", "path_hooks"}
_MOST = 2_000  # modules of a project
# What packages import at their first call: each fork would do it again, in 15 to 60 ms and 2 to 4 MB of its own.
_AT_FIRST_CALL = {
    "asyncio": ("concurrent.futures.thread",),
    "langgraph": (
        "langchain_core.prompt_values",
        "langchain_core.tracers.context",
        "langchain_core.tracers.run_collector",
        "langchain_core.tracers.stdout",
    ),
    "openai": (
        "jiter",
        "openai.lib.streaming.chat",
        "openai.pagination",
        "openai.resources.chat.chat",
        "openai.resources.chat.completions.completions",
    ),
}
_FIRST_CALLS = 4
"""After four calls, Python has adapted the code: a run takes a tenth less than after one, and further calls hardly
change that. They take 20 ms."""


class _EnoughError(Exception):
    """The next statement may change what later imports do."""


def outside(targets: Iterable[str], is_installed: IsInstalled) -> list[tuple[str, set[str]]]:
    """The modules from outside that the modules `targets` import, in order, each (module, names taken from it)."""
    reading = _Reading(is_installed)
    try:
        for target in targets:
            reading.module(target)
    except _EnoughError:
        pass
    return list(reading.found.items())


class _Reading:
    def __init__(self, is_installed: IsInstalled) -> None:
        self.found: dict[str, set[str]] = {}
        self._is_installed = is_installed
        self._seen: set[str] = set()
        self._specs: dict[str, ModuleSpec | None] = {}

    def module(self, name: str) -> None:
        """Follow the import of a module, and of the packages that it is in."""
        for spec in self._chain(name):
            if spec.name in self._seen:
                continue
            self._seen.add(spec.name)
            if len(self._seen) > _MOST:
                raise _EnoughError
            if not spec.origin or self._is_installed(spec.origin):
                continue
            # A module in C, or a package without a file, can't be read; its import is left to the project.
            if not spec.origin.endswith(".py"):
                continue
            try:
                with open(spec.origin, "rb") as source:  # noqa: PTH123
                    tree = ast.parse(source.read())
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                raise _EnoughError from None  # the import will say it
            package = spec.name if spec.submodule_search_locations is not None else spec.name.rpartition(".")[0]
            self._statements(tree.body, package, set())

    def _statements(self, body: Iterable[ast.stmt], package: str, own: set[str]) -> None:
        """`own`: names that the module has bound to objects of its own."""
        for statement in body:
            if isinstance(statement, ast.If) and _is_never(statement.test):
                continue
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                # A call on an object that the module made itself, as FastAPI is told its routers, changes no
                # import.
                own.update(target.id for target in targets if isinstance(target, ast.Name))
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    self._import(alias.name, ())
            elif isinstance(statement, ast.ImportFrom):
                name = statement.module or ""
                if statement.level:
                    parts = package.split(".")
                    package_parts = parts[: len(parts) - statement.level + 1]
                    name = ".".join([*package_parts, name] if name else package_parts)
                if name and name != "__future__":
                    self._import(name, [name.name for name in statement.names])
            elif isinstance(statement, ast.Try):
                # The body is what runs as a rule. Handlers import what stands in for it, and are only looked at for
                # what they change.
                self._statements(statement.body, package, own)
                _check([*statement.handlers, *statement.orelse, *statement.finalbody], own)
            elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                _check([statement], own)

    def _import(self, name: str, names: Iterable[str]) -> None:
        spec = self._spec(name.partition(".")[0])
        if spec is None:
            return
        if self._is_outside(spec):
            self.found.setdefault(name, set()).update(imported for imported in names if imported != "*")
            return
        self.module(name)
        for imported in names:
            if imported != "*" and self._spec(name + "." + imported) is not None:
                self.module(name + "." + imported)

    def _is_outside(self, spec: ModuleSpec) -> bool:
        places = [spec.origin] if spec.origin and spec.has_location else _locations(spec)
        if spec.origin in ("built-in", "frozen") or not places:
            return True
        return all(self._is_installed(place if place.endswith(".py") else place + "/__init__.py") for place in places)

    def _chain(self, name: str) -> Iterator[ModuleSpec]:
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            spec = self._spec(".".join(parts[:depth]))
            if spec is None:
                return
            yield spec

    def _spec(self, name: str) -> ModuleSpec | None:
        """Where a module is. Nothing is imported for it."""
        if name not in self._specs:
            parent = name.rpartition(".")[0]
            spec = None
            try:
                if not parent:
                    # Of a module at the top nothing is imported for that; for one in a package Python would import the
                    # package, so it is looked up in the folders of the package below.
                    spec = importlib.util.find_spec(name)
                else:
                    above = self._spec(parent)
                    if above is not None and above.submodule_search_locations is not None:
                        spec = _below(name, _locations(above))
            except (ImportError, AttributeError, ValueError, OSError):
                spec = None
            self._specs[name] = spec
        return self._specs[name]


def _below(name: str, places: list[str]) -> ModuleSpec | None:
    try:
        return machinery.PathFinder.find_spec(name, places)
    except KeyError:  # a package without `__init__.py`, in one that is not imported
        spec = machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [place + "/" + name.rpartition(".")[2] for place in places]
        return spec


def _locations(spec: ModuleSpec) -> list[str]:
    """The folders of a package. One without `__init__.py` looks them up anew each time, in the package around it."""
    locations = spec.submodule_search_locations
    return list(getattr(locations, "_path", locations) or ())


def _is_never(test: ast.expr) -> bool:
    """Whether a condition is `TYPE_CHECKING`, or `__name__ == "__main__"`."""
    return _last_name(test) == "TYPE_CHECKING" or (
        isinstance(test, ast.Compare) and _last_name(test.left) == "__name__"
    )


def _check(nodes: Iterable[ast.AST], own: set[str]) -> None:
    """Raises `_EnoughError` for statements after which an import may give something else."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        # What functions do happens when they are called.
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            raise _EnoughError
        if isinstance(node, ast.Call):
            name = _last_name(node.func)
            if name in _SETTERS and isinstance(node.func, ast.Attribute) and _last_name(node.func.value) in _STATE:
                raise _EnoughError
            if name == "putenv":
                raise _EnoughError
        # A call whose result nobody takes is made for what it changes.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if _last_name(function) not in _HARMLESS and _first_name(function) not in own:
                raise _EnoughError
        waiting.extend(ast.iter_child_nodes(node))


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _first_name(node: ast.AST) -> str:
    """The name with which `builder.nodes.add` begins; of a plain name nothing: that is a function."""
    if not isinstance(node, ast.Attribute):
        return ""
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return getattr(node, "id", "")


def load(modules: Sequence[tuple[str, Iterable[str]]]) -> list[str]:
    """Import them. One that can't be imported is left to the module that wants it, which knows what to do then."""
    for name, attributes in modules:
        module = imported(name)
        if module is not None and getattr(module, "__path__", None) is not None:
            # `from package import name` may mean a module of the package.
            for attribute in sorted(attributes):
                if not hasattr(module, attribute):
                    imported(name + "." + attribute)
    for package, later in _AT_FIRST_CALL.items():
        if package in sys.modules:
            for name in later:
                imported(name)
    if "anyio" in sys.modules:
        thread = threading.Thread(target=_first_calls)  # with an event loop of its own: this one's stays as it is
        thread.start()
        thread.join()
    return [name for name, _ in modules if name in sys.modules]


def _first_calls() -> None:
    """What packages make at their first call: anyio imports what it runs on, and Python adapts the code of pydantic-ai,
    whose own model for tests asks no server, and ours around it. Else each fork copies the memory for that: 5 MB, and
    40 % of its time."""
    anyio = sys.modules["anyio"]
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anyio.run(anyio.sleep, 0)
        if "pydantic_ai" in sys.modules and "_agenteval.python_call" in sys.modules:
            model = importlib.import_module("pydantic_ai.models.test").TestModel()
            agent = sys.modules["pydantic_ai"].Agent(model)
            agent.tool_plain(_looked_up)
            for _ in range(_FIRST_CALLS):
                _ask(agent)


async def _looked_up(name: str) -> str:
    return name


def _ask(agent: object) -> None:
    """Ask an agent as the first call of a run would."""
    import asyncio  # anyio has loaded it

    request = {"prompt": "hello", "messages": [{"role": "user", "content": "hello"}], "context": {}, "config": {}}
    loop = asyncio.new_event_loop()
    try:
        call: Any = sys.modules["_agenteval.python_call"]
        call.run(agent, "agent", request, tell=json.dumps, wait=loop.run_until_complete)
    finally:
        loop.close()


def imported(name: str) -> ModuleType | None:
    """A module; None: it can't be imported."""
    try:
        return importlib.import_module(name)
    # Whatever an import raises, the project's own import raises it again, at its place.
    except Exception:
        return None


_YOUNG_S = 2.0


def keep_no_young_bytecode() -> None:
    """Write no bytecode of a module that was just saved. Python tells whether bytecode is that of a source by its size
    and by the second of its save: a further save in that second which leaves the size as it is would not be seen."""
    write = machinery.SourceFileLoader.set_data

    def set_data(self: Any, path: str, data: Any, **more: Any) -> None:
        try:
            young = time.time() - os.stat(importlib.util.source_from_cache(path)).st_mtime < _YOUNG_S  # noqa: PTH116
        except (OSError, ValueError, NotImplementedError):
            young = False
        if not young:
            write(self, path, data, **more)

    machinery.SourceFileLoader.set_data = set_data  # type: ignore[method-assign]
