"""How well an agent labels things, over many runs: accuracy, precision, recall and F1 per label, a confusion matrix.

Read from the `Classification` metrics of the runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from agenteval_tui.core.document import Count, Document
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store

_METRIC, _CONDITION = "Classification", "label"


def labelling_of(store: Store, runs: Iterable[RunRow]) -> Classification | None:
    """The figures over those runs whose criteria have such a metric; None when there is none.

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
    figures = classification_of(result for run in chosen for result in store.results(run))
    return figures if figures.n or figures.errors else None


class LabelFigures(Document, frozen=True, kw_only=True):
    """One label against the rest. Null where there is nothing to divide by."""

    label: str
    support: Annotated[Count, Meta(description="how often it is the right label")]
    given: Annotated[Count, Meta(description="how often it was given")]
    hits: Annotated[Count, Meta(description="how often both")]
    precision: Annotated[float | None, Meta(description="of those that were given this label, the share that have it")]
    recall: Annotated[float | None, Meta(description="of those that have this label, the share that were given it")]
    f1: Annotated[float | None, Meta(description="the harmonic mean of both: 2 * hits / (support + given)")]


class Classification(Document, frozen=True, kw_only=True):
    """What a classifier did. `matrix[i][j]`: how often `labels[i]` was right and `labels[j]` was given."""

    labels: tuple[str, ...]
    matrix: tuple[tuple[Count, ...], ...]
    n: Count
    errors: Annotated[Count, Meta(description="runs whose label could not be judged; they are in no other figure")]
    accuracy: Annotated[float | None, Meta(description="the share of right labels; null: there are no labels")]
    macro_f1: Annotated[float | None, Meta(description="the mean of the F1 of all labels, each counting the same")]
    weighted_f1: Annotated[
        float | None, Meta(description="the mean of the F1 of all labels, weighted by how often each is right")
    ]
    per_label: tuple[LabelFigures, ...]


def classification(pairs: Iterable[tuple[str, str]], errors: int = 0) -> Classification:
    """The figures of (right label, given label) pairs. Labels are sorted."""
    counts = Counter(pairs)
    labels = tuple(sorted({label for pair in counts for label in pair}))
    matrix = tuple(tuple(counts[right, label] for label in labels) for right in labels)
    per_label = tuple(
        _of_label(label, sum(matrix[index]), sum(row[index] for row in matrix), matrix[index][index])
        for index, label in enumerate(labels)
    )
    n = sum(counts.values())
    scores = [figures.f1 for figures in per_label if figures.f1 is not None]
    return Classification(
        labels=labels,
        matrix=matrix,
        n=n,
        errors=errors,
        accuracy=_ratio(sum(figures.hits for figures in per_label), n),
        macro_f1=_ratio(sum(scores), len(scores)),
        weighted_f1=_ratio(sum((figures.f1 or 0.0) * figures.support for figures in per_label), n),
        per_label=per_label,
    )


def _of_label(label: str, support: int, predicted: int, hits: int) -> LabelFigures:
    return LabelFigures(
        label=label,
        support=support,
        given=predicted,
        hits=hits,
        precision=_ratio(hits, predicted),
        recall=_ratio(hits, support),
        f1=_ratio(2 * hits, support + predicted),
    )


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def classification_of(results: Iterable[CriterionResult]) -> Classification:
    """The figures of stored results: those of their metrics that are of type Classification, with their evidence."""
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
    return classification(pairs, errors)
