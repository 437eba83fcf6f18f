"""What a run leaves to others: cases of sweeps, and slow tests. Which ones, is drawn anew in each run; CI leaves none.

A sweep is a test that tries one thing in many alike cases (each page of a file, each fault of each client). A run takes
a share of the cases (`EXAMPLES_TIMES`), of each kind at least one.
A case that is a test of its own is marked, with the parameters of which each value stays:

    @pytest.mark.sweep("client")
    @pytest.mark.parametrize("client", CLIENTS)
    @pytest.mark.parametrize("fault", FAULTS)

Its name says which one failed, and who names a test (`pytest FILE::TEST`) gets all of its cases. Of the cases that one
test goes through, `share(cases)` gives some; a test that fails shows the SWEEP_SEED that takes the same again.

The tests in slow.txt take most of the time: one test in six, nine tenths of it. `make slow` measures them and writes
the list, each with its seconds. `make test` takes as many of them as take `SLOW_S` seconds together, of each folder at
least one: it takes the same time, whichever are drawn. `pytest` alone takes all.
"""

from __future__ import annotations

import math
import os
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

TIMES = float(os.environ.get("EXAMPLES_TIMES", "0.25"))
"""The share of cases that a run takes, and of the examples of each property."""
SLOW_S = float(os.environ.get("SLOW_S", "inf"))
"""How many seconds the slow tests of a run may take together, all workers counted."""
SLOW = Path(__file__).with_name("slow.txt")
LONG_S = 0.08
# Made by the process that hands out the tests: all workers have to take the same.
SEED = os.environ.setdefault("SWEEP_SEED", str(random.SystemRandom().randrange(1_000_000)))

Case = TypeVar("Case")


def share(cases: Iterable[Case], kind: Callable[[Case], Hashable] = lambda _: None) -> list[Case]:
    """Some of the cases that this test goes through, in their order; of each kind at least one."""
    every = list(cases)
    test, _, _ = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")
    taken = _taken(every, kind, test, TIMES)
    print(f"{len(taken)} of {len(every)} cases; the same again: SWEEP_SEED={SEED}")
    return taken


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this run doesn't take: cases of the tests that are marked as sweeps, then slow tests."""
    if (TIMES >= 1 and math.inf == SLOW_S) or any("::" in argument for argument in config.args):
        return
    sweeps: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sweep"):
            sweeps[test_name(item.nodeid)].append(item)
    taken = {item for test, cases in sweeps.items() for item in _taken(cases, _kind, test, TIMES)}
    left = {item for cases in sweeps.values() for item in cases} - taken
    seconds = slow_tests()
    slow = [item for item in items if item not in left and test_name(item.nodeid) in seconds]
    left.update(set(slow).difference(_drawn(slow, seconds)))
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=list(left))


def slow_tests() -> dict[str, float]:
    """The slow tests, each with the seconds that one of its cases takes."""
    lines = map(str.split, SLOW.read_text("utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def _drawn(items: list[pytest.Item], seconds: Mapping[str, float]) -> Iterator[pytest.Item]:
    """One of each folder, then others until the time is up."""
    drawn = random.Random(f"{SEED} {SLOW.name}").sample(items, len(items))
    firsts = {item.path.parent: item for item in drawn}
    left_s = SLOW_S
    for item in dict.fromkeys([*firsts.values(), *drawn]):
        takes_s = seconds[test_name(item.nodeid)]
        if item is firsts[item.path.parent] or takes_s <= left_s:
            left_s -= takes_s
            yield item


def test_name(node_id: str) -> str:
    """File and function: without the values of a case, and without the group that a worker adds."""
    return node_id.partition("[")[0].partition("@")[0]


def _kind(item: pytest.Item) -> Hashable:
    marker = item.get_closest_marker("sweep")
    assert marker is not None
    assert isinstance(item, pytest.Function)
    return tuple(repr(item.callspec.params[name]) for name in marker.args)


def _taken(cases: list[Case], kind: Callable[[Case], Hashable], test: str, part: float) -> list[Case]:
    if part >= 1:
        return cases
    kinds: dict[Hashable, list[int]] = defaultdict(list)
    for number, case in enumerate(cases):
        kinds[kind(case)].append(number)
    dice = random.Random(f"{SEED} {test}")
    taken: set[int] = set()
    for numbers in kinds.values():
        taken.update(dice.sample(numbers, max(1, round(len(numbers) * part))))
    return [cases[number] for number in sorted(taken)]


class Durations:
    """A plugin that measures each test and, at the end, writes the slow ones into `slow.txt`."""

    def __init__(self) -> None:
        self._seconds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, call and teardown count."""
        self._seconds[test_name(report.nodeid)][report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """A test of several cases is slow if they are on average."""
        means = {test: sum(cases.values()) / len(cases) for test, cases in self._seconds.items()}
        lines = [f"{mean:.2f} {test}\n" for test, mean in sorted(means.items()) if mean > LONG_S]
        SLOW.write_text("".join(lines), "utf-8")
