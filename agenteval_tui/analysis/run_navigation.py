"""Where a person may go from a run: the runs beside it, and the criterion to look at first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import Struct

from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store

AROUND = 500
"""Known runs of a list: half before the open one, half after it."""
OF_TEST = 200
"""Runs of the same test, where no list was given."""


class AdjacentRuns(Struct):
    """The runs that next and previous go through: their ids and outcomes."""

    runs: list[str]
    outcomes: dict[str, str]

    def failures(self) -> list[str]:
        """Those that did not pass."""
        return [run for run in self.runs if self.outcomes.get(run) in ("failed", "error", "needs_review")]


def runs_around(bench: Workbench, runs: list[str]) -> AdjacentRuns:
    """The runs around the open one in a list of ids; without a list the newest of its test."""
    store = bench.store
    if runs:
        here = runs.index(bench.run.id) if bench.run.id in runs else 0
        rows = known_runs(store, runs[max(here - AROUND // 2, 0) : here + AROUND // 2])
    else:
        rows = store.runs_of_test(bench.run.suite_key, bench.run.test_id, OF_TEST)
    return AdjacentRuns([row.id for row in rows], {row.id: row.status for row in rows})


def known_runs(store: Store, runs: Iterable[str]) -> list[RunRow]:
    """The rows of these runs; those that were deleted meanwhile are left out."""
    rows = []
    for run in runs:
        try:
            rows.append(store.run(run))
        except HistoryError:
            raise
        except AgentevalError:
            continue
    return rows


def first_criterion(bench: Workbench, results: Sequence[CriterionResult], name: str) -> int:
    """The number of the criterion of that name, else of the first that did not pass, else 0."""
    named = (number for number, criterion in enumerate(bench.criteria) if name and criterion.name == name)
    judged = zip(range(len(bench.criteria)), results, strict=False)
    not_passed = (number for number, result in judged if result.outcome in ("failed", "error"))
    return next(chain(named, not_passed), 0)
