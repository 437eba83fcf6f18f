"""A text in which a summary replaces each folded piece, and the mapping between both texts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from agenteval_tui.tui.presenters.arguments import Fold
from agenteval_tui.tui.presenters.block_layout import TIE, Range

KEY = f"{TIE}{TIE}f"
"""Never alone on a row: the last word of the summary stands before it."""


class FoldedText:
    """`full` with `folds` (in order, apart) replaced by their summaries: `text`. Offsets are mapped both ways. `key`,
    after each summary, is the key that unfolds it."""

    def __init__(self, full: str, folds: Sequence[Fold], *, key: str = KEY) -> None:
        self.full = full
        parts: list[str] = []
        self._full: list[int] = [0]  # where pieces begin that both texts have, in the full text and in this one
        self._short: list[int] = [0]
        self._summaries: list[Range] = []
        before = size = 0
        for fold in folds:
            summary = fold.summary + key
            parts += (full[before : fold.start], summary)
            size += fold.start - before
            self._summaries.append(Range(size, size + len(fold.summary), "dim"))
            self._summaries.append(Range(size + len(fold.summary), size + len(summary), "bold accent"))
            size += len(summary)
            before = fold.end
            self._full.append(fold.end)
            self._short.append(size)
        self._starts = [fold.start for fold in folds]
        self.text = "".join([*parts, full[before:]])

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The pieces of the full text between what is folded."""
        return list(zip(self._full, [*self._starts, len(self.full)], strict=True))

    def forth(self, offset: int) -> int | None:
        """Where character `offset` of the full text is in this one; None in a folded piece."""
        piece = bisect_right(self._full, offset) - 1
        if piece < len(self._starts) and offset > self._starts[piece]:
            return None
        return self._short[piece] + offset - self._full[piece]

    def back(self, offset: int) -> int:
        """Which character of the full text is at `offset`; for a summary, the first that it replaces."""
        piece = bisect_right(self._short, offset) - 1
        full_offset = self._full[piece] + offset - self._short[piece]
        return min(full_offset, self._starts[piece]) if piece < len(self._starts) else full_offset

    def ranges(self, ranges: Iterable[Range]) -> list[Range]:
        """The ranges of the full text that are seen in this one, and those of the summaries."""
        moved = list(self._summaries)
        for styled_range in ranges:
            start, end = self.forth(styled_range.start), self.forth(styled_range.end)
            if start is not None and end is not None and (end > start or styled_range.start == styled_range.end):
                moved.append(replace(styled_range, start=start, end=end))
        return moved
