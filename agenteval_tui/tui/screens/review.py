"""The review queue, a tab of Causes: what waits for a person, one after the other, with a key each.

Digits rate only while the rating, a field, has the focus. The panes, where one begins, leave them to other screens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Click, Resize, ScreenResume
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from agenteval_tui.analysis.labels import LabelSaved, give_label, opinion, remove_label
from agenteval_tui.analysis.review_queue import QueueItem, queue
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history.current_user import current_user
from agenteval_tui.tui.actions import bindings, keyed, named_keys
from agenteval_tui.tui.presenters.highlights import marks_of
from agenteval_tui.tui.presenters.tabs import cause_tab_at
from agenteval_tui.tui.screen_registry import ask
from agenteval_tui.tui.screens.agreement import show_agreement
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.review_controller import ReviewController, ReviewItem
from agenteval_tui.tui.style_tokens import palette_of
from agenteval_tui.tui.styled_text import Cell, Line, error_lines, fit, hanging, longest_that_fits, width_of
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.transcript_view import TranscriptView
from agenteval_tui.views.label import RATINGS, label_given
from agenteval_tui.views.model import plain, sentence

_CELL = 4


class RatingField(Widget, can_focus=True):
    """Tells the rating as soon as it is typed or clicked. Keys that move go to whoever `Moved` is meant for."""

    DEFAULT_CSS = "RatingField { height: 1; background: $panel; }"
    BINDINGS: ClassVar[list[BindingType]] = bindings("rating")

    @dataclass
    class Rated(Message):
        """A rating 1 to 5."""

        rating: int

    @dataclass
    class Moved(Message):
        """A key that moves in what is read: down, up, page_down, page_up, start, end."""

        where: str

    def __init__(self, verdicts: Callable[[], Line], *, id: str) -> None:
        """`verdicts`: the text before the digits: the keys of the verdicts that are not ratings."""
        super().__init__(id=id)
        self._verdicts = verdicts

    def action_rate(self, rating: int) -> None:
        self.post_message(self.Rated(rating))

    def action_move(self, where: str) -> None:
        self.post_message(self.Moved(where))

    def on_click(self, event: Click) -> None:
        start = width_of(self._head())
        number = (event.x - start) // _CELL + 1
        if event.x >= start and number in RATINGS:
            self.action_rate(number)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        line: Line = fit(self._cells(), width)
        return palette_of(self).strip(line, width).apply_style(self.rich_style)

    def _head(self) -> list[Cell]:
        return [(" ", ""), *self._verdicts(), ("rate ", "dim")]

    def _cells(self) -> list[Cell]:
        here = self.has_focus
        cells = self._head()
        cells += [(f" {number}  ", "bold accent" if here else "dim") for number in RATINGS]
        ends = f" 1 {RATINGS[1]}, 5 {RATINGS[5]}"
        ways: list[Line] = [(*cells, (f"{ends}; 4 or 5 pass", "dim")), (*cells, (ends, "dim"))]
        return list(longest_that_fits(ways, self.size.width)) if here else [*cells, (" press tab to rate", "dim")]


class ReviewScreen(FrameScreen):
    """The question and the verdict, above the transcript beside its evidence. A verdict is written at once, then the
    next one comes. What waits and what was done is the controller's."""

    SCOPE = "review"
    BINDINGS: ClassVar[list[BindingType]] = bindings("review")

    def __init__(self) -> None:
        super().__init__()
        self.controller = ReviewController()
        self._read_last = "transcript"

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(self.controller.question_lines, id="question")
        yield RatingField(self._verdict_keys, id="rating")
        yield Input(placeholder="a comment; enter, then y, n or 1 to 5", id="comment", classes="filter")
        with Container(id="body"):
            yield TranscriptView(id="transcript")
            yield LinesView(id="looked")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.query_one("#comment", Input).display = False
        self.set_class(self.app.size.width < self.NARROW, "narrow")
        self._focus_pane("transcript")
        self.reload()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")

    def on_screen_resume(self, event: ScreenResume) -> None:
        """What was labelled elsewhere waits no more."""
        if self.controller.items is not None:
            self.controller.opened = None
            self.reload()

    def reload(self) -> None:
        """Look what waits; what was done is done."""
        session = self.agenteval.session
        store, review_filter = session.store, self.controller.review_filter

        def work() -> list[QueueItem]:
            return queue(store, replace(review_filter, projects=session.projects))

        def then(items: list[QueueItem]) -> None:
            self.controller.take(items)
            self._show()

        self.ask(work, then, group="queue", failed=self._failed)

    def action_reload(self) -> None:
        self.reload()

    def projects_changed(self) -> None:
        self.controller.begin_anew()
        self.reload()

    def new_runs(self) -> None:
        """They may wait for somebody."""
        self.reload()

    def kept(self) -> dict[str, Any]:
        return self.controller.kept()

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.controller.restore(stored)

    def _failed(self, error: AgentevalError) -> None:
        self.controller.opened = None
        self.query_one("#looked", LinesView).show(lambda width: [(), *error_lines(error, max(width - 1, 10))])

    def _show(self) -> None:
        """Read the item at the place, and show it."""
        controller, store = self.controller, self.agenteval.session.store
        item = controller.item
        self._head()
        if item is None:
            controller.opened = None
            self.set_class(True, "ended")
            lines = keyed(controller.ended_lines(), self.agenteval.keymap)
            self.query_one("#looked", LinesView).show(
                lambda width: [each for line in lines for each in hanging(line, width)], keep_place=False
            )
            self._focus_pane("looked")
            return
        if self.has_class("ended"):
            self.set_class(False, "ended")
            self._focus_pane("transcript")
        # It was read already, as when the queue is read again: where it was read up to stays.
        if controller.opened is not None and controller.opened.item == item:
            self._draw()
            return

        def work() -> ReviewItem:
            row = store.run(item.run_id)
            return ReviewItem(
                item=item,
                row=row,
                transcript=store.transcript(row.id),
                results=store.results(row.id),
                labels=tuple(store.labels([row.id])),
                feedback=tuple(store.feedback([row.id])),
            )

        self.ask(work, self._read, group="item")

    def _head(self) -> None:
        """The question, the title and the keys."""
        self.query_one("#question", LineBlock).retell()
        self.rekey()
        self.retitle()

    def _read(self, opened: ReviewItem) -> None:
        # The queue has moved on while it was read, or is about to.
        if opened.item != self.controller.item or self.controller.is_writing:
            return
        self.controller.opened = opened
        chosen = opened.chosen if opened.item.position >= 0 else ()
        self.query_one("#transcript", TranscriptView).show_transcript(opened.transcript, marks=marks_of(chosen))
        self._draw(keep_place=False)
        self.retitle()

    def _draw(self, *, keep_place: bool = True) -> None:
        controller, now = self.controller, now_ms()
        self._head()
        if controller.opened is not None:
            self.query_one("#looked", LinesView).show(
                lambda width: controller.evidence_lines(max(width - 1, 10), now), keep_place=keep_place
            )

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        return self.controller.heading(width)

    def keys(self) -> list[tuple[str, str, str]]:
        return [*named_keys(self.SCOPE, self.controller.key_names(), self.agenteval.keymap), *super().keys()[-1:]]

    def _verdict_keys(self) -> Line:
        keys = named_keys(self.SCOPE, ("passed", "failed"), self.agenteval.keymap)
        return tuple(cell for key, word, _ in keys for cell in ((key, "bold accent"), (f" {word}   ", "")))

    def on_line_block_clicked(self, event: LineBlock.Clicked) -> None:
        """A click on the other tab shows it."""
        if (
            event.block.id == "title"
            and event.y == 1
            and cause_tab_at(self.SCOPE, event.x, self.size.width) == "causes"
        ):
            self.agenteval.go("causes")
        else:
            super().on_line_block_clicked(event)

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

    def _opened(self) -> ReviewItem | None:
        """What is open; None while it is read or its label is written, and, with a note, behind the last one."""
        if self.has_class("ended"):
            self.agenteval.say("Nothing waits here. Press {review.failures} to add failures without a label.")
        return self.controller.opened

    def action_verdict(self, passed: bool) -> None:
        """Passed or failed."""
        self._give(passed=passed)

    def _give(self, *, rating: int | None = None, passed: bool | None = None) -> None:
        controller, store = self.controller, self.agenteval.session.store
        opened = self._opened()
        if opened is None:
            return
        item, comment = opened.item, controller.comment
        # Keys that come before it is written must not label the same thing again.
        controller.opened, controller.is_writing = None, True

        def work() -> LabelSaved:
            label = opinion(
                item.run_id, item.criterion, rating=rating, passed=passed, comment=comment, who=current_user()
            )
            return give_label(store, label)

        def failed(error: AgentevalError) -> None:
            controller.opened, controller.is_writing = opened, False
            self.agenteval.say_error(error)

        def written(label_saved: LabelSaved) -> None:
            # Other runs may be looked at by now.
            if controller.is_writing:
                self._go_on(label_saved)

        self.ask(work, written, group="give", failed=failed)

    def _go_on(self, label_saved: LabelSaved | None) -> None:
        self.controller.go_on(label_saved)
        self._show()

    def action_skip(self) -> None:
        """The next one."""
        if self._opened() is not None:
            self._go_on(None)

    def action_undo(self) -> None:
        """Back to the one before; a label that it was given is taken back."""
        if not self.controller.can_undo:
            self.agenteval.say("This is the first one.")
            return
        # What is taken back must be in the history first.
        if self.still_writes("give"):
            return
        label_saved, store = self.controller.last, self.agenteval.session.store

        def back(status: str) -> None:
            self.controller.go_back()
            if label_saved is not None:
                self.agenteval.say(sentence(plain(label_given(label_saved.label, status, taken_back=True))))
            self._show()

        if label_saved is None:
            back("")
            return
        self.ask(lambda: remove_label(store, label_saved), back, group="give")

    def action_label(self) -> None:
        """Rating and verdict together, in the sheet."""
        opened = self._opened()
        if opened is not None:
            ask("label", self, opened.item.run_id, opened.item.criterion, self._go_on)

    def action_comment(self) -> None:
        """Write it; the verdict comes behind."""
        if self._opened() is None:
            return
        box = self.query_one("#comment", Input)
        box.value = self.controller.comment
        box.display = True
        box.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Kept until the verdict is given."""
        self.controller.comment = event.value.strip()
        self._close_comment()
        self._draw()

    def _close_comment(self) -> None:
        self.query_one("#comment", Input).display = False
        self._focus_pane("rating")

    def let_keys_work(self) -> None:
        # A digit would be a verdict on a run that nobody has looked at yet.
        self._focus_pane(self._read_last)

    def step_back(self) -> bool:
        if self.query_one("#comment", Input).display:
            self._close_comment()
            return True
        return False

    # What is looked at

    def action_include(self, what: str) -> None:
        """More, or less, in the queue."""
        self.controller.include(what)
        review_filter = self.controller.review_filter
        added = {"failures": review_filter.failures, "disagreements": review_filter.disagreements}.get(
            what, bool(review_filter.sample)
        )
        words = {"failures": "Failures without a label", "disagreements": "Results that differ from their label"}
        self.agenteval.say(f"{words.get(what, 'Random runs')} are {'included' if added else 'left out'} now.")
        self.reload()

    def action_open(self) -> None:
        """It, in Inspect."""
        opened = self._opened()
        if opened is not None:
            self.agenteval.inspect(opened.item.run_id, criterion=opened.item.criterion)

    def action_agreement(self) -> None:
        """How far people and criteria agree."""
        show_agreement(self)

    def action_next_pane(self) -> None:
        if self.has_class("ended"):
            return
        other = "looked" if self._read_last == "transcript" else "transcript"
        self._focus_pane(other if isinstance(self.focused, RatingField) else "rating")

    def _focus_pane(self, name: str) -> None:
        """Give the keys to the rating, or to a pane, which is larger then where there is little room."""
        if name != "rating":
            self._read_last = name
        for pane in ("transcript", "looked"):
            self.query_one(f"#{pane}").set_class(pane == self._read_last, "active")
        self.query_one(f"#{name}").focus()
