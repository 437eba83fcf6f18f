"""Heights of many things one below the other: where each begins, and which is at a row, in O(log n)."""

from __future__ import annotations

from collections.abc import Iterable


class Heights:
    """A list of heights with fast sums (a Fenwick tree)."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights: list[int] = []
        self._tree: list[int] = [0]
        for height in heights:
            self.append(height)

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    @property
    def total(self) -> int:
        """All heights together."""
        return self.top(len(self._heights))

    def append(self, height: int) -> None:
        """One more at the end."""
        self._heights.append(height)
        index = len(self._heights)
        total = height
        step = 1
        while step < (index & -index):
            total += self._tree[index - step]
            step <<= 1
        self._tree.append(total)

    def truncate(self, count: int) -> None:
        """Keep the first `count`."""
        del self._heights[count:]
        del self._tree[count + 1 :]

    def set(self, index: int, height: int) -> None:
        """Change one."""
        delta = height - self._heights[index]
        self._heights[index] = height
        index += 1
        while index < len(self._tree):
            self._tree[index] += delta
            index += index & -index

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
