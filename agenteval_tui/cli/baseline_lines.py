"""The last lines of a run that say how it did against its baseline."""

from __future__ import annotations

from agenteval_tui.analysis.attribution import attribute
from agenteval_tui.analysis.regression_gate import BaselineResult, GateOptions
from agenteval_tui.cli.output import Output
from agenteval_tui.core.numbers import count
from agenteval_tui.history.baselines import set_baseline
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.history.store import Store
from agenteval_tui.views.baseline import gate_lines, missed_gates
from agenteval_tui.views.comparison import comparison_lines

_ATTRIBUTED = 100


def print_whole(out: Output, store: Store, found: BaselineResult | None) -> None:
    """The whole comparison, with who changed what."""
    if found is None:
        out.line("no test of this execution has a baseline; agenteval baseline set EXECUTION sets one")
        return
    flipped = [one for one in found.shown.tests if one.pairs][:_ATTRIBUTED]
    out.line()
    out.view(comparison_lines(found.shown, {one.key: attribute(store, one.pairs) for one in flipped}))


def print_gates(out: Output, found: BaselineResult | None, gates: GateOptions) -> bool:
    """Whether the gates are reached, in words; gives the answer. Without a baseline there is nothing to miss."""
    if found is None:
        out.line(("gates: ", "bold"), "there is no baseline yet, nothing to measure against")
        return True
    out.view(gate_lines(found, gates))
    return not missed_gates(found, gates)


def set_it(out: Output, store: Store, execution: ExecutionRow, *, success: bool) -> None:
    """Make a successful execution the baseline of its tests, and say so."""
    if not success:
        out.line(("the baseline stays as it is: ", "warn"), "it is set after a success only")
        return
    made = set_baseline(store, execution.id, who=current_user())
    out.line(("baseline set ", "good"), f"for {count(len(made.tests), 'test')}: execution {execution.id[:10]}")
    if made.left_out:
        out.line((f"{count(len(made.left_out), 'test')} had only errors and kept what they had", "warn"))
