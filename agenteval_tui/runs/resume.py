"""From an execution in the history to the plan of what is missing in it: same execution, same run ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from agenteval_tui.agents.stored_config import put_back
from agenteval_tui.core.directories import config_dir, db_option
from agenteval_tui.core.document import extended
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.history.merge import MERGED
from agenteval_tui.history.recordings import PROGRAM
from agenteval_tui.history.records import CostRow, ExecutionRow, RunRow, StoredTask
from agenteval_tui.history.store import Store
from agenteval_tui.runs.budget import Spending
from agenteval_tui.runs.events import RunRef
from agenteval_tui.runs.fork.model import read_origin
from agenteval_tui.runs.grading_pool import failed_criteria
from agenteval_tui.runs.judge_resolution import Respondents
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.runs.plan.gates import FAIL_UNDER_TEST, StoredGates
from agenteval_tui.runs.plan.model import (
    EarlierRun,
    Limits,
    Plan,
    RunPlan,
    check_executor,
    check_surroundings,
    cluster_of,
)
from agenteval_tui.runs.plan.options import DEFAULT_CONCURRENCY, PlanOptions
from agenteval_tui.runs.task_payload import Setup, file_digest, read_setup, run_plan
from agenteval_tui.runs.trust_check import check_trust
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.model import AgentConfig, Suite

_SETTLED = ("passed", "failed", "skipped", "needs_review", "error")
_GIVEN_ANEW = (
    "concurrency",
    "max_cost",
    "max_tokens",
    "max_seconds",
    "cache",
    "executor",
    "scheduler",
    FAIL_UNDER_TEST,
)


class StoredPlan(Struct, frozen=True):
    """A stored run as it was planned, and who may be asked to judge. `foreign`: something of its execution came from
    another history; `own`: the user's agents as they are now."""

    run: RunPlan
    respondents: Respondents
    concurrency: int
    foreign: bool
    own: Mapping[str, AgentConfig]


def stored_plan(store: Store, row: RunRow, *, user_agents: Mapping[str, AgentConfig] | None = None) -> StoredPlan:
    """What a run was planned from, ready to be run again: its task, agent and criteria, with the keys of now.

    Raises `AgentevalError`: it was imported or is too old, or a key is nowhere to be found.
    """
    execution = store.execution(row.execution_id)
    setup_data, tasks = store.setup_of(row.execution_id), store.tasks_of(row.execution_id)
    if setup_data is None or row.id not in tasks:
        raise AgentevalError(
            "this run was imported: the request to its agent is not in the history",
            where=f"run {row.id}",
            fix="`agenteval make-test RUN` makes a test from it: run that with an agent, and use the new run; or let "
            "an agent continue it: `agenteval fork RUN --agent NAME`",
        )
    setup = read_setup(setup_data)
    sources = _Sources(user_agents, setup)
    setup = replace(setup, agents=sources.agents_for([row], tasks), respondents=sources.respondents)
    (run,) = _runs([row], tasks, setup, StoredGates(execution.options))
    if run.around is not None:
        # What hooks brought then is in the conversation that was recorded.
        run = replace(run, variables=row.variables, around=replace(run.around, asks=None))
    return StoredPlan(
        run, setup.respondents, setup.concurrency, execution.options.get(MERGED) is True, sources.user_agents()
    )


class ResumePlan(Struct, frozen=True):
    """The plan of what is missing, and what a person should know about it."""

    plan: Plan
    notices: tuple[str, ...] = ()


def resume_plan(
    store: Store,
    reference: str,
    options: PlanOptions | None = None,
    *,
    errors: bool = False,
    user_agents: Mapping[str, AgentConfig] | None = None,
) -> ResumePlan:
    """Plan what is missing of an execution (an id, its beginning, or "last"); nothing is written yet.

    Missing is every run without an outcome: queued, cut off while it ran, or cancelled, alone or with all others.
    With `errors` also those whose agent, or grading, ended in an error. What passed, failed, was skipped or waits for
    a person is never run again. Of `options` only `concurrency`, the limits, `cache`, `trust`, `executor` and
    `scheduler` count, where they are given; for the rest the execution stays as it was planned. `user_agents` (None:
    those of the user's agents.yaml) are asked for keys that are written in a configuration, and so are not stored.

    Raises `AgentevalError`: it is running, was imported, is too old, nothing is missing, a limit is reached already,
    a key is nowhere to be found; and `NotTrustedError`.
    """
    plan_options = options or PlanOptions()
    row = store.execution(reference)
    if PROGRAM in row.options:
        raise AgentevalError(
            "a recording of a program can't be resumed",
            where=f"execution {row.id}",
            fix="give its command again: answers that were paid for are kept for a day",
        )
    if row.kind == "import":
        raise AgentevalError(
            "this execution was imported: there is nothing to resume",
            where=f"execution {row.id}",
            fix="import its file again to add what is missing",
        )
    if row.status == "running":
        raise AgentevalError(
            "this execution is running",
            where=f"execution {row.id}",
            fix=f"watch it: agenteval attach {short_id(row.id)}{db_option(store.path)}",
        )
    setup_data = store.setup_of(row.id)
    if setup_data is None:
        raise AgentevalError(
            "this execution can't be resumed: what its runs were planned from is not stored",
            where=f"execution {row.id}",
            fix="run its suites again: agenteval run " + (row.source or "PATH"),
        )
    setup = read_setup(setup_data)
    rows = store.runs_of_execution(row.id)
    missing = [row for row in rows if row.status not in _SETTLED or (errors and row.status == "error")]
    if not missing:
        _nothing(row)
    merged = _options(row, plan_options)
    check_executor(merged)
    spent = store.costs(row.id)
    _check_limits(spent, row, merged)
    kept_options = {**row.options, **to_builtins(merged)}
    gates = StoredGates(kept_options)
    earlier = tuple(_earlier(store, rows, {run_row.id for run_row in missing}, gates))
    tasks = store.tasks_of(row.id)
    sources = _Sources(user_agents, setup)
    setup = replace(setup, agents=sources.agents_for(missing, tasks), respondents=sources.respondents)
    plan = Plan(
        execution_id=row.id,
        title=row.title,
        kind=row.kind,
        runs=tuple(
            replace(run, fork=read_origin(run_row.fork_of, run_row.fork))
            for run_row, run in zip(missing, _runs(missing, tasks, setup, gates), strict=True)
        ),
        concurrency=merged.concurrency or setup.concurrency,
        source=row.source,
        options=kept_options,
        respondents=setup.respondents,
        trust=plan_options.trust,
        limits=_limits_left(merged, spent, earlier),
        cache=merged.cache,
        earlier=earlier,
        order=tuple(row.id for row in rows),
        # The default number means that nobody chose one: as many as the cluster takes.
        cluster=cluster_of(merged, all_threads=merged.concurrency is None and setup.concurrency == DEFAULT_CONCURRENCY),
    )
    # Again: another executor may be given than the one that it was planned with.
    check_surroundings(plan.runs, merged.executor)
    # Who wrote an agent is told by the user's file as it is now: the history may have come from somebody else.
    permission = check_trust(plan, own=sources.user_agents(), foreign=row.options.get(MERGED) is True)
    return ResumePlan(replace(plan, permission=permission), tuple(_changes(setup, missing)))


def _nothing(row: ExecutionRow) -> None:
    fix = "nothing is missing"
    if row.errors:
        fix += f"; with --errors the {row.errors:,} that ended in an error run again"
    raise AgentevalError(f"all {row.runs:,} runs of this execution have ended", where=f"execution {row.id}", fix=fix)


def _options(row: ExecutionRow, plan_options: PlanOptions) -> PlanOptions:
    """What the execution was started with, and what was said anew."""
    anew = {name: value for name in _GIVEN_ANEW if (value := getattr(plan_options, name)) not in (None, "")}
    stored = {name: value for name, value in row.options.items() if name in PlanOptions.__struct_fields__}
    # Trust was given for what stood in the folder then; it is asked for again.
    stored.pop("trust", None)
    try:
        return convert({**stored, **anew}, PlanOptions)
    except ValidationError as error:
        raise AgentevalError(f"the options of this execution can't be read: {error}") from error


def _limits_left(options: PlanOptions, spent: Sequence[CostRow], earlier: Sequence[EarlierRun]) -> Limits:
    """The limits, less what was used and is in none of the earlier runs: by judges, and by attempts that failed."""
    used = _used(spent)
    # Earlier runs are told to the new engine, which counts them itself.
    cost = used.cost - sum(earlier_run.cost or 0.0 for earlier_run in earlier)
    tokens = used.tokens - sum((run.input_tokens or 0) + (run.output_tokens or 0) for run in earlier)
    return Limits(
        # The sums differ in their last digits, though no cost is left over.
        options.max_cost if options.max_cost is None or cost < 1e-9 else options.max_cost - cost,
        options.max_tokens if options.max_tokens is None else options.max_tokens - max(tokens, 0),
        options.max_seconds,
    )


def _used(spent: Sequence[CostRow]) -> Spending:
    cost = sum(cost_row.cost or 0.0 for cost_row in spent)
    return Spending(cost, sum(cost_row.input_tokens + cost_row.output_tokens for cost_row in spent))


def _check_limits(spent: Sequence[CostRow], row: ExecutionRow, options: PlanOptions) -> None:
    used = _used(spent)
    if options.max_cost is not None and used.cost >= options.max_cost:
        raise AgentevalError(
            f"this execution has cost ${used.cost:.4f} so far, and may cost ${options.max_cost:g}",
            where=f"execution {row.id}",
            fix="give a higher limit for all of it: --max-cost USD",
        )
    if options.max_tokens is not None and used.tokens >= options.max_tokens:
        raise AgentevalError(
            f"this execution has used {used.tokens:,} tokens so far, and may use {options.max_tokens:,}",
            where=f"execution {row.id}",
            fix="give a higher limit for all of it: --max-tokens N",
        )


def _runs(missing: list[RunRow], tasks: Mapping[str, StoredTask], setup: Setup, gates: StoredGates) -> list[RunPlan]:
    plans = []
    for row in missing:
        stored = tasks.get(row.id)
        if stored is None:
            raise AgentevalError(
                f"the history no longer has the data to run test {row.test_id!r} again",
                where=f"run {row.id}",
                fix=f"run the suite again: {row.suite_key}",
            )
        plans.append(
            run_plan(
                stored.task,
                setup,
                _ref(row, gates),
                suite_key=row.suite_key,
                suite_name=row.suite_name,
                variables=row.variables,
                tags=row.tags,
                seed=stored.seed,
            )
        )
    return plans


def _ref(row: RunRow, gates: StoredGates) -> RunRef:
    gate = gates.of(row.suite_key, row.test_id)
    return extended(
        RunRef,
        row,
        run=row.id,
        test=row.test_id,
        suite=row.suite_name,
        gate=gate.pass_rate if gate is not None else None,
    )


def _earlier(store: Store, rows: list[RunRow], missing: set[str], gates: StoredGates) -> list[EarlierRun]:
    earlier_runs = []
    for row in rows:
        if row.id in missing:
            continue
        # Results are read only where a watcher shows them: most runs of a large execution passed.
        not_passed = row.status in ("failed", "error", "needs_review")
        earlier_runs.append(
            EarlierRun(
                _ref(row, gates),
                status=row.status,
                score=row.score,
                failed=failed_criteria(store.results(row.id)) if not_passed else (),
                duration_ms=row.duration_ms or 0.0,
                # What came from the history was paid for there.
                input_tokens=None if row.cached else row.input_tokens,
                output_tokens=None if row.cached else row.output_tokens,
                cost=None if row.cached else row.cost,
                error=row.error_message,
                not_made=row.checks_not_made,
            )
        )
    return earlier_runs


def _changes(setup: Setup, missing: list[RunRow]) -> list[str]:
    """What is not any more as it was when the execution was planned."""
    keys = {run_row.suite_key for run_row in missing}
    changed = [key for key, digest in setup.digests.items() if key in keys and file_digest(key) not in ("", digest)]
    missing_files = [key for key in setup.digests if key in keys and not Path(key).exists()]
    changes = []
    if changed:
        changes.append(
            f"changed since this execution was planned: {', '.join(changed)}; the missing runs will run as planned then"
        )
    if missing_files:
        changes.append(f"no longer there: {', '.join(missing_files)}; the missing runs will run as planned")
    return changes


class _Sources:
    """Where keys written in a configuration come from: the user's agents.yaml and the suites as they are now."""

    def __init__(self, user_agents: Mapping[str, AgentConfig] | None, setup: Setup) -> None:
        self._given = user_agents
        self._setup = setup
        self._suites: dict[str, Suite | None] = {}

    @property
    def respondents(self) -> Respondents:
        """Those of the execution; where one had a key written in, all are as they are configured now."""
        stored = self._setup.respondents
        if not self._setup.hidden_judges:
            return stored
        suites = dict(stored.suites)
        for key, (suite, folder) in stored.suites.items():
            suites[key] = (self._suite(key) or suite, folder)
        return Respondents(suites, {**stored.user_agents, **self.user_agents()}, stored.judge)

    def agents_for(self, missing: list[RunRow], tasks: Mapping[str, StoredTask]) -> dict[str, AgentPlan]:
        """The agents of the execution, with the keys of those that the missing runs need."""
        agents = dict(self._setup.agents)
        for row in missing:
            task = tasks[row.id].task if row.id in tasks else {}
            for name in (task.get("agent"), task.get("user", {}).get("agent")):
                withheld = self._setup.withheld.get(name) if name is not None else None
                if name is not None and withheld and agents[name] is self._setup.agents[name]:
                    agents[name] = self._with_keys(agents[name], withheld, row)
        return agents

    def _with_keys(self, agent: AgentPlan, withheld: tuple[tuple[str, ...], ...], row: RunRow) -> AgentPlan:
        for config in self._configs(agent, row.suite_key):
            whole = put_back(agent.config, withheld, config)
            if whole is not None:
                return replace(agent, config=whole)
        raise AgentevalError(
            f"agent {agent.name!r} had a key written into its configuration, which is never stored, and it is no "
            "longer there",
            where=f"{'.'.join(withheld[0])} of agent {agent.name!r}",
            fix="write it into the configuration again, best as ${NAME} of an environment variable",
        )

    def _configs(self, agent: AgentPlan, suite_key: str) -> list[dict[str, Any]]:
        suite = self._suite(suite_key)
        own = suite.agents.get(agent.name) if suite is not None else None
        users = self.user_agents().get(agent.name)
        return [agent_config.as_dict() for agent_config in (own, users) if agent_config is not None]

    def _suite(self, key: str) -> Suite | None:
        if key not in self._suites:
            try:
                self._suites[key] = load_suite(Path(key)).suite
            except AgentevalError:
                self._suites[key] = None
        return self._suites[key]

    def user_agents(self) -> Mapping[str, AgentConfig]:
        """The agents that the user wrote, as they are now."""
        if self._given is None:
            self._given = load_agents(config_dir())
        return self._given
