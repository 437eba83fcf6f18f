"""The colours that every theme has, by token, and how those that a theme leaves out are made from the others.

A theme out of a file names what it likes; Textual's own know none of our tokens but a few under other names. What is
missing starts from our dark or our light theme and is then fitted to the theme's background, so that text can be read
on it (4.5:1), rules and the cursor's row can be seen on it (1.8:1), and no two outcomes look alike.

Contrast is that of WCAG 2.2 (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio), distance is Euclidean in OKLab
(https://bottosson.github.io/posts/oklab/).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from textual.color import Color

TEXT_CONTRAST = 4.5  # the least that WCAG 2 (AA) asks of text
RULE_CONTRAST = 1.8  # of lines, which are seen and not read
APART = 0.045
"""The smallest distance between two outcomes in OKLab, where the distance between black and white is 1."""

ROLE_APART = 0.07
ROLE_HUE = 25
"""Roles are beside outcomes in every row. Their colours have this distance from those of bad outcomes, and this
difference in hue (degrees) from passed and failed."""

DARK: dict[str, str] = {
    "background": "#14161b",
    "surface": "#14161b",
    "panel": "#1d2129",
    "foreground": "#d6d9e0",
    "muted": "#8b91a0",
    "rule": "#454c5b",
    "accent": "#b9a5f0",
    "cursor": "#39435c",
    "passed": "#7fcf8b",
    "failed": "#f27a83",
    "error": "#e8ab5f",
    "flaky": "#d9d46a",
    "running": "#74b4f2",
    "review": "#62d0cf",
    "evidence-hit": "#234a2f",
    "evidence-miss": "#5a2530",
    "near-miss": "#5a4520",
    "near-miss-text": "#dcb789",
    "added": "#7fcf8b",
    "removed": "#f27a83",
    "role-user": "#e3b9a4",
    "role-assistant": "#d6d9e0",
    "role-tool": "#8fb8b0",
    "reasoning": "#8b91a0",
    "json-key": "#a9c1e8",
    "json-string": "#b5cf9a",
    "json-number": "#dcb789",
    "json-literal": "#dcb789",
    "comment": "#8b91a0",
}
"""Our dark theme, "dusk"."""

LIGHT: dict[str, str] = {
    "background": "#fbfaf7",
    "surface": "#fbfaf7",
    "panel": "#f0eee8",
    "foreground": "#24262b",
    "muted": "#646871",
    "rule": "#bcb8ad",
    "accent": "#5b3fb0",
    "cursor": "#bcb0e3",
    "passed": "#1c7a34",
    "failed": "#b3202f",
    "error": "#9a5b00",
    "flaky": "#6f6a00",
    "running": "#1560a8",
    "review": "#00727a",
    "evidence-hit": "#cdeed5",
    "evidence-miss": "#f8d0d4",
    "near-miss": "#f6e3b4",
    "near-miss-text": "#7d5200",
    "added": "#1c7a34",
    "removed": "#b3202f",
    "role-user": "#8c4a2f",
    "role-assistant": "#24262b",
    "role-tool": "#1d6b60",
    "reasoning": "#646871",
    "json-key": "#24529a",
    "json-string": "#3f6b1e",
    "json-number": "#8a4b08",
    "json-literal": "#8a4b08",
    "comment": "#646871",
}
"""Our light theme, "paper"."""

SURFACES = ("background", "surface", "panel")
"""What text stands on."""
STRUCTURE = ("rule", "cursor")
"""What is seen and not read."""
MARKS = {"evidence-hit": "passed", "evidence-miss": "failed", "near-miss": "near-miss-text"}
"""What text is marked with, each with the text's token of the same meaning."""
TEXTS = tuple(token for token in DARK if token not in {*SURFACES, *STRUCTURE, *MARKS})
DISTINCT = ("passed", "failed", "error", "flaky", "running", "review", "accent", "role-user")
"""No two of these mean the same, so no two look the same. In this order: the later gives way."""


def contrast(colour: Color, other: Color) -> float:
    """How far apart two colours are in brightness, 1 (not at all) to 21 (black and white)."""
    lighter, darker = sorted((_luminance(colour), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def distance(colour: Color, other: Color) -> float:
    """How different two colours look, 0 (the same) to 1 (black and white)."""
    return math.dist(_oklab(colour), _oklab(other))


def apart(token: str, other: str) -> float:
    """How far from each other two of `DISTINCT` are at least."""
    return ROLE_APART if "role-user" in (token, other) and {token, other} & {"failed", "error"} else APART


def hue_between(colour: Color, other: Color) -> float:
    """How many degrees two colours are apart on the circle of hues, 0 to 180."""
    angles = [math.degrees(math.atan2(b, a)) for _, a, b in (_oklab(colour), _oklab(other))]
    return abs((angles[0] - angles[1] + 180) % 360 - 180)


def legible(colour: Color, grounds: Sequence[Color], ratio: float = TEXT_CONTRAST) -> Color:
    """The colour, or the nearest one towards white or black that has this contrast with all of `grounds`.

    Where no colour has it, black or white: whichever comes nearer.
    """

    def worst(candidate: Color) -> float:
        return min(contrast(candidate, ground) for ground in grounds)

    if worst(colour) >= ratio:
        return colour
    end = max((Color(255, 255, 255), Color(0, 0, 0)), key=worst)
    for step in range(1, 50):
        candidate = colour.blend(end, step / 50)
        if worst(candidate) >= ratio:
            return candidate
    return end


@lru_cache(maxsize=512)
def legible_on(colour: str, ground: str) -> str:
    """A text's colour as it can be read on `ground`; both and the result are `#rrggbb`."""
    return legible(Color.parse(colour), (Color.parse(ground),)).hex6


def complete(own_colours: Mapping[str, str], *, dark: bool, fitted: bool = False) -> dict[str, str]:
    """All tokens of a theme that names only `own_colours`. What it names stays as it is, unless `fitted` is set: then
    that gives way too where it can't be read or told apart."""
    base = DARK if dark else LIGHT
    # Only the terminal knows what these look like: nothing can be measured or fitted.
    if any(colour.startswith(("ansi", "auto")) for colour in own_colours.values()):
        return {**base, **own_colours}
    colours = {**base, **own_colours}
    fixed = set() if fitted else set(own_colours)
    if "surface" not in own_colours:
        colours["surface"] = colours["background"]
    if "panel" not in own_colours and "background" in own_colours:
        colours["panel"] = _parse(colours["background"]).blend(_parse(colours["foreground"]), 0.06).hex6
    for twin, token in (("added", "passed"), ("removed", "failed"), ("role-assistant", "foreground")):
        if twin not in own_colours:
            colours[twin] = colours[token]
    for twin in ("reasoning", "comment"):
        if twin not in own_colours:
            colours[twin] = colours["muted"]
    grounds = [_parse(colours[token]) for token in SURFACES]
    for token in TEXTS:
        if token not in fixed:
            # What is written on the cursor's row as well, which stands out from the background itself.
            ratio = (
                TEXT_CONTRAST * (RULE_CONTRAST + 0.05) if token in ("foreground", "role-assistant") else TEXT_CONTRAST
            )
            colours[token] = legible(_parse(colours[token]), grounds, ratio).hex6
    # After the texts are legible, and before what depends on them.
    _tell_apart(colours, base, fixed, grounds)
    background, foreground = grounds[0], _parse(colours["foreground"])
    if "rule" not in fixed:
        colours["rule"] = legible(_parse(colours["rule"]), grounds[:1], RULE_CONTRAST).hex6
    if "cursor" not in fixed:
        colours["cursor"] = _cursor(colours, background, foreground)
    for mark, token in MARKS.items():
        if mark not in fixed:
            start = _parse(base[mark]) if mark not in own_colours else _parse(own_colours[mark])
            colours[mark] = _mark(start, _parse(colours[token]), background, foreground).hex6
    return colours


def _cursor(colours: Mapping[str, str], background: Color, foreground: Color) -> str:
    """A row's background that is seen and that the foreground can be read on."""
    own_colour = _parse(colours["cursor"])
    for tint in (own_colour, _parse(colours["accent"]), foreground):
        for step in range(8, 60):
            candidate = background.blend(tint, step / 60) if tint is not own_colour else own_colour
            visible = contrast(candidate, background) >= RULE_CONTRAST
            if visible and contrast(candidate, foreground) >= TEXT_CONTRAST:
                return candidate.hex6
            if tint is own_colour:
                break
    return background.blend(foreground, 0.25).hex6


def _mark(start: Color, meaning: Color, background: Color, foreground: Color) -> Color:
    """A marked text's background: `start` where it does, else the background tinted with its meaning, as strongly as
    the foreground can be read on."""
    if contrast(start, foreground) >= TEXT_CONTRAST and 1.15 <= contrast(start, background) <= 4:
        return start
    for step in range(40, 5, -1):
        candidate = background.blend(meaning, step / 100)
        if contrast(candidate, foreground) >= TEXT_CONTRAST:
            return candidate
    return background


def _tell_apart(colours: dict[str, str], base: Mapping[str, str], fixed: set[str], grounds: Sequence[Color]) -> None:
    """Change what looks like another token that means something else."""
    # What the theme names does not give way, so it comes first.
    settled = [(token, _parse(colours[token])) for token in DISTINCT if token in fixed]
    for token in DISTINCT:
        if token in fixed:
            continue

        def room(colour: Color, token: str = token) -> float:
            """How much farther from the others than it has to be; below 0: too near."""
            return min((_room(token, colour, name, other) for name, other in settled), default=1.0)

        now = _parse(colours[token])
        # The colour as it is, that of our own theme, then both turned further and further round the circle of hues: the
        # first that is far enough, else the farthest.
        candidates = [now, legible(_parse(base[token]), grounds)]
        candidates += [
            legible(_turned(of, degrees), grounds) for degrees in (30, -30, 60, -60, 90, -90, 150) for of in candidates
        ]
        chosen = next((candidate for candidate in candidates if room(candidate) >= 0), max(candidates, key=room))
        colours[token] = chosen.hex6
        settled.append((token, chosen))


def _room(token: str, colour: Color, other_token: str, other: Color) -> float:
    room = distance(colour, other) - apart(token, other_token)
    pair = {token, other_token}
    if "role-user" in pair and pair & {"passed", "failed"} and hue_between(colour, other) < ROLE_HUE:
        return min(room, 0.0) - APART
    return room


def _turned(colour: Color, degrees: float) -> Color:
    hue, saturation, lightness = colour.hsl
    return Color.from_hsl((hue + degrees / 360) % 1, max(saturation, 0.35), lightness)


def _parse(colour: str) -> Color:
    return Color.parse(colour)


def _linear(colour: Color) -> tuple[float, float, float]:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized
    )
    return red, green, blue


def _luminance(colour: Color) -> float:
    red, green, blue = _linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _oklab(colour: Color) -> tuple[float, float, float]:
    red, green, blue = _linear(colour)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )
