"""A new suite: its name, its file, its agent, and a first test; the rest is done in the Editor."""

from __future__ import annotations

import asyncio
from functools import partial

from textual.app import ComposeResult

from agenteval_tui.core.display import end_of_path, one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.new_suite import file_for
from agenteval_tui.tui.presenters.text_layout import paragraph
from agenteval_tui.tui.services import Services, services
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.workers import is_busy, start_worker

NEEDED = ("name", "test", "prompt")


class NewSuiteScreen(Sheet["tuple[str, str] | None"]):
    """Dismissed with (the suite's key, its test's id) when the file is written, or None."""

    def __init__(self) -> None:
        super().__init__()

    def compose(self) -> ComposeResult:
        try:
            folder = end_of_path(self._app.session.workspace.folder_for_new(), 44)
        except AgentevalError:
            folder = ""  # what reads the agents for it says so
        fields = [
            Field("name", "suite", placeholder="its name"),
            Field("file", "file", placeholder="made from the name"),
            Field("agent", "agent", choices=(("", "reading the agents …"),)),
            Field("test", "first test", placeholder="what is tested"),
            Field("prompt", "prompt", placeholder="what the agent is asked"),
        ]
        keys = (("enter", "create"), ("↑ ↓", "field"), ("← →", "choose"), ("esc", "close"))
        with SheetFrame("A new suite", keys, subject=folder):
            yield Form(fields, below=True, id="fields")
            yield Note(self._said, id="said")

    def on_mount(self) -> None:
        self.query_one(Form).focus_first()
        start_worker(self, self._offer_agents, group="agents")

    async def _offer_agents(self) -> None:
        try:
            offered = await asyncio.to_thread(self._app.session.workspace.agents_for_new)
        except AgentevalError as error:
            self.query_one(Note).complain(error)
            return
        self.query_one(Form).offer("agent", [(key, words) for key, words in offered])

    def on_form_changed(self, event: Form.Changed) -> None:
        """What was wrong may be right now."""
        self.query_one(Note).complain(None)
        event.form.complain({})

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Write it, or go to what is missing."""
        values = event.form.values()
        missing = {name: "this is needed" for name in NEEDED if not values[name]}
        # Who fills one field after the other has made no mistake yet.
        later = list(values)[list(values).index(event.name) + 1 :] if event.name in values else []
        if missing and all(name in later for name in missing):
            self.focus_next()
            return
        event.form.complain(missing)
        if not missing and not is_busy(self, "write"):
            start_worker(self, partial(self._write, values), group="write", awaited=True)

    async def _write(self, values: dict[str, str]) -> None:
        new_suite = self._app.session.workspace.new_suite
        try:
            added = await asyncio.to_thread(
                new_suite, values["name"], values["file"], values["agent"], values["test"], values["prompt"]
            )
        except AgentevalError as error:
            self.query_one(Note).complain(error)
            return
        self.dismiss(added)

    @property
    def _app(self) -> Services:
        return services(self)

    def _said(self, width: int) -> list[Line]:
        values = self.query_one(Form).values() if self.is_mounted else {}
        name = values.get("file") or file_for(values.get("name") or "new")
        return paragraph(f"{one_line(name, 80)} is written, and its test opens in the Editor.", width, "dim")
