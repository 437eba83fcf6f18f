"""Putting a test or one of its criteria in quarantine, or ending that: what, until when, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.analysis.overview import SuiteOverview
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.timespan import moment_from
from agenteval_tui.history import quarantines
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.quarantines import DEFAULT_DAYS, Quarantine
from agenteval_tui.history.store import Store
from agenteval_tui.suites.model import Test
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.styled_text import Line, paragraph
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock, Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.views.model import sentence
from agenteval_tui.views.quarantine import begun_text, ended_text, in_force_text, name_text

_WHOLE = ""
_EFFECT = "It still runs and shows up, but does not count in gates, exit codes or alerts."


def ask_quarantine(screen: FrameScreen, then: Callable[[], None], suite_key: str, test_id: str, **about: Any) -> None:
    """Ask over a screen what to put in quarantine, as `QuarantineScreen` does; `then` is called when that is done."""

    def done(message: str) -> None:
        screen.agenteval.say(message)
        then()

    screen.app.push_screen(QuarantineScreen(suite_key, test_id, **about), if_answered(done))


def ask_quarantine_of(
    screen: FrameScreen, then: Callable[[], None], suite: SuiteOverview, test: Test, criterion: int | None
) -> None:
    """Ask it about a test of the Suites screen, or about its criterion with this number."""
    ask_quarantine(
        screen,
        then,
        suite.loaded.key,
        test.id,
        criterion=test.criterion_names[criterion] if criterion is not None else "",
        criteria=list(test.criterion_names),
        suite_name=suite.loaded.suite.name if suite.loaded.suite is not None else "",
        held=[quarantine for quarantine in suite.quarantines if quarantine.test_id == test.id],
    )


class QuarantineScreen(FormSheet["str | None"]):
    """Dismissed with what was done, in words, when it is in the history; or None."""

    AUTO_FOCUS = ""
    SCOPE = "quarantine"
    BINDINGS: ClassVar[list[BindingType]] = bindings("quarantine")

    def __init__(
        self,
        suite_key: str,
        test_id: str,
        *,
        criterion: str = "",
        criteria: Sequence[str] = (),
        suite_name: str = "",
        reason: str = "",
        held: Sequence[Quarantine] = (),
    ) -> None:
        """`criteria`: names to choose from beside the whole test. `held`: the quarantines of the test that hold."""
        super().__init__()
        self._suite, self._test, self._suite_name = suite_key, test_id, suite_name
        self._criterion = criterion
        names = dict.fromkeys((*criteria, *((criterion,) if criterion else ())))
        self._criteria = tuple(names)
        self._reason = reason
        self._held = {quarantine.criterion: quarantine for quarantine in held}

    def compose(self) -> ComposeResult:
        held = self._held.get(self._criterion)
        choices = ((_WHOLE, "the whole test"), *((criterion, one_line(criterion, 50)) for criterion in self._criteria))
        until = held.last_day if held else f"{DEFAULT_DAYS}d"
        fields = [
            Field("what", "what", self._criterion, choices=choices),
            Field("until", "until", until, placeholder="14d, 2w, or a day: 2026-12-24"),
            Field("reason", "reason", held.reason if held else self._reason, placeholder="why, in a few words"),
        ]
        with SheetFrame("Quarantine", self._keys, subject=one_line(self._test, 60)):
            yield LineBlock(lambda width: paragraph(_EFFECT, width, "dim"), id="about")
            yield Form(fields, id="fields")
            yield Note(self._note, id="note")

    def on_mount(self) -> None:
        # What is chosen is known once the fields are there.
        self.call_after_refresh(self._show)

    def on_form_changed(self, event: Form.Changed) -> None:
        """Another criterion: what is said of it."""
        self._show()

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Enter keeps it."""
        values = self.values
        text = values["until"]
        if not text:
            self.complain(AgentevalError("a quarantine needs an end", fix="write 14d, 2w, or a day: 2026-12-24"))
            return
        try:
            until = quarantines.default_until() if text == f"{DEFAULT_DAYS}d" else moment_from(text, now_ms())
        except ValueError as wrong:
            self.complain(AgentevalError(str(wrong)))
            return
        quarantine = Quarantine(
            self._suite,
            self._test,
            until,
            values["what"],
            values["reason"],
            current_user(),
            suite_name=self._suite_name,
        )
        self._write(lambda: quarantines.put(self._store, quarantine).result(), f"{begun_text(quarantine)}.")

    def action_end(self) -> None:
        """End the one that holds."""
        what = self.values["what"]
        if what not in self._held:
            self.complain(AgentevalError(f"{name_text(self._test, what)} is not in quarantine"))
            return
        message = f"{ended_text(self._test, what)}."
        self._write(lambda: quarantines.end(self._store, self._suite, self._test, what).result(), message)

    def _write(self, work: Callable[[], object], message: str) -> None:
        def write() -> str:
            work()
            return message

        self.finish(write)

    @property
    def _store(self) -> Store:
        return self.agenteval.session.store

    def _show(self) -> None:
        self.query_one(SheetFrame).retell()

    def _chosen(self) -> str:
        return self.values.get("what", self._criterion)

    def _note(self, width: int) -> list[Line]:
        held = self._held.get(self._chosen())
        if held is None:
            return paragraph("It is not in quarantine now.", width, "dim")
        return paragraph(sentence(in_force_text(held)), width, "review")

    def _keys(self) -> Keys:
        return self.edge(("enter", "save"), ("↑ ↓", "field"), *(("end",) if self._chosen() in self._held else ()))
