"""Functions say what they return: those that return `Any` are few, and get no more. Whoever uses such a value is not
checked. `object` is the type of what is only passed on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from sources import modules, of_all_sources

MOST = 56
"""Functions of the package that may return `Any`: data of others whose shape a caller needs. Lower it when there are
fewer."""
SLACK = 3
"""How many fewer there may be before the limit must follow."""


def returning_any(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """(name, line) of each function that returns `Any`."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and getattr(node.returns, "id", "") == "Any":
            yield node.name, node.lineno


def test_functions_and_methods_are_counted() -> None:
    source = "def f() -> Any: ...\nclass A:\n    async def g(self) -> Any: ...\n    def h(self) -> object: ...\n"
    assert sorted(returning_any(ast.walk(ast.parse(source)))) == [("f", 1), ("g", 3)]


@of_all_sources
def test_functions_that_return_any_only_get_fewer() -> None:
    places = [f"{path}:{line} {name}" for path, nodes in modules().items() for name, line in returning_any(nodes)]
    assert len(places) <= MOST, "write the type, or `object` where the value is only passed on"
    assert len(places) >= MOST - SLACK, "well done: lower the limit to this number"
