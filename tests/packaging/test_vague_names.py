"""Names say what they hold: of the names that are bound, those like `one`, `found` or `given` are few, and get no more.

`left` is counted although it is a good name beside `right`: what counts is the share, and that it falls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from sources import modules, of_all_sources

VAGUE = {"one", "ones", "found", "said", "given", "made", "known", "wanted", "told", "asked", "shown", "seen", "taken"}
VAGUE |= {"kept", "left", "put", "got"}
CEILINGS = {
    "agents": 0.7,
    "analysis": 0.7,
    "api": 0.5,
    "cli": 0.9,
    "extensions": 0.4,
    "formats": 0.4,
    "grading": 0.4,
    "history": 0.3,
    "runs": 0.5,
    "tui": 0.3,
}
"""{a folder of the package: the most of a hundred bound names that may be vague}. Lower it when the share falls."""
ELSEWHERE = 1.0
"""The ceiling of all other folders."""
SLACK = 0.5
"""How far a share may be below its ceiling before the ceiling must follow."""


def bound_names(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """(name, line) of each variable, field and parameter that gets a value."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def test_variables_fields_and_parameters_are_counted() -> None:
    source = "class A:\n    kept: int\n\n    def f(self, one):\n        found = [x for x in one]\n        f(given=1)"
    tree = ast.parse(source)
    assert sorted(bound_names(ast.walk(tree))) == [("found", 5), ("kept", 2), ("one", 4), ("self", 4), ("x", 5)]


@of_all_sources
def test_the_share_of_names_that_say_nothing_only_falls() -> None:
    bound: dict[str, int] = {}
    places: dict[str, list[str]] = {}
    for path, nodes in modules().items():
        folder = path.split("/")[0] if "/" in path else "."
        for name, line in bound_names(nodes):
            bound[folder] = bound.get(folder, 0) + 1
            if name.strip("_") in VAGUE:
                places.setdefault(folder, []).append(f"{path}:{line} {name}")
    shares = {folder: 100 * len(places.get(folder, ())) / number for folder, number in bound.items()}
    risen = {folder: places[folder] for folder, share in shares.items() if share > CEILINGS.get(folder, ELSEWHERE)}
    assert not risen, "name what these hold, in the words of the field"
    fallen = {folder: shares[folder] for folder, most in CEILINGS.items() if shares[folder] < most - SLACK}
    assert not fallen, "well done: lower the ceilings to these shares"
