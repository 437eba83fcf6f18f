"""What two texts or sequences have in common at their start and end, and sequences of which most begin as an earlier
one did. Slices are compared as wholes: texts may have megabytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar


def common_start(text: Sequence[object], other: Sequence[object]) -> int:
    """How many characters are the same at the start of both; of lists, how many entries."""
    low, high = 0, min(len(text), len(other))
    if text[:1] != other[:1]:
        return 0  # most texts that are compared with many others have nothing in common
    while low < high:
        middle = (low + high + 1) // 2
        if text[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(text: Sequence[object], other: Sequence[object], start: int = 0) -> int:
    """How many characters (entries) are the same at the end of both, behind the first `start`."""
    return common_start(text[start:][::-1], other[start:][::-1])


T = TypeVar("T")
_KEPT = 16
"""Conversations that are kept at once: each new sequence is compared with the end of each conversation."""


class SharedStarts(Generic[T]):
    """What was read of the last sequences, so that a longer sequence is read from where an earlier one ended."""

    def __init__(self) -> None:
        self._earlier: deque[tuple[Sequence[object], T]] = deque(maxlen=_KEPT)

    def of(self, sequence: Sequence[object], read: Callable[[int, T | None], T]) -> T:
        """What `read` gives. It gets how many entries the sequence has in common with the earlier one that shares the
        most, and what was read of that; (0, None) if it shares none."""
        shared, nearest = 0, None
        for earlier in self._earlier:
            length = common_start(sequence, earlier[0])
            if length > shared:
                shared, nearest = length, earlier
        value = read(shared, None if nearest is None else nearest[1])
        # A conversation takes one place, however often it goes on. One that only begins in the same way takes another.
        if nearest is not None and 2 * shared >= len(nearest[0]):
            self._earlier.remove(nearest)
        self._earlier.append((sequence, value))
        return value
