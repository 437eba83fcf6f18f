"""Views as lines of a screen: wrapped to the width, in the theme's styles, in ASCII where the locale has no more."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.presenters.text_layout import LABEL, LONGEST
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, left, width_of, wrap
from agenteval_tui.views.model import (
    Column,
    Difference,
    Element,
    Facts,
    Heading,
    List,
    Node,
    Paragraph,
    Table,
    Text,
    Tree,
    View,
    plain,
    signed,
    text,
)

_STYLES = {
    "good": "passed", "bad": "failed", "broken": "error", "warn": "review", "added": "added", "removed": "removed",
    "dim": "dim", "bold": "bold", "accent": "accent", "code": "",
}  # fmt: skip
_ASCII = str.maketrans({"→": "->", "✗": "x", "✓": "+", "↕": "%", "±": "~", "·": ".", "–": "-"})
_GAP = 3  # cells between texts that stand beside each other
_LEAST = 4  # cells of a column that is cut


def cell(words: str, tokens: str) -> Cell:
    """Words of a view as a cell of a line."""
    shown = displayable(words).expandtabs(4)
    return shown if UNICODE else shown.translate(_ASCII), " ".join(
        filter(None, (_STYLES[token] for token in tokens.split()))
    )


def line(words: Text) -> Line:
    """A text of one line."""
    return tuple(cell(one_line(part) if "\n" in part else part, tokens) for part, tokens in words)


def view_lines(view: View, width: int) -> list[Line]:
    """The lines of a view, none wider than `width` cells."""
    lines: list[Line] = []
    for element in view:
        lines += _lines(element, max(width, 1))
    return lines


def _lines(element: Element, width: int) -> list[Line]:
    match element:
        case Heading(words):
            return [fit(line(tuple((part, token or "bold") for part, token in words)), width)]
        case Paragraph(words, indent):
            return wrapped(words, width, indent)
        case Table():
            return _table(element, width)
        case Tree(nodes, more):
            lines = [each for node in nodes for each in _node(node, width, 0)]
            return [*lines, *wrapped(text((more, "dim")), width, 2)] if more else lines
        case List(items, inline):
            if inline:
                return _beside(items, width)
            return [each for item in items for each in wrapped(text("- ", *item), width)]
        case Difference(changed):
            signs = {"+": "added", "-": "removed", "@": "dim"}
            return [each for one in changed for each in wrapped(text((one, signs.get(one[:1], ""))), width)]
        case Facts(facts):
            return [each for fact in facts for each in _fact(fact.label, fact.value, width)]


def wrapped(words: Text, width: int, indent: int = 0) -> list[Line]:
    """A text in as many lines as it takes; of a very long one the start, and how much more there is."""
    spans: list[Cell] = []
    room = LONGEST
    for part, tokens in words:
        spans.append(cell(part[:room], tokens))
        room -= min(len(part), room)
    whole = "".join(part for part, _ in spans)
    space = " " * min(indent, max(width - 8, 0))
    lines: list[Line] = []
    for start, end in wrap(whole, max(width - len(space), 1)):
        lines.append(((space, ""), *_between(spans, start, end)) if space else tuple(_between(spans, start, end)))
    if (more := len(plain(words)) - LONGEST) > 0:
        lines.append(fit(((space, ""), cell(f"… {more:,} more characters", "dim")), width))
    return [fit(each, width) for each in lines]


def _between(spans: Sequence[Cell], start: int, end: int) -> list[Cell]:
    found: list[Cell] = []
    at = 0
    for part, style in spans:
        piece = part[max(start - at, 0) : max(end - at, 0)]
        found += [(piece, style)] if piece else []
        at += len(part)
    return found


def _beside(items: Sequence[Text], width: int) -> list[Line]:
    """Texts in a line, and what has no room there in the next: none is cut before it has a line of its own."""
    lines: list[Line] = []
    row: list[Cell] = []
    for item in map(line, items):
        if row and width_of(row) + _GAP + width_of(item) > width:
            lines.append(fit(row, width))
            row = []
        row += [*([(" " * _GAP, "")] if row else []), *item]
    return [*lines, fit(row, width)] if row else lines


def _fact(label: str, value: Text, width: int) -> list[Line]:
    label = one_line(label)
    if width < 2 * LABEL or cell_len(label) >= LABEL:
        # No room for two columns: the label over its value.
        return [*(wrapped(text((label, "dim")), width) if label else []), *wrapped(value, width)]
    values = wrapped(value, width - LABEL)
    return [((left("" if number else label, LABEL), "dim"), *each) for number, each in enumerate(values)]


def _node(node: Node, width: int, depth: int) -> list[Line]:
    lines: list[Line] = [fit(((" " * (2 * depth), ""), *line(signed(node))), width)]
    for child in node.children:
        lines += _node(child, width, depth + 1)
    return lines


def _table(table: Table, width: int) -> list[Line]:
    """Columns as wide as they must be, the first one as wide as it can be."""
    heads = [line(text((column.head, "dim"))) for column in table.columns]
    rows = [heads, *([line(each) for each in row.cells] for row in table.rows)]
    room = [max(column.least, *(2 + width_of(row[at]) for row in rows)) for at, column in enumerate(table.columns)]
    while _LEAST + sum(room[1:]) > width and max(room[1:], default=0) > _LEAST:
        room[1 + room[1:].index(max(room[1:]))] -= 1
    room[0] = max(width - sum(room[1:]), 1)
    lines = [_row(row, room, table.columns, width) for row in rows]
    return [*lines, fit(line(text((table.more, "dim"))), width)] if table.more else lines


def _row(row: Sequence[Line], room: Sequence[int], columns: Sequence[Column], width: int) -> Line:
    cells: list[Cell] = []
    for words, space, column in zip(row, room, columns, strict=True):
        shown = fit(words, space)
        missing: Cell = (" " * (space - width_of(shown)), "")
        cells += (missing, *shown) if column.align == "right" else (*shown, missing)
    return fit(tuple(part for part in cells if part[0]), width)
