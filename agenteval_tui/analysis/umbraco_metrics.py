"""pass@k and pass^k as Umbraco AI defines them, for suites with `metrics: umbraco`.

pass@k = passed / total, and pass^k = 1 if all runs passed, else 0; both are 0 without runs. Runs in error count in the
total. (Ours, in `analysis.statistics`, estimate the chance that one, or each, of k runs passes.) Source: "Metrics" in
the documentation of Umbraco AI's tests, and its test runner, version 1.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.plan.gates import UMBRACO_METRICS

_NO_END = ("queued", "running", "grading", "cancelled", "skipped")


class UmbracoFigures(Struct, frozen=True):
    """Of a test's runs with one configuration (`variation`, "" for the default), or with all (`aggregate`)."""

    test: str
    variation: str
    total: int
    passed: int
    aggregate: bool = False

    @property
    def pass_at_k(self) -> float:
        """passed / total."""
        return self.passed / self.total if self.total else 0.0

    @property
    def pass_hat_k(self) -> float:
        """1.0 if all passed, else 0.0."""
        return 1.0 if self.total and self.passed == self.total else 0.0


def umbraco_figures(options: Mapping[str, Any], runs: Iterable[RunRow]) -> tuple[UmbracoFigures, ...]:
    """For each test of such a suite: the default configuration, its variations, and, if there are some, all together.
    () where no suite of the execution asks for them."""
    suites = set(options.get(UMBRACO_METRICS) or ())
    groups: dict[tuple[str, str], dict[str, list[bool]]] = {}
    for run in runs if suites else ():
        if run.suite_key in suites and run.status not in _NO_END and not run.superseded:
            by_variation = groups.setdefault((run.suite_key, run.test_id), {})
            by_variation.setdefault(run.variation, []).append(run.status == "passed")
    figures = []
    for (_, test), variations in groups.items():
        every = [passed for group in variations.values() for passed in group]
        figures += [UmbracoFigures(test, name, len(group), sum(group)) for name, group in variations.items()]
        if len(variations) > 1:
            figures.append(UmbracoFigures(test, "", len(every), sum(every), aggregate=True))
    return tuple(figures)
