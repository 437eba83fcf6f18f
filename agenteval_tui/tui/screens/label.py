"""A person's verdict on a run or on one criterion of it: 1 to 5, passed or failed, a comment, your name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.analysis.labels import LabelSaved, give_label, opinion
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.remote_requests import GOOD_FROM
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.labels import Label
from agenteval_tui.tui.actions import bindings, key_of
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.presenters.status_style import glyph
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.styled_text import Cell, Line, fit, paragraph
from agenteval_tui.tui.terminal.sheet import Sheet, if_answered
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock, Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.workers import start_worker
from agenteval_tui.views.label import RATINGS, label_given, said_last
from agenteval_tui.views.model import plain, sentence


class LabelScreen(Sheet["LabelSaved | None"]):
    """Dismissed with the label when it is in the history, or None.

    Digits rate, `y` and `n` say passed or failed, `t` changes between the criterion and the run, `c` goes to the
    comment; enter keeps it.
    """

    AUTO_FOCUS = ""
    SCOPE = "label"
    BINDINGS: ClassVar[list[BindingType]] = bindings("label")

    def __init__(
        self,
        run: str,
        criterion: str = "",
        current: Sequence[Label] = (),
    ) -> None:
        """`current`: the labels that the run has, oldest first. `criterion`: its name; without one only the run as a
        whole can be labelled."""
        super().__init__()
        self._run, self._criterion = run, criterion
        self._current = tuple(current)
        self._whole = not criterion
        self._rating: int | None = None
        self._passed: bool | None = None
        self._who = current_user()
        self._saving = False

    def compose(self) -> ComposeResult:
        with SheetFrame("Label", self._keys, subject=self._subject):
            yield LineBlock(self._chosen, id="chosen")
            fields = [
                Field("comment", "comment", placeholder="why, in a few words"),
                Field("who", "by", self._who, placeholder="your name"),
            ]
            yield Form(fields, id="fields")
            yield Note(self._note, id="note")

    def on_mount(self) -> None:
        self._take_current()

    # What a person does

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In a field, letters and digits are text, and tab and down go to the next field."""
        return super().check_action(action, parameters) and (action == "close" or self.focused is None)

    def action_rate(self, rating: int) -> None:
        """Give a rating, or take it back."""
        self._rating = None if self._rating == rating else rating
        self._show()

    def action_say(self, passed: bool) -> None:
        """Say whether it passed, or take that back."""
        self._passed = None if self._passed is passed else passed
        self._show()

    def action_whole(self) -> None:
        """Label the whole run, or the criterion."""
        if self._criterion:
            self._whole = not self._whole
            self._take_current()

    def action_comment(self) -> None:
        """Go to the comment."""
        self.query_one(Form).focus_first()

    def on_form_changed(self, event: Form.Changed) -> None:
        """What was wrong may be right now."""
        self.query_one(Note).complain(None)

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Enter in a field."""
        self.action_save()

    def action_close(self) -> None:
        """From a field back to the keys; from there close."""
        if self.focused is not None:
            self.set_focus(None)
            self._show()
        else:
            self.dismiss(None)

    def on_descendant_focus(self) -> None:
        """The keys that are named are others in a field."""
        self._show()

    # Keeping it

    @property
    def label(self) -> Label:
        """The label as it is in the sheet."""
        values = self.query_one(Form).values()
        of = "" if self._whole else self._criterion
        return opinion(
            self._run, of, rating=self._rating, passed=self._passed, comment=values["comment"], who=values["who"]
        )

    def action_save(self) -> None:
        """Save the label, if it says anything."""
        if self._saving:
            return
        if self._rating is None and self._passed is None:
            # In a field, the keys for a verdict would be written into it.
            self.set_focus(None)
            passed, failed = (key_of(f"label.{name}", self.agenteval.keymap) for name in ("passed", "failed"))
            fix = f"press {passed} for passed, {failed} for failed, or 1 to 5"
            self.query_one(Note).complain(AgentevalError("no verdict yet", fix=fix))
            self._show()
            return
        self._saving = True
        label = self.label
        start_worker(self, partial(self._write, label), group="write", awaited=True)

    async def _write(self, label: Label) -> None:
        session = self.agenteval.session
        try:
            label_saved = await asyncio.to_thread(lambda: give_label(session.store, label))
        except AgentevalError as error:
            self.query_one(Note).complain(error)
            return
        finally:
            self._saving = False
        self.dismiss(label_saved)

    def _take_current(self) -> None:
        """Begin with what was said last of it, by the same person."""
        label = self._last()
        # What another person said stands below, and must not be said again in this one's name.
        own = label is not None and label.who == self._who
        self._rating, self._passed = (label.rating, label.passed) if label is not None and own else (None, None)
        comment = label.comment if label is not None and own else ""
        self.query_one(Form).fill({"comment": comment})
        self._show()

    def _last(self) -> Label | None:
        labels = [
            label for label in self._current if (label.whole if self._whole else label.criterion == self._criterion)
        ]
        return labels[-1] if labels else None

    # What it looks like

    def _show(self) -> None:
        self.query_one(SheetFrame).retell()

    def _subject(self) -> str:
        return "the run as a whole" if self._whole else self._criterion

    def _chosen(self, width: int) -> list[Line]:
        return [fit(_rating_line(self._rating), width), fit(_verdict_line(self._passed, self._rating), width), ()]

    def _note(self, width: int) -> list[Line]:
        last = self._last()
        if last is not None:
            return paragraph(said_last(last, now_ms()), width, "dim")
        return paragraph("There are no labels yet.", width, "dim")

    def _keys(self) -> Keys:
        if self.is_mounted and self.focused is not None:
            return self.edge("save", ("↑ ↓", "field"), close="back to the verdict")
        other = (("whole", "criterion" if self._whole else "whole run"),) if self._criterion else ()
        return self.edge(("1-5", "rate"), "passed", "failed", "save", *other, "comment")


def _rating_line(rating: int | None) -> Line:
    """`rating   1  2 [3] 4  5   undecided`."""
    cells: list[Cell] = [("rating       ", "dim")]
    for number in range(1, 6):
        chosen = number == rating
        cells.append((f"[{number}]" if chosen else f" {number} ", "bold accent" if chosen else ""))
    return (*cells, (f"   {RATINGS[rating]}" if rating else "   not given", "dim"))


def _verdict_line(passed: bool | None, rating: int | None) -> Line:
    """`verdict  [✓ passed]  ✗ failed`; without one, what the rating says."""
    cells: list[Cell] = [("verdict      ", "dim")]
    for value, name in ((True, "passed"), (False, "failed")):
        chosen = passed is value
        text = f"{glyph(name)} {name}"
        cells.append((f"[{text}]" if chosen else f" {text} ", f"bold {name}" if chosen else ""))
    if passed is None and rating is not None:
        cells.append((f"   counts as {'passed' if rating >= GOOD_FROM else 'failed'}, by the rating", "dim"))
    return tuple(cells)


def ask_label(
    screen: FrameScreen,
    run: str,
    criterion: str = "",
    then: Callable[[LabelSaved], None] | None = None,
) -> None:
    """Read a run's labels, ask for a new one over `screen`, report the result; `then` is called when it is saved.

    Screens call this from their action; it does not block.
    """
    app = screen.agenteval

    def kept(label_saved: LabelSaved) -> None:
        app.say(sentence(plain(label_given(label_saved.label, label_saved.status))))
        if then is not None:
            then(label_saved)

    def read() -> tuple[Label, ...]:
        return tuple(app.session.store.labels([run]))

    def ask(current: tuple[Label, ...]) -> None:
        screen.app.push_screen(LabelScreen(run, criterion, current), if_answered(kept))

    screen.ask(read, ask, group="label")
