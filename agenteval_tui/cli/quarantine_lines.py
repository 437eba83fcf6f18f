"""What the command line says of quarantines: what did not gate, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agenteval_tui.cli.output import Output, plural
from agenteval_tui.core.display import one_line
from agenteval_tui.history import quarantines

if TYPE_CHECKING:
    from agenteval_tui.analysis.quarantine_gate import Gating, LeftOut
    from agenteval_tui.history.quarantines import Quarantine
    from agenteval_tui.history.records import RunRow
    from agenteval_tui.history.store import Store

_MOST = 10


def gating_of(store: Store, runs: Sequence[RunRow]) -> Gating | None:
    """The runs that gate; None when no test of them is in quarantine."""
    held = quarantines.active(store)
    tests = {(run.suite_key, run.test_id) for run in runs}
    if not any((one.suite_key, one.test_id) in tests for one in held):
        return None
    from agenteval_tui.analysis.quarantine_gate import gating

    return gating(store, runs, held)


def print_left_out(out: Output, left_out: Sequence[LeftOut]) -> None:
    """A line for each quarantine that kept something from gating, those that mattered first."""
    ordered = sorted(left_out, key=lambda one: (-one.not_passed, one.quarantine.key))
    for one in ordered[:_MOST]:
        said = (
            f"{one.not_passed} of {plural(one.runs, 'run')} did not pass" if one.not_passed else plural(one.runs, "run")
        )
        reason = f": {one_line(one.quarantine.reason, 60)}" if one.quarantine.reason else ""
        out.line(
            ("~ in quarantine, does not gate: ", "warn"),
            f"{name_of(one.quarantine)} ({said})",
            (f"  until {day_of(one.quarantine.until_ms)}{reason}", "dim"),
        )
    if len(ordered) > _MOST:
        out.line((f"~ and {len(ordered) - _MOST} more in quarantine", "warn"))


def name_of(quarantine: Quarantine) -> str:
    """The test, and the criterion where it is only that one."""
    test = one_line(quarantine.test_id, 60)
    return f"{test} / {one_line(quarantine.criterion, 60)}" if quarantine.criterion else test


def day_of(at_ms: int) -> str:
    """The last day on which it holds, as people say it: one that ends at midnight ends on the day before."""
    from datetime import datetime

    return datetime.fromtimestamp((at_ms - 1) / 1000).strftime("%Y-%m-%d")
