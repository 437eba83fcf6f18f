"""Figures of an execution: what `agenteval stats --json` prints, also with `--costs` and `--ab`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from agenteval_tui.analysis import costs
from agenteval_tui.analysis.ab import ABResult
from agenteval_tui.analysis.classification_report import Classification
from agenteval_tui.analysis.summary import ExecutionFigures, OverallFigures, TestFigures
from agenteval_tui.analysis.umbraco_metrics import UmbracoFigures
from agenteval_tui.core.document import Count, Document, extended


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
        tuple[UmbracoFigures, ...] | UnsetType,
        Meta(description="pass@k and pass^k as Umbraco AI defines them, of suites with `metrics: umbraco`"),
    ] = UNSET


class Spent(Document, frozen=True, kw_only=True):
    """What runs, or replies of judges and simulated users, took."""

    count: Annotated[Count, Meta(description="ended runs, or replies of judges and simulated users")]
    input_tokens: Count
    output_tokens: Count
    tokens: Count
    cost: Annotated[float | None, Meta(description="US dollars; null: no price is known")]
    priced: Annotated[Count | None, Meta(description="runs with a known cost; null: not known of replies")]
    mean_tokens: float | None
    mean_cost: float | None


class TestSpent(costs.TestCost[Spent], frozen=True, kw_only=True):
    """What a test took."""

    __test__ = False  # not a test class, whatever its name says to pytest


class AgentSpent(Spent, frozen=True, kw_only=True):
    """What an agent took over all tests."""

    agent: str


class CriterionSpent(Spent, frozen=True, kw_only=True):
    """What the judges of a criterion took."""

    criterion: str
    hash: str
    models: tuple[str, ...]


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


class ABComparison(ABResult, frozen=True, kw_only=True):
    """`agenteval stats --ab`."""

    execution: str
    version: Literal[1] = 1


def stats_document(
    execution: str,
    stats: ExecutionFigures,
    labelling: Classification | None,
    umbraco: Sequence[UmbracoFigures] = (),
) -> ExecutionStats:
    """The figures of an execution (`analysis.summary.execution_stats`), and how well it labels."""
    return ExecutionStats(
        execution=execution,
        tests=stats.tests,
        overall=stats.overall,
        classification=labelling,
        umbraco=tuple(umbraco) or UNSET,
    )


def costs_document(execution: str, execution_costs: costs.Costs) -> ExecutionCosts:
    """What an execution used."""
    return extended(
        ExecutionCosts,
        execution_costs,
        execution=execution,
        agents=_spent(execution_costs.agents),
        judges=_spent(execution_costs.judges),
        users=_spent(execution_costs.users),
        by_test=tuple(
            extended(TestSpent, test, agents=_spent(test.agents), judges=_spent(test.judges), users=_spent(test.users))
            for test in execution_costs.by_test
        ),
        by_agent=_by_agent(execution_costs.by_agent),
        by_criterion=tuple(
            extended(
                CriterionSpent,
                criterion.spent,
                criterion=criterion.name,
                hash=criterion.key,
                models=criterion.models,
            )
            for criterion in execution_costs.by_criterion
        ),
        by_user=_by_agent(execution_costs.by_user),
    )


def _by_agent(agents: Sequence[costs.NamedCost]) -> tuple[AgentSpent, ...]:
    return tuple(extended(AgentSpent, agent.spent, agent=agent.name) for agent in agents)


def ab_document(execution: str, result: ABResult) -> ABComparison:
    """How the two sides of an execution differ."""
    return extended(ABComparison, result, execution=execution)


def _spent(spent: costs.CostTotals) -> Spent:
    return extended(Spent, spent)
