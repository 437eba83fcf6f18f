"""What judges, embedders and people said: replies by the hash of the question, and labels of runs.

A reply belongs to every run whose result rests on it; it is stored once, with the question as it was asked.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agenteval_tui.grading.questions import GOOD_FROM, RemoteRequest, Reply
from agenteval_tui.history.blobs import clean, json_text
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.writer import Totals
from agenteval_tui.text.identity import now_ms
from agenteval_tui.transcripts.model import Usage

# A person's ratings: 1 to 5.
RATINGS = range(1, 6)
_CHUNK = 400
_SELECT = (
    "SELECT p.data, p.answerer, p.model, p.error, p.input_tokens, p.output_tokens, p.cost, p.at_ms FROM judge_replies p"
)


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A question, who was asked it (`answerer`: a hash of who and how configured), and what came back.

    `criterion`: the hash of the criterion that asked; "": not known.
    """

    request: RemoteRequest
    answerer: str
    reply: Reply
    criterion: str = ""


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
class KeepReplies:
    """Replies that a run's results rest on. Those that it had before stay with it."""

    patient: ClassVar[bool] = True
    run_id: str
    replies: Sequence[StoredReply]
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def prepare(self) -> None:
        """Encode and compress."""
        self.rows = [
            (
                one.request.hash,
                clean(one.answerer),
                _packed(one),
                clean(one.reply.model),
                clean(one.reply.error),
                one.reply.input_tokens,
                one.reply.output_tokens,
                one.reply.cost,
                one.reply.at_ms or now_ms(),
            )
            for one in self.replies
        ]

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Insert what is new, and tie all of it to the run."""
        found = connection.execute("SELECT id FROM runs WHERE uid = ?", (clean(self.run_id),)).fetchone()
        if found is None:
            raise HistoryError(f"there is no run {self.run_id}")
        for one, row in zip(self.replies, self.rows, strict=True):
            known = connection.execute(
                "SELECT id FROM judge_replies WHERE request = ? AND answerer = ? AND at_ms = ? AND data = ?",
                (row[0], row[1], row[8], row[2]),
            ).fetchone()
            reply = (
                known
                or connection.execute(
                    "INSERT INTO judge_replies"
                    " (request, answerer, data, model, error, input_tokens, output_tokens, cost, at_ms)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                    row,
                ).fetchone()
            )
            # Who brings a reply has asked for it; who finds it there has not.
            connection.execute(
                "INSERT OR IGNORE INTO run_replies (run, reply, criterion, paid)"
                " VALUES (?, ?, (SELECT id FROM criteria WHERE hash = ?), ?)",
                (found[0], reply[0], one.criterion, known is None),
            )


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
                one.at_ms or now_ms(),
            ),
        ).fetchone()
        return int(made[0])


@dataclass(slots=True)
class TakeBackLabel:
    """A label that was given by mistake goes; the one before it counts again."""

    patient: ClassVar[bool] = False
    number: int

    def prepare(self) -> None:
        """Nothing to encode."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> bool:
        """Delete it. False: it is not there any more."""
        return connection.execute("DELETE FROM labels WHERE id = ?", (self.number,)).rowcount > 0


def forget_runs(connection: sqlite3.Connection, runs: Sequence[int]) -> None:
    """Delete replies and labels of runs that go; replies that other runs rest on stay."""
    for run in runs:
        replies = [row[0] for row in connection.execute("SELECT reply FROM run_replies WHERE run = ?", (run,))]
        connection.execute("DELETE FROM run_replies WHERE run = ?", (run,))
        connection.execute("DELETE FROM labels WHERE run = ?", (run,))
        connection.executemany(
            "DELETE FROM judge_replies WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM run_replies WHERE reply = ?1)",
            [(reply,) for reply in replies],
        )


# Reading


def replies_of(connection: sqlite3.Connection, run_ids: Sequence[str]) -> dict[str, list[StoredReply]]:
    """The replies of runs, oldest first, by run id; runs without any are left out."""
    found: dict[str, list[StoredReply]] = {}
    for start in range(0, len(run_ids), _CHUNK):
        chunk = [clean(one) for one in run_ids[start : start + _CHUNK]]
        rows = connection.execute(
            f"{_SELECT.replace('SELECT ', 'SELECT r.uid, c.hash, ')} JOIN run_replies l ON l.reply = p.id"
            " LEFT JOIN criteria c ON c.id = l.criterion"
            f" JOIN runs r ON r.id = l.run WHERE r.uid IN ({','.join('?' * len(chunk))}) ORDER BY p.id",
            chunk,
        ).fetchall()
        for uid, criterion, *row in rows:
            found.setdefault(uid, []).append(_unpacked(row, criterion or ""))
    return found


def known_reply(connection: sqlite3.Connection, request: str, answerer: str) -> StoredReply | None:
    """The newest reply of this answerer to this question that is no error."""
    row = connection.execute(
        f"{_SELECT} WHERE p.request = ? AND p.answerer = ? AND p.error = '' ORDER BY p.id DESC LIMIT 1",
        (request, clean(answerer)),
    ).fetchone()
    return None if row is None else _unpacked(row)


def labels_of(connection: sqlite3.Connection, run_ids: Sequence[str] | None) -> list[Label]:
    """The labels of these runs (None: of all), oldest first."""
    select = (
        "SELECT r.uid, l.rating, coalesce(c.hash, ''), l.comment, l.who, l.at_ms, l.passed, l.id FROM labels l"
        " JOIN runs r ON r.id = l.run LEFT JOIN criteria c ON c.id = l.criterion"
    )
    if run_ids is None:
        return [_label(row) for row in connection.execute(f"{select} ORDER BY l.id").fetchall()]
    found: list[Label] = []
    for start in range(0, len(run_ids), _CHUNK):
        chunk = [clean(one) for one in run_ids[start : start + _CHUNK]]
        where = f"{select} WHERE r.uid IN ({','.join('?' * len(chunk))}) ORDER BY l.id"
        found.extend(_label(row) for row in connection.execute(where, chunk).fetchall())
    return found


def _label(row: Sequence[Any]) -> Label:
    run, rating, criterion, comment, who, at_ms, passed, number = row
    return Label(run, rating, criterion, comment, who, at_ms, None if passed is None else bool(passed), number)


def judge_usage(connection: sqlite3.Connection, execution_id: str) -> tuple[int, Usage]:
    """How many replies the runs of an execution rest on, and what they cost; a shared reply counts once."""
    row = connection.execute(
        "SELECT count(*), sum(input_tokens), sum(output_tokens), sum(cost) FROM judge_replies WHERE id IN"
        " (SELECT l.reply FROM run_replies l JOIN runs r ON r.id = l.run"
        "  JOIN executions e ON e.id = r.execution WHERE e.uid = ?)",
        (clean(execution_id),),
    ).fetchone()
    return int(row[0]), Usage(row[1], row[2], cost=row[3])


def _packed(one: StoredReply) -> bytes:
    return zlib.compress(json_text([1, one.request.to_json(), one.reply.raw]).encode("ascii"), 1)


def _unpacked(row: Sequence[Any], criterion: str = "") -> StoredReply:
    data, answerer, model, error, tokens_in, tokens_out, cost, at_ms = row
    try:
        _, request, raw = json.loads(zlib.decompress(data))
        made = RemoteRequest.from_json(request)
    except (zlib.error, ValueError, TypeError, KeyError, RecursionError) as wrong:
        raise HistoryError(f"a judge's stored reply can't be read: {wrong}") from wrong
    return StoredReply(made, answerer, Reply(raw, model, error, tokens_in, tokens_out, cost, at_ms), criterion)
