"""Causes of failures as JSON data: what `agenteval causes --json` prints, and what reports hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval_tui.analysis.causes import CauseGroup, Causes
from agenteval_tui.analysis.triage import TriageStatus
from agenteval_tui.formats.timestamps import iso
from agenteval_tui.grading.causes import Cause
from agenteval_tui.history.triage import Decision

EXAMPLES = 10


def causes_document(causes: Causes, decided: Mapping[str, TriageStatus]) -> dict[str, Any]:
    """`{"version", "scope", "failed", "causes": [...]}`."""
    scope = causes.scope
    return {
        "version": 1,
        "scope": scope.words,
        "compared_with": scope.before_words,
        "execution": scope.execution_id,
        "runs": causes.ended,
        "failed": causes.failed,
        "causes": [group_data(group, decided.get(group.cause.signature)) for group in causes.groups],
    }


def group_data(group: CauseGroup, standing: TriageStatus | None) -> dict[str, Any]:
    """One cause with its runs and what was decided about it."""
    return {
        **cause_data(group.cause),
        "title": group.title,
        "runs": group.count,
        "share": group.share,
        "of_runs": group.ended,
        "tests": [{"suite": key, "test": test} for key, test in group.tests],
        "trend": group.trend,
        "before": group.before,
        "since": iso(group.since_ms),
        "since_run": group.since_run,
        "newest": iso(group.newest_ms),
        "examples": [group.address(number) for number in range(min(len(group.runs), EXAMPLES))],
        "decision": None if standing is None else decision_data(standing.decision, standing.open_again),
    }


def cause_data(cause: Cause) -> dict[str, Any]:
    """A cause by itself: its short name, its signature and the parts of that."""
    return {
        "id": cause.id,
        "signature": cause.signature,
        "kind": cause.kind,
        "criterion": cause.criterion,
        "prototype": cause.prototype,
        "metric": cause.metric,
        "condition": cause.condition,
        "about": cause.about,
        "way": cause.way,
    }


def decision_data(decision: Decision, open_again: str = "") -> dict[str, Any]:
    """A decision; `open_again`: why it no longer holds."""
    return {
        "decision": decision.decision,
        "note": decision.note,
        "who": decision.who,
        "at": iso(decision.at_ms),
        "until": iso(decision.until_ms),
        "holds": not open_again,
        "open_again": open_again,
    }


def properties_of(causes: Sequence[Cause], decided: Mapping[str, TriageStatus]) -> list[tuple[str, str]]:
    """(name, value) pairs for a test case of a report: each cause with its short name, and what was decided."""
    found: list[tuple[str, str]] = []
    for cause in causes:
        found.append(("cause", f"{cause.id} {cause.title}"))
        standing = decided.get(cause.signature)
        if standing is not None:
            note = f" ({standing.decision.note})" if standing.decision.note else ""
            found.append(("triage", f"{cause.id} {standing.said}{note}"))
    return found
