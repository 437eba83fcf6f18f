"""Sequences of which most begin as an earlier one did, such as the messages of one request after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from agenteval_tui.core.common_ends import common_start

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
