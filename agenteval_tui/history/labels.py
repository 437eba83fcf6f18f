"""What people think of runs: labels, of a run or of one criterion of it. All stay; the last one given counts.

Rows with a key are feedback, and no labels (`feedback.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from agenteval_tui.core.groups import grouped
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.storable import storable
from agenteval_tui.grading.remote_requests import GOOD_FROM
from agenteval_tui.history import tombstones
from agenteval_tui.history.bulk_sql import batches
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.recordings import recordings_of
from agenteval_tui.history.writer import Operation, Totals

RATINGS = range(1, 6)
"""What a person can give: 1 (bad) to 5 (good)."""
_CHUNK = 400


class Label(Struct, frozen=True):
    """A person's verdict on a run, or on one criterion of it.

    `criterion` is the criterion's name in the run; "" for the run as a whole. `criterion_hash` is the version of it
    that the person looked at. A label may have a version without a name: several criteria of the
    run have that content, and which one was meant is unknown (`unknown`).
    At least one of `rating` (1 to 5) and `passed` is given. `id`: its number in the history, 0 before it is there.
    """

    run_id: str
    rating: int | None = None
    criterion: str = ""
    comment: str = ""
    who: str = ""
    at_ms: int = 0
    passed: bool | None = None
    id: int = 0
    criterion_hash: str = ""

    @property
    def unknown(self) -> bool:
        """Whether its criterion is unknown: it is shown, but is not a verdict on a criterion."""
        return bool(self.criterion_hash) and not self.criterion

    @property
    def whole(self) -> bool:
        """Whether it is of the run as a whole."""
        return not self.criterion and not self.criterion_hash

    @property
    def good(self) -> bool:
        """Whether the person says yes: as they said, else by the rating (4 and 5)."""
        if self.passed is not None:
            return self.passed
        return self.rating is not None and self.rating >= GOOD_FROM

    @property
    def verdict_text(self) -> str:
        """The verdict in words, without comment and name: `passed, 4 of 5`."""
        words = [] if self.passed is None else ["passed" if self.passed else "failed"]
        return ", ".join([*words, *([] if self.rating is None else [f"{self.rating} of 5"])])


class AddLabel(Operation):
    """A person's verdict."""

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
        label = self.label
        run = connection.execute("SELECT id FROM runs WHERE uid = ?", (storable(label.run_id),)).fetchone()
        if run is None:
            raise HistoryError(f"there is no run {label.run_id}")
        criterion, name = None, None
        if label.criterion or label.criterion_hash:
            criterion, name = _criterion_in(connection, run[0], label)
        # What is said last counts, also where the clock went back, or another machine's is ahead.
        (last,) = connection.execute("SELECT max(at_ms) FROM labels WHERE run = ?", run).fetchone()
        label_row = connection.execute(
            "INSERT INTO labels (run, criterion, criterion_name, rating, passed, comment, who, at_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (
                run[0],
                criterion,
                name,
                label.rating,
                label.passed,
                storable(label.comment),
                storable(label.who),
                label.at_ms or max(now_ms(), last or 0),
            ),
        ).fetchone()
        return int(label_row[0])


def _criterion_in(connection: sqlite3.Connection, run: int, label: Label) -> tuple[int | None, str]:
    """The version and the name of the criterion of a run that a label is of: by its name, or by its content where only
    one criterion of the run has it. Raises HistoryError."""
    results = connection.execute(
        "SELECT o.criterion, o.name, coalesce(c.hash, '') FROM criterion_results o"
        " LEFT JOIN criteria c ON c.id = o.criterion WHERE o.run = ? ORDER BY o.position",
        (run,),
    ).fetchall()
    if label.criterion:
        matches = [result for result in results if result[1] == storable(label.criterion)]
        what = label.criterion
    else:
        matches = [result for result in results if result[2] == label.criterion_hash]
        what = label.criterion_hash
    if len(matches) == 1:
        return matches[0][0], matches[0][1]
    names = ", ".join(entry[1] for entry in matches or results) or "none"
    if matches:
        raise HistoryError(f"several criteria of run {label.run_id} have this content", fix=f"name one: {names}")
    raise HistoryError(f"there is no criterion {what} in run {label.run_id}", fix=f"its criteria: {names}")


class AddLabels(Operation):
    """Many verdicts at once: all or none."""

    labels: Sequence[Label]

    def prepare(self) -> None:
        """As of one."""
        for label in self.labels:
            AddLabel(label).prepare()

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> list[int]:
        """Insert them. Gives their numbers."""
        return [AddLabel(label).apply(connection, totals) for label in self.labels]


class TakeBackLabel(Operation):
    """A label (or feedback) that was given by mistake goes; the one before it counts again."""

    number: int

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> bool:
        """Delete it, and remember that: it must not come again with a copy of this history. False: it is not there."""
        named = connection.execute(
            "SELECT r.uid, coalesce(c.hash, ''), l.who, l.at_ms, coalesce(l.criterion_name, ''), l.key"
            " FROM labels l JOIN runs r ON r.id = l.run"
            " LEFT JOIN criteria c ON c.id = l.criterion WHERE l.id = ?",
            (self.number,),
        ).fetchone()
        if named is not None:
            tombstones.add_tombstone(connection, "label", tombstones.name_of_label(*named), now_ms())
        return connection.execute("DELETE FROM labels WHERE id = ?", (self.number,)).rowcount > 0


def labels_of(connection: sqlite3.Connection, run_ids: Sequence[str] | None) -> list[Label]:
    """The labels of these runs (None: of all), oldest first: labels from another history are placed by their time."""
    select = (
        "SELECT r.uid, l.rating, coalesce(l.criterion_name, ''), l.comment, l.who, l.at_ms, l.passed, l.id,"
        " coalesce(c.hash, '') FROM labels l JOIN runs r ON r.id = l.run LEFT JOIN criteria c ON c.id = l.criterion"
    )
    if run_ids is None:
        return [
            _label(row) for row in connection.execute(f"{select} WHERE l.key = '' ORDER BY l.at_ms, l.id").fetchall()
        ]
    labels: list[Label] = []
    for chunk in batches(map(storable, run_ids), _CHUNK):
        where = f"{select} WHERE l.key = '' AND r.uid IN ({','.join('?' * len(chunk))}) ORDER BY l.at_ms, l.id"
        labels.extend(_label(row) for row in connection.execute(where, chunk).fetchall())
    return labels


class _OfRun(Protocol):
    """What is said of a run: a label, or feedback."""

    @property
    def run_id(self) -> str: ...


_Said = TypeVar("_Said", bound=_OfRun)


def by_run(entries: Iterable[_Said]) -> dict[str, list[_Said]]:
    """Labels or feedback by the id of their run, in their order; runs without any are left out."""
    return grouped((entry.run_id, entry) for entry in entries)


def labels_by_recording(connection: sqlite3.Connection) -> dict[str, list[Label]]:
    """All labels by the id of the recorded run, oldest first."""
    labels = labels_of(connection, None)
    recorded = recordings_of(connection, [label.run_id for label in labels])
    return grouped((recorded.get(label.run_id, label.run_id), label) for label in labels)


def _label(row: Sequence[Any]) -> Label:
    run, rating, criterion, comment, who, at_ms, passed, number, digest = row
    verdict = None if passed is None else bool(passed)
    return Label(
        run,
        rating=rating,
        criterion=criterion,
        comment=comment,
        who=who,
        at_ms=at_ms,
        passed=verdict,
        id=number,
        criterion_hash=digest,
    )


# Which label counts


def sole_criterion(criteria: Iterable[tuple[str, str]]) -> str:
    """The name of the only criterion that decides a run, of its criteria as (name, severity); "": none or several do.

    What a person says of a run as a whole, they say of that one. Of several it says nothing.
    """
    deciding = [name for name, severity in criteria if severity == "error"]
    return deciding[0] if len(deciding) == 1 else ""


def label_of(labels: Iterable[Label], criterion: str, sole: str) -> Label | None:
    """The label of a run that counts for its criterion of that name: the last one of the criterion; without any, and
    where it alone decides the run (`sole`, of `sole_criterion`), the last one of the run as a whole. None: it is not
    labelled."""
    listed = list(labels)
    own = [label for label in listed if criterion and label.criterion == criterion]
    chosen = own or [label for label in listed if label.whole and criterion and criterion == sole]
    return chosen[-1] if chosen else None
