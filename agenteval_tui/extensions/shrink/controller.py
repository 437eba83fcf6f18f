"""What the sheet that shrinks a run knows and does, without Textual."""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.shrink.shrink import Progress, ShrinkOptions, Shrunk
from agenteval_tui.extensions.shrink.stored_run import (
    ShrinkPrice,
    ShrinkQuestion,
    price_of,
    question_of,
    save_small_case,
    shrink,
)
from agenteval_tui.grading.results import Outcome
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.tui.screens.asking_controller import AskingController
from agenteval_tui.views.fork import gone_tools_text


class ShrinkController(AskingController):
    """`save` blocks too; `progress` may be looked at while it shrinks."""

    def __init__(self, store: Store, run: str, criterion: str = "") -> None:
        super().__init__(store, run)
        self.keep_calls = False
        self.keep_tools = False
        self.price: ShrinkPrice | None = None
        self.progress: Progress | None = None
        self.shrunk: Shrunk | None = None
        self.saved = ""
        self.question: ShrinkQuestion | None = None
        self._criterion = criterion

    @property
    def cost(self) -> float | None:
        """What shrinking may cost."""
        return self.price.cost if self.price is not None else None

    def begin(self) -> None:
        """From now on it shrinks."""
        super().begin()
        self.progress, self.saved = None, ""

    def _look(self, row: RunRow) -> None:
        failed = {result.criterion for result in self._store.results(row.id) if result.outcome == Outcome.FAILED}
        meant = self._criterion if self._criterion in failed else ""  # what is shown may have passed
        self.question = question_of(self._store, row, ShrinkOptions(criterion=meant))
        oracle = self._new_oracle(row, self._options, "shrink")
        self.price = price_of(oracle, self.question)
        self.gone = gone_tools_text(*oracle.known_gone_tools(self.question.conversation))

    def _ask(self) -> None:
        """Shrink. What was asked before is known, so a second time continues the first."""
        assert self.question is not None
        oracle = self._new_oracle(self._store.run(self._run), self._options, "shrink")
        if self.stage == "stopping":  # while it was being made: the stop went to the one before
            oracle.stop()
        self.shrunk = shrink(self.question, oracle, self._options, on_progress=self._note)

    def save(self) -> Path | None:
        """Write the small case as a test behind those of the run's suite; the file, None where nothing was written."""
        question, shrunk = self.question, self.shrunk
        if question is None or shrunk is None or self._oracle is None or not shrunk.removed or self.saved:
            return None
        self.error = None
        try:
            loaded, test_id = save_small_case(question, shrunk, self._oracle)
        except AgentevalError as error:
            self.error = error
            return None
        self.saved = f"saved as test {test_id} of {loaded.path.name}"
        return loaded.path

    def _note(self, progress: Progress) -> None:
        self.progress = progress

    @property
    def _options(self) -> ShrinkOptions:
        price = self.price
        # The most that the person agreed to.
        limit = price.cost * price.high if price is not None and price.cost else None
        return ShrinkOptions(keep_calls=self.keep_calls, keep_tools=self.keep_tools, max_cost=limit)
