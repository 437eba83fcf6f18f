"""An execution or a run as one document: what `agenteval run --json` writes and `agenteval show --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from agenteval_tui.analysis.quarantine_gate import QuarantineEffect, gating_now
from agenteval_tui.analysis.regression_gate import compare_to_baseline
from agenteval_tui.analysis.test_gates import GateOutcome, GateVerdict, gates_now
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.core.document import Count, Document, ExecutionStatus, RowKey, Share, Status, Time, extended, one_of
from agenteval_tui.core.numbers import iso
from agenteval_tui.formats.documents.causes import FailureCause, failure_cause
from agenteval_tui.formats.documents.comparison import AgainstBaseline, against_document
from agenteval_tui.formats.documents.fork import ForkedFrom, forked_from
from agenteval_tui.formats.labels import (
    FeedbackDocument,
    LabelDocument,
    feedback_document,
    label_document,
)
from agenteval_tui.grading.codec import CriterionDocument, result_document
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.feedback import Feedback
from agenteval_tui.history.labels import Label, by_run
from agenteval_tui.history.records import ExecutionRow, ExecutionSummary, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.around.record import ServiceState, decoded
from agenteval_tui.runs.plan.gates import OPTION, SUITE, TEST
from agenteval_tui.suites.commits import Commit
from agenteval_tui.transcripts.codec import StoredTranscript, stored_transcript
from agenteval_tui.transcripts.model import HookRun, RunError, Timing, ToolCall, Transcript, Usage

_UserUsage = Annotated[
    Usage | UnsetType, Meta(description="what the simulated user used; `usage` is the agent's alone")
]


class NotGating(Document, frozen=True, kw_only=True):
    """A quarantine with what it kept from gating."""

    suite: str
    test: str
    criterion: Annotated[str | None, Meta(description="null: the whole test")]
    until: Annotated[Count, Meta(description="milliseconds since 1970")]
    reason: str
    runs: Count
    not_passed: Annotated[Count, Meta(description="runs that it kept from counting as not passed")]


class GateDocument(Document, frozen=True, kw_only=True):
    """How a test did against its gate, in one variation: over all its repetitions and rows."""

    suite: str
    test: str
    variation: str
    pass_rate: Annotated[Share, Meta(description="what it must reach")]
    origin: Annotated[str, one_of(TEST, SUITE, OPTION)]
    outcome: Annotated[str, one_of(*get_args(GateOutcome)), Meta(description="undecided: no run of it has a verdict")]
    n: Annotated[Count, Meta(description="runs that passed or failed")]
    passed: Count
    rate: Share | None
    interval: Annotated[tuple[Share, Share] | None, Meta(description="of the rate, 95 %; null: fewer than five runs")]
    errors: Count
    needs_review: Count
    sure: Annotated[bool, Meta(description="whether n is large enough: the interval lies on one side of the gate")]
    needed: Annotated[
        Count | None,
        Meta(description="runs that would decide it at this rate; null: it is decided, or no number of runs would"),
    ]


class RunDocument(Document, frozen=True, kw_only=True):
    """One run: what it was, how it ended, what each criterion and people said, what the agent did."""

    run: str
    suite: str
    test: str
    test_name: str
    variation: str
    row: Count
    row_key: RowKey
    repetition: Count
    agent: str
    tags: tuple[str, ...]
    outcome: Status
    score: Share | None
    why: str
    warnings: Count
    checks_not_made: Count
    started: Time | None
    duration_ms: float | None
    attempts: Count
    criteria: tuple[CriterionDocument, ...]
    labels: Annotated[
        tuple[LabelDocument, ...], Meta(description="what people said of the run and its criteria, oldest first")
    ]
    feedback: Annotated[tuple[FeedbackDocument, ...], Meta(description="scores by key that it was given, oldest first")]
    final_output: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    user_usage: _UserUsage = UNSET
    timing: Timing
    finish_reason: str
    error: RunError | None
    fork_of: Annotated[ForkedFrom | UnsetType, Meta(description="of a fork: the run that it continues")] = UNSET


class ShownRun(RunDocument, frozen=True, kw_only=True):
    """`agenteval show RUN`: a run with its transcript."""

    version: Literal[1] = 1
    transcript: StoredTranscript


class ServiceDocument(ServiceState, frozen=True, forbid_unknown_fields=True, omit_defaults=False):
    """A service of an execution, with all its fields."""


class ExecutionResults(Document, frozen=True, kw_only=True):
    """`agenteval show EXECUTION`, and what `agenteval run --json` writes: an execution with all its runs."""

    version: Literal[1] = 1
    execution: str
    title: str
    name: Annotated[str, Meta(description="what a person called it; empty: it has no name")]
    note: str
    meta: Annotated[dict[str, str], Meta(description="metadata that it was started with, or was given later")]
    commits: Annotated[
        tuple[Commit, ...], Meta(description="of the repositories of its suites and agents, when it started")
    ]
    kind: Annotated[str, one_of("run", "import", "fork")]
    suite: str
    status: ExecutionStatus
    message: str
    notes: Annotated[
        tuple[str, ...],
        Meta(description="of an import: what was left out of its file, and what else is to be known"),
    ]
    started: Time
    finished: Time | None
    startup_ms: Annotated[
        float | None,
        Meta(description="how long interpreters and imports took that its runs had in common: in no run's duration"),
    ]
    summary: ExecutionSummary
    baseline: Annotated[
        AgainstBaseline | UnsetType,
        Meta(description="against the baseline of its tests; absent if they have none"),
    ] = UNSET
    quarantine: Annotated[tuple[NotGating, ...] | UnsetType, Meta(description="what did not gate")] = UNSET
    services: Annotated[tuple[ServiceDocument, ...] | UnsetType, Meta(description="its services")] = UNSET
    hooks: Annotated[tuple[HookRun, ...] | UnsetType, Meta(description="the hooks before_all and after_all")] = UNSET
    gates: Annotated[
        tuple[GateDocument, ...] | UnsetType,
        Meta(description="of the tests that have a gate and are not in quarantine; of the others every run must pass"),
    ] = UNSET
    runs: Annotated[tuple[RunDocument, ...], Meta(description="in the order of the plan")]
    causes: Annotated[
        tuple[FailureCause, ...], Meta(description="of the failures, worst first; those that are gone last")
    ]


def execution_document(store: Store, execution: ExecutionRow) -> ExecutionResults:
    """The execution with all its runs in the order of the plan. Times are ISO 8601 in UTC."""
    rows = store.runs_of_execution(execution.id)
    against = compare_to_baseline(store, execution)
    held = gating_now(store, rows)
    gates = gates_now(store, execution, rows, held)
    causes, decided = causes_of_execution(store, execution.id)
    labels = by_run(store.labels([row.id for row in rows]))
    feedback = by_run(store.feedback([row.id for row in rows]))
    record = decoded(store.around_of(execution.id))
    return extended(
        ExecutionResults,
        execution,
        execution=execution.id,
        meta=dict(execution.meta),
        suite=execution.suites,
        notes=tuple(execution.notes),
        started=iso(execution.started_ms),
        finished=iso(execution.finished_ms),
        startup_ms=None if execution.startup_ms is None else round(execution.startup_ms, 1),
        summary=_summary(execution, rows),
        baseline=UNSET if against is None else against_document(against),
        quarantine=tuple(map(_not_gating, held.left_out)) or UNSET,
        services=tuple(extended(ServiceDocument, service) for service in record.services) or UNSET,
        hooks=record.hooks or UNSET,
        gates=tuple(map(gate_document, gates.verdicts)) or UNSET,
        runs=tuple(
            _run(
                row,
                store.results(row.id),
                store.transcript(row.id),
                labels.get(row.id, ()),
                feedback.get(row.id, ()),
            )
            for row in rows
        ),
        causes=tuple(failure_cause(group, decided.get(group.cause.signature)) for group in causes.groups),
    )


def run_document(
    row: RunRow,
    results: Sequence[CriterionResult],
    transcript: Transcript,
    labels: Sequence[Label],
    feedback: Sequence[Feedback],
) -> ShownRun:
    """A run with its transcript."""
    run = _run(row, results, transcript, labels, feedback)
    return extended(ShownRun, run, transcript=stored_transcript(transcript))


def _not_gating(effect: QuarantineEffect) -> NotGating:
    """A quarantine with what it kept from gating."""
    quarantine = effect.quarantine
    return extended(
        NotGating,
        effect,
        quarantine,
        suite=quarantine.suite_name,
        test=quarantine.test_id,
        criterion=quarantine.criterion or None,
        until=quarantine.until_ms,
    )


def gate_document(verdict: GateVerdict) -> GateDocument:
    """The verdict on a gate."""
    return extended(
        GateDocument,
        verdict,
        suite=verdict.suite_name,
        test=verdict.test_id,
        pass_rate=verdict.gate.pass_rate,
        origin=verdict.gate.origin,
        interval=verdict.shown_interval,
        needs_review=verdict.waiting,
    )


def _summary(execution: ExecutionRow, rows: Sequence[RunRow]) -> ExecutionSummary:
    """How many tests and runs there are, and how they ended."""
    tests = len({(row.suite_key, row.test_id) for row in rows})
    return extended(ExecutionSummary, execution, tests=tests)


def _run(
    row: RunRow,
    results: Sequence[CriterionResult],
    transcript: Transcript,
    labels: Sequence[Label],
    feedback: Sequence[Feedback],
) -> RunDocument:
    return extended(
        RunDocument,
        row,
        run=row.id,
        suite=row.suite_name,
        test=row.test_id,
        outcome=row.status,
        started=iso(row.started_ms),
        criteria=tuple(map(result_document, results)),
        labels=tuple(map(label_document, labels)),
        feedback=tuple(map(feedback_document, feedback)),
        final_output=transcript.final_output,
        tool_calls=transcript.tool_calls,
        usage=transcript.usage,
        # Left out, and not zero: hardly any run has a simulated user.
        user_usage=UNSET if transcript.user_usage == Usage() else transcript.user_usage,
        timing=transcript.timing,
        finish_reason=transcript.finish_reason,
        error=transcript.error,
        fork_of=forked_from(row),
    )
