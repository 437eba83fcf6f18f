"""Enough repetitions of a test: those that are left are not needed once its pass rate is known to lie on one side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from agenteval_tui.core import numbers
from agenteval_tui.runs.confidence_sequence import Answer, confidence_sequence, decide, most_needed
from agenteval_tui.runs.events import RunRef
from agenteval_tui.runs.plan.model import RunPlan, StopRule


class Repetitions(Struct):
    """The repetitions of one test (row) in one variation, with one agent, and what is known of their pass rate.

    Only passed and failed runs count: an error says nothing of the agent's answers. `begun` is for the code that hands
    the runs out: how many are in flight.
    """

    rule: StopRule
    planned: int = 0
    passed: int = 0
    judged: int = 0
    begun: int = 0
    answer: Answer = "open"

    def add(self, status: str) -> bool:
        """A run ended; True when that decided the pass rate."""
        if status not in ("passed", "failed"):
            return False
        # Counted also once the answer is there: runs that were in flight then still end, and `why` tells of all.
        self.judged += 1
        self.passed += status == "passed"
        if self.answer != "open":
            return False
        self.answer = decide(self.passed, self.judged, self.rule.threshold, alpha=self.rule.alpha).answer
        return self.answer != "open"

    @property
    def wanted(self) -> int:
        """How many runs may be in progress at once, so that none is more than needed."""
        if self.answer != "open":
            return 0
        return most_needed(self.passed, self.judged, self.rule.threshold, alpha=self.rule.alpha)

    @property
    def why(self) -> str:
        """Why no more are needed: the answer, and the confidence sequence that gave it."""
        ends = confidence_sequence(self.passed, self.judged, alpha=self.rule.alpha)
        low, high = numbers.percent_interval(*ends)
        level = numbers.percent(1 - self.rule.alpha)
        return (
            f"not needed: the pass rate is {self.answer} {self.rule.threshold:g} after {self.judged} of {self.planned} "
            f"runs ({level} confidence sequence: {low} % to {high} %)"
        )


def repetitions_of(runs: Iterable[RunPlan], earlier: Iterable[tuple[str, RunRef, str]] = ()) -> dict[str, Repetitions]:
    """By run id, the repetitions to which a run belongs; runs without a rule are not in it.

    `earlier` are runs that ended before the execution was resumed: the key of the suite, the run, its status.
    """
    groups: dict[tuple[Any, ...], Repetitions] = {}
    by_run: dict[str, Repetitions] = {}
    for run in runs:
        if run.stop is None:
            continue
        key = _key(run.suite_key, run.ref)
        group = groups.get(key)
        if group is None:
            group = groups[key] = Repetitions(run.stop)
        group.planned += 1
        by_run[run.ref.run] = group
    for suite_key, ref, status in earlier:
        # A test of which no run is left to make has no group: nothing can be saved.
        group = groups.get(_key(suite_key, ref))
        if group is not None:
            group.planned += 1
            group.add(status)
    return by_run


def _key(suite_key: str, ref: RunRef) -> tuple[Any, ...]:
    return suite_key, ref.test, ref.variation, ref.row, ref.agent
