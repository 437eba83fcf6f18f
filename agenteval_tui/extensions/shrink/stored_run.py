"""Shrinking a stored run: where its conversation is cut, which cause is meant, and the agent that is asked."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.blame.free_answer import blame_of
from agenteval_tui.analysis.save_fork import save_as_test
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.extensions.shrink.shrink import DEFAULTS, Count, Progress, Shrinker, ShrinkOptions, Shrunk, fewest
from agenteval_tui.history import causes
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.edits import ANSWERED, end_of_step, fork, unseen_before
from agenteval_tui.runs.fork.model import AnyEdit, Tools
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.fork.plan import Question
from agenteval_tui.runs.plan.conversation import Conversation
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.transcripts.model import Transcript

SILENT = ("connection", "auth", "rate_limit", "timeout", "server", "budget")
"""Kinds of errors in which an agent was not reached, or did not get to answer."""


class ShrinkError(AgentevalError):
    """This run can't be shrunk."""


class ShrinkQuestion(Struct, frozen=True):
    """What is shrunk: the conversation up to a step of the run, and the cause that must come back (its signature, and
    the criterion that failed; "": the agent's own error). `unseen`: as in `Shrunk`."""

    run: RunRow
    step: int
    conversation: Conversation
    cause: str
    criterion: str
    unseen: int = 0


def question_of(store: Store, row: RunRow, options: ShrinkOptions = DEFAULTS) -> ShrinkQuestion:
    """What is to be shrunk of a stored run, up to which step, and whose failure is meant.

    Raises `ShrinkError`: it did not fail, or the criterion did not; `ForkError` for a step that can't be continued.
    """
    if row.status not in ("failed", "error"):
        raise ShrinkError(
            f"there is nothing to shrink: this run is {row.status}",
            where=f"run {row.id}",
            fix="agenteval history --runs --outcome failed lists runs that failed",
        )
    criterion = options.criterion
    results, failures = store.results(row.id), causes.failures(store, [row.rowid])
    names = [results[failure.position].criterion if failure.position >= 0 else "" for failure in failures]
    meant = [failure for failure, name in zip(failures, names, strict=True) if name.casefold() == criterion.casefold()]
    if criterion and not meant:
        failed = ", ".join(dict.fromkeys(filter(None, names))) or "none"
        raise ShrinkError(f"criterion {criterion!r} did not fail in this run", fix=f"criteria that failed: {failed}")
    if not failures:
        raise ShrinkError("why this run failed is unknown", where=f"run {row.id}", fix="agenteval why shows more")
    failure = (meant or failures)[0]
    transcript = store.transcript(row.id)
    step = _last_given(transcript, _blamed(store, row, transcript)) if options.at is None else options.at - 1
    conversation = fork(transcript, step)
    unseen = sum(map(len, unseen_before(transcript, end_of_step(transcript, step))))
    return ShrinkQuestion(row, step, conversation, failure.signature, names[failures.index(failure)], unseen)


def shrink(
    question: ShrinkQuestion,
    oracle: Oracle,
    options: ShrinkOptions = DEFAULTS,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Shrunk:
    """Shrink it. Blocks; `oracle.stop()` ends it with the smallest case that was found until then. What was asked once
    is in the history: the same again costs nothing until it goes further.

    Raises `AgentevalError` where the agent can't say which it has, and `NotTrustedError`."""
    tools = oracle.tools(question.conversation)

    def ask(conversation: Conversation, n: int) -> Count:
        outcomes = oracle.ask(conversation, n, step=question.step, edits=edits_of(conversation))
        # An agent that breaks at what it is told fails, and not for this cause; one that nobody reaches says nothing.
        silent = [
            answer
            for answer in outcomes.answers
            if answer.run.error_kind in SILENT and question.cause not in answer.causes
        ]
        hits = sum(question.cause in answer.causes for answer in outcomes.answers)
        stopped = outcomes.stopped
        if silent and not stopped:
            stopped = f"the agent could not be asked: {silent[0].run.error_message}"
        return Count(hits, len(outcomes.answers) - len(silent), stopped)

    shrinker = Shrinker(
        question.conversation,
        ask,
        rate=options.rate,
        keep_calls=options.keep_calls,
        tools=tools or (),
        keep_tools=options.keep_tools,
        on_progress=on_progress,
    )
    shrunk = replace(shrinker.run(), unseen=question.unseen)
    if tools is None:
        kind = oracle.source.agent.config.get("kind")
        return replace(shrunk, tools_stay=f"an agent of kind {kind} has its own")
    return shrunk


def edits_of(conversation: Conversation) -> tuple[AnyEdit, ...]:
    """What is kept of a question about how it was made: the changes of tools."""
    return () if conversation.tools is None else (Tools(conversation.tools),)


def save_small_case(
    question: ShrinkQuestion, shrunk: Shrunk, oracle: Oracle, *, test_id: str = ""
) -> tuple[LoadedSuite, str]:
    """Write the small case as a test behind those of the run's suite; the suite as it then is, and the test's id ("":
    one made from the run's test). Raises `AgentevalError` as `save_as_test`."""
    row = question.run
    about = f"The smallest input found that fails as run {short_id(row.id)} of {row.test_id} does"
    return save_as_test(
        oracle.source,
        shrunk.conversation,
        test_id=test_id,
        name=f"{row.test_name or row.test_id}, shrunk",
        description=f"{about}: {question.criterion}." if question.criterion else f"{about}.",
        suffix="small",
    )


class ShrinkPrice(Struct, frozen=True):
    """About what shrinking takes: continuations, few and many; US dollars and seconds of one (None: not known)."""

    low: int
    high: int
    cost: float | None
    seconds: float | None


def price_of(oracle: Oracle, question: ShrinkQuestion, options: ShrinkOptions = DEFAULTS) -> ShrinkPrice:
    """What was measured on planted triggers (`benchmarks/accuracy/shrink.py`): 8 to 60 times the sure question."""
    sure = fewest(0, 0, options.rate)
    low, high = 8 * sure, 60 * sure
    takes = oracle.price([example(question)], high)
    if not takes.runs:
        return ShrinkPrice(low, high, None, None)
    cost = None if takes.whole_cost is None else takes.whole_cost / takes.runs
    seconds = None if takes.seconds is None else takes.seconds.expected / takes.runs
    return ShrinkPrice(low, high, cost, seconds)


def example(question: ShrinkQuestion) -> Question:
    """One continuation of what is shrunk: what it takes is known from the run."""
    return Question(question.conversation, question.step)


def _blamed(store: Store, row: RunRow, transcript: Transcript) -> int:
    """The step with the strongest evidence, decisive or not: shrinking checks whether the failure comes back from
    there. Else the last one."""
    named = blame_of(store, row).named
    return named[0].step if named else len(transcript.messages) - 1


def _last_given(transcript: Transcript, blamed: int) -> int:
    """The last step before `blamed` that the agent answers."""
    for step in range(min(blamed, len(transcript.messages)) - 1, -1, -1):
        if transcript.messages[step].role in ANSWERED:
            return step
    answered = [step for step, message in enumerate(transcript.messages) if message.role in ANSWERED]
    if not answered:
        raise ShrinkError("the run has no message for an agent to answer", fix="agenteval show prints it")
    return answered[0]
