"""What style tokens look like in the current theme, and lines as strips for widgets that draw lines."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color, ColorParseError
from textual.strip import Strip
from textual.widget import Widget

from agenteval_tui.tui.styled_text import Cell, Line, pad
from agenteval_tui.tui.theme_tokens import legible_on

# Words that set an attribute; every other word of a token is a colour of the theme.
_ATTRIBUTES = {"bold", "italic", "underline", "strike", "reverse", "dim"}
_NO_COLOURS = frozenset({"", "text"})
_PALE_ON_COLOURS = {number: f"color({number + 8})" for number in range(1, 7)} | {8: "color(7)"}
"""The colours of a 16-colour terminal that are illegible on other colours, each with its replacement."""
MOST_LAID = 1_000  # styles on styles that are kept; a theme and its texts have some hundreds
TINT = 0.22  # the share of the accent in the title line of the focused pane


class Palette:
    """The styles of one theme: `style("bold passed")`, `strip(line, width)`.

    A token is words: attributes (`bold`, `underline`, `reverse`, ...), theme colours (`passed`, `accent`,
    `role-user`, ...) and `on-NAME` for a background. An unknown word has no style, and is never an error.
    """

    def __init__(self, colours: dict[str, str], background: Color, ansi: bool) -> None:
        self._colours = colours
        self._background = background
        self._ansi = ansi
        self._cache: dict[str, Style] = {}
        self._laid: dict[tuple[Style, str, Style | None], Style] = {}

    def style(self, token: str) -> Style:
        """The style of a token, cached."""
        style = self._cache.get(token)
        if style is None:
            style = self._cache[token] = self._make(token)
        return style

    def on(self, base: Style, token: str, over: Style | None = None) -> Style:
        """The style of a token laid on `base`, and `over` laid on that, cached. Text can be read on what `over` puts
        behind it."""
        laid = self._laid.get((base, token, over))
        if laid is None:
            if len(self._laid) > MOST_LAID:
                self._laid.clear()
            laid = base + self.style(token)
            laid = readable(laid if over is None else laid + over)
            self._laid[base, token, over] = laid
        return laid

    def strip(self, line: Iterable[Cell], width: int) -> Strip:
        """The line as a strip of exactly `width` cells."""
        cells: Line = pad(line, width)
        segments = [Segment(text, self.style(token)) for text, token in cells]
        return Strip(segments, width).simplify()

    def _make(self, token: str) -> Style:
        attributes: dict[str, bool] = {}
        colour: str | None = None
        background: str | None = None
        for word in token.split():
            if word == "dim":
                colour = colour or self._colour("muted")
                if self._ansi:
                    attributes["dim"] = True
            elif word in _ATTRIBUTES:
                attributes[word] = True
            elif word.startswith("on-"):
                if self._ansi:
                    # The terminal's own text on one of its 16 colours may be unreadable; turned around it is not.
                    colour = self._colour(word[3:]) or colour
                    attributes["reverse"] = True
                else:
                    background = self._colour(word[3:]) or background
            elif word not in _NO_COLOURS:
                colour = self._colour(word) or colour
        return readable(Style(color=colour, bgcolor=background, **attributes))  # type: ignore[arg-type]

    def _colour(self, name: str) -> str | None:
        raw = self._colours.get(name)
        if raw is None:
            return None
        if raw.startswith("ansi_"):
            # Some of Textual's own have a strength behind the name ("ansi_default 50%"); 16 colours have none.
            name = raw[5:].split()[0]
            return None if name == "default" else name
        if raw.startswith("auto"):
            # "auto 60%": text of that strength on the background, as Textual's own variables say it.
            strength = raw.removeprefix("auto").strip().rstrip("%")
            contrast = self._background.get_contrast_text(1.0)
            return self._background.blend(contrast, float(strength or 100) / 100).hex6 if strength else contrast.hex6
        try:
            parsed = Color.parse(raw)
        except ColorParseError:
            return None
        return (self._background + parsed).hex6 if parsed.a < 1 else parsed.hex6


def readable(style: Style) -> Style:
    """The style with a text colour that can be read on the style's own background; unchanged where it has none. Where
    it is turned round, its background is the text. Where the terminal chooses the colours: the bright one of a pair,
    and nothing faint."""
    colour, ground = style.color, style.bgcolor
    if ground is None:
        return style
    if style.reverse:
        if colour is None or colour.triplet is None or ground.triplet is None:
            return style
        fitted = legible_on(ground.triplet.hex, colour.triplet.hex)
        return style if fitted.lower() == ground.triplet.hex else style + Style(bgcolor=fitted)
    if ground.triplet is None:
        bright = colour is not None and colour.number is not None and colour.number in _PALE_ON_COLOURS
        return style + Style(color=_PALE_ON_COLOURS[colour.number] if bright else None, dim=False)  # type: ignore
    if colour is None or colour.triplet is None:
        return style
    fitted = legible_on(colour.triplet.hex, ground.triplet.hex)
    return style if fitted.lower() == colour.triplet.hex else style + Style(color=fitted)


def palette_of(node: Widget | App[Any]) -> Palette:
    """The palette of the theme that the app shows now."""
    app = node if isinstance(node, App) else node.app
    variables, ansi = app.theme_variables, app.native_ansi_color
    # Asked for each line that is painted. A theme's variables are a new dictionary whenever any of them changes.
    for entry in _LAST:
        if entry[0] is variables and entry[1] == ansi:
            return entry[2]
    palette = _palette(app.theme, tuple(sorted(variables.items())), ansi)
    _LAST[:] = [(variables, ansi, palette)]
    return palette


_LAST: list[tuple[dict[str, str], bool, Palette]] = []


@lru_cache(maxsize=8)
def _palette(_theme: str, variables: tuple[tuple[str, str], ...], ansi: bool) -> Palette:
    colours = dict(variables)
    try:
        background = Color.parse(colours.get("background", "#000000"))
    except ColorParseError:
        background = Color(0, 0, 0)
    # The tint of a focused pane's title: with 16 colours the accent itself, turned around.
    colours.setdefault("focus", colours.get("accent", "") if ansi else _tint(background, colours.get("accent", "")))
    return Palette(colours, background, ansi)


def _tint(background: Color, colour: str) -> str:
    try:
        return background.blend(Color.parse(colour), TINT).hex6
    except ColorParseError:
        return background.hex6
