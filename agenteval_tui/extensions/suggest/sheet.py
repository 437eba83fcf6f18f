"""Criteria that agree with a test's labelled runs: the list, the config of each, and the run to label next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count
from agenteval_tui.extensions.suggest.controller import SuggestController, SuggestedState
from agenteval_tui.extensions.suggest.search import Suggestion
from agenteval_tui.extensions.suggest.view import check_text, facts_of, labels_text, next_lines
from agenteval_tui.grading.criterion_templates import Starter
from agenteval_tui.history.store import Store
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.config_lines import coloured_lines
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.presenters.status_style import glyph
from agenteval_tui.tui.presenters.view_lines import line, view_lines
from agenteval_tui.tui.screens.editor.screen import EditorScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.styled_text import Cell, Line, error_lines, fit, indented, paragraph, spread, width_of
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList
from agenteval_tui.tui.workers import is_busy, start_worker
from agenteval_tui.views.model import paragraphs, plain

_ANSWER = 400
"""Characters of the answer that a verdict is asked of."""


def _line(suggestion: Suggestion, width: int) -> Line:
    right = suggestion.agrees == suggestion.labelled
    title: Line = ((" ", ""), (one_line(suggestion.title, 300), ""))
    agrees: Cell = (f"agrees {suggestion.agrees} of {suggestion.labelled}", "passed" if right else "error")
    predicts = f" (predicts {suggestion.left_out} of {suggestion.labelled})" if suggestion.left_out is not None else ""
    passes = f", passes {suggestion.passes} of {suggestion.runs}"
    # Where there is no room for all, the rest is said of the chosen one below.
    ends: list[Line] = [(agrees, (more + " ", "dim")) for more in (predicts + passes, predicts, "")]
    end = next((candidate for candidate in ends if width_of(title) + width_of(candidate) < width), ends[-1])
    return spread(title, end, width)


def suggest_for_run(screen: InspectScreen) -> None:
    """The smallest criteria that agree with the labels of the test's runs; labels can be given there."""
    bench, name = screen.controller.bench, screen.controller.criterion_name
    if bench is None:
        return
    run, services = bench.run, screen.agenteval
    may_add = bench.loaded is not None
    sheet = SuggestScreen(services.session.store, run.suite_key, run.test_id, run.id, may_add=may_add)

    def chosen(starter: Starter | None) -> None:
        if starter is not None:
            services.edit_test(run.suite_key, run.test_id, starter=starter, run=run.id)
        elif sheet.labelled and screen.controller.bench is bench:
            screen.read_again(name)

    screen.app.push_screen(sheet, chosen)


def suggest_for_test(screen: EditorScreen) -> None:
    """The smallest criteria that agree with the labels of the test's runs; the chosen one is added to the form."""
    doc, trial = screen.controller.doc, screen.controller.preview.trial
    if doc is None:
        return

    def chosen(starter: Starter | None) -> None:
        if starter is not None and screen.controller.doc is doc:
            screen.add_criterion(starter)

    run = trial.bench.run.id if trial is not None else ""
    screen.app.push_screen(SuggestScreen(screen.agenteval.session.store, doc.loaded.key, doc.test_id, run), chosen)


class SuggestScreen(Sheet[Starter | None]):
    """Dismissed with the criterion to add, or None. `labelled` says whether labels were given meanwhile."""

    SCOPE = "suggest"
    BINDINGS: ClassVar[list[BindingType]] = bindings("suggest")

    def __init__(self, store: Store, suite_key: str, test_id: str, run_id: str = "", *, may_add: bool = True) -> None:
        """`run_id`: the open run, which is labelled first. `may_add`: whether the test is in a file that can get a
        criterion."""
        super().__init__()
        self._may_add = may_add
        self._error: AgentevalError | None = None
        self.controller = SuggestController(store, suite_key, test_id, run_id)

    @property
    def labelled(self) -> bool:
        """Whether labels of this sheet are in the history."""
        return bool(self.controller.labels)

    def compose(self) -> ComposeResult:
        subject = one_line(self.controller.test_id, 60)
        with SheetFrame("Criteria from labels", self._keys, subject=subject, width="large"):
            yield LineBlock(self._head, id="labels")
            yield VirtualList(id="suggestions")
            yield Section("config", id="rule")
            yield LinesView(id="config")
            yield Section(self._run_title, id="run-rule")
            yield LineBlock(self._run, id="run")

    def on_mount(self) -> None:
        rows = self.query_one("#suggestions", VirtualList)
        rows.set_empty([((" Looking …", "dim"),)])
        rows.focus()
        self._show_config(False)
        self._work(self.controller.read)

    # What a person does

    def action_say(self, good: bool) -> None:
        """Label the run that is shown."""
        controller = self.controller
        example = controller.shown
        # While one label is written, the next key would still mean the run that it was of.
        if example is not None and not is_busy(self, "suggest"):
            self._work(partial(controller.say, example.run, good))

    def action_take_back(self) -> None:
        """Take the last label back."""
        if self.controller.labels and not is_busy(self, "suggest"):
            self._work(self.controller.take_back)

    def action_step(self, by: int) -> None:
        """Another run to label."""
        self.controller.step(by)
        self._show_run()

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Another criterion."""
        self._preview(event.index)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Add this one to the test."""
        controller = self.controller
        if event.index >= len(controller.suggestions):
            return
        if self._may_add:
            self.dismiss(controller.starter(event.index))
        else:
            self.agenteval.say("This test is not in a suite file, so you can't add a criterion.", severity="warning")

    # Reading, in a thread: up to some tenths of a second

    def _work(self, work: Callable[[], SuggestedState | None]) -> None:
        start_worker(self, partial(self._read, work), group="suggest", awaited=True)

    async def _read(self, work: Callable[[], SuggestedState | None]) -> None:
        try:
            await asyncio.to_thread(work)
            self._error = None
        except AgentevalError as error:
            self._error = error
        self._show()
        # It takes longer, and nothing waits for it.
        start_worker(self, self._check, group="check")

    async def _check(self) -> None:
        await asyncio.to_thread(self.controller.check)
        self.query_one("#labels", LineBlock).retell()

    # What it looks like

    def _show(self) -> None:
        rows, suggestions = self.query_one("#suggestions", VirtualList), self.controller.suggestions
        rows.set_empty([])
        # A criterion that the person went to stays under the cursor; else it is on the best one.
        chosen = rows.cursor_key if rows.cursor > 0 else None
        rows.set_source(Rows(suggestions, _line, lambda suggestion: suggestion.title), keep_key=chosen)
        if chosen is None or rows.cursor_key != chosen:
            rows.cursor = min(len(suggestions), 1) - 1
        self._show_config(bool(suggestions))
        self.query_one("#labels", LineBlock).retell()
        self.query_one(SheetFrame).retell()
        if suggestions:
            self._preview(rows.cursor)
        self._show_run()

    def _show_config(self, there: bool) -> None:
        self.query_one("#rule").display = self.query_one("#config").display = there

    def _show_run(self) -> None:
        self.query_one("#run-rule", Section).retell()
        self.query_one("#run", LineBlock).retell()

    def _keys(self) -> Keys:
        controller = self.controller
        adds = (("enter", "add to the test"), ("tab", "config")) if controller.suggestions else ()
        labels = ("good", "bad", "older") if controller.shown is not None else ()
        return self.edge(*adds, *labels, *(("undo",) if self.labelled else ()))

    def _head(self, width: int) -> list[Line]:
        state = self.controller.state
        if self._error is not None:
            return error_lines(self._error, width)
        if state is None:
            return []
        if state.suggestions is None:
            words = (
                "Label at least two good runs and one bad run: y is good, n is bad. Criteria that agree with your "
                "labels appear here."
            )
            return paragraph(words, width)
        lines = [fit(((" ", ""), *line(labels_text(state.suggestions, state.examples))), width)]
        for next_line in map(plain, next_lines(state.suggestions, 1)):
            lines += [] if "Label next" in next_line else paragraph(next_line, width, "dim")
        if state.checked is not None:
            lines += paragraph(plain(check_text(state.checked)), width, "dim" if state.checked.better else "warn")
        return lines

    def _preview(self, index: int) -> None:
        """The config of a criterion, and what it gets wrong."""
        controller = self.controller
        state = controller.state
        if state is None or state.suggestions is None or index >= len(controller.suggestions):
            return
        suggestion, suggestions = controller.suggestions[index], state.suggestions
        facts = paragraphs(list(facts_of(suggestion, suggestions)), 1)

        def lines(width: int) -> list[Line]:
            return [
                *view_lines(facts, width),
                ((f" {suggestion.prototype_class}", "dim"),),
                *indented(coloured_lines(suggestion.config, width - 1)),
            ]

        self.query_one("#config", LinesView).show(lines, keep_place=False)

    def _run_title(self) -> str:
        example, state = self.controller.shown, self.controller.state
        if example is None or state is None:
            return "good or bad?"
        runs = [example.run for example in state.examples.examples.runs]
        return f"good or bad? {runs.index(example.run) + 1} of {count(len(runs), 'run')}, {short_id(example.run)}"

    def _run(self, width: int) -> list[Line]:
        example = self.controller.shown
        if example is None:
            return []
        verdict: Line = ((" not labelled yet", "dim"),)
        if example.good is not None:
            name = "passed" if example.good else "failed"
            verdict = ((f" {glyph(name)} {'good' if example.good else 'bad'}", name),)
        calls = ", ".join(call.name for call in example.transcript.tool_calls)
        rows: list[Line] = [verdict]
        if calls:
            rows.append(fit(((" calls ", "dim"), (one_line(calls, 200), "")), width))
        return [*rows, *paragraph(one_line(example.transcript.final_output, _ANSWER) or "no answer", width)[:4]]
