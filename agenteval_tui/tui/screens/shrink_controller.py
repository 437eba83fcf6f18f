"""What the sheet that shrinks a run knows and does, without Textual."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from agenteval_tui.analysis.save_fork import save_as_test
from agenteval_tui.analysis.shrink.options import ShrinkOptions
from agenteval_tui.analysis.shrink.shrink import Progress, Shrunk
from agenteval_tui.analysis.shrink.stored_run import ShrinkPrice, ShrinkQuestion, price_of, question_of, shrink
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.grading.results import Outcome
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.views.fork import gone_tools_text

Stage = Literal["reading", "ready", "running", "stopping", "ended", "refused"]


class ShrinkController:
    """One run. `read`, `run` and `save` block: call them in a thread; `progress` may be looked at meanwhile."""

    def __init__(self, store: Store, run: str, criterion: str = "") -> None:
        self.stage: Stage = "reading"
        self.keep_calls = False
        self.keep_tools = False
        self.price: ShrinkPrice | None = None
        self.progress: Progress | None = None
        self.shrunk: Shrunk | None = None
        self.error: AgentevalError | None = None
        self.saved = ""
        self.gone = ""
        """Which tools of the run the agent does not have any more, in words."""
        self.question: ShrinkQuestion | None = None
        self._store = store
        self._run = run
        self._criterion = criterion
        self._oracle: Oracle | None = None

    @property
    def running(self) -> bool:
        """Whether the agent is being asked."""
        return self.stage in ("running", "stopping")

    @property
    def may_cost(self) -> bool:
        """Whether asking may cost something, or its price is not known."""
        return self.price is None or self.price.cost != 0

    def read(self) -> None:
        """Find out what would be shrunk, and what it may cost."""
        try:
            row = self._store.run(self._run)
            failed = {result.criterion for result in self._store.results(row.id) if result.outcome == Outcome.FAILED}
            meant = self._criterion if self._criterion in failed else ""  # what is shown may have passed
            self.question = question_of(self._store, row, ShrinkOptions(criterion=meant))
            self._oracle = self._new_oracle()
            self.price = price_of(self._oracle, self.question)
            self.gone = gone_tools_text(*self._oracle.known_gone_tools(self.question.conversation))
            self.stage = "ready"
        except AgentevalError as error:
            self.error, self.stage = error, "refused"

    def begin(self) -> None:
        """From now on it runs; `run` does the work."""
        self.stage, self.error, self.progress, self.saved = "running", None, None, ""

    def run(self) -> None:
        """Shrink. What was asked before is known, so a second time continues the first."""
        assert self.question is not None
        try:
            self._oracle = self._new_oracle()
            if self.stage == "stopping":  # while it was being made: the stop went to the one before
                self._oracle.stop()
            self.shrunk = shrink(self.question, self._oracle, self._options, on_progress=self._note)
        except AgentevalError as error:
            self.error = error
        finally:
            self.stage = "ended" if self.error is None else "ready"

    def stop(self) -> None:
        """End it with the smallest case that was found until then."""
        if self.stage == "running" and self._oracle is not None:
            self.stage = "stopping"
            self._oracle.stop()

    def save(self) -> Path | None:
        """Write the small case as a test behind those of the run's suite; the file, None where nothing was written."""
        question, shrunk = self.question, self.shrunk
        if question is None or shrunk is None or self._oracle is None or not shrunk.removed or self.saved:
            return None
        row = question.run
        about = f"The smallest input found that fails as run {short_id(row.id)} of {row.test_id} does" + (
            f": {question.criterion}." if question.criterion else "."
        )
        name = f"{row.test_name or row.test_id}, shrunk"
        try:
            loaded, test_id = save_as_test(
                self._oracle.source, shrunk.conversation, name=name, description=about, suffix="small"
            )
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

    def _new_oracle(self) -> Oracle:
        row = self._store.run(self._run)
        title = one_line(f"shrink of {row.test_name or row.test_id}", 120)
        return Oracle(self._store, row, self._options, purpose="shrink", title=title)
