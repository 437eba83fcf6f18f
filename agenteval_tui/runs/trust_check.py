"""Which programs a plan would start on this machine, and whether the user trusts the repositories that say so.

A suite is often somebody else's. What it can start: agents that are programs, tools that are functions, commands or
MCP servers, functions that grade. It can also name files outside of its folder, whose content would go to an agent, and
a server of its own for one of the user's keys.
What the user wrote (agents.yaml of the configuration folder) and what ships with the program is trusted as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.agents.key_destinations import sends_keys
from agenteval_tui.agents.permission import (
    Permission,
    TrustRequirement,
    Use,
    executes,
    leads_outside,
    merge_needs,
    permission_for,
    uses_of_agent,
    uses_of_code,
)
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading import registry
from agenteval_tui.grading.placeholders import has_placeholders
from agenteval_tui.grading.remote import RemoteMetric
from agenteval_tui.grading.remote_requests import RemoteRequest
from agenteval_tui.grading.spec import CriterionSpec, metrics_in
from agenteval_tui.runs.agent_factory import Configured
from agenteval_tui.runs.around.plan import Surroundings
from agenteval_tui.runs.judge_resolution import Respondents
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.variation import deep_merge
from agenteval_tui.suites.datasets import dataset_files
from agenteval_tui.suites.discover import discover
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.model import AgentConfig
from agenteval_tui.suites.trust import Sending, repository_of


def needs_of(plan: Plan) -> tuple[TrustRequirement, ...]:
    """What the runs of a plan, and their grading, would start, read or send beyond the suites' folders, by repository.

    What needs no trust is not in it; nothing is started.
    """
    return merge_needs(_uses_of(plan))


def _uses_of(plan: Plan, *, own: Mapping[str, AgentConfig] | None = None) -> tuple[Use, ...]:
    """All that a plan uses and that could need trust: each agent, context and criterion is looked at once."""
    uses: list[Use] = []
    users = plan.respondents.user_agents if own is None else own
    respondents = plan.respondents
    keys: set[tuple[object, ...]] = set()

    # Repetitions share agents, contexts and criteria: each is looked at once, since looking reads files.
    def new(*key: object) -> bool:
        if key in keys:
            return False
        keys.add(key)
        return True

    for run in plan.runs:
        suite_key = run.suite_key
        if new("agent", suite_key, run.agent.hash):
            uses += _of_agent(respondents, suite_key, run.agent, users)
        if run.user is not None and new("agent", suite_key, run.user.agent.hash):
            uses += _of_agent(respondents, suite_key, run.user.agent, users)
        if run.around is not None and new("around", suite_key, id(run.around.hooks), run.ref.test):
            uses += _of_surroundings(run.around)
        if run.context and new("context", suite_key, id(run.context)):
            uses.append(Use(respondents.base_dir(suite_key), executes({}, run.base_dir, run.context)))
        if run.state and new("state", suite_key, id(run.state)):
            uses += _of_probes(respondents.base_dir(suite_key), run.state)
        for spec in run.specs:
            if new("spec", suite_key, id(spec)):
                uses += _of_spec(respondents, suite_key, spec, users)
        for file in run.files:
            if leads_outside(file, folder := respondents.base_dir(suite_key)) and new("file", suite_key, file):
                uses.append(Use(folder, (f"sends the file {file}",)))
        if run.ref.row and new("rows", suite_key, run.ref.test):
            uses.append(Use(respondents.base_dir(suite_key), tuple(_dataset(plan, suite_key, run.ref.test))))
    return tuple(uses)


def check_trust(
    plan: Plan,
    *,
    own: Mapping[str, AgentConfig] | None = None,
    foreign: bool = False,
) -> Permission:
    """The permission for all that the plan would use. Raises `NotTrustedError`.

    It is given where the plan says so already (`PlanOptions.trust`), and where each repository is trusted and what it
    sends was agreed. A plan that needs no trust gets a permission for nothing else.

    `foreign`: the plan came with somebody else's history. What it would start stands nowhere in the folders that it
    names, so that it is asked about whatever is trusted. `own`: the agents that the user wrote (None: those that
    the plan says are).
    """
    return permission_for(_uses_of(plan, own=own), everything=plan.trust, foreign=foreign)


def check_asking(
    respondents: Respondents, cases: Iterable[tuple[str, CriterionSpec]], *, trusted: bool = False
) -> Permission:
    """The permission to ask the respondents of criteria: (suite key, criterion) of each. Raises `NotTrustedError`.
    `trusted`: the user allowed it for this time.
    """
    specs: dict[tuple[str, str], CriterionSpec] = {(key, spec.hash): spec for key, spec in cases}
    uses = [
        use for (key, _), spec in specs.items() for use in _of_spec(respondents, key, spec, respondents.user_agents)
    ]
    return permission_for(uses, everything=trusted)


def check_use(use: Use, *, trusted: bool = False) -> Permission:
    """The permission for one use. Raises `NotTrustedError`. `trusted`: the user allowed it for this time."""
    return permission_for([use], everything=trusted)


def check_agents(agents: Iterable[Configured], *, trusted: bool = False) -> Permission:
    """The permission to use agents as they are configured. Raises `NotTrustedError`. `trusted`: the user allowed it for
    this time.
    """
    uses = [
        use
        for agent in agents
        for use in uses_of_agent(agent.base_dir, agent.config, agent.base_dir, own=not agent.suite)
    ]
    return permission_for(uses, everything=trusted)


def sends_below(folder: Path) -> tuple[Sending, ...]:
    """The secrets that agents of the suites in this folder would send; suites of other repositories, and those with
    errors, are passed over. Raises `AgentevalError` as `discover` does."""
    root, sends = repository_of(folder), dict[Sending, None]()
    for path in discover([folder]):
        base = path.resolve().parent
        try:
            suite = load_suite(path).suite
        except AgentevalError:
            continue
        if suite is None or repository_of(base) != root:
            continue
        changes = [variation.config for test in suite.tests for variation in test.variations if variation.config]
        for agent in suite.agents.values():
            for config in (agent.as_dict(), *(deep_merge(agent.as_dict(), change) for change in changes)):
                sends.update(dict.fromkeys(sends_keys(config, base)))
    return tuple(sends)


def asks_judge(spec: CriterionSpec) -> bool:
    """Whether a judge is asked for this criterion."""
    return any(kind == "chat" for kind, _ in _remote(spec))


def _of_agent(
    respondents: Respondents, suite_key: str, agent: AgentPlan, users: Mapping[str, AgentConfig]
) -> Iterator[Use]:
    """The uses of an agent: on whose word, and what it starts.

    An agent of the user's own is trusted as the user wrote it. With something of a suite merged in, it is the suite's
    word: another argument or variable can make another program of it.
    """
    folder = agent.base_dir
    if folder.resolve() != directories.config_dir().resolve():
        return uses_of_agent(folder, agent.config, folder)
    own = users.get(agent.name)
    if (own is not None and own.as_dict() == agent.config) or agent.config == {"kind": agent.name}:
        return uses_of_agent(folder, agent.config, folder, own=True)
    return uses_of_agent(respondents.base_dir(suite_key), agent.config, folder)


def _of_surroundings(around: Surroundings) -> Iterator[Use]:
    """What services and hooks would execute, and the folder that is copied for runs."""
    folder = Path(around.folder)
    if leads_outside(around.copied, folder):
        yield Use(folder, (f"copies the folder {around.copied}",))
    for service in around.services:
        yield Use(folder, (service.description,))
    for hook in around.hooks:
        yield Use(folder, (hook.description,))
        if hook.callable:
            yield from uses_of_code(folder, hook.callable, "python function", folder)


def _of_spec(
    respondents: Respondents, suite_key: str, spec: CriterionSpec, users: Mapping[str, AgentConfig]
) -> Iterator[Use]:
    """What grading a criterion uses: functions, judges, embedders."""
    folder = respondents.base_dir(suite_key)
    for function in _functions(spec):
        yield Use(folder, (f"python function {function}",))
        yield from uses_of_code(folder, function, "python function", folder)
    for agent in _respondents(respondents, suite_key, spec):
        yield from _of_agent(respondents, suite_key, agent, users)


def _of_probes(folder: Path, state: Mapping[str, Mapping[str, Any]]) -> Iterator[Use]:
    """What reading the state of a run uses: programs, functions, places outside of the folder, values of variables
    that an address takes along."""
    if not state:
        return
    # 80 ms of httpx, which who grades a stored run does not need.
    from agenteval_tui.agents.probes.probe import Probe

    for name, written in state.items():
        probe = Probe.of(name, written)
        if probe.runs_code:
            # The files that its command names are what it reads: they change from run to run.
            yield Use(folder, (probe.description,))
        elif probe.kind == "url":
            sends = sends_keys({"kind": "http", "url": probe.target}, folder)
            yield Use(folder, (probe.description,) if sends else (), sends)
        elif any("{{" in place or leads_outside(place, folder) for place in probe.places):
            yield Use(folder, (probe.description,))


def _dataset(plan: Plan, suite_key: str, test_id: str) -> Iterator[str]:
    suite, folder = plan.respondents.suites.get(suite_key, (None, None))
    test = suite.test(test_id) if suite is not None else None
    if (
        test is not None
        and test.dataset is not None
        and folder is not None
        and any(
            leads_outside(path, folder)
            for path in (test.dataset.file, *(str(file.absolute()) for file in dataset_files(test.dataset, folder)))
        )
    ):
        yield f"reads the dataset {test.dataset.file}"


def _functions(spec: CriterionSpec) -> Iterator[str]:
    for kind, metric in _remote(spec):
        if kind == "call":
            yield str(metric.get("function", ""))


def _respondents(respondents: Respondents, suite_key: str, spec: CriterionSpec) -> Iterator[AgentPlan]:
    """The agents that judge or embed for a criterion."""
    for kind, metric in _remote(spec):
        if kind not in ("chat", "embed"):
            continue
        name = metric.get("judge" if kind == "chat" else "embedder") or ""
        if not isinstance(name, str) or has_placeholders(name):
            continue
        try:
            yield respondents.asked(RemoteRequest(kind, name, {}), suite_key)
        except AgentevalError:
            continue  # nothing is asked; the result says why


def _remote(spec: CriterionSpec) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """The metrics of a criterion that somebody is asked for: (kind of question, the metric as it was written)."""
    if spec.broken:
        return
    for metric in metrics_in(spec.value):
        model = registry.metric_of(metric)
        if model is not None and issubclass(model, RemoteMetric):
            yield model.asks, metric
