"""The runs of one test: its configurations, the rows of its dataset, its repetitions."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.ids import canonical_json, content_hash, new_id
from agenteval_tui.core.options import OptionError
from agenteval_tui.runs.around.plan import Asks, Surroundings, surroundings_of
from agenteval_tui.runs.criteria import Specs
from agenteval_tui.runs.events import RunRef
from agenteval_tui.runs.plan.agents import AgentPlan, UserPlan
from agenteval_tui.runs.plan.conversation import Conversation, Conversations, asks_of
from agenteval_tui.runs.plan.gates import gate_of, stop_threshold
from agenteval_tui.runs.plan.model import ARMS, DEFAULT, RunPlan, StopRule, arm_label
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.test_selection import Failed, SelectedTest
from agenteval_tui.runs.plan.variation import agent_plan, merged_context
from agenteval_tui.suites.datasets import read_rows
from agenteval_tui.suites.model import AgentConfig, Variation

TIMEOUT_S = 60.0
"""Of a run without a setting of its own; with a simulated user, for each time that it may speak."""


class Case(Struct, frozen=True):
    """What of a test is run at once: a row of its dataset, by its number and its line in the file, and its key
    (`suites.row_keys`). A test without a dataset has one case, numbered 0, whose key is empty."""

    row: int = 0
    line: int = 0
    variables: Mapping[str, Any] | None = None
    key: str = ""


class _ReadyCase(Struct, frozen=True):
    """What all runs of a case share."""

    row: int
    key: str
    variables: Mapping[str, Any]
    conversation: Conversation
    around: Surroundings | None = None


class TestRuns:
    """Makes the runs of one test. Raises `AgentevalError` where it can't be run."""

    __test__ = False  # not a test class, whatever its name says to pytest

    def __init__(
        self,
        chosen: SelectedTest,
        options: PlanOptions,
        user_agents: Mapping[str, AgentConfig],
        failed: Failed | None = None,
    ) -> None:
        self.chosen = chosen
        self.configurations = tuple(configurations(chosen, options, user_agents))
        self._options = options
        self._user_agents = user_agents
        self._failed = failed

    def cases(self) -> Iterator[Case]:
        """The rows that will be run, as a stream; one case if there is no dataset. Programs of the folder don't matter
        here, but its files do: one outside the folder is read, and whether that may go to an agent is asked before
        anything runs (`trusting`).
        """
        if not self.configurations:
            return
        test = self.chosen.test
        if test.dataset is None:
            if self._wanted(Case()):
                yield Case()
            return

        # Counted apart from what is given out: a dataset may have rows of which none failed before.
        rows = 0
        try:
            for dataset_row in read_rows(test.dataset, self.chosen.folder, trusted=True):
                rows += 1
                case = Case(dataset_row.number, dataset_row.line, dataset_row.variables, dataset_row.key)
                if self._failed is None or self._wanted(case):
                    yield case
        except AgentevalError as error:
            raise AgentevalError(f"test {test.id!r}: {error.what}", where=error.where, fix=error.fix) from error
        if not rows:
            raise AgentevalError(
                f"the dataset of test {test.id!r} has no rows",
                where=str(self.chosen.folder / test.dataset.file),
                fix="add rows, or take `dataset` out of the test",
            )

    def runs(self, cases: Iterable[Case], specs: Specs) -> Iterator[RunPlan]:
        """The runs of these cases: configuration by configuration, in each row by row.

        The arms of an A/B comparison take turns row by row: where the execution is stopped early, each row that was
        run under A was also run under B, but for the last ones.
        """
        ready = self._ready(cases)
        maker = _Maker(self.chosen, self._options, specs, self._user_agents)
        if self._options.ab:
            pairs = ((configuration, case) for case in ready for configuration in self.configurations)
        else:
            pairs = ((configuration, case) for configuration in self.configurations for case in ready)
        for configuration, case in pairs:
            if self._failed is None or self._wants(configuration, case):
                yield from maker.repetitions(configuration, case)

    def _wanted(self, case: Case | _ReadyCase) -> bool:
        return any(self._wants(configuration, case) for configuration in self.configurations)

    def _wants(self, configuration: Configuration, case: Case | _ReadyCase) -> bool:
        if self._failed is None:
            return True
        keys = [case.key] if case.key else []
        return self._failed.wants(self.chosen.loaded.key, self.chosen.test.id, configuration.variation, keys)

    def _ready(self, cases: Iterable[Case]) -> Sequence[_ReadyCase]:
        test, ready = self.chosen.test, []
        try:
            conversations = Conversations(test, self.chosen.folder)
        except AgentevalError as error:
            raise self._placed(error, Case()) from error
        around = surroundings_of(self.chosen.suite, test, self.chosen.folder)
        # Kept as it is written only where hooks may bring variables: most tests are rendered now, and once.
        asks = asks_of(test) if around is not None and around.brings_variables else {}
        for case in cases:
            variables = {**test.variables, **case.variables} if case.variables else test.variables
            own = around
            try:
                if asks and around is not None:
                    own = replace(around, variables=variables, asks=Asks(asks, case.variables))
                    conversation = _as_far_as_known(conversations, variables, case.variables)
                else:
                    conversation = conversations.of(variables, case.variables)
                ready.append(_ReadyCase(case.row, case.key, variables, conversation, own))
            except AgentevalError as error:
                raise self._placed(error, case) from error
        return ready

    def _placed(self, error: AgentevalError, case: Case) -> AgentevalError:
        """The error with the test, and the line of the dataset's file where a row is to blame."""
        test = self.chosen.test
        if not case.row or test.dataset is None:
            return AgentevalError(f"test {test.id!r}: {error.what}", where=self.chosen.where, fix=error.fix)
        where = f"{self.chosen.folder / test.dataset.file}:{case.line}"
        return AgentevalError(f"test {test.id!r}, row {case.row}: {error.what}", where=where, fix=error.fix)


def _as_far_as_known(
    conversations: Conversations, variables: Mapping[str, Any], row: Mapping[str, Any] | None
) -> Conversation:
    """The conversation with the variables, if hooks need not bring others."""
    try:
        return conversations.of(variables, row)
    except AgentevalError:
        return conversations.as_written(row)


class _Maker:
    """What all runs of a test share, made once."""

    def __init__(
        self, chosen: SelectedTest, options: PlanOptions, specs: Specs, user_agents: Mapping[str, AgentConfig]
    ) -> None:
        test, suite = chosen.test, chosen.suite
        defaults = suite.defaults
        self._chosen = chosen
        self._seed = options.seed
        self._head = _seed_head(suite.name, test.id)
        self._specs = specs.of(test.criteria)
        self._user_agent = None if test.user is None else _user_agent(chosen, test.user.agent, user_agents)
        usual = TIMEOUT_S * (test.user.max_turns if test.user is not None else 1)
        self._state = {name: probe.as_dict() for name, probe in suite.probes(test).items()}
        # The nearest counts: what was asked for this execution, then the test, then its suite.
        self._timeout_s = float(options.timeout or test.timeout or defaults.timeout or usual)
        self._threshold = test.pass_threshold if test.pass_threshold is not None else defaults.pass_threshold
        self._tags = tuple(dict.fromkeys((*suite.tags, *test.tags)))
        gate = gate_of(suite, test, options.fail_under_test)
        self._gate = gate.pass_rate if gate is not None else None
        # Arms that stop at different times would not be compared fairly.
        early = options.early_stop and not options.ab
        stop = test.stop or defaults.stop
        self._stop = StopRule(stop.alpha, stop_threshold(stop, gate)) if stop is not None and early else None

    def repetitions(self, configuration: Configuration, case: _ReadyCase) -> Iterator[RunPlan]:
        test, suite, conversation = self._chosen.test, self._chosen.suite, case.conversation
        agent, variation = configuration.agent, configuration.variation
        player = self._user_agent
        user = UserPlan(player, conversation.user) if player is not None and conversation.user is not None else None
        for repetition in range(1, configuration.repeat + 1):
            yield RunPlan(
                ref=RunRef(
                    new_id(),
                    test=test.id,
                    test_name=test.name,
                    variation=variation,
                    row=case.row,
                    repetition=repetition,
                    agent=agent.name,
                    suite=self._chosen.suite_label,
                    row_key=case.key,
                    gate=self._gate,
                ),
                suite_key=self._chosen.loaded.key,
                suite_name=suite.name,
                agent=agent,
                messages=conversation.messages,
                context=configuration.context,
                specs=self._specs,
                variables=case.variables,
                timeout_s=self._timeout_s,
                pass_threshold=self._threshold,
                tags=self._tags,
                seed=_seed_of(self._head, case.key, repetition, self._seed),
                tool_calls=conversation.tool_calls,
                turns=conversation.turns,
                stop=self._stop,
                user=user,
                files=conversation.files,
                around=case.around,
                state=self._state,
            )


def _seed_head(suite: str, test: str) -> str:
    # The head of the list that is hashed, without its bracket: for 100,000 rows it is written once.
    return canonical_json([suite, test])[:-1]


def _seed_of(head: str, row_key: str, repetition: int, seed: int) -> int:
    """A number for an agent that varies: the same on every machine, the same for all variations of a test, and the same
    for a row wherever it is in its file (`row_key` "": the test has no dataset)."""
    row = canonical_json(row_key) if row_key else "0"
    # A key may hold half of a surrogate pair, as its dataset does.
    data = f"{head},{row},{repetition},{seed}]".encode("utf-8", "surrogatepass")
    return int(hashlib.sha256(data).hexdigest()[:8], 16)


def draw_sample(tests: Sequence[TestRuns], number: int, seed: int) -> list[tuple[TestRuns, list[Case]]]:
    """`number` of all the tests' cases, drawn by `seed`, in their order; all where there are no more.

    Each case has a rank of its own, made of `seed`, suite, test and the row's key: the same are drawn on every machine
    and in whatever order the rows stand, and a test that is added or renamed changes little of what is drawn.
    """
    every = (
        (
            content_hash([test_runs.chosen.suite.name, test_runs.chosen.test.id, case.key or 0, seed, "sample"]),
            place,
            case.row,
            case,
        )
        for place, test_runs in enumerate(tests)
        for case in test_runs.cases()
    )
    # A dataset may be larger than the memory: no more cases than are drawn are held at once.
    chosen = sorted(heapq.nsmallest(number, every, key=lambda ranked: ranked[:3]), key=lambda ranked: ranked[1:3])
    by_test = grouped((place, case) for _, place, _, case in chosen)
    return [(tests[place], cases) for place, cases in by_test.items()]


# In which configurations a test runs: the default one and its variations, or the two arms of an A/B comparison


class Configuration(Struct, frozen=True):
    """One way in which a test runs. `variation` is the name stored in its runs: "" for the default configuration."""

    variation: str
    agent: AgentPlan
    context: Mapping[str, Any]
    repeat: int


def configurations(
    chosen: SelectedTest, options: PlanOptions, user_agents: Mapping[str, AgentConfig]
) -> Iterator[Configuration]:
    """The default configuration, then each variation in order; only the one that `options` name, if they do.

    Raises `AgentevalError` when an agent is missing.
    """
    if options.ab:
        yield from _arms(chosen, options, user_agents)
        return
    for variation in (None, *chosen.test.variations):
        name = variation.name if variation is not None else ""
        if options.variation is None or options.variation == (name or DEFAULT):
            agent = _agent(chosen, variation, options, user_agents)
            yield Configuration(
                name, agent, merged_context(chosen.test, variation), _repeat(chosen, variation, options)
            )


def _arms(
    chosen: SelectedTest, options: PlanOptions, user_agents: Mapping[str, AgentConfig]
) -> Iterator[Configuration]:
    """Both arms alike but for what is compared: the same context, the same number of repetitions.

    A name means an agent; where there is none of that name, a variation of the test ("default": none).
    """
    base = _variation(chosen, options.variation)
    # As without A/B: a test that does not have the chosen variation has no runs.
    if options.variation is not None and base is None and options.variation != DEFAULT:
        return
    if options.agent is not None and all(_is_agent(chosen, name, user_agents) for name in options.ab):
        raise OptionError(
            "agent",
            f"both arms name their agent, so --agent {options.agent} has no effect",
            fix="leave --agent out, or compare variations",
        )
    repeat = _repeat(chosen, base, options)
    for arm, name in zip(ARMS, options.ab, strict=True):
        label = arm_label(arm, name)
        if _is_agent(chosen, name, user_agents):
            agent = _agent_named(chosen, name, base, user_agents)
            yield Configuration(label, agent, merged_context(chosen.test, base), repeat)
            continue
        variation = _variation(chosen, name)
        if variation is None and name != DEFAULT:
            names = [*chosen.suite.agents, *user_agents, *(variation.name for variation in chosen.test.variations)]
            raise OptionError(
                "ab",
                f"arm {arm} is {name!r}, but test {chosen.test.id!r} has no agent or variation of that name",
                where=chosen.where,
                fix=f"known here: {', '.join(dict.fromkeys(names))}" if names else "configure an agent",
            )
        agent = _agent(chosen, variation, options, user_agents)
        yield Configuration(label, agent, merged_context(chosen.test, variation), repeat)


def _is_agent(chosen: SelectedTest, name: str, user_agents: Mapping[str, AgentConfig]) -> bool:
    return name in chosen.suite.agents or name in user_agents


def _variation(chosen: SelectedTest, name: str | None) -> Variation | None:
    return next((variation for variation in chosen.test.variations if variation.name == name), None)


def _agent(
    chosen: SelectedTest, variation: Variation | None, options: PlanOptions, user_agents: Mapping[str, AgentConfig]
) -> AgentPlan:
    own = variation.agent if variation is not None else None
    name = own or options.agent or chosen.test.agent or chosen.suite.agent
    if not name:
        raise OptionError(
            "agent",
            f"test {chosen.test.id!r} has no agent, and neither does its suite",
            where=chosen.where,
            fix="write `agent: NAME` at the top of the suite, or give --agent NAME",
        )
    return _agent_named(chosen, name, variation, user_agents)


def _agent_named(
    chosen: SelectedTest, name: str, variation: Variation | None, user_agents: Mapping[str, AgentConfig]
) -> AgentPlan:
    over = variation.config if variation is not None else None
    try:
        return agent_plan(name, chosen.suite, chosen.folder, user_agents, over)
    except AgentevalError as error:
        raise OptionError("agent", error.what, where=error.where or chosen.where, fix=error.fix) from error


def _user_agent(chosen: SelectedTest, name: str, user_agents: Mapping[str, AgentConfig]) -> AgentPlan:
    """The agent that plays the test's user: as it is configured, in every variation."""
    try:
        return _agent_named(chosen, name, None, user_agents)
    except AgentevalError as error:
        raise AgentevalError(f"the simulated user: {error.what}", where=error.where, fix=error.fix) from error


def _repeat(chosen: SelectedTest, variation: Variation | None, options: PlanOptions) -> int:
    own = variation.repeat if variation is not None else None
    for count in (options.repeat, own, chosen.test.repeat, chosen.suite.defaults.repeat):
        if count is not None:  # 0 counts, too: it leaves a test out
            return int(count)
    return 1
