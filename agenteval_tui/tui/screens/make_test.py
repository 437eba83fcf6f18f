"""A conversation or a run becomes a test: its name, and the suite's file that it is written to."""

from __future__ import annotations

import asyncio
from functools import partial

from textual.app import ComposeResult

from agenteval_tui.analysis.drafted_test import GoodRuns, drafted_test
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.tui.actions import key_of
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.styled_text import Line, fit, paragraph
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.workers import start_worker

NAME = 60


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
