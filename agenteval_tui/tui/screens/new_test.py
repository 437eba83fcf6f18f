"""A new test: its name and what is asked; the rest is done in the Editor. And tags for several tests."""

from __future__ import annotations

from functools import partial

from textual.app import ComposeResult

from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.styled_text import Line, paragraph
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame


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
