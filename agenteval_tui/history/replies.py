"""What judges and embedders said: replies by the hash of the question.

A reply belongs to every run whose result rests on it; it is stored once, with the question as it was asked.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import Struct, field

from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.storable import storable
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.history.blobs import json_text
from agenteval_tui.history.bulk_sql import batches
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.writer import Operation, Totals
from agenteval_tui.transcripts.model import Usage
from agenteval_tui.transcripts.traceback import traceback_data, traceback_from

_CHUNK = 400
_SELECT = (
    "SELECT p.data, p.answerer, p.model, p.error, p.input_tokens, p.output_tokens, p.cost, p.at_ms FROM judge_replies p"
)


_USER = "user:"
OF_USERS = f"p.answerer GLOB '{_USER}*'"
"""In SQL: the reply `p` is what a simulated user said."""
_BEHIND = f"substr(p.answerer, {len(_USER) + 1})"
USER_NAME = f"substr({_BEHIND}, instr({_BEHIND}, ':') + 1)"
"""In SQL: the agent that played that user."""


def user_answerer(name: str, fingerprint: str) -> str:
    """Who answered, where the agent `name` played the user: `user:FINGERPRINT:NAME`."""
    return f"{_USER}{fingerprint}:{name}"


class StoredReply(Struct, frozen=True):
    """A question, who was asked (`answerer`: a hash of the respondent and its configuration), and the reply.

    `criterion`: the hash of the criterion that asked; "": unknown.
    """

    request: RemoteRequest
    answerer: str
    reply: Reply
    criterion: str = ""


class KeepReplies(Operation):
    """Replies that a run's results rest on. Those that it had before stay with it."""

    patient: ClassVar[bool] = True
    run_id: str
    replies: Sequence[StoredReply]
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def prepare(self) -> None:
        """Encode and compress."""
        self.rows = [
            (
                reply.request.hash,
                storable(reply.answerer),
                _packed(reply),
                storable(reply.reply.model),
                storable(reply.reply.error),
                reply.reply.input_tokens,
                reply.reply.output_tokens,
                reply.reply.cost,
                reply.reply.at_ms or now_ms(),
            )
            for reply in self.replies
        ]

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Insert what is new, and tie all of it to the run."""
        run_row = connection.execute("SELECT id FROM runs WHERE uid = ?", (storable(self.run_id),)).fetchone()
        if run_row is None:
            raise HistoryError(f"there is no run {self.run_id}")
        for stored_reply, row in zip(self.replies, self.rows, strict=True):
            known_row = connection.execute(
                "SELECT id FROM judge_replies WHERE request = ? AND answerer = ? AND at_ms = ? AND data = ?",
                (row[0], row[1], row[8], row[2]),
            ).fetchone()
            reply = (
                known_row
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
                (run_row[0], reply[0], stored_reply.criterion, known_row is None),
            )


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
    """What judges and others replied about runs, oldest first, by run id; runs without any are left out. What a
    simulated user said is a part of the run's conversation, and not among them."""
    replies: dict[str, list[StoredReply]] = {}
    for chunk in batches(map(storable, run_ids), _CHUNK):
        rows = connection.execute(
            f"{_SELECT.replace('SELECT ', 'SELECT r.uid, c.hash, ')} JOIN run_replies l ON l.reply = p.id"
            " LEFT JOIN criteria c ON c.id = l.criterion"
            f" JOIN runs r ON r.id = l.run WHERE r.uid IN ({','.join('?' * len(chunk))})"
            f" AND NOT {OF_USERS} ORDER BY p.id",
            chunk,
        ).fetchall()
        for uid, criterion, *row in rows:
            replies.setdefault(uid, []).append(_unpacked(row, criterion or ""))
    return replies


def known_reply(connection: sqlite3.Connection, request: str, answerer: str) -> StoredReply | None:
    """The newest reply of this answerer to this question that is not an error."""
    row = connection.execute(
        f"{_SELECT} WHERE p.request = ? AND p.answerer = ? AND p.error = '' ORDER BY p.id DESC LIMIT 1",
        (request, storable(answerer)),
    ).fetchone()
    return None if row is None else _unpacked(row)


def judge_usage(connection: sqlite3.Connection, execution_id: str) -> tuple[int, Usage]:
    """How many replies of judges and others the runs of an execution rest on, and what they cost; a shared reply counts
    once."""
    row = connection.execute(
        "SELECT count(*), sum(input_tokens), sum(output_tokens), sum(cost) FROM judge_replies p"  # noqa: S608
        f" WHERE NOT {OF_USERS} AND id IN"
        " (SELECT l.reply FROM run_replies l JOIN runs r ON r.id = l.run"
        "  JOIN executions e ON e.id = r.execution WHERE e.uid = ?)",
        (storable(execution_id),),
    ).fetchone()
    return int(row[0]), Usage(row[1], row[2], cost=row[3])


def _packed(reply: StoredReply) -> bytes:
    raised = [] if reply.reply.traceback is None else [traceback_data(reply.reply.traceback)]
    return zlib.compress(json_text([1, reply.request.to_json(), reply.reply.raw, *raised]).encode("ascii"), 1)


def _unpacked(row: Sequence[Any], criterion: str = "") -> StoredReply:
    data, answerer, model, error, tokens_in, tokens_out, cost, at_ms = row
    try:
        _, request, raw, *raised = json.loads(zlib.decompress(data))
        remote_request = RemoteRequest.from_json(request)
    except (zlib.error, ValueError, TypeError, KeyError, RecursionError) as wrong:
        raise HistoryError(f"a judge's stored reply can't be read: {wrong}") from wrong
    traceback = traceback_from(raised[0]) if raised else None
    reply = Reply(
        raw,
        model=model,
        error=error,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost=cost,
        at_ms=at_ms,
        traceback=traceback,
    )
    return StoredReply(remote_request, answerer, reply, criterion)
