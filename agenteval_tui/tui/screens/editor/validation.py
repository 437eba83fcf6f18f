"""The Editor checks what is typed: the newest text wins, and no two checks run at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval_tui.analysis.edit_validation import FieldProblem, check_edit
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.suites.datasets import read_rows
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import Dataset
from agenteval_tui.tui.presenters.editor_rows import in_order, problem_rows
from agenteval_tui.tui.presenters.test_form import DATASET, TestForm, edit_of, yaml_problems
from agenteval_tui.tui.screens.editor.document import SuiteDocument
from agenteval_tui.tui.screens.editor.preview import EditorLive
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.form import Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.workers import start_worker
from agenteval_tui.uxon.diagnostics import Diagnostic

if TYPE_CHECKING:
    from agenteval_tui.analysis.edit_validation import FieldProblem
if TYPE_CHECKING:
    from agenteval_tui.suites.model import AgentConfig

QUIET_S = 0.12
"""So long nothing is typed before the test is checked."""
LOW = 30
"""On a screen of fewer rows one problem is named, else three."""


class EditorChecking(EditorLive):
    """Says what is wrong, beside its field and below all panes, and goes there."""

    def _check(self) -> None:
        self._try()
        self._check_again = True
        if not self._checking:
            self._checking = True
            start_worker(self, self._check_all, group="check", exclusive=False, name="checking")

    async def _check_all(self) -> None:
        try:
            while self._check_again:
                await asyncio.sleep(QUIET_S)
                self._check_again = False
                doc = self._doc
                if doc is None:
                    return
                await self._check_one(doc)
        finally:
            self._checking = False

    async def _check_one(self, doc: SuiteDocument) -> None:

        one = doc.chosen
        config, kind = (one.values["config_uxon"], one.values["prototype_class"]) if one is not None else ("", "")
        found = await asyncio.to_thread(
            checked, doc.loaded, doc.test_id, doc.base.copy(), doc.form.copy(), self._agents, config, kind
        )
        if self._check_again or doc is not self._doc:
            return
        doc.problems, doc.error, doc.bad_yaml = found.problems, found.error, found.bad_yaml
        self._diagnostics = found.diagnostics
        editor = self.query_one("#config", ConfigEditor)
        if editor.text == config:
            editor.set_diagnostics(found.diagnostics)
        self._draw_problems()
        self._list_criteria()

    def _draw_problems(self) -> None:
        doc = self._doc
        if doc is None:
            return
        said: dict[str, str] = {}
        of_criterion: dict[str, str] = {}
        for one in reversed(in_order(doc.problems)):
            if one.problem.severity == "info":
                continue
            if one.criterion is None:
                for field in ("dataset_file",) if one.field == "dataset" else (one.field,):
                    said[field] = one.problem.message
            elif one.criterion == doc.criterion:
                of_criterion[one.field] = one.problem.message
        said.update(doc.bad_yaml)
        self.query_one("#fields", Form).complain(said)
        self.query_one("#criterion", Form).complain(of_criterion)
        names = [one.values["name"] for one in doc.form.criteria]
        most = 1 if self.size.height < LOW else 3
        problems, error = doc.problems, doc.error
        self.query_one("#problems", LineBlock).show(lambda width: problem_rows(problems, error, names, width, most))
        self._retitle_panes()

    # Going to a problem

    def action_next_problem(self) -> None:
        """Go to the field of the next problem."""
        doc = self._doc
        if doc is None or not doc.problems:
            self.agenteval.say("There are no problems here.")
            return
        places = [(one.criterion, one.field) for one in in_order(doc.problems)]
        here = self._place_of_focus()
        at = places.index(here) + 1 if here in places else 0
        while at < len(places) and places[at] == here:
            at += 1
        self._go_to(*places[at % len(places)])

    def _place_of_focus(self) -> tuple[int | None, str]:
        focused = self.focused
        name = (focused.id or "").removeprefix("field-") if focused is not None else ""
        if name == "config":
            return (self._doc.criterion if self._doc else None, "config_uxon")
        inside = focused is not None and any(one.id == "criterion" for one in focused.ancestors)
        field = "dataset" if name in DATASET else name
        return (self._doc.criterion if self._doc is not None and inside else None, field)

    def _go_to(self, criterion: int | None, field: str) -> None:
        doc = self._doc
        if doc is None:
            return
        if criterion is not None and criterion < len(doc.form.criteria):
            if criterion != doc.criterion:
                doc.criterion = criterion
                self._list_criteria()
                self._fill_criterion()
                self._check()
            self._set_pane("criteria")
            target = "#config" if field == "config_uxon" else f"#criterion #field-{field}" if field else "#criteria"
        else:
            field = "dataset_file" if field == "dataset" else field
            self._set_pane("criteria" if field == "criteria" else "test")
            target = "#criteria" if field == "criteria" else f"#fields #field-{field or 'name'}"
        found = self.query(target)
        if found:
            self.call_after_refresh(found.first().focus)

    def on_line_block_clicked(self, event: LineBlock.Clicked) -> None:
        """A click on a problem goes to its field."""
        doc = self._doc
        if event.block.id == "problems" and doc is not None and event.y < len(doc.problems):
            one: FieldProblem = in_order(doc.problems)[event.y]
            self._go_to(one.criterion, one.field)
        elif event.block.id == "verdict":
            self._focus_pane("live")
        elif event.block.id == "tabs":
            column = 1
            for pane, word in self._tabs():
                if column <= event.x < column + len(word) + 2:
                    self._focus_pane(pane)
                column += len(word) + 4


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wrong: by field; at all (it could not be saved); in fields of YAML; in the chosen config."""

    problems: list[FieldProblem] = field(default_factory=list)
    error: str = ""
    bad_yaml: Mapping[str, str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()


def checked(
    loaded: LoadedSuite,
    test_id: str,
    base: TestForm,
    form: TestForm,
    agents: Mapping[str, AgentConfig],
    config: str,
    prototype_class: str,
) -> Checked:
    """Check a form as `validate` checks what would be saved; what can't be read as YAML stays as it was in the file."""
    bad = yaml_problems(form)
    for key in bad:
        form.values[key] = base.values[key]
    diagnostics = tuple(diagnose(config, prototype_class)) if prototype_class else ()
    try:
        problems = check_edit(loaded, test_id, edit_of(base, form), agents)
    except AgentevalError as error:
        said = f"{error.what} ({error.mend})" if error.mend else error.what
        return Checked([], said, bad, diagnostics)
    problems += [FieldProblem(_syntax(loaded, said), key) for key, said in bad.items()]
    return Checked(problems, "", bad, diagnostics)


def _syntax(loaded: LoadedSuite, said: str) -> Problem:
    return Problem(str(loaded.path), 1, 1, 1, 1, "error", "syntax", said)


def first_rows(folder: Path, file: str, limit: str, most: int) -> tuple[list[Mapping[str, Any]], str]:
    """The first rows of a dataset as a person typed its file, and what is wrong with it."""

    number = int(limit) if limit.isdecimal() and int(limit[:9]) > 0 else None
    rows: list[Mapping[str, Any]] = []
    try:
        for row in islice(read_rows(Dataset(file=file, limit=number), folder), most):
            rows.append(row.variables)
    except AgentevalError as error:
        return rows, f"{error.where}: {error.what}" if error.where and rows else error.what
    return rows, ""
