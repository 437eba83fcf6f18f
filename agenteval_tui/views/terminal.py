"""Views as lines of a terminal. The terminal wraps paragraphs itself; a table is cut to the width."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from agenteval_tui.core.display import ZERO_WIDTH_JOINER, ZERO_WIDTH_NON_JOINER, displayable, one_line
from agenteval_tui.views.model import (
    Column,
    Difference,
    Element,
    Facts,
    Heading,
    List,
    Node,
    Paragraph,
    Span,
    Table,
    Text,
    Tree,
    View,
    plain,
    text,
)

_GAP = "  "
_LEAST = 4  # cells of a column that is cut, if there is room for that many
_SIGNS = {"+": "added", "-": "removed", "@": "dim"}


def lines(view: View, width: int = 100) -> Iterator[Text]:
    """The lines of a view. A heading has an empty line above it, except at the top."""
    for number, element in enumerate(view):
        if number and isinstance(element, Heading):
            yield ()
        yield from _lines(element, width)


def plain_text(view: View) -> str:
    """The lines of a view without tokens, displayable: for files of plain text."""
    return "\n".join(displayable(plain(line)) for line in lines(view))


def _lines(element: Element, width: int) -> Iterator[Text]:
    match element:
        case Heading(words):
            yield tuple((part, token or "bold") for part, token in words)
        case Paragraph(words, indent):
            yield text(" " * indent, *words)
        case Table():
            yield from _table(element, width)
        case Tree(nodes, more, indent):
            for node in nodes:
                yield from _node(node, indent)
            if more:
                yield text(" " * indent + _GAP, (more, "dim"))
        case List(items, inline):
            if inline:
                yield _joined(items)
            else:
                yield from (text("- ", *item) for item in items)
        case Difference(changed):
            yield from (text((line, _SIGNS.get(line[:1], ""))) for line in changed)
        case Facts(facts):
            room = max((cells(one_line(fact.label)) for fact in facts), default=0)
            for fact in facts:
                label = one_line(fact.label)
                yield text((label + " " * (room - cells(label)) + _GAP, "dim"), *fact.value)


def _node(node: Node, indent: int) -> Iterator[Text]:
    sign, tokens = node.sign
    yield text(" " * indent, (f"{sign} " if sign else "", tokens), *node.words)
    for line in node.block:
        yield text(" " * (indent + 4), line)
    for child in node.children:
        yield from _node(child, indent + 2)


def _joined(items: Sequence[Text]) -> Text:
    spans: list[tuple[str, str]] = []
    for item in items:
        spans += [(", ", "")] if spans else []
        spans += item
    return tuple(spans)


def _table(table: Table, width: int) -> Iterator[Text]:
    heads = tuple(text((column.head, "dim")) for column in table.columns)
    rows = [tuple(_on_one_line(cell) for cell in cells_of) for cells_of in (heads, *(row.cells for row in table.rows))]
    # Rows across all columns say nothing of how wide a column is.
    whole = [row for row in rows if len(row) == len(heads)]
    room = [max(column.least, *(cells(plain(row[at])) for row in whole)) for at, column in enumerate(table.columns)]
    # A narrow gap still tells columns apart, and may save them from being cut.
    gap = _GAP if sum(room) + len(_GAP) * (len(room) - 1) <= width else " "
    space_for_cells = width - len(gap) * (len(room) - 1)
    least = min(_LEAST, space_for_cells // max(1, len(room)))
    for keep in ([max(least, column.least) for column in table.columns], [max(1, least)] * len(room)):
        # The widest give way first, and where that is enough none below what it is to have.
        while sum(room) > space_for_cells and (
            wide := [size for size, low in zip(room, keep, strict=True) if size > low]
        ):
            room[next(at for at, size in enumerate(room) if size == max(wide) and size > keep[at])] -= 1
    for row in rows:
        # A row across all columns is a sentence or a name: the terminal wraps it, as it wraps paragraphs.
        yield row[0] if len(row) < len(room) else _row(row, room, table.columns, gap)
    if table.more:
        yield text((table.more, "dim"))


def _row(row: Sequence[Text], room: Sequence[int], columns: Sequence[Column], gap: str) -> Text:
    spans: list[Span] = []
    for at, (cell, space, column) in enumerate(zip(row, room, columns, strict=True)):
        shortened = cut(cell, space)
        missing = (" " * (space - cells(plain(shortened))), "")
        aligned = (missing, *shortened) if column.align == "right" else (*shortened, missing)
        spans += text(gap if at else "", *aligned)
    while spans and not spans[-1][0].strip():
        spans.pop()  # no spaces at the end of a line
    return tuple(spans)


def _on_one_line(words: Text) -> Text:
    return tuple((" ".join(displayable(part).split("\n")).expandtabs(1), token) for part, token in words)


def cut(words: Text, width: int) -> Text:
    """The text in at most `width` cells; where something is cut the last cell is `…`."""
    if cells(plain(words)) <= width:
        return words
    parts: list[tuple[str, str]] = []
    remaining = width - 1
    for part, token in words:
        for end, size in enumerate(_sizes(part)):
            remaining -= size
            if remaining < 0:
                # A joiner at the cut would bind the ellipsis to what is before it.
                return (*parts, (part[:end].rstrip(ZERO_WIDTH_NON_JOINER + ZERO_WIDTH_JOINER) + "…", token))
        parts.append((part, token))
    return tuple(parts)


def cells(words: str) -> int:
    """How many cells of a terminal a text takes."""
    # Nearly all texts: no character needs to be looked up.
    return len(words) if words.isascii() else sum(_sizes(words))


def _sizes(words: str) -> Iterator[int]:
    """The cells of each character. Pictographs that are joined to another are drawn as one with it."""
    before = ""
    for char in words:
        size = _size(char)
        yield 0 if size == 2 and before == ZERO_WIDTH_JOINER else size
        before = char


@lru_cache(maxsize=4096)
def _size(char: str) -> int:
    # Combining marks and format characters are drawn on what is before them, or not at all.
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
