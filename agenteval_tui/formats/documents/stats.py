"""Figures of an execution: what `agenteval stats --json` prints, also with `--costs` and `--ab`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict

from agenteval_tui.analysis import ab as sides
from agenteval_tui.analysis import classification_report, costs
from agenteval_tui.analysis.statistics import PairedCounts
from agenteval_tui.analysis.umbraco_metrics import UmbracoFigures
from agenteval_tui.core.document import Count, Document, RowKey, Share, one_of


class Spread(Document, frozen=True, kw_only=True):
    """The median and the 95th percentile."""

    p50: float | None
    p95: float | None


_Errors = Annotated[Count, Meta(description="runs that ended in an error; not in n unless asked for")]
_Decided = Annotated[Count, Meta(description="runs that passed or failed")]
_NotMade = Annotated[Count, Meta(description="criteria in error, in runs that passed or failed")]
_Interval = Annotated[
    tuple[Share, Share] | None,
    Meta(
        description="95 %: Wilson's for a test, the confidence sequence where it was stopped early; overall by test. "
        "null: fewer than five cases, or repetitions of a single one"
    ),
]
_Steps = Annotated[Spread, Meta(description="tool calls of a run")]


class TestFigures(Document, frozen=True, kw_only=True):
    """A test, or a row or variation of one."""

    __test__ = False  # not a test class, whatever its name says to pytest

    id: str
    name: str
    suite: str
    test: str
    variation: str
    row: Count
    row_key: RowKey
    n: _Decided
    passed: Count
    errors: _Errors
    undecided: Count
    checks_not_made: _NotMade
    pass_rate: Share | None
    interval: _Interval
    pass_at_k: dict[str, Share]
    pass_hat_k: dict[str, Share]
    flaky: bool
    stopped_early: Annotated[
        bool,
        Meta(description="repetitions were left out once the rate was decided: pass@k and pass^k lean"),
    ]
    latency_ms: Spread
    tokens: Spread
    cost: Spread
    steps: _Steps


class OverallFigures(Document, frozen=True, kw_only=True):
    """All tests."""

    tests: Count
    n: _Decided
    passed: Count
    errors: _Errors
    undecided: Count
    checks_not_made: _NotMade
    pass_rate: Share | None
    interval: _Interval
    standard_error: float | None
    pass_at_k: dict[str, Share]
    pass_hat_k: dict[str, Share]
    tests_at_k: dict[str, Count]
    flaky: Count
    stopped_early: Annotated[Count, Meta(description="tests whose repetitions were stopped early")]
    latency_ms: Spread
    tokens: Spread
    cost: Spread
    steps: _Steps


class LabelFigures(Document, frozen=True, kw_only=True):
    """One label against the rest."""

    label: str
    support: Count
    given: Count
    hits: Count
    precision: float | None
    recall: float | None
    f1: float | None


class Classification(Document, frozen=True, kw_only=True):
    """The `Classification` metrics of all runs."""

    labels: tuple[str, ...]
    matrix: tuple[tuple[Count, ...], ...]
    n: Count
    errors: Count
    accuracy: float | None
    macro_f1: float | None
    weighted_f1: float | None
    per_label: tuple[LabelFigures, ...]


class UmbracoTest(Document, frozen=True, kw_only=True):
    """A test's runs with one configuration, or with all."""

    test: str
    variation: Annotated[str, Meta(description="empty: the default configuration, or all")]
    aggregate: Annotated[bool, Meta(description="whether these are the runs of all configurations")]
    runs: Count
    passed: Count
    pass_at_k: Annotated[Share, Meta(description="passed / total")]
    pass_hat_k: Annotated[Share, Meta(description="1 if all runs passed, else 0")]


class ExecutionStats(Document, frozen=True, kw_only=True):
    """`agenteval stats`."""

    execution: str
    version: Literal[1] = 1
    tests: tuple[TestFigures, ...]
    overall: Annotated[OverallFigures, Meta(description="Rates and curves are means over the tests.")]
    classification: Annotated[
        Classification | None,
        Meta(
            description="Of the `Classification` metrics of all runs: matrix[i][j] counts how often labels[i] was right"
            " and labels[j] was given. Null where no run has such a metric."
        ),
    ]
    umbraco: Annotated[
        tuple[UmbracoTest, ...] | UnsetType,
        Meta(description="pass@k and pass^k as Umbraco AI defines them, of suites with `metrics: umbraco`"),
    ] = UNSET


_Dollars = Annotated[float | None, Meta(description="US dollars; null: no price is known")]
_Spenders = Annotated[Count, Meta(description="ended runs, or replies of judges and simulated users")]
_Priced = Annotated[Count | None, Meta(description="runs with a known cost; null: not known of replies")]


class Spent(Document, frozen=True, kw_only=True):
    """What runs, or replies of judges and simulated users, took."""

    count: _Spenders
    input_tokens: Count
    output_tokens: Count
    tokens: Count
    cost: _Dollars
    priced: _Priced
    mean_tokens: float | None
    mean_cost: float | None


class _Test(Document, frozen=True, kw_only=True):
    """Which test it is."""

    __test__ = False

    suite: str
    test: str
    name: str


class TestSpent(_Test, frozen=True, kw_only=True):
    """What a test took."""

    agents: Spent
    judges: Spent
    users: Annotated[Spent, Meta(description="the agents that played its simulated user")]


class AgentSpent(Document, frozen=True, kw_only=True):
    """What an agent took over all tests."""

    agent: str
    count: _Spenders
    input_tokens: Count
    output_tokens: Count
    tokens: Count
    cost: _Dollars
    priced: _Priced
    mean_tokens: float | None
    mean_cost: float | None


class CriterionSpent(Document, frozen=True, kw_only=True):
    """What the judges of a criterion took."""

    criterion: str
    hash: str
    models: tuple[str, ...]
    count: _Spenders
    input_tokens: Count
    output_tokens: Count
    tokens: Count
    cost: _Dollars
    priced: _Priced
    mean_tokens: float | None
    mean_cost: float | None


class ExecutionCosts(Document, frozen=True, kw_only=True):
    """`agenteval stats --costs`."""

    execution: str
    version: Literal[1] = 1
    cost: float | None
    tokens: Count
    agents: Spent
    judges: Spent
    users: Annotated[Spent, Meta(description="simulated users")]
    cached: Annotated[Count, Meta(description="runs that were answered from the history")]
    failed_attempts: Count
    by_test: tuple[TestSpent, ...]
    by_agent: Annotated[tuple[AgentSpent, ...], Meta(description="what cost most first")]
    by_criterion: Annotated[tuple[CriterionSpent, ...], Meta(description="the judges that each asked")]
    by_user: Annotated[tuple[AgentSpent, ...], Meta(description="what each agent took that played a simulated user")]


COSTS = Annotated[
    ExecutionCosts,
    Meta(description="Failed attempts are in it, because they were paid for; answers that the history knew are not."),
]


class Arm(Document, frozen=True, kw_only=True):
    """One side of an A/B execution."""

    name: str
    cases: Count
    runs: Count
    n: Count
    passed: Count
    errors: Count
    undecided: Count
    pass_rate: float | None
    interval: Annotated[tuple[float, float] | None, Meta(description="95 %; null for fewer than five cases")]
    tokens: float | None
    cost: float | None
    latency_ms: float | None


class ArmDelta(Document, frozen=True, kw_only=True):
    """How much more a run takes under B than under A."""

    difference: float
    interval: tuple[float, float] | None
    n: Count


class TestDifference(_Test, frozen=True, kw_only=True):
    """A test under both arms."""

    cases: Count
    n_a: Count
    passed_a: Count
    n_b: Count
    passed_b: Count
    difference: float


class ABComparison(Document, frozen=True, kw_only=True):
    """`agenteval stats --ab`."""

    execution: str
    version: Literal[1] = 1
    a: Arm
    b: Arm
    cases: Annotated[Count, Meta(description="tests and rows that were decided under both")]
    unpaired: Count
    difference: Annotated[float | None, Meta(description="B minus A, of pass rates, over cases")]
    interval: Annotated[tuple[float, float] | None, Meta(description="95 %; null for fewer than five cases")]
    test: Annotated[
        str,
        one_of("mcnemar", "sign-flip", "fisher"),
        Meta(description="fisher: the repetitions of a single case"),
    ]
    one_case: Annotated[bool, Meta(description="the repetitions of one case are compared; others may differ")]
    p_value: float | None
    pairs: PairedCounts
    detectable: float | None
    recommended: Annotated[str, one_of("", "A", "B"), Meta(description="only where the interval excludes 0")]
    conclusion: str
    tokens: ArmDelta | None
    cost: ArmDelta | None
    latency_ms: ArmDelta | None
    tests: tuple[TestDifference, ...]


def stats_document(
    execution: str,
    stats: Mapping[str, Any],
    labelling: classification_report.Report | None,
    umbraco: Sequence[UmbracoFigures] = (),
) -> ExecutionStats:
    """The figures of an execution (`analysis.summary.execution_stats`), and how well it labels."""
    return ExecutionStats(
        execution=execution,
        tests=tuple(TestFigures(**_figures(test)) for test in stats["tests"]),
        overall=OverallFigures(**_figures(stats["overall"])),
        classification=None if labelling is None else _classification(labelling),
        umbraco=tuple(
            UmbracoTest(
                test=one.test,
                variation=one.variation,
                aggregate=one.aggregate,
                runs=one.total,
                passed=one.passed,
                pass_at_k=one.pass_at_k,
                pass_hat_k=one.pass_hat_k,
            )
            for one in umbraco
        )
        or UNSET,
    )


def costs_document(execution: str, found: costs.Costs) -> ExecutionCosts:
    """What an execution used."""
    return ExecutionCosts(
        execution=execution,
        cost=found.cost,
        tokens=found.tokens,
        agents=Spent(**_spent(found.agents)),
        judges=Spent(**_spent(found.judges)),
        users=Spent(**_spent(found.users)),
        cached=found.cached,
        failed_attempts=found.failed_attempts,
        by_test=tuple(
            TestSpent(
                suite=test.suite,
                test=test.test,
                name=test.name,
                agents=Spent(**_spent(test.agents)),
                judges=Spent(**_spent(test.judges)),
                users=Spent(**_spent(test.users)),
            )
            for test in found.by_test
        ),
        by_agent=tuple(AgentSpent(agent=agent.name, **_spent(agent.spent)) for agent in found.by_agent),
        by_criterion=tuple(
            CriterionSpent(
                criterion=criterion.name, hash=criterion.key, models=criterion.models, **_spent(criterion.spent)
            )
            for criterion in found.by_criterion
        ),
        by_user=tuple(AgentSpent(agent=user.name, **_spent(user.spent)) for user in found.by_user),
    )


def ab_document(execution: str, found: sides.ABResult) -> ABComparison:
    """How the two sides of an execution differ."""
    return ABComparison(
        **{
            **asdict(found),
            "execution": execution,
            "a": Arm(**asdict(found.a)),
            "b": Arm(**asdict(found.b)),
            "tokens": _delta(found.tokens),
            "cost": _delta(found.cost),
            "latency_ms": _delta(found.latency_ms),
            "tests": tuple(TestDifference(**asdict(test)) for test in found.tests),
        }
    )


def _figures(stats: Mapping[str, Any]) -> dict[str, Any]:
    return {**stats, **{name: Spread(**stats[name]) for name in ("latency_ms", "tokens", "cost", "steps")}}


def _classification(report: classification_report.Report) -> Classification:
    return Classification(
        labels=tuple(report.labels),
        matrix=tuple(map(tuple, report.matrix)),
        n=report.total,
        errors=report.errors,
        accuracy=report.accuracy,
        macro_f1=report.macro_f1,
        weighted_f1=report.weighted_f1,
        per_label=tuple(
            LabelFigures(
                label=label.label,
                support=label.support,
                given=label.given,
                hits=label.hits,
                precision=label.precision,
                recall=label.recall,
                f1=label.f1,
            )
            for label in report.per_label
        ),
    )


def _spent(spent: costs.CostTotals) -> dict[str, Any]:
    return {name: getattr(spent, name) for name in Spent.__struct_fields__}


def _delta(delta: sides.MetricDelta | None) -> ArmDelta | None:
    return None if delta is None else ArmDelta(**asdict(delta))
