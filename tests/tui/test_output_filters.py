"""No attack in foreign text reaches the terminal: read from what a real pseudo-terminal received."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from attacks import ATTACKS, SEQUENCE, batched, shape
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from shop import app_on
from textual.app import App, ComposeResult
from textual.color import Color
from textual.notifications import Notify
from textual.widgets import Static

from agenteval_tui.core.display import displayable
from agenteval_tui.tui.terminal.output_filters import DisplaySafe, displayable_note, sanitize

SOURCE = """
from textual.app import App
from textual.containers import Horizontal, Vertical
from textual.notifications import Notify
from textual.widgets import Static
from agenteval_tui.grading.results import Span
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript
from agenteval_tui.tui.presenters.highlights import Mark
from agenteval_tui.tui.terminal.output_filters import DisplaySafe, displayable_note
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.transcript_view import TranscriptView
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList

attacks = {attacks}
FILTER = {filter}

def transcript(text):
    return Transcript(
        (
            Message("user", text + " in a message"),
            Message("ro" + text, "as a role"),
            Message("assistant", "", text + " in thoughts", (0, 1)),
            Message("tool", text + " in a result", tool_call=0),
            Message("tool", text + " from nowhere"),
        ),
        (
            ToolCall("a", "name" + text, {{"key" + text: text, "in": [{{text: [text]}}], "at": text + "\\n"}}, "r"),
            ToolCall("b", "broken", text, malformed=True),
        ),
        error=RunError("kind" + text, text, text),
    )

class Attacked(App):
    def get_line_filters(self):
        return [*super().get_line_filters(), *([DisplaySafe()] if FILTER else [])]

    def compose(self):
        with Horizontal():
            yield TranscriptView()
            with Vertical():
                yield ConfigEditor()
                # These two have forgotten to make their text displayable.
                if FILTER:
                    yield VirtualList()
                    yield Static(markup=False)
                yield Static("step 0", id="step", markup=False)

    def on_mount(self):
        self.left = list(attacks)
        self.number = 0

    def on_key(self, event):
        if event.key != "f9":
            return
        text = self.left.pop(0)
        view = self.query_one(TranscriptView)
        marks = [Mark(Span("message", 0, 0, len(text)), "near")]
        marks.append(Mark(Span("arguments", 0, path="key" + text), "miss", text))
        view.show_transcript(transcript(text), marks=marks)
        view.fold_all(False)
        view.search(text)
        view.show_raw(len(self.left) % 2 == 0)
        editor = self.query_one(ConfigEditor)
        editor.load_text('{{"' + text + '": "' + text + '"}}')
        if FILTER:
            rows = Rows([text], lambda row, width: ((row, ""), (row, "bold")), lambda row: "k" + row)
            self.query_one(VirtualList).set_source(rows)
            self.query_one(Static).update(text)
            self.clear_notifications()
            self.post_message(Notify(displayable_note(text, title=text)))
        self.number += 1
        self.query_one("#step", Static).update("step %d" % self.number)

Attacked().run()
"""


@pytest.mark.e2e
@pytest.mark.parametrize("filtered", [True, False], ids=["with the last defence", "widgets alone"])
def test_no_attack_reaches_the_terminal(run_in_terminal: Callable[..., Any], filtered: bool) -> None:
    # Several in a row a step; what is not closed comes last in its group.
    groups = {" + ".join(some): "".join(ATTACKS[name] for name in some) for some in batched(list(ATTACKS), 5)}
    source = SOURCE.format(attacks=ascii(list(groups.values())), filter=filtered)
    with run_in_terminal(source, columns=90, rows=26) as terminal:
        terminal.wait_for("step 0")
        terminal.settle()
        ours = {shape(found) for found in SEQUENCE.findall(terminal.written.decode("utf-8"))}
        began: list[int] = []
        for number, name in enumerate(groups, 1):
            began.append(len(terminal.written))
            terminal.send("\x1b[20~")
            terminal.wait_for(f"step {number}")
            terminal.settle(0.05)
            assert "31337" in terminal.text, f"{name}: the harmless part is shown"
        terminal.settle(1.0)
        names = list(groups)
        for found in SEQUENCE.finditer(terminal.written.decode("utf-8"), began[0]):
            name = names[bisect_right(began, len(found.string[: found.start()].encode())) - 1]
            assert "31337" not in found[0], f"{name}: {found[0]!r}"
            assert shape(found[0]) in ours | {"\x1b[0;0H"}, f"{name}: {found[0]!r}"
        rest = SEQUENCE.sub("", terminal.written.decode("utf-8")).replace("\r", "").replace("\n", "")
        assert displayable(rest) == rest, [c for c in rest if displayable(c) != c][:9]
        assert "\x1b" not in rest


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("".join(ATTACKS.values()))), max_size=40))
def test_the_filter_leaves_nothing_and_keeps_the_width(text: str) -> None:
    style = Style(bold=True)
    (filtered,) = DisplaySafe().apply([Segment(text, style)], Color(0, 0, 0))
    assert displayable(filtered.text) == filtered.text
    assert not set("\n\t") & set(filtered.text)
    assert filtered.style == style
    assert sanitize(filtered.text) == filtered.text
    if not any(cell_len(a + b) != cell_len(a) + cell_len(b) for a, b in pairwise(text)):
        assert cell_len(filtered.text) == cell_len(text)


@pytest.mark.parametrize("text", ["\u0301", "\ua8b4", " \u0301", "a \u0301\u0301b", "\t\u0301"])
def test_a_mark_on_no_letter_takes_no_cell(text: str) -> None:
    (filtered,) = DisplaySafe().apply([Segment(text)], Color(0, 0, 0))
    assert cell_len(filtered.text) == sum(map(cell_len, text))
    assert displayable(filtered.text) == filtered.text


def test_the_filter_lets_what_is_harmless_through_untouched() -> None:
    for text in ("plain", "Grüße, 日本語 ✓ ◐ ▌", "e\u0301", "│ ▁▃▅"):
        segment = Segment(text)
        assert DisplaySafe().apply([segment], Color(0, 0, 0))[0] is segment
    control = Segment("\x1b[1;1H", None, [])  # type: ignore[arg-type]
    assert DisplaySafe().apply([control], Color(0, 0, 0))[0].text in ("\x1b[1;1H", "[1;1H")
    assert DisplaySafe() == DisplaySafe()
    assert len({DisplaySafe(), DisplaySafe()}) == 1


async def test_a_notification_shows_markup_as_text() -> None:
    class Saying(App[None]):
        def compose(self) -> ComposeResult:
            yield Static("x")

    app, attack = Saying(), "[/usr/bin] is [red]no[/red] folder\x1b[2J" + "x" * 5000
    async with app.run_test() as pilot:
        app.post_message(Notify(displayable_note(attack, title="[b]", severity="error")))
        await pilot.pause()
        (note,) = list(app._notifications)
        assert note.message.startswith("[/usr/bin] is [red]no[/red] folder␛[2Jxxx")
        assert len(note.message) <= 600
        assert note.severity == "error"
        assert not note.markup


def test_without_colours_what_has_a_background_is_turned_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_on(tmp_path, tmp_path / "history.db")
    cells = [
        Segment("cursor", Style(color="red", bgcolor="blue")),
        Segment("text", Style(color="red", bgcolor="default", bold=True)),
        Segment("marked", Style(color="green", reverse=True)),
    ]
    for one in app.get_line_filters():
        cells = one.apply(cells, Color(0, 0, 0))
    styles = [cell.style for cell in cells if cell.style is not None]
    assert [(style.color, style.bgcolor) for style in styles] == [(None, None)] * 3
    assert [bool(style.reverse) for style in styles] == [True, False, True]
