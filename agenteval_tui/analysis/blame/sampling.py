"""The decisive step by sampling: continue the run from some of its prefixes, and see from where on it can't pass.

A prefix of length k keeps the first k steps of the run; its pass rate is that of runs that are continued from there.
One step is decisive where the rate falls: the rate before it is that of the start, the rate after it that of the end.
With two falls it is the larger one. No step is, where the rate is low from the start or the same all along.

It is a binary search with errors: each answer is weighed, and the next prefix is the one whose answer is expected to
tell most about where the fall is (D. V. Lindley, "On a measure of the information provided by an experiment", Annals of
Mathematical Statistics 27, 1956). The weight of a step is the likelihood of all answers under "one rate before this
step, less than half of it after it", averaged over such rates, against all other steps and against "one rate all
along". Such a ratio may be looked at after each answer: that it ever wrongly reaches 1/alpha has a chance of at most
alpha (Ville's inequality). "Never" is decided by the confidence sequence of the rate at the start, and all rates are
given with confidence sequences, which hold whenever the search stops. docs/blame.md has what it was measured at.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from agenteval_tui.analysis.blame.model import Rate
from agenteval_tui.runs.confidence_sequence import confidence_sequence

ALPHA = 0.02
BATCH = 2
"""Continuations that are asked for at once: fewer are wasted, more are faster."""
_NEVER = 0.5  # "never" is said where the rate at the start is surely below this
_SURE_OF_NONE = 0.75  # how much of the evidence says "none" where that is the answer
_PRIOR_FLAT = 0.35  # the share of failures where no step decides, before anything was asked
# A fall is one to less than half: the rates before and after it that are thought of, all alike.
_FALLS = tuple(
    (math.log(high), math.log1p(-high), math.log(low), math.log1p(-low))
    for high in (0.4, 0.55, 0.7, 0.8, 0.9, 0.96, 0.99)
    for low in (0.01, 0.04, 0.1, 0.2, 0.3, 0.4)
    if low <= high / 2
)
_SPREAD = (0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98)  # where in the evidence a next prefix is looked for

Answer = Literal["step", "none", "undecided"]


class Counts(Struct, frozen=True):
    """What continuing from a prefix gave: `n` answers with a verdict, of which `passed` passed."""

    passed: int
    n: int


class PrefixRate(Rate, frozen=True, kw_only=True):
    """The pass rate of a prefix. `prefix` is its length."""

    prefix: int


class SearchResult(Struct, frozen=True):
    """What sampling says. `step` (from 0) is the decisive one, None where none is or it is not decided. `weights`: for
    each step how much of the evidence points to it, and `none` for none; together 1. `rates` by length of the
    prefix; `asked` counts all answers."""

    answer: Answer
    step: int | None
    rates: tuple[PrefixRate, ...]
    weights: tuple[float, ...]
    none: float
    asked: int


class Search:
    """A search over the prefixes of a run with `steps` steps. `samples`: the most continuations of one prefix.

    `end_fails`: the whole run is known to fail, and is not asked for. `budget`: the most answers in all.
    """

    def __init__(
        self, steps: int, *, samples: int = 8, budget: int | None = None, end_fails: bool = True, alpha: float = ALPHA
    ) -> None:
        if steps < 1:
            raise ValueError("a run without steps has no decisive one")
        self.steps = steps
        self.samples = samples
        self.budget = budget
        self.end_fails = end_fails
        self.alpha = alpha
        self.counts = [Counts(0, 0)] * (steps + 1)
        # The end is a prefix like others whose answer is known: as sure as all that may be asked of one prefix.
        if end_fails:
            self.counts[steps] = Counts(0, samples)

    @property
    def asked(self) -> int:
        """Answers so far, the known end aside."""
        return sum(count.n for count in self.counts) - (self.samples if self.end_fails else 0)

    def next(self) -> tuple[int, int] | None:
        """The prefix to continue from and how many answers it then has in all; None: it is decided, or can't be."""
        if self.answer() is not None or (self.budget is not None and self.asked >= self.budget):
            return None
        open_ = [prefix for prefix in self._prefixes() if self.counts[prefix].n < self.samples]
        if not open_:
            return None
        # The start first: where nothing passes from there, no step can be told.
        prefix = 0 if not self.counts[0].n else self._most_telling(open_)
        more = BATCH if self.budget is None else min(BATCH, self.budget - self.asked)
        return prefix, min(self.counts[prefix].n + more, self.samples)

    def tell(self, prefix: int, counts: Counts) -> None:
        """What was answered of a prefix, in all."""
        self.counts[prefix] = counts

    def answer(self) -> Answer | None:
        """The answer, if it is decided by now; None: it is not."""
        if not self.counts[0].n:
            return None
        weights, none = self._weights()
        if none >= _SURE_OF_NONE or self._never():
            return "none"
        return "step" if max(weights) >= 1 - self.alpha else None

    def result(self) -> SearchResult:
        """What is known by now."""
        weights, none = self._weights()
        answer = self.answer() or "undecided"
        step = max(range(self.steps), key=lambda place: weights[place]) if answer == "step" else None
        rates = tuple(
            PrefixRate(prefix=prefix, passed=counts.passed, n=counts.n, low=low, high=high)
            for prefix, counts in enumerate(self.counts)
            if counts.n and not (self.end_fails and prefix == self.steps)
            for low, high in (confidence_sequence(counts.passed, counts.n),)
        )
        return SearchResult(answer, step, rates, tuple(weights), none, self.asked)

    # Inside

    def _most_telling(self, prefixes: list[int]) -> int:
        """The prefix whose answer is expected to tell most, out of those around which the evidence lies."""
        # Only prefixes around some shares of the evidence are weighed: each costs two passes over all steps.
        weights, _ = self._weights()
        whole, sums = sum(weights), list(accumulate(weights))
        near = {0, self.steps}
        for share in _SPREAD:
            middle = bisect_left(sums, share * whole)
            near.update((middle, middle + 1))
        looked_at = [prefix for prefix in prefixes if prefix in near] or prefixes
        logs, flat = self._logs()
        # Scaled by the largest, or the exponentials would all be 0.
        top = max(*logs, flat)
        now = sum(math.exp(log - top) for log in (*logs, flat))
        return min(looked_at, key=lambda candidate: (self._doubt_after(candidate, top, now), candidate))

    def _prefixes(self) -> range:
        return range(self.steps + (not self.end_fails))

    def _never(self) -> bool:
        start = self.counts[0]
        return start.n > 0 and confidence_sequence(start.passed, start.n, alpha=0.1)[1] < _NEVER

    def _weights(self) -> tuple[list[float], float]:
        """The weight of each step, and of none."""
        logs, flat = self._logs()
        top = max(*logs, flat)
        shares = [math.exp(log - top) for log in (*logs, flat)]
        whole = sum(shares)
        return [share / whole for share in shares[:-1]], shares[-1] / whole

    def _logs(self) -> tuple[list[float], float]:
        all_passed = sum(count.passed for count in self.counts)
        all_failed = sum(count.n for count in self.counts) - all_passed
        passed = failed = 0
        logs = []
        share = math.log((1 - _PRIOR_FLAT) / self.steps)
        for count in self.counts[:-1]:
            passed += count.passed
            failed += count.n - count.passed
            logs.append(share + _fall(passed, failed, all_passed - passed, all_failed - failed))
        return logs, math.log(_PRIOR_FLAT) + _same(all_passed, all_failed)

    def _doubt_after(self, prefix: int, top: float, now: float) -> float:
        """How much doubt (in nats) is expected to be left after one more answer of a prefix. `now` is the likelihood of
        all answers so far, `top` the logarithm that it is scaled by."""
        before = self.counts[prefix]
        doubt = 0.0
        for passes in (True, False):
            self.counts[prefix] = Counts(before.passed + passes, before.n + 1)
            logs, flat = self._logs()
            shares = [math.exp(log - top) for log in (*logs, flat)]
            whole = sum(shares)
            doubt += whole / now * _entropy([share / whole for share in shares])
        self.counts[prefix] = before
        return doubt


@lru_cache(maxsize=100_000)
def _fall(passed: int, failed: int, passed_after: int, failed_after: int) -> float:
    """The log likelihood of the answers under a fall between these and those."""
    logs = [passed * a + failed * b + passed_after * c + failed_after * d for a, b, c, d in _FALLS]
    top = max(logs)
    return top + math.log(sum(math.exp(log - top) for log in logs) / len(logs))


def _same(passed: int, failed: int) -> float:
    """The log likelihood of the answers under one rate, whichever (Jeffreys' prior)."""
    return math.lgamma(passed + 0.5) + math.lgamma(failed + 0.5) - math.lgamma(passed + failed + 1) - math.log(math.pi)


def _entropy(shares: list[float]) -> float:
    return -sum(share * math.log(share) for share in shares if share > 0)
