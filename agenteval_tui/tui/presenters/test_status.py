"""How a test stands, by its last runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval_tui.analysis.execution_steps import varies
from agenteval_tui.history.records import TestSummary
from agenteval_tui.tui.presenters.status_style import flaky

if TYPE_CHECKING:
    from collections.abc import Iterable


_RANK = {"error": 0, "failed": 1, "needs_review": 2, "flaky": 3, "interrupted": 4, "cancelled": 4, "passed": 5, "": 6}
_JUDGED = ("passed", "failed", "needs_review")
_PART = "\x1f"  # between the agent and the criteria's versions in `TestSummary.settings`


def outcome_of(summary: TestSummary | None) -> str:
    """A test's state in a word: its last outcome; `flaky` when its last execution passed and failed, as History says,
    or when it passed and others did not; "" without runs."""
    if summary is None or not summary.recent:
        return ""
    last, outcomes = summary.recent[-1], last_outcomes(summary)
    if last != "error" and {"passed", "failed"} <= set(outcomes):
        return "flaky"
    return "flaky" if last == "passed" and is_flaky(summary) else last


def is_flaky(summary: TestSummary | None) -> bool:
    """Did some of its recent runs pass, and others not, by chance? A step from one execution to the next is none
    (`analysis.execution_steps`). Only runs that count now (`counted`) make a test flaky."""
    if summary is None or not flaky(*recent_rate(summary)):
        return False
    statuses: dict[int, list[str]] = {}
    executions = summary.executions or (0,) * len(summary.recent)
    for status, counts, execution in zip(summary.recent, counted(summary), executions, strict=True):
        if counts:
            statuses.setdefault(execution, []).append(status)
    return varies([_rate(listed) for listed in statuses.values()])


def counted(summary: TestSummary) -> tuple[bool, ...]:
    """For each recent run: does it count now? It does with the agent and the versions of the criteria of the newest run
    that was judged. What another agent did, or older criteria said, is shown and not counted."""
    settings = summary.settings or ("",) * len(summary.recent)
    judged = [setting for setting, status in zip(settings, summary.recent, strict=True) if status in _JUDGED]
    if not judged:
        return (True,) * len(settings)
    now = judged[-1]
    first, agent = settings.index(now), now.partition(_PART)[0]
    # A run in error was judged by no criterion: it counts beside those that were.
    return tuple(
        setting == now or (at > first and setting.partition(_PART)[::2] == (agent, ""))
        for at, setting in enumerate(settings)
    )


def recent_rate(summary: TestSummary) -> tuple[int, int]:
    """(passed, n) over the recent runs that count now; errors and cancelled runs are not among them."""
    return _rate(status for status, counts in zip(summary.recent, counted(summary), strict=True) if counts)


def last_outcomes(summary: TestSummary) -> tuple[str, ...]:
    """The outcomes of the last execution's runs, as far as they count now."""
    executions = summary.executions or (0,) * len(summary.recent)
    rows = zip(summary.recent, counted(summary), executions, strict=True)
    return tuple(status for status, counts, execution in rows if counts and execution == executions[-1])


def _rate(statuses: Iterable[str]) -> tuple[int, int]:
    decided = [status for status in statuses if status in ("passed", "failed")]
    return decided.count("passed"), len(decided)


def sort_weight(summary: TestSummary | None) -> tuple[float, int]:
    """Sorts the worst first: by the rate of recent runs that passed, then by the last outcome; without runs last.

    A run that ended in an error passed nothing.
    """
    if summary is None or not summary.recent:
        return 2.0, _RANK[""]
    rows = zip(summary.recent, counted(summary), strict=True)
    ended = [status for status, counts in rows if counts and status in (*_JUDGED, "error")]
    rate = sum(status == "passed" for status in ended) / len(ended) if ended else 1.5
    return rate, _RANK.get(outcome_of(summary), 4)
