"""How well an agent labels things, over many runs: accuracy, precision, recall and F1 per label, a confusion matrix.

Read from the `Classification` metrics of the runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store

_METRIC, _CONDITION = "Classification", "label"


def labelling_of(store: Store, runs: Iterable[RunRow]) -> Report | None:
    """The report over those runs whose criteria have such a metric; None when there is none.

    Only results of such runs are read: which ones they are is told by the stored versions of the criteria.
    """
    is_labelling: dict[str, bool] = {}
    chosen: list[str] = []
    for run in runs:
        for digest in run.criteria:
            if digest not in is_labelling:
                is_labelling[digest] = _METRIC in str((store.criterion(digest) or {}).get("config", ""))
        if any(is_labelling[digest] for digest in run.criteria):
            chosen.append(run.id)
    if not chosen:
        return None
    report = report_of(result for run in chosen for result in store.results(run))
    return report if report.total or report.errors else None


class LabelFigures(Struct, frozen=True):
    """One label against the rest. Figures are 0..1; None where there is nothing to divide by.

    `support`: how often it is the right label; `given`: how often it was given; `hits`: how often both.
    """

    label: str
    support: int
    given: int
    hits: int

    @property
    def precision(self) -> float | None:
        """Of those that were given this label, the share that have it. None: it was never given."""
        return self.hits / self.given if self.given else None

    @property
    def recall(self) -> float | None:
        """Of those that have this label, the share that were given it. None: nothing has it."""
        return self.hits / self.support if self.support else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of both (2 * hits / (support + given)). None: it neither is nor was given."""
        whole = self.support + self.given
        return 2 * self.hits / whole if whole else None


class Report(Struct, frozen=True):
    """What a classifier did. `matrix[i][j]`: how often `labels[i]` was right and `labels[j]` was given.

    `errors`: runs whose label could not be judged; they are in no other figure.
    """

    labels: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    per_label: tuple[LabelFigures, ...]
    total: int
    errors: int = 0

    @property
    def accuracy(self) -> float | None:
        """The share of right labels. None: there are none at all."""
        return sum(row[index] for index, row in enumerate(self.matrix)) / self.total if self.total else None

    @property
    def macro_f1(self) -> float | None:
        """The mean of the F1 of all labels, each label counting the same."""
        figures = [label.f1 for label in self.per_label if label.f1 is not None]
        return sum(figures) / len(figures) if figures else None

    @property
    def weighted_f1(self) -> float | None:
        """The mean of the F1 of all labels, weighted by how often each is right."""
        return sum((label.f1 or 0.0) * label.support for label in self.per_label) / self.total if self.total else None


def report(pairs: Iterable[tuple[str, str]], errors: int = 0) -> Report:
    """The report of (right label, given label) pairs. Labels are sorted."""
    counts = Counter(pairs)
    labels = tuple(sorted({label for pair in counts for label in pair}))
    matrix = tuple(tuple(counts[right, label] for label in labels) for right in labels)
    per_label = tuple(
        LabelFigures(label, sum(matrix[index]), sum(row[index] for row in matrix), matrix[index][index])
        for index, label in enumerate(labels)
    )
    return Report(labels, matrix, per_label, sum(counts.values()), errors)


def report_of(results: Iterable[CriterionResult]) -> Report:
    """The report of stored results: those of their metrics that are of type Classification, with their evidence."""
    pairs: list[tuple[str, str]] = []
    errors = 0
    for result in results:
        for metric in result.metrics:
            if metric.type != _METRIC:
                continue
            if metric.outcome is Outcome.ERROR:
                errors += 1
            for line in metric.evidence:
                if line.condition == _CONDITION and isinstance(line.expected, str) and isinstance(line.found, str):
                    # Equal in all but case, where case does not matter, is the same label.
                    label = str(line.fields.get("taken", line.found))
                    pairs.append((line.expected, line.expected if line.passed else label))
    return report(pairs, errors)
