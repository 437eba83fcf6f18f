"""What the review queue holds, how far a person has come in it, and what is said of it. It knows no widget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.analysis.labels import LabelSaved
from agenteval_tui.analysis.review_queue import QueueItem, ReviewFilter
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.exporters.exporter import StoredRun
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.tui.presenters.evidence_pane import result_lines
from agenteval_tui.tui.presenters.tabs import CAUSE_TABS, tab_cells
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.state import flag
from agenteval_tui.tui.styled_text import Cell, Line, empty_state, indented
from agenteval_tui.views.model import sentence
from agenteval_tui.views.review import NOTHING, item_in_full, question_view

SAMPLE = 20
PURPOSE = "Results that need a person: read one, give your verdict, and go to the next."


class ReviewItem(StoredRun, frozen=True, kw_only=True):
    """One thing to look at, with the run as it was read."""

    item: QueueItem

    @property
    def chosen(self) -> tuple[CriterionResult, ...]:
        """The result that is looked at; all results if the run as a whole is."""
        position = self.item.position
        return self.results[position : position + 1] if position >= 0 else self.results


class ReviewController:
    """The state of the review: what waits, in order, and what was made of each thing before this one."""

    def __init__(self) -> None:
        self.review_filter = ReviewFilter()
        self.items: list[QueueItem] | None = None  # None: not read yet
        self.opened: ReviewItem | None = None  # None: not read yet, or its verdict is being written
        self.is_writing = False  # the verdict on what is shown
        self.comment = ""  # goes with the next verdict
        self._place = 0
        self._done: list[LabelSaved | None] = []  # None: skipped

    def kept(self) -> dict[str, Any]:
        """What to know again at the next start."""
        return {"failures": self.review_filter.failures, "differing": self.review_filter.disagreements}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take what an earlier start kept."""
        self.review_filter = ReviewFilter(failures=flag(stored, "failures"), disagreements=flag(stored, "differing"))

    # The queue

    def begin_anew(self) -> None:
        """Other runs are looked at: nothing of what was done is in their queue."""
        self.items, self.opened, self.is_writing, self._place, self._done = None, None, False, 0, []

    def take(self, items: list[QueueItem]) -> None:
        """What waits now. What was gone through stays before the place, so that undo finds it; what is shown stays."""
        here = self.item
        before = (self.items or [])[: self._place]
        keys = {(queue_item.run_id, queue_item.criterion) for queue_item in before}
        rest = [item for item in items if (item.run_id, item.criterion) not in keys]
        # One whose verdict is being written may wait no more, but is at the place until it is written.
        if here is not None and (self.is_writing or here in rest):
            rest = [here, *(item for item in rest if item != here)]
        self.items = [*before, *rest]

    @property
    def item(self) -> QueueItem | None:
        """What is to be looked at now; None: nothing waits, or it is not known yet."""
        items = self.items or []
        return items[self._place] if self._place < len(items) else None

    def go_on(self, label_saved: LabelSaved | None) -> None:
        """The next item. `label_saved`: the label that this one got; None: it was skipped."""
        self._done.append(label_saved)
        self.comment = ""
        self.opened, self.is_writing = None, False
        self._place += 1

    @property
    def last(self) -> LabelSaved | None:
        """The label of the one before; None: it was skipped."""
        return self._done[-1] if self._done else None

    @property
    def can_undo(self) -> bool:
        """Is there one before?"""
        return bool(self._done)

    def go_back(self) -> None:
        """To the one before; its comment is there again."""
        label_saved = self._done.pop()
        self.comment = label_saved.label.comment if label_saved is not None else ""
        self._place -= 1
        self.opened = None

    def include(self, what: str) -> None:
        """More in the queue, or less: "failures", "disagreements", or another "sample"."""
        review_filter = self.review_filter
        if what == "sample":
            self.review_filter = replace(
                review_filter, sample=0 if review_filter.sample else SAMPLE, seed=review_filter.seed + 1
            )
        elif what == "failures":
            self.review_filter = replace(review_filter, failures=not review_filter.failures)
        else:
            self.review_filter = replace(review_filter, disagreements=not review_filter.disagreements)

    # Lines

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        """The left and right texts of the title."""
        cells = [*tab_cells(CAUSE_TABS, "review", width, 0)[0], ("  ", "")]
        labelled, skipped = self._counts()
        if self.items is None:
            return (*cells, ("reading the queue …", "dim")), ()
        if self.item is not None:
            cells.append((f"{self._place + 1} of {len(self.items)}", "bold"))
        if self.opened is not None and self.item is not None:
            cells.append((f"   {one_line(self.opened.row.test_id, 60)}", "accent"))
        more = [words for words, on in self._more() if on]
        if more:
            cells.append((f"   with {', '.join(more)}", "dim"))
        counts = f"{labelled} labelled" + (f", {skipped} skipped" if skipped else "")
        return tuple(cells), ((counts, "dim"),) if self._done or self.item else ()

    def _more(self) -> Iterator[tuple[str, bool]]:
        yield "failures", self.review_filter.failures
        yield "results that differ from their label", self.review_filter.disagreements
        yield f"{SAMPLE} random runs", bool(self.review_filter.sample)

    def _counts(self) -> tuple[int, int]:
        labelled = sum(label_saved is not None for label_saved in self._done)
        return labelled, len(self._done) - labelled

    def question_lines(self, width: int) -> list[Line]:
        """What is asked; nothing where nothing waits."""
        if self.item is None:
            return []
        return indented(view_lines(question_view(self.item, self.comment), max(width - 2, 10)))

    def evidence_lines(self, width: int, now_ms: int) -> list[Line]:
        """What criteria say of it, and what they looked at; who said what before."""
        opened = self.opened
        if opened is None:
            return []
        lines: list[Line] = []
        for result in opened.chosen:
            lines += [*result_lines(result, width), ()]
        return [
            *lines,
            *view_lines(item_in_full(opened.item, opened.row, opened.labels, opened.feedback, now_ms), width),
        ]

    def ended_lines(self) -> list[Line]:
        """What is said when nothing waits any more."""
        labelled, skipped = self._counts()
        message = f"All done: {labelled} labelled, {skipped} skipped." if self._done else sentence(NOTHING)
        ways = [
            ("{review.failures}", "add failures without a label"),
            ("{review.differ}", "add results that differ from their label"),
            ("{review.sample}", f"add {count(SAMPLE, 'random run')}"),
            ("{review.agreement}", "show how often criteria and judges agree with people"),
            *([("{review.undo}", "go back to the previous one")] if self._done else []),
        ]
        lines = empty_state(PURPOSE, message, style="passed")
        return [*lines, (), *((("  ", ""), (key, "bold accent"), (f"  {what}", "")) for key, what in ways)]

    def key_names(self) -> list[str]:
        """What can be done now: names of actions. Verdicts stand beside the rating."""
        if self.item is None:
            return ["failures", "differ", "sample", "agreement", *(["undo"] if self._done else [])]
        return ["comment", "skip", *(["undo"] if self._done else []), "open", "pane", "failures", "agreement"]
