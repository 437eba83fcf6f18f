"""Flaky tests and whose doing it is: what `agenteval flaky --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

from msgspec import UNSET, Meta, UnsetType

from agenteval_tui.analysis.statistics import pass_at_k, pass_hat_k
from agenteval_tui.analysis.variance import KS, VarianceComponent, VarianceReport, Whose
from agenteval_tui.core.document import Count, Document, RowKey, Share, extended
from agenteval_tui.core.ids import content_hash

_V = TypeVar("_V", bound="Variance")


class AgentPasses(Document, frozen=True, kw_only=True):
    """How often one of several agents passed."""

    agent: str
    passed: Count
    n: Count


class ConfigurationPasses(Document, frozen=True, kw_only=True):
    """How often one configuration of an agent passed, by one version of the criteria."""

    agent: str
    configuration: str | None
    criteria: str
    passed: Count
    n: Count
    executions: Annotated[
        tuple[tuple[Count, Count], ...], Meta(description="passed, and of how many, by execution; oldest first")
    ]


class Variance(Document, frozen=True, kw_only=True):
    """How steady a test is, or a criterion of one."""

    suite: str
    file: str
    test: str
    variation: str
    row: Count
    row_key: RowKey
    criterion: Annotated[str | None, Meta(description="null: the test as a whole")]
    n: Count
    passed: Count
    errors: Count
    undecided: Count
    pass_rate: Share | None
    interval: Annotated[tuple[Share, Share] | None, Meta(description="Wilson's; null: fewer than five runs")]
    pass_at_k: dict[str, Share]
    pass_hat_k: dict[str, Share]
    flaky: Annotated[
        bool,
        Meta(
            description="passed sometimes, and sometimes not, with one agent and one version of criteria, and does not"
            " only step"
        ),
    ]
    by_agent: Annotated[tuple[AgentPasses, ...], Meta(description="of several agents; else empty")]
    step: Annotated[
        Literal["regression", "improvement", "changed", None],
        Meta(
            description="it steps from one execution to another, or with the agent's configuration or the criteria;"
            " changed: it passes and fails by turns, each time in all runs of an execution"
        ),
    ]
    step_counts: Annotated[
        tuple[tuple[Count, Count], ...], Meta(description="passed, and of how many, on each side of the step")
    ]
    step_p_value: Annotated[
        Share | None, Meta(description="how often executions differ as sharply if all runs pass by the same chance")
    ]
    by_configuration: Annotated[
        tuple[ConfigurationPasses, ...],
        Meta(
            description="by configuration of the agent (null: not stored) and version of the criteria; the newest last"
        ),
    ]
    variance: Annotated[
        float | None,
        Meta(description="of one verdict among runs of one agent, p(1-p) without bias; null for fewer than two"),
    ]
    whose: Whose
    judge_share: Annotated[Share | None, Meta(description="the judge's part of agent and judge variance")]
    agent_variance: float | None
    judge_variance: float | None
    judged_outputs: Count | None
    judge_verdicts: Count | None
    quarantined_until: Annotated[Count | None, Meta(description="milliseconds since 1970")]


class TestVariance(Variance, frozen=True, kw_only=True):
    """A test with its criteria."""

    __test__ = False  # not a test class, whatever its name says to pytest

    criteria: tuple[Variance, ...]


class SuggestedQuarantine(Document, frozen=True, kw_only=True):
    """A test, or one criterion of it."""

    file: str
    test: str
    criterion: str | None


class FlakyTests(Document, frozen=True, kw_only=True):
    """`agenteval flaky`."""

    version: Literal[1] = 1
    since: Annotated[Count, Meta(description="milliseconds since 1970")]
    cut: Annotated[bool, Meta(description="older runs of the window were not looked at")]
    tests: Annotated[tuple[TestVariance, ...], Meta(description="least predictable first")]
    changed: Annotated[
        tuple[Variance, ...] | UnsetType,
        Meta(description="not flaky: they step between executions, or with the agent's configuration or the criteria"),
    ] = UNSET
    suggested: Annotated[tuple[SuggestedQuarantine, ...], Meta(description="what might go into quarantine")]


def flaky_document(
    variance_report: VarianceReport,
    variance_components: Sequence[VarianceComponent],
    suggested: Sequence[VarianceComponent],
) -> FlakyTests:
    """The tests of a report with their criteria, those that do otherwise since something changed, and what is
    `suggested` for quarantine."""
    return FlakyTests(
        since=variance_report.since_ms,
        cut=variance_report.cut,
        tests=tuple(
            _variance(
                TestVariance,
                variance_component,
                criteria=tuple(_variance(Variance, part) for part in variance_report.criteria_of(variance_component)),
            )
            for variance_component in variance_components
        ),
        changed=tuple(_variance(Variance, variance_component) for variance_component in variance_report.changed),
        suggested=tuple(
            SuggestedQuarantine(
                file=variance_component.suite_key,
                test=variance_component.test_id,
                criterion=variance_component.criterion or None,
            )
            for variance_component in suggested
        ),
    )


def _variance(kind: type[_V], variance_component: VarianceComponent, **more: tuple[Variance, ...]) -> _V:
    # Of fewer runs than k nothing is known of k of them.
    ks = [k for k in KS if k <= variance_component.n]
    split, step = variance_component.split, variance_component.step
    return extended(
        kind,
        variance_component,
        file=variance_component.suite_key,
        test=variance_component.test_id,
        criterion=variance_component.criterion or None,
        undecided=variance_component.review,
        pass_rate=variance_component.rate,
        pass_at_k={str(k): pass_at_k(variance_component.passed, variance_component.n, k) for k in ks},
        pass_hat_k={str(k): pass_hat_k(variance_component.passed, variance_component.n, k) for k in ks},
        by_agent=tuple(
            AgentPasses(agent=agent, passed=passed, n=n) for agent, passed, n in variance_component.by_agent
        ),
        step=None if step is None else step.kind,
        step_counts=() if step is None else step.parts,
        step_p_value=None if step is None else step.p_value,
        by_configuration=tuple(
            extended(
                ConfigurationPasses,
                part,
                configuration=part.version or None,
                criteria=content_hash(part.criteria)[:8],
            )
            for part in variance_component.parts
        ),
        judge_share=None if split is None else split.judge_share,
        agent_variance=None if split is None else split.agent,
        judge_variance=None if split is None else split.judge,
        judged_outputs=None if split is None else split.outputs,
        judge_verdicts=None if split is None else split.verdicts,
        quarantined_until=None if variance_component.quarantine is None else variance_component.quarantine.until_ms,
        **more,
    )
