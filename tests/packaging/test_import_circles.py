"""No two modules need each other, also where an import is for types only or stands inside a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from sources import modules, of_all_sources

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "agenteval_tui"


@lru_cache
def imports() -> dict[str, set[str]]:
    """{a module of the package: those that it imports, anywhere in its file}."""
    trees = {_name(path): nodes for path, nodes in modules().items()}
    return {name: {one for node in nodes for one in _targets(node, trees)} - {name} for name, nodes in trees.items()}


def _name(path: str) -> str:
    return f"{PACKAGE}.{path.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")


def _targets(node: ast.AST, names: Container[str | None]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in names)
    elif isinstance(node, ast.ImportFrom) and node.module in names:
        for alias in node.names:
            part = f"{node.module}.{alias.name}"
            yield part if part in names else str(node.module)


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules that can all be reached from each other, each with two modules or more."""
    graph = {name: set(targets) for name, targets in graph.items()}
    members = {name: {name} for name in graph}
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            # What stands on one circle becomes one node, until there is no circle left.
            first, *others = dict.fromkeys(error.args[1])
            for other in others:
                members[first] |= members.pop(other)
                graph[first] |= graph.pop(other)
            for name, targets in graph.items():
                if targets & set(others):
                    graph[name] = (targets - set(others)) | {first}
            graph[first] -= {first}
        else:
            return [found for found in members.values() if len(found) > 1]


def test_a_circle_is_found_whole() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"b"}, "e": {"a", "f"}, "f": set()}
    assert circles(graph) == [{"a", "b", "c", "d"}]


@of_all_sources
def test_no_modules_need_each_other() -> None:
    assert [sorted(circle) for circle in circles(imports())] == []


@of_all_sources
def test_screens_do_not_know_the_app() -> None:
    importers = {name for name, targets in imports().items() if f"{PACKAGE}.tui.app" in targets}
    assert importers == {f"{PACKAGE}.__main__"}


# What starts the program, the names of the API, and the pytest plug-in: their docstrings say why they import lazily.
BOUNDARIES = ("__main__.py", "__init__.py", "pytest_plugin/__init__.py")
_IMPORT = re.compile(r"\s+(from|import) |\s*$|\s+try:$|\s+[\w, ]+,$|\s+\)$")


def test_an_import_inside_a_function_has_its_reason_beside_it() -> None:
    without = []
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        name = path.relative_to(ROOT / PACKAGE).as_posix()
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if name in BOUNDARIES or not re.match(rf"\s+(from|import) {PACKAGE}\b", line) or "#" in line:
                continue
            above = next(lines[n] for n in range(number - 1, -1, -1) if not _IMPORT.match(lines[n]))
            if not above.lstrip().startswith(("#", "if TYPE_CHECKING", "if not __name__", "else:")):
                without.append(f"{name}:{number + 1}")
    assert without == []
