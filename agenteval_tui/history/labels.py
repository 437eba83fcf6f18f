"""What people think of runs: labels, of a run or of one criterion of it. All stay; the last one given counts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from agenteval_tui.grading.questions import GOOD_FROM
from agenteval_tui.history import taken_back
from agenteval_tui.history.blobs import clean
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.writer import Totals
from agenteval_tui.text.identity import now_ms

RATINGS = range(1, 6)
"""What a person can give: 1 (bad) to 5 (good)."""
_CHUNK = 400


@dataclass(frozen=True, slots=True)
class Label:
    """A person's verdict on a run, or on one criterion of it (`criterion_hash`; "": the run as a whole).

    At least one of `rating` (1 to 5) and `passed` is given. `id`: its number in the history, 0 before it is there.
    """

    run_id: str
    rating: int | None = None
    criterion_hash: str = ""
    comment: str = ""
    who: str = ""
    at_ms: int = 0
    passed: bool | None = None
    id: int = 0

    @property
    def good(self) -> bool:
        """Whether the person says yes: as they said, else by the rating (4 and 5)."""
        if self.passed is not None:
            return self.passed
        return self.rating is not None and self.rating >= GOOD_FROM

    @property
    def said(self) -> str:
        """The verdict in words, without comment and name: `passed, 4 of 5`."""
        words = [] if self.passed is None else ["passed" if self.passed else "failed"]
        return ", ".join([*words, *([] if self.rating is None else [f"{self.rating} of 5"])])


@dataclass(slots=True)
class AddLabel:
    """A person's verdict."""

    patient: ClassVar[bool] = False
    label: Label

    def prepare(self) -> None:
        """Refuse a rating that is none, and a label that says nothing."""
        rating = self.label.rating
        if rating is None and self.label.passed is None:
            raise HistoryError("a label says passed or failed, or a rating from 1 to 5")
        if rating is not None and (rating not in RATINGS or isinstance(rating, bool)):
            raise HistoryError(f"a rating is a whole number from 1 to 5, not {rating!r}")

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> int:
        """Insert it; earlier ones stay, the last counts. Gives its number."""
        one, criterion = self.label, None
        run = connection.execute("SELECT id FROM runs WHERE uid = ?", (clean(one.run_id),)).fetchone()
        if run is None:
            raise HistoryError(f"there is no run {one.run_id}")
        if one.criterion_hash:
            criterion = connection.execute("SELECT id FROM criteria WHERE hash = ?", (one.criterion_hash,)).fetchone()
            if criterion is None:
                raise HistoryError(f"there is no criterion {one.criterion_hash}")
        # What is said last counts, also where the clock went back, or another machine's is ahead.
        (last,) = connection.execute("SELECT max(at_ms) FROM labels WHERE run = ?", run).fetchone()
        made = connection.execute(
            "INSERT INTO labels (run, criterion, rating, passed, comment, who, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)"
            " RETURNING id",
            (
                run[0],
                criterion[0] if criterion else None,
                one.rating,
                one.passed,
                clean(one.comment),
                clean(one.who),
                one.at_ms or max(now_ms(), last or 0),
            ),
        ).fetchone()
        return int(made[0])


@dataclass(slots=True)
class AddLabels:
    """Many verdicts at once: all of them, or none."""

    patient: ClassVar[bool] = False
    labels: Sequence[Label]

    def prepare(self) -> None:
        """As of one."""
        for one in self.labels:
            AddLabel(one).prepare()

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> list[int]:
        """Insert them. Gives their numbers."""
        return [AddLabel(one).apply(connection, totals) for one in self.labels]


@dataclass(slots=True)
class TakeBackLabel:
    """A label that was given by mistake goes; the one before it counts again."""

    patient: ClassVar[bool] = False
    number: int

    def prepare(self) -> None:
        """Nothing to encode."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> bool:
        """Delete it, and remember that: it must not come again with a copy of this history. False: it is not there."""
        named = connection.execute(
            "SELECT r.uid, coalesce(c.hash, ''), l.who, l.at_ms FROM labels l JOIN runs r ON r.id = l.run"
            " LEFT JOIN criteria c ON c.id = l.criterion WHERE l.id = ?",
            (self.number,),
        ).fetchone()
        if named is not None:
            taken_back.remember(connection, "label", taken_back.name_of_label(*named), now_ms())
        return connection.execute("DELETE FROM labels WHERE id = ?", (self.number,)).rowcount > 0


def labels_of(connection: sqlite3.Connection, run_ids: Sequence[str] | None) -> list[Label]:
    """The labels of these runs (None: of all), oldest first: what came from another history stands at its time."""
    select = (
        "SELECT r.uid, l.rating, coalesce(c.hash, ''), l.comment, l.who, l.at_ms, l.passed, l.id FROM labels l"
        " JOIN runs r ON r.id = l.run LEFT JOIN criteria c ON c.id = l.criterion"
    )
    if run_ids is None:
        return [_label(row) for row in connection.execute(f"{select} ORDER BY l.at_ms, l.id").fetchall()]
    found: list[Label] = []
    for start in range(0, len(run_ids), _CHUNK):
        chunk = [clean(one) for one in run_ids[start : start + _CHUNK]]
        where = f"{select} WHERE r.uid IN ({','.join('?' * len(chunk))}) ORDER BY l.at_ms, l.id"
        found.extend(_label(row) for row in connection.execute(where, chunk).fetchall())
    return found


def _label(row: Sequence[Any]) -> Label:
    run, rating, criterion, comment, who, at_ms, passed, number = row
    return Label(run, rating, criterion, comment, who, at_ms, None if passed is None else bool(passed), number)
