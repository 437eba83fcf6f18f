"""The metrics of criteria on both sides. They are in the evidence, which is read for some runs of a test only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agenteval_tui.analysis.comparison_model import MetricChange, Tally
from agenteval_tui.analysis.statistics import mean
from agenteval_tui.grading.results import MetricResult, Outcome
from agenteval_tui.text.problems import AgentevalError

if TYPE_CHECKING:
    from agenteval_tui.analysis.comparison_model import TestChange
    from agenteval_tui.history.store import Store

MOST = 20
"""Runs of each side whose evidence is read: the first ones."""
_DECIDED = (Outcome.PASSED, Outcome.FAILED)


def metric_changes(store: Store, change: TestChange, *, most: int = MOST) -> dict[str, tuple[MetricChange, ...]]:
    """By criterion: its metrics as they were and are, over the first runs of each side; unchanged ones too."""
    was = _by_criterion(store, change.was_runs[:most])
    now = _by_criterion(store, change.now_runs[:most])
    before = {one.name: one.was_name or one.name for one in change.criteria}
    found = {}
    for name in dict.fromkeys([*now, *was]):
        if name not in now and name in before.values():
            continue  # it goes by another name now
        left, right = was.get(before.get(name, name), {}), now.get(name, {})
        found[name] = tuple(
            MetricChange(key[0], key[1], _tally(left.get(key)), _tally(right.get(key)))
            for key in dict.fromkeys([*right, *left])
        )
    return found


Metrics = Mapping[tuple[str, str], Sequence[MetricResult]]


def _by_criterion(store: Store, runs: Sequence[str]) -> dict[str, dict[tuple[str, str], list[MetricResult]]]:
    found: dict[str, dict[tuple[str, str], list[MetricResult]]] = {}
    for run in runs:
        try:
            results = store.results(run)
        except AgentevalError:
            continue  # deleted in the meantime
        for result in results:
            metrics = found.setdefault(result.criterion, {})
            for metric in result.metrics:
                metrics.setdefault((metric.name, metric.type), []).append(metric)
    return found


def _tally(results: Sequence[MetricResult] | None) -> Tally | None:
    if not results:
        return None
    decided = [one for one in results if one.outcome in _DECIDED and not one.neutral]
    return Tally(
        runs=len(results),
        n=len(decided),
        passed=sum(one.outcome is Outcome.PASSED for one in decided),
        errors=sum(one.outcome is Outcome.ERROR for one in results),
        score=mean([one.score for one in decided if one.score is not None]),
    )
