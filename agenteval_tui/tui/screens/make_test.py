"""A conversation becomes a test: its name, and the suite's file that it is written to."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.runs.chat_session import Conversation
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.tui.actions import key_of
from agenteval_tui.tui.presenters.text_layout import paragraph
from agenteval_tui.tui.services import Services, services
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.workers import is_busy, start_worker

NAME = 60


class MakeTestScreen(Sheet["tuple[str, str] | None"]):
    """Dismissed with (the suite's key, the test's id) when the test is written, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "close", show=False)]

    def __init__(self, chat: Conversation) -> None:
        super().__init__()
        self._chat = chat
        self._suites: list[LoadedSuite] = []

    def compose(self) -> ComposeResult:
        first = next((turn.text for turn in self._chat.turns if turn.error is None), "")
        fields = [
            Field("suite", "suite", choices=(("", "reading the suites …"),)),
            Field("name", "name", one_line(first, NAME), placeholder="what is tested"),
            Field("id", "id", placeholder="made from the name"),
        ]
        keys = (("enter", "create"), ("↑ ↓", "field"), ("← →", "choose"), ("esc", "close"))
        with SheetFrame("Make a test of this conversation", keys):
            yield Form(fields, below=True, id="fields")
            yield Note(self._estimate_lines, id="estimate")

    def on_mount(self) -> None:
        self.query_one(Form).focus_first()
        start_worker(self, self._read, group="suites")

    async def _read(self) -> None:
        try:
            found = await asyncio.to_thread(self._app.session.workspace.suites)
        except AgentevalError as error:
            self.query_one(Note).complain(error)
            return
        # A suite that can't be read can't be added to.
        self._suites = [one for one in found if one.suite is not None and one.whole]
        own = str(self._chat.configured.file.resolve())
        self._suites.sort(key=lambda one: one.key != own)
        choices = [
            (suite.key, f"{suite.suite.name if suite.suite else ''} · {suite.path.name}") for suite in self._suites
        ]
        self.query_one(Form).offer("suite", choices or [("", "there is no suite")])

    def on_form_changed(self, event: Form.Changed) -> None:
        """What was wrong may be right now."""
        self.query_one(Note).complain(None)

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Write it."""
        form = self.query_one(Form)
        values = form.values()
        problems = {}
        if not values["name"]:
            problems["name"] = "a name is needed"
        if not values["suite"]:
            key = key_of("suites.new", self._app.keymap)
            problems["suite"] = f"there is no suite to write to: {key} on Suites makes one"
        form.complain(problems)
        if not problems and not is_busy(self, "write"):
            start_worker(self, partial(self._write, values), group="write")

    async def _write(self, values: dict[str, str]) -> None:
        suite = next(one for one in self._suites if one.key == values["suite"])
        write = self._app.session.workspace.add_test
        try:
            saved, test = await asyncio.to_thread(write, suite.path, values["id"], values["name"], self._chat)
        except AgentevalError as error:
            self.query_one(Note).complain(error)
            return
        self.dismiss((saved.key, test))

    @property
    def _app(self) -> Services:
        return services(self)

    def _estimate_lines(self, width: int) -> list[Line]:
        answered = self._chat.answered
        asked = sum(turn.error is None for turn in self._chat.turns)
        parts = [f"sends {count(asked, 'message')} to {one_line(self._chat.configured.name, 40)}"]
        if answered.tool_calls:
            parts.append(f"expects {count(len(answered.tool_calls), 'tool call')} with the same arguments")
        if answered.final_output:
            parts.append("expects an answer like the last one")
        return paragraph("It " + ", ".join(parts) + ". Sharpen its criteria afterwards.", width, "dim")
