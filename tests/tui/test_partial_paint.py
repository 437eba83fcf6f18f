"""A repaint that asks for changed rows only shows what Textual's own shows."""

from __future__ import annotations

from random import Random

from rich.segment import Segment
from textual._compositor import ChopsUpdate
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from agenteval_tui.tui.terminal import partial_paint

WIDTH, HEIGHT = 50, 16


class Rows(Widget):
    """Counts which of its rows are asked for."""

    DEFAULT_CSS = "Rows { width: 1fr; height: 1fr; border-left: solid red; }"

    def __init__(self, letter: str) -> None:
        super().__init__()
        self.letter = letter
        self.asked: list[int] = []

    def render_line(self, y: int) -> Strip:
        self.asked.append(y)
        width = self.content_region.width
        return Strip([Segment(f"{self.letter}{y}".ljust(width)[:width])])


class Panes(App[None]):
    """Widgets beside each other, below each other, scrolled, and one before the others."""

    CSS = """
    Screen { layers: below above; }
    #over { layer: above; width: 17; height: 4; offset: 9 5; background: blue; }
    VerticalScroll { height: 6; }
    #long { height: 30; }
    """

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Rows("a")
            with Vertical():
                yield Rows("b")
                with VerticalScroll():
                    yield Static("\n".join(f"line {number}" for number in range(30)), id="long")
        yield Static("over the others", id="over")


def written(update: ChopsUpdate | None) -> dict[tuple[int, int], str]:
    """The characters by row and column in the changed spans."""
    cells: dict[tuple[int, int], str] = {}
    if update is None:
        return cells
    for y, first, last in update.spans:
        for x, strip in update.chops[y].items():
            if strip is not None:
                for at, character in enumerate(strip.text, x):
                    if first <= at < last:
                        cells[y, at] = character
    return cells


async def test_any_changed_places_look_as_textual_paints_them() -> None:
    random = Random(7)
    app = Panes()
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        app.query_one(VerticalScroll).scroll_to(y=7, animate=False)
        await pilot.pause()
        compositor = app.screen._compositor
        for _ in range(200):
            places = set()
            for _ in range(random.randint(1, 4)):
                x, y = random.randrange(WIDTH), random.randrange(HEIGHT)
                places.add(Region(x, y, random.randint(1, WIDTH - x), random.randint(1, HEIGHT - y)))
            compositor._dirty_regions.update(places)
            due = written(partial_paint.PAINT_OF_TEXTUAL(compositor))
            compositor._dirty_regions.update(places)
            assert written(partial_paint.paint_changes(compositor)) == due
            assert due.keys() == {(y, x) for place in places for y in place.line_range for x in place.column_range}
        assert not compositor._dirty_regions
        assert partial_paint.paint_changes(compositor) is None


async def test_only_rows_that_changed_and_are_seen_are_asked_for() -> None:
    app = Panes()
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        await pilot.pause()
        left, right = app.query(Rows)
        compositor = app.screen._compositor
        for rows in (left, right):
            rows._styles_cache.clear()
            rows.asked.clear()
        compositor._dirty_regions.update({Region(0, 2, 5, 2), Region(40, 9, 3, 1), Region(9, 6, 10, 1)})
        partial_paint.paint_changes(compositor)
        assert left.asked == [2, 3]  # row 6 is below the block that lies over it
        assert right.asked == [9]
