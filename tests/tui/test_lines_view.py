"""A scrolling view of lines: other lines are painted, and its scroll bar is right, without a new layout."""

from __future__ import annotations

import pytest
from shop import until
from textual.app import App, ComposeResult
from textual.geometry import Region

from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.lines_view import LinesView

HEIGHT = 10


class LinesApp(App[int]):
    CSS = "LinesView { height: 10; }"

    def compose(self) -> ComposeResult:
        yield LinesView()


def numbered(number: int, *, first: str = "row 0") -> list[Line]:
    return [((first if not row else f"row {row}", ""),) for row in range(number)]


def painted(view: LinesView) -> list[str]:
    return [strip.text.rstrip() for strip in view.render_lines(Region(0, 0, view.size.width, HEIGHT))]


@pytest.mark.parametrize(("before", "after"), [(30, 50), (50, 30), (50, 50), (5, 8), (8, 5), (5, 30), (30, 5), (30, 0)])
async def test_other_lines_are_painted_and_the_scroll_bar_is_theirs(before: int, after: int) -> None:
    app = LinesApp()
    async with app.run_test(size=(30, 12)) as pilot:
        view = app.query_one(LinesView)
        view.show(lambda width: numbered(before))
        await pilot.pause()
        view.show(lambda width: numbered(after, first="another"))
        await pilot.pause()
        rows = [row[0][0] for row in numbered(after, first="another")]
        assert [line for line in painted(view) if line] == rows[:HEIGHT]
        assert view.show_vertical_scrollbar == (after > HEIGHT)
        assert view.max_scroll_y == max(after - HEIGHT, 0)
        if after > HEIGHT:
            assert view.vertical_scrollbar.window_virtual_size == after
        await pilot.press("G")
        # Textual scrolls to the end after a refresh, which may come later than a pause on a busy machine.
        await until(pilot, lambda: view.scroll_offset.y == max(after - HEIGHT, 0))
        assert [line for line in painted(view) if line] == rows[-HEIGHT:]


async def test_only_rows_that_differ_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    app = LinesApp()
    async with app.run_test(size=(30, 12)) as pilot:
        view = app.query_one(LinesView)
        view.show(lambda width: numbered(30))
        await pilot.pause()
        refreshed: list[tuple[tuple[Region, ...], bool]] = []
        refresh = view.refresh

        def asked(*regions: Region, layout: bool = False, **more: bool) -> LinesView:
            refreshed.append((regions, layout))
            return refresh(*regions, layout=layout, **more)

        monkeypatch.setattr(view, "refresh", asked)
        view.show(lambda width: numbered(40, first="another"))
        assert refreshed == [((Region(0, 0, 7, 1),), False)]
