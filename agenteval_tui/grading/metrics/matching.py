"""Pairing expected with actual things: as many pairs as there can be."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


def largest_matching(candidates: Sequence[Sequence[int]]) -> dict[int, int]:
    """A largest matching of a bipartite graph: left `i` may be paired with each right in `candidates[i]`.

    Left -> right. Taking the first that fits would make the answer depend on the order in which things are listed.
    Augmenting paths, shortest first; what a search that failed has seen can never be of use again.
    """
    partner: dict[int, int] = {}
    owner: dict[int, int] = {}
    useless: set[int] = set()
    for left in range(len(candidates)):
        came_from: dict[int, int] = {}
        waiting = deque([left])
        free: int | None = None
        while waiting and free is None:
            one = waiting.popleft()
            for right in candidates[one]:
                if right in came_from or right in useless:
                    continue
                came_from[right] = one
                if right not in owner:
                    free = right
                    break
                waiting.append(owner[right])
        if free is None:
            useless.update(came_from)
            continue
        at: int | None = free
        while at is not None:  # each pair on the way takes the next right, and gives its own to the one before it
            right, one = at, came_from[at]
            at = partner.get(one)
            partner[one], owner[right] = right, one
    return partner
