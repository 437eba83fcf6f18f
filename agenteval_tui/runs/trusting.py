"""Which programs a plan would start on this machine, and whether the user trusts the folders that say so.

A suite is often somebody else's. What it can start: agents that are programs, tools that are functions, commands or
MCP servers, functions that grade. It can also name files outside of its folder, whose content would go to an agent, and
a server of its own for one of the user's keys.
What the user wrote (agents.yaml of the configuration folder) and what ships with the program is trusted as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval_tui import places
from agenteval_tui.runs.plan_agents import AgentPlan
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.text.quick_dataclass import dataclass

if TYPE_CHECKING:
    from agenteval_tui.grading.spec import CriterionSpec
    from agenteval_tui.runs.plan_model import Plan
    from agenteval_tui.suites.model import AgentConfig
    from agenteval_tui.suites.trust import Trust

_SAID = 5  # of one folder, in a sentence


@dataclass(frozen=True, slots=True)
class Need:
    """A folder, and in words what a plan would start or read because of files in it."""

    folder: Path
    what: tuple[str, ...]


class NotTrustedError(AgentevalError):
    """A plan would start programs of folders that the user does not trust (any more): `needs` are those."""

    def __init__(self, needs: tuple[Need, ...], reason: str) -> None:
        first = needs[0]
        listed = "; ".join(first.what[:_SAID])
        more = f"; and {len(first.what) - _SAID} more" if len(first.what) > _SAID else ""
        others = f" (and so would {len(needs) - 1} more folders)" if len(needs) > 1 else ""
        super().__init__(
            f"this needs your trust: {listed}{more}{others}; {reason}",
            where=str(first.folder),
            mend="look at what is in the folder, then give --trust, or say yes where the app asks",
        )
        self.needs = needs


def needs_of(plan: Plan, *, own: Mapping[str, AgentConfig] | None = None, foreign: bool = False) -> tuple[Need, ...]:
    """What the runs of a plan, and their grading, would start or read beyond the suites' folders, by folder.

    What needs no trust is not in it. Each agent, context and criterion is looked at once; nothing is started. `own`:
    the agents that the user wrote (None: those that the plan says are). `foreign`: see `check_trust`.
    """
    from agenteval_tui.agents.programs.declared import executes

    found: dict[Path, dict[str, None]] = {}
    users = plan.respondents.user_agents if own is None else own

    def need(folder: Path, what: Iterator[str] | tuple[str, ...]) -> None:
        for one in what:
            found.setdefault(folder, {})[one] = None

    seen: set[tuple[object, ...]] = set()

    def new(*key: object) -> bool:
        if key in seen:
            return False
        seen.add(key)
        return True

    for run in plan.runs:
        suite_key = run.suite_key
        if new("agent", suite_key, run.agent.hash):
            need(*_of_agent(plan, suite_key, run.agent, users))
        if run.context and new("context", suite_key, id(run.context)):
            need(plan.respondents.base_dir(suite_key), executes({}, run.base_dir, run.context))
        for spec in run.specs:
            if new("spec", suite_key, id(spec)):
                need(plan.respondents.base_dir(suite_key), _functions(spec))
                for agent in _respondents(plan, suite_key, spec):
                    if new("agent", suite_key, agent.hash):
                        need(*_of_agent(plan, suite_key, agent, users))
        if run.ref.row and new("rows", suite_key, run.ref.test):
            need(plan.respondents.base_dir(suite_key), _dataset(plan, suite_key, run.ref.test))
    bundled = places.bundled("sample_suites").resolve()
    return tuple(
        Need(folder, tuple(what))
        for folder, what in found.items()
        if foreign or not folder.resolve().is_relative_to(bundled)
    )


def check_trust(
    plan: Plan,
    trust: Trust | None = None,
    *,
    own: Mapping[str, AgentConfig] | None = None,
    foreign: bool = False,
) -> bool:
    """Whether programs of the plan's folders may run: what `Plan.trust` must be. Raises `NotTrustedError`.

    True where the plan says so already (`PlanOptions.trust`), or where it starts something and each folder was trusted
    with exactly what is in it now. A plan that starts nothing needs no trust, and gets none.

    `foreign`: the plan came with somebody else's history. What it would start stands nowhere in the folders that it
    names, so that it is asked about whatever is trusted. `own`: see `needs_of`.
    """
    if plan.trust:
        return True
    needs = needs_of(plan, own=own, foreign=foreign)
    refused = distrusted(needs, trust)
    if refused:
        raise NotTrustedError(tuple(need for need, _ in refused), refused[0][1])
    if needs and foreign:
        raise NotTrustedError(needs, "the execution came with another history, and no folder here says this")
    return bool(needs)


def distrusted(needs: tuple[Need, ...], trust: Trust | None = None) -> list[tuple[Need, str]]:
    """The needs whose folder is not trusted, each with the reason in a sentence. `trust`: by default the user's."""
    if not needs:
        return []
    if trust is None:
        from agenteval_tui.suites.trust import Trust

        trust = Trust.load()
    return [(need, reason) for need in needs if (reason := trust.why_not(need.folder))]


def asks_judge(spec: CriterionSpec) -> bool:
    """Whether a judge is asked for this criterion."""
    return any(kind == "chat" for kind, _ in _remote(spec))


def _of_agent(
    plan: Plan, suite_key: str, agent: AgentPlan, users: Mapping[str, AgentConfig]
) -> tuple[Path, tuple[str, ...]]:
    """(whose word it is, what the agent starts).

    An agent of the user's own is trusted as the user wrote it. With something of a suite merged in, it is the suite's
    word: another argument or variable can make another program of it.
    """
    folder = agent.base_dir
    if folder.resolve() == places.config_dir().resolve():
        own = users.get(agent.name)
        if (own is not None and own.as_dict() == agent.config) or agent.config == {"kind": agent.name}:
            return folder, ()
        return plan.respondents.base_dir(suite_key), may(agent)
    return folder, may(agent)


def may(agent: AgentPlan) -> tuple[str, ...]:
    """What an agent of a suite could do that needs trust: run programs, read other folders, send keys away."""
    from agenteval_tui.agents.key_places import sends_keys
    from agenteval_tui.agents.programs.declared import executes

    folder = agent.base_dir
    return (*executes(agent.config, folder, {}), *_files(agent), *sends_keys(agent.config, folder))


def _files(agent: AgentPlan) -> Iterator[str]:
    """Files outside of the agent's folder that would be read: recordings, tools."""
    kind = agent.config.get("kind")
    for key, what in (("file", "recordings"), ("tools", "tools")):
        given = agent.config.get(key)
        if not isinstance(given, str) or given.startswith("builtin:") or (key == "file" and kind != "replay"):
            continue
        if "${" in given or _outside(given, agent.base_dir):
            yield f"reads {what} from {given}"


def _dataset(plan: Plan, suite_key: str, test_id: str) -> Iterator[str]:
    suite, folder = plan.respondents.suites.get(suite_key, (None, None))
    test = suite.test(test_id) if suite is not None else None
    if test is not None and test.dataset is not None and folder is not None and _outside(test.dataset.file, folder):
        yield f"reads the dataset {test.dataset.file}"


def _outside(given: str, folder: Path) -> bool:
    try:
        return not (folder / Path(given).expanduser()).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return True


def _functions(spec: CriterionSpec) -> Iterator[str]:
    for kind, metric in _remote(spec):
        if kind == "call":
            yield f"python function {metric.get('function', '')}"


def _respondents(plan: Plan, suite_key: str, spec: CriterionSpec) -> Iterator[AgentPlan]:
    """The agents that judge or embed for a criterion."""
    from agenteval_tui.grading.placeholders import has_placeholders
    from agenteval_tui.grading.questions import RemoteRequest

    for kind, metric in _remote(spec):
        if kind not in ("chat", "embed"):
            continue
        name = metric.get("judge" if kind == "chat" else "embedder") or ""
        if not isinstance(name, str) or has_placeholders(name):
            continue
        try:
            yield plan.respondents.asked(RemoteRequest(kind, name, {}), suite_key)
        except AgentevalError:
            continue  # nobody is asked; the result says why


def _remote(spec: CriterionSpec) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """The metrics of a criterion that somebody is asked for: (kind of question, the metric as it was written)."""
    if spec.broken:
        return
    from agenteval_tui.grading import registry
    from agenteval_tui.grading.remote import RemoteMetric

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
