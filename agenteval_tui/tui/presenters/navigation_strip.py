"""The strip at the top of every screen: the screens with their keys, what waits on them, and the scope."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from agenteval_tui.tui.presenters.status_style import UNICODE, glyph
from agenteval_tui.tui.styled_text import Cell, Line, fit, spread, width_of

SHORT = {
    "inspect": "insp",
    "history": "hist",
    "compare": "comp",
    "trends": "trend",
    "agents": "agent",
    "causes": "cause",
    "review": "rev",
}
"""Labels that are shortened where not all fit."""
ACTIVE = "bold background on-accent"
PROGRAM = " agenteval"


class Tab(Struct, frozen=True):
    """A screen: the name that the app knows it by, the key that goes there, its label, and what waits there: text and
    style token ("": nothing)."""

    name: str
    key: str
    label: str
    badge: Cell = ("", "")


class StripState(Struct, frozen=True):
    """What the strip says. `active` is a tab's name; `everything`: the runs of all projects are listed, not only those
    of the open one."""

    tabs: Sequence[Tab]
    active: str = ""
    everything: bool = False


class Zone(Struct, frozen=True):
    """The cells from `start` up to `end` are clicked for `target`: "program", "scope", or the name of a screen."""

    start: int
    end: int
    target: str


def running_badge(executions: int) -> Cell:
    """That executions run now; how many, where it is more than one."""
    return (f"{glyph('running')}{executions if executions > 1 else ''}", "running") if executions else ("", "")


def strip_line(state: StripState, width: int) -> Line:
    """The strip in `width` cells: with all names, else with short ones, else with that of the active screen."""
    return _laid_out(state, width)[0]


def strip_zones(state: StripState, width: int) -> list[Zone]:
    """What a click on the strip means."""
    return _laid_out(state, width)[1]


def _laid_out(state: StripState, width: int) -> tuple[Line, list[Zone]]:
    scope = "all projects" if state.everything else "here"
    sign = " ▾ " if UNICODE else " v "
    short = "all " if state.everything else "here "
    # From the one that says most to the one that says least: the first that has room is taken.
    layouts = (
        (PROGRAM + "  ", _with_names, scope + sign),
        (" ", _with_names, scope + sign),
        (" ", _with_short_names, scope + sign),
        (" ", _with_short_names, short),
        (" ", _with_short_names, "all" if state.everything else ""),
        (" ", partial(_with_short_names, numbers=False), "all" if state.everything else ""),
        (PROGRAM + "  ", _with_digits, scope + " "),
        (" ", _with_digits, scope + " "),
        (" ", _with_digits, short),
        (" ", partial(_with_digits, names=False), short),
        (" ", partial(_with_digits, names=False), ""),
    )
    for program, spell, scope_words in layouts:
        cells: list[tuple[Cell, str]] = [((program, "bold accent"), "program" if program.strip() else "")]
        cells += spell(state)
        start = [cell for cell, _ in cells]
        if width_of(start) + (len(scope_words) + 1 if scope_words else 0) <= width:
            break
    end: tuple[Cell, ...] = ((scope_words, "accent"),) if scope_words else ()
    line = spread(start, end, width) if end else fit(start, width)
    zones: list[Zone] = []
    column = 0
    for cell, target in cells:
        size = width_of((cell,))
        if target:
            zones.append(Zone(column, column + size, target))
        column += size
    if scope_words:
        zones.append(Zone(width - len(scope_words), width, "scope"))
    return line, zones


def _with_names(state: StripState) -> list[tuple[Cell, str]]:
    """` 1 suites  2 edit  3 run ◐ `: the space around a name belongs to it, so that the active one is a field."""
    cells: list[tuple[Cell, str]] = []
    for tab in state.tabs:
        if tab.name == state.active:
            text = f"{tab.key} {tab.label}" + (f" {tab.badge[0]}" if tab.badge[0] else "")
            cells += [((f" {text} ", ACTIVE), tab.name)]
            continue
        cells += [((f" {tab.key}", "accent"), tab.name), ((f" {tab.label}", "muted"), tab.name)]
        if tab.badge[0]:
            cells.append(((f" {tab.badge[0]}", tab.badge[1]), tab.name))
        cells.append(((" ", ""), tab.name))
    return cells


def _with_short_names(state: StripState, *, numbers: bool = True) -> list[tuple[Cell, str]]:
    """`1 suites 2 edit 3 run◐ 4 insp 9 cause 14 0 rev`: one space between two, of which the active one has both.
    Without the `numbers` of what waits, the name has their colour."""
    cells: list[tuple[Cell, str]] = []
    for place, tab in enumerate(state.tabs):
        label = SHORT.get(tab.label, tab.label)
        is_number = tab.badge[0][:1].isdigit()
        beside = "" if is_number and not numbers else f" {tab.badge[0]}" if is_number else tab.badge[0]
        is_active = tab.name == state.active
        if place and not is_active and state.tabs[place - 1].name != state.active:
            cells.append(((" ", ""), ""))
        if is_active:
            cells.append(((f" {tab.key} {label}{beside} ", ACTIVE), tab.name))
            continue
        style = tab.badge[1] if is_number and not numbers else "muted"
        cells += [((tab.key, "accent"), tab.name), ((f" {label}", style), tab.name)]
        if beside:
            cells.append(((beside, tab.badge[1]), tab.name))
    return cells


def _with_digits(state: StripState, *, names: bool = True) -> list[tuple[Cell, str]]:
    """`1 suites·2·3◐·4·5·6·7·8·9 14·0 3`: only the active screen has its name; without `names`,
    `1·2·3·4·5·6·7·8·9·0`, the active one marked."""
    cells: list[tuple[Cell, str]] = []
    dot = "·" if UNICODE else "."
    for tab in state.tabs:
        if cells:
            cells.append(((dot, "muted"), ""))
        badge = tab.badge[0] if names else ""
        beside = f" {badge}" if badge[:1].isdigit() else badge
        if tab.name == state.active:
            text = f" {tab.key} {tab.label}{' ' + badge if badge else ''} " if names else tab.key
            cells.append(((text, ACTIVE), tab.name))
            continue
        cells.append(((tab.key, "accent"), tab.name))
        if beside:
            cells.append(((beside, tab.badge[1]), tab.name))
    return cells
