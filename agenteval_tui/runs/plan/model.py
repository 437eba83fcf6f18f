"""What a plan is: its runs, ready to be run.

A/B: two agents or variations over the same tests, rows, repetitions and seeds.

The arm is part of a run's variation ("A: small-model"): so test, variation, row and repetition are enough to tell two
runs apart, also where an agent is compared with itself, and every list says which arm a run belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.permission import NOTHING, Permission
from agenteval_tui.core.document import Count, Document
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.options import OptionError
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.runs.around.plan import Surroundings
from agenteval_tui.runs.events import RunRef
from agenteval_tui.runs.executors import LOCAL, executor_class
from agenteval_tui.runs.fork.model import ForkOrigin
from agenteval_tui.runs.judge_resolution import Respondents
from agenteval_tui.runs.plan.agents import AgentPlan, UserPlan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.transcripts.model import Message, ToolCall

DEFAULT = "default"
"""How the configuration without a variation is called by people; in a `RunRef` its variation is empty."""
ARMS = ("A", "B")


class StopRule(Struct, frozen=True):
    """When a test's repetitions are enough: once its pass rate is known to be above or below `threshold` (page 4)."""

    alpha: float
    threshold: float


class RunPlan(Struct, frozen=True):
    """One run, ready to be run: templates rendered, criteria as specs. `timeout_s`: seconds for the whole run.

    `messages` are the conversation that the agent answers first, with its calls in `tool_calls`; `turns` the user
    messages that are sent after that, one after another; then the simulated `user` speaks, if there is one. `stop`:
    when no more repetitions are needed.
    """

    ref: RunRef
    suite_key: str
    suite_name: str
    agent: AgentPlan
    messages: tuple[Message, ...]
    context: Mapping[str, Any]
    specs: tuple[CriterionSpec, ...]
    variables: Mapping[str, Any]
    timeout_s: float
    pass_threshold: float | None
    tags: tuple[str, ...]
    seed: int
    tool_calls: tuple[ToolCall, ...] = ()
    turns: tuple[str, ...] = ()
    stop: StopRule | None = None
    fork: ForkOrigin | None = None
    """The run that it continues; None: it begins at the beginning."""
    user: UserPlan | None = None
    files: tuple[str, ...] = ()
    """Images and files in its messages that were read, as the suite names them."""
    around: Surroundings | None = None
    """What it needs around it; None: nothing."""
    state: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The probes that are read before and after it, as the suite has them (`suites.model.Probe.as_dict`)."""

    def request(self, config: Mapping[str, Any]) -> AgentRequest:
        """What its agent is asked first; `config`: the agent's, with its secrets put in."""
        return AgentRequest(
            self.messages,
            config=config,
            context=self.context,
            test_id=self.ref.test,
            repetition=self.ref.repetition,
            seed=self.seed,
            tool_calls=self.tool_calls,
            run=self.ref.run,
            variables=self.variables,
        )

    @property
    def agents(self) -> tuple[AgentPlan, ...]:
        """Its agent, and the one that plays its user, if there is one."""
        return (self.agent,) if self.user is None else (self.agent, self.user.agent)

    @property
    def continues(self) -> bool:
        """Whether it begins in the middle of another run: what is outside of the conversation is not as it was then."""
        return self.fork is not None and self.fork.purpose != "change"

    @property
    def base_dir(self) -> Path:
        """The folder from which relative paths are meant."""
        return self.agent.base_dir

    @property
    def prompt(self) -> str:
        """What lists show for the whole conversation: the last user message before the agent's first answer; where a
        simulated user begins, what it wants."""
        for message in reversed(self.messages):
            if message.role == "user":
                return message.content
        if self.user is not None:
            return self.user.brief.goal
        return self.messages[-1].content if self.messages else ""


class Limits(Document, frozen=True):
    """What an execution may use: US dollars and tokens (of agents, judges and simulated users), seconds. None: as much
    as it takes."""

    cost: float | None = None
    tokens: Count | None = None
    seconds: float | None = None


class Cluster(Struct, frozen=True):
    """The cluster on which agents run: its executor's name, its scheduler's address. `all_threads`: no limit was set
    for concurrent runs, so as many run as its workers have threads."""

    executor: str
    scheduler: str
    all_threads: bool = True


class EarlierRun(Struct, frozen=True):
    """A run of a resumed execution that had ended before: it is shown and counted, and not run again."""

    ref: RunRef
    status: str
    score: float | None = None
    failed: tuple[tuple[str, str], ...] = ()
    duration_ms: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    error: str = ""
    not_made: int = 0


class Plan(Struct, frozen=True):
    """All runs of an execution in order, and how many may run at once.

    `earlier`: the execution is resumed; these had ended, `runs` are those that are missing, and `order` holds the ids
    of both in the order in which they are shown (empty: that of `runs`).
    """

    execution_id: str
    title: str
    runs: tuple[RunPlan, ...]
    concurrency: int
    source: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    respondents: Respondents = field(default_factory=Respondents)
    trust: bool = False
    """Somebody said for this time that all of it may be used (`PlanOptions.trust`)."""
    permission: Permission = NOTHING
    """What the trust check gave; a plan that was not checked can use nothing that needs trust."""
    limits: Limits = Limits()
    cache: str = ""
    earlier: tuple[EarlierRun, ...] = ()
    order: tuple[str, ...] = ()
    cluster: Cluster | None = None
    kind: str = "run"
    """"fork": its runs continue others, and count nowhere."""
    name: str = ""
    """What the execution is called; so `note` and `meta` (`history.execution_names`)."""
    note: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)

    @property
    def suite_keys(self) -> tuple[str, ...]:
        """The keys of the suites that take part, in order."""
        return tuple(dict.fromkeys(run.suite_key for run in self.runs))

    @property
    def tests(self) -> int:
        """How many tests take part."""
        return len({(run.suite_key, run.ref.test) for run in self.runs})


# Where the options say that agents run: on this machine, or on a cluster


def check_executor(options: PlanOptions) -> None:
    """Raise `AgentevalError` where there is no such executor, or nothing says where its scheduler is."""
    if options.executor in ("", LOCAL):
        return
    # It also raises where no package offers an executor of that name.
    variable = executor_class(options.executor).address_variable
    if not options.scheduler:
        raise AgentevalError(
            "the address of the cluster's scheduler is missing",
            fix=f"give --scheduler tcp://HOST:PORT, or set {variable}",
        )


def check_surroundings(runs: Iterable[RunPlan], executor: str) -> None:
    """Raise `AgentevalError` where agents run on a cluster, and what a run needs around it is on this machine."""
    if executor in ("", LOCAL):
        return
    for run in runs:
        around = run.around
        if (around is not None and (around.hooks or around.services or around.workdir)) or run.agent.config.get(
            "services"
        ):
            raise OptionError(
                "executor",
                f"test {run.ref.test!r} needs services, hooks or a working folder, which are on this machine, and its "
                f"agent would run on a cluster ({executor})",
                fix="run it without --executor",
            )


def cluster_of(options: PlanOptions, *, all_threads: bool) -> Cluster | None:
    """The cluster that the options name. `all_threads`: no limit was set for concurrent runs."""
    if options.executor in ("", LOCAL):
        return None
    return Cluster(options.executor, options.scheduler, all_threads)


# A/B: two agents or variations over the same tests, rows, repetitions and seeds


def arm_label(arm: str, name: str) -> str:
    """The variation in the runs of an arm: "A: small-model"."""
    return f"{arm}: {name}"


def arm_of(variation: str) -> str:
    """A or B; "" for a variation that is not an arm. Only executions with the option `ab` have arms."""
    arm, mark, _ = variation.partition(": ")
    return arm if mark and arm in ARMS else ""


def check_arms(names: tuple[str, ...]) -> None:
    """Raises `OptionError` unless there are none, or two."""
    if names and len(names) != len(ARMS):
        raise OptionError(
            "ab", f"an A/B comparison needs two agents or variations, not {len(names)}", fix="give --ab NAME NAME"
        )
    for name in names:
        if not name.strip():
            raise OptionError("ab", "an agent of the A/B comparison has no name", fix="give --ab NAME NAME")
