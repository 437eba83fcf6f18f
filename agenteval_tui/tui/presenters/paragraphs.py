"""Text in paragraphs: wrapped, indented, beside a label."""

from __future__ import annotations

from collections.abc import Iterable

from agenteval_tui.text.display import displayable
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.lines import Line, left, wrap

LABEL = 11


def paragraph(text: str, width: int, style: str = "", indent: int = 0) -> list[Line]:
    """Foreign or own text, wrapped."""
    shown = displayable(text).expandtabs(4)
    space = " " * indent
    return [((space, ""), (shown[a:b], style)) for a, b in wrap(shown, max(width - indent, 8))]


def labelled(label: str, text: str, width: int, *, label_style: str = "dim", style: str = "") -> list[Line]:
    """`label      text`, the text wrapped beside its label."""
    lines: list[Line] = []
    for line in paragraph(text, width - LABEL, style):
        lines.append(((left("" if lines else label, LABEL), label_style), *line))
    return lines


def indented(lines: Iterable[Line], by: int = 1) -> list[Line]:
    """The lines with a margin at their left."""
    return [((" " * by, ""), *line) for line in lines]


def error_lines(error: AgentevalError, width: int) -> list[Line]:
    """What is wrong, where, and how to mend it, as a short text."""
    lines = paragraph(f"! {error.what}", width, "bold error")
    for text in (error.where, error.mend):
        if text:
            lines += paragraph(text, width, "dim", 2)
    return lines
