"""Themes: the bundled ones load; a broken one is an error that names file and key, never a crash."""

from __future__ import annotations

import itertools
import re
from functools import cache
from pathlib import Path

import pytest
from faint import faint_pieces
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.presenters.tabs import pane_title
from agenteval_tui.tui.style_tokens import Palette, _palette
from agenteval_tui.tui.theme_tokens import (
    APART,
    DARK,
    DISTINCT,
    LIGHT,
    MARKS,
    RULE_CONTRAST,
    STRUCTURE,
    SURFACES,
    TEXT_CONTRAST,
    TEXTS,
    complete,
    contrast,
    distance,
    hue_between,
)
from agenteval_tui.tui.themes import default_theme, load_theme, load_themes, with_tokens


def test_the_bundled_themes_load_and_know_every_token() -> None:
    themes, problems = load_themes([directories.bundled("themes")])
    assert problems == []
    assert {"dusk", "paper", "contrast", "sixteen"} <= set(themes)
    for theme in themes.values():
        known = {**theme.to_color_system().generate(), **theme.variables}
        assert not [token for token in DARK if token not in known]
    assert default_theme() == themes["dusk"], "what is shown before the files are read"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: x\ncolors: {}", "did you mean `colours`"),
        ("name: x\ncolours: {pased: red}", "did you mean `passed`"),
        ("name: x\ncolours: {passed: grenish}", "is not a colour"),
        ("name: x\ndark: maybe", "`dark` is true or false"),
        ("name: x\nansi: 1", "`ansi` is true or false"),
        ("- a list", "a theme needs"),
        ("name: [x", "not valid YAML"),
    ],
)
def test_a_broken_theme_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(AgentevalError) as caught:
        load_theme(path)
    assert said in str(caught.value)
    assert "mine.yaml" in str(caught.value)


def test_every_mistake_of_a_theme_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text('colrs: 3\ncolours: {acent: red, passed: "#12", failed: nocolour, zzzz: 1, zzz2: no}\n')
    with pytest.raises(AgentevalError) as caught:
        load_theme(path)
    assert caught.value.sentence == f"{path}: this theme has 6 mistakes"
    assert [said.strip() for said in caught.value.remedies] == [
        "a theme has no `colrs` (did you mean `colours`?)",
        "a theme has no `acent` (did you mean `accent`?)",
        "a theme has no `zzzz` (`agenteval docs themes` lists them)",
        "a theme has no `zzz2` (`agenteval docs themes` lists them)",
        "`passed: #12` is not a colour (write #rrggbb, a name, or ansi_green)",
        "`failed: nocolour` is not a colour (write #rrggbb, a name, or ansi_green)",
    ]


def test_a_broken_theme_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a")
    (tmp_path / "b.yaml").write_text("name: b\ncolours: 3")
    themes, problems = load_themes([tmp_path])
    assert list(themes) == ["a"]
    assert len(problems) == 1


@cache
def offered() -> dict[str, Theme]:
    """Every theme that the picker offers with colours of its own. Of those with the terminal's 16 colours nobody but
    the terminal knows the contrast."""
    own, problems = load_themes([directories.bundled("themes")])
    assert not problems
    return {name: theme for name, theme in {**BUILTIN_THEMES, **own}.items() if not theme.ansi}


def colours_of(theme: Theme) -> dict[str, Color]:
    """As it is shown."""
    theme = with_tokens(theme)
    known = {**theme.to_color_system().generate(), **theme.variables}
    return {token: Color.parse(known[token]) for token in DARK}


@pytest.mark.parametrize("theme", offered().values(), ids=list(offered()))
def test_every_theme_on_offer_can_be_read_and_told_apart(theme: Theme) -> None:
    colours = colours_of(theme)
    grounds = [colours[token] for token in SURFACES]
    unreadable = {token for token in TEXTS for ground in grounds if contrast(colours[token], ground) < TEXT_CONTRAST}
    assert not unreadable
    assert not [token for token in STRUCTURE if contrast(colours[token], grounds[0]) < RULE_CONTRAST]
    behind = (*MARKS, "cursor")
    assert not [token for token in behind if contrast(colours[token], colours["foreground"]) < TEXT_CONTRAST]
    assert not [token for token in MARKS if contrast(colours[token], grounds[0]) < 1.1], "a mark is seen"
    alike = [
        (one, other)
        for one, other in itertools.combinations(DISTINCT, 2)
        if distance(colours[one], colours[other]) < APART
    ]
    assert not alike
    if not theme.ansi:
        # Who speaks is beside outcomes on every row: no other tint of theirs.
        tints = [token for token in ("passed", "failed") if hue_between(colours["role-user"], colours[token]) < 20]
        assert not tints


@pytest.mark.parametrize("theme", offered().values(), ids=list(offered()))
def test_text_can_be_read_on_every_background_that_a_style_puts_behind_it(theme: Theme) -> None:
    colours = {token: colour.hex6 for token, colour in colours_of(theme).items()}
    palette = Palette(colours, Color.parse(colours["background"]), ansi=False)
    for text, behind in itertools.product(TEXTS, (*MARKS, "cursor", "panel")):
        for style in (
            palette.style(f"{text} on-{behind}"),
            palette.on(Style(bgcolor=colours["background"]), text, Style(bgcolor=colours[behind])),
        ):
            assert style.color is not None
            assert style.bgcolor is not None
            pair = (Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor))
            assert contrast(*pair) >= TEXT_CONTRAST, (text, behind)


@pytest.mark.parametrize("theme", offered().values(), ids=list(offered()))
def test_what_has_the_focus_can_be_read_in_every_theme(theme: Theme) -> None:
    """The tinted title of a pane, and text that is turned round in the row of the cursor."""
    colours = {token: colour.hex6 for token, colour in colours_of(theme).items()}
    palette = _palette(theme.name, tuple(colours.items()), False)
    muted = Style(color=colours["muted"], bgcolor=colours["background"])  # as a widget of titles has it
    (title,) = pane_title("runs", ((" 3 ", "dim"), ("✗", "failed"), (" of 4", "")), 30, active=True)
    assert faint_pieces([Segment(text, muted + palette.style(token)) for text, token in title]) == []
    row, cursor = Style(bgcolor=colours["background"]), Style(bgcolor=colours["cursor"])
    turned = [Segment(token, palette.on(row, f"{token} bold reverse", cursor)) for token in TEXTS]
    assert faint_pieces(turned) == []


def test_the_sixteen_colours_give_every_token_to_textuals_own_themes_of_them() -> None:
    for name in ("ansi-dark", "ansi-light"):
        theme = with_tokens(BUILTIN_THEMES[name])
        known = {**theme.to_color_system().generate(), **theme.variables}
        assert not [token for token in DARK if token not in known]


def test_a_light_theme_of_the_users_own_is_completed_from_the_light_one(tmp_path: Path) -> None:
    path = tmp_path / "chalk.yaml"
    path.write_text('name: chalk\ndark: false\ncolours: {background: "#f0f0ff", passed: "#77dd77"}')
    colours = colours_of(load_theme(path))
    assert colours["passed"] == Color.parse("#77dd77"), "what a file names stays as it is"
    assert contrast(colours["role-assistant"], colours["background"]) >= TEXT_CONTRAST
    assert colours["json-key"] == Color.parse(LIGHT["json-key"])


def test_contrast_and_distance_are_those_of_their_sources() -> None:
    black, white = Color(0, 0, 0), Color(255, 255, 255)
    assert contrast(black, white) == pytest.approx(21)
    assert contrast(Color.parse("#777777"), white) == pytest.approx(4.48, abs=0.005)  # the W3C's own example
    assert distance(black, white) == pytest.approx(1, abs=0.001)
    assert distance(Color.parse("#ff0000"), Color.parse("#0000ff")) == pytest.approx(0.537, abs=0.005)


@given(st.tuples(*[st.integers(0, 255)] * 6), st.booleans())
def test_any_background_and_accent_make_a_theme_that_can_be_read(parts: tuple[int, ...], dark: bool) -> None:
    background, accent = Color(*parts[:3]), Color(*parts[3:])
    colours = complete({"background": background.hex6, "accent": accent.hex6}, dark=dark, fitted=True)
    best = max(contrast(background, end) for end in (Color(0, 0, 0), Color(255, 255, 255)))
    for token in ("muted", "passed", "failed", "error", "running"):
        assert contrast(Color.parse(colours[token]), background) >= min(TEXT_CONTRAST, best) - 0.5


def test_the_documentation_names_every_colour_and_its_example_loads(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "themes.md").read_text(encoding="utf-8")
    table = page.partition("| Key |")[2]
    assert set(re.findall(r"`([a-z-]+)`", table)) == set(DARK)
    path = tmp_path / "chalk.yaml"
    path.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    assert colours_of(load_theme(path))["accent"] == Color.parse("#0b5cad")
