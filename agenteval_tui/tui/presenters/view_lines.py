"""Views as lines of a screen: wrapped to the width, in the theme's styles, in ASCII where the locale has no more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.styled_text import LABEL, LONGEST, Cell, Line, between, cell_len, fit, left, width_of, wrap
from agenteval_tui.views.model import (
    ASCII,
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
    text,
)

_STYLES = {
    "good": "passed",
    "bad": "failed",
    "broken": "error",
    "warn": "review",
    "flaky": "flaky",
    "near": "near-miss-text",
    "added": "added",
    "removed": "removed",
    "dim": "dim",
    "bold": "bold",
    "accent": "accent",
    "code": "",
}
_GAP = 3  # cells between texts that are beside each other
_BETWEEN = 2  # cells between columns
_LEAST = 4  # cells of a column that is cut


def cell(words: str, tokens: str) -> Cell:
    """Words of a view as a cell of a line."""
    displayed = displayable(words).expandtabs(4)
    return displayed if UNICODE else displayed.translate(ASCII), style(tokens)


@cache
def style(tokens: str) -> str:
    """What tokens of a view look like."""
    return " ".join(filter(None, (_STYLES[token] for token in tokens.split())))


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
        case Paragraph(words, indent, hang):
            return wrapped(words, width, indent, hang)
        case Table():
            return _table(element, width)
        case Tree(nodes, more, indent):
            lines = [each for node in nodes for each in _node(node, width, indent)]
            return [*lines, *wrapped(text((more, "dim")), width, indent + 2)] if more else lines
        case List(items, inline):
            if inline:
                return _beside(items, width)
            return [each for item in items for each in wrapped(text("- ", *item), width)]
        case Difference(changed):
            signs = {"+": "added", "-": "removed", "@": "dim"}
            return [
                each
                for changed_line in changed
                for each in wrapped(text((changed_line, signs.get(changed_line[:1], ""))), width)
            ]
        case Facts(facts):
            return [each for fact in facts for each in _fact(fact.label, fact.value, width)]


def wrapped(words: Text, width: int, indent: int = 0, hang: int = 0) -> list[Line]:
    """A text in as many lines as it takes; of a very long one the start, and how much more there is. Lines after the
    first are `hang` cells further in, where there is room for that, and begin with no space."""
    spans: list[Cell] = []
    room = LONGEST
    for part, tokens in words:
        spans.append(cell(part[:room], tokens))
        room -= min(len(part), room)
    whole = "".join(part for part, _ in spans)
    space = " " * min(indent, max(width - 8, 0))
    # Nearly all texts fit into their line, and need not be broken.
    if "\n" not in whole and len(space) + cell_len(whole) <= width and len(whole) < LONGEST:
        return [((space, ""), *spans) if space else tuple(spans)]
    room = max(width - len(space), 1)
    hang = hang if room >= 2 * hang else 0
    lines: list[Line] = []
    for start, end in _breaks(whole, room, hang):
        before = space + " " * (hang if lines else 0)
        lines.append(((before, ""), *between(spans, start, end)) if before else tuple(between(spans, start, end)))
    if (more := len(plain(words)) - LONGEST) > 0:
        lines.append(fit(((space, ""), cell(f"… {more:,} more characters", "dim")), width))
    return [fit(each, width) for each in lines]


def _breaks(whole: str, room: int, hang: int) -> list[tuple[int, int]]:
    """Where lines start and end of which the first has this room, and the others `hang` cells less. A line begins with
    spaces only where the text has a line of its own there."""
    places = wrap(whole, room)
    if hang and len(places) > 1:
        start = places[1][0]
        places[1:] = [(start + first, start + last) for first, last in wrap(whole[start:], room - hang)]
    breaks = places[:1]
    for start, end in places[1:]:
        spaces = len(whole[start:end]) - len(whole[start:end].lstrip(" "))
        breaks.append((start if whole[start - 1] == "\n" else start + spaces, end))
    return breaks


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


def _indented(row: str) -> str:
    return " " * (len(row) - len(row.lstrip(" "))) + one_line(row)


def _node(node: Node, width: int, indent: int) -> list[Line]:
    """The words of a node wrapped beside its sign, and what belongs to it below."""
    indent = min(indent, max(width - 10, 0))
    sign, tokens = node.sign
    head = cell(" " * indent + (f"{sign} " if sign else ""), tokens)
    beside: Cell = (" " * cell_len(head[0]), "")
    room = max(width - cell_len(head[0]), 8)
    lines: list[Line] = []
    for number, each in enumerate(wrapped(node.words, room)):
        lines.append(fit((beside if number else head, *each) if head[0] else each, width))
    lines += [fit(((" " * (indent + 4), ""), (_indented(row), "")), width) for row in node.block]
    for child in node.children:
        lines += _node(child, width, indent + 2)
    return lines


def _table(table: Table, width: int) -> list[Line]:
    rows = TableRows(table)
    lines = [rows.head(width), *(rows.line(index, width) for index in range(rows.count()))]
    return [*lines, fit(line(text((table.more, "dim"))), width)] if table.more else lines


class TableRows:
    """A table as rows of a screen, and as the source of a list: each row is laid out when it is drawn.

    Columns are as wide as they must be, the first one of words (left-aligned) as wide as it can be. `indent` cells stay
    empty at both edges. `signs` stand before the rows.
    """

    def __init__(self, table: Table, *, indent: int = 0, signs: Sequence[Cell] = ()) -> None:
        self._rows = table.rows
        self._columns = columns = table.columns
        self._indent = indent
        self._signs = signs
        whole = [row.cells for row in table.rows if len(row.cells) == len(columns)]
        self._widest = next((at for at, column in enumerate(columns) if column.align == "left"), 0)
        self._least = [
            max(column.least, cell_len(column.head), *(cell_len(plain(row[at])) for row in whole), 0)
            if at != self._widest
            else 0
            for at, column in enumerate(columns)
        ]

    def count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def key(self, index: int) -> str:
        """What row `index` is."""
        return self._rows[index].key

    def head(self, width: int) -> Line:
        """The heads of the columns."""
        sign = (" ", "") if self._signs else None
        return self._laid_out([text((column.head, "dim")) for column in self._columns], width, sign)

    def line(self, index: int, width: int, *, focused: bool = False) -> Line:
        """Row `index`."""
        return self._laid_out(self._rows[index].cells, width, self._signs[index] if self._signs else None)

    def _laid_out(self, texts: Sequence[Text], width: int, sign: Cell | None) -> Line:
        start: list[Cell] = [(" " * self._indent, "")] if self._indent else []
        start += [sign, (" ", "")] if sign is not None else []
        width -= self._indent
        if len(texts) < len(self._columns):
            return fit((*start, *line(texts[0])), width)
        space = max(width - width_of(start), 0)
        room = list(self._least)
        others = space - _BETWEEN * (len(room) - 1) - _LEAST
        # The widest gives way first, a cell at a time: figures stay whole as long as names can be cut.
        while sum(room) > others and max(room) > _LEAST - _BETWEEN:
            room[room.index(max(room))] -= 1
        room[self._widest] = max(space - sum(room) - _BETWEEN * (len(room) - 1), 1)
        cells = start
        for at, (words, column) in enumerate(zip(texts, self._columns, strict=True)):
            fitted = fit(line(words), room[at])
            gap = " " * (_BETWEEN if at else 0)
            missing = " " * (room[at] - width_of(fitted))
            if column.align == "right":
                cells += [(gap + missing, ""), *fitted]
            else:
                cells += [(gap, ""), *fitted, (missing, "")]
        return fit(tuple(part for part in cells if part[0]), width)
