"""Giving a label and taking it back: the verdicts that wait for a person follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agenteval_tui.history.replies import Label, TakeBackLabel

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store


def opinion(
    run_id: str, criterion_hash: str, *, rating: int | None, passed: bool | None, comment: str, who: str
) -> Label:
    """A person's label that is not in the history yet; `criterion_hash` "": of the run as a whole."""
    return Label(run_id, rating, criterion_hash, comment, who, passed=passed)


@dataclass(frozen=True, slots=True)
class Given:
    """A label that is in the history: its number there, and the run's outcome now."""

    label: Label
    number: int
    status: str


def give_label(store: Store, label: Label) -> Given:
    """Keep a label; criteria of the run that wait for a person are graded anew. Blocks until it is on disk.

    Raises `HistoryError` for a label that says nothing, or whose run or criterion is not there.
    """
    from agenteval_tui.analysis.regrade import with_labels

    number = store.label(
        label.run_id,
        label.rating,
        passed=label.passed,
        criterion_hash=label.criterion_hash,
        comment=label.comment,
        who=label.who,
    ).result()
    row = store.run(label.run_id)
    return Given(label, number, with_labels(store, row) or row.status)


def take_back(store: Store, given: Given) -> str:
    """Undo `give_label`: the label before it counts again. Gives the run's outcome."""
    from agenteval_tui.analysis.regrade import with_labels

    store.write(TakeBackLabel(given.number)).result()
    row = store.run(given.label.run_id)
    return with_labels(store, row) or row.status
