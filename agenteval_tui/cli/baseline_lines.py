"""An execution against its baseline, as the last lines of a run: what regressed, how sure that is, the gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval_tui.analysis.comparison_text import (
    said_of_counts,
    said_of_criteria,
    said_of_rate,
    said_of_test,
    short_power,
)
from agenteval_tui.analysis.regression_gate import said_of_regression
from agenteval_tui.cli.output import Output, moment, plural
from agenteval_tui.core.display import one_line
from agenteval_tui.history.baselines import set_baseline

if TYPE_CHECKING:
    from agenteval_tui.analysis.comparison_model import TestChange
    from agenteval_tui.analysis.regression_gate import BaselineResult, GateOptions
    from agenteval_tui.history.records import ExecutionRow
    from agenteval_tui.history.store import Store

_MOST = 10
_ATTRIBUTED = 100


def print_against(out: Output, found: BaselineResult) -> None:
    """What changed since the baseline: counts, the tests that regressed, the pass rate with interval and test."""

    since = moment(found.shown.a.started_ms)
    # What to do next stands where there is something to look at, as for causes.
    changed = found.shown.in_state("worse", "better", "mixed", "score")
    look = f"  (agenteval compare baseline {found.shown.b.reference[:10]})" if changed else ""
    out.line("against the baseline", (f" of {since}: ", "dim"), said_of_counts(found.shown), (look, "dim"))
    quarantined = [one for one in found.shown.in_state("worse") if one.quarantine]
    listed: list[tuple[str, TestChange]] = [("✗ regressed: ", one) for one in found.regressed]
    for said, one in listed[:_MOST]:
        out.line((said, "bad"), one_line(said_of_regression(one), 200))
    if len(listed) > _MOST:
        out.line((f"✗ and {plural(len(listed) - _MOST, 'regression')} more", "bad"))
    for one in found.by_chance[:_MOST]:
        out.line(("~ fell, within chance: ", "warn"), one_line(said_of_regression(one), 200))
    for one in quarantined[:_MOST]:
        out.line(("~ fell, in quarantine: ", "warn"), one_line(said_of_regression(one), 200))
    if said := said_of_criteria(found.shown.not_comparable):
        out.line((f"~ {one_line(said, 400)}", "warn"))
    whole = found.gating.overall
    if whole.rate is not None:
        parts = "; ".join(part for part in (said_of_test(whole), short_power(whole)) if part)
        held = any(one.quarantine for one in found.shown.tests)
        out.line(f"pass rate {said_of_rate(whole)}", (f"  {'without quarantine; ' if held else ''}{parts}", "dim"))
    if found.undecided:
        out.line((f"{plural(found.undecided, 'test')} ended in errors and can't be compared", "warn"))
    if found.without_baseline:
        out.line((f"{plural(found.without_baseline, 'test')} without a baseline", "dim"))


def print_whole(out: Output, store: Store, found: BaselineResult | None) -> None:
    """The whole comparison, with who changed what."""
    if found is None:
        out.line("no test of this execution has a baseline; agenteval baseline set EXECUTION sets one")
        return
    from agenteval_tui.analysis.attribution import attribute
    from agenteval_tui.cli.compare_lines import print_comparison

    flipped = [one for one in found.shown.tests if one.pairs][:_ATTRIBUTED]
    out.line()
    print_comparison(out, found.shown, {one.key: attribute(store, one.pairs) for one in flipped})


def print_gates(out: Output, found: BaselineResult | None, gates: GateOptions) -> bool:
    """Whether the gates are reached, in words; gives the answer. Without a baseline there is nothing to miss."""
    if found is None:
        out.line(("gates: ", "bold"), "there is no baseline yet, nothing to measure against")
        return True
    missed = found.missed(gates)
    for said in missed:
        out.line(("gate not reached: ", "bad"), one_line(said, 600))
    if not missed:
        out.line(("gates reached", "good"))
    certainty = found.certainty(gates)
    if certainty:
        out.line((f"  {certainty}", "dim"))
    return not missed


def set_it(out: Output, store: Store, execution: ExecutionRow, *, success: bool) -> None:
    """Make a successful execution the baseline of its tests, and say so."""
    if not success:
        out.line(("the baseline stays as it is: ", "warn"), "it is set after a success only")
        return
    from agenteval_tui.history.current_user import current_user

    made = set_baseline(store, execution.id, who=current_user())
    out.line(("baseline set ", "good"), f"for {plural(len(made.tests), 'test')}: execution {execution.id[:10]}")
    if made.left_out:
        out.line((f"{plural(len(made.left_out), 'test')} had only errors and kept what they had", "warn"))
