"""Heights of many things one below the other: where each begins, and which is at a row, in O(log n)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate


class Heights:
    """A list of heights with fast sums (a Fenwick tree)."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._tree = [0]
        self._build()

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    @property
    def total(self) -> int:
        """All heights together."""
        return self.top(len(self._heights))

    def splice(self, start: int, stop: int, heights: Iterable[int]) -> None:
        """Put `heights` in place of numbers `start`..`stop`. What is before `start` costs nothing."""
        self._heights[start:stop] = heights
        self._build(start)

    def set(self, index: int, height: int) -> None:
        """Change one."""
        delta = height - self._heights[index]
        self._heights[index] = height
        index += 1
        while index < len(self._tree):
            self._tree[index] += delta
            index += index & -index

    def settle(self, row: int, count: int, measure: Callable[[int], None]) -> None:
        """Have `measure` set the height of each one that is in `row`..`row + count`, as far as that then reaches."""
        index, into = self.at(max(row, 0))
        missing = count + into
        while index < len(self._heights) and missing > 0:
            measure(index)
            missing -= self._heights[index]
            index += 1

    def top(self, index: int) -> int:
        """The row at which number `index` begins (the sum of all before it)."""
        total = 0
        while index > 0:
            total += self._tree[index]
            index -= index & -index
        return total

    def at(self, row: int) -> tuple[int, int]:
        """Which one is at `row`, and how far into it. Behind the end: (count, rows behind the end)."""
        index = 0
        step = 1 << len(self._heights).bit_length()
        rest = row
        while step:
            following = index + step
            if following < len(self._tree) and self._tree[following] <= rest:
                index = following
                rest -= self._tree[following]
            step >>= 1
        return index, rest

    def _build(self, start: int = 0) -> None:
        sums = list(accumulate(self._heights[start:], initial=self.top(start)))
        del self._tree[start + 1 :]
        for index in range(start + 1, len(self._heights) + 1):
            before = index - (index & -index)
            total = sums[index - start]
            self._tree.append(total - (sums[before - start] if before >= start else self.top(before)))
