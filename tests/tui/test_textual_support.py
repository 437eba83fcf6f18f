"""What we use of Textual's private parts is what it was when we read it; and nothing else uses any."""

from __future__ import annotations

import ast
import hashlib
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from terminal import Terminal
from textual.widgets import TextArea
from textual.widgets.text_area import Document

from agenteval_tui.tui.terminal import (
    backdrop,
    crash_report,
    input,
    minimal_redraw,
    mounting,
    partial_paint,
    screen_styles,
    sheet,
    strip_caches,
    stylesheet,
    text_area,
    textual_support,
)
from agenteval_tui.tui.terminal.text_area import ExactDocument, QuietTextArea

TUI = Path(__file__).resolve().parents[2] / "agenteval_tui" / "tui"
MODULES = (
    backdrop,
    crash_report,
    input,
    minimal_redraw,
    mounting,
    partial_paint,
    screen_styles,
    sheet,
    strip_caches,
    stylesheet,
    text_area,
)
ALL = {name: (module.__name__, digest) for module in MODULES for name, digest in module.STANDS_ON.items()}


@pytest.mark.parametrize("name", sorted(ALL))
def test_what_we_stand_on_is_what_was_read(name: str) -> None:
    """In this version, which `textual_support.READ` therefore names."""
    module, _, path = name.partition(":")
    source = inspect.getsource(attrgetter(path)(import_module(module)))
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    ours, known = ALL[name]
    assert digest == known, f"Textual changed {name}: read it, adapt {ours}, update STANDS_ON and READ"


def test_everything_private_that_we_replace_is_watched() -> None:
    watched = {name.partition(":")[2] for name in text_area.STANDS_ON}
    for ours, theirs in ((QuietTextArea, TextArea), (ExactDocument, Document)):
        for name in vars(ours):
            replaced = callable(vars(ours)[name]) and name in vars(theirs)
            if replaced and private(name):
                assert f"{theirs.__name__}.{name}" in watched


def test_every_part_is_known_in_this_version() -> None:
    assert textual_support.is_read()
    assert all(
        module.IS_KNOWN
        for module in (backdrop, input, minimal_redraw, partial_paint, strip_caches, stylesheet, text_area)
    )
    assert mounting.DISPATCHES
    assert crash_report.IS_REPLACEABLE


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
def test_a_part_that_is_missing_is_not_known(part: str, names: str) -> None:
    assert not textual_support.has(part, names)
    assert not textual_support.is_known([part], {part: names})
    assert not textual_support.is_known([], {part: names})


def test_with_another_version_the_text_area_still_gives_back_its_text(tmp_path: Path) -> None:
    """Its tests pass in a process in which the version is none that was read.

    All of the app's tests, with versions that are really other ones: `tests/packaging/other_textual.py`.
    """
    source = "import sys, pytest; from agenteval_tui.tui.terminal import textual_support as support; "
    source += "support.READ = frozenset(); code = pytest.main(sys.argv[1:]); "
    source += "from agenteval_tui.tui.terminal import input, minimal_redraw, text_area as area; "
    source += "assert not (input.IS_KNOWN or minimal_redraw.IS_KNOWN or area.IS_KNOWN); sys.exit(code)"
    command = [sys.executable, "-c", source, "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'tests'}"]
    command += [str(Path(__file__).with_name("test_editor_parts.py"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False, cwd=TUI.parents[1])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.e2e
@pytest.mark.xdist_group("terminals")
def test_with_another_version_the_app_runs_in_a_terminal(run_in_terminal: Callable[..., Terminal]) -> None:
    samples = str(TUI.parents[1] / "sample_suites" / "recorded")
    source = "import sys; from agenteval_tui.tui.terminal import textual_support as support; "
    source += "support.READ = frozenset(); from agenteval_tui.__main__ import main; "
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
def private_names(owner: type) -> frozenset[str]:
    """The private methods, attributes and class variables of one class of Textual."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(owner)))):
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


TEXTS = st.text(alphabet=st.sampled_from("ab\n\r\u2028\u0085\x0b\t{"), max_size=30)


@given(text=TEXTS)
def test_a_document_gives_back_its_text(text: str) -> None:
    assert ExactDocument(text).text == text


@given(text=TEXTS, insert=st.text(alphabet=st.sampled_from("x\n\u2028"), max_size=6), data=st.data())
def test_an_edit_changes_what_it_names(text: str, insert: str, data: st.DataObject) -> None:
    document = ExactDocument(text)
    size = len(document.newline)

    def place() -> tuple[tuple[int, int], int]:
        row = data.draw(st.integers(0, document.line_count - 1))
        column = data.draw(st.integers(0, len(document.get_line(row))))
        return (row, column), sum(len(line) + size for line in document.lines[:row]) + column

    (start, first), (end, last) = sorted((place(), place()))
    old = document.text
    result = document.replace_range(start, end, insert)
    assert result.replaced_text == old[first:last]
    assert document.text == old[:first] + insert.replace("\n", document.newline) + old[last:]
    row, column = result.end_location
    assert document.get_line(row)[:column].endswith(insert.rpartition("\n")[2])
