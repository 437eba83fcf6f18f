"""Planned runs as JSON, so that they can be run later: without the suite's file, by another process, after a crash.

A task holds what one run is made of, but for what the history has of it anyway (its name, variables, tags). What many
tasks share is in the execution's setup: agents, criteria, and the agents that may be asked to judge. Agents are kept as
they were written, `${VAR}` unexpanded; a key that somebody wrote into one is left out (`withheld`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import asdict, fields

from agenteval_tui.agents.stored_config import without_keys
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.spec import CriterionSpec, json_like
from agenteval_tui.runs.around.plan import read_surroundings, surroundings_data
from agenteval_tui.runs.criteria import spec_from_dict, spec_to_dict
from agenteval_tui.runs.events import RunRef
from agenteval_tui.runs.judge_resolution import Respondents
from agenteval_tui.runs.plan.agents import AgentPlan, UserBrief, UserPlan
from agenteval_tui.runs.plan.model import Plan, RunPlan, StopRule
from agenteval_tui.suites.model import AgentConfig, Suite
from agenteval_tui.transcripts.model import Attachment, Message, ToolCall

VERSION = 1
"""Of the layout of tasks and setups. A program refuses one that it doesn't know."""


class Tasks:
    """The tasks of a plan. Runs that differ only in their repetition share one object.

    Usable as long as the plan lives: what its runs share is told by identity.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tasks: dict[tuple[object, ...], dict[str, Any]] = {}
        self._specs: dict[int, str] = {}  # by identity: equal criteria are one object
        self._spec_dicts: dict[str, dict[str, Any]] = {}
        for run in plan.runs:
            # All before the first task: the setup that is stored with the execution has every criterion.
            for spec in run.specs:
                if id(spec) not in self._specs:
                    self._note(spec)

    def of(self, run: RunPlan) -> dict[str, Any]:
        """What the run is made of, as JSON data: see `run_plan`."""
        parts = (
            *(run.messages, run.tool_calls, run.turns, run.context, run.specs, run.stop, run.user, run.around),
            run.state,
        )
        # By identity: to compare or hash whole conversations for each run would cost more than to store them.
        key = (*map(id, parts), run.agent.hash, run.timeout_s, run.pass_threshold)
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = self._made(run)
        return task

    def spec_dict(self, spec: CriterionSpec) -> dict[str, Any]:
        """A criterion of the plan as JSON data."""
        return self._spec_dicts[self._specs[id(spec)]]

    def setup(self) -> dict[str, Any]:
        """What the tasks share, as JSON data: see `read_setup`. Equal for plans of suites that have not changed."""
        plan = self._plan
        agents = {run.agent.hash: run.agent for run in plan.runs}
        agents |= {run.user.agent.hash: run.user.agent for run in plan.runs if run.user is not None}
        respondents = plan.respondents
        return {
            "version": VERSION,
            "concurrency": plan.concurrency,
            "agents": {name: _agent_data(agent) for name, agent in agents.items()},
            "specs": self._spec_dicts,
            "suites": {
                key: {"folder": str(folder), "agents": _configs(suite.agents if suite is not None else {})}
                for key, (suite, folder) in respondents.suites.items()
            },
            "user_agents": _configs(respondents.user_agents),
            "judge": respondents.judge,
            "digests": {key: digest for key in plan.suite_keys if (digest := file_digest(key))},
        }

    def _note(self, spec: CriterionSpec) -> None:
        # The hash says nothing of name, weight and severity: criteria that judge alike may be several.
        key, number = spec.hash, 1
        plain = spec_to_dict(spec)
        while self._spec_dicts.get(key, plain) != plain:
            number += 1
            key = f"{spec.hash}-{number}"
        self._specs[id(spec)] = key
        self._spec_dicts[key] = plain

    def _made(self, run: RunPlan) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "version": VERSION,
            "agent": run.agent.hash,
            "messages": [_lean(message) for message in run.messages],
            "timeout_s": run.timeout_s,
        }
        if run.specs:
            fields["specs"] = [self._specs[id(spec)] for spec in run.specs]
        if run.context:
            fields["context"] = json_like(run.context)
        if run.tool_calls:
            fields["tool_calls"] = [_lean(call) for call in run.tool_calls]
        if run.turns:
            fields["turns"] = list(run.turns)
        if run.pass_threshold is not None:
            fields["pass_threshold"] = run.pass_threshold
        if run.stop is not None:
            fields["stop"] = [run.stop.alpha, run.stop.threshold]
        if run.user is not None:
            fields["user"] = {"agent": run.user.agent.hash, "brief": json_like(run.user.brief.as_dict())}
        if run.around is not None:
            fields["around"] = json_like(surroundings_data(run.around))
        if run.state:
            fields["state"] = {name: dict(probe) for name, probe in run.state.items()}
        return fields


class Setup(Struct, frozen=True):
    """What the tasks of an execution share. `digests`: of the suites' files as they were, by suite key.

    `withheld`: the agents (by hash) from whose configuration a key was left out, with its places there. Judges whose
    key was left out are not among the respondents (`hidden_judges`: there are such).
    """

    agents: Mapping[str, AgentPlan]
    specs: Mapping[str, CriterionSpec]
    respondents: Respondents
    concurrency: int
    digests: Mapping[str, str]
    withheld: Mapping[str, tuple[tuple[str, ...], ...]]
    hidden_judges: bool = False


def read_setup(data: Mapping[str, Any]) -> Setup:
    """The setup in what `Tasks.setup` gave. Raises `AgentevalError` when it is something else."""
    _check_version(data)

    def configs(listed: Mapping[str, Any]) -> dict[str, AgentConfig]:
        return {name: AgentConfig.model_validate(config) for name, config in listed.items() if "kind" in config}

    try:
        suites = {
            key: (Suite.model_validate({"agents": configs(suite_data["agents"])}), Path(suite_data["folder"]))
            for key, suite_data in data["suites"].items()
        }
        return Setup(
            agents={
                name: AgentPlan(agent_data["name"], agent_data["config"], Path(agent_data["base_dir"]), name)
                for name, agent_data in data["agents"].items()
            },
            specs={name: spec_from_dict(spec_data) for name, spec_data in data["specs"].items()},
            respondents=Respondents(suites, configs(data["user_agents"]), data["judge"]),
            concurrency=int(data["concurrency"]),
            digests=data["digests"],
            withheld={
                name: tuple(tuple(path) for path in agent_data["withheld"])
                for name, agent_data in data["agents"].items()
                if agent_data.get("withheld")
            },
            hidden_judges=any(
                "kind" not in config
                for group in (data["user_agents"], *(suite["agents"] for suite in data["suites"].values()))
                for config in group.values()
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AgentevalError(f"the stored data to resume this execution is damaged: {error!r}") from error


def run_plan(
    task: Mapping[str, Any],
    setup: Setup,
    ref: RunRef,
    *,
    suite_key: str,
    suite_name: str,
    variables: Mapping[str, Any],
    tags: tuple[str, ...],
    seed: int,
) -> RunPlan:
    """The run that `task` describes. Raises `AgentevalError` when the task is not whole."""
    _check_version(task)
    try:
        stop, user = task.get("stop"), task.get("user")
        around = read_surroundings(task["around"]) if "around" in task else None
        return RunPlan(
            ref=ref,
            suite_key=suite_key,
            suite_name=suite_name,
            agent=setup.agents[task["agent"]],
            messages=tuple([_message(message) for message in task["messages"]]),
            context=task.get("context", {}),
            specs=tuple([setup.specs[key] for key in task.get("specs", ())]),
            # The history has those that hooks brought then; hooks bring others now.
            variables=around.variables if around is not None and around.brings_variables else variables,
            timeout_s=float(task["timeout_s"]),
            pass_threshold=task.get("pass_threshold"),
            tags=tags,
            seed=seed,
            tool_calls=tuple([ToolCall(**tool_call) for tool_call in task.get("tool_calls", ())]),
            turns=tuple(task.get("turns", ())),
            stop=None if stop is None else StopRule(*stop),
            user=None if user is None else UserPlan(setup.agents[user["agent"]], UserBrief(**user["brief"])),
            around=around,
            state=task.get("state", {}),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise AgentevalError(
            f"what is stored to run test {ref.test!r} again is broken: {error!r}", where=f"run {ref.run}"
        ) from error


@lru_cache(maxsize=64)
def threshold_task(pass_threshold: float | None) -> Mapping[str, Any]:
    """What is kept of a run that was only graded, and can't be run again: the test's threshold, None where it has none.
    Equal ones are one object, so that they are stored once."""
    return {"version": VERSION} if pass_threshold is None else {"version": VERSION, "pass_threshold": pass_threshold}


def task_messages(task: Mapping[str, Any]) -> tuple[Message, ...]:
    """What the agent is asked with in the run that `task` describes; () where that can't be read."""
    try:
        return tuple([_message(message) for message in task["messages"]])
    except (KeyError, TypeError, ValueError):
        return ()


def file_digest(suite_key: str) -> str:
    """A hash of a suite's file as it is now; "" where there is none to be read."""
    try:
        # Keys of imported suites are no paths.
        return hashlib.sha256(Path(suite_key).read_bytes()).hexdigest()[:32] if suite_key.startswith("/") else ""
    except OSError:
        return ""


def _check_version(data: Mapping[str, Any]) -> None:
    if data.get("version") != VERSION:
        raise AgentevalError(
            "this execution was stored by another version of agenteval, which this one can't resume",
            fix="resume it with that version, or run its suites again",
        )


def _agent_data(agent: AgentPlan) -> dict[str, Any]:
    config, withheld = without_keys(agent.config)
    fields: dict[str, Any] = {"name": agent.name, "config": config, "base_dir": str(agent.base_dir)}
    if withheld:
        fields["withheld"] = [list(path) for path in withheld]
    return fields


def _configs(agents: Mapping[str, AgentConfig]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, agent in agents.items():
        config, withheld = without_keys(agent.as_dict())
        data[name] = {"config": config, "withheld": [list(path) for path in withheld]} if withheld else config
    return data


def _message(data: Mapping[str, Any]) -> Message:
    fields = dict(data)
    if "tool_calls" in data:
        fields["tool_calls"] = tuple(data["tool_calls"])
    if "attachments" in data:
        fields["attachments"] = tuple(Attachment(**attachment) for attachment in data["attachments"])
    return Message(**fields)


_MESSAGE = tuple((field.name, field.default) for field in fields(Message))
_CALL = tuple((field.name, field.default) for field in fields(ToolCall))


def _lean(value: Message | ToolCall) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    fields = {}
    for name, default in _MESSAGE if isinstance(value, Message) else _CALL:
        own = getattr(value, name)
        if default is NODEFAULT or own != default or type(own) is not type(default):
            fields[name] = [asdict(attachment) for attachment in own] if name == "attachments" else own
    return fields
