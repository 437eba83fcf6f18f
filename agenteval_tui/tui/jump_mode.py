"""Jump mode: letters appear on what can be seen and gone to; typing them goes there.

The letters are small widgets over the screen, not a screen of their own: what is under them is not sent again, and
nothing loses the focus that it had. So it works over sheets, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct
from textual.errors import NoWidget
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from agenteval_tui.tui.style_tokens import palette_of
from agenteval_tui.tui.widgets.blocks_view import BlocksView
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.virtual_list import GUTTER, VirtualList

LETTERS = "asdfghjklqwertyuiopzxcvbnm"
MOST = len(LETTERS) ** 2  # labels have two letters at most
TABS = "tabs"  # the id of a line whose words name panes: a click on one shows its pane


class Target(Struct, frozen=True):
    """Something to go to: the cell of the screen where its letters stand, and what goes there (and opens it)."""

    x: int
    y: int
    go: Callable[[], None]
    open: Callable[[], None] | None = None


@runtime_checkable
class HasSpots(Protocol):
    """A widget that has more to go to than itself."""

    def jump_spots(self) -> Iterable[Target]:
        """What can be gone to, in cells of the screen."""


def codes(count: int) -> list[str]:
    """Letters for `count` targets, none the beginning of another, the shortest and nearest first."""
    size = len(LETTERS)
    count = min(count, MOST)
    # Enough first letters start pairs that there is room for all.
    pairs = 0
    while (size - pairs) + pairs * size < count:
        pairs += 1
    single = list(LETTERS[: size - pairs])
    double = [first + second for first in LETTERS[size - pairs :] for second in LETTERS]
    return (single + double)[:count]


def targets(screen: Screen[Any]) -> list[Target]:
    """What a person sees and can go to: panes and fields first, then their rows, then panes behind tabs."""
    panes: list[Target] = []
    rows: list[Target] = []
    for widget in screen.focus_chain:
        region = _seen_region(screen, widget)
        if region is None:
            continue
        panes.append(Target(region.x, region.y, _focus(widget)))
        rows += _rows_of(widget, region)
    tabs = [spot for block in screen.query(f"LineBlock#{TABS}").results(LineBlock) for spot in _tabs(screen, block)]
    places = {(target.x, target.y) for target in panes}
    # A pane of rows has its own letters on its first row's place: that row's letters are beside them.
    moved = [Target(t.x + 2 * ((t.x, t.y) in places), t.y, t.go, t.open) for t in rows]
    return [*panes, *tabs, *moved][:MOST]


def _seen_region(screen: Screen[Any], widget: Widget) -> Region | None:
    """The part of a widget that is on the screen; None when nothing of it is."""
    try:
        visible_region = screen.find_widget(widget).visible_region
    except NoWidget:  # it is not laid out
        return None
    return visible_region if visible_region.area and widget.visible else None


def _focus(widget: Widget) -> Callable[[], None]:
    def go() -> None:
        widget.focus()

    return go


def _rows_of(widget: Widget, region: Region) -> Iterator[Target]:
    if isinstance(widget, HasSpots):
        yield from widget.jump_spots()
    elif isinstance(widget, VirtualList):
        top = widget.scroll_offset.y
        for y in range(min(region.height, widget.count - top)):
            yield Target(region.x + GUTTER - 1, region.y + y, _row(widget, top + y), _opened(widget, top + y))
    elif isinstance(widget, BlocksView) and widget.cursor >= 0:
        last = -1
        for y in range(region.height):
            row = y + widget.scroll_offset.y
            if row >= widget.document.height:
                return
            block = widget.document.block_at(row)
            if block != last:
                last = block
                yield Target(region.x, region.y + y, _block(widget, block))


# By their keys: what is listed may be another when the letters are typed.


def _row(view: VirtualList, index: int) -> Callable[[], None]:
    key = view.source.key(index)

    def go() -> None:
        view.focus()
        view.move_to_key(key)

    return go


def _opened(view: VirtualList, index: int) -> Callable[[], None]:
    key = view.source.key(index)

    def go() -> None:
        view.focus()
        if view.move_to_key(key):
            view.action_select()

    return go


def _block(view: BlocksView[Any], index: int) -> Callable[[], None]:
    key = view.document.blocks[index].key

    def go() -> None:
        view.focus()
        if (now := view.document.index_of(key)) is not None:
            view.cursor = now

    return go


def _tabs(screen: Screen[Any], block: LineBlock) -> Iterator[Target]:
    region = _seen_region(screen, block)
    if region is None:
        return
    column = 0
    for text, _ in (block.lines(region.width) or ((),))[0]:
        word = text.strip()
        if len(word) > 1:
            x = column + text.index(word[0])
            yield Target(region.x + x, region.y, _click(block, x))
        column += len(text)


def _click(block: LineBlock, x: int) -> Callable[[], None]:
    def go() -> None:
        block.post_message(LineBlock.Clicked(block, x, 0))

    return go


class JumpLabel(Widget):
    """The letters of a target that are still to be typed."""

    DEFAULT_CSS = "JumpLabel { overlay: screen; position: absolute; height: 1; }"

    def __init__(self, target: Target, code: str) -> None:
        super().__init__()
        self.target = target
        self.code = code
        self.styles.offset = (target.x, target.y)
        self.styles.width = len(code)

    def render_line(self, y: int) -> Strip:
        return palette_of(self).strip(((self.code, "bold reverse accent"),), self.size.width)


class Jump:
    """One jump: from when the letters appear until one is gone to, or it is given up."""

    def __init__(self, screen: Screen[Any]) -> None:
        self._screen = screen
        places = targets(screen)
        self._labels: Sequence[JumpLabel] = [
            JumpLabel(target, code) for target, code in zip(places, codes(len(places)), strict=False)
        ]
        self._typed = ""

    @property
    def is_seen(self) -> bool:
        """Is the screen that it is on the one that is shown?"""
        return self._screen.is_current

    def begin(self) -> bool:
        """Show the letters; False when there is nothing to go to."""
        if self._labels:
            self._screen.mount(*self._labels)
        return bool(self._labels)

    def key(self, character: str | None) -> bool:
        """Take a key; True when the jump continues. A capital as the last letter opens its target."""
        if character is None or character.lower() not in LETTERS:
            self.end()
            return False
        self._typed += character.lower()
        remaining = [label for label in self._labels if label.code.startswith(self._typed)]
        for label in remaining:
            if label.code == self._typed:
                self.end()
                (label.target.open if character.isupper() and label.target.open else label.target.go)()
                return False
        if not remaining:
            self.end()
            return False
        for label in self._labels:
            label.display = label in remaining
        return True

    def end(self) -> None:
        """Take the letters away."""
        for label in self._labels:
            label.remove()
