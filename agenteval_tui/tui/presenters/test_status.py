"""How a test stands, by its last runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval_tui.tui.presenters.status_style import flaky

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agenteval_tui.history.records import TestSummary

_RANK = {"error": 0, "failed": 1, "needs_review": 2, "flaky": 3, "interrupted": 4, "cancelled": 4, "passed": 5, "": 6}


def outcome_of(summary: TestSummary | None) -> str:
    """A test's state in a word: its last outcome; `flaky` when that passed and others did not; "" without runs."""
    if summary is None or not summary.recent:
        return ""
    last = summary.recent[-1]
    return "flaky" if last == "passed" and is_flaky(summary) else last


def is_flaky(summary: TestSummary | None) -> bool:
    """Did some of its recent runs pass, and others not? Of runs with the newest one's agent and criteria: that others
    did otherwise, or were judged otherwise, makes nobody flaky."""
    if summary is None:
        return False
    settings = summary.settings or ("",) * len(summary.recent)
    pairs = [one for one in zip(summary.recent, settings, strict=True) if one[0] in ("passed", "failed")]
    return bool(pairs) and flaky(*_rate(status for status, setting in pairs if setting == pairs[-1][1]))


def recent_rate(summary: TestSummary) -> tuple[int, int]:
    """(passed, n) over the summary's recent runs; errors and cancelled runs are not counted."""
    return _rate(summary.recent)


def _rate(statuses: Iterable[str]) -> tuple[int, int]:
    decided = [status for status in statuses if status in ("passed", "failed")]
    return decided.count("passed"), len(decided)


def sort_weight(summary: TestSummary | None) -> tuple[float, int]:
    """Sorts the worst first: by the rate of recent runs that passed, then by the last outcome; without runs last.

    A run that ended in an error passed nothing.
    """
    if summary is None or not summary.recent:
        return 2.0, _RANK[""]
    ended = [status for status in summary.recent if status in ("passed", "failed", "error", "needs_review")]
    rate = sum(status == "passed" for status in ended) / len(ended) if ended else 1.5
    return rate, _RANK.get(outcome_of(summary), 4)


def pulse_of(summaries: Iterable[TestSummary], most: int) -> list[float]:
    """The rate of passed among the tests' last runs, one figure for each time back (oldest first), at most `most`."""
    columns: list[tuple[int, int]] = []
    for summary in summaries:
        ended = [status for status in summary.recent if status in ("passed", "failed", "error")]
        for back, status in enumerate(reversed(ended[-most:])):
            if back == len(columns):
                columns.append((0, 0))
            passed, n = columns[back]
            columns[back] = (passed + (status == "passed"), n + 1)
    return [passed / n for passed, n in reversed(columns)]
