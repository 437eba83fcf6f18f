"""The rows of a test's dataset on both sides: which broke, which healed, which came, went, moved or were edited."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from agenteval_tui.analysis.comparison_model import RowChange, Tally, state_of
from agenteval_tui.history.comparing import ComparedRun
from agenteval_tui.suites.row_keys import row_label

Rows = Mapping[str, Sequence[ComparedRun]]
"""The runs of one side by what tells their row from others."""
Variables = Mapping[int, Mapping[str, Any]]
"""Of plans (by number): the variables of their runs."""


def row_changes(
    was: Rows, now: Rows, tallies: Mapping[str, tuple[Tally | None, Tally | None]], variables: Variables
) -> tuple[RowChange, ...]:
    """Each row of both sides in the order of the right side's file; those that are only on the left come last.

    A row moved when it left the order of the others: rows between which one was inserted did not.
    """
    places = [{key: runs[-1].row for key, runs in side.items()} for side in (was, now)]
    moved = _moved(places[0], places[1])
    ordered = sorted(places[1], key=places[1].__getitem__)
    ordered += sorted((key for key in places[0] if key not in places[1]), key=places[0].__getitem__)
    changes = []
    for key in ordered:
        left, right = was.get(key, ()), now.get(key, ())
        last = (right or left)[-1]
        changes.append(
            RowChange(
                key=last.row_key,
                label=row_label(last.row, last.row_key),
                state=state_of(*tallies[key]),
                was=tallies[key][0],
                now=tallies[key][1],
                place_was=places[0].get(key),
                place_now=places[1].get(key),
                moved=key in moved,
                content=_edited(left, right, variables),
                pair=_pair(left, right),
            )
        )
    return tuple(changes)


def _moved(was: Mapping[str, int], now: Mapping[str, int]) -> set[str]:
    """The fewest rows that must be taken out so that the others stand in the same order (longest increasing
    subsequence, by patience sorting)."""
    shared = sorted((key for key in was if key in now), key=was.__getitem__)
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, key in enumerate(shared):
        at = bisect_left(ends, now[key])
        before.append(last[at - 1] if at else -1)
        if at == len(ends):
            ends.append(now[key])
            last.append(number)
        else:
            ends[at], last[at] = now[key], number
    stays = set()
    number = last[-1] if last else -1
    while number >= 0:
        stays.add(shared[number])
        number = before[number]
    return set(shared) - stays


def _edited(left: Sequence[ComparedRun], right: Sequence[ComparedRun], variables: Variables) -> tuple[str, ...]:
    """The variables that are others now; none where both sides were planned alike."""
    if not left or not right or left[-1].plan == right[-1].plan:
        return ()
    was, now = variables.get(left[-1].plan), variables.get(right[-1].plan)
    if was is None or now is None:
        return ()
    missing = object()
    names = dict.fromkeys((*now, *was))
    return tuple(name for name in names if was.get(name, missing) != now.get(name, missing))


def _pair(left: Sequence[ComparedRun], right: Sequence[ComparedRun]) -> tuple[str, str] | None:
    """Two runs that show the change, the first of each where none does."""
    if not left or not right:
        return None
    for one, two in zip(left, right, strict=False):
        if one.status != two.status:
            return one.id, two.id
    other = next((two for two in right if two.status != left[0].status), right[0])
    return left[0].id, other.id
