"""An execution as CSV: a line each run."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from agenteval_tui.analysis.causes import failure_causes
from agenteval_tui.analysis.quarantine_gate import gating_now
from agenteval_tui.analysis.test_gates import gates_now
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.core.display import displayable
from agenteval_tui.core.numbers import iso
from agenteval_tui.formats.documents.causes import properties_of
from agenteval_tui.history.labels import by_run
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.history.store import Store
from agenteval_tui.views.gates import verdict_text
from agenteval_tui.views.label import feedback_score, label_text
from agenteval_tui.views.quarantine import held_text

COLUMNS = (
    "execution",
    "run",
    "suite",
    "test",
    "test_name",
    "variation",
    "row",
    "repetition",
    "agent",
    "outcome",
    "score",
    "why",
    "started",
    "duration_ms",
    "attempts",
    "input_tokens",
    "output_tokens",
    "cost",
    "final_output",
    "quarantine",
    "causes",
    "triage",
    "row_key",
    "labels",
    "gate",
    "feedback",
    "execution_name",
)
# What makes a cell a formula; the wide ones do it where such letters are written.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def results_csv(store: Store, execution: ExecutionRow) -> str:
    """The table as text, lines ended as RFC 4180 has them.

    A text that a spreadsheet would take for a formula gets a leading apostrophe: an agent's answer is data. Controls
    are shown as pictures, as on a screen: files are printed in terminals, too. (JSON has every text as it came.)
    A run with several causes has them all in one cell, beside what was decided about them.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    rows = store.runs_of_execution(execution.id)
    held = gating_now(store, rows)
    gates = gates_now(store, execution, rows, held)
    _, decided = causes_of_execution(store, execution.id)
    causes = failure_causes(store, [row.id for row in rows if row.status in ("failed", "error")])
    labels = by_run(store.labels([row.id for row in rows]))
    feedback = by_run(store.feedback([row.id for row in rows]))
    for row in rows:
        properties = properties_of(causes.get(row.id, ()), decided)
        answer = store.transcript(row.id).final_output
        texts = [row.suite_name, row.test_id, row.test_name, row.variation]
        writer.writerow(
            [
                cell(execution.id),
                cell(row.id),
                *map(cell, texts),
                row.row,
                row.repetition,
                cell(row.agent),
                cell(row.status),
                _number(row.score),
                cell(row.why),
                iso(row.started_ms) or "",
                _number(row.duration_ms),
                row.attempts,
                _number(row.input_tokens),
                _number(row.output_tokens),
                _number(row.cost),
                cell(answer),
                cell(held_text(held.of_run(row))),
                *(_joined(properties, name) for name in ("cause", "triage")),
                cell(row.row_key),
                cell("; ".join(label_text(label) for label in labels.get(row.id, ()))),
                cell(verdict_text(verdict) if (verdict := gates.of_run(row)) is not None else ""),
                cell("; ".join(feedback_score(entry) for entry in feedback.get(row.id, ()))),
                cell(execution.name),
            ]
        )
    return out.getvalue()


def cell(text: str) -> str:
    """A text as a cell that no spreadsheet takes for a formula, and no terminal for a command."""
    text = displayable(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _joined(properties: Sequence[tuple[str, str]], sought: str) -> str:
    """What has this name, one after the other."""
    return "; ".join(cell(text) for name, text in properties if name == sought)


def _number(value: float | None) -> str:
    """Six digits, and of a long time all before the point: a spreadsheet would take 1.23457e+06 for 1,234,570."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) and abs(value) < 100_000 else f"{value:.0f}"
