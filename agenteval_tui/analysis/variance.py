"""The variance ledger: how steady tests and their criteria are, which are flaky, and whose doing it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis import judge_variance
from agenteval_tui.analysis.execution_steps import Counts, Step, step_between, step_of, varies
from agenteval_tui.analysis.judge_variance import VarianceSplit
from agenteval_tui.analysis.statistics import Interval, interval_of, pass_rate
from agenteval_tui.analysis.trends import TrendQuery, select_runs
from agenteval_tui.core.document import extended
from agenteval_tui.core.groups import grouped
from agenteval_tui.history import quarantines
from agenteval_tui.history import trends as rows
from agenteval_tui.history.connections import Connection
from agenteval_tui.history.quarantines import ActiveQuarantines, Quarantine
from agenteval_tui.history.store import Store
from agenteval_tui.suites.row_keys import row_label

KS = (1, 2, 3, 5, 10)
"""The k for which pass@k and pass^k are given, if there are that many runs."""
ENOUGH = 5
"""The fewest runs for which a quarantine is suggested. With fewer runs, one bad run may be bad luck."""
_JUDGED_RUNS = 60  # of a flaky criterion whose transcripts are opened to tell the judge's part from the agent's

Whose = Literal["agent", "judge", "both", "unknown", "nobody"]


class Part(NamedTuple):
    """The runs of one configuration of an agent that were judged by one version of the criteria. `version` identifies
    the configuration ("": not known, then `agent` does); `criteria` identifies the version of the criteria. `last_ms`:
    when the last run started. `executions`: (passed, n) of each, oldest first."""

    agent: str
    passed: int
    n: int
    version: str = ""
    criteria: str = ""
    last_ms: int = 0
    executions: tuple[Counts, ...] = ()

    @property
    def counts(self) -> Counts:
        """Passed, of how many."""
        return self.passed, self.n

    @property
    def varies(self) -> bool:
        """Whether its runs vary by chance, and do not only step from one execution to the next."""
        return varies(self.executions or (self.counts,))


class VarianceComponent(Struct, frozen=True):
    """A test (with its variation and row), or one criterion of it (`criterion`: its name; "": the whole test).

    `n` are the runs with a verdict. `variance` is the variance of a single verdict: p(1-p), without bias. `split`: the
    judge's share of it; None if it is not known (see `whose`).
    """

    suite_key: str
    suite: str
    test_id: str
    test: str
    variation: str
    row: int
    criterion: str
    criterion_hash: str
    n: int
    passed: int
    errors: int
    review: int
    split: VarianceSplit | None = None
    whose: Whose = "unknown"
    quarantine: Quarantine | None = None
    parts: tuple[Part, ...] = ()
    """By configuration of the agent and version of the criteria. The newest part is the last."""
    row_key: str = ""
    """The key of the dataset's row (`suites.row_keys`); `row` is its last position."""
    by_criteria: bool = False
    """Whether one of its criteria is flaky: other criteria may have been edited from run to run."""

    @property
    def flaky(self) -> bool:
        """Passed sometimes, and sometimes not, by one configuration of the agent and one version of the criteria: runs
        of one execution differ, or executions of a single run go back and forth.

        What always failed in one execution (or with one configuration) and never in the next one has regressed, or was
        put right: quarantine would hide that. See `step`.
        """
        return self.by_criteria or any(part.varies for part in self._parts)

    @property
    def step(self) -> Step | None:
        """Where it steps: between the executions of the newest configuration, else from the configuration before it to
        that one. None where nothing changed. What is flaky may have one, too, where chance does not explain it."""
        decided = [part for part in self._parts if part.n]
        if not decided:
            return None
        step = step_of(decided[-1].executions or (decided[-1].counts,))
        if step is not None or len(decided) < 2:
            return step
        return step_between(decided[-2].counts, decided[-1].counts, steady=not self.flaky)

    @property
    def step_within(self) -> bool:
        """Whether it steps although the agent's configuration and the criteria are the same."""
        decided = [part for part in self._parts if part.n]
        return bool(decided) and step_of(decided[-1].executions or (decided[-1].counts,)) is not None

    @property
    def quarantinable(self) -> bool:
        """Whether a quarantine would hide nothing but chance: it is flaky, did not regress, and was not put right."""
        if not self.flaky:
            return False
        step = self.step
        if step is None:
            return True
        return step.kind == "improvement" and 0 < step.parts[-1][0] < step.parts[-1][1]

    @property
    def _parts(self) -> Sequence[Part]:
        return self.parts or (Part("", self.passed, self.n),)

    @property
    def _spreads(self) -> list[Counts]:
        """Runs that should be alike, as (passed, n): those of one part, and of what only steps each side of it."""
        groups: list[Counts] = []
        for part in self._parts:
            if part.varies:
                groups.append(part.counts)
            else:
                # What only steps has no spread on either side of the step.
                groups += [(part.passed, part.passed), (0, part.n - part.passed)]
        return [group for group in groups if group[1]]

    @property
    def by_agent(self) -> tuple[tuple[str, int, int], ...]:
        """(agent, passed, n), where there are several agents; else nothing."""
        agents: dict[str, tuple[int, int]] = {}
        for part in sorted(self.parts, key=lambda part: part.agent):
            before = agents.get(part.agent, (0, 0))
            agents[part.agent] = (before[0] + part.passed, before[1] + part.n)
        return tuple((agent, *counts) for agent, counts in agents.items()) if len(agents) > 1 else ()

    @property
    def rate(self) -> float | None:
        """The share of runs that passed; None without a verdict."""
        return pass_rate(self.passed, self.n)

    @property
    def interval(self) -> Interval | None:
        """Wilson's 95 % interval of the rate; None: there are too few runs."""
        return interval_of(self.passed, self.n)

    @property
    def variance(self) -> float | None:
        """The variance of a verdict among runs of one agent that should be alike; None where no two are."""
        free = sum(n - 1 for _, n in self._spreads)
        return sum(passed * (n - passed) / n for passed, n in self._spreads) / free if free else None

    @property
    def name(self) -> str:
        """The test's id, with its row and variation where it has them."""
        row = f"#{row_label(self.row, self.row_key)}" if self.row else ""
        return f"{self.test_id}{row}" + (f" [{self.variation}]" if self.variation else "")

    @property
    def address(self) -> str:
        """What `agenteval quarantine add` takes."""
        return f"{self.suite_key}::{self.test_id}"


class VarianceReport(Struct, frozen=True):
    """Whole tests, worst first, and by each (its suite's key, id, variation and row) its criteria, worst first.

    `cut`: there are more runs in the window than `history.trends.NEWEST`, and older ones were not looked at.
    """

    tests: tuple[VarianceComponent, ...]
    criteria: dict[tuple[str, str, str, str], tuple[VarianceComponent, ...]]
    since_ms: int
    cut: bool = False

    @property
    def flaky(self) -> tuple[VarianceComponent, ...]:
        """The flaky tests."""
        return tuple(test for test in self.tests if test.flaky)

    @property
    def changed(self) -> tuple[VarianceComponent, ...]:
        """The tests that are not flaky, and step: from one execution to another, or since the agent's configuration or
        their criteria changed. Regressions first."""
        steps = [(test.step, test) for test in self.tests if not test.flaky]
        stepping = [(step.kind != "regression", test) for step, test in steps if step is not None]
        return tuple(test for _, test in sorted(stepping, key=lambda pair: pair[0]))

    def criteria_of(self, test: VarianceComponent) -> tuple[VarianceComponent, ...]:
        """The criteria of a test."""
        return self.criteria.get(_key(test), ())

    def suggestions(self) -> list[VarianceComponent]:
        """What might go into quarantine: for each flaky test with enough runs its one flaky criterion, if it has only
        one and another to go on gating with, else the whole test. What is in quarantine already is left out, and what
        regressed or was repaired, because that isn't chance."""
        variance_components = []
        for test in self.flaky:
            if test.n < ENOUGH or test.quarantine is not None or not test.quarantinable:
                continue
            criteria = self.criteria_of(test)
            flaky = [criterion for criterion in criteria if criterion.flaky]
            chosen = flaky[0] if len(flaky) == 1 and len(criteria) > 1 else test
            if chosen.quarantine is None and chosen.quarantinable:
                variance_components.append(chosen)
        return variance_components


def ledger(store: Store, trend_query: TrendQuery, at_ms: int, *, judges: bool = True) -> VarianceReport:
    """The ledger of the wanted runs. With `judges`, flaky criteria are looked into for what is the judge's doing.

    Reads transcripts only for those. Raises AgentevalError, HistoryError.
    """
    held = quarantines.active(store, at_ms)
    tests, criteria, since_ms, cut = store.read(lambda connection: _counted(connection, trend_query, held))
    if judges:
        criteria = [
            _with_split(store, trend_query, criterion) if criterion.flaky else replace(criterion, whose="nobody")
            for criterion in criteria
        ]
    worst_first = sorted(criteria, key=_worst_first)
    by_test = {
        key: tuple(listed) for key, listed in grouped((_key(criterion), criterion) for criterion in worst_first).items()
    }
    variance_components = [_with_criteria(test, by_test.get(_key(test), ())) for test in tests]
    return VarianceReport(tuple(sorted(variance_components, key=_worst_first)), by_test, since_ms, cut)


def _key(component: VarianceComponent) -> tuple[str, str, str, str]:
    return component.suite_key, component.test_id, component.variation, component.row_key


def _worst_first(component: VarianceComponent) -> tuple[float, int, str, str]:
    # The least predictable first: nearest to a half. Among equals those that more is known of.
    spread = sum(passed * (n - passed) / n for passed, n in component._spreads) / component.n if component.n else 0.0
    return -spread, -component.n, component.test_id, component.criterion


def _counted(
    connection: Connection, trend_query: TrendQuery, held: ActiveQuarantines
) -> tuple[list[VarianceComponent], list[VarianceComponent], int, bool]:
    test_names = rows.tests_known(connection)
    picked = select_runs(connection, trend_query, test_names)
    since_ms, cut = rows.newest_runs(connection, picked, rows.NEWEST)
    picked = replace(picked, since_ms=since_ms)
    names = {test_name.row: test_name for test_name in test_names}
    tests = []
    place = rows.TimeBucket(0, picked.since_ms, picked.until_ms)
    ended = grouped(
        ((tally.test, tally.variation, tally.row), tally)
        for tally in rows.tallies(connection, picked, [place], "setting")
    )
    settings_seen = rows.settings_seen(connection, picked)
    criteria_of = rows.criteria_of_plans(connection, sorted({int(key.split("\x1f")[2]) for key in settings_seen}))
    places = rows.rows_known(connection, sorted({row for _, _, row in ended if row}))
    for (number, variation, row), every in ended.items():
        test = names[number]
        row_key, place_then = places.get(row, ("", 0))
        of_executions = []
        for tally in every:
            agent, version, plan, execution = tally.key.split("\x1f")
            n = tally.passed + tally.failed + (tally.errors if trend_query.count_errors else 0)
            last_ms = settings_seen.get(tally.key, 0)
            part = Part(agent, tally.passed, n, version, criteria_of.get(int(plan), ""), last_ms)
            of_executions.append((int(execution), part))
        parts = _parts_of(of_executions)
        tests.append(
            extended(
                VarianceComponent,
                test,
                variation=variation,
                row=place_then,
                criterion="",
                criterion_hash="",
                n=sum(part.n for part in parts),
                passed=sum(tally.passed for tally in every),
                errors=sum(tally.errors for tally in every),
                review=sum(tally.review for tally in every),
                quarantine=held.test(test.suite_key, test.test_id),
                parts=parts,
                row_key=row_key,
            )
        )
    criteria = []
    for verdict in rows.verdicts(connection, picked):
        test = names[verdict.test]
        row_key, place_then = places.get(verdict.row, ("", 0))
        criteria.append(
            extended(
                VarianceComponent,
                test,
                verdict,
                row=place_then,
                criterion=verdict.name,
                criterion_hash=verdict.criterion,
                n=verdict.passed + verdict.failed,
                quarantine=held.criterion(test.suite_key, test.test_id, verdict.name),
                parts=_parts_of(
                    (execution, Part(agent, passed, passed + failed, version, str(criterion), last))
                    for agent, version, criterion, execution, passed, failed, last in verdict.by_agent
                ),
                row_key=row_key,
            )
        )
    return tests, criteria, since_ms, cut


def _with_split(store: Store, trend_query: TrendQuery, component: VarianceComponent) -> VarianceComponent:
    asks = judge_variance.asks_somebody(store, component.criterion_hash)
    if asks is None:
        return component
    if not asks:
        # The same output gives the same verdict: whatever varies is the output.
        return replace(component, whose="agent")

    def newest(connection: Connection) -> list[int]:
        test_names = rows.tests_known(connection)
        (row,) = (
            test.row
            for test in test_names
            if (test.suite_key, test.test_id) == (component.suite_key, component.test_id)
        )
        picked = replace(select_runs(connection, trend_query, test_names), tests=(row,))
        number = rows.row_number(connection, row, component.row_key)
        return rows.runs_of(connection, picked, component.variation, number, _JUDGED_RUNS)

    runs = store.run_rows(store.read(newest))
    variance_split = judge_variance.split_verdicts(judge_variance.verdicts_of(store, runs, component.criterion_hash))
    if variance_split is None:
        return component
    share = variance_split.judge_share
    # Without two verdicts on one output, nothing tells the judge's share from the agent's.
    if share is None:
        return replace(component, split=variance_split)
    whose: Whose = "judge" if share >= 0.75 else "agent" if share <= 0.25 else "both"
    return replace(component, split=variance_split, whose=whose)


def _parts_of(listed: Iterable[tuple[int, Part]]) -> tuple[Part, ...]:
    """One for each configuration and version, the newest last: an agent is its configuration, whatever it is called.
    `listed`: each with the execution (a row number) that its runs are of."""
    parts: dict[tuple[str, str], Part] = {}
    executions: dict[tuple[str, str], dict[int, Counts]] = {}
    # The newest last: a part that is met again goes to the end.
    for execution, part in sorted(listed, key=lambda pair: (pair[1].last_ms, pair[0])):
        # Without a known configuration the agent's name stands for it; the sign keeps it apart from all hashes.
        key = (part.version or f"\x1f{part.agent}", part.criteria)
        before = parts.pop(key, Part("", 0, 0))
        counts = executions.setdefault(key, {})
        passed, n = counts.get(execution, (0, 0))
        counts[execution] = (passed + part.passed, n + part.n)
        parts[key] = part._replace(passed=before.passed + part.passed, n=before.n + part.n)
    return tuple(part._replace(executions=tuple(executions[key].values())) for key, part in parts.items())


def _with_criteria(test: VarianceComponent, criteria: Sequence[VarianceComponent]) -> VarianceComponent:
    """The test, with the findings of its criteria."""
    by_criteria = any(criterion.flaky for criterion in criteria)
    whose = _of_criteria(criteria) if by_criteria or test.flaky else "nobody"
    return replace(test, by_criteria=by_criteria, whose=whose)


def _of_criteria(criteria: Sequence[VarianceComponent]) -> Whose:
    """The cause of a flaky test: the cause of its flaky criteria, or "both" if they have different ones."""
    # One criterion of which it is not known may have all the blame.
    whose = {criterion.whose for criterion in criteria if criterion.flaky}
    if not whose or "unknown" in whose:
        return "unknown"
    return whose.pop() if len(whose) == 1 else "both"
