"""The review queue: what waits for a person, one after the other, with a key each.

Digits rate while the rating has the focus, as it has at first: it is a field. In the panes they go to other screens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize, ScreenResume
from textual.widget import Widget
from textual.widgets import Input

from agenteval_tui.analysis.labels import LabelSaved, give_label, opinion, remove_label
from agenteval_tui.analysis.review_queue import Item, ReviewFilter, queue
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.highlights import marks_of
from agenteval_tui.tui.presenters.status_style import glyph
from agenteval_tui.tui.presenters.text_layout import error_lines
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.screens.agreement import show_agreement
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.label import ask_label
from agenteval_tui.tui.state import flag
from agenteval_tui.tui.styled_text import Cell, Line, fit
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.rating_field import RatingField
from agenteval_tui.tui.widgets.transcript_view import TranscriptView
from agenteval_tui.views.label import label_given
from agenteval_tui.views.model import plain, sentence
from agenteval_tui.views.review import NOTHING, item_in_full

SAMPLE = 20


class ReviewItem(Struct, frozen=True):
    """One thing to look at, as it was read."""

    item: Item
    row: RunRow
    transcript: Transcript
    results: tuple[CriterionResult, ...]
    labels: tuple[Label, ...]


class ReviewScreen(FrameScreen):
    """The transcript beside what the criterion looked at. A verdict is written at once, then the next one comes."""

    SCOPE = "review"
    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("review"))

    def __init__(self) -> None:
        super().__init__()
        self._wanted = ReviewFilter()
        self._items: list[Item] | None = None
        self._place = 0
        self._opened: ReviewItem | None = None
        self._done: list[LabelSaved | None] = []
        """What was made of each item before this one; None: skipped."""
        self._comment = ""
        self._read_last = "transcript"

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(self._wanted_lines, id="wanted")
        with Container(id="body"):
            yield TranscriptView(id="transcript")
            yield LinesView(id="looked")
        yield Input(placeholder="a comment; enter, then y, n or 1 to 5", id="comment", classes="filter")
        yield RatingField(id="rating")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.query_one("#comment", Input).display = False
        self.set_class(self.app.size.width < self.NARROW, "narrow")
        self._focus_pane("rating")
        self.reload()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")

    def on_screen_resume(self, event: ScreenResume) -> None:
        """What was labelled elsewhere waits no more."""
        if self._items is not None:
            self._opened = None
            self.reload()

    def reload(self) -> None:
        """Look what waits; what was done is done."""
        session = self.agenteval.session
        store, wanted = session.store, self._wanted

        def work() -> list[Item]:
            return queue(store, replace(wanted, projects=session.projects))

        self.ask(work, self._arrived, group="queue", failed=self._failed)

    def action_reload(self) -> None:
        self.reload()

    def projects_changed(self) -> None:
        self._items, self._opened, self._place, self._done = None, None, 0, []
        self.reload()

    def new_runs(self) -> None:
        """They may wait for somebody."""
        self.reload()

    def kept(self) -> dict[str, Any]:
        return {"failures": self._wanted.failures, "differing": self._wanted.disagreements}

    def restore(self, kept: Mapping[str, Any]) -> None:
        self._wanted = ReviewFilter(failures=flag(kept, "failures"), disagreements=flag(kept, "differing"))

    def _failed(self, error: AgentevalError) -> None:
        self._opened = None
        self.query_one("#looked", LinesView).show(lambda width: [(), *error_lines(error, max(width - 1, 10))])

    def _arrived(self, items: list[Item]) -> None:
        here = self._item
        # What was gone through stays before the place, so that undo finds it.
        before = (self._items or [])[: self._place]
        seen = {(one.run_id, one.criterion) for one in before}
        rest = [item for item in items if (item.run_id, item.criterion) not in seen]
        if here is not None and here in rest:
            rest.remove(here)
            rest.insert(0, here)
        self._items = [*before, *rest]
        self._show()

    @property
    def _item(self) -> Item | None:
        items = self._items or []
        return items[self._place] if self._place < len(items) else None

    def _show(self) -> None:
        """Read the item at the place, and show it."""
        item, store = self._item, self.agenteval.session.store
        self.query_one("#wanted", LineBlock).show(self._wanted_lines)
        self.retitle()
        if item is None:
            self._opened = None
            self.set_class(True, "ended")
            done = sum(one is not None for one in self._done)
            skipped = len(self._done) - done
            self.query_one("#looked", LinesView).show(
                lambda width: _ended_lines(done, skipped, width), keep_place=False
            )
            self._focus_pane("looked")
            return
        if self.has_class("ended"):
            self.set_class(False, "ended")
            self._focus_pane("rating")
        if self._opened is not None and self._opened.item == item:
            self._draw()
            return

        def work() -> ReviewItem:
            row = store.run(item.run_id)
            return ReviewItem(item, row, store.transcript(row.id), store.results(row.id), tuple(store.labels([row.id])))

        self.ask(work, self._read, group="item")

    def _read(self, opened: ReviewItem) -> None:
        if opened.item != self._item:
            return
        self._opened = opened
        position = opened.item.position
        chosen = opened.results[position : position + 1] if position >= 0 else ()
        self.query_one("#transcript", TranscriptView).show_transcript(opened.transcript, marks=marks_of(chosen))
        self._draw(keep_place=False)
        self.retitle()

    def _draw(self, *, keep_place: bool = True) -> None:
        opened, comment, now = self._opened, self._comment, now_ms()
        if opened is not None:
            shown = item_in_full(opened.item, opened.row, opened.results, opened.labels, comment, now)
            self.query_one("#looked", LinesView).show(
                lambda width: view_lines(shown, max(width - 1, 10)),
                keep_place=keep_place,
            )

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        items = self._items
        if items is None:
            return (("looking what waits …", "dim"),), ()
        if self._item is None:
            return (), ((f"{len(self._done)} looked at", "dim"),) if self._done else ()
        left: list[Cell] = [(f"{self._place + 1} of {len(items)}", "bold")]
        if self._opened is not None:
            left.append((f"   {one_line(self._opened.row.test_id, 60)}", "accent"))
        done = sum(one is not None for one in self._done)
        return tuple(left), ((f"{done} labelled, {len(self._done) - done} skipped", "dim"),)

    def _wanted_lines(self, width: int) -> list[Line]:
        wanted = self._wanted
        cells: list[Cell] = [(" what waits, and", "dim")]
        for key, words, on in (
            ("f", "failures", wanted.failures),
            ("d", "differing from their label" if width >= 100 else "differing", wanted.disagreements),
            ("m", f"{SAMPLE} by chance", bool(wanted.sample)),
        ):
            cells += [("   ", ""), (key, "bold accent"), (f" {words}", "" if on else "dim")]
            cells.append((f" {glyph('passed')}", "passed") if on else ("", ""))
        return [tuple(cells)]

    # Verdicts

    def on_rating_field_rated(self, event: RatingField.Rated) -> None:
        """1 to 5."""
        self._give(rating=event.rating)

    def on_rating_field_moved(self, event: RatingField.Moved) -> None:
        """A key that scrolls, while the rating has the focus: the pane that was read last."""
        view: Widget = self.query_one("#looked" if self.has_class("ended") else f"#{self._read_last}")
        moves: dict[str, Callable[[], None]] = {
            "down": lambda: view.scroll_to(y=view.scroll_target_y + 1, animate=False),
            "up": lambda: view.scroll_to(y=view.scroll_target_y - 1, animate=False),
            "page_down": lambda: view.scroll_page_down(animate=False),
            "page_up": lambda: view.scroll_page_up(animate=False),
            "start": lambda: view.scroll_home(animate=False),
            "end": lambda: view.scroll_end(animate=False),
        }
        moves[event.where]()

    def action_verdict(self, passed: bool) -> None:
        """Passed or failed."""
        self._give(passed=passed)

    def _give(self, *, rating: int | None = None, passed: bool | None = None) -> None:
        opened, store = self._opened, self.agenteval.session.store
        if opened is None:
            return
        item, comment = opened.item, self._comment
        # Keys that come before it is written must not label the same thing again.
        self._opened = None

        def work() -> LabelSaved:

            said = opinion(
                item.run_id, item.criterion, rating=rating, passed=passed, comment=comment, who=current_user()
            )
            return give_label(store, said)

        def failed(error: AgentevalError) -> None:
            self._opened = opened
            self.agenteval.say_error(error)

        self.ask(work, self._given, group="give", failed=failed)

    def _given(self, given: LabelSaved) -> None:
        self._next(given)

    def _next(self, given: LabelSaved | None) -> None:
        self._done.append(given)
        self._comment = ""
        self._opened = None
        self._place += 1
        self._show()

    def action_skip(self) -> None:
        """The next one."""
        if self._opened is not None:
            self._next(None)

    def action_undo(self) -> None:
        """Back to the one before; a label that it was given is taken back."""
        if not self._done:
            self.agenteval.say("There is nothing before this one.")
            return
        if self.still_writes("give"):
            return
        given, store = self._done[-1], self.agenteval.session.store

        def back(status: str) -> None:
            self._done.pop()
            self._place -= 1
            self._opened = None
            if given is not None:
                self._comment = given.label.comment
                self.agenteval.say(sentence(plain(label_given(given.label, status, taken_back=True))))
            self._show()

        if given is None:
            back("")
            return

        def work() -> str:
            return remove_label(store, given)

        self.ask(work, back, group="give")

    def action_label(self) -> None:
        """Rating and verdict together, in the sheet."""
        opened = self._opened
        if opened is not None:
            ask_label(self, opened.item.run_id, opened.item.criterion, self._given)

    def action_comment(self) -> None:
        """Write it; the verdict comes behind."""
        if self._opened is None:
            return
        box = self.query_one("#comment", Input)
        box.value = self._comment
        box.display = True
        box.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Kept until the verdict is given."""
        self._comment = event.value.strip()
        self._close_comment()
        self._draw()

    def _close_comment(self) -> None:
        self.query_one("#comment", Input).display = False
        self._focus_pane("rating")

    def step_back(self) -> bool:
        if self.query_one("#comment", Input).display:
            self._close_comment()
            return True
        return False

    # What is looked at

    def action_include(self, what: str) -> None:
        """More, or less, in the queue."""
        wanted = self._wanted
        if what == "sample":
            self._wanted = replace(wanted, sample=0 if wanted.sample else SAMPLE, seed=wanted.seed + 1)
        elif what == "failures":
            self._wanted = replace(wanted, failures=not wanted.failures)
        else:
            self._wanted = replace(wanted, disagreements=not wanted.disagreements)
        self.reload()

    def action_open(self) -> None:
        """It, in Inspect."""
        opened = self._opened
        if opened is not None:
            self.agenteval.inspect(opened.item.run_id, criterion=opened.item.criterion)

    def action_agreement(self) -> None:
        """How far people and criteria agree."""
        show_agreement(self)

    def action_next_pane(self) -> None:
        here = self.focused.id if self.focused is not None else ""
        self._focus_pane({"rating": "transcript", "transcript": "looked"}.get(here or "", "rating"))

    def _focus_pane(self, name: str) -> None:
        """Give the keys to the rating, or to a pane, which is larger then where there is little room."""
        if name != "rating":
            self._read_last = name
        for pane in ("transcript", "looked"):
            self.query_one(f"#{pane}").set_class(pane == self._read_last, "active")
        self.query_one(f"#{name}").focus()


def _ended_lines(labelled_now: int, skipped: int, width: int) -> list[Line]:
    """What is said when nothing waits any more."""
    if not labelled_now and not skipped:
        head: Cell = (sentence(NOTHING), "passed")
    else:
        head = (f"That was all: {labelled_now} labelled, {skipped} skipped.", "passed")
    keys = (
        ("f", "failures without a label"),
        ("d", "results that differ from their label"),
        ("m", "20 runs by chance"),
        ("A", "how far criteria and judges agree with people"),
        ("u", "back to the one before"),
    )
    lines: list[Line] = [(), (("  ", ""), head), ()]
    lines += [fit((("  ", ""), (key, "bold accent"), (f"  {what}", "dim")), width) for key, what in keys]
    return lines
