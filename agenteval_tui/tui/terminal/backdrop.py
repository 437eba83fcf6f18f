"""What lies under a sheet, tinted, painted once as long as it stays as it is.

Textual paints and tints the whole screen below anew whenever a sheet is painted itself, in whatever part. Here a line
whose pieces are those of the last time is taken from then, and how a style looks tinted is worked out once.

With a Textual whose private parts are not known (`textual_support.py`) Textual paints it, as it does without this.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen
from textual.strip import Strip
from textual.visual import RenderOptions, RichVisual
from textual.widget import Widget

from agenteval_tui.tui.terminal.textual_support import is_known

STANDS_ON: dict[str, str] = {
    "textual._compositor:Compositor._render_chops": "ca8c3359d7af",
    "textual._compositor:Compositor.render_strips": "061fb81ef37c",
    "textual.renderables.background_screen:BackgroundScreen.__rich_console__": "e0d2e7b51ee0",
    "textual.renderables.background_screen:BackgroundScreen.process_segments": "b857a6555faa",
    "textual.screen:Screen.render": "c0f72894b398",
    "textual.visual:RichVisual.render_strips": "4159f2266914",
    "textual.widget:Widget.post_render": "6545cf5a2916",
    "textual.widget:_Styled.__rich_console__": "5ed3875b747a",
}
"""What is replaced or relied on, with the first digits of the SHA-256 of its source."""

IS_KNOWN = is_known(STANDS_ON, {"textual._compositor:Compositor.render_strips": "_render_chops"})
"""Otherwise Textual paints what lies under a sheet."""


class Backdrop:
    """Knows how the screen under a sheet looked, and how that looked tinted."""

    def __init__(self) -> None:
        self._look: tuple[object, ...] = ()
        self._lines: list[tuple[list[Strip], Strip]] = []

    def under(self, sheet: Widget, renderable: Any) -> Any:
        """What the sheet is to show as its background, in place of what Textual wants to."""
        if IS_KNOWN and type(renderable) is BackgroundScreen:
            return _Tinted(self, sheet, renderable)
        return renderable

    def strips(self, screen: Screen[Any], color: Color, base: Style, width: int) -> list[Strip]:
        """The lines of `screen`, tinted with `color` where nothing else is on `base`, at most `width` cells each."""
        if self._look != (look := (screen, color, base, width)):
            self._look, self._lines = look, []
        compositor = screen._compositor
        lines: list[tuple[list[Strip], Strip]] = []
        for y, chops in enumerate(compositor._render_chops(compositor.size.region, lambda _: True)):
            pieces = [piece for piece in chops.values() if piece is not None]
            before, tinted = self._lines[y] if y < len(self._lines) else ([], None)
            if tinted is None or before != pieces:  # mostly they are the very same
                tinted = _tinted(Strip.join(pieces), color, base).crop(0, width)
            lines.append((pieces, tinted))
        self._lines = lines
        return [tinted for _, tinted in lines]


class _Tinted(RichVisual):
    """As Textual's, but for the strips."""

    def __init__(self, backdrop: Backdrop, sheet: Widget, below: BackgroundScreen) -> None:
        super().__init__(sheet, below)
        self._backdrop = backdrop
        self._below = below

    def render_strips(self, width: int, height: int | None, style: Any, options: RenderOptions) -> list[Strip]:
        """The lines of what lies under the sheet."""
        return self._backdrop.strips(self._below.screen, self._below.color, style.rich_style, width)[:height]


def _tinted(strip: Strip, color: Color, base: Style) -> Strip:
    return Strip(
        (
            Segment(text, None, control) if control else Segment(text, _style(style, color, base))
            for text, style, control in strip
        ),
        strip.cell_length,
    )


@lru_cache(maxsize=4096)
def _style(style: Style | None, color: Color, base: Style) -> Style:
    """As Textual tints it; where it can't, because the terminal's own colours are shown, dim."""
    [segment] = BackgroundScreen.process_segments([Segment(" ", style)], color)
    tinted: Style = base + segment.style
    return tinted + _DIM if color.a == 0 else tinted


_DIM = Style(dim=True)
