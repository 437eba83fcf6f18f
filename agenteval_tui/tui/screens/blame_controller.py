"""What the sheet that blames a step of a run knows and does, without Textual."""

from __future__ import annotations

from typing import Literal

from agenteval_tui.analysis.blame.free_answer import Given, blame_of
from agenteval_tui.analysis.blame.known import known_samples, steps_to_redo, with_sampling
from agenteval_tui.analysis.blame.model import Blame, SampledAnswer
from agenteval_tui.analysis.blame.options import SAMPLES, BlameOptions
from agenteval_tui.analysis.blame.sampled_answer import Sampling
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.options import options_of
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.estimate import Estimate
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.views.fork import gone_tools_text

Stage = Literal["reading", "ready", "running", "stopping", "ended", "refused"]

MOST = options_of(BlameOptions)["samples"].most
"""Continuations of one step that can be asked for."""


class BlameController:
    """One run. `read` and `run` block: call them in a thread; `blame` may be looked at meanwhile.

    `blame` is None where there is nothing to blame. `price` is None where the agent can't be asked. `error` says why.
    """

    def __init__(self, store: Store, run: str) -> None:
        self.stage: Stage = "reading"
        self.blame: Blame | None = None
        self.transcript = Transcript()
        self.error: AgentevalError | None = None
        self.samples = SAMPLES
        self.price: tuple[Estimate, int] | None = None
        self.gone = ""
        """Which tools of the run the agent does not have any more, in words."""
        self.newest: int | None = None
        """The step that the last answer is about."""
        self._store = store
        self._run = run
        self._free: Blame | None = None
        self._sampling: Sampling | None = None

    @property
    def running(self) -> bool:
        """Whether the agent is being asked."""
        return self.stage in ("running", "stopping")

    @property
    def sampled(self) -> SampledAnswer | None:
        """What is known by sampling."""
        return self.blame.sampled if self.blame is not None else None

    @property
    def can_ask(self) -> bool:
        """Whether asking may tell something that is not known."""
        sampled = self.sampled
        open_yet = sampled is None or sampled.answer == "undecided" or bool(sampled.stopped)
        return self.stage in ("ready", "ended") and self.price is not None and open_yet

    @property
    def may_cost(self) -> bool:
        """Whether asking may cost something, or its price is not known."""
        return self.price is None or self.price[0].whole_cost != 0

    def read(self) -> None:
        """The free answer, and what sampling may cost."""
        try:
            row = self._store.run(self._run)
            self.transcript = self._store.transcript(row.id)
            self._free = blame_of(self._store, row, Given(self.transcript))
            sampled_answer = known_samples(self._store, row, self.transcript)
            self.blame = self._free if sampled_answer is None else with_sampling(self._free, sampled_answer)
            self.samples = max(SAMPLES, sampled_answer.samples) if sampled_answer is not None else SAMPLES
            self._offer(row)
            self.gone = self._gone_tools()
            self.stage = "ready"
        except AgentevalError as error:
            self.error, self.stage = error, "refused"

    def begin(self) -> None:
        """From now on it samples; `run` does the work."""
        self.stage, self.error, self.newest = "running", None, None

    def run(self) -> None:
        """Ask until it is decided, stopped, or can't be decided; then twice as many are offered."""
        assert self._free is not None
        assert self._sampling is not None
        try:
            self._sample(self._sampling)
            self._offer_again()
        finally:
            self.stage = "ended"

    def stop(self) -> None:
        """Ask nothing more; what was answered is kept."""
        if self.stage == "running" and self._sampling is not None:
            self.stage = "stopping"
            self._sampling.oracle.stop()

    def _gone_tools(self) -> str:
        steps = steps_to_redo(self.transcript)
        if self._sampling is None or not steps:
            return ""
        return gone_tools_text(*self._sampling.oracle.known_gone_tools(steps[-1][1]))

    def _sample(self, sampling: Sampling) -> None:
        try:
            self._note(sampled := run_to_end(sampling.asking(self._note)))
            if sampled.answer == "undecided" and not sampled.stopped:
                self.samples = min(2 * self.samples, MOST)
        except AgentevalError as error:
            self.error = error

    def _offer_again(self) -> None:
        try:
            self._offer(self._store.run(self._run))
        except AgentevalError as error:
            self.error, self.price = self.error or error, None

    def _note(self, sampled: SampledAnswer) -> None:
        assert self._free is not None
        assert self._sampling is not None
        self.newest = self._sampling.newest
        self.blame = with_sampling(self._free, sampled)

    def _offer(self, row: RunRow) -> None:
        """Sampling that has asked nothing yet, and its price, which is also the limit on what it may cost. Where all
        that it would ask is known and decides nothing, it asks more."""
        self._sampling = self._sampling_of(row, None)
        self.price = self._sampling.price()
        undecided = self.sampled is not None and self.sampled.answer == "undecided"
        while undecided and not self.price[0].runs and self.samples < MOST:
            self.samples = min(2 * self.samples, MOST)
            self._sampling = self._sampling_of(row, None)
            self.price = self._sampling.price()
        if cost := self.price[0].whole_cost:
            self._sampling = self._sampling_of(row, cost)

    def _sampling_of(self, row: RunRow, max_cost: float | None) -> Sampling:
        title = one_line(f"blame of {row.test_name or row.test_id}", 120)
        oracle = Oracle(self._store, row, BlameOptions(max_cost=max_cost), purpose="blame", title=title)
        return Sampling(oracle, self.transcript, self.samples)
