"""What waits for a person: criteria that ask one, and on demand what else is worth a look."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.agreement import judge_figures, sole_of_results
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.sentences import metric_sentence
from agenteval_tui.history.labels import Label, by_run, label_of
from agenteval_tui.history.records import RunFilter, RunRow
from agenteval_tui.history.store import Store

if TYPE_CHECKING:
    from sqlite3 import Connection


Why = Literal["needs_review", "failure", "disagreement", "sample"]
MOST = 500
"""How many runs of one kind a queue takes in, the newest; people don't look at more in one sitting."""


class QueueItem(Struct, frozen=True):
    """One thing to look at. `position` is the result's number in the run and `criterion` its name; -1 and "" for the
    run as a whole. `question`: what the criterion asks; "" if it asks nothing.
    """

    run_id: str
    suite: str
    test_id: str
    test_name: str
    status: str
    why: Why
    position: int = -1
    criterion: str = ""
    question: str = ""

    @classmethod
    def of(cls, row: RunRow, why: Why, position: int = -1, criterion: str = "", question: str = "") -> QueueItem:
        """A run, or a criterion of it."""
        return cls(
            row.id,
            row.suite_name,
            row.test_id,
            row.test_name,
            row.status,
            why=why,
            position=position,
            criterion=criterion,
            question=question,
        )

    @property
    def address(self) -> str:
        """RUN/NUMBER, or RUN."""
        return self.run_id if self.position < 0 else f"{self.run_id}/{self.position + 1}"


class ReviewFilter(Struct, frozen=True):
    """What a queue is made of beside criteria that ask a person: unlabelled failures, results that differ from their
    label, and a random sample (that many) of unlabelled runs. `seed` makes the sample the same again."""

    failures: bool = False
    disagreements: bool = False
    sample: int = 0
    seed: int = 0
    execution_id: str = ""
    projects: tuple[str, ...] = ()


def queue(store: Store, review_filter: ReviewFilter | None = None) -> list[QueueItem]:
    """What waits, each once: what asks a person first, then disagreements, failures, the sample; newest first."""
    review_filter = review_filter or ReviewFilter()
    only = RunFilter(
        execution_id=review_filter.execution_id, projects=review_filter.projects, counted=not review_filter.execution_id
    )
    labels = by_run(store.labels())
    items = _of_results(store, replace(only, outcomes=("needs_review",)), "needs_review")
    items = _unlabelled(store, items, labels)
    if review_filter.disagreements:
        items += _differing(store, labels, only)
    if review_filter.failures:
        failed = _of_results(store, replace(only, outcomes=("failed",)), "failure")
        items += _unlabelled(store, failed, labels)
    if review_filter.sample:
        items += _sampled(store, review_filter, replace(only, outcomes=DECIDED), labels)
    # From the end, so the first of two that are the same stays.
    once = {(item.run_id, item.criterion): item for item in reversed(items)}
    return list(reversed(once.values()))


def _unlabelled(store: Store, items: Iterable[QueueItem], labels: dict[str, list[Label]]) -> list[QueueItem]:
    """Those of these that no label counts for."""
    queue_items: list[QueueItem] = []
    for item in items:
        run_labels = labels.get(item.run_id, ())
        labelled = any(label.whole for label in run_labels)
        if item.criterion:
            # Results are only read where a label of the whole run may decide the criterion.
            sole = sole_of_results(store.results(item.run_id)) if labelled else ""
            labelled = label_of(run_labels, item.criterion, sole) is not None
        if not labelled:
            queue_items.append(item)
    return queue_items


def _of_results(store: Store, runs: RunFilter, why: Why) -> list[QueueItem]:
    """The results that make these runs wait or fail; the run as a whole where no result does."""
    ids = list(store.run_ids(runs))[:MOST]
    outcome = "needs_review" if why == "needs_review" else "failed"

    def read(c: Connection) -> dict[int, list[tuple[int, str]]]:
        rows = c.execute(
            "SELECT r.run, r.position, r.name FROM criterion_results r WHERE r.outcome = ?"
            " AND r.run IN (SELECT value FROM json_each(?)) ORDER BY r.run, r.position",
            (outcome, json.dumps(ids)),
        )
        return grouped((run, (position, name)) for run, position, name in rows.fetchall())

    by_run = store.read(read)
    items: list[QueueItem] = []
    for row in store.run_rows(ids):
        if row.superseded and not runs.execution_id:
            continue  # a newer grading asks instead
        for position, name in by_run.get(row.rowid, [(-1, "")]):
            question = ""
            if why == "needs_review" and position >= 0:
                question = _question_of(store, row.id, position)
            items.append(QueueItem.of(row, why, position, name, question))
    return items


def _question_of(store: Store, run_id: str, position: int) -> str:
    """What a criterion of a run asks a person; "" for one that asks nothing."""
    results = store.results(run_id)
    if not 0 <= position < len(results):
        return ""
    for metric in results[position].metrics:
        if metric.type == "Human":
            return str(metric.fields.get("question") or metric.message)
        if metric.code == Code.KEEPS_SILENT:
            return metric_sentence(metric)
    return ""


def _differing(store: Store, labels: dict[str, list[Label]], only: RunFilter) -> list[QueueItem]:
    # 100 ms with what judges: the app counts what waits for a review right after its first frame.
    from agenteval_tui.analysis.labels import runs_of_ids

    rows = runs_of_ids(store, labels)
    if only != RunFilter(counted=only.counted):
        ids = set(store.run_ids(only))
        rows = [row for row in rows if row.rowid in ids]
    by_id = {row.id: row for row in rows}
    items = []
    for figures in judge_figures(store, rows):
        for address in figures.differ:
            run, _, number = address.partition("/")
            row, position = by_id[run], int(number) - 1
            items.append(QueueItem.of(row, "disagreement", position, figures.criterion))
    return items


def _sampled(store: Store, review_filter: ReviewFilter, decided: RunFilter, labels: Iterable[str]) -> list[QueueItem]:
    labelled = set(labels)
    ids = store.run_ids(decided)
    chooser = random.Random(review_filter.seed)  # noqa: S311  nothing secret: the same sample again
    # As many more as labels could take out again.
    order = chooser.sample(range(len(ids)), min(len(ids), review_filter.sample + len(labelled)))
    rows = [
        row
        for row in store.run_rows([ids[at] for at in order])
        if row.id not in labelled and (review_filter.execution_id or not row.superseded)
    ]
    return [QueueItem.of(row, "sample") for row in rows[: review_filter.sample]]
