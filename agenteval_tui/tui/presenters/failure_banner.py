"""A failure that is offered to be opened: in a banner over the list of Suites, and on Run when an execution ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.styled_text import Cell, Line, fit, paragraph, width_of

if TYPE_CHECKING:
    # Not for the first frame: it loads what grades.
    from agenteval_tui.views.failure import Failure

BAR = "┃" if UNICODE else "|"


def banner(lines: Iterable[Line]) -> list[Line]:
    """Lines with a bar at their left, and an empty one below."""
    bar: Cell = (f" {BAR} ", "accent")
    return [*((bar, *line) for line in lines), ()]


def key_entries(width: int, *keys: tuple[str, str]) -> list[Line]:
    """Keys with their actions, in as many lines as they need."""
    lines: list[list[Cell]] = [[]]
    for key, what in keys:
        entry: list[Cell] = [(f"  {key}", "bold accent"), (f"  {what}", ""), ("  ", "")]
        if lines[-1] and width_of((*lines[-1], *entry)) > width:
            lines.append([])
        lines[-1] += entry
    return [fit(line, width) for line in lines]


def failure_lines(test: str, failure: Failure, width: int) -> list[Line]:
    """The test and its failure: the expected and the actual value, on one line or on two."""
    miss = failure.miss
    where = " ".join(filter(None, (miss.criterion, miss.what)))
    often = f"   {failure.runs:,} of {failure.of:,}"
    name: Line = (("  ", ""), (one_line(test, 60), "bold"))
    lines = [fit((*name, (f"   {one_line(where)}", "dim")), width - len(often))]
    lines[0] = (*lines[0], (often, "dim"))
    if not miss.expected:
        return [*lines, *((("  ", ""), *line) for line in paragraph(miss.sentence, width - 2)[:2])]
    expected: Line = (("  expected ", "dim"), (one_line(miss.expected), ""))
    actual: Line = ((f"  {failure.got_label} ", "dim"), (one_line(miss.got), ""))
    if miss.looks_equal:
        return [*lines, fit((*expected, (": ", "dim"), (one_line(miss.note), "")), width)]
    if width_of((*expected, *actual)) <= width:
        return [*lines, (*expected, *actual)]
    return [*lines, fit(expected, width), fit(((f"{failure.got_label:>10} ", "dim"), *actual[1:]), width)]
