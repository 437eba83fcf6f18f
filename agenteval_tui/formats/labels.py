"""People's labels in documents and reports: as JSON data, and those of each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agenteval_tui.formats.timestamps import iso
from agenteval_tui.history.labels import Label
from agenteval_tui.history.store import Store


def label_data(label: Label) -> dict[str, Any]:
    """A label as JSON data. `criterion` is null for one of the run as a whole, and for one that is `unknown`."""
    return {
        "criterion": label.criterion or None,
        "unknown": label.unknown,
        "passed": label.passed,
        "rating": label.rating,
        "good": label.good,
        "comment": label.comment,
        "who": label.who,
        "at": iso(label.at_ms),
    }


def labels_by_run(store: Store, runs: Iterable[str]) -> dict[str, Sequence[Label]]:
    """The labels of these runs, oldest first, by run; runs without one are left out."""
    found: dict[str, list[Label]] = {}
    for label in store.labels(list(runs)):
        found.setdefault(label.run_id, []).append(label)
    return dict(found)
