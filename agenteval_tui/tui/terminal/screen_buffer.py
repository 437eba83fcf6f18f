"""What the terminal shows, kept cell by cell: of another picture only the cells that differ are sent.

The toolkit sends a changed region whole, in full colour. Over a slow line that is what one waits for. A row with
characters that terminals disagree about (emoji, marks that take no cell) is sent as the toolkit would: what the
terminal made of it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.segment import Segment
from textual.strip import Strip

from agenteval_tui.tui.styled_text import cell_len

# What a cell holds: its character ("" behind a wide one), and what is written to the terminal for its style.
Cell = tuple[str, str]
# Where it begins, what it is, and how many of its cells the toolkit would write.
Piece = tuple[int, Strip, int]

UNKNOWN: Cell = ("\0", "")
DOUBTFUL = 0x1F000  # emoji begin here
ERASED = 12  # more spaces than these are erased in one go: to say so and to go past them costs ten bytes
BRIDGE = 4  # bytes: equal cells that cost no more are written again rather than skipped, which costs as much


class Mirror:
    """A terminal of `width` x `height`, of which nothing is known at first. `erases`: cells that it erases take the
    background that is set ("bce" in terminfo)."""

    def __init__(self, width: int, height: int, *, erases: bool = False) -> None:
        self.width = width
        self.height = height
        self._erases = erases
        # None: a row of which only the terminal knows how it looks
        self._rows: list[list[Cell] | None] = [[UNKNOWN] * width for _ in range(height)]

    def paint(self, rows: Iterable[tuple[int, Sequence[Piece]]], console: Console) -> str:
        """What to write so that the terminal shows these pieces, of row y (from 0) each; "" when it does already.

        Begins and ends with no style set.
        """
        pen = _Pen(self._erases)
        colours = COLOR_SYSTEMS[console.color_system or "truecolor"]
        for y, pieces in rows:
            if not 0 <= y < self.height:
                continue
            row = self._rows[y]
            drawn = [(x, cells) for x, strip, _ in pieces if (cells := _cells(strip, colours)) is not None]
            if row is None or len(drawn) < len(pieces):
                for x, strip, most in pieces:
                    pen.whole(x, y, _without_head_marks(strip.crop(0, most)).render(console))
                whole = [cell for _, cells in drawn for cell in cells]
                everything = len(drawn) == len(pieces) and len(whole) == sum(most for *_, most in pieces) == self.width
                self._rows[y] = whole if everything else None
                continue
            pen.at = -1
            for x, cells in drawn:
                del cells[max(self.width - x, 0) :]
                before = row[x : x + len(cells)]
                if before != cells:
                    for start, end in _runs(before, cells):
                        pen.draw(x + start, y, cells[start:end])
                    row[x : x + len(cells)] = cells
        return pen.done()


class _Pen:
    """Writes, and knows where in the row it is (-1: elsewhere) and which style is set."""

    def __init__(self, erases: bool) -> None:
        self._out: list[str] = []
        self._erases = erases
        self._look = PLAIN
        self.at = -1

    def draw(self, x: int, y: int, cells: Sequence[Cell]) -> None:
        """Write some cells of a row."""
        if self.at < 0:
            self._out.append(f"\x1b[{y + 1};{x + 1}H")
        elif x > self.at:
            self._out.append(f"\x1b[{x - self.at}C")
        end = len(cells)
        at = here = 0  # the cell that is written next, and the one where the cursor is
        while at < end:
            text, name = cells[at]
            look = _parts(name)
            is_blank = text == " " and not look[0]
            if is_blank:
                look = self._look_of_blank(cells, at, look)
            if look != self._look:
                self._out.append(_change(self._look, look))
                self._look = look
            if is_blank and self._erases and (spaces := _spaces(cells, at)) > ERASED:
                self._go(at - here)
                self._out.append(f"\x1b[{spaces}X")
                here, at = at, at + spaces
                continue
            self._go(at - here)
            self._out.append(text)
            at = here = at + 1
        self.at = x + here

    def _look_of_blank(self, cells: Sequence[Cell], at: int, blank: Look) -> Look:
        """The style to set for a space, which shows its background only: the one that is set, or that of the text
        behind it, where they have that background."""
        attributes, colour, background = self._look
        if background == blank[2] and not _SEEN_ON_BLANKS.intersection(attributes):
            return self._look
        behind = next((_parts(name) for text, name in cells[at:] if text != " "), blank)
        if behind[2] == blank[2] and not _SEEN_ON_BLANKS.intersection(behind[0]):
            return behind
        return tuple(one for one in attributes if one not in _SEEN_ON_BLANKS), colour, blank[2]

    def _go(self, cells: int) -> None:
        if cells:
            self._out.append(f"\x1b[{cells}C")

    def whole(self, x: int, y: int, text: str) -> None:
        """Write what the toolkit would."""
        self._plain()
        self._out.append(f"\x1b[{y + 1};{x + 1}H{text}")
        self.at = -1

    def done(self) -> str:
        """All that was written."""
        self._plain()
        return "".join(self._out)

    def _plain(self) -> None:
        if self._look != PLAIN:
            self._out.append("\x1b[0m")
            self._look = PLAIN


def _spaces(cells: Sequence[Cell], start: int) -> int:
    """How many spaces of one look are in a row from there on."""
    space = cells[start]
    return next((at for at in range(start + 1, len(cells)) if cells[at] != space), len(cells)) - start


def _cells(strip: Strip, colours: ColorSystem) -> list[Cell] | None:
    """The strip's cells; None where a terminal may see others than we do."""
    cells: list[Cell] = []
    for text, style, control in strip:
        if control or (style is not None and style.link):
            return None
        look = "" if style is None else Strip.render_ansi(style, colours)
        blank = _of_blank(look)
        if text.isascii():
            if not text.isprintable():
                return None
            cells += [(char, look) if char != " " else (char, blank) for char in text]
            continue
        for char in text:
            width = _width(char)
            if not width:
                return None
            cells.append((char, look) if char != " " else (char, blank))
            if width == 2:
                cells.append(("", look))
    return cells if len(cells) == strip.cell_length else None


def _without_head_marks(strip: Strip) -> Strip:
    """The strip without marks that it begins with: what lies over the row cut them off their letter, and on the screen
    they would change the character to the left."""
    for number, (text, style, control) in enumerate(strip):
        if control or not text:
            continue
        head = next((at for at, char in enumerate(text) if cell_len(char)), len(text))
        if not head:
            return strip
        segments = list(strip)
        segments[number] = Segment(text[head:], style)
        return Strip(segments, strip.cell_length)
    return strip


@lru_cache(maxsize=4096)
def _width(char: str) -> int:
    """Cells of a character; 0 where terminals disagree."""
    return cell_len(char) if char.isprintable() and ord(char) < DOUBTFUL else 0


def _runs(before: Sequence[Cell], after: Sequence[Cell]) -> list[tuple[int, int]]:
    """From where to where cells differ. Small gaps that cost no more than a jump are part of a run."""
    runs: list[tuple[int, int]] = []
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        if old == new:
            continue
        # A wide character is written from its first cell.
        start = index - 1 if not new[0] and index else index
        if runs:
            first, end = runs[-1]
            if start <= end or (start - end <= BRIDGE and _is_bridge(after[end - 1 : start + 1])):
                runs[-1] = (first, index + 1)
                continue
        runs.append((start, index + 1))
    # Nor does one end within it.
    return [(start, end + 1 if end < len(after) and not after[end][0] else end) for start, end in runs]


def _is_bridge(cells: Sequence[Cell]) -> bool:
    """Whether the cells between the first and the last are cheap to write again: few bytes, in a style that is set
    there anyway."""
    gap = cells[1:-1]
    if sum(len(text.encode()) for text, _ in gap) > BRIDGE:
        return False
    edges = [_parts(look) for _, look in (cells[0], cells[-1])]
    looks = {_parts(look) for text, look in gap if text != " "}
    blanks = {_parts(look) for text, look in gap if text == " "}
    if len(looks) > 1 or not looks.issubset(edges):
        return False
    return all(not blank[0] and all(edge[2] == blank[2] for edge in edges) for blank in blanks) or (
        len(blanks) == 1 and not looks and blanks.issubset(edges)
    )


Look = tuple[tuple[str, ...], str, str]
PLAIN: Look = ((), "", "")
_SEEN_ON_BLANKS = frozenset({"4", "5", "6", "7", "9", "21", "51", "52", "53"})
_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "6": "25", "7": "27", "9": "29"}
"""What ends an attribute; others end with all of them."""


@lru_cache(maxsize=4096)
def _parts(look: str) -> Look:
    """(attributes, colour, background), as they are written; "" for the terminal's own."""
    attributes: list[str] = []
    colour = background = ""
    codes = look.split(";") if look else []
    index = 0
    while index < len(codes):
        code = codes[index]
        length = {"5": 3, "2": 5}.get(codes[index + 1], 1) if code in ("38", "48") and index + 1 < len(codes) else 1
        whole = ";".join(codes[index : index + length])
        index += length
        number = int(code)
        if number == 38 or 30 <= number <= 37 or 90 <= number <= 97:
            colour = whole
        elif number == 48 or 40 <= number <= 47 or 100 <= number <= 107:
            background = whole
        elif number not in (0, 39, 49):
            attributes.append(whole)
    return tuple(attributes), colour, background


@lru_cache(maxsize=4096)
def _of_blank(look: str) -> str:
    """The look of a space in that style: it shows the background only, unless it is underlined or the like."""
    attributes, _, background = _parts(look)
    return look if _SEEN_ON_BLANKS.intersection(attributes) else background


@lru_cache(maxsize=4096)
def _change(before: Look, after: Look) -> str:
    """What to write to go from one style to another: what differs, or all of it anew where that is shorter."""
    if after == PLAIN:
        return "\x1b[0m"
    (old, old_colour, old_background), (new, colour, background) = before, after
    anew = ";".join(["0", *new, *filter(None, (colour, background))])
    gone = [one for one in old if one not in new]
    if not all(one in _OFF for one in gone):
        return f"\x1b[{anew}m"
    ends = dict.fromkeys(_OFF[one] for one in gone)
    # Bold and faint end together: the one that stays is set again.
    codes = [*ends, *(one for one in new if one not in old or _OFF.get(one) in ends)]
    if colour != old_colour:
        codes.append(colour or "39")
    if background != old_background:
        codes.append(background or "49")
    return f"\x1b[{min(';'.join(codes), anew, key=len)}m" if codes else ""
