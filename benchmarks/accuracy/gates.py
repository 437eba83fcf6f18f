"""How often `--no-regressions` is wrong: false alarms where nothing changed, and drops that it misses.

    python -m benchmarks.accuracy.gates [--times 1000]

Outcomes are drawn; the rules are those of the program (`analysis.regressions`), without its store.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable

from agenteval_tui.analysis.permutation_test import sign_flip
from agenteval_tui.analysis.regressions import Case, PassCounts, find_regressions
from agenteval_tui.analysis.statistics import mcnemar_exact

Rate = Callable[[random.Random, int], float]
SEED = 7


def alarms(tests: int, runs: int, rate: Rate, *, drop: float = 0.0, times: int = 1_000, seed: int = SEED) -> float:
    """The share of executions in which something regressed. Each of `tests` runs `runs` times on both sides; its pass
    rate now is `drop` lower than it was."""
    draw = random.Random(seed)
    return sum(_alarms_once(draw, tests, runs, rate, drop) for _ in range(times)) / times


def _alarms_once(draw: random.Random, tests: int, runs: int, rate: Rate, drop: float) -> bool:
    cases = []
    for number in range(tests):
        was = rate(draw, number)
        counts = [sum(draw.random() < share for _ in range(runs)) for share in (was, max(0.0, was - drop))]
        cases.append(Case(("suite", str(number), ""), "", PassCounts(counts[0], runs, counts[1], runs)))
    return bool(find_regressions(cases, _shown(cases)).found)


def _shown(cases: list[Case]) -> tuple[str, float] | None:
    """The test that a comparison shows for all cases together, where they fell."""
    counts = [case.counts for case in cases]
    differences = [one.now_passed / one.now_n - one.was_passed / one.was_n for one in counts]
    if sum(differences) >= 0 or len(cases) < 2:
        return None
    if all(one.was_n == one.now_n == 1 for one in counts):
        return "mcnemar", mcnemar_exact(sum(d < 0 for d in differences), sum(d > 0 for d in differences))
    return "sign-flip", sign_flip(differences)


def misses_broken(others: int, runs: int, rate: Rate, *, times: int = 1_000, seed: int = SEED) -> float:
    """The share of executions in which a case that passed every time and never passes now is not called a regression,
    beside `others` that vary and did not change."""
    draw = random.Random(seed)
    missed = 0
    for _ in range(times):
        cases = [Case(("suite", "broken", ""), "", PassCounts(runs, runs, 0, runs))]
        for number in range(others):
            share = rate(draw, number)
            counts = [sum(draw.random() < share for _ in range(runs)) for _ in range(2)]
            cases.append(Case(("suite", str(number), ""), "", PassCounts(counts[0], runs, counts[1], runs)))
        missed += not any(regression.test == "broken" for regression in find_regressions(cases).found)
    return missed / times


def constant(share: float) -> Rate:
    """All tests pass as often."""
    return lambda draw, number: share


def between(low: float, high: float) -> Rate:
    """Each test passes as often as is drawn for it."""
    return lambda draw, number: draw.uniform(low, high)


def half_stable(share: float) -> Rate:
    """Every other test always passes."""
    return lambda draw, number: share if number % 2 else 1.0


POPULATIONS: dict[str, Rate] = {
    "all pass 50 %": constant(0.5),
    "all pass 60 %": constant(0.6),
    "all pass 80 %": constant(0.8),
    "all pass 90 %": constant(0.9),
    "20 % to 100 %": between(0.2, 1.0),
    "70 % to 100 %": between(0.7, 1.0),
    "half always, half 60 %": half_stable(0.6),
    "all always": constant(1.0),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1_000)
    times = parser.parse_args().times
    print("| nothing changed: false alarms | runs each | 1 test | 5 | 20 | 50 | 100 |\n|---|---|---|---|---|---|---|")
    for runs in (3, 5, 10):
        for name, rate in POPULATIONS.items():
            shares = " | ".join(f"{alarms(tests, runs, rate, times=times):.1%}" for tests in (1, 5, 20, 50, 100))
            print(f"| {name} | {runs} | {shares} |")
    print("\n| 20 tests, 20 points lower: missed | 1 run each | 3 | 5 | 10 |\n|---|---|---|---|---|")
    for was in (1.0, 0.9, 0.8, 0.7, 0.6, 0.5):
        shares = " | ".join(
            f"{1 - alarms(20, runs, constant(was), drop=0.2, times=times):.1%}" for runs in (1, 3, 5, 10)
        )
        print(f"| from {was:.0%} | {shares} |")
    print("\n| one test broke beside 19: missed | 1 run each | 3 | 5 | 10 |\n|---|---|---|---|---|")
    for name, rate in POPULATIONS.items():
        shares = " | ".join(f"{misses_broken(19, runs, rate, times=times):.1%}" for runs in (1, 3, 5, 10))
        print(f"| {name} | {shares} |")


if __name__ == "__main__":
    main()
