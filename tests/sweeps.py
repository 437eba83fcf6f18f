"""Sweeps: tests that try one thing in many alike cases (each page of a file, each fault of each client).

`make test` takes a share of the cases, and the next run others; CI takes all, and so does `EXAMPLES_TIMES=1 pytest`.
A case that is a test of its own is marked, with the parameters of which each value stays:

    @pytest.mark.sweep("client")
    @pytest.mark.parametrize("client", CLIENTS)
    @pytest.mark.parametrize("fault", FAULTS)

Its name says which one failed, and who names a test (`pytest FILE::TEST`) gets all of its cases. Of the cases that one
test goes through, `share(cases)` gives some; a test that fails shows the SWEEP_SEED that takes the same again.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

import pytest

TIMES = float(os.environ.get("EXAMPLES_TIMES", "0.25"))
"""The share of cases that a run takes, and of the examples of each property."""
# Made by the process that hands out the tests: all workers have to take the same.
SEED = os.environ.setdefault("SWEEP_SEED", str(random.SystemRandom().randrange(1_000_000)))

Case = TypeVar("Case")


def share(cases: Iterable[Case], kind: Callable[[Case], Hashable] = lambda _: None) -> list[Case]:
    """Some of the cases that this test goes through, in their order; of each kind at least one."""
    every = list(cases)
    test, _, _ = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")
    taken = _taken(every, kind, test)
    print(f"{len(taken)} of {len(every)} cases; the same again: SWEEP_SEED={SEED}")
    return taken


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this run doesn't take of the tests that are marked as sweeps."""
    if TIMES >= 1 or any("::" in argument for argument in config.args):
        return
    sweeps: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sweep"):
            sweeps[item.nodeid.partition("[")[0]].append(item)
    taken = {item for test, cases in sweeps.items() for item in _taken(cases, _kind, test)}
    left = {item for cases in sweeps.values() for item in cases} - taken
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=list(left))


def _kind(item: pytest.Item) -> Hashable:
    marker = item.get_closest_marker("sweep")
    assert marker is not None
    assert isinstance(item, pytest.Function)
    return tuple(repr(item.callspec.params[name]) for name in marker.args)


def _taken(cases: list[Case], kind: Callable[[Case], Hashable], test: str) -> list[Case]:
    if TIMES >= 1:
        return cases
    kinds: dict[Hashable, list[int]] = defaultdict(list)
    for number, case in enumerate(cases):
        kinds[kind(case)].append(number)
    dice = random.Random(f"{SEED} {test}")
    taken: set[int] = set()
    for numbers in kinds.values():
        taken.update(dice.sample(numbers, max(1, round(len(numbers) * TIMES))))
    return [cases[number] for number in sorted(taken)]
