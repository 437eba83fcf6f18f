"""A list of any length that draws only the rows that are seen.

Rows come from a `RowSource`: the widget holds an index, never the rows. Moving the cursor repaints two rows; nothing
is animated. 100,000 rows cost what 100 cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agenteval_tui.tui.actions import bindings, keyed
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.style_tokens import Palette, palette_of
from agenteval_tui.tui.styled_text import Line, hanging, split_lines
from agenteval_tui.tui.terminal.strips import joined

CURSOR = "▌" if UNICODE else ">"  # the sign of the cursor's row: colour never says it alone
GUTTER = 1  # cells left of each row, for that sign

# Bytes are what a slow line feels: there the cursor's background covers only the row's start, where names are.
SHORT_CURSOR = 48

_Row = tuple[int, Line, bool]
"""A width, what a row shows in it, and whether the cursor is on it."""


@runtime_checkable
class RowSource(Protocol):
    """What a list shows. Called from the app's thread for each row that is painted: be quick, cache pages.

    A source that can find a key faster than by looking at every row has `index_of(key) -> int | None` too.
    """

    def count(self) -> int:
        """How many rows there are."""

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index` in at most `width` cells; `focused`: the cursor is on it."""

    def key(self, index: int) -> str:
        """What names row `index` while rows come and go."""


T = TypeVar("T")


class Rows(Generic[T]):
    """A source of given things: what is shown of one at a width, and what names it (its place)."""

    def __init__(
        self, things: Sequence[T], line: Callable[[T, int], Line], key: Callable[[T], str] | None = None
    ) -> None:
        self._things = things
        self._line = line
        self._keys = list(map(key, things) if key is not None else map(str, range(len(things))))
        self._places = {name: index for index, name in enumerate(self._keys)}

    def count(self) -> int:
        """How many rows there are."""
        return len(self._things)

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index`."""
        return self._line(self._things[index], width)

    def key(self, index: int) -> str:
        """The key of row `index`."""
        return self._keys[index]

    def index_of(self, key: str) -> int | None:
        """The row with `key`."""
        return self._places.get(key)


class VirtualList(ScrollView, can_focus=True):
    """A list over a `RowSource` with a cursor. `cursor` is the index of its row, -1 while there are no rows."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    COMPONENT_CLASSES: ClassVar[set[str]] = {"virtual-list--cursor", "virtual-list--cursor-blurred"}
    ALLOW_SELECT = False

    BINDINGS: ClassVar[list[BindingType]] = bindings("list")

    cursor: reactive[int] = reactive(-1, repaint=False, init=False)

    @dataclass
    class Highlighted(Message):
        """The cursor is on another row now (or on a row with another key)."""

        list: VirtualList
        index: int
        key: str

    @dataclass
    class Selected(Message):
        """A row was chosen: enter, or a click on the row that has the cursor already."""

        list: VirtualList
        index: int
        key: str

    def __init__(
        self,
        source: RowSource | None = None,
        *,
        empty: Sequence[Line] = (),
        id: str | None = None,
    ) -> None:
        """`empty` is what is shown while there are no rows: say what to do next."""
        super().__init__(id=id)
        self._source: RowSource = source or Rows((), lambda thing, width: ())
        # Told of a click on row and column before it chooses: True when there was a sign that means something else.
        self.on_sign: Callable[[int, int], bool] | None = None
        self._count = self._source.count()
        self._empty = tuple(empty)
        self._palette: Palette | None = None
        self._base: Style | None = None
        self._width: int | None = None  # while lines are rendered
        self._told: tuple[int, str] | None = None
        self._painted: dict[int, _Row | None] = {}
        """What each line of the widget showed when it was painted last; None: there were no rows."""
        self.set_reactive(VirtualList.cursor, 0 if self._count else -1)

    # What is shown

    @property
    def source(self) -> RowSource:
        """Where the rows come from."""
        return self._source

    @property
    def count(self) -> int:
        """How many rows are shown."""
        return self._count

    @property
    def in_view(self) -> range:
        """The rows that are in view."""
        top = self.scroll_offset.y
        return range(top, min(top + self.size.height, self._count))

    @property
    def cursor_key(self) -> str | None:
        """The key of the row under the cursor; None while there are no rows."""
        return self._source.key(self.cursor) if 0 <= self.cursor < self._count else None

    def set_source(self, source: RowSource, *, keep_key: str | None = None) -> None:
        """Show `source`. With `keep_key` the cursor goes to that row, which stays at its height on the screen.

        Without it, or when the key is gone, the cursor stays at its index as far as there are rows.
        """
        before = self.cursor
        self._source = source
        self._count = source.count()
        place = None if keep_key is None else self.index_of(keep_key)
        target = max(before, 0) if place is None else place
        self.virtual_size = Size(0, self._height())
        # Without its watcher, which would compare rows of two sources.
        self.set_reactive(VirtualList.cursor, min(target, self._count - 1))
        if place is not None and before >= 0 and place != before:
            # Rows came or went above: the row under the cursor stays where the eye is.
            self._scroll_rows(self.scroll_offset.y + place - before)
        self._reveal()
        self._refresh_changed()
        self._tell()

    def set_empty(self, lines: Sequence[Line]) -> None:
        """What to show while there are no rows. `{suites.run}` and the like stand for the person's keys."""
        self._empty = tuple(lines)
        if not self._count:
            self.virtual_size = Size(0, self._height())
            self.refresh()

    def refresh_rows(self, indices: Iterable[int] | None = None) -> None:
        """Rows `indices` (None: all) look different now; their number and keys are as before."""
        if indices is None:
            self.refresh()
            return
        top, height = self.scroll_offset.y, self.size.height
        for index in indices:
            if top <= index < top + height:
                self.refresh(Region(0, index - top, self.scrollable_content_region.width, 1))

    def index_of(self, key: str) -> int | None:
        """The row with `key`, None when there is none. Asks the source's own `index_of` where it has one."""
        finder = getattr(self._source, "index_of", None)
        if finder is not None:
            index = finder(key)
            return index if isinstance(index, int) else None
        return next((index for index in range(self._count) if self._source.key(index) == key), None)

    def move_to_key(self, key: str, *, center: bool = False) -> bool:
        """Put the cursor on the row with `key`; False when there is none."""
        index = self.index_of(key)
        if index is None:
            return False
        self.cursor = index
        if center:
            self._scroll_rows(index - self.size.height // 2)
        return True

    # Cursor

    def validate_cursor(self, cursor: int) -> int:
        """The nearest row that there is."""
        return max(0, min(cursor, self._count - 1)) if self._count else -1

    def watch_cursor(self, old: int, new: int) -> None:
        """Repaint the row that lost the cursor and the one that got it."""
        # What was scrolled is painted whole anyway.
        if self._reveal():
            return self._tell()
        self._refresh_row(old)
        self._refresh_row(new)
        return self._tell()

    def action_cursor_down(self) -> None:
        """One row down."""
        self.cursor += 1

    def action_cursor_up(self) -> None:
        """One row up."""
        self.cursor -= 1

    def action_page_down(self) -> None:
        """A screenful down; the cursor stays at its height on the screen."""
        self._page(1)

    def action_page_up(self) -> None:
        """A screenful up."""
        self._page(-1)

    def action_half_page(self, direction: int) -> None:
        """Half a screenful; the cursor moves by as many rows."""
        if self._count:
            step = direction * max(self.size.height // 2, 1)
            self.cursor = min(max(self.cursor + step, 0), self._count - 1)

    def action_first(self) -> None:
        """The first row."""
        self.cursor = 0

    def action_last(self) -> None:
        """The last row."""
        self.cursor = self._count - 1

    def action_select(self) -> None:
        """Choose the row under the cursor."""
        key = self.cursor_key
        if key is not None:
            self.post_message(self.Selected(self, self.cursor, key))

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor; a click on the cursor's row chooses it."""
        inside = event.get_content_offset(self)
        if inside is None:
            return
        index = inside.y + self.scroll_offset.y
        if not 0 <= index < self._count:
            return
        event.stop()
        if self.on_sign is not None and self.on_sign(index, inside.x):
            return
        if index == self.cursor:
            self.action_select()
        else:
            self.cursor = index

    # Painting

    def notify_style_update(self) -> None:
        """The theme or the styles changed."""
        self._palette = self._base = None
        super().notify_style_update()

    def on_mount(self) -> None:
        """Tell the height, and who has the cursor."""
        self.virtual_size = Size(0, self._height())
        self._tell()

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        if not self._count:
            self.virtual_size = Size(0, self._height())
        self._reveal()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A row each, where its height is that of its content."""
        return self._count or len(self._empty_lines(width))

    def on_focus(self) -> None:
        """The cursor's row looks different with the focus."""
        self._refresh_row(self.cursor)

    def on_blur(self) -> None:
        """The cursor's row looks different without the focus."""
        self._refresh_row(self.cursor)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Several lines: what they all need is looked up once."""
        self._base, self._width = self.rich_style, self.scrollable_content_region.width
        try:
            return super().render_lines(crop)
        finally:
            self._width = None

    def render_line(self, y: int) -> Strip:
        """Line `y` of the widget."""
        width = self.scrollable_content_region.width if self._width is None else self._width
        base = self._base or self.rich_style
        if self._palette is None:
            self._palette = palette_of(self)
        index = y + self.scroll_offset.y
        if not self._count:
            self._painted[y] = None
            lines = self._empty_lines(width)
            line = lines[index] if index < len(lines) else ()
            return self._palette.strip(line, width).apply_style(base)
        _, line, focused = self._painted[y] = self._row_at(y, width)
        if index >= self._count:
            return Strip.blank(width, base)
        sign = (CURSOR, "accent" if self.has_focus else "dim") if focused else (" ", "")
        # Cut where the cursor's background ends, so that moving the cursor repaints nothing behind it.
        head, tail = split_lines((sign, *line), width, self._span(width))
        on = self._palette.on
        if focused:
            name = "virtual-list--cursor" if self.has_focus else "virtual-list--cursor-blurred"
            cursor = self.get_component_rich_style(name)
            over = Style(bgcolor=cursor.bgcolor, reverse=cursor.reverse, underline=cursor.underline)
            segments = joined((text, on(base, token, over)) for text, token in head)
        else:
            segments = joined((text, on(base, token)) for text, token in head)
        return Strip([*segments, *joined((text, on(base, token)) for text, token in tail)], width)

    def _span(self, width: int) -> int:
        """Cells of the cursor's background."""
        return min(width, SHORT_CURSOR) if getattr(self.app, "is_slow_line", False) else width

    def _refresh_changed(self) -> None:
        """Repaint the rows in view that look different now: some lists are set anew many times in a second."""
        # Of what is in view: a list that was taller has painted more lines.
        painted = [self._painted.get(y) for y in range(self.size.height)]
        if not self._count or None in painted:
            self.refresh()
            return
        width = self.scrollable_content_region.width
        changed = [y for y, row in enumerate(painted) if row != self._row_at(y, width)]
        if len(changed) > self.size.height // 2:
            self.refresh()
        elif changed:
            self.refresh(*[Region(0, y, width, 1) for y in changed])

    def _row_at(self, y: int, width: int) -> _Row:
        """What line `y` of the widget shows, while there are rows."""
        index = y + self.scroll_offset.y
        if index >= self._count:
            return (width, (), False)
        focused = index == self.cursor
        return (width, self._source.line(index, width - GUTTER, focused=focused), focused)

    def _refresh_row(self, index: int) -> None:
        if not 0 <= index < self._count:
            return
        width = self.scrollable_content_region.width
        self.refresh(Region(0, index - self.scroll_offset.y, width, 1))

    def _reveal(self) -> bool:
        """Scroll the cursor's row into sight; True when that scrolled."""
        if self.cursor < 0 or not self.size.height:
            return False
        top, height = self.scroll_offset.y, self.size.height
        if self.cursor < top:
            return self._scroll_rows(self.cursor)
        if self.cursor >= top + height:
            return self._scroll_rows(self.cursor - height + 1)
        return False

    def _scroll_rows(self, top: int) -> bool:
        before = self.scroll_offset.y
        self.scroll_to(y=max(top, 0), animate=False, force=True)
        return self.scroll_offset.y != before

    def _page(self, direction: int) -> None:
        if not self._count:
            return
        # One row of the page before stays in sight.
        step = max(self.size.height - 1, 1) * direction
        target = self.validate_cursor(self.cursor + step)
        # First the rows, then the cursor, so that it stays at its height.
        self._scroll_rows(min(self.scroll_offset.y + step, self._count - self.size.height))
        self.cursor = target

    def _height(self) -> int:
        return self._count or len(self._empty_lines(self.scrollable_content_region.width))

    def _empty_lines(self, width: int) -> list[Line]:
        """What is shown while there are no rows: no line of it is cut."""
        lines = keyed(self._empty, getattr(self.app, "keymap", {}))
        return [each for line in lines for each in hanging(line, width)] if width else lines

    def _tell(self) -> None:
        key = self.cursor_key
        position = None if key is None else (self.cursor, key)
        if key is not None and position != self._told and self.is_running:
            self.post_message(self.Highlighted(self, self.cursor, key))
        # Before it runs a message reaches nobody: `on_mount` tells again.
        self._told = position if self.is_running else None
