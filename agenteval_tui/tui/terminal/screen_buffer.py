"""What the terminal shows, kept cell by cell: of another picture only the cells that differ are sent.

The toolkit sends a changed region whole, in full colour. Over a slow line that is what one waits for. A row with
characters that terminals disagree about (emoji, marks that take no cell) is sent as the toolkit would: what the
terminal made of it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.segment import Segment
from textual.strip import Strip

from agenteval_tui.core.groups import grouped
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
            # What the terminal makes of this row is not known: it is sent as the toolkit would, and known again only
            # where the whole of it was replaced.
            if row is None or len(drawn) < len(pieces):
                for x, strip, most in pieces:
                    pen.whole(x, y, _without_head_marks(strip.crop(0, most)).render(console))
                whole = [cell for _, cells in drawn for cell in cells]
                everything = len(drawn) == len(pieces) and len(whole) == sum(most for *_, most in pieces) == self.width
                self._rows[y] = whole if everything else None
                continue
            changed: list[_Stroke] = []
            for x, cells in drawn:
                # The terminal has no cells there; text that is written past its edge would go to the next row, or stay
                # on the last cell.
                del cells[max(self.width - x, 0) :]
                before = row[x : x + len(cells)]
                if before != cells:
                    for start, end in _runs(before, cells):
                        changed += _strokes(x + start, cells[start:end])
                    row[x : x + len(cells)] = cells
            if changed:
                pen.draw(y, changed)
        return pen.done()


Word = tuple[int, str, int]
"""Where it begins, what it is, and where it ends."""


@dataclass(slots=True)
class _Stroke:
    """Neighbouring cells that are written in one style: words, and spaces around them. A space that is seen, as an
    underlined one is, is a letter like others."""

    x: int
    end: int
    look: Look
    words: list[Word]


def _takes(look: Look, background: str) -> bool:
    """Do spaces of that background look the same in this style?"""
    return look[2] == background and not _SEEN_ON_BLANKS.intersection(look[0])


def _strokes(x: int, cells: Sequence[Cell]) -> list[_Stroke]:
    """Neighbouring cells as strokes, as few as there can be: spaces belong to a neighbour with their background."""
    strokes: list[_Stroke] = []
    last: _Stroke | None = None
    at, number = 0, len(cells)
    while at < number:
        text, name = cell = cells[at]
        look, begin = _parts(name), at
        at += 1
        # A space shows only the background, so it takes on the style of a neighbour: each change of style costs up to
        # twenty bytes.
        if text == " " and not look[0]:
            while at < number and cells[at] == cell:
                at += 1
            if last is not None and _takes(last.look, look[2]):
                last.end = x + at
                continue
            last = _Stroke(x + begin, x + at, ((), "", look[2]), [])
        else:
            while at < number and cells[at][1] == name and (cells[at][0] != " " or look[0]):
                at += 1
            word = (x + begin, "".join([text for text, _ in cells[begin:at]]), x + at)
            # The stroke before may be spaces alone: then they take on this style.
            if last is not None and (last.look == look or (not last.words and _takes(look, last.look[2]))):
                last.words.append(word)
                last.look, last.end = look, x + at
                continue
            last = _Stroke(x + begin, x + at, look, [word])
        strokes.append(last)
    return strokes


class _Row:
    """Writes strokes of a row. Knows which style is set, and where the cursor is in the row (-1: elsewhere)."""

    def __init__(self, y: int, look: Look, *, erases: bool) -> None:
        self.out: list[str] = []
        self.look = look
        self._y = y
        self._erases = erases
        self._at = -1

    def cost(self, next_styles: Set[tuple[tuple[str, ...], str]]) -> int:
        """The number of characters to write, less those that the next row saves because one of `next_styles` is set."""
        attributes, colour, _ = self.look
        return sum(map(len, self.out)) - (len(colour) + 1 if (attributes, colour) in next_styles else 0)

    def erase(self, ground: range, background: str, then: Look) -> None:
        """Erase these cells to the background. `then`: the style of the next text, which is set already if the
        background allows it."""
        self._go(ground.start)
        self._set(then if _takes(then, background) else _of_spaces(self.look, background))
        self.out.append(f"\x1b[{len(ground)}X")

    def write(self, stroke: _Stroke, *, is_erased: bool, is_followed: bool) -> None:
        """Write a stroke. `is_erased`: its spaces are on the screen already; `is_followed`: another stroke follows it
        in the row."""
        if is_erased and not stroke.words:
            return
        if not is_erased:
            self._go(stroke.x)
        self._set(stroke.look if stroke.words else _of_spaces(self.look, stroke.look[2]))
        here = stroke.x
        for x, text, end in stroke.words:
            # To write a space is shorter than to go past it.
            if x == here + 1 and here == self._at:
                self.out.append(" ")
            elif x > here:
                self._space(here, x - here, is_erased, is_followed=True)
                self._go(x)
            elif x != self._at:
                self._go(x)
            self.out.append(text)
            self._at = here = end
        if stroke.end > here:
            self._space(here, stroke.end - here, is_erased, is_followed=is_followed)

    def _space(self, x: int, number: int, is_erased: bool, *, is_followed: bool) -> None:
        if is_erased:
            if is_followed and number <= BRIDGE and self._at == x:
                self.out.append(" " * number)
                self._at = x + number
            return
        self._go(x)
        if self._erases and number > (ERASED if is_followed else 4):
            self.out.append(f"\x1b[{number}X")
        else:
            self.out.append(" " * number)
            self._at = x + number

    def _set(self, look: Look) -> None:
        if look != self.look:
            self.out.append(_change(self.look, look))
            self.look = look

    def _go(self, x: int) -> None:
        if self._at == x:
            return
        if self._at < 0:
            self.out.append(f"\x1b[{self._y + 1};{x + 1}H" if x else f"\x1b[{self._y + 1}H")
        elif not x:
            self.out.append("\r")
        else:
            ways = [f"\x1b[{x + 1}G"]
            if x > self._at:
                ways.append(f"\x1b[{x - self._at}C" if x > self._at + 1 else "\x1b[C")
            self.out.append(min(ways, key=len))
        self._at = x


class _Pen:
    """Writes rows, and knows which style is set."""

    def __init__(self, erases: bool) -> None:
        self._out: list[str] = []
        self._erases = erases
        self._look = PLAIN
        self._waiting: tuple[int, Sequence[_Stroke]] | None = None

    def draw(self, y: int, strokes: Sequence[_Stroke]) -> None:
        """Write strokes of a row. It waits for what comes next: the style that is set last may be of use there."""
        self._draw_waiting(strokes)
        self._waiting = y, strokes

    def _draw_waiting(self, then: Sequence[_Stroke] = ()) -> None:
        """Write the row that waits in the way that is shortest: from left to right or one style after the other (to set
        a colour costs up to twenty bytes, to go somewhere else in the row five), with or without erasing it before.
        `then`: what is written next, in another row."""
        if self._waiting is None:
            return
        (y, strokes), self._waiting = self._waiting, None
        next_styles = {stroke.look[:2] for stroke in then if stroke.words and stroke.look[1]}
        orders = [strokes]
        # Only where a style comes more than once can another order save anything.
        if len({stroke.look for stroke in strokes}) < len(strokes):
            orders += _by_style(strokes, self._look), _by_style(strokes, self._look, next_styles)
        rows = [self._row(y, order) for order in orders]
        best = min(rows, key=lambda row: row.cost(next_styles))
        if self._erases and (grounds := _grounds(strokes)):
            erased = [self._row(y, order, grounds) for order in orders]
            best = min([best, *erased], key=lambda row: row.cost(next_styles))
        self._out += best.out
        self._look = best.look

    def _row(self, y: int, strokes: Sequence[_Stroke], grounds: Sequence[tuple[range, str]] = ()) -> _Row:
        row = _Row(y, self._look, erases=self._erases)
        first = next((stroke.look for stroke in strokes if stroke.words), PLAIN)
        for number, (ground, background) in enumerate(grounds, 1):
            row.erase(ground, background, first if number == len(grounds) else PLAIN)
        last = len(strokes) - 1
        for number, stroke in enumerate(strokes):
            is_erased = bool(grounds) and any(stroke.x in ground for ground, _ in grounds)
            is_followed = number < last and strokes[number + 1].x == stroke.end
            row.write(stroke, is_erased=is_erased, is_followed=is_followed)
        return row

    def whole(self, x: int, y: int, text: str) -> None:
        """Write what the toolkit would."""
        self._draw_waiting()
        self._plain()
        self._out.append(f"\x1b[{y + 1};{x + 1}H{text}")

    def done(self) -> str:
        """All that was written."""
        self._draw_waiting()
        self._plain()
        return "".join(self._out)

    def _plain(self) -> None:
        if self._look != PLAIN:
            self._out.append("\x1b[0m")
            self._look = PLAIN


def _grounds(strokes: Sequence[_Stroke]) -> list[tuple[range, str]]:
    """Where neighbouring cells have one background, and which; only where there are many."""
    grounds: list[tuple[range, str]] = []
    for stroke in strokes:
        cells = range(stroke.x, stroke.end)
        if grounds and grounds[-1][0].stop == cells.start and grounds[-1][1] == stroke.look[2]:
            cells = range(grounds.pop()[0].start, cells.stop)
        grounds.append((cells, stroke.look[2]))
    return [ground for ground in grounds if len(ground[0]) > ERASED]


def _by_style(
    strokes: Sequence[_Stroke], look: Look, next_styles: Set[tuple[tuple[str, ...], str]] = frozenset()
) -> list[_Stroke]:
    """The strokes of each style together; next comes the style that is set with the fewest bytes, and last one of
    `next_styles`, if there is any."""
    groups = grouped((stroke.look, stroke) for stroke in strokes)
    ordered: list[_Stroke] = []
    matching = [each for each in groups if each[:2] in next_styles and each[:2] != look[:2]]
    while groups:
        free = groups.keys() - matching[-1:] or groups.keys()
        nearest = min((each for each in groups if each in free), key=lambda each: _way(look, each))
        group = groups.pop(nearest)
        blanks = ((), "", nearest[2])
        if blanks in groups and _takes(nearest, nearest[2]):
            group = sorted([*group, *groups.pop(blanks)], key=lambda each: each.x)
        ordered += group
        look = nearest
    return ordered


def _way(look: Look, other: Look) -> int:
    """How many characters it takes to set the other style."""
    return 0 if look == other else len(_change(look, other))


def _of_spaces(look: Look, background: str) -> Look:
    """The style to set for spaces, which show their background only: the one that is set, as far as it can stay."""
    attributes, colour, _ = look
    return tuple(attribute for attribute in attributes if attribute not in _SEEN_ON_BLANKS), colour, background


def _cells(strip: Strip, colours: ColorSystem) -> list[Cell] | None:
    """The strip's cells; None where a terminal may see others than we do."""
    cells: list[Cell] = []
    for text, style, control in strip:
        # Links are written with an address, and control segments move the cursor: neither is a cell.
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
    # The toolkit measured it differently: then nobody knows what the terminal shows.
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
    # A further style in the gap would cost more than the jump.
    if len(looks) > 1 or not looks.issubset(edges):
        return False
    return all(not blank[0] and all(edge[2] == blank[2] for edge in edges) for blank in blanks) or (
        len(blanks) == 1 and not looks and blanks.issubset(edges)
    )


Look = tuple[tuple[str, ...], str, str]
PLAIN: Look = ((), "", "")
_SEEN_ON_BLANKS = frozenset({"4", "5", "6", "7", "9", "21", "51", "52", "53"})
_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "6": "25", "7": "27", "9": "29"}
"""What ends an attribute; the others end with a full reset."""


@lru_cache(maxsize=4096)
def _parts(look: str) -> Look:
    """(attributes, colour, background), as they are written; "" for the terminal's own."""
    attributes: list[str] = []
    colour = background = ""
    codes = look.split(";") if look else []
    index = 0
    while index < len(codes):
        code = codes[index]
        # `38;5;n` is a colour of the palette, `38;2;r;g;b` one of its own.
        length = {"5": 3, "2": 5}.get(codes[index + 1], 1) if code in ("38", "48") and index + 1 < len(codes) else 1
        whole = ";".join(codes[index : index + length])
        index += length
        number = int(code)
        if number == 38 or 30 <= number <= 37 or 90 <= number <= 97:
            colour = whole
        elif number == 48 or 40 <= number <= 47 or 100 <= number <= 107:
            background = whole
        # These mean the terminal's own style and colours, as nothing does here.
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
    gone = [attribute for attribute in old if attribute not in new]
    if not all(attribute in _OFF for attribute in gone):
        return f"\x1b[{anew}m"
    ends = dict.fromkeys(_OFF[attribute] for attribute in gone)
    # Bold and faint end together: the one that stays is set again.
    codes = [*ends, *(attribute for attribute in new if attribute not in old or _OFF.get(attribute) in ends)]
    if colour != old_colour:
        codes.append(colour or "39")
    if background != old_background:
        codes.append(background or "49")
    return f"\x1b[{min(';'.join(codes), anew, key=len)}m" if codes else ""
