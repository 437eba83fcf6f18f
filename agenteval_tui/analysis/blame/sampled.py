"""Sampling tied to stored runs: continuations through `runs.fork`, each stored as a fork with the purpose `blame`.

What was asked before is not asked again, whoever asked: after a crash, or with more samples, only the others are paid.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from agenteval_tui.analysis.blame.model import Blame, Fault, Sampled, StepRate, Suspect
from agenteval_tui.analysis.blame.sampling import Counts, Found, Search
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.estimate import Estimate
from agenteval_tui.runs.fork.edits import ForkError, fork
from agenteval_tui.runs.fork.oracle import Oracle, Outcomes
from agenteval_tui.runs.fork.plan import Question
from agenteval_tui.transcripts.model import Transcript

SAMPLES = 8
"""The most continuations of one prefix, unless it is said otherwise."""


class Sampling:
    """Sampling of one run. `oracle` continues it; `steps` are the messages that the agent can do anew.

    Raises `AgentevalError` where the run has no step to go back to.
    """

    def __init__(self, oracle: Oracle, transcript: Transcript, samples: int = SAMPLES) -> None:
        self.oracle = oracle
        self.samples = samples
        self.steps: list[int] = []
        self.questions: list[Question] = []
        for index, message in enumerate(transcript.messages):
            if message.role != "assistant" or index == 0:
                continue
            try:
                self.questions.append(Question(fork(transcript, index - 1), index - 1))
            except ForkError:
                continue
            self.steps.append(index)
        if not self.steps:
            raise AgentevalError(
                "the run has no step that the agent could do anew",
                mend="agenteval blame without --samples says what its transcript tells",
            )
        self._look = Search(len(self.steps), samples=samples)
        self.newest = self.steps[0]
        """The step that was asked for last."""
        self._known = 0
        self._cost: float | None = None
        self._stopped = ""

    @property
    def first(self) -> list[Question]:
        """Those that a binary search without errors asks: for the price, and for the question of trust."""
        places, middle = [0], len(self.questions)
        while middle > 1:
            middle //= 2
            places.append(middle)
        return [self.questions[place] for place in dict.fromkeys(places)]

    def price(self) -> tuple[Estimate, int]:
        """What it takes at most, if no answer contradicts another one: `runs` are continuations; and the requests."""
        questions = self.first
        takes = self.oracle.price(questions, self.samples)
        planned = self.oracle.plan(questions, self.samples)
        left = sum(
            len(missing) * max(len(self.steps) - self.questions.index(question), 1)
            for question, missing in zip(questions, planned.missing, strict=True)
        )
        return takes, left

    async def asking(self, tell: Callable[[Sampled], None] | None = None) -> Sampled:
        """Ask until it is decided, or can't be; `tell` hears what is known after each answer."""
        while not self._stopped and (question := self._look.next()) is not None:
            place, count = question
            (outcome,) = await self.oracle.asking([self.questions[place]], count)
            self._take(place, count, outcome)
            if tell is not None:
                tell(self.sampled)
        return self.sampled

    @property
    def sampled(self) -> Sampled:
        """What is known by now."""
        found: Found = self._look.found()
        return Sampled(
            answer=found.answer,
            step=None if found.step is None else self.steps[found.step],
            rates=tuple(StepRate(self.steps[one.prefix], one.passed, one.n, one.low, one.high) for one in found.rates),
            samples=self.samples,
            asked=found.asked,
            known=min(self._known, found.asked),
            cost=self._cost,
            execution=self.oracle.execution_id,
            stopped=self._stopped,
        )

    def _take(self, place: int, count: int, outcome: Outcomes) -> None:
        before = self._look.counts[place].n
        self.newest = self.steps[place]
        self._look.tell(place, Counts(outcome.passed, outcome.decided))
        stored = sum(one.stored for one in outcome.answers if one.status in ("passed", "failed"))
        self._known += max(stored - before, 0)
        if outcome.cost is not None:
            self._cost = (self._cost or 0.0) + outcome.cost
        if outcome.stopped:
            self._stopped = outcome.stopped
        elif outcome.decided < count:
            self._stopped = "continuations ended without a verdict"


def with_sampling(blame: Blame, sampled: Sampled) -> Blame:
    """The free answer with what sampling found: where it decides, it counts more."""
    suspects = [*((blame.decisive,) if blame.decisive is not None else ()), *blame.others]
    if sampled.answer == "undecided":
        return replace(blame, sampled=sampled)
    decisive = None
    if sampled.step is not None:
        known = next((one for one in suspects if one.step == sampled.step), None)
        decisive = known or Suspect(sampled.step, "agent", ())
    others = tuple(one for one in suspects if decisive is None or one.step != decisive.step)[:2]
    fault: Fault = "criterion" if blame.fault == "criterion" else decisive.fault if decisive is not None else "unknown"
    return replace(blame, sampled=sampled, decisive=decisive, others=others, fault=fault)
