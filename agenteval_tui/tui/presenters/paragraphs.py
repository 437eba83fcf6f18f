"""Text in paragraphs: wrapped, indented, beside a label."""

from __future__ import annotations

from agenteval_tui.text.display import displayable
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
