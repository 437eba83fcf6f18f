"""A whole history graded with the criteria of today: stored runs, no agent, and no judge is asked anything.

A trend over time then shows the agent alone: everything in it was judged alike.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.regrade import CriteriaSource, RegradeResult, regrade, rules_of_suites
from agenteval_tui.analysis.trend_scores import Extras, made_extras
from agenteval_tui.analysis.trends import Trend, TrendQuery, select_runs, trend
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.causes import signatures
from agenteval_tui.grading.results import Outcome
from agenteval_tui.history import trends as rows
from agenteval_tui.history.connections import Connection
from agenteval_tui.history.records import RunRow, is_imported
from agenteval_tui.history.store import Store
from agenteval_tui.history.trends import CauseCount, Measure, ScoreCounts
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.transcripts.model import Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Regrading(Struct, frozen=True):
    """What today's criteria say about stored runs. `statuses`: by row number. `changed`: how many now have a different
    outcome. `left_out`: runs whose test is no longer in a suite's file. `errors`: runs with a criterion that can't be
    decided without asking a judge or a person. `cut`: older runs of the window were not graded."""

    statuses: dict[int, str]
    scores: ScoreCounts
    causes: tuple[CauseCount, ...]
    changed: int
    left_out: int
    errors: int
    since_ms: int
    cut: bool


def regrade_history(store: Store, trend_query: TrendQuery) -> Regrading:
    """Grade the newest of the runs that are asked for. Blocks, seconds for thousands. Raises AgentevalError."""

    def read(connection: Connection) -> tuple[list[int], int, bool, dict[tuple[str, str], int]]:
        picked = select_runs(connection, trend_query)
        since_ms, cut = rows.newest_runs(connection, picked, rows.NEWEST)
        tests = {(test.suite_key, test.test_id): test.row for test in rows.tests_known(connection)}
        return rows.picked_runs(connection, replace(picked, since_ms=since_ms)), since_ms, cut, tests

    ids, since_ms, cut, tests = store.read(read)
    listed = store.run_rows(ids)
    rules = _Files()
    statuses: dict[int, str] = {}
    counts = _Counts(tests)
    changed = errors = 0
    for regrade_result, transcript in regrade(store, listed, rules.of):
        status = str(regrade_result.verdict.outcome)
        statuses[regrade_result.row.rowid] = status
        changed += status != regrade_result.row.status
        errors += transcript.error is None and regrade_result.verdict.outcome is Outcome.ERROR
        counts.add(regrade_result, transcript)
    left_out = len(listed) - len(statuses)
    return Regrading(
        statuses,
        scores=counts.scores,
        causes=counts.causes,
        changed=changed,
        left_out=left_out,
        errors=errors,
        since_ms=since_ms or (trend_query.since_ms or 0),
        cut=cut,
    )


def regraded_trend(
    store: Store, trend_query: TrendQuery, measures: Sequence[Measure], regrading: Regrading
) -> tuple[Trend, Extras]:
    """The trend and the facts beside it, with the verdicts of today's criteria. It has no breaks."""
    extras = store.read(lambda c: made_extras(c, regrading.scores, regrading.causes, regrading.since_ms, regrading.cut))
    return trend(store, trend_query, measures, regrading.statuses), extras


class _Files:
    """The criteria of each run's own test, as its suite's file has them now."""

    def __init__(self) -> None:
        self._finders: dict[str, Callable[[RunRow], CriteriaSource | None]] = {}

    def of(self, row: RunRow) -> CriteriaSource | None:
        """None: the file, or the test in it, is gone; or the run was imported."""
        if row.suite_key not in self._finders:
            self._finders[row.suite_key] = rules_of_suites(self._suites(row.suite_key))
        return self._finders[row.suite_key](row)

    def _suites(self, key: str) -> list[LoadedSuite]:
        """The suite of this key; none: it was imported, or can't be read."""
        try:
            return [] if is_imported(key) else [load_suite(Path(key))]
        except AgentevalError:
            return []


class _Counts:
    """Scores and causes, counted as `history.trends` counts the stored ones."""

    def __init__(self, tests: dict[tuple[str, str], int]) -> None:
        self._tests = tests
        self.scores: ScoreCounts = {}
        self._failed: dict[tuple[str, str], list[tuple[int, str, int]]] = {}
        """By cause and kind of error: each run's row number, its id, and the row number of its test."""

    def add(self, regrade_result: RegradeResult, transcript: Transcript) -> None:
        """A run with its new results."""
        row, verdict = regrade_result.row, regrade_result.verdict
        test = self._tests.get((row.suite_key, row.test_id), 0)
        for result in verdict.results:
            # Skipped results are in no figure of a stored trend, either.
            if result.outcome is Outcome.SKIPPED:
                continue
            # As the history counts them: a product that is a bit less than a tenth in binary belongs to it.
            tenth = -1 if result.score is None else min(math.floor(result.score * 10 + 1e-9), 9)
            criterion = (test, result.criterion)
            rows.count_score(self.scores, criterion, tenth, str(result.outcome), 1, result.score or 0.0)
        if verdict.outcome not in (Outcome.FAILED, Outcome.ERROR):
            return
        if transcript.error is not None:
            keys = {("", transcript.error.kind)}
        else:
            keys = {(cause, "") for cause in signatures(str(verdict.outcome), verdict.results) if cause}
        for key in keys:
            self._failed.setdefault(key, []).append((row.rowid, row.id, test))

    @property
    def causes(self) -> tuple[CauseCount, ...]:
        cause_counts = [
            CauseCount(cause, kind, "", len(failed), len({test for _, _, test in failed}), max(failed)[1])
            for (cause, kind), failed in self._failed.items()
        ]
        return tuple(
            sorted(cause_counts, key=lambda cause_count: (-cause_count.runs, cause_count.cause, cause_count.error_kind))
        )
