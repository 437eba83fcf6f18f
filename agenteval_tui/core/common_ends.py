"""What two texts have in common at their start and end. Slices are compared as wholes: texts may have megabytes."""

from __future__ import annotations

from collections.abc import Sequence


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
