"""What the sheet that blames a step of a run knows and does, without Textual."""

from __future__ import annotations

from agenteval_tui.analysis.blame.free_answer import ReadParts, blame_of
from agenteval_tui.analysis.blame.model import Blame, SampledAnswer
from agenteval_tui.analysis.blame.recorded_facts import known_samples, steps_to_redo, with_sampling
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.options import options_of
from agenteval_tui.extensions.blame.sampled_answer import SAMPLES, BlameOptions, Sampling
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.estimate import Estimate
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.screens.asking_controller import AskingController
from agenteval_tui.views.fork import gone_tools_text

MOST = options_of(BlameOptions)["samples"].most
"""Continuations of one step that can be asked for."""


class BlameController(AskingController):
    """`blame` may be looked at while it samples; it is None where there is nothing to blame. `price` is None where the
    agent can't be asked."""

    def __init__(self, store: Store, run: str) -> None:
        super().__init__(store, run)
        self.blame: Blame | None = None
        self.transcript = Transcript()
        self.samples = SAMPLES
        self.price: tuple[Estimate, int] | None = None
        self.newest: int | None = None
        """The step that the last answer is about."""
        self._free: Blame | None = None
        self._sampling: Sampling | None = None

    @property
    def sampled(self) -> SampledAnswer | None:
        """What is known by sampling."""
        return self.blame.sampled if self.blame is not None else None

    @property
    def can_ask(self) -> bool:
        """Whether asking may tell something that is not known."""
        sampled = self.sampled
        open_yet = sampled is None or sampled.answer == "undecided" or bool(sampled.stopped)
        return super().can_ask and self.price is not None and open_yet

    @property
    def cost(self) -> float | None:
        """What sampling may cost."""
        return self.price[0].whole_cost if self.price is not None else None

    def begin(self) -> None:
        """From now on it samples."""
        super().begin()
        self.newest = None

    def _look(self, row: RunRow) -> None:
        self.transcript = self._store.transcript(row.id)
        self._free = blame_of(self._store, row, ReadParts(self.transcript))
        sampled_answer = known_samples(self._store, row, self.transcript)
        self.blame = self._free if sampled_answer is None else with_sampling(self._free, sampled_answer)
        self.samples = max(SAMPLES, sampled_answer.samples) if sampled_answer is not None else SAMPLES
        self._offer(row)
        self.gone = self._gone_tools()

    def _ask(self) -> None:
        """Sample until it is decided, stopped, or can't be decided; then twice as many are offered."""
        assert self._sampling is not None
        try:
            self._note(sampled := run_to_end(self._sampling.asking(self._note)))
            if sampled.answer == "undecided" and not sampled.stopped:
                self.samples = min(2 * self.samples, MOST)
        finally:
            self._offer_again()

    def _gone_tools(self) -> str:
        steps = steps_to_redo(self.transcript)
        if self._sampling is None or not steps:
            return ""
        return gone_tools_text(*self._sampling.oracle.known_gone_tools(steps[-1][1]))

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
        # Without a limit first: the limit is the price, which only a sampling can tell.
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
        oracle = self._new_oracle(row, BlameOptions(max_cost=max_cost), "blame")
        return Sampling(oracle, self.transcript, self.samples)
