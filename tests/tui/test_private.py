"""What we use of Textual's private parts is what it was when we read it; and nothing else uses any."""

from __future__ import annotations

import ast
import hashlib
import inspect
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.command import CommandPalette
from textual.document._document import Document
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import OptionList, TextArea

from agenteval_tui.tui.terminal import crash_report, input, minimal_redraw, mounting, sheet
from agenteval_tui.tui.terminal.textual_internals import STANDS_ON, ExactDocument, QuietTextArea

TUI = Path(__file__).resolve().parents[2] / "agenteval_tui" / "tui"
ALL = {
    **{name: ("textual_internals.py", digest) for name, digest in STANDS_ON.items()},
    **{name: ("minimal_redraw.py", digest) for name, digest in minimal_redraw.STANDS_ON.items()},
    **{name: ("input.py", digest) for name, digest in input.STANDS_ON.items()},
    **{name: ("crash_report.py", digest) for name, digest in crash_report.STANDS_ON.items()},
    **{name: ("sheet.py", digest) for name, digest in sheet.STANDS_ON.items()},
    **{name: ("mounting.py", digest) for name, digest in mounting.STANDS_ON.items()},
}
OWNERS = {
    one.__name__: one
    for one in (
        TextArea, Document, App, ChopsUpdate, CommandPalette, Compositor, LayoutUpdate, MessagePump, OptionList, Screen,
        LinuxDriver, Strip, Widget, WriterThread, XTermParser,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ALL))
def test_what_we_stand_on_has_not_changed(name: str) -> None:
    owner, method = name.split(".")
    source = inspect.getsource(getattr(OWNERS[owner], method))
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    file, known = ALL[name]
    assert digest == known, f"Textual changed {name}: read it, adapt tui/{file}, update STANDS_ON"


def test_everything_private_that_we_replace_is_watched() -> None:
    for ours, theirs in ((QuietTextArea, TextArea), (ExactDocument, Document)):
        for name in vars(ours):
            replaced = callable(vars(ours)[name]) and name in vars(theirs)
            if replaced and (name.startswith("_") or ours is ExactDocument):
                assert f"{theirs.__name__}.{name}" in STANDS_ON


def test_nothing_else_imports_private_parts() -> None:
    for path in TUI.rglob("*.py"):
        if path.parent.name == "terminal":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textual"):
                words = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                assert not any(word.startswith("_") for word in words), f"{path.name}:{node.lineno}"


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
