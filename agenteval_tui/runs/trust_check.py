"""Which programs a plan would start on this machine, and whether the user trusts the folders that say so.

A suite is often somebody else's. What it can start: agents that are programs, tools that are functions, commands or
MCP servers, functions that grade. It can also name files outside of its folder, whose content would go to an agent, and
a server of its own for one of the user's keys.
What the user wrote (agents.yaml of the configuration folder) and what ships with the program is trusted as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.agents.permission import (
    Permission,
    TrustRequirement,
    Use,
    leads_outside,
    merge_needs,
    needs_of_agent,
    permission_for,
    use_of_agent,
)
from agenteval_tui.agents.process.named_files import files_of_agent
from agenteval_tui.agents.process.trust_description import executes
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading import registry
from agenteval_tui.grading.placeholders import has_placeholders
from agenteval_tui.grading.remote import RemoteMetric
from agenteval_tui.grading.remote_requests import RemoteRequest
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.runs.agent_factory import Configured
from agenteval_tui.runs.around.plan import Surroundings
from agenteval_tui.runs.judge_resolution import Respondents
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.variation import deep_merge
from agenteval_tui.suites.datasets import dataset_files
from agenteval_tui.suites.discover import is_suite_name
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.model import AgentConfig


def needs_of(plan: Plan) -> tuple[TrustRequirement, ...]:
    """What the runs of a plan, and their grading, would start, read or send beyond the suites' folders, by folder.

    What needs no trust is not in it; nothing is started.
    """
    return merge_needs(_uses_of(plan))


def _uses_of(plan: Plan, *, own: Mapping[str, AgentConfig] | None = None) -> tuple[Use, ...]:
    """All that a plan uses and that could need trust: each agent, context and criterion is looked at once."""
    uses: list[Use] = []
    users = plan.respondents.user_agents if own is None else own
    respondents = plan.respondents
    seen: set[tuple[object, ...]] = set()

    def new(*key: object) -> bool:
        if key in seen:
            return False
        seen.add(key)
        return True

    for run in plan.runs:
        suite_key = run.suite_key
        if new("agent", suite_key, run.agent.hash):
            uses.append(_of_agent(respondents, suite_key, run.agent, users))
        if run.user is not None and new("agent", suite_key, run.user.agent.hash):
            uses.append(_of_agent(respondents, suite_key, run.user.agent, users))
        if run.around is not None and new("around", suite_key, id(run.around.hooks), run.ref.test):
            uses += _of_surroundings(run.around)
        if run.context and new("context", suite_key, id(run.context)):
            uses.append(Use(respondents.base_dir(suite_key), executes({}, run.base_dir, run.context)))
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

    It is given where the plan says so already (`PlanOptions.trust`), and where each folder was trusted with exactly
    what is in it now. A plan that needs no trust gets a permission for nothing else.

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
    seen: dict[tuple[str, str], CriterionSpec] = {(key, spec.hash): spec for key, spec in cases}
    uses = [use for (key, _), spec in seen.items() for use in _of_spec(respondents, key, spec, respondents.user_agents)]
    return permission_for(uses, everything=trusted)


def check_sending(folder: Path, what: str, *, trusted: bool = False) -> Permission:
    """The permission to send what is worked out in a folder (`what` says it in words). Raises `NotTrustedError`."""
    return check_use(Use(folder, (what,)), trusted=trusted)


def check_use(use: Use, *, trusted: bool = False) -> Permission:
    """The permission for one use. Raises `NotTrustedError`. `trusted`: the user allowed it for this time."""
    return permission_for([use], everything=trusted)


def check_agents(agents: Iterable[Configured], *, trusted: bool = False) -> Permission:
    """The permission to use agents as they are configured. Raises `NotTrustedError`. `trusted`: the user allowed it for
    this time.
    """
    return permission_for([_use_of(agent) for agent in agents], everything=trusted)


def _use_of(agent: Configured) -> Use:
    """The use of an agent as it is configured: by its suite's folder, or as the user's own."""
    return use_of_agent(agent.base_dir, agent.config, agent.base_dir, own=not agent.suite)


def files_of(folder: Path) -> tuple[Path, ...]:
    """Every file that commands of the suites in this folder name: what is trusted together with the folder."""

    found: dict[Path, None] = {}
    try:
        paths = sorted(path for path in folder.iterdir() if is_suite_name(path.name) and path.is_file())
    except OSError:
        return ()
    for path in paths:
        try:
            suite = load_suite(path).suite
        except AgentevalError:
            continue
        if suite is None or path.resolve().parent != folder.resolve():
            continue
        for agent in suite.agents.values():
            changes = [variation.config for test in suite.tests for variation in test.variations if variation.config]
            for config in (agent.as_dict(), *(deep_merge(agent.as_dict(), change) for change in changes)):
                if needs_of_agent(config, folder):
                    found.update(dict.fromkeys(files_of_agent(config, folder).files))
    return tuple(found)


def adds_code(before: CriterionSpec, after: CriterionSpec) -> bool:
    """Whether a criterion calls a function that it did not call before, or calls it with something else. Who trusted
    the folder did not trust that, unless it is the user who wrote it."""
    called = [metric for kind, metric in _remote(before) if kind == "call"]
    return any(metric not in called for kind, metric in _remote(after) if kind == "call")


def asks_judge(spec: CriterionSpec) -> bool:
    """Whether a judge is asked for this criterion."""
    return any(kind == "chat" for kind, _ in _remote(spec))


def _of_agent(respondents: Respondents, suite_key: str, agent: AgentPlan, users: Mapping[str, AgentConfig]) -> Use:
    """The use of an agent: on whose word, and what it starts.

    An agent of the user's own is trusted as the user wrote it. With something of a suite merged in, it is the suite's
    word: another argument or variable can make another program of it.
    """
    folder = agent.base_dir
    if folder.resolve() != directories.config_dir().resolve():
        return use_of_agent(folder, agent.config, folder)
    own = users.get(agent.name)
    if (own is not None and own.as_dict() == agent.config) or agent.config == {"kind": agent.name}:
        return use_of_agent(folder, agent.config, folder, own=True)
    return use_of_agent(respondents.base_dir(suite_key), agent.config, folder)


def _of_surroundings(around: Surroundings) -> Iterator[Use]:
    """What services and hooks would execute, and the folder that is copied for runs."""
    folder = Path(around.folder)
    if leads_outside(around.copied, folder):
        yield Use(folder, (f"copies the folder {around.copied}",))
    entries: list[tuple[str, dict[str, Any]]] = [
        (service.said, {"command": service.argv, "cwd": service.cwd, "env": dict(service.env)})
        for service in around.services
    ]
    for hook in around.hooks:
        what = {"callable": hook.callable} if hook.callable else {"command": hook.argv}
        entries.append((hook.said, {**what, "env": dict(hook.env)}))
    for said, entry in entries:
        named = files_of_agent(entry, folder)
        yield Use(folder, (said,), named.files, "", named.written)


def _of_spec(
    respondents: Respondents, suite_key: str, spec: CriterionSpec, users: Mapping[str, AgentConfig]
) -> Iterator[Use]:
    """What grading a criterion uses: functions, judges, embedders."""
    functions = tuple(_functions(spec))
    if functions:
        yield Use(respondents.base_dir(suite_key), functions)
    for agent in _respondents(respondents, suite_key, spec):
        yield _of_agent(respondents, suite_key, agent, users)


def _dataset(plan: Plan, suite_key: str, test_id: str) -> Iterator[str]:
    suite, folder = plan.respondents.suites.get(suite_key, (None, None))
    test = suite.test(test_id) if suite is not None else None
    if (
        test is not None
        and test.dataset is not None
        and folder is not None
        and any(
            leads_outside(one, folder)
            for one in (test.dataset.file, *(str(file.absolute()) for file in dataset_files(test.dataset, folder)))
        )
    ):
        yield f"reads the dataset {test.dataset.file}"


def _functions(spec: CriterionSpec) -> Iterator[str]:
    for kind, metric in _remote(spec):
        if kind == "call":
            yield f"python function {metric.get('function', '')}"


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

    value = spec.document.value
    listed = value.get("metrics") if isinstance(value, Mapping) else None
    for metric in listed if isinstance(listed, list) else ():
        if not isinstance(metric, Mapping) or not isinstance(metric.get("type"), str):
            continue
        try:
            kind = registry.metric(metric["type"])
        except AgentevalError:
            continue
        if issubclass(kind, RemoteMetric):
            yield kind.asks, metric
