"""What an execution used: tokens and US dollars by test, agent and criterion; judges and simulated users apart
from the agents.

Failed attempts are in it, because they were paid for; answers that the history knew are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Struct

from agenteval_tui.core.document import Document
from agenteval_tui.core.groups import grouped
from agenteval_tui.history.records import CostRow, RunRow
from agenteval_tui.history.store import Store

K = TypeVar("K", bound=Hashable)


class CostTotals(Struct, frozen=True):
    """Tokens and US dollars of `count` runs (or replies of judges). `cost` None: no price is known of any.

    `priced` of the runs have a known cost, and of `measured` the tokens were counted: where it is less than `count`,
    `cost` and the tokens are not all of it. Of replies that is not known (None).
    """

    count: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    priced: int | None = None
    measured: int | None = None

    @property
    def whole(self) -> bool:
        """Whether each run whose tokens were counted has a known cost."""
        return self.priced is None or self.measured is None or self.priced >= self.measured

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens

    @property
    def mean_tokens(self) -> float | None:
        """A run (or reply) whose tokens were counted, with its failed attempts; None without any."""
        over = self.count if self.measured is None else self.measured
        return self.tokens / over if over else None

    @property
    def mean_cost(self) -> float | None:
        """A run (or reply) that has a price, with its failed attempts; None without any."""
        over = self.count if self.priced is None else self.priced
        return self.cost / over if self.cost is not None and over else None


NOTHING_SPENT = CostTotals(0, 0, 0, None)


_Totals = TypeVar("_Totals")


class TestCost(Document, Generic[_Totals], frozen=True, kw_only=True):
    """What a test took: its agents, its judges, and the agents that played its user."""

    __test__ = False  # not a test class, whatever its name says to pytest

    suite: str
    test: str
    name: str
    agents: _Totals
    judges: _Totals
    users: Annotated[_Totals, Meta(description="the agents that played its simulated user")]


class NamedCost(Struct, frozen=True):
    """What one agent used over all tests, as the tested one or as the user, or the judges that one criterion asked
    (with their models)."""

    name: str
    key: str
    spent: CostTotals
    models: tuple[str, ...] = ()


class Costs(Struct, frozen=True):
    """The cost of an execution. `by_test` is in the order of the tests, the others start with the most expensive.
    `cached` runs were answered from the history, and `failed_attempts` were followed by another attempt.
    """

    agents: CostTotals
    judges: CostTotals
    by_test: tuple[TestCost[CostTotals], ...]
    by_agent: tuple[NamedCost, ...]
    by_criterion: tuple[NamedCost, ...]
    cached: int = 0
    failed_attempts: int = 0
    users: CostTotals = NOTHING_SPENT
    by_user: tuple[NamedCost, ...] = ()

    @property
    def cost(self) -> float | None:
        """US dollars of agents, judges and users together, as far as they are known; None: nothing is."""
        costs = [
            cost_totals.cost for cost_totals in (self.agents, self.judges, self.users) if cost_totals.cost is not None
        ]
        return sum(costs) if costs else None

    @property
    def tokens(self) -> int:
        """Tokens of agents, judges and users together."""
        return self.agents.tokens + self.judges.tokens + self.users.tokens


def execution_costs(store: Store, reference: str) -> Costs:
    """What the execution that `reference` names ("last", an id) used. Raises `AgentevalError`."""
    execution = store.execution(reference)
    return costs_of(store.costs(execution.id), store.runs_of_execution(execution.id))


def costs_of(rows: Sequence[CostRow], runs: Sequence[RunRow]) -> Costs:
    """The same from what the store gives: sums by test and agent or criterion, and the runs."""
    agents = [row for row in rows if row.kind == "agent"]
    judges = [row for row in rows if row.kind == "judge"]
    users = [row for row in rows if row.kind == "user"]
    # What came from the history was paid for by another execution.
    paid = [run for run in runs if run.cost is not None and not run.cached]
    read = [run for run in runs if (run.input_tokens, run.output_tokens) != (None, None) and not run.cached]
    tests: dict[tuple[str, str], CostRow] = {}
    for row in rows:
        tests.setdefault((row.suite_key, row.test_id), row)
    by_test = [Counter((run.suite_key, run.test_id) for run in some) for some in (paid, read)]
    by_agent = [Counter(run.agent for run in some) for some in (paid, read)]
    of_tests, of_judges, of_users = _grouped(agents, _test), _grouped(judges, _test), _grouped(users, _test)
    of_criteria = _grouped(judges, lambda row: (row.criterion, row.criterion_name))
    names = {run.suite_key: run.suite_name for run in runs}
    return Costs(
        agents=_spent(agents, len(paid), len(read)),
        judges=_spent(judges),
        by_test=tuple(
            TestCost(
                suite=names.get(key[0], key[0]),
                test=key[1],
                name=row.test_name,
                agents=_spent(of_tests.get(key, []), *(some[key] for some in by_test)),
                judges=_spent(of_judges.get(key, [])),
                users=_spent(of_users.get(key, [])),
            )
            for key, row in tests.items()
        ),
        by_agent=_dearest(
            NamedCost(name, "", _spent(listed, *(some[name] for some in by_agent)))
            for name, listed in _grouped(agents, lambda row: row.agent).items()
        ),
        by_criterion=_dearest(
            NamedCost(name, key, _spent(listed), tuple(dict.fromkeys(row.agent for row in listed if row.agent)))
            for (key, name), listed in of_criteria.items()
        ),
        users=_spent(users),
        by_user=_dearest(
            NamedCost(name, "", _spent(listed)) for name, listed in _grouped(users, lambda row: row.agent).items()
        ),
        cached=sum(run.cached for run in runs),
        failed_attempts=sum(max(0, run.attempts - 1) for run in runs),
    )


def _test(row: CostRow) -> tuple[str, str]:
    return row.suite_key, row.test_id


def _grouped(rows: Iterable[CostRow], key: Callable[[CostRow], K]) -> dict[K, list[CostRow]]:
    return grouped((key(row), row) for row in rows)


def _spent(rows: Sequence[CostRow], priced: int | None = None, measured: int | None = None) -> CostTotals:
    costs = [row.cost for row in rows if row.cost is not None]
    return CostTotals(
        sum(row.count for row in rows),
        sum(row.input_tokens for row in rows),
        sum(row.output_tokens for row in rows),
        sum(costs) if costs else None,
        priced,
        measured,
    )


def _dearest(listed: Iterable[NamedCost]) -> tuple[NamedCost, ...]:
    return tuple(
        sorted(
            listed, key=lambda named_cost: (-(named_cost.spent.cost or 0.0), -named_cost.spent.tokens, named_cost.name)
        )
    )
