"""People's labels in documents and reports: as JSON data, and those of each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from msgspec import Meta

from agenteval_tui.core.document import Count, Document, Time
from agenteval_tui.formats.timestamps import iso
from agenteval_tui.history.labels import Label
from agenteval_tui.history.store import Store


class LabelDocument(Document, frozen=True, kw_only=True):
    """What a person said of a run or a criterion of it."""

    criterion: Annotated[str | None, Meta(description="its name; null: the run as a whole, or it is not known")]
    unknown: Annotated[bool, Meta(description="it names only a configuration, which several criteria have: no verdict")]
    passed: bool | None
    rating: Count | None
    good: Annotated[bool, Meta(description="passed, or rated 4 or 5")]
    comment: str
    who: str
    at: Time


def label_document(label: Label) -> LabelDocument:
    """A label as it is printed and exported."""
    return LabelDocument(
        criterion=label.criterion or None,
        unknown=label.unknown,
        passed=label.passed,
        rating=label.rating,
        good=label.good,
        comment=label.comment,
        who=label.who,
        at=iso(label.at_ms),
    )


def labels_by_run(store: Store, runs: Iterable[str]) -> dict[str, Sequence[Label]]:
    """The labels of these runs, oldest first, by run; runs without one are left out."""
    found: dict[str, list[Label]] = {}
    for label in store.labels(list(runs)):
        found.setdefault(label.run_id, []).append(label)
    return dict(found)
