"""From a stored run and questions to the runs that are still to be made: what was answered is not asked again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from agenteval_tui.agents.recording.options import NONE
from agenteval_tui.agents.registry import options_model
from agenteval_tui.agents.stored_config import agent_version
from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import content_hash, new_id, short_id
from agenteval_tui.grading.spec import json_like
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import known_spec
from agenteval_tui.runs.estimate import Estimate, estimate
from agenteval_tui.runs.events import RunRef
from agenteval_tui.runs.fork.edits import (
    CHANGES,
    WHOLE,
    ForkError,
    edits_of,
    end_of_step,
    first_question,
    fork,
    told_before,
    unseen_before,
    without_own_prompts,
)
from agenteval_tui.runs.fork.model import AnyEdit, ForkOrigin, Purpose, System, Tools, read_origin
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.judge_resolution import Respondents
from agenteval_tui.runs.plan.agents import AgentPlan, expanded
from agenteval_tui.runs.plan.conversation import Conversation
from agenteval_tui.runs.plan.model import Limits, Plan, RunPlan
from agenteval_tui.runs.plan.options import DEFAULT_CONCURRENCY
from agenteval_tui.runs.plan.runs import TIMEOUT_S
from agenteval_tui.runs.plan.variation import agent_plan
from agenteval_tui.runs.resume import StoredPlan, stored_plan
from agenteval_tui.runs.trust_check import check_trust
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.environment import environment_if_readable
from agenteval_tui.suites.load import load_suite, load_suites
from agenteval_tui.suites.model import AgentConfig
from agenteval_tui.transcripts.model import Message, Transcript, known_by

ANSWERS = ("passed", "failed", "needs_review")
"""How a run ended that answered its question. After an error it is asked again."""


class CannotContinueError(ForkError):
    """The run's agent can't be asked with a conversation in which it answered already."""


class Question(Struct, frozen=True):
    """A conversation to continue. `step` and `edits` say how it was made of the run's transcript; `label` is what a
    person calls it, where several are asked. `unseen`: how many messages it is without, or has with another text,
    because the model did not see them as the transcript has them; `only_told`: how many the transcript does not
    have. `answers`: the run's program starts anew, and gets this many answers from its tape (`tape`); None: the agent
    is told the conversation."""

    conversation: Conversation
    step: int = 0
    edits: tuple[AnyEdit, ...] = ()
    label: str = ""
    unseen: int = 0
    only_told: int = 0
    answers: int | None = None


def questions_of(
    transcript: Transcript, at: int | None, given: Mapping[str, Any], sweep: Sequence[Mapping[str, Any]] = ()
) -> list[Question]:
    """The questions that people mean by changes (`edits.CHANGES`) of step `at`, which counts from 1 here.

    `sweep`: a question for each of its entries, which are laid over `given`; they may have `at` and `label`. Without a
    step only the system prompt and the tools can be changed: then the conversation begins anew. Raises `ForkError`.
    """
    questions = []
    for number, entry in enumerate(sweep or ({},), 1):
        unknown = sorted(str(name) for name in entry if name not in (*CHANGES, "at", "label"))
        if unknown:
            fix = f"known: {', '.join((*CHANGES, 'at', 'label'))}"
            raise ForkError(f"entry {number} of the sweep has {unknown[0]!r}", fix=fix)
        position = entry.get("at", at)
        if position is not None and (not isinstance(position, int) or isinstance(position, bool)):
            raise ForkError(f"`at` of entry {number} is not the number of a message", fix="write a number from 1 on")
        changes = {**given, **{name: value for name, value in entry.items() if name in CHANGES}}
        if position is None and set(changes) - set(WHOLE):
            raise ForkError("no step was given to change", fix="give a step: the number of a message")
        step = first_question(transcript) if position is None else position - 1
        edits = edits_of(transcript, step, changes)
        end = end_of_step(transcript, step)
        left_out, shortened = unseen_before(transcript, end)
        only_told = sum(map(len, told_before(transcript, end).values()))
        unseen = (left_out | shortened.keys()) - {edit.step for edit in edits if not isinstance(edit, System | Tools)}
        conversation = fork(transcript, step, edits)
        questions.append(Question(conversation, step, edits, str(entry.get("label", "")), len(unseen), only_told))
    return questions


class Source(Struct, frozen=True):
    """A stored run that can be continued, as `source_of` found it."""

    row: RunRow
    stored: StoredPlan
    context: Mapping[str, Any]
    adds_prompt: bool = False
    """Whether its program adds its own system prompt to what it is told (`edits.without_own_prompts`)."""
    tape: Mapping[int, int] = {}
    """By message that a model answered: how many answers of its tape stand before it; {}: it is told a conversation."""

    @property
    def agent(self) -> AgentPlan:
        """The agent that is asked."""
        return self.stored.run.agent

    def asked(self, conversation: Conversation, edits: Sequence[AnyEdit]) -> Conversation:
        """What its agent is asked for a conversation that these edits made."""
        messages = self.stored.run.messages
        return without_own_prompts(conversation, messages, edits) if self.adds_prompt else conversation


class ForkPlan(Struct, frozen=True):
    """What is known of each question already (`answers`), and the runs that are missing (`missing`), by question."""

    answers: tuple[tuple[RunRow, ...], ...]
    missing: tuple[tuple[RunPlan, ...], ...]

    @property
    def runs(self) -> tuple[RunPlan, ...]:
        """All runs that are missing, the first of each question first."""
        longest = max(map(len, self.missing), default=0)
        return tuple(runs[number] for number in range(longest) for runs in self.missing if number < len(runs))


def source_of(
    store: Store,
    row: RunRow,
    *,
    user_agents: Mapping[str, AgentConfig] | None = None,
    agent: str = "",
    by_tape: bool = False,
) -> Source:
    """The run with all that continuing it needs: the task, agent and criteria that are stored with it. `agent`: another
    one continues it, as the run's suite has it now; else one of the user's. `by_tape`: if it has a tape, it is
    continued from that, which needs no agent that takes a conversation.

    A run that was graded again is continued as it was recorded, and graded as it was last. Raises `AgentevalError`: it
    came from elsewhere, its agent can't continue (`CannotContinueError`), a key is not there any more.
    """
    recorded = store.run(row.recording) if row.recording else row
    elsewhere = bool(agent) and store.setup_of(recorded.execution_id) is None
    if elsewhere:
        stored = _imported(recorded, agent, user_agents)
    else:
        stored = stored_plan(store, recorded, user_agents=user_agents)
    # Graded again, or imported: the criteria that judged it last, and not those that it was planned with.
    if row.recording or elsewhere:
        versions = [known_spec(store, digest) for digest in row.criteria]
        specs = tuple(spec for spec in versions if spec is not None)
        stored = replace(stored, run=replace(stored.run, specs=specs))
    if agent and not elsewhere:
        named = _agent_named(agent, row, stored.own)
        stored = replace(stored, run=replace(stored.run, agent=named, ref=replace(stored.run.ref, agent=agent)))
    tape: Mapping[int, int] = {}
    if by_tape and not agent:
        # It reads the models' protocols: 100 ms for who only looks at forks.
        from agenteval_tui.runs.fork.tape import answers_before

        tape = answers_before(store, row, stored.run.agent)
    if not tape:
        check_agent(stored.run.agent)
    # What was added to the prompt for the test's first turn is in the transcript already.
    context = {name: value for name, value in stored.run.context.items() if name != "input_data"}
    # Only what is seen from outside, in the requests of a program, has prompts that nobody gave it.
    model = options_model(str(stored.run.agent.config.get("kind", "")))
    adds_prompt = not agent and model is not None and model.usual_capture != NONE
    return Source(row, stored, context, adds_prompt, tape)


def _imported(row: RunRow, agent: str, user_agents: Mapping[str, AgentConfig] | None) -> StoredPlan:
    """What a run that came from elsewhere, or that was recorded without a test, is continued with by an agent: of the
    suites in the current folder, or the user's. Raises `AgentevalError` where there is none of that name."""
    mine = load_agents(config_dir()) if user_agents is None else user_agents
    try:
        suites = [loaded for loaded in load_suites([Path()], keep_unreadable=True) if loaded.suite is not None]
    except AgentevalError:
        suites = []  # the current folder is not a project
    having = [loaded for loaded in suites if loaded.suite is not None and agent in loaded.suite.agents]
    suite, folder = (having[0].suite, Path(having[0].key).parent) if having else (None, config_dir())
    ref = RunRef(
        row.id,
        test=row.test_id,
        test_name=row.test_name,
        variation="",
        row=row.row,
        repetition=1,
        agent=agent,
        suite=row.suite_name,
        row_key=row.row_key,
    )
    run = RunPlan(
        ref,
        row.suite_key,
        row.suite_name,
        agent_plan(agent, suite, folder, mine),
        messages=(),
        context={},
        specs=(),
        variables=row.variables,
        timeout_s=TIMEOUT_S,
        pass_threshold=None,
        tags=row.tags,
        seed=0,
    )
    return StoredPlan(run, Respondents(user_agents=mine), DEFAULT_CONCURRENCY, False, mine)


def _agent_named(name: str, row: RunRow, own: Mapping[str, AgentConfig]) -> AgentPlan:
    """The agent of that name. Raises `AgentevalError` where there is none."""
    path = Path(row.suite_key)
    suite = load_suite(path).suite if path.is_file() else None
    return agent_plan(name, suite, path.parent, own)


def check_agent(agent: AgentPlan) -> None:
    """Raise `CannotContinueError` where this agent can't be asked with answers of its own before the question."""
    kind = str(agent.config.get("kind", ""))
    model = options_model(kind)
    if model is None:
        return
    options = model.model_validate(expanded(agent, environment_if_readable(agent.base_dir, config=agent.config)))
    if options.prefix_problem is not None:
        problem, fix = options.prefix_problem
        raise CannotContinueError(
            f"this agent can't continue a conversation: it {problem}",
            where=f"agent {agent.name!r} of kind {kind}",
            fix=fix,
        )


def takes_tools(agent: AgentPlan) -> bool:
    """Whether the agent has tools of which one can be left out."""
    model = options_model(str(agent.config.get("kind", "")))
    return model is not None and model.takes_tools


def check_tools(agent: AgentPlan) -> None:
    """Raise `ForkError` where nothing can be changed of the agent's tools."""
    if not takes_tools(agent):
        raise ForkError(
            f"agent {agent.name!r} of kind {agent.config.get('kind')} has its own tools, which can't be left out",
            fix="leave it out in the agent's program, and replay the run: `agenteval replay`",
        )


def fork_plan(
    store: Store, source: Source, questions: Sequence[Question], count: int, purpose: Purpose = "fork"
) -> ForkPlan:
    """For each question `count` answers: those that the history has, and runs for the others."""
    answered = [
        (origin, row)
        for row in store.forks_of(source.row.id)
        if row.status in ANSWERS and (origin := read_origin(row.fork_of, row.fork)) is not None
    ]
    answers: list[tuple[RunRow, ...]] = []
    missing: list[tuple[RunPlan, ...]] = []
    planned: dict[str, int] = {}
    for question in questions:
        if question.conversation.tools is not None:
            check_tools(source.agent)
        conversation = question.conversation
        if not takes_tools(source.agent):
            conversation = replace(conversation, unseen_tools=())
        name = question_of(source, conversation, question.answers)
        # Whatever asked it, a fork or a blame: an equal question has the same name, and its answers serve all.
        rows = tuple(row for origin, row in answered if origin.question == name)[:count]
        numbers = {row.repetition for row in rows}
        # The same question may be in this request twice: its numbers go on.
        before = planned.get(name, 0)
        # A number of repetition gives the seed: those that were answered are left out, so nothing is asked twice.
        free = [number for number in range(1, count + len(numbers) + before + 1) if number not in numbers][before:]
        missing_numbers = free[: count - len(rows)]
        planned[name] = before + len(missing_numbers)
        origin = ForkOrigin(
            source.row.id,
            question.step,
            question.edits,
            purpose,
            question=name,
            label=question.label,
            answers=question.answers,
        )
        answers.append(rows)
        missing.append(tuple(_run(source, conversation, origin, number) for number in missing_numbers))
    return ForkPlan(tuple(answers), tuple(missing))


def question_of(source: Source, conversation: Conversation, answers: int | None = None) -> str:
    """A hash that is equal for equal questions: the same conversation, agent, context, variables and criteria; with
    `answers` of a tape a different one than without."""
    run, agent = source.stored.run, source.agent
    messages = [[m.role, m.content, m.tool_calls, m.tool_call, m.name] for m in conversation.messages]
    calls = [[c.name, c.arguments, c.result, c.status] for c in conversation.tool_calls]
    version = agent_version(agent.config, agent.base_dir, environment_if_readable(agent.base_dir, config=agent.config))
    criteria = [spec.hash for spec in run.specs]
    context = conversation.context(source.context)
    # What only some questions have is added where it is there, so the hash of the others is the same without it.
    parts: list[Any] = [version, messages, calls, conversation.turns, context, run.variables, criteria, run.seed]
    if attached := known_by(conversation.messages):
        parts.append(attached)
    if answers is not None:
        parts.append(["tape", answers])
    if run.user is not None:
        parts.append([run.user.agent.hash, to_builtins(run.user.brief, enc_hook=str)])
    return content_hash(json_like(parts))[:16]


def title_of(row: RunRow, purpose: Purpose = "fork") -> str:
    """The title of an execution that continues a run, if it is given none."""
    return f"{purpose} of {one_line(row.test_name or row.test_id, 80)}, run {short_id(row.id)}"


def execution_plan(
    source: Source,
    runs: tuple[RunPlan, ...],
    *,
    execution_id: str = "",
    title: str = "",
    max_cost: float | None = None,
    concurrency: int | None = None,
    trust: bool = False,
    continues: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of an execution of kind `fork`. `continues`: the execution is there, and these runs are in it.

    Raises `NotTrustedError` where the agent would start programs of a folder that was not trusted.
    """
    stored = source.stored
    row = source.row
    plan = Plan(
        execution_id=execution_id or new_id(),
        title=title or title_of(row),
        runs=runs,
        concurrency=concurrency or stored.concurrency,
        source=f"fork of run {row.id}",
        options={**({} if max_cost is None else {"max_cost": max_cost}), **(options or {}), "fork_of": row.id},
        respondents=stored.respondents,
        trust=trust,
        limits=Limits(cost=max_cost),
        order=tuple(run.ref.run for run in runs) if continues else (),
        kind="fork",
    )
    return replace(plan, permission=check_trust(plan, own=stored.own, foreign=stored.foreign))


class ForkPrice(Struct, frozen=True):
    """What a request takes: `takes` is an estimate of `requests` requests or more; `known` continuations are known.
    `branches`: how many changes are tried."""

    takes: Estimate
    requests: int
    known: int
    branches: int = 1


def priced(store: Store, request: ForkRequest) -> ForkPrice:
    """What a request would take. Raises what asking it would raise, but for a lack of trust."""
    source, questions = _requested(store, request)
    planned = fork_plan(store, source, questions, request.n)
    messages = store.transcript(request.run).messages
    requests = sum(
        len(runs) * requests_left(messages, question.conversation)
        for question, runs in zip(questions, planned.missing, strict=True)
    )
    return ForkPrice(price(store, source, planned.runs), requests, sum(map(len, planned.answers)), len(questions))


def requested_plan(
    store: Store,
    request: ForkRequest,
    *,
    user_agents: Mapping[str, AgentConfig] | None = None,
) -> Plan:
    """The plan of the continuations that are not known yet. Raises `ForkError`: all are known; what `source_of` raises;
    and `NotTrustedError`."""
    source, questions = _requested(store, request, user_agents)
    planned = fork_plan(store, source, questions, request.n)
    if not planned.runs:
        raise ForkError(
            "all these continuations are already stored: there is nothing to ask", fix="ask for more continuations"
        )
    return execution_plan(
        source,
        planned.runs,
        max_cost=request.max_cost,
        concurrency=request.concurrency,
        trust=request.trust,
        options={"purpose": "fork"},
    )


def _requested(
    store: Store, request: ForkRequest, user_agents: Mapping[str, AgentConfig] | None = None
) -> tuple[Source, list[Question]]:
    source = source_of(store, store.run(request.run), user_agents=user_agents, agent=request.agent)
    return source, questions_of(store.transcript(request.run), request.at, request.changes, request.sweep)


def price(store: Store | None, source: Source, runs: tuple[RunPlan, ...], concurrency: int | None = None) -> Estimate:
    """What these runs will take, by what runs of this test and agent took from their beginning: at most that, about."""
    stored = source.stored
    plan = Plan("", "", runs, concurrency or stored.concurrency, respondents=stored.respondents, kind="fork")
    return estimate(plan, store)


def requests_left(messages: Sequence[Message], conversation: Conversation) -> int:
    """How often the agent is asked in one continuation: as often as it answered in the run behind what is told again.

    `messages` are those of the run that is continued. At least once for each turn.
    """
    retold = sum(message.role == "assistant" for message in conversation.messages)
    answered = sum(message.role == "assistant" for message in messages)
    return max(answered - retold, 1 + len(conversation.turns))


def _run(source: Source, conversation: Conversation, origin: ForkOrigin, number: int) -> RunPlan:
    run = source.stored.run
    if origin.answers is not None:  # its program has to ask what it asked: with the same seed
        return replace(run, ref=replace(run.ref, run=new_id(), repetition=number, gate=None), stop=None, fork=origin)
    conversation = source.asked(conversation, origin.edits)
    return replace(
        run,
        ref=replace(run.ref, run=new_id(), repetition=number, gate=None),
        messages=conversation.messages,
        tool_calls=conversation.tool_calls,
        turns=conversation.turns,
        context=conversation.context(source.context),
        seed=_seed(run.seed, number),
        stop=None,
        fork=origin,
    )


def _seed(seed: int, number: int) -> int:
    """Another one for each continuation, the same whenever it is asked."""
    return int(hashlib.sha256(f"{seed},{number}".encode()).hexdigest()[:8], 16)
