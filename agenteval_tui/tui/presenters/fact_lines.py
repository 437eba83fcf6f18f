"""An explanation (`grading.explain`) as lines: every fact with its sign, wrapped, indented by its depth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenteval_tui.grading.explain import Fact, Mark, flat, on_one_line
from agenteval_tui.tui.presenters.status_style import UNICODE, glyph
from agenteval_tui.tui.presenters.text_layout import paragraph
from agenteval_tui.tui.styled_text import Line

_STYLES: dict[Mark, str] = {
    "passed": "passed", "failed": "failed", "error": "error", "info": "dim", "near": "near-miss",
}  # fmt: skip
_DEEPEST = 4


def fact_lines(facts: Iterable[Fact], width: int) -> Sequence[Line]:
    """The lines, none wider than `width`."""
    lines: list[Line] = []
    for depth, fact in flat(facts):
        indent = 2 * min(depth, _DEEPEST)
        sign = {"info": "·", "near": "≈"}.get(fact.mark) if UNICODE else {"info": ".", "near": "~"}.get(fact.mark)
        head = (" " * indent + (sign or glyph(fact.mark)) + " ", _STYLES[fact.mark])
        style = "bold" if depth == 0 else "dim" if fact.mark in ("passed", "info") else ""
        wrapped = paragraph(on_one_line(fact.text), max(width - indent - 2, 8), style)
        for number, line in enumerate(wrapped):
            lines.append((head if number == 0 else (" " * (indent + 2), ""), *line))
    return lines
