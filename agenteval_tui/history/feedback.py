"""Feedback on runs: a score from 0 to 1 by a key, such as user_satisfaction. It decides no verdict.

It lies in the table of labels, so that whatever keeps, copies, merges and rescues labels does so with it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from agenteval_tui.core.document import Count, Document, Share
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.storable import storable
from agenteval_tui.history.bulk_sql import batches
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.writer import Operation, Totals

_KEY = re.compile(r"[^\W\d][\w.-]{0,63}")
_CHUNK = 400


class Feedback(Struct, frozen=True):
    """What somebody, or something, gave a run: a score from 0 (bad) to 1 (good) by a key.

    `who` may be a person or a program. `id`: its number in the history, 0 before it is there.
    """

    run_id: str
    key: str
    score: float
    comment: str = ""
    who: str = ""
    at_ms: int = 0
    id: int = 0


class FeedbackMean(Document, frozen=True):
    """The scores under a key that runs were given: of each person the last one of each run."""

    key: str
    mean: Share
    n: Annotated[Count, Meta(description="how many scores")]
    runs: Annotated[Count, Meta(description="how many runs have one")]
    lowest: Share


def check_key(key: str) -> str:
    """The key without blanks around it. Raises `AgentevalError` if it isn't a word."""
    key = key.strip()
    if not _KEY.fullmatch(key):
        raise AgentevalError(
            f"{key[:80]!r} can't be the key of feedback",
            fix="a key has at most 64 letters, digits, `_`, `.` and `-`, and starts with a letter: user_satisfaction",
        )
    return key


class AddFeedback(Operation):
    """A score of a run."""

    feedback: Feedback

    def prepare(self) -> None:
        """Refuse a key that isn't a word, and a score that isn't one."""
        check_key(self.feedback.key)
        if isinstance(self.feedback.score, bool) or not 0 <= self.feedback.score <= 1:  # NaN is not either
            raise AgentevalError(
                f"a score is a number from 0 to 1, not {self.feedback.score!r}", fix="0 is the worst, 1 the best"
            )

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> int:
        """Insert it; earlier ones stay, the last one of a person counts. Gives its number."""
        feedback = self.feedback
        run = connection.execute("SELECT id FROM runs WHERE uid = ?", (storable(feedback.run_id),)).fetchone()
        if run is None:
            raise HistoryError(f"there is no run {feedback.run_id}")
        # What is said last counts, and no two have one time: by it they are told apart in other histories.
        (last,) = connection.execute("SELECT max(at_ms) FROM labels WHERE run = ?", run).fetchone()
        number: tuple[int] = connection.execute(
            "INSERT INTO labels (run, key, score, comment, who, at_ms) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
            (
                run[0],
                feedback.key.strip(),
                float(feedback.score),
                storable(feedback.comment),
                storable(feedback.who),
                feedback.at_ms or max(now_ms(), (last or 0) + 1),
            ),
        ).fetchone()
        return number[0]


def feedback_of(connection: sqlite3.Connection, run_ids: Sequence[str] | None) -> list[Feedback]:
    """The feedback of these runs (None: of all), oldest first."""
    select = (
        "SELECT r.uid, l.key, l.score, l.comment, l.who, l.at_ms, l.id FROM labels l JOIN runs r ON r.id = l.run"
        " WHERE l.key != '' AND l.score IS NOT NULL"
    )
    if run_ids is None:
        return [Feedback(*row) for row in connection.execute(f"{select} ORDER BY l.at_ms, l.id").fetchall()]
    rows: list[Any] = []
    for chunk in batches(map(storable, run_ids), _CHUNK):
        rows += connection.execute(f"{select} AND r.uid IN ({','.join('?' * len(chunk))})", chunk).fetchall()
    return [Feedback(*row) for row in sorted(rows, key=lambda row: (row[5], row[6]))]


def means(scores: Iterable[tuple[str, int, str, float]]) -> tuple[FeedbackMean, ...]:
    """By key, of (key, run, who, score) in the order in which they were given."""
    last: dict[str, dict[tuple[int, str], float]] = {}
    for key, run, who, score in scores:
        last.setdefault(key, {})[run, who] = score
    return tuple(
        FeedbackMean(key, sum(of.values()) / len(of), len(of), len({run for run, _ in of}), min(of.values()))
        for key, of in sorted(last.items())
    )
