"""Sampling tied to stored runs: continuations through `runs.fork`, each stored as a fork with the purpose `blame`.

What was asked before is not asked again, whoever asked: after a crash, or with more samples, only the others are paid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from msgspec.structs import replace

from agenteval_tui.analysis.blame.model import Blame, SampledAnswer, SamplingPrice
from agenteval_tui.analysis.blame.recorded_facts import SAMPLES_OPTION, sampled_of, steps_to_redo
from agenteval_tui.analysis.blame.sampling import Counts, Search
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.options import limits
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.estimate import Estimate
from agenteval_tui.runs.fork.continuations import Outcomes
from agenteval_tui.runs.fork.options import MAX_COST, ContinuationOptions
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.fork.plan import Question
from agenteval_tui.transcripts.model import Transcript

SAMPLES = 8
"""How often a run is continued from a step where nothing else is asked for."""


class BlameOptions(ContinuationOptions, frozen=True, kw_only=True):
    """How a run is sampled. `samples` None: not at all, unless a limit on cost is given."""

    samples: (
        Annotated[
            int,
            limits("Also continue the run from each step, at most N times (8 is a good start).", "N", ge=2, le=200),
        ]
        | None
    ) = None
    max_cost: (
        Annotated[float, limits(f"{MAX_COST}; without --samples: sample, {SAMPLES} times.", "USD", gt=0)] | None
    ) = None


class Sampling:
    """Sampling of one run. `oracle` continues it; `steps` are the messages that the agent can repeat.

    Raises `AgentevalError` if the run has no step that the agent can repeat.
    """

    def __init__(self, oracle: Oracle, transcript: Transcript, samples: int = SAMPLES) -> None:
        self.oracle = oracle
        self.samples = samples
        # Stored with the continuations, so that their number is known when they are read again.
        oracle.options[SAMPLES_OPTION] = samples
        # A program that is led by its tape repeats only what is on it.
        tape = oracle.source.tape
        again = [entry for entry in steps_to_redo(transcript) if not tape or entry[0] in tape]
        self.steps = [step for step, _ in again]
        self.questions = [Question(conversation, step - 1, answers=tape.get(step)) for step, conversation in again]
        if not self.steps:
            raise AgentevalError(
                "the run has no step that the agent could repeat",
                fix="agenteval blame without --samples uses only its transcript",
            )
        self._look = Search(len(self.steps), samples=samples)
        self.newest = self.steps[0]
        """The step that was sampled last."""
        self._known = 0
        self._cost: float | None = None
        self._stopped = ""

    @property
    def first(self) -> list[Question]:
        """The questions of a binary search without contradictions: for the price, and for the trust check."""
        places, middle = [0], len(self.questions)
        while middle > 1:
            middle //= 2
            places.append(middle)
        return [self.questions[place] for place in dict.fromkeys(places)]

    def price(self) -> tuple[Estimate, int]:
        """The highest price if no answers contradict each other (`runs` counts continuations), and the number of
        requests. What stands before a step is not asked again, so a continuation takes its share of a whole run."""
        questions = self.first
        takes = self.oracle.price(questions, self.samples)
        planned = self.oracle.plan(questions, self.samples)
        remaining = sum(
            len(missing) * max(len(self.steps) - self.questions.index(question), 1)
            for question, missing in zip(questions, planned.missing, strict=True)
        )
        whole = takes.runs * len(self.steps)
        return takes.of_requests(remaining / whole if whole else 0.0), remaining

    async def asking(self, tell: Callable[[SampledAnswer], None] | None = None) -> SampledAnswer:
        """Ask until the step is found, or can't be found. Calls `tell` with the result so far after each answer."""
        while not self._stopped and (question := self._look.next()) is not None:
            place, count = question
            (outcome,) = await self.oracle.asking([self.questions[place]], count)
            self._take(place, count, outcome)
            if tell is not None:
                tell(self.sampled)
        return self.sampled

    @property
    def sampled(self) -> SampledAnswer:
        """The result so far."""
        outcome = self._look.result()
        return sampled_of(
            outcome,
            self.steps,
            self.samples,
            stored=min(self._known, outcome.asked),
            cost=self._cost,
            execution=self.oracle.execution_id,
            stopped=self._stopped,
        )

    def _take(self, place: int, count: int, outcome: Outcomes) -> None:
        before = self._look.counts[place].n
        self.newest = self.steps[place]
        self._look.tell(place, Counts(outcome.passed, outcome.decided))
        stored = sum(answer.stored for answer in outcome.answers if answer.status in ("passed", "failed"))
        self._known += max(stored - before, 0)
        if outcome.cost is not None:
            self._cost = (self._cost or 0.0) + outcome.cost
        if outcome.stopped:
            self._stopped = outcome.stopped
        elif outcome.decided < count:
            self._stopped = "continuations ended without a verdict"


def with_price(store: Store, row: RunRow, blame: Blame, transcript: Transcript) -> Blame:
    """The answer with the price of sampling, where the step is not known and was not sampled. Calls no agent."""
    if blame.decision != "not_known" or blame.sampled is not None:
        return blame
    return replace(blame, sampling_price=sampling_price(store, row, transcript))


def sampling_price(store: Store, row: RunRow, transcript: Transcript) -> SamplingPrice:
    """What sampling takes at most, if no answers contradict each other. Calls no agent."""
    try:
        takes, requests = Sampling(Oracle(store, row, purpose="blame"), transcript).price()
    except AgentevalError as error:
        return SamplingPrice(samples=SAMPLES, refused=error.what)
    if not takes.runs:
        return SamplingPrice(samples=SAMPLES, cost=0.0)
    return SamplingPrice(samples=SAMPLES, continuations=takes.runs, requests=requests, cost=takes.whole_cost)
