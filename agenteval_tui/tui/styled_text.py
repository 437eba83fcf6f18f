"""Lines of styled text, as presenters make them and widgets show them, and texts laid out as lines.

A cell of a line is text that may be shown (foreign text went through `core.display`), and a style token: words
like "passed", "dim", "bold accent". What a token looks like is the theme's business (`palette.py`).
Widths are terminal cells: a wide character counts two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich import cells

from agenteval_tui.core.display import displayable
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count

Cell = tuple[str, str]
Line = tuple[Cell, ...]

ELLIPSIS = "…"
SHORT_REASON = 44  # cells, in fewer of which the middle of a reason is not cut
_SIGNS = re.compile(r'"|: |; | \(')
LONG_WORD = 12  # characters: a longer word is cut


# Characters that take one cell in every terminal: letters of Europe, dashes and quotes, arrows, lines, blocks, signs.
_ONE_CELL = frozenset(
    chr(code)
    for first, last in (
        (0x20, 0x7E),
        (0xA0, 0xAC),
        (0xAE, 0x2FF),
        (0x370, 0x377),
        (0x390, 0x3A1),
        (0x3B1, 0x3C9),
        (0x400, 0x45F),
        (0x2013, 0x2014),
        (0x2018, 0x201A),
        (0x201C, 0x201E),
        (0x2022, 0x2022),
        (0x2026, 0x2026),
        (0x20AC, 0x20AC),
        (0x2190, 0x2193),
        (0x2500, 0x25A1),
        (0x25B8, 0x25B9),
        (0x25CB, 0x25CB),
        (0x25CF, 0x25D0),
        (0x2713, 0x2713),
        (0x2717, 0x2717),
        (0x2800, 0x28FF),
    )
    for code in range(first, last + 1)
)
_narrow = _ONE_CELL.issuperset


def _plain(text: str) -> bool:
    """Does each character take one cell?"""
    return (text.isascii() and text.isprintable()) or _narrow(text)


def between(spans: Iterable[Cell], start: int, end: int) -> list[Cell]:
    """The characters `start` to `end` of a text of several styles."""
    pieces: list[Cell] = []
    at = 0
    for text, style in spans:
        piece = text[max(start - at, 0) : max(end - at, 0)]
        pieces += [(piece, style)] if piece else []
        at += len(text)
    return pieces


def cell_len(text: str) -> int:
    """Terminal cells that a text takes. Most texts are plain, and need not be looked at letter by letter."""
    return len(text) if _plain(text) else cells.cell_len(text)


def set_cell_size(text: str, width: int) -> str:
    """`text` in exactly `width` cells: cut, or filled with spaces."""
    # What is cut off need not be looked at: a row may begin a long text.
    head = text[: max(width, 0)]
    if _plain(head):
        return head.ljust(width)
    # Characters may take no cell: the part that is looked at is longer than the room, and all of the text is where that
    # was not enough.
    some = text[: 4 * width + 16]
    return cells.set_cell_size(some if cells.cell_len(some) > width else text, width)


def split_lines(line: Iterable[Cell], width: int, at: int) -> tuple[list[Cell], list[Cell]]:
    """The line in exactly `width` cells (cut with `…`, or filled with spaces): its first `at` cells, and the rest.

    A wide character on the border becomes two spaces.
    """
    head: list[Cell] = []
    tail: list[Cell] = []
    pieces = tuple(line)
    used = 0
    for text, style in pieces:
        length = cell_len(text)
        if used >= at:
            tail.append((text, style))
        elif used + length <= at:
            head.append((text, style))
        else:
            room = at - used
            start = text[:room]
            head_text, other = (start, text[room:]) if _plain(start) else cells.split_text(text, room)
            head.append((head_text, style))
            tail.append((other, style))
        used += length
    if used > width:
        return split_lines(fit(pieces, width), width, at)
    if used < at:
        head.append((" " * (at - used), ""))
    if max(used, at) < width:
        tail.append((" " * (width - max(used, at)), ""))
    return head, tail


def width_of(line: Iterable[Cell]) -> int:
    """Terminal cells that the line takes."""
    texts = [text for text, _ in line]
    whole = "".join(texts)  # most lines are plain, and looked at in one go
    return len(whole) if _plain(whole) else sum(map(cell_len, texts))


def plain(line: Iterable[Cell]) -> str:
    """The text of a line without its styles."""
    return "".join(text for text, _ in line)


def fit(line: Iterable[Cell], width: int) -> Line:
    """The line in at most `width` cells; where something is cut the last cell is `…`. In no cell there is nothing."""
    return _fitted(line, width)[0]


def longest_that_fits(lines: Sequence[Line], width: int) -> Line:
    """The first of the lines (longest first) that `width` cells have room for; the last one cut where none fits."""
    return next((line for line in lines if width_of(line) <= width), None) or fit(lines[-1], width)


def _fitted(line: Iterable[Cell], width: int) -> tuple[Line, int]:
    """The line in at most `width` cells, and how many it takes."""
    if width <= 0:
        return (), 0
    line = tuple(line)
    whole = "".join([text for text, _ in line])
    if len(whole) <= width and _plain(whole):
        return line, len(whole)
    total = 0
    pieces: list[Cell] = []
    for text, style in line:
        length = cell_len(text)
        if total + length <= width:
            pieces.append((text, style))
            total += length
            continue
        if total < width:
            # What was cut before is not cut twice.
            cut = set_cell_size(text, width - total - 1).rstrip(f" {ELLIPSIS}")
            if cut or not (pieces and pieces[-1][0].endswith(ELLIPSIS)):
                pieces.append((cut + ELLIPSIS, style))
            break
        # The line is full already: the sign takes the place of its last cell.
        # A piece that takes no cell has none to give to the sign.
        while pieces and cell_len(pieces[-1][0]) == 0:
            pieces.pop()
        last, last_style = pieces.pop()
        pieces.append((set_cell_size(last, cell_len(last) - 1).rstrip(ELLIPSIS) + ELLIPSIS, last_style))
        break
    else:
        return tuple(pieces), total
    return tuple(pieces), width_of(pieces)


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


def fit_reason(text: str, width: int) -> str:
    """Why something failed in at most `width` cells. Remarks at its end (`(and 2 more)`, `; nearest …`) go first. What
    is left says last what decides (`expected "a", got "b"`), so its middle is cut, between words where they are short;
    in few cells its beginning, at a colon if possible."""
    if cell_len(text) <= width or width < 2:
        return fit_text(text, width)
    trimmed, colons = text, []
    for at, mark in reversed(_breaks(text)):
        if mark == ":":
            colons.append(at + 2)
        elif mark == ";" or text[at:].endswith(")"):
            trimmed = text[:at]
            if cell_len(trimmed) < width:
                return f"{trimmed}{ELLIPSIS}"
    end = ELLIPSIS if trimmed != text else ""
    room = width - len(end)
    clause = next((at for at in colons if at < len(trimmed)), 0)
    left_over = room - cell_len(trimmed[clause:]) - 2 if clause else -1
    if left_over >= 0:
        # The last clause is whole, after as much of the beginning as there is room for.
        head = _head(trimmed, min(left_over, room * 2 // 5)) if left_over > LONG_WORD // 2 else ""
        return f"{head}{ELLIPSIS} {trimmed[clause:]}{end}"
    shortened = _without_middle(trimmed, room)
    if shortened.rpartition(ELLIPSIS)[2].count('"') % 2 == 0 and ('"' in shortened or '"' not in trimmed):
        return shortened + end
    # Nothing begins within quotes, and `"14 days" is not in the text` says first what decides.
    return fit_text(f"{ELLIPSIS} {trimmed[clause:]}" if clause else trimmed, width)


def _breaks(text: str) -> list[tuple[int, str]]:
    """Where remarks begin that are not in quotes, and which sign is there: `: `, `; ` or ` (`."""
    breaks, in_quotes = [], False
    for sign in _SIGNS.finditer(text):
        if sign[0] == '"':
            in_quotes = not in_quotes
        elif not in_quotes:
            breaks.append((sign.start(), sign[0][0]))
    return breaks


def _without_middle(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    head = _head(text, width * 2 // 5 - 1) if width >= SHORT_REASON else ""
    room = width - cell_len(head) - 1
    start = len(text)
    while start > 0 and cell_len(text[start - 1 :]) <= room:
        start -= 1
    word = text.find(" ", start, start + LONG_WORD)
    return f"{head}{ELLIPSIS}{text[start if word < 0 else word :]}"


def _head(text: str, width: int) -> str:
    """The beginning of a longer text, at most this wide, up to a space if one is near."""
    head = fit_text(text, width + 1)[:-1]
    if head and text[len(head)] != " " and len(head) - LONG_WORD <= head.rfind(" "):
        head = head[: head.rfind(" ")]
    return head


def pad(line: Iterable[Cell], width: int, style: str = "") -> Line:
    """The line in exactly `width` cells: cut with `…`, or filled with spaces on the right."""
    cells, used = _fitted(line, width)
    missing = width - used
    return (*cells, (" " * missing, style)) if missing > 0 else cells


def right(text: str, width: int) -> str:
    """`text` right-aligned in `width` cells (cut with `…` when longer)."""
    if len(text) <= width and _plain(text):
        return text.rjust(width)
    fitted = fit_text(text, width)
    return " " * (width - cell_len(fitted)) + fitted


def left(text: str, width: int) -> str:
    """`text` left-aligned in `width` cells (cut with `…` when longer)."""
    if len(text) <= width and _plain(text):
        return text.ljust(width)
    fitted = fit_text(text, width)
    return fitted + " " * (width - cell_len(fitted))


def spread(start: Iterable[Cell], end: Iterable[Cell], width: int) -> Line:
    """`start` at the left and `end` at the right edge; when there is no room for both, `start` is cut."""
    end = tuple(end)
    end_width = width_of(end)
    if end_width >= width:
        return fit(end, width)
    room = width - end_width
    cells, used = _fitted(start, room - 1 if end_width else room)
    return (*cells, (" " * (room - used), ""), *end)


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
        # Nearly all text: one search for a space instead of a look at each letter.
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
        # A mark without a width belongs to the character before it, however little room that has.
        if size and used + size > width and index > line:
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
        # Spaces at the beginning of a line are its indent, and no place to break it.
        if char == " " and text[line:index].strip():
            space = index
        used += size
        index += 1
    spans.append((line, end))


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


def error_state(error: AgentevalError, width: int) -> list[Line]:
    """What a list of this width shows that could not be read."""
    return [(), *indented(error_lines(error, max(width - 4, 20)))]
