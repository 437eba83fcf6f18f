"""From suites and options to the runs of an execution, in the order in which they are shown."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval_tui.runs.events import RunRef
from agenteval_tui.runs.merge import deep_merge
from agenteval_tui.runs.plan_agents import AgentPlan, agent_plan
from agenteval_tui.runs.respondents import Respondents
from agenteval_tui.text.identity import content_hash, new_id
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.model import Message, ToolCall

if TYPE_CHECKING:
    from agenteval_tui.grading.spec import CriterionSpec
    from agenteval_tui.history.store import Store
    from agenteval_tui.runs.criteria import Specs
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.suites.model import AgentConfig, Suite, Test, Variation

DEFAULT = "default"
"""How the configuration without a variation is called by people; in a `RunRef` its variation is empty."""
CONCURRENCY = 8
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What was asked for. `tests` are ids, or `FILE::ID` where an id is in several suites; a test must have all of
    `tags` (its suite's count too).

    `variation` limits the runs to one variation ("default": to none). `repeat`, `timeout` (seconds) and `agent`
    replace what the suites say; a variation that names an agent keeps it. `failed_from` is the reference of an
    execution: only the tests that failed there, or ended in an error. `seed` changes what seeded agents do. `judge`
    is the agent that judges, whatever judges the metrics name. `trust`: programs and functions of the suites' folders
    may run, whether they were trusted before or not.

    `max_cost` (US dollars, judges included), `max_tokens` and `max_seconds` end the execution cleanly when they are
    reached. `cache`: answers of the history are taken for equal requests: "" never, "first" for the first repetition,
    "all" for every repetition. `early_stop`: False ignores every `stop` of the suites. `ab` names two agents: each
    chosen test runs with both. `sample` draws so many tests (and rows) by `seed`.
    """

    tests: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    agent: str | None = None
    variation: str | None = None
    repeat: int | None = None
    concurrency: int | None = None
    timeout: float | None = None
    title: str = ""
    failed_from: str | None = None
    trust: bool = False
    seed: int = 0
    judge: str | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    cache: str = ""
    early_stop: bool = True
    ab: tuple[str, ...] = ()
    sample: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The options that differ from the defaults."""
        plain = asdict(self)
        return {one.name: plain[one.name] for one in fields(self) if plain[one.name] != one.default}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PlanOptions:
        """The options in what `to_json` gave. Raises TypeError when it holds something else."""
        plain = dict(data)
        for name in ("tests", "tags", "ab"):
            if name in plain:
                plain[name] = tuple(plain[name])
        return cls(**plain)


@dataclass(frozen=True, slots=True)
class StopRule:
    """When a test's repetitions are enough: once its pass rate is known to be above or below `threshold` (page 4)."""

    alpha: float
    threshold: float


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One run, ready to be run: templates rendered, criteria as specs. `timeout_s`: seconds for the whole run.

    `messages` are the conversation that the agent answers first, with its calls in `tool_calls`; `turns` the user
    messages that are sent after that, one after another. `stop`: when no more repetitions are needed.
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

    @property
    def base_dir(self) -> Path:
        """The folder from which relative paths are meant."""
        return self.agent.base_dir

    @property
    def agent_config(self) -> Mapping[str, Any]:
        """The agent's configuration after a variation's was merged in."""
        return self.agent.config

    @property
    def prompt(self) -> str:
        """What stands in lists for the whole conversation: the last user message before the agent's first answer."""
        for message in reversed(self.messages):
            if message.role == "user":
                return message.content
        return self.messages[-1].content if self.messages else ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an execution may use: US dollars (agents and judges), tokens, seconds. None: as much as it takes."""

    cost: float | None = None
    tokens: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class EarlierRun:
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


@dataclass(frozen=True, slots=True)
class Plan:
    """All runs of an execution in order, and how many of them may run at once.

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
    limits: Limits = Limits()
    cache: str = ""
    earlier: tuple[EarlierRun, ...] = ()
    order: tuple[str, ...] = ()

    @property
    def suite_keys(self) -> tuple[str, ...]:
        """The keys of the suites that take part, in order."""
        return tuple(dict.fromkeys(run.suite_key for run in self.runs))

    @property
    def tests(self) -> int:
        """How many tests take part."""
        return len({(run.suite_key, run.ref.test) for run in self.runs})


def make_plan(
    loaded: Sequence[LoadedSuite],
    options: PlanOptions,
    *,
    user_agents: Mapping[str, AgentConfig],
    store: Store | None = None,
) -> Plan:
    """The runs that `options` ask for, of `loaded`: test by test, the default configuration before each variation.

    `store` is asked for `failed_from` only. Raises `AgentevalError` when nothing is left to run, a suite is invalid
    (where tests are named, only those must be valid), an agent is missing, or a prompt can't be rendered.
    """
    from agenteval_tui.runs.criteria import Specs

    _check_numbers(options)
    specs = Specs()
    chosen = _chosen(loaded, options, store)
    runs: list[RunPlan] = []
    for one, suite, test in chosen:
        runs.extend(_runs_of(one, suite, test, options, user_agents, specs))
    if not runs:
        raise AgentevalError(
            f"no chosen test has a variation {options.variation!r}" if options.variation else "there is nothing to run",
            mend=_names("variations", (v.name for _, _, test in chosen for v in test.variations))
            if options.variation
            else "each chosen test has `repeat: 0`",
        )
    return Plan(
        execution_id=new_id(),
        title=options.title or _title(chosen),
        runs=tuple(runs),
        concurrency=options.concurrency or _concurrency(suite for _, suite, _ in chosen),
        source=", ".join(dict.fromkeys(str(one.path) for one, _, _ in chosen)),
        options=options.to_json(),
        respondents=Respondents.of(tuple(loaded), user_agents, options.judge),
        trust=options.trust,
        limits=Limits(options.max_cost, options.max_tokens, options.max_seconds),
        cache=options.cache,
    )


# Which tests


def _chosen(
    loaded: Sequence[LoadedSuite], options: PlanOptions, store: Store | None
) -> list[tuple[LoadedSuite, Suite, Test]]:
    if not loaded:
        raise AgentevalError("there is no suite to run", mend="name a file `*.suite.yaml` or a folder that holds some")
    for one in loaded:
        _check_valid(one, named=bool(options.tests))
    every = [(one, one.suite, test) for one in loaded if one.suite is not None for test in one.suite.tests]
    for name in options.tests:
        if not any(_means(name, one, test) for one, _, test in every):
            raise AgentevalError(f"there is no test {name!r}", mend=_near(name, [test.id for _, _, test in every]))
    tags = {tag.casefold() for tag in options.tags}
    failed = _failed_tests(options.failed_from, store)
    chosen = [
        (one, suite, test)
        for one, suite, test in every
        if (not options.tests or any(_means(name, one, test) for name in options.tests))
        and tags <= {tag.casefold() for tag in (*suite.tags, *test.tags)}
        and (failed is None or (one.key, test.id) in failed)
    ]
    if not chosen:
        raise AgentevalError(*_why_none(every, options))
    return chosen


def _means(name: str, loaded: LoadedSuite, test: Test) -> bool:
    """Whether `name` is this test: its id, or `FILE::ID` where several suites have a test of that id."""
    file, mark, test_id = name.rpartition("::")
    if test_id.casefold() != test.id.casefold():
        return False
    return not mark or file in (loaded.key, loaded.path.name, str(loaded.path))


def _check_valid(loaded: LoadedSuite, *, named: bool) -> None:
    errors = [problem for problem in loaded.problems if problem.severity == "error"]
    if not errors or (named and loaded.suite is not None and loaded.suite.tests):
        return
    first = errors[0]
    more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
    raise AgentevalError(
        f"the suite can't be run: {first.message}{more}",
        where=f"{first.file}:{first.line}:{first.column}",
        mend=first.fix or f"`agenteval validate {loaded.path}` lists all problems",
    )


def _failed_tests(reference: str | None, store: Store | None) -> set[tuple[str, str]] | None:
    if reference is None:
        return None
    if store is None:
        raise AgentevalError("what failed last is not known without a history")
    rows = store.runs_of_execution(store.execution(reference).id)
    return {(row.suite_key, row.test_id) for row in rows if row.status in ("failed", "error")}


def _why_none(every: Sequence[tuple[LoadedSuite, Suite, Test]], options: PlanOptions) -> tuple[str]:
    if not every:
        return ("the suites have no tests",)
    limits = []
    if options.tests:
        limits.append("named " + ", ".join(options.tests))
    if options.tags:
        limits.append("with the tags " + ", ".join(options.tags))
    if options.failed_from:
        limits.append(f"that failed in execution {options.failed_from}")
    return (f"none of {len(every)} tests is left: there is none " + " and ".join(limits),)


# The runs of a test


def _runs_of(
    loaded: LoadedSuite,
    suite: Suite,
    test: Test,
    options: PlanOptions,
    user_agents: Mapping[str, AgentConfig],
    made: Specs,
) -> Iterator[RunPlan]:
    _check_supported(loaded, test)
    specs = made.of(test.criteria)
    timeout_s = options.timeout or test.timeout or suite.defaults.timeout or TIMEOUT_S
    threshold = test.pass_threshold if test.pass_threshold is not None else suite.defaults.pass_threshold
    messages = _messages(loaded, test)
    for variation in (None, *test.variations):
        name = variation.name if variation is not None else ""
        if options.variation is not None and options.variation != (name or DEFAULT):
            continue
        agent = _agent(loaded, suite, test, variation, options, user_agents)
        context = _context(test, variation)
        for repetition in range(1, _repeat(suite, test, variation, options) + 1):
            ref = RunRef(new_id(), test.id, test.name, name, 0, repetition, agent.name)
            yield RunPlan(
                ref=ref,
                suite_key=loaded.key,
                suite_name=suite.name,
                agent=agent,
                messages=messages,
                context=context,
                specs=specs,
                variables=dict(test.variables),
                timeout_s=float(timeout_s),
                pass_threshold=threshold,
                tags=tuple(dict.fromkeys((*suite.tags, *test.tags))),
                seed=run_seed(suite.name, test.id, 0, repetition, options.seed),
            )


def run_seed(suite: str, test: str, row: int, repetition: int, seed: int = 0) -> int:
    """A number for an agent that varies: the same on every machine, the same for all variations of a test."""
    return int(content_hash([suite, test, row, repetition, seed])[:8], 16)


def _check_supported(loaded: LoadedSuite, test: Test) -> None:
    unsupported = None
    if test.dataset is not None:
        unsupported = "takes its rows from a dataset, and this version can't run datasets"
    elif len(test.turns or ()) > 1:
        unsupported = "has several `turns`, and this version sends one user message"
    if unsupported:
        raise AgentevalError(
            f"test {test.id!r} {unsupported}",
            where=f"{loaded.path}:{loaded.line_of(test.id)}",
            mend="write its rows as tests with `variables`" if test.dataset is not None else "use `messages`",
        )


def _messages(loaded: LoadedSuite, test: Test) -> tuple[Message, ...]:
    from agenteval_tui.suites.templates import render

    def rendered(text: str) -> str:
        try:
            return render(text, test.variables)
        except AgentevalError as error:
            where = f"{loaded.path}:{loaded.line_of(test.id)}"
            raise AgentevalError(f"test {test.id!r}: {error.what}", where=where, mend=error.mend) from error

    if not test.messages:
        text = test.turns[0] if test.turns else test.prompt or ""
        return (Message("user", rendered(text)),)
    from agenteval_tui.transcripts.codec import from_openai_messages

    given = from_openai_messages([message.model_dump(exclude_unset=True) for message in test.messages])
    if given.tool_calls:
        # The interface of agents has messages only: calls in them would be lost without a word.
        raise AgentevalError(
            f"test {test.id!r} starts with tool calls, and this version can't hand those to an agent",
            where=f"{loaded.path}:{loaded.line_of(test.id)}",
            mend="leave the tool calls and their results out of `messages`",
        )
    messages = tuple(replace(message, content=rendered(message.content)) for message in given.messages)
    return (*messages, Message("user", rendered(test.turns[0]))) if test.turns else messages


def _agent(
    loaded: LoadedSuite,
    suite: Suite,
    test: Test,
    variation: Variation | None,
    options: PlanOptions,
    user_agents: Mapping[str, AgentConfig],
) -> AgentPlan:
    own = variation.agent if variation is not None else None
    name = own or options.agent or test.agent or suite.agent
    where = f"{loaded.path}:{loaded.line_of(test.id)}"
    if not name:
        raise AgentevalError(
            f"test {test.id!r} names no agent, and neither does its suite",
            where=where,
            mend="write `agent: NAME` at the top of the suite, or give --agent NAME",
        )
    over = variation.config if variation is not None else None
    try:
        return agent_plan(name, suite, Path(loaded.path).resolve().parent, user_agents, over)
    except AgentevalError as error:
        raise AgentevalError(error.what, where=error.where or where, mend=error.mend) from error


def _context(test: Test, variation: Variation | None) -> dict[str, Any]:
    context = test.context.as_dict() if test.context is not None else {}
    if variation is None or variation.context is None:
        return context
    over = variation.context.as_dict()
    # `as_dict` leaves out what is empty, but an explicit empty value means none.
    for name in variation.context.model_fields_set - over.keys():
        over[name] = getattr(variation.context, name)
    return deep_merge(context, over)


def _repeat(suite: Suite, test: Test, variation: Variation | None, options: PlanOptions) -> int:
    own = variation.repeat if variation is not None else None
    for count in (options.repeat, own, test.repeat, suite.defaults.repeat):
        if count is not None:
            return int(count)
    return 1


def _concurrency(suites: Iterator[Suite]) -> int:
    # Where suites that differ run together, the smallest limit holds: each of them was written for a reason.
    limits = [suite.defaults.concurrency for suite in suites if suite.defaults.concurrency]
    return min(limits, default=CONCURRENCY)


# Words


def _check_numbers(options: PlanOptions) -> None:
    for name, least in (("repeat", 1), ("concurrency", 1), ("timeout", 0.001)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise AgentevalError(f"{name} must be {least} or more, not {value}")


def _title(chosen: Sequence[tuple[LoadedSuite, Suite, Test]]) -> str:
    if len(chosen) == 1:
        _, suite, test = chosen[0]
        return f"{suite.name}: {test.name}"
    names = list(dict.fromkeys(suite.name for _, suite, _ in chosen))
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more suite{'s' * (len(names) > 2)}"


def _near(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else _names("tests", known)


def _names(kind: str, known: Sequence[str] | Iterator[str]) -> str:
    listed = list(dict.fromkeys(known))
    if not listed:
        return f"there are no {kind}"
    more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
    return f"{kind}: " + ", ".join(listed[:8]) + more
