"""What reports say of quarantine: which runs of an execution do not gate, and why.

It is what holds when the report is written, as everywhere else: a test that is put in quarantine after its run is in
quarantine in the report that is written then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from agenteval_tui.analysis.quarantine_gate import gating
from agenteval_tui.history import quarantines

if TYPE_CHECKING:
    from agenteval_tui.analysis.quarantine_gate import LeftOut
    from agenteval_tui.history.quarantines import Quarantine
    from agenteval_tui.history.records import RunRow
    from agenteval_tui.history.store import Store

_MOST = 10


class QuarantineSection(Struct, frozen=True):
    """Of some runs: those that a quarantine touches, and what is left.

    `excused`: the ids of runs that did not pass and do not gate. `whys`: why a run did not pass where it still gates,
    without what its quarantined criteria say. `pass_rate`: of the runs that gate; None when none is decided.
    """

    left_out: tuple[LeftOut, ...] = ()
    excused: frozenset[str] = frozenset()
    whys: dict[str, str] = field(default_factory=dict)
    pass_rate: float | None = None
    held: dict[tuple[str, str], tuple[Quarantine, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.left_out)

    def of_run(self, run: RunRow) -> str:
        """What holds for its test; "" where all of it gates."""
        return self.of_test(run.suite_key, run.test_id)

    def of_test(self, suite_key: str, test_id: str) -> str:
        """`in quarantine until 2026-12-06`, or `Names both ways in quarantine until …`; "" where all of it gates."""
        return "; ".join(describe_quarantine(one) for one in self.held.get((suite_key, test_id), ()))

    @property
    def said(self) -> str:
        """`In quarantine, and not gating: …`, a sentence; "" for nothing."""
        if not self.left_out:
            return ""
        parts = []
        for excluded in sorted(self.left_out, key=lambda one: (-one.not_passed, one.quarantine.key))[:_MOST]:
            held = excluded.quarantine
            name = f"{held.test_id} / {held.criterion}" if held.criterion else held.test_id
            many = f"{excluded.not_passed} of {excluded.runs} run{'' if excluded.runs == 1 else 's'} did not pass"
            parts.append(f"{name} until {held.last_day} ({many})")
        more = len(self.left_out) - len(parts)
        return f"In quarantine, and not gating: {', '.join(parts)}{f' and {more} more' if more else ''}."

    def to_json(self) -> list[dict[str, Any]]:
        """Each quarantine with what it left out, as JSON data."""
        return [
            {
                "suite": excluded.quarantine.suite_name,
                "test": excluded.quarantine.test_id,
                "criterion": excluded.quarantine.criterion or None,
                "until": excluded.quarantine.until_ms,
                "reason": excluded.quarantine.reason,
                "runs": excluded.runs,
                "not_passed": excluded.not_passed,
            }
            for excluded in self.left_out
        ]


def not_gating(store: Store, runs: Sequence[RunRow]) -> QuarantineSection:
    """What is in quarantine now, of these runs. Reads results only where a criterion is."""
    active = quarantines.active(store)
    tests = {(run.suite_key, run.test_id) for run in runs}
    held: dict[tuple[str, str], list[Quarantine]] = {}
    for one in active:
        if one.key[:2] in tests:
            held.setdefault(one.key[:2], []).append(one)
    if not held:
        return QuarantineSection()

    found = gating(store, runs, active)
    left = {run.id: run for run in found.runs}
    excused, whys = set(), {}
    for run in runs:
        if run.status in ("passed", "skipped", "cancelled"):
            continue
        now = left.get(run.id)
        if now is None or now.status == "passed":
            excused.add(run.id)
        elif now.why != run.why:
            whys[run.id] = now.why
    # The whole test goes first: it says all that its criteria could.
    whole = {key: [one for one in listed if not one.criterion] or listed for key, listed in held.items()}
    by_test = {key: tuple(listed) for key, listed in whole.items()}
    return QuarantineSection(found.left_out, frozenset(excused), whys, found.pass_rate, by_test)


def describe_quarantine(quarantine: Quarantine) -> str:
    """`in quarantine until 2026-12-06 (flaky: 3 of 5 passed)`, with the criterion where it is only that one."""
    what = f"{quarantine.criterion} " if quarantine.criterion else ""
    return f"{what}in quarantine until {quarantine.last_day}" + (f" ({quarantine.reason})" if quarantine.reason else "")
