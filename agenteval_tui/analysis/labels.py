"""Giving labels and taking them back: the verdicts that wait for a person follow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from msgspec import Struct

from agenteval_tui.analysis.regrade import with_labels
from agenteval_tui.history.labels import AddLabels, Label, TakeBackLabel
from agenteval_tui.history.recordings import recordings_of
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.stored_judgments import JudgeLabels


def opinion(run_id: str, criterion: str, *, rating: int | None, passed: bool | None, comment: str, who: str) -> Label:
    """A person's label that is not in the history yet; `criterion` (a name) "": of the run as a whole."""
    # Screens make theirs here: in the app `Label` is the widget that reads markup, and its name is barred.
    return Label(run_id, rating, criterion, comment, who, passed=passed)


class LabelSaved(Struct, frozen=True):
    """A label that is in the history: its number there, and the run's outcome now."""

    label: Label
    number: int
    status: str


def give_label(store: Store, label: Label) -> LabelSaved:
    """Store a label; criteria of the run that wait for a person are graded again. Blocks until it is on disk.

    Raises `HistoryError` for a label that says nothing, or whose run or criterion is not there.
    """
    number = store.label(
        label.run_id,
        label.rating,
        passed=label.passed,
        criterion=label.criterion,
        criterion_hash=label.criterion_hash,
        comment=label.comment,
        who=label.who,
    ).result()
    row = store.run(label.run_id)
    return LabelSaved(label, number, with_labels(store, row, JudgeLabels(store)) or row.status)


def give_labels(store: Store, labels: Sequence[Label]) -> None:
    """Keep many labels, all or none. Blocks. Raises as `give_label`."""
    store.write(AddLabels(labels)).result()
    resolve_review(store, (label.run_id for label in labels))


def resolve_review(store: Store, run_ids: Iterable[str]) -> None:
    """Grade criteria that wait for a person again in those of these runs that have any: their labels changed."""
    asks: dict[str, bool] = {}
    judge_labels = JudgeLabels(store)
    for row in runs_of_ids(store, run_ids):
        for digest in row.criteria:
            if digest not in asks:
                # By words in the text: to compile a criterion takes longer than to look at one run too many.
                config = str((store.criterion(digest) or {}).get("config", ""))
                asks[digest] = "Human" in config or "accept" in config
        if any(asks[digest] for digest in row.criteria):
            with_labels(store, row, judge_labels)


def runs_of_ids(store: Store, run_ids: Iterable[str]) -> list[RunRow]:
    """The rows of these runs, newest first; those that are gone are left out."""
    rows = store.read(
        lambda c: c.execute(
            "SELECT id FROM runs WHERE uid IN (SELECT value FROM json_each(?)) ORDER BY id DESC",
            (json.dumps(list(run_ids)),),
        ).fetchall()
    )
    return store.run_rows([row[0] for row in rows])


def gradings_of(store: Store, run_ids: Iterable[str]) -> list[RunRow]:
    """The rows of all gradings of what these runs recorded, newest first."""
    recorded = store.read(lambda c: recordings_of(c, list(run_ids)))
    rows = store.read(
        lambda c: c.execute(
            "SELECT id FROM runs WHERE uid IN (SELECT value FROM json_each(?1))"
            " OR (recording != '' AND recording IN (SELECT value FROM json_each(?1))) ORDER BY id DESC",
            (json.dumps(sorted({*recorded.values(), *recorded})),),
        ).fetchall()
    )
    return store.run_rows([row[0] for row in rows])


def remove_label(store: Store, label_saved: LabelSaved) -> str:
    """Undo `give_label`: the label before it counts again. Gives the run's outcome."""
    store.write(TakeBackLabel(label_saved.number)).result()
    row = store.run(label_saved.label.run_id)
    return with_labels(store, row, JudgeLabels(store)) or row.status
