"""The virtual list: what it asks of its source, what the keys do, and what it costs a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from listed import listed
from textual.app import App, ComposeResult
from textual.strip import Strip

from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.virtual_list import VirtualList


class Numbers:
    """`size` rows named by their number; remembers which were asked for."""

    def __init__(self, size: int, first: int = 0) -> None:
        self.size = size
        self.first = first
        self.asked: set[int] = set()

    def count(self) -> int:
        return self.size

    def key(self, index: int) -> str:
        return f"row-{index + self.first}"

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        self.asked.add(index)
        return ((f"number {index + self.first}", "bold" if focused else ""),)


class ListApp(App[None]):
    def __init__(self, source: Any, **options: Any) -> None:
        super().__init__()
        self.list = VirtualList(source, **options)
        self.seen: list[tuple[str, int, str]] = []

    def compose(self) -> ComposeResult:
        yield self.list

    def on_virtual_list_highlighted(self, message: VirtualList.Highlighted) -> None:
        self.seen.append(("highlighted", message.index, message.key))

    def on_virtual_list_selected(self, message: VirtualList.Selected) -> None:
        self.seen.append(("selected", message.index, message.key))


def shown(app: ListApp, y: int) -> str:
    return app.list.render_line(y).text.rstrip()


async def test_only_the_rows_in_sight_are_asked_for() -> None:
    source = Numbers(100_000)
    app = ListApp(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("G")
        await pilot.pause()
        assert app.list.cursor == 99_999
        assert shown(app, 23) == "▌number 99999"
    assert len(source.asked) <= 2 * 24 + 2
    assert {index for index in source.asked if index > 30} == set(range(99_976, 100_000))


async def test_keys_move_the_cursor_and_the_view_follows() -> None:
    app = ListApp(Numbers(100))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("j", "down", "k")
        assert app.list.cursor == 1
        await pilot.press("k", "k", "k")
        assert app.list.cursor == 0
        await pilot.press("pagedown")
        assert (app.list.cursor, app.list.scroll_offset.y) == (9, 9)
        await pilot.press("pageup", "end")
        assert (app.list.cursor, app.list.scroll_offset.y) == (99, 90)
        await pilot.press("pagedown", "down")
        assert app.list.cursor == 99
        await pilot.press("home")
        assert (app.list.cursor, app.list.scroll_offset.y) == (0, 0)
        await pilot.press("j", "enter")
        await pilot.pause()
    assert app.seen[0] == ("highlighted", 0, "row-0")
    assert app.seen[-2:] == [("highlighted", 1, "row-1"), ("selected", 1, "row-1")]


async def test_each_move_is_told_once() -> None:
    app = ListApp(Numbers(5))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("j", "j", "G", "j", "j")
        app.list.refresh_rows([0, 1])
        app.list.refresh_rows()
        await pilot.pause()
    assert [index for kind, index, _ in app.seen if kind == "highlighted"] == [0, 1, 2, 4]


async def test_clicks_and_wheel() -> None:
    app = ListApp(Numbers(100))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.click(VirtualList, offset=(5, 3))
        assert app.list.cursor == 3
        assert app.list.has_focus
        await pilot.click(VirtualList, offset=(5, 3))
        await pilot.pause()
        assert app.seen[-1] == ("selected", 3, "row-3")
        app.list.scroll_to(y=20, animate=False)
        await pilot.pause()
        assert app.list.cursor == 3, "looking around does not move the cursor"
        await pilot.click(VirtualList, offset=(5, 3))
        assert app.list.cursor == 23


async def test_rows_that_come_and_go_leave_the_cursor_on_its_row() -> None:
    app = ListApp(Numbers(100))
    async with app.run_test(size=(40, 10)) as pilot:
        app.list.move_to_key("row-50")
        await pilot.pause()
        height = app.list.cursor - app.list.scroll_offset.y
        # Five new rows above, as in a history while runs end.
        app.list.set_source(Numbers(105, first=-5), keep_key=app.list.cursor_key)
        await pilot.pause()
        assert app.list.cursor_key == "row-50"
        assert app.list.cursor == 55
        assert app.list.cursor - app.list.scroll_offset.y == height
        app.list.set_source(Numbers(3), keep_key="row-50")
        await pilot.pause()
        assert app.list.cursor == 2
        assert shown(app, 2) == "▌number 2"
        app.list.set_source(Numbers(0))
        assert (app.list.cursor, app.list.cursor_key) == (-1, None)
        app.list.set_source(Numbers(3))
        assert app.list.cursor == 0


class CountedList(VirtualList):
    """Remembers which of its lines were painted."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.lines: list[int] = []

    def render_line(self, y: int) -> Strip:
        self.lines.append(y)
        return super().render_line(y)


async def test_rows_that_are_set_anew_are_painted_where_they_look_different() -> None:
    app = ListApp(listed())
    view = app.list = CountedList(listed((f"row-{n}", ((f"old {n}", ""),)) for n in range(50)))
    async with app.run_test(size=(40, 10)) as pilot:

        async def painted(changed: Mapping[int, str], count: int = 50) -> list[int]:
            await pilot.pause()
            view.lines.clear()
            rows = ((f"row-{n}", ((changed.get(n, f"old {n}"), ""),)) for n in range(count))
            view.set_source(listed(rows), keep_key=view.cursor_key)
            await pilot.pause()
            return sorted(set(view.lines))

        def seen() -> list[str]:
            return [strip.text.rstrip(" ▁▂▃▄▅▆▇█") for strip in app.screen._compositor.render_strips()]

        assert await painted({}) == []
        assert await painted({3: "new", 30: "not in view"}) == [3]
        assert seen()[2:5] == [" old 2", " new", " old 4"]
        assert await painted({}) == [3]
        assert seen()[3] == " old 3"
        await pilot.press("down")
        assert await painted({}, count=4) != []
        assert seen()[:6] == [" old 0", "▌old 1", " old 2", " old 3", "", ""]
        view.set_source(listed())
        assert await painted({}, count=2) != []
        assert [text.strip("▌ ") for text in seen()[:3]] == ["old 0", "old 1", ""]


async def test_a_list_that_was_taller_paints_no_row_again_that_looks_as_before() -> None:
    app = ListApp(listed())
    view = app.list = CountedList(listed())
    rows = [(f"row-{n}", ((f"number {n}", ""),)) for n in range(50)]
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.pause()
        await pilot.resize_terminal(40, 10)
        view.set_source(listed(rows))
        await pilot.pause()
        view.lines.clear()
        view.set_source(listed(rows), keep_key=view.cursor_key)
        await pilot.pause()
        assert view.lines == []


async def test_an_empty_list_says_what_to_do() -> None:
    app = ListApp(listed(), empty=[(("No runs yet.", ""),), (("r", "accent"), (" runs the samples", "dim"))])
    async with app.run_test(size=(40, 10)) as pilot:
        assert shown(app, 0) == "No runs yet."
        assert shown(app, 1) == "r runs the samples"
        await pilot.press("j", "k", "G", "enter", "pagedown")
        assert app.list.cursor == -1
        await pilot.pause()
    assert app.seen == []


async def test_a_row_is_cut_with_an_ellipsis_before_the_scrollbar() -> None:
    app = ListApp(listed([(str(n), (("x" * 200, ""),)) for n in range(50)]))
    async with app.run_test(size=(40, 10)):
        text = app.list.render_line(0).text
        assert text == "▌" + "x" * 37 + "…"


async def test_the_cursors_row_is_as_wide_as_its_list_and_short_on_a_slow_line() -> None:
    class Slow(ListApp):
        is_slow_line = False

    def tinted() -> int:
        row = app.list.render_line(app.list.cursor)
        colours = [s.style.bgcolor if s.style else None for s in row for _ in s.text]
        return sum(colour == colours[0] for colour in colours)

    app = Slow(Numbers(9))
    async with app.run_test(size=(120, 10)) as pilot:
        assert tinted() == 120
        app.is_slow_line = True
        await pilot.press("j")
        assert tinted() == 48
        assert len({s.style.bgcolor for s in app.list.render_line(0) if s.style}) == 1


async def test_keys_are_found_without_a_finder() -> None:
    app = ListApp(Numbers(100))
    async with app.run_test(size=(40, 10)) as pilot:
        assert app.list.move_to_key("row-77", center=True)
        await pilot.pause()
        assert app.list.cursor == 77
        assert app.list.scroll_offset.y == 72
        assert not app.list.move_to_key("row-1000")
        assert app.list.cursor == 77


async def test_the_theme_may_change() -> None:
    app = ListApp(listed([("a", (("text", "accent"),))]))
    async with app.run_test(size=(40, 10)) as pilot:
        before = app.list.render_line(0)
        app.theme = "textual-light"
        await pilot.pause()
        after = app.list.render_line(0)
        assert before.text == after.text
        assert [s.style for s in before] != [s.style for s in after]


SOURCE = """
from agenteval_tui.tui.styled_text import spread
from agenteval_tui.tui.terminal.terminal_app import TerminalApp
from agenteval_tui.tui.widgets.virtual_list import VirtualList

class Runs:
    def count(self):
        return 100_000
    def key(self, index):
        return str(index)
    def line(self, index, width, *, focused):
        start = (("✗ ", "error"), (f"customers-germany {index} ", ""), ("sql-assistant run 3 of 5", "dim"))
        return spread(start, (("40 %", "bold"), (" ▂▂▅▂▂", "accent"), (" 1.4 s", "dim")), width)

class ListApp(TerminalApp):
    def compose(self):
        yield VirtualList(Runs())

ListApp().run()
"""


@pytest.mark.e2e
def test_a_cursor_move_with_a_full_row_costs_less_than_500_bytes_and_idle_nothing(
    run_in_terminal: Callable[..., Any],
) -> None:
    with run_in_terminal(SOURCE, columns=120, rows=40) as terminal:
        terminal.wait_for("customers-germany 39 ")
        terminal.settle()
        for key in ("j", "k", "\x1b[B", "j"):
            cost = terminal.bytes_for(key)
            assert 0 < cost < 500
        assert terminal.screen.display[2].startswith("▌✗ customers-germany 2 ")
        assert terminal.read(1.5) == b""
