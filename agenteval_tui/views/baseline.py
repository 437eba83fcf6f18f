"""What is shown of an execution against its baseline: what changed, what regressed, and the gates."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.analysis.comparison_model import TestChange
from agenteval_tui.analysis.regression_gate import BaselineResult, GateOptions
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
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


def against_lines(found: BaselineResult) -> View:
    """What changed since the baseline: counts, the tests that regressed, the pass rate with interval and test."""
    # What to do next stands where there is something to look at, as for causes.
    changed = found.shown.in_state("worse", "better", "mixed", "score")
    look = f"  (agenteval compare baseline {found.shown.b.reference[:10]})" if changed else ""
    since = f" of {numbers.moment(found.shown.a.started_ms)}: "
    quarantined = [one for one in found.shown.in_state("worse") if one.quarantine]
    more = len(found.regressed) - _MOST
    notes = [
        text((f"✗ and {numbers.count(more, 'regression')} more" if more > 0 else "", "bad")),
        *_fallen(("~ fell, within chance: ", "warn"), found.by_chance),
        *_fallen(("~ fell, in quarantine: ", "warn"), quarantined),
    ]
    if other := not_comparable_text(found.shown.not_comparable):
        notes.append(text((f"~ {one_line(other, 400)}", "warn")))
    whole = found.gating.overall
    if whole.rate is not None:
        held = ("without quarantine",) if any(one.quarantine for one in found.shown.tests) else ()
        certainty = "; ".join(part for part in (*held, significance_text(whole), short_power_text(whole)) if part)
        notes.append(text(f"pass rate {rate_text(whole)}", (f"  {certainty}", "dim")))
    if found.undecided:
        notes.append(text((f"{numbers.count(found.undecided, 'test')} ended in errors and can't be compared", "warn")))
    if found.without_baseline:
        notes.append(text((f"{numbers.count(found.without_baseline, 'test')} without a baseline", "dim")))
    return (
        Paragraph(text("against the baseline", (since, "dim"), counts_text(found.shown), (look, "dim"))),
        *paragraphs(_fallen(("✗ regressed: ", "bad"), found.regressed)),
        *paragraphs(notes),
    )


def _fallen(sign: Span, tests: Sequence[TestChange]) -> list[tuple[Span, ...]]:
    return [text(sign, one_line(regression_text(one), 200)) for one in tests[:_MOST]]


def gate_lines(found: BaselineResult, gates: GateOptions) -> View:
    """Whether the gates are reached, and how far that can be relied on."""
    missed = [text(("gate not reached: ", "bad"), one_line(gate, 600)) for gate in missed_gates(found, gates)]
    return (
        *paragraphs(missed or [text(("gates reached", "good"))]),
        *paragraphs([text((gate_certainty(found, gates), "dim"))], indent=2),
    )


def missed_gates(found: BaselineResult, gates: GateOptions) -> list[str]:
    """The gates that are not reached, a sentence each."""
    missed = []
    if gates.no_regressions and found.regressed:
        many = f"{len(found.regressed)} tests regressed" if len(found.regressed) > 1 else "a test regressed"
        missed.append(f"--no-regressions: {many} ({', '.join(map(regression_text, found.regressed[:5]))})")
    if gates.max_drop is not None and found.drop > gates.max_drop + 1e-12:
        rate = found.gating.overall.rate
        assert rate is not None
        fell = f"from {share(rate.was)} to {share(rate.now)} ({numbers.points(-found.drop)} points)"
        missed.append(f"--max-drop {share(gates.max_drop)}: the pass rate fell {fell}")
    return missed


def gate_certainty(found: BaselineResult, gates: GateOptions) -> str:
    """How far the gates can be relied on: the test, n, and the smallest drop that n could have shown."""
    one = found.gating.overall
    parts = [part for part in (significance_text(one), power_text(one)) if part]
    limit = gates.max_drop
    if limit is not None and one.rate is not None and (one.detectable is None or one.detectable > limit):
        parts.append(f"a drop of {share(limit)} would not have shown")
    return "; ".join(parts)
