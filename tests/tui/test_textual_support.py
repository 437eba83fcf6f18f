"""Textual's private parts are used in one place, and the app runs where they are others."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from terminal import Terminal

from agenteval_tui.tui.terminal import minimal_redraw, mounting, terminal_app
from agenteval_tui.tui.terminal.textual_support import has

TUI = Path(__file__).resolve().parents[2] / "agenteval_tui" / "tui"


def test_every_part_is_there_in_this_version() -> None:
    assert minimal_redraw.IS_KNOWN
    assert mounting.DISPATCHES
    assert terminal_app.IS_REPLACEABLE


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("textual.gone:App._display", ""),
        ("textual.app:Gone._display", ""),
        ("textual.app:App._gone", ""),
        ("textual.app:App.title", ""),  # no method
        ("textual.app:App._display", "screen gone"),
        ("textual.app:App.__init__", "_gone"),
    ],
)
def test_a_part_that_is_missing_is_not_there(part: str, names: str) -> None:
    assert not has(part, names)


@pytest.mark.e2e
@pytest.mark.xdist_group("terminals")
def test_with_other_private_parts_the_app_runs_in_a_terminal(run_in_terminal: Callable[..., Terminal]) -> None:
    samples = str(TUI.parents[1] / "sample_suites" / "recorded")
    source = "import sys; from agenteval_tui.tui.terminal import textual_support; "
    source += "textual_support.has = lambda *names: False; from agenteval_tui.__main__ import main; "
    source += f"sys.exit(main([{samples!r}]))"
    with run_in_terminal(source, columns=80, rows=24, prestarted=False) as it:
        it.wait_for("customers-austria")
        it.settle()
        before = len(it.written)
        it.send("\x1b[B")
        it.wait_for(lambda t: len(t.written) > before)
        it.settle()
        for key, there in (("5", " execution"), ("8", " agents ──"), ("1", " suites ──")):
            it.send(key)
            it.wait_for(there)
        assert b"\x1b[6n" not in it.written, "only our own painting asks the terminal where its cursor is"
        it.send("q")
        it.wait_for_end()


def private(name: str) -> bool:
    # `_replace` is how Python's named tuples call a method for everybody.
    return name.startswith("_") and not name.startswith("__") and name != "_replace"


@cache
def classes_of(module: str) -> dict[str, ast.ClassDef]:
    """The classes of a module, also those in functions and classes, by their names."""
    tree = ast.parse(inspect.getsource(import_module(module)))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


@cache
def private_names(owner: type) -> frozenset[str]:
    """The private methods, attributes and class variables of one class of Textual."""
    found: set[str] = set()
    for node in ast.walk(classes_of(owner.__module__)[owner.__name__]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            found.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return frozenset(filter(private, found))


def theirs(owner: type) -> frozenset[str]:
    """The private names that a class of ours has from Textual's classes."""
    return frozenset().union(*(private_names(one) for one in owner.__mro__ if one.__module__.startswith("textual")))


def uses(path: Path) -> Iterator[str]:
    """Where a module uses private parts of Textual."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = import_module(".".join(path.relative_to(TUI.parents[1]).with_suffix("").parts).removesuffix(".__init__"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            words = {word for name in names for word in name.split(".")}
            if any(name.startswith("textual") for name in names) and any(map(private, words)):
                yield f"{path.name}:{node.lineno}: imports {', '.join(names)}"
        elif isinstance(node, ast.ClassDef) and isinstance(owner := getattr(module, node.name, None), type):
            taken = theirs(owner)
            for part in ast.walk(node):
                names = [getattr(part, "attr", ""), getattr(part, "name", "")]
                if taken.intersection(name for name in names if isinstance(name, str)):
                    yield f"{path.name}:{getattr(part, 'lineno', 0)}: {node.name} has {names} from Textual"


def test_only_the_terminal_s_modules_use_private_parts() -> None:
    """None is imported elsewhere, and no class elsewhere uses (or replaces, unawares) what Textual's have of their own.

    In a class this is what `self` has. What any other object has, `test_nobody_reads_another_s_private_parts` finds.
    """
    found = [use for path in sorted(TUI.rglob("*.py")) if path.parent != TUI / "terminal" for use in uses(path)]
    assert not found, found


def test_nobody_reads_another_s_private_parts() -> None:
    found = []
    for path in sorted(TUI.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.parent == TUI / "terminal" or "textual" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and private(node.attr):
                whose = ast.unparse(node.value)
                if whose not in ("self", "cls"):
                    found.append(f"{path.relative_to(TUI)}:{node.lineno}: {whose}.{node.attr}")
    assert not found, found
