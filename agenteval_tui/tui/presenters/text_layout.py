"""Text in paragraphs: wrapped, indented, beside a label."""

from __future__ import annotations

from collections.abc import Iterable

from agenteval_tui.core.display import displayable
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.tui.styled_text import Line, between, cell_len, fit, left, wrap

LABEL = 11
LONGEST = 8_000
"""Characters of one paragraph that are shown: what takes longer to lay out would hold the keyboard."""


def paragraph(text: str, width: int, style: str = "", indent: int = 0) -> list[Line]:
    """Foreign or own text, wrapped; of a very long one the start, and how much more there is."""
    displayed = displayable(text[:LONGEST]).expandtabs(4)
    space = " " * min(indent, max(width - 8, 0))
    lines: list[Line] = [((space, ""), (displayed[a:b], style)) for a, b in wrap(displayed, max(width - len(space), 1))]
    if len(text) > LONGEST:
        lines.append(fit(((space, ""), (f"… {count(len(text) - LONGEST, 'more character')}", "dim")), width))
    return lines


def wrap_to(lines: Iterable[Line], width: int) -> list[Line]:
    """The lines, none wider than `width` cells."""
    return [fit(line, width) for line in lines]


def labelled(label: str, text: str, width: int, *, label_style: str = "dim", style: str = "") -> list[Line]:
    """`label      text`, the text wrapped beside its label."""
    lines: list[Line] = []
    if width < 2 * LABEL:
        # No room for two columns: the label over its text.
        return [fit(((label, label_style),), width), *paragraph(text, width, style)]
    for line in paragraph(text, width - LABEL, style):
        lines.append(((left("" if lines else label, LABEL), label_style), *line))
    return lines


def hanging(line: Line, width: int) -> list[Line]:
    """A line broken at its words into lines of at most `width` cells, each as far from the edge as the first."""
    whole = "".join(text for text, _ in line)
    indent = len(whole) - len(whole.lstrip(" "))
    if cell_len(whole) <= width or width <= indent + 8:
        return [line]
    margin = ((" " * indent, ""),) if indent else ()
    places = wrap(whole[indent:], width - indent)
    return [(*margin, *between(line, start + indent, end + indent)) for start, end in places]


def indented(lines: Iterable[Line], by: int = 1) -> list[Line]:
    """The lines with a margin at their left."""
    return [((" " * by, ""), *line) for line in lines]


def empty_state(purpose: str, why: str, key: str = "", what: str = "", *more: str, style: str = "") -> list[Line]:
    """What a screen shows that has nothing yet: what it is for, why it is empty, the one key to press (`{suites.run}`
    and the like stand for the person's keys) and what to do with it ("run it"); then what else helps."""
    lines: list[Line] = [()]
    if purpose:
        lines += [(("  ", ""), (purpose, "bold")), ()]
    lines.append((("  ", ""), (why, style)))
    if key:
        lines += [(), (("  Press ", ""), (key, "bold accent"), (f" to {what}.", ""))]
    return [*lines, *((("  ", ""), (line, "dim")) for line in more)]


SUITES_KEY = ("{go.suites}", "go to the suites and run tests there")
IMPORT = "agenteval import FILE imports recordings from other tools."


def nothing_ran(purpose: str = "") -> list[Line]:
    """What a screen about runs shows where there are none: no error, but where to begin."""
    return empty_state(purpose, "Nothing has run yet.", *SUITES_KEY, IMPORT)


def nothing_here(elsewhere: int, purpose: str = "") -> list[Line]:
    """What a screen about runs shows if this project has none, and others have this many executions."""
    there = "Another project has 1 execution" if elsewhere == 1 else f"Other projects have {elsewhere:,} executions"
    remark = f"{there}. Press {{everywhere.projects}} to show all projects."
    return empty_state(purpose, "Nothing in this project has run yet.", *SUITES_KEY, remark)


def error_lines(error: AgentevalError, width: int) -> list[Line]:
    """What is wrong, where, and how to fix it, as a short text."""
    lines = paragraph(f"! {error.what}", width, "bold error")
    for text in (error.where, "" if error.remedies else error.fix):
        if text:
            lines += paragraph(text, width, "dim", 2)
    # A list keeps a line for each, so that it can be looked through; a sheet has no room for more.
    lines += [fit((("  ", ""), (displayable(remedy).expandtabs(4), "dim")), width) for remedy in error.remedies]
    return lines
