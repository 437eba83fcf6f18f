"""A comparison as lines of text, for the command line, reports and CI: expected above got, a caret where they part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenteval_tui.core.display import displayable
from agenteval_tui.grading.explain import on_one_line
from agenteval_tui.views.evidence_comparison import Comparison, leaves
from agenteval_tui.views.terminal import cells

ROOM = 76
"""Characters of a value; of a longer one those around the place that differs."""
_NAME = 30
_LABEL = 10
_BEFORE = 24  # characters of a long value before the place that differs
NOTHING = "nothing"
"""What stands for a value that is not there."""


def comparison_text(nested: Iterable[Comparison]) -> tuple[str, ...]:
    """The lines of comparisons, one below the other. Every character is displayable, and no line is long."""
    comparisons = list(leaves(nested))
    names = [_excerpt(comparison.name, 0)[0] for comparison in comparisons]
    short = [name for name in names if cells(name) <= _NAME]
    wide = max(map(cells, short), default=0)
    margin = wide + 2 if wide else 0
    lines: list[str] = []
    for name, comparison in zip(names, comparisons, strict=True):
        if name not in short:
            lines.append(name)
            name = ""
        for number, line in enumerate(_pair(comparison)):
            head = "" if number else name
            lines.append((head + " " * (margin - cells(head)) + line).rstrip())
    return tuple(lines)


def _pair(comparison: Comparison) -> Sequence[str]:
    at, label = comparison.at, "nearest" if comparison.where else "got"
    lines = [_row("expected", _excerpt(comparison.expected, at)[0])] if comparison.expected is not None else []
    if comparison.got is None:
        lines.append(_row(label, NOTHING))
        return [*lines, _row("", comparison.note)] if comparison.note else lines
    actual, column = _excerpt(comparison.got, at)
    lines.append(_row(label, f"{actual}   {comparison.where}" if comparison.where else actual))
    if at is not None:
        lines.append(_row("", f"{' ' * column}^ {comparison.note}"))
    elif comparison.note:
        lines.append(_row("", comparison.note))
    return lines


def _row(label: str, value: str) -> str:
    return label + " " * (_LABEL - len(label)) + displayable(on_one_line(value))


def _excerpt(value: str, at: int | None) -> tuple[str, int]:
    """A value in one line of at most `ROOM` characters and two signs for what is cut, and the column of `at` in it."""
    at = min(at or 0, len(value))
    start = max(at - _BEFORE, 0) if len(value) > ROOM and at > ROOM // 2 else 0
    before, rest = value[start:at], value[at : start + ROOM]
    head = ("…" if start else "") + displayable(on_one_line(before))
    tail = displayable(on_one_line(rest)) + ("…" if start + ROOM < len(value) else "")
    return head + tail, cells(head)
