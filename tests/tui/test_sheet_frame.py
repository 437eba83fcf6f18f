"""The frame of sheets: its edges, its keys, and how high it is."""

from __future__ import annotations

from typing import ClassVar

import pytest
from listed import listed
from textual._compositor import Compositor
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from agenteval_tui.tui.presenters.sheet_edges import key_at, lower_edge, section_rule, upper_edge
from agenteval_tui.tui.styled_text import plain, width_of
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.widgets.virtual_list import VirtualList

KEYS = (("enter", "apply"), ("tab", "preview"), ("esc", "close"))


@pytest.mark.sweep
@pytest.mark.parametrize("width", [1, 2, 5, 11, 20, 34, 80])
def test_edges_are_as_wide_as_the_sheet_and_keep_what_closes_it(width: int) -> None:
    for line in (
        upper_edge("Smallest edits", "order-status", width),
        section_rule("preview", width),
        lower_edge(KEYS, width),
    ):
        assert width_of(line) == width
    if width >= 16:
        assert "esc close" in plain(lower_edge(KEYS, width))


def test_the_edges_of_a_sheet() -> None:
    assert plain(upper_edge("Edits", "order-status", 34)) == "╭─ Edits ───────── order-status ─╮"
    assert plain(upper_edge("Edits that pass", "order-status", 26)) == "╭─ Edits that pass ──────╮"
    assert plain(section_rule("preview", 20)) == "├─ preview ────────┤"
    assert plain(lower_edge(KEYS, 44)) == "╰─ enter apply   tab preview   esc close ──╯"
    assert plain(lower_edge(KEYS, 32)) == "╰─ enter apply   esc close ────╯"
    assert plain(upper_edge("a\x1b[2Jb", "c\nd", 30)).isprintable()


def test_a_click_finds_the_key_that_is_named_there() -> None:
    line = plain(lower_edge(KEYS, 44))
    for key, what in KEYS:
        at = line.index(f"{key} {what}")
        assert {key_at(KEYS, 44, column) for column in range(at, at + len(key) + 1 + len(what))} == {key}
    assert [key_at(KEYS, 44, column) for column in (0, 2, 43, 32)] == ["", "", "", "esc"]


class Framed(Sheet[str]):
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss('closed')", "close"), ("x", "more", "more")]

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows

    def compose(self) -> ComposeResult:
        with SheetFrame("Things", (("x", "more"), ("esc", "close")), subject="here"):
            yield VirtualList(listed((str(one), ((f"row {one}", ""),)) for one in range(self.rows)), id="list")
            yield Section("text", id="rule")
            yield LinesView(id="lines")
            yield LineBlock(lambda width: [(("said", ""),)], id="said")

    def on_mount(self) -> None:
        self.query_one(LinesView).show(lambda width: [(("line", ""),)] * 3)

    def action_more(self) -> None:
        self.query_one(LinesView).show(lambda width: [(("line", ""),)] * 6)


@pytest.mark.parametrize(("theme", "dim"), [("ansi-dark", True), ("textual-dark", False)])
async def test_what_lies_under_a_sheet_is_dim_where_the_terminal_has_its_own_colours(theme: str, dim: bool) -> None:
    class Base(App[None]):
        CSS = "Sheet { align: center middle; }"

        def compose(self) -> ComposeResult:
            yield Static("what lies below")

        def get_css_variables(self) -> dict[str, str]:
            return {**super().get_css_variables(), "rule": "#888888", "muted": "#888888"}

    app = Base()
    app.theme = theme
    async with app.run_test(size=(60, 20)) as pilot:

        def dim_in_first_row() -> set[bool]:
            row = app.screen._compositor.render_strips()[0]
            return {bool(style and style.dim) for text, style, _ in row if text.strip()}

        await pilot.pause()
        assert dim_in_first_row() == {False}
        app.push_screen(Framed(2))
        await pilot.pause()
        assert dim_in_first_row() == {dim}


async def test_a_sheet_is_as_high_as_its_content_and_closed_at_any_size() -> None:
    answers: list[str | None] = []

    class Base(App[None]):
        def get_css_variables(self) -> dict[str, str]:
            return {**super().get_css_variables(), "rule": "#888888", "muted": "#888888"}

    app = Base()
    async with app.run_test(size=(100, 30)) as pilot:
        sheet = Framed(4)
        app.push_screen(sheet, answers.append)
        await pilot.pause()
        frame = sheet.query_one(SheetFrame)
        heights = lambda: [child.outer_size.height for child in frame.children]  # noqa: E731
        assert heights() == [1, 4, 1, 3, 1, 1]
        assert (frame.outer_size.width, frame.outer_size.height) == (80, 11)
        await pilot.press("x")
        await pilot.pause()
        assert heights() == [1, 4, 1, 6, 1, 1]
        # What becomes less does not make it jump.
        sheet.query_one(LinesView).show(lambda width: [(("line", ""),)])
        await pilot.pause()
        assert frame.outer_size.height == 14
        # With few rows what scrolls gives way first; both edges stay.
        for size, expected in (
            ((100, 8), [1, 3, 1, 1, 1, 1]),
            ((30, 6), [1, 1, 1, 1, 1, 1]),
            ((30, 5), [1, 1, 1, 1, 0, 1]),
            ((20, 3), [1, 1, 0, 0, 0, 1]),
        ):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert heights() == expected
            assert frame.outer_size.width == min(80, size[0])
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        foot = frame.children[-1]
        line = plain(lower_edge(frame.keys, 80))
        await pilot.click(foot, offset=(line.index("esc"), 0))
        await pilot.pause()
        await pilot.pause()
        assert answers == ["closed"]


async def test_what_is_hidden_asks_for_no_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layout takes longer than all else that a key in the config editor does. Shown again, it has what was said."""

    class Blocks(App[None]):
        def compose(self) -> ComposeResult:
            block = LineBlock(id="block")
            block.display = False
            block.styles.height = "auto"
            yield block

    app, layouts = Blocks(), []
    async with app.run_test() as pilot:
        await pilot.pause()
        block = app.query_one(LineBlock)
        reflow = Compositor.reflow
        monkeypatch.setattr(Compositor, "reflow", lambda *given: (layouts.append(1), reflow(*given))[1])
        block.show(lambda width: [(("said", ""),), (("more", ""),)])
        await pilot.pause()
        assert not layouts
        block.display = True
        await pilot.pause()
        assert layouts  # shown, it asks for one
        assert block.size.height == 2
