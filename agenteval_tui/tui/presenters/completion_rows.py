"""What can be written at the cursor, and what is known of the word under it, as lines."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.tui.styled_text import Line, cell_len, fit, fit_text, left, pad, wrap
from agenteval_tui.uxon.complete import Completion
from agenteval_tui.uxon.hover import Hover

MOST_ROWS = 8  # of the list, which lies over the config
WIDEST = 64  # cells of the list, and of the documentation beside it
_KINDS = {
    "property": "name",
    "value": "value",
    "type": "metric",
    "tool": "seen tool",
    "argument": "seen name",
    "example": "seen value",
    "text": "seen text",
}


def completion_lines(items: Sequence[Completion], chosen: int, room: int) -> list[Line]:
    """At most `MOST_ROWS` items around the chosen one, each in the same width (at most `room` cells).

    Label, where it comes from, what it is; the chosen one is marked by a sign as well as by its colour.
    """
    # A row below the chosen one stays in view, so that one sees that there are more.
    first = max(0, min(chosen - MOST_ROWS + 2, len(items) - MOST_ROWS))
    visible = items[first : first + MOST_ROWS]
    labels = [one_line(item.label, 80) for item in visible]
    width = min(room, WIDEST)
    name_width = min(max(map(cell_len, labels)), max(width - 14, 8))
    lines: list[Line] = []
    for number, (item, label) in enumerate(zip(visible, labels, strict=True), first):
        mark = ("› ", "bold accent") if number == chosen else ("  ", "")
        style = "bold" if number == chosen else ""
        detail = one_line(item.detail, 80)
        lines.append(
            pad(
                (
                    mark,
                    (left(label, name_width), style),
                    ("  " + left(_KINDS[item.kind], 10), "dim"),
                    (" " + detail, "dim"),
                ),
                width,
            )
        )
    if len(items) > len(visible):
        more = f"  {first + 1}–{first + len(visible)} of {len(items)}"
        lines.append(pad(((more, "dim"),), width))
    return lines


def hover_lines(hover: Hover, room: int) -> list[Line]:
    """The documentation of a name: its type, what it is for, its default, what is allowed."""
    width = max(min(room, WIDEST) - 2, 20)
    head, *rest = hover.lines()
    lines: list[Line] = [pad(((" " + fit_text(one_line(head, 200), width), "bold"), (" ", "")), width + 2)]
    for text in rest:
        displayed = displayable(text)
        for start, end in wrap(displayed, width)[:6]:
            lines.append(pad(fit(((" " + displayed[start:end], ""),), width + 2), width + 2))
    return lines
