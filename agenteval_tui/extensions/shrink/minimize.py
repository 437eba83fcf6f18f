"""The smallest set of parts for which something still holds, with few questions.

For independent parts a search by halves finds the k parts out of n that matter with about k log2(n) questions (U.
Junker, "QuickXplain: Preferred Explanations and Relaxations for Over-Constrained Problems", AAAI 2004, is the same
idea for constraints; Zeller's ddmin needs up to k^2 + 3n). Nothing is assumed about parts that need one another: what
is given always holds, and the check at the end takes out what can still go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def smallest(parts: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> list[T]:
    """A small selection of `parts`, in their order, for which `holds` is true. It is true of `parts` as a whole.

    `holds` is asked for the empty selection first. Equal questions may come again: the caller remembers answers.
    """
    chosen: list[int] = []
    remaining = len(parts)
    # What is behind the last part that matters is not needed, so only the parts before it are looked at next.
    while remaining and not holds(_chosen(parts, 0, chosen)):
        # Of the first `left` parts `least` are not enough, and `enough` are.
        least, enough = 0, remaining
        while enough - least > 1:
            middle = (least + enough) // 2
            if holds(_chosen(parts, middle, chosen)):
                enough = middle
            else:
                least = middle
        chosen.append(enough - 1)
        remaining = enough - 1
    return _chosen(parts, 0, chosen)


def _chosen(parts: Sequence[T], first: int, numbers: Sequence[int]) -> list[T]:
    """The first parts, and those known to matter."""
    return [*parts[:first], *(parts[number] for number in sorted(numbers))]
