"""Causes of failures as JSON data: what `agenteval causes --json` prints, and what reports hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from agenteval_tui.analysis.causes import CauseGroup, Causes, Trend
from agenteval_tui.analysis.triage import TriageStatus
from agenteval_tui.core.document import Count, Document, Share, Time, extended, one_of
from agenteval_tui.core.numbers import iso
from agenteval_tui.grading.causes import Cause, cause_from
from agenteval_tui.history.triage import DECISIONS, Decision

EXAMPLES = 10
_DecisionName = Annotated[str, one_of(*DECISIONS)]
_Until = Annotated[Time | None, Meta(description="it is open again from then on")]
_Id = Annotated[str, Meta(description="the short name; `agenteval triage` takes it, or its first digits")]
_Signature = Annotated[str, Meta(description="the same wherever the same thing is wrong in the same way")]
_OpenAgain = Annotated[str, Meta(description="why it no longer holds")]


class TriageDecision(Document, frozen=True, kw_only=True):
    """What was decided about a cause."""

    decision: _DecisionName
    note: str
    who: str
    at: Time | None
    until: _Until
    holds: bool
    open_again: _OpenAgain


class CauseTest(Document, frozen=True, kw_only=True):
    """A test whose runs failed for the cause."""

    suite: str
    test: str


class FailureCause(Cause, frozen=True, kw_only=True):
    """One cause with its runs and what was decided about it."""

    id: _Id
    signature: _Signature
    title: str
    runs: Count
    share: Annotated[Share, Meta(description="of the failed runs")]
    of_runs: Annotated[Count, Meta(description="runs of its tests, passed or not")]
    tests: tuple[CauseTest, ...]
    trend: Annotated[str, one_of(*get_args(Trend)), Meta(description="against what it is compared with")]
    before: Annotated[Count, Meta(description="runs that had it there")]
    since: Annotated[Time | None, Meta(description="when the first run that has it started")]
    since_run: str
    newest: Time | None
    examples: Annotated[
        tuple[str, ...], Meta(description="RUN/NUMBER, for `agenteval why`; RUN where the agent failed")
    ]
    decision: TriageDecision | None


class FailureCauses(Document, frozen=True, kw_only=True):
    """`agenteval causes`."""

    version: Literal[1] = 1
    scope: str
    compared_with: str
    execution: str
    runs: Count
    failed: Count
    causes: Annotated[tuple[FailureCause, ...], Meta(description="worst first; those that are gone last")]


class DecidedCause(Cause, frozen=True, kw_only=True):
    """A decision in `agenteval triage`, with its cause."""

    id: _Id
    signature: _Signature
    title: str
    decision: _DecisionName
    note: str
    who: str
    at: Time | None
    until: _Until
    holds: bool
    open_again: _OpenAgain
    done: Annotated[str, Meta(description="what deciding did")] | UnsetType = UNSET


class Triage(Document, frozen=True, kw_only=True):
    """`agenteval triage`."""

    version: Literal[1] = 1
    decisions: tuple[DecidedCause, ...]


def causes_document(causes: Causes, decided: Mapping[str, TriageStatus]) -> FailureCauses:
    """The causes of a scope, each with its runs and what was decided about it."""
    scope = causes.scope
    return FailureCauses(
        scope=scope.words,
        compared_with=scope.before_words,
        execution=scope.execution_id,
        runs=causes.ended,
        failed=causes.failed,
        causes=tuple(failure_cause(group, decided.get(group.cause.signature)) for group in causes.groups),
    )


def failure_cause(group: CauseGroup, status: TriageStatus | None) -> FailureCause:
    """One cause with its runs; `status` is what was decided about it."""
    return extended(
        FailureCause,
        group.cause,
        title=group.title,
        runs=group.count,
        share=group.share,
        of_runs=group.ended,
        tests=tuple(CauseTest(suite=key, test=test) for key, test in group.tests),
        trend=group.trend,
        before=group.before,
        since=iso(group.since_ms),
        since_run=group.since_run,
        newest=iso(group.newest_ms),
        examples=tuple(group.address(number) for number in range(min(len(group.runs), EXAMPLES))),
        decision=None if status is None else _decision(status.decision, status.open_again),
    )


def decided_cause(decision: Decision, title: str, open_again: str = "", done: str | UnsetType = UNSET) -> DecidedCause:
    """A decision with its cause. `open_again`: why it no longer holds; `done`: what deciding did."""
    cause = cause_from(decision.signature)
    return extended(DecidedCause, cause, _decision(decision, open_again), title=title, done=done)


def _decision(decision: Decision, open_again: str) -> TriageDecision:
    return extended(
        TriageDecision,
        decision,
        at=iso(decision.at_ms),
        until=iso(decision.until_ms),
        holds=not open_again,
        open_again=open_again,
    )


def properties_of(causes: Sequence[Cause], decided: Mapping[str, TriageStatus]) -> list[tuple[str, str]]:
    """(name, value) pairs for a test case of a report: each cause with its short name, and what was decided."""
    properties: list[tuple[str, str]] = []
    for cause in causes:
        properties.append(("cause", f"{cause.id} {cause.title}"))
        standing = decided.get(cause.signature)
        if standing is not None:
            note = f" ({standing.decision.note})" if standing.decision.note else ""
            properties.append(("triage", f"{cause.id} {standing.description}{note}"))
    return properties
