"""How often each test of an execution must pass: what its test, its suite or `--fail-under-test` says.

The gates of the suites are kept with the execution's options, as they were when it was planned: a report of it says the
same whatever the files say by then, and what is resumed is measured as it was begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.suites.model import Stop, Suite, Test

GATES = "gates"
"""The option of an execution: gates by the suite's key, then by the test's id (`OF_SUITE`: the suite's own)."""
UMBRACO_METRICS = "umbraco_metrics"
"""The option of an execution that has the keys of the suites with `metrics: umbraco`."""
FAIL_UNDER_TEST = "fail_under_test"
TEST, SUITE, OPTION = "test", "suite", "option"
OF_SUITE = ""


class Gate(Struct, frozen=True):
    """The share of a test's runs that must pass (0..1), and who says so: its "test", its "suite", or the "option"."""

    pass_rate: float
    origin: str


def gate_of(suite: Suite, test: Test, fail_under_test: float | None = None) -> Gate | None:
    """The gate of a test: its own, else its suite's, else that of `--fail-under-test`; None: every run must pass."""
    if test.gate is not None:
        return Gate(test.gate.pass_rate, TEST)
    if suite.gate is not None:
        return Gate(suite.gate.pass_rate, SUITE)
    return Gate(fail_under_test, OPTION) if fail_under_test is not None else None


def stop_threshold(stop: Stop, gate: Gate | None) -> float:
    """The pass rate that early stopping decides about: what the suite writes, else the gate's, if it can be decided."""
    written = "threshold" in stop.model_fields_set
    return gate.pass_rate if gate is not None and not written and 0 < gate.pass_rate < 1 else stop.threshold


class StoredGates:
    """The gates of an execution, from its stored options. What can't be read there, as in a foreign history, is left
    out. False: it has none."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        stored = options.get(GATES)
        self._suites: Mapping[str, Any] = stored if isinstance(stored, dict) else {}
        self._option = _rate(options.get(FAIL_UNDER_TEST))

    def __bool__(self) -> bool:
        return bool(self._suites) or self._option is not None

    def of(self, suite_key: str, test_id: str) -> Gate | None:
        """The gate of a test; None: every run of it must pass."""
        suite = self._suites.get(suite_key)
        if isinstance(suite, dict):
            for name, origin in ((test_id, TEST), (OF_SUITE, SUITE)):
                rate = _rate(suite.get(name))
                if rate is not None:
                    return Gate(rate, origin)
        return Gate(self._option, OPTION) if self._option is not None else None


def _rate(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value <= 1 else None
