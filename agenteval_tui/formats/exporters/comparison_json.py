"""A comparison as JSON: what `agenteval compare --json` prints, and what results say of their baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from agenteval_tui.analysis.attribution import Attributed, Attribution
from agenteval_tui.analysis.comparison_model import (
    Comparison,
    CriterionChange,
    MetricChange,
    Overall,
    RowChange,
    Side,
    SummaryMetric,
    Tally,
    TestChange,
    TestKey,
)
from agenteval_tui.formats.timestamps import iso
from agenteval_tui.views.comparison import counts_text, notes, overall_text

if TYPE_CHECKING:
    from agenteval_tui.analysis.regression_gate import BaselineResult

VERSION = 1


def comparison_document(
    found: Comparison,
    attributed: Mapping[TestKey, Attributed | None] | None = None,
    metrics: Mapping[TestKey, Mapping[str, tuple[MetricChange, ...]]] | None = None,
) -> dict[str, Any]:
    """Everything of a comparison. `attribution` is null where nothing flipped, and for what was not looked at."""
    return {
        "version": VERSION,
        "a": _side(found.a),
        "b": _side(found.b),
        "overall": _overall(found.overall),
        "counts": dict(found.counts()),
        "said": counts_text(found),
        "notes": notes(found),
        "paired_suites": [
            {"was": one.was, "now": one.now, "by": one.by, "asked_alike": one.asked_alike} for one in found.paired
        ],
        "tests": [_test(one, (attributed or {}).get(one.key), (metrics or {}).get(one.key, {})) for one in found.tests],
    }


def against_document(found: BaselineResult) -> dict[str, Any]:
    """What an execution says against its baseline: the figures, and the tests that changed."""
    changed = [one for one in found.shown.tests if one.state in ("worse", "better", "mixed", "score", "undecided")]
    return {
        "executions": list(found.shown.a.executions),
        "started": iso(found.shown.a.started_ms),
        "overall": _overall(found.gating.overall),
        "counts": dict(found.shown.counts()),
        "regressed": [one.label for one in found.regressed],
        "not_comparable": [one.label for one in found.shown.not_comparable],
        "within_chance": [one.label for one in found.by_chance],
        "quarantined": [one.label for one in found.shown.in_state("worse") if one.quarantine],
        "without_baseline": found.without_baseline,
        "changes": [
            {
                "test": one.test,
                "variation": one.variation,
                "state": one.state,
                "was": _tally(one.was),
                "now": _tally(one.now),
                "p_value": one.p_value,
                "rows": [_row(row) for row in one.rows if row.state in ("worse", "better")],
            }
            for one in changed
        ],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "kind": side.kind,
        "name": side.name,
        "reference": side.reference,
        "executions": list(side.executions),
        "runs": len(side.runs),
        "started": iso(side.started_ms or None),
    }


def _overall(one: Overall) -> dict[str, Any]:
    return {
        "pass_rate": _measure(one.rate),
        "test": one.test,
        "n": one.n,
        "p_value": one.p_value,
        "detectable_drop": one.detectable,
        "pairs": to_builtins(one.pairs),
        "left_out": one.left_out,
        "score": _measure(one.score),
        "latency_ms": _measure(one.latency_ms),
        "tokens": _measure(one.tokens),
        "cost": _measure(one.cost),
        "said": overall_text(one),
    }


def _measure(one: SummaryMetric | None) -> dict[str, Any] | None:
    made: dict[str, Any] | None = None if one is None else to_builtins(one)
    return made


def _test(
    one: TestChange, attributed: Attributed | None, metrics: Mapping[str, tuple[MetricChange, ...]]
) -> dict[str, Any]:
    by_criterion = attributed.by_criterion if attributed is not None else {}
    return {
        "suite": one.suite,
        "test": one.test,
        "name": one.name,
        "variation": one.variation,
        "state": one.state,
        "comparable": one.comparable,
        "cases": one.cases,
        "was": _tally(one.was),
        "now": _tally(one.now),
        "difference": one.difference,
        "score_difference": one.score,
        "p_value": one.p_value,
        "quarantine": one.quarantine,
        "rows": [_row(row) for row in one.rows],
        "runs": list(one.pair) if one.pair is not None else None,
        "attribution": _attributed(attributed),
        "criteria": [
            _criterion(each, by_criterion.get(each.name), metrics.get(each.name, ())) for each in one.criteria
        ],
    }


def _row(row: RowChange) -> dict[str, Any]:
    return {
        "row": row.label,
        "row_key": row.key,
        "state": row.state,
        "was": _tally(row.was),
        "now": _tally(row.now),
        "place_was": row.place_was,
        "place_now": row.place_now,
        "moved": row.moved,
        "content_changed": list(row.content),
        "runs": list(row.pair) if row.pair is not None else None,
    }


def _tally(one: Tally | None) -> dict[str, Any] | None:
    return None if one is None else to_builtins(one)


def _criterion(
    one: CriterionChange, attribution: Attribution | None, metrics: tuple[MetricChange, ...]
) -> dict[str, Any]:
    return {
        "criterion": one.name,
        "was_name": one.was_name,
        "comparable": one.comparable,
        "state": one.state,
        "was": _tally(one.was),
        "now": _tally(one.now),
        "versions_was": list(one.versions_was),
        "versions_now": list(one.versions_now),
        "attribution": None if attribution is None else to_builtins(attribution),
        "metrics": [
            {"name": each.name, "type": each.type, "was": _tally(each.was), "now": _tally(each.now)} for each in metrics
        ],
    }


def _attributed(one: Attributed | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {
        "who": one.who,
        "reason": one.reason,
        "divergence": one.divergence,
        "flips": [
            {"before": flip.before, "after": flip.after, "who": flip.test.who, "divergence": flip.divergence}
            for flip in one.flips
        ],
    }
