"""How a test stands on the Suites screen: what varies is flaky, what steps is not."""

from __future__ import annotations

import pytest

from agenteval_tui.history.records import TestSummary
from agenteval_tui.tui.presenters.test_status import is_flaky, outcome_of


def summary(*executions: str) -> TestSummary:
    """The last runs of a test (P, F), by execution."""
    statuses = [{"P": "passed", "F": "failed"}[letter] for runs in executions for letter in runs]
    numbers = [number for number, runs in enumerate(executions) for _ in runs]
    return TestSummary(
        "t", len(statuses), statuses.count("passed"), 0, tuple(statuses), 1, 1.0, None, {}, executions=tuple(numbers)
    )


@pytest.mark.parametrize(
    ("executions", "flaky", "state"),
    [
        (("PPPPP", "FFFFF"), False, "failed"),
        (("FFFFF", "PPPPP"), False, "passed"),
        (("F", "F", "P"), False, "passed"),
        (("P", "F", "P"), True, "flaky"),
        (("FFP", "PPP"), True, "flaky"),
        (("PFP",), True, "flaky"),
        (("PPP",), False, "passed"),
    ],
)
def test_a_step_between_executions_is_not_flaky(executions: tuple[str, ...], flaky: bool, state: str) -> None:
    assert is_flaky(summary(*executions)) is flaky
    assert outcome_of(summary(*executions)) == state
