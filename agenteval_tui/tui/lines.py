"""Lines of styled text, as presenters make them and widgets show them.

A cell of a line is text that may be shown (foreign text went through `text.display`), and a style token: words
like "passed", "dim", "bold accent". What a token looks like is the theme's business (`palette.py`).
Widths are terminal cells: a wide character counts two.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich import cells

Cell = tuple[str, str]
Line = tuple[Cell, ...]

ELLIPSIS = "…"


def cell_len(text: str) -> int:
    """Terminal cells that a text takes. Most texts are plain, and need not be looked at letter by letter."""
    return len(text) if text.isascii() and text.isprintable() else cells.cell_len(text)


def set_cell_size(text: str, width: int) -> str:
    """`text` in exactly `width` cells: cut, or filled with spaces."""
    if text.isascii() and text.isprintable():
        return text[: max(width, 0)].ljust(width)
    return cells.set_cell_size(text, width)


def width_of(line: Iterable[Cell]) -> int:
    """Terminal cells that the line takes."""
    return sum(cell_len(text) for text, _ in line)


def plain(line: Iterable[Cell]) -> str:
    """The text of a line without its styles."""
    return "".join(text for text, _ in line)


def fit(line: Iterable[Cell], width: int) -> Line:
    """The line in at most `width` cells; where something is cut the last cell is `…`."""
    given = tuple(line)
    if width <= 0:
        return ()
    total = 0
    kept: list[Cell] = []
    for text, style in given:
        length = cell_len(text)
        if total + length <= width:
            kept.append((text, style))
            total += length
            continue
        if total < width:
            kept.append((set_cell_size(text, width - total - 1).rstrip() + ELLIPSIS, style))
            break
        # The line is full already: the sign takes the place of its last cell.
        while kept and cell_len(kept[-1][0]) == 0:
            kept.pop()
        last, last_style = kept.pop()
        kept.append((set_cell_size(last, cell_len(last) - 1) + ELLIPSIS, last_style))
        break
    return tuple(kept)


def fold(line: Iterable[Cell], width: int) -> list[Line]:
    """The line in as many lines of at most `width` cells as it takes; nothing is cut. At least one line."""
    width = max(width, 2)  # a wide character must have a place
    lines: list[Line] = []
    now: list[Cell] = []
    used = 0
    for text, style in line:
        start = 0
        for index, char in enumerate(text):
            size = cell_len(char)
            if used + size > width:
                now.append((text[start:index], style))
                lines.append(tuple(cell for cell in now if cell[0]))
                now, used, start = [], 0, index
            used += size
        now.append((text[start:], style))
    lines.append(tuple(cell for cell in now if cell[0]))
    return lines


def fit_text(text: str, width: int) -> str:
    """`text` in at most `width` cells, cut with `…`."""
    return plain(fit(((text, ""),), width))


def pad(line: Iterable[Cell], width: int, style: str = "") -> Line:
    """The line in exactly `width` cells: cut with `…`, or filled with spaces on the right."""
    cells = fit(line, width)
    missing = width - width_of(cells)
    return (*cells, (" " * missing, style)) if missing > 0 else cells


def right(text: str, width: int) -> str:
    """`text` right-aligned in `width` cells (cut with `…` when longer)."""
    shown = fit_text(text, width)
    return " " * (width - cell_len(shown)) + shown


def left(text: str, width: int) -> str:
    """`text` left-aligned in `width` cells (cut with `…` when longer)."""
    shown = fit_text(text, width)
    return shown + " " * (width - cell_len(shown))


def spread(start: Iterable[Cell], end: Iterable[Cell], width: int) -> Line:
    """`start` at the left and `end` at the right edge; when there is no room for both, `start` is cut."""
    end = tuple(end)
    end_width = width_of(end)
    if end_width >= width:
        return fit(end, width)
    room = width - end_width
    cells = fit(start, room - 1 if end_width else room)
    return (*cells, (" " * (room - width_of(cells)), ""), *end)


def wrap(text: str, width: int) -> list[tuple[int, int]]:
    """Break `text` (one paragraph or several) into lines of at most `width` cells.

    Returns (start, end) offsets into `text`, newlines left out. Breaks at spaces where it can; the space that a
    line breaks at belongs to no line. Tabs count as one cell: expand them before.
    """
    width = max(width, 1)
    spans: list[tuple[int, int]] = []
    offset = 0
    for paragraph in text.split("\n"):
        end = offset + len(paragraph)
        if paragraph.isascii():
            _wrap_narrow(text, offset, end, width, spans)
        else:
            _wrap_wide(text, offset, end, width, spans)
        offset = end + 1
    return spans


def _wrap_narrow(text: str, start: int, end: int, width: int, spans: list[tuple[int, int]]) -> None:
    while end - start > width:
        cut = text.rfind(" ", start + 1, start + width + 1)
        if cut <= start or not text[start:cut].strip():
            spans.append((start, start + width))
            start += width
        else:
            spans.append((start, cut))
            start = cut + 1
    spans.append((start, end))


def _wrap_wide(text: str, start: int, end: int, width: int, spans: list[tuple[int, int]]) -> None:
    used = 0
    line = start
    space = -1
    index = start
    while index < end:
        char = text[index]
        size = cell_len(char)
        if used + size > width and index > line:
            if char == " ":
                spans.append((line, index))
                index += 1
                line = index
            elif space > line:
                spans.append((line, space))
                line = space + 1
                index = line
            else:
                spans.append((line, index))
                line = index
            used, space = 0, -1
            continue
        if char == " " and text[line:index].strip():
            space = index
        used += size
        index += 1
    spans.append((line, end))
