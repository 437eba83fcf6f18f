"""The file changed on disk since it was read: show how, and ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.common_prefix import common_end, common_start
from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.styled_text import Line, cell_len, fit
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame


def diff_lines(diff: str, width: int) -> list[Line]:
    """A unified difference, added and removed lines coloured (the signs say it too).

    Of two long lines, one in place of the other, what both have at the start and the end is cut off. What differs is
    shown whole, over several lines if need be: the person decides by it.
    """
    rows = [displayable(row).expandtabs(4) for row in diff.splitlines()]
    lines: list[Line] = []
    place = 0
    while place < len(rows):
        if place < _HEADER or not rows[place].startswith(("+", "-")):
            # The names of the files, too: their colours say whose the lines are.
            lines.append(fit(((rows[place], _STYLES.get(rows[place][:1], "")),), width))
            place += 1
            continue
        end = place
        while end < len(rows) and rows[end].startswith(("+", "-", "\\")):
            end += 1
        lines += _changed_lines(rows[place:end], width)
        place = end
    return lines


def both_lines(both: Sequence[tuple[str, str, str]], width: int) -> list[Line]:
    """The values that both sides changed, mine and the file's; nothing where there are none."""
    if not both:
        return []
    lines: list[Line] = [fit((("Changed here and on disk; your edit replaces the file's:", "review"),), width)]
    for label, mine, theirs in both:
        lines.append(fit(((one_line(label, width), "bold"),), width))
        for sign, value in (("+ yours       ", mine), ("- the file's  ", theirs)):
            words = one_line(value, 400) if value else "(nothing)"
            lines += [fit(((piece, _STYLES[sign[0]]),), width) for piece in _pieces(sign + words, max(width, 2))]
    return [*lines, ()]


_STYLES = {"+": "added", "-": "removed", "@": "accent"}
_HEADER = 2
"""Lines with the names of the files."""
_AROUND = 12
"""Characters around what differs."""


def _changed_lines(rows: Sequence[str], width: int) -> list[Line]:
    texts = list(rows)
    gone = [place for place, row in enumerate(rows) if row.startswith("-")]
    new = [place for place, row in enumerate(rows) if row.startswith("+")]
    # A long line is cut to where it differs from the line that took its place, by their order.
    for old, now in zip(gone, new, strict=False):
        if max(cell_len(rows[old]), cell_len(rows[now])) > width:
            texts[old], texts[now] = _around_difference(rows[old], rows[now])
    return [
        fit(((piece, _STYLES.get(text[:1], "")),), width) for text in texts for piece in _pieces(text, max(width, 2))
    ]


def _around_difference(old: str, new: str) -> tuple[str, str]:
    """Both lines without what they have in common far from where they differ."""
    before = common_start(old[1:], new[1:])
    after = common_end(old[1:], new[1:], before)
    start, end = max(0, before - _AROUND), max(0, after - _AROUND)

    def cut(row: str) -> str:
        middle = row[1 + start : len(row) - end]
        return f"{row[0]}{'…' if start else ''}{middle}{'…' if end else ''}"

    return cut(old), cut(new)


def _pieces(text: str, width: int) -> Iterator[str]:
    """A line in pieces that fit, the sign before each."""
    sign, rest = text[:1], text[1:]
    while True:
        end = len(rest)
        if cell_len(rest) > width - 1:
            end, used = 0, 1
            while end < len(rest) and (used := used + cell_len(rest[end])) <= width:
                end += 1
            end = max(end, 1)
        yield sign + rest[:end]
        rest = rest[end:]
        if not rest:
            return


class FileConflictScreen(Sheet[bool]):
    """True: put my edit into the file as it is now. None: leave the file alone; the edit stays in the editor."""

    SCOPE = "conflict"
    BINDINGS: ClassVar[list[BindingType]] = bindings("conflict")

    def __init__(
        self,
        name: str,
        diff: str,
        what: str = "apply my edit to the new version",
        both: Sequence[tuple[str, str, str]] = (),
    ) -> None:
        """`what`: what is done when the person says yes. `both`: (what it is, mine, the file's) of each value that both
        sides changed; yes takes mine."""
        super().__init__()
        self._what = one_line(what, 60)
        self._file_name = name
        self._diff = diff
        self._both = both

    def compose(self) -> ComposeResult:
        keys = self.edge(("apply", self._what))
        with SheetFrame("Changed on disk since it was loaded", keys, subject=one_line(self._file_name)):
            yield LinesView(self._lines, id="diff")

    def _lines(self, width: int) -> list[Line]:
        return [*both_lines(self._both, width), *diff_lines(self._diff, width)]

    def action_apply(self) -> None:
        self.dismiss(True)
