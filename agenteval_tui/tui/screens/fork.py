"""The sheet over Inspect that continues a run: what to change at a step, what was there, how often, and the price."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.runs.fork.edits import changeable
from agenteval_tui.runs.fork.model import ForkRequest
from agenteval_tui.runs.fork.plan import ForkPrice, questions_of
from agenteval_tui.runs.plan.model import PlanOptions
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.presenters.text_layout import error_lines
from agenteval_tui.tui.services import services
from agenteval_tui.tui.styled_text import Line, fit
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.workers import start_worker
from agenteval_tui.views.fork import price_text

QUIET_SECONDS = 0.15
_WORDS = {
    "tool_result": "what the tool gives", "tool_error": "the tool fails with this", "arguments": "the call's arguments",
    "text": "the text", "system": "the system prompt", "insert": "a message of the user behind it",
    "drop": "leave it out", "": "nothing: ask again from here",
}  # fmt: skip
_WITHOUT_TEXT = ("drop", "")
_MOST = 1000


class ForkScreen(Sheet["tuple[ForkRequest, PlanOptions] | None"]):
    """Dismissed with what is to be asked, or None. `step` counts from 0."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close", show=False),
        Binding("ctrl+s", "start", "start", show=False, priority=True),
    ]

    def __init__(self, run: str, transcript: Transcript, step: int) -> None:
        super().__init__()
        self._run = run
        self._transcript = transcript
        self._step = step
        self._role = transcript.messages[step].role
        self._there = changeable(transcript, step)
        self._what = next(iter(self._there))
        self._price: ForkPrice | None = None
        self._error: AgentevalError | None = None

    def compose(self) -> ComposeResult:
        choices = tuple((name, _WORDS[name]) for name in (*self._there, ""))
        fields = [
            Field("what", "change", self._what, choices=choices),
            Field("text", "to", self._there[self._what], rows=9),
            Field("count", "how often", "5", hint="continuations"),
            Field("max_cost", "at most", "", hint="US dollars, judges included; empty: any"),
        ]
        keys = (("^s", "continue from here"), ("tab", "field"), ("esc", "close"))
        with SheetFrame(
            "Continue from this step", keys, subject=f"step {self._step + 1}, {self._role}", width="medium"
        ):
            yield Form(fields, below=True, id="fields")
            yield Section("price", id="price")
            yield LineBlock(self._price_lines, id="takes")

    def on_mount(self) -> None:
        self.query_one(Form).query_one("#field-text").focus()
        self._look()

    def on_form_changed(self, event: Form.Changed) -> None:
        """Another thing to change has another text that is there now."""
        what = self.query_one(Form).values()["what"]
        if event.name == "what" and what != self._what:
            self._what = what
            self.query_one(Form).fill({"text": self._there.get(what, "")})
        self._look()

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Enter in a field of one line."""
        self.action_start()

    def action_start(self) -> None:
        """Ask, if that can be asked."""
        try:
            asked = self._asked()
        except AgentevalError as error:
            self._price, self._error = None, error
            self._retell()
            return
        if self._error is not None:
            services(self).say_error(self._error)
        else:
            self.dismiss(asked)

    def _asked(self) -> tuple[ForkRequest, PlanOptions]:
        values = self.query_one(Form).values()
        what, text = values["what"], values["text"]
        changes: dict[str, object] = {}
        if what == "insert":
            changes = {"insert": {"role": "user", "text": text}}
        elif what:
            changes = {what: True if what == "drop" else text}
        questions_of(self._transcript, self._step + 1, changes)
        number = values["count"]
        if not number.isdecimal() or not 1 <= int(number) <= _MOST:
            raise AgentevalError(f"how often is a number from 1 to {_MOST:,}, not {number!r}", mend="write 5")
        limit: float | None = None
        if values["max_cost"]:
            try:
                limit = float(values["max_cost"].removeprefix("$"))
            except ValueError:
                limit = 0.0
            if not limit > 0:
                raise AgentevalError("the limit is a number of US dollars above 0", mend="write 0.50, or nothing")
        return ForkRequest(self._run, self._step + 1, changes, int(number)), PlanOptions(max_cost=limit)

    def _look(self) -> None:
        start_worker(self, self._show, group="price")

    async def _show(self) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        try:
            request, _ = self._asked()
            work = partial(services(self).session.workspace.price_of_fork, request)
            self._price, self._error = await asyncio.to_thread(work), None
        except AgentevalError as error:
            self._price, self._error = None, error
        self._retell()

    def _retell(self) -> None:
        self.query_one("#takes", LineBlock).show(self._price_lines)

    def _price_lines(self, width: int) -> list[Line]:
        if self._error is not None:
            return error_lines(self._error, width)
        price = self._price
        if price is None:
            return [(("…", "dim"),)]
        lines: list[Line] = []
        if price.takes.runs:
            lines.append(fit(((price_text(price.takes, price.requests), ""),), width))
        if price.known:
            said = f"{count(price.known, 'continuation')} known already: nothing is asked for them"
            lines.append(fit(((said, "dim"),), width))
        return lines
