"""How well an agent labels things: the `Classification` metrics of an execution's runs, taken together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agenteval_tui.grading.classification import Report, report_of

if TYPE_CHECKING:
    from agenteval_tui.history.records import RunRow
    from agenteval_tui.history.store import Store

_METRIC = "Classification"


def labelling_of(store: Store, runs: Iterable[RunRow]) -> Report | None:
    """The report over those runs whose criteria have such a metric; None when there is none.

    Only results of such runs are read: which ones they are is told by the stored versions of the criteria.
    """
    known: dict[str, bool] = {}
    chosen: list[str] = []
    for run in runs:
        for digest in run.criteria:
            if digest not in known:
                known[digest] = _METRIC in str((store.criterion(digest) or {}).get("config", ""))
        if any(known[digest] for digest in run.criteria):
            chosen.append(run.id)
    if not chosen:
        return None
    report = report_of(result for run in chosen for result in store.results(run))
    return report if report.total or report.errors else None


def labelling_json(report: Report) -> dict[str, Any]:
    """The report as `agenteval stats --json` prints it."""
    return {
        "labels": list(report.labels),
        "matrix": [list(row) for row in report.matrix],
        "n": report.total,
        "errors": report.errors,
        "accuracy": report.accuracy,
        "macro_f1": report.macro_f1,
        "weighted_f1": report.weighted_f1,
        "per_label": [
            {
                "label": one.label,
                "support": one.support,
                "given": one.given,
                "hits": one.hits,
                "precision": one.precision,
                "recall": one.recall,
                "f1": one.f1,
            }
            for one in report.per_label
        ],
    }
