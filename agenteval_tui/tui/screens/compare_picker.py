"""What the two sides of a comparison can be: the baseline, executions, and two agents or variations of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

from agenteval_tui.analysis.comparison_sides import BASELINE, names_of
from agenteval_tui.history.records import RunFilter
from agenteval_tui.tui.presenters.number_format import count, date_time, percent
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.screens.select_dialog import Choice

if TYPE_CHECKING:
    from agenteval_tui.analysis.comparison_model import Comparison
    from agenteval_tui.analysis.comparison_sides import Sides
    from agenteval_tui.history.comparison_queries import ComparedRun
    from agenteval_tui.history.records import ExecutionRow
    from agenteval_tui.history.store import Store

EXECUTIONS = 200
_PAIRS = 12  # of agents or variations, at most
_TO = "→" if UNICODE else "->"


def choices_of(store: Store, found: Comparison | None, side: str, projects: tuple[str, ...] = ()) -> list[Choice]:
    """What can stand on a side, of these projects (none: of all).

    Of the left one also pairs of agents and variations within the right execution.
    """
    choices: list[Choice] = []
    if side == "left":
        choices.append((BASELINE, "baseline", "the runs that were set as baseline of these tests"))
        if found is not None:
            for kind, names in zip(("agent", "variation"), names_of(found.b.runs), strict=True):
                for one, other in list(_comparable(found.b.runs, kind, names))[:_PAIRS]:
                    about = f"two {kind}s of the right execution, compared with each other"
                    choices.append((f"{kind}\x1f{one}\x1f{other}", f"{one} {_TO} {other}", about))
    rows = [
        row for row in store.execution_rows(store.execution_ids(RunFilter(projects=projects))[:EXECUTIONS]) if row.ended
    ]
    if found is not None:
        # What has tests in common with the other side is what is meant; recordings of other tools come behind.
        suites = {run.suite_key for run in (found.b if side == "left" else found.a).runs}
        rows.sort(key=lambda row: not suites.intersection(row.suite_keys))
    return [*choices, *map(_execution, rows)]


def _comparable(runs: Sequence[ComparedRun], kind: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The pairs of agents (or variations) that ran a test in common, both ways round."""
    index = ("agent", "variation").index(kind)
    tests: dict[str, set[tuple[str, str]]] = {}
    for run in runs:
        tests.setdefault(names_of([run])[index][0], set()).add((run.suite_key, run.test_id))
    return ((one, other) for one, other in permutations(names, 2) if tests[one] & tests[other])


def _execution(row: ExecutionRow) -> Choice:
    decided = row.passed + row.failed
    share = f"{percent(row.passed / decided)} of runs" if decided else "nothing decided"
    name = row.title or row.suites or row.id
    return row.id, name, f"{date_time(row.started_ms)}  {count(row.runs, 'run')}  {share}  {row.agents}"


def chosen_sides(wanted: Sides, found: Comparison | None, side: str, chosen: str) -> Sides:
    """The sides with what was chosen on one of them."""
    kind, _, names = chosen.partition("\x1f")
    right = wanted.b if found is None else found.b.reference
    if names:
        pair = tuple(names.split("\x1f"))
        made = replace(wanted, a="", b=right, agents=(), variations=())
        return replace(made, agents=pair) if kind == "agent" else replace(made, variations=pair)
    made = replace(wanted, agents=wanted.agents[:1] * (len(wanted.agents) < 2), variations=())
    if side == "left":
        return replace(made, a=chosen, b=right)
    left = wanted.a
    if found is not None and found.a.kind not in ("agent", "variation"):
        left = found.a.reference
    return replace(made, a=left, b=chosen)
