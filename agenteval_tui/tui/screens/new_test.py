"""The forms of what is new in suites: a suite with its first test, a test, tags for several tests; the rest is done in
the Editor."""

from __future__ import annotations

import asyncio
from functools import partial

from textual.app import ComposeResult

from agenteval_tui.core.display import end_of_path, one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.new_suite import file_for
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.styled_text import Line, paragraph
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.workers import start_worker

NEEDED = ("name", "test", "prompt")


class NewSuiteScreen(FormSheet["tuple[str, str] | None"]):
    """Dismissed with (the suite's key, its test's id) when the file is written, or None."""

    def compose(self) -> ComposeResult:
        try:
            folder = end_of_path(self.agenteval.session.workspace.folder_for_new(), 44)
        except AgentevalError:
            folder = ""  # what reads the agents for it says so
        fields = [
            Field("name", "suite", placeholder="its name"),
            Field("file", "file", placeholder="made from the name"),
            Field("agent", "agent", choices=(("", "reading the agents …"),)),
            Field("test", "first test", placeholder="what is tested"),
            Field("prompt", "prompt", placeholder="what the agent is asked"),
        ]
        keys = self.edge(("enter", "create"), ("↑ ↓", "field"), ("← →", "choose"))
        with SheetFrame("A new suite", keys, subject=folder):
            yield Form(fields, below=True, id="fields")
            yield Note(self._said, id="said")

    def on_mount(self) -> None:
        start_worker(self, self._offer_agents, group="agents")

    async def _offer_agents(self) -> None:
        try:
            offered = await asyncio.to_thread(self.agenteval.session.workspace.agents_for_new)
        except AgentevalError as error:
            self.complain(error)
            return
        self.form.offer("agent", [(key, words) for key, words in offered])

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
        if not missing:
            texts = (values[name] for name in ("name", "file", "agent", "test", "prompt"))
            self.finish(partial(self.agenteval.session.workspace.new_suite, *texts))

    def _said(self, width: int) -> list[Line]:
        values = self.values
        name = values.get("file") or file_for(values.get("name") or "new")
        return paragraph(f"{one_line(name, 80)} is written, and its test opens in the Editor.", width, "dim")


class NewTestScreen(FormSheet["str | None"]):
    """Dismissed with the id of the test when it is written, or None."""

    def __init__(self, loaded: LoadedSuite) -> None:
        super().__init__()
        self._loaded = loaded

    def compose(self) -> ComposeResult:
        suite = self._loaded.suite
        where = one_line(suite.name if suite is not None else self._loaded.path.name, 60)
        fields = [
            Field("name", "name", placeholder="what is tested"),
            Field("prompt", "prompt", placeholder="what the agent is asked"),
            Field("id", "id", placeholder="made from the name"),
        ]
        with SheetFrame("A new test", self.edge(("enter", "create"), ("↑ ↓", "field")), subject=where):
            yield Form(fields, below=True, id="fields")
            yield Note(self._said, id="said")

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Write it, or go to what is missing."""
        values = event.form.values()
        missing = {name: "this is needed" for name in ("name", "prompt") if not values[name]}
        if event.name == "name" and missing == {"prompt": "this is needed"}:
            self.focus_next()
            return
        event.form.complain(missing)
        if not missing:
            new_test = self.agenteval.session.workspace.new_test
            self.finish(partial(new_test, self._loaded.path, values["name"], values["prompt"], values["id"]))

    def _said(self, width: int) -> list[Line]:
        return paragraph("It is written to the suite's file and opens in the Editor.", width, "dim")


class TagsScreen(FormSheet["tuple[list[str], list[str]] | None"]):
    """Dismissed with (tags to give, tags to take away), or None."""

    def __init__(self, tests: int, tags: list[str]) -> None:
        """`tests`: how many; `tags`: what they have."""
        super().__init__()
        self._tests = tests
        self._tags = tags

    def compose(self) -> ComposeResult:
        title = f"Tags of {count(self._tests, 'test')}"
        fields = [
            Field("add", "add", placeholder="smoke, sql"),
            Field("remove", "remove", placeholder=", ".join(self._tags)[:60] or "they have none"),
        ]
        with SheetFrame(title, self.edge(("enter", "save"), ("↑ ↓", "field"))):
            yield Form(fields, below=True, id="fields")

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Done."""
        values = event.form.values()
        add, remove = ([tag.strip() for tag in values[name].split(",") if tag.strip()] for name in ("add", "remove"))
        self.dismiss((add, remove) if add or remove else None)
