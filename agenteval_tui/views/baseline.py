"""What is shown of an execution against its baseline: what changed, what regressed, and the gates."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.analysis.comparison_model import TestChange
from agenteval_tui.analysis.regression_gate import BaselineResult, GateOptions
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.views.comparison import (
    counts_text,
    not_comparable_text,
    power_text,
    rate_text,
    regression_text,
    share,
    short_power_text,
    significance_text,
)
from agenteval_tui.views.model import Paragraph, Span, View, paragraphs, text

_MOST = 10


def against_view(result: BaselineResult) -> View:
    """What changed since the baseline: counts, the tests that regressed, the pass rate with interval and test."""
    # What to do next is given where there is something to look at, as for causes.
    changed = result.shown.in_state("worse", "better", "mixed", "score")
    look = f"  (agenteval compare baseline {short_id(result.shown.b.reference)})" if changed else ""
    since = f" of {numbers.moment(result.shown.a.started_ms)}: "
    quarantined = [change for change in result.shown.in_state("worse") if change.quarantine]
    more = len(result.regressed) - _MOST
    notes = [
        text((f"✗ and {numbers.count(more, 'regression')} more" if more > 0 else "", "bad")),
        *_fallen(("~ fell, within chance: ", "warn"), result.by_chance),
        *_fallen(("~ fell, in quarantine: ", "warn"), quarantined),
    ]
    if other := not_comparable_text(result.shown.not_comparable):
        notes.append(text((f"~ {one_line(other, 400)}", "warn")))
    whole = result.gating.overall
    if whole.rate is not None:
        held = ("without quarantine",) if any(test.quarantine for test in result.shown.tests) else ()
        certainty = "; ".join(part for part in (*held, significance_text(whole), short_power_text(whole)) if part)
        notes.append(text(f"pass rate {rate_text(whole)}", (f"  {certainty}", "dim")))
    if result.undecided:
        notes.append(text((f"{numbers.count(result.undecided, 'test')} ended in errors and can't be compared", "warn")))
    if result.without_baseline:
        notes.append(text((f"{numbers.count(result.without_baseline, 'test')} without a baseline", "dim")))
    return (
        Paragraph(text("against the baseline", (since, "dim"), counts_text(result.shown), (look, "dim"))),
        *paragraphs(_fallen(("✗ regressed: ", "bad"), result.regressed)),
        *paragraphs(notes),
    )


def _fallen(sign: Span, tests: Sequence[TestChange]) -> list[tuple[Span, ...]]:
    return [text(sign, one_line(regression_text(test), 200)) for test in tests[:_MOST]]


def gate_view(result: BaselineResult, gates: GateOptions) -> View:
    """Whether the gates are reached, and how far that can be relied on."""
    missed = [text(("gate not reached: ", "bad"), one_line(gate, 600)) for gate in missed_gates(result, gates)]
    return (
        *paragraphs(missed or [text(("gates reached", "good"))]),
        *paragraphs([text((gate_certainty(result, gates), "dim"))], indent=2),
    )


def missed_gates(result: BaselineResult, gates: GateOptions) -> list[str]:
    """The gates that are not reached, a sentence each."""
    missed = []
    if gates.no_regressions and result.regressed:
        many = f"{len(result.regressed)} tests regressed" if len(result.regressed) > 1 else "a test regressed"
        missed.append(f"--no-regressions: {many} ({', '.join(map(regression_text, result.regressed[:5]))})")
    if gates.max_drop is not None and result.drop > gates.max_drop + 1e-12:
        rate = result.gating.overall.rate
        assert rate is not None
        fell = f"from {share(rate.was)} to {share(rate.now)} ({numbers.points(-result.drop)} points)"
        missed.append(f"--max-drop {share(gates.max_drop)}: the pass rate fell {fell}")
    return missed


def gate_certainty(result: BaselineResult, gates: GateOptions) -> str:
    """How far the gates can be relied on: the test, n, and the smallest drop that n could have shown."""
    overall = result.gating.overall
    parts = [part for part in (significance_text(overall), power_text(overall)) if part]
    limit = gates.max_drop
    if limit is not None and overall.rate is not None and (overall.detectable is None or overall.detectable > limit):
        parts.append(f"this sample is too small to detect a drop of {share(limit)}")
    return "; ".join(parts)
