"""pass@k and pass^k as Umbraco AI defines them, for suites with `metrics: umbraco`.

pass@k = passed / total, and pass^k = 1 if all runs passed, else 0; both are 0 without runs. Runs in error count in the
total. (Ours, in `analysis.statistics`, estimate the chance that one, or each, of k runs passes.) Source: "Metrics" in
the documentation of Umbraco AI's tests, and its test runner, version 1.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

from agenteval_tui.core.document import Count, Document, Share
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.plan.gates import UMBRACO_METRICS

_NO_END = ("queued", "running", "grading", "cancelled", "skipped")


class UmbracoFigures(Document, frozen=True, kw_only=True):
    """A test's runs with one configuration, or with all."""

    test: str
    variation: Annotated[str, Meta(description="empty: the default configuration, or all")]
    aggregate: Annotated[bool, Meta(description="whether these are the runs of all configurations")]
    runs: Count
    passed: Count
    pass_at_k: Annotated[Share, Meta(description="passed / total")]
    pass_hat_k: Annotated[Share, Meta(description="1 if all runs passed, else 0")]


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
        figures += [figures_of(test, name, group) for name, group in variations.items()]
        if len(variations) > 1:
            every = [passed for group in variations.values() for passed in group]
            figures.append(figures_of(test, "", every, aggregate=True))
    return tuple(figures)


def figures_of(test: str, variation: str, passed: Sequence[bool], *, aggregate: bool = False) -> UmbracoFigures:
    """The figures of runs, of each of which it is known whether it passed."""
    return UmbracoFigures(
        test=test,
        variation=variation,
        aggregate=aggregate,
        runs=len(passed),
        passed=sum(passed),
        pass_at_k=sum(passed) / len(passed) if passed else 0.0,
        pass_hat_k=float(bool(passed) and all(passed)),
    )
