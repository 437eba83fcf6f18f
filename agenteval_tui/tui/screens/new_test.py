"""The forms of what is new in suites: a suite with its first test, a test, one that is made of a conversation or a run,
tags for several tests; the rest is done in the Editor."""

from __future__ import annotations

import asyncio
from functools import partial

from textual.app import ComposeResult

from agenteval_tui.analysis.drafted_test import GoodRuns, drafted_test
from agenteval_tui.core.display import end_of_path, one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.new_suite import file_for
from agenteval_tui.tui.actions import key_of
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.styled_text import Line, fit, paragraph
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
            yield Note(self._note, id="note")

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

    def _note(self, width: int) -> list[Line]:
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
            yield Note(self._note, id="note")

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

    def _note(self, width: int) -> list[Line]:
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


NAME = 60  # characters of the question that the name is made of


class MakeTestScreen(FormSheet["tuple[str, str] | None"]):
    """Dismissed with (the suite's key, the test's id) when the test is written, or None."""

    def __init__(self, runs: GoodRuns, what: str) -> None:
        """`what` the test is made of, in a word."""
        super().__init__()
        self._runs = runs
        self._what = what
        self._suites: list[LoadedSuite] = []
        self._criteria: list[str] = []
        self._is_read = False

    def compose(self) -> ComposeResult:
        fields = [
            Field("suite", "suite", choices=(("", "reading the suites …"),)),
            Field("name", "name", one_line(self._runs.question, NAME), placeholder="what is tested"),
            Field("id", "id", placeholder="made from the name"),
        ]
        with SheetFrame(f"Make a test from this {self._what}", self._keys):
            yield Form(fields, below=True, id="fields")
            yield Note(self._estimate_lines, id="estimate")

    def _keys(self) -> Keys:
        choose = (("← →", "choose"),) if len(self._suites) > 1 else ()
        return self.edge(("enter", "create"), ("↑ ↓", "field"), *choose)

    def on_mount(self) -> None:
        start_worker(self, self._read, group="suites", awaited=True)

    async def _read(self) -> None:
        try:
            loaded_suites = await asyncio.to_thread(self.agenteval.session.workspace.suites)
            test = await asyncio.to_thread(drafted_test, self._runs)
        except AgentevalError as error:
            self.complain(error)
            return
        # A suite that can't be read can't be added to.
        self._suites = [
            loaded_suite for loaded_suite in loaded_suites if loaded_suite.suite is not None and loaded_suite.whole
        ]
        own = self._runs.suite
        self._suites.sort(key=lambda loaded_suite: own is None or loaded_suite.path.resolve() != own.resolve())
        choices = [
            (suite.key, f"{suite.suite.name if suite.suite else ''} · {suite.path.name}") for suite in self._suites
        ]
        self._is_read = True
        self.form.offer("suite", choices or [("", "there is no suite")])
        self.query_one(SheetFrame).retell()
        self._criteria = [str(criterion["name"]) for criterion in test["criteria"]]
        self.complain(None)

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Write it."""
        values = self.values
        problems = {}
        if not values["name"]:
            problems["name"] = "type a name"
        if not self._is_read:
            problems["suite"] = "the suites are still loading"
        elif not values["suite"]:
            key = key_of("suites.new", self.agenteval.keymap)
            problems["suite"] = f"there is no suite yet: press {key} on Suites to make one"
        self.form.complain(problems)
        if not problems:
            self.finish(partial(self._write, values))

    def _write(self, values: dict[str, str]) -> tuple[str, str]:
        suite = next(suite for suite in self._suites if suite.key == values["suite"])
        write = self.agenteval.session.workspace.make_test
        saved, test = write(self._runs, suite.path, values["id"], values["name"])
        return saved.key, test

    def _estimate_lines(self, width: int) -> list[Line]:
        sentence = "It asks the same question. Start with these criteria and refine them afterwards:"
        lines = paragraph(sentence, width, "dim")
        for name in self._criteria:
            lines.append(fit((("· ", "dim"), (one_line(name, 200), "")), width))
        if self._runs.failed:
            lines += paragraph(
                "The run did not pass, and these criteria expect what it did. Change them.", width, "review"
            )
        return lines
