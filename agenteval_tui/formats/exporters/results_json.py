"""An execution as one JSON document: what `agenteval run --json` writes and `agenteval show --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenteval_tui.analysis.quarantine_gate import LeftOut, gating_now
from agenteval_tui.analysis.regression_gate import compare_to_baseline
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.formats.documents.causes import failure_cause
from agenteval_tui.formats.documents.comparison import against_document
from agenteval_tui.formats.labels import label_data, labels_by_run
from agenteval_tui.formats.timestamps import iso
from agenteval_tui.grading.codec import result_to_json
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.codec import to_json
from agenteval_tui.transcripts.model import Transcript

VERSION = 1


def execution_document(store: Store, execution: ExecutionRow) -> dict[str, Any]:
    """The execution with all its runs in the order of the plan, as JSON data.

    `{"version", "execution", "title", "suite", "status", "started", "finished", "summary", "runs": [...],
    "causes": [...]}`; with a `baseline` where its tests have one, with `quarantine` where something does not
    gate. Times are ISO 8601 in UTC; null where there is none.
    """

    rows = store.runs_of_execution(execution.id)
    against = compare_to_baseline(store, execution)
    held = gating_now(store, rows)
    causes, decided = causes_of_execution(store, execution.id)
    labels = labels_by_run(store, [row.id for row in rows])
    return {
        "version": VERSION,
        "execution": execution.id,
        "title": execution.title,
        "kind": execution.kind,
        "suite": execution.suites,
        "status": execution.status,
        "message": execution.message,
        "notes": list(execution.notes),
        "started": iso(execution.started_ms),
        "finished": iso(execution.finished_ms),
        "summary": summary(execution, rows),
        **({"baseline": against_document(against)} if against is not None else {}),
        **({"quarantine": [_left_out_data(one) for one in held.left_out]} if held.left_out else {}),
        "runs": [
            run_data(row, store.results(row.id), store.transcript(row.id), labels.get(row.id, ())) for row in rows
        ],
        "causes": [failure_cause(group, decided.get(group.cause.signature)) for group in causes.groups],
    }


def _left_out_data(one: LeftOut) -> dict[str, Any]:
    """A quarantine with what it kept from gating."""
    return {
        "suite": one.quarantine.suite_name,
        "test": one.quarantine.test_id,
        "criterion": one.quarantine.criterion or None,
        "until": one.quarantine.until_ms,
        "reason": one.quarantine.reason,
        "runs": one.runs,
        "not_passed": one.not_passed,
    }


def summary(execution: ExecutionRow, rows: Sequence[RunRow]) -> dict[str, Any]:
    """How many tests and runs there are, and how they ended."""
    tests = len({(row.suite_key, row.test_id) for row in rows})
    return {
        "tests": tests,
        "runs": execution.runs,
        "passed": execution.passed,
        "failed": execution.failed,
        "error": execution.errors,
        "skipped": execution.skipped,
        "cancelled": execution.cancelled,
        "needs_review": execution.needs_review,
        "input_tokens": execution.input_tokens,
        "output_tokens": execution.output_tokens,
        "cost": execution.cost,
    }


def run_data(
    row: RunRow, results: Sequence[CriterionResult], transcript: Transcript, labels: Sequence[Label]
) -> dict[str, Any]:
    """One run: what it was, how it ended, what each criterion and people said, what the agent did."""
    did = to_json(transcript)
    return {
        "run": row.id,
        "suite": row.suite_name,
        "test": row.test_id,
        "test_name": row.test_name,
        "variation": row.variation,
        "row": row.row,
        "row_key": row.row_key,
        "repetition": row.repetition,
        "agent": row.agent,
        "tags": list(row.tags),
        "outcome": row.status,
        "score": row.score,
        "why": row.why,
        "warnings": row.warnings,
        "checks_not_made": row.checks_not_made,
        "started": iso(row.started_ms),
        "duration_ms": row.duration_ms,
        "attempts": row.attempts,
        "criteria": [result_to_json(result) for result in results],
        "labels": [label_data(label) for label in labels],
        "final_output": transcript.final_output,
        "tool_calls": did["tool_calls"],
        "usage": did["usage"],
        "timing": did["timing"],
        "finish_reason": transcript.finish_reason,
        "error": did["error"],
    }
