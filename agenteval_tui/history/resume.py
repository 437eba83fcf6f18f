"""Taking an execution up again: it is running, what has no outcome is queued, and the totals say so."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import field

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.storable import storable
from agenteval_tui.history.blobs import json_text
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.process_liveness import is_alive, owner_name
from agenteval_tui.history.records import FailedAttempt
from agenteval_tui.history.run_writes import TOTAL_OF, keep_attempts, withdraw
from agenteval_tui.history.writer import Operation, Totals

_ROWS = (
    "SELECT id, uid, status, cached, transcript, error_kind, error_message, why, started_ms, duration_ms,"
    " input_tokens, output_tokens, cost FROM runs WHERE execution = ?"
)


class Resume(Operation):
    """An execution is taken up by a process; `again`: ids of runs that ended, and are to be run again."""

    execution_id: str
    pid: int | None = None
    again: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> int:
        """Do it, or raise AgentevalError where it can't be done. Returns how many runs are queued then."""
        execution_row = connection.execute(
            "SELECT id, status, owner, kind, options FROM executions WHERE uid = ?", (storable(self.execution_id),)
        ).fetchone()
        if execution_row is None:
            raise HistoryError(f"there is no execution {self.execution_id}")
        execution, status, owner, kind, options = execution_row
        _check_resumable(self.execution_id, status, owner, kind)
        again = {storable(run_id) for run_id in self.again}
        queued = 0
        for row in connection.execute(_ROWS, (execution,)).fetchall():
            run, uid, was, cached, transcript, *rest = row
            if was in TOTAL_OF and was != "cancelled" and uid not in again:
                continue
            queued += 1
            if was in TOTAL_OF:
                withdraw(connection, totals, run)
                if not cached:
                    _keep_what_was_paid(connection, totals, execution, run, rest)
            connection.execute(
                "UPDATE runs SET status = 'queued', score = NULL, started_ms = NULL, duration_ms = NULL,"
                " attempts = 0, warnings = 0, input_tokens = NULL, output_tokens = NULL, cost = NULL,"
                " transcript = NULL, output_head = '', why = '', error_kind = '', error_message = '',"
                " request = NULL, cached = 0 WHERE id = ?",
                (run,),
            )
            if transcript is not None:
                forget_transcript(connection, transcript)
        merged = {**json.loads(options), **self.options}
        connection.execute(
            "UPDATE executions SET status = 'running', owner = ?, finished_ms = NULL, message = '', options = ?"
            " WHERE id = ?",
            (owner_name(self.pid), json_text(merged), execution),
        )
        return queued


def _check_resumable(execution_id: str, status: str, owner: str, kind: str) -> None:
    """Raise AgentevalError when an execution of this kind and state can't be taken up."""
    if kind == "import":
        raise AgentevalError(
            f"execution {execution_id} was imported: there is nothing to resume",
            fix="import its file again to add what is missing",
        )
    if status == "running" and is_alive(owner):
        raise AgentevalError(
            f"execution {execution_id} is running",
            fix="watch it with `agenteval attach`",
        )


def _keep_what_was_paid(
    connection: sqlite3.Connection, totals: Totals, execution: int, run: int, rest: Sequence[Any]
) -> None:
    """What an end that no longer counts has used was used all the same: it is kept as a failed attempt."""
    kind, message, why, started_ms, duration_ms, *spent = rest
    if not kind and all(number is None for number in spent):
        return  # cancelled before it started
    attempt = FailedAttempt(1, kind or "cancelled", message or why, duration_ms or 0.0, started_ms or now_ms(), *spent)
    keep_attempts(connection, totals, execution, run, [attempt])


def forget_transcript(connection: sqlite3.Connection, transcript: int) -> None:
    """Delete a transcript and its tool calls when no run has it any more."""
    if connection.execute("SELECT 1 FROM runs WHERE transcript = ?", (transcript,)).fetchone() is None:
        connection.execute("DELETE FROM transcripts WHERE id = ?", (transcript,))
        connection.execute("DELETE FROM tool_calls WHERE transcript = ?", (transcript,))


# Reading


def unfinished_imports(connection: sqlite3.Connection, digest: str) -> list[str]:
    """Ids of imports of the file with this digest whose process died before they were whole."""
    rows = connection.execute(
        "SELECT uid, options, owner FROM executions WHERE kind IN ('import', 'fork')"
        " AND status IN ('running', 'interrupted')"
    ).fetchall()
    return [uid for uid, options, owner in rows if json.loads(options).get("digest") == digest and not is_alive(owner)]


def cached_run(connection: sqlite3.Connection, request: str) -> tuple[str, bytes] | None:
    """The newest run that was asked this and got an answer: its id and packed transcript."""
    row = connection.execute(
        "SELECT r.uid, t.data FROM runs r JOIN transcripts t ON t.id = r.transcript WHERE r.request = ?"
        " AND r.error_kind = '' AND r.status IN ('passed', 'failed', 'error', 'skipped', 'needs_review')"
        " ORDER BY r.id DESC LIMIT 1",
        (storable(request),),
    ).fetchone()
    return None if row is None else (row[0], row[1])


def failed_attempts(connection: sqlite3.Connection, run_id: str) -> list[FailedAttempt]:
    """The attempts of a run that failed before the one that counts, in order."""
    rows = connection.execute(
        "SELECT a.number, a.kind, a.message, a.duration_ms, a.at_ms, a.input_tokens, a.output_tokens, a.cost"
        " FROM failed_attempts a JOIN runs r ON r.id = a.run WHERE r.uid = ? ORDER BY a.number",
        (storable(run_id),),
    )
    return [FailedAttempt(*row) for row in rows.fetchall()]
