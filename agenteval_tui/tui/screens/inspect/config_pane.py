"""The config of the chosen criterion: its editor, the verdict and the problems, and what saving it would change."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from textual.app import ComposeResult
from textual.message import Message
from textual.timer import Timer

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.presenters.impact import impact_in_one_line, impact_lines, problem_lines
from agenteval_tui.tui.presenters.label_agreement import against_labels
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.screens.completion_controller import Assist
from agenteval_tui.tui.screens.inspect.controller import ConfigToEdit, InspectController
from agenteval_tui.tui.screens.inspect.pane import Pane
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.workers import start_worker

EDITED = "○" if UNICODE else "*"
DRAW_SECONDS = 0.05
KEEP_SECONDS = 0.5
PAINT_SECONDS = 0.5


class ConfigPane(Pane):
    """Every keystroke is judged, on the open run and then on all stored ones; a newer one wins."""

    PANE = "config"

    class Judged(Message):
        """The controller has the verdict on the open run. `first`: of a config that was just loaded, not edited."""

        def __init__(self, *, first: bool) -> None:
            super().__init__()
            self.first = first

    class Failed(Message):
        """The config could not be judged."""

        def __init__(self, error: AgentevalError) -> None:
            super().__init__()
            self.error = error

    def __init__(self, controller: InspectController) -> None:
        super().__init__()
        self._controller = controller
        self._assist = Assist()
        self._keep_timer: Timer | None = None
        self._painted = asyncio.Event()
        self._painted.set()

    def compose(self) -> ComposeResult:
        yield self.title_line()
        yield ConfigEditor(id="config")
        yield LineBlock(id="problems")
        yield LineBlock(id="impact")

    @property
    def editor(self) -> ConfigEditor:
        """The editor."""
        return self.query_one("#config", ConfigEditor)

    def heading(self) -> tuple[str, str]:
        state = self._controller
        if state.bench is None:
            return "config_uxon", ""
        if state.is_new:
            return "config_uxon", f"new {EDITED}"
        if state.bench.criteria[state.criterion].index is None:
            return "config_uxon", "not in a file"
        if state.is_edited:
            return "config_uxon", f"edited {EDITED}"
        return "config_uxon", "saved ●" if UNICODE else "saved"

    def load(self, config: ConfigToEdit) -> None:
        """Put it into the editor; the same text of the same criterion is left alone, with cursor and undo."""
        state, editor = self._controller, self.editor
        state.saved_text = config.saved
        if config.other or editor.text != config.text:
            editor.load(config.saved)
            # The editor knows one kind of line end: what it makes of the saved text is what is not edited.
            state.saved_text = editor.text
            if config.text != config.saved:
                editor.load(config.text)

    def draw(self) -> None:
        """Show the verdict and the problems of the config as it stands in the editor."""
        state, text = self._controller, self.editor.text
        result, diagnostics = state.result, state.diagnostics
        most = 3 if self.screen.size.height < 30 else 5
        self.query_one("#problems", LineBlock).show(lambda width: problem_lines(result, diagnostics, text, width, most))
        self.retitle()

    def draw_impact(self) -> None:
        """Show what saving it would change, as far as that is counted."""
        state = self._controller
        # Of a new criterion there is no now: what is counted is what saving it would say.
        impact, labels, unsaved = state.impact, state.agreement, state.is_unsaved
        narrow = self.screen.has_class("narrow")
        make = impact_in_one_line if narrow else impact_lines

        def lines(width: int) -> list[Line]:
            made = make(impact, unsaved, width)
            # One line is all that a narrow screen has room for: labels come in where an edit goes against them.
            if narrow and not (labels and labels.against):
                return made
            return [*made, *against_labels(labels, unsaved, width)]

        self.query_one("#impact", LineBlock).show(lines)

    # Every keystroke is judged

    def on_config_editor_changed(self, event: ConfigEditor.Changed) -> None:
        """The config was edited."""
        event.stop()
        # A message that was still on its way when another config was loaded, or more was typed, says nothing now.
        if self._controller.bench is not None and event.text == self.editor.text:
            self._controller.edit(event.text)
            self._keep_soon()
            self._regrade(event.text, first=False)

    def judge(self, *, first: bool) -> None:
        """Judge what was loaded, once it is painted; `first`: its verdict is not known yet, and does not wait."""
        self._painted = asyncio.Event()
        self.call_after_refresh(self._painted.set)
        self._regrade(self.editor.text, first=first)

    def _regrade(self, text: str, *, first: bool) -> None:
        start_worker(self.screen, partial(self._judge, text, first), group="judge", name="judging")

    async def _judge(self, text: str, first: bool) -> None:
        state = self._controller
        try:
            if not first:
                await self._shown()
            # The open run's verdict first: it is what the eye rests on.
            await state.judge(text)
            self.editor.set_diagnostics(state.diagnostics)
            self.post_message(self.Judged(first=first))
            await self._shown()
            drawn = 0.0
            async for _ in state.count_impact(text):
                now = time.monotonic()
                if now - drawn > DRAW_SECONDS:
                    drawn = now
                    self.draw_impact()
            self.draw_impact()
        except AgentevalError as error:
            self.post_message(self.Failed(error))

    async def _shown(self) -> None:
        """Wait until what was opened is painted: work in threads would keep it from the screen."""
        try:
            await asyncio.wait_for(self._painted.wait(), PAINT_SECONDS)
        except TimeoutError:
            # Another screen lies over this one: nothing is painted here.
            self._painted.set()

    def _keep_soon(self) -> None:
        """Write the draft down in a moment, in case that this ends badly."""
        if self._keep_timer is not None:
            self._keep_timer.stop()
        write = self._controller.draft_writer()
        if write is not None:
            begin = partial(self.screen.run_worker, write, thread=True, group="draft", exit_on_error=False)
            self._keep_timer = self.set_timer(KEEP_SECONDS, begin)

    # What is done to the config

    def fix(self) -> bool:
        """Apply the fix for the problem at the cursor, else the first one that there is; False when there is none."""
        here = self.editor.diagnostic_at_cursor()
        for problem in (*((here,) if here is not None else ()), *self._controller.diagnostics):
            if problem.fix is not None:
                self.editor.apply_fix(problem.fix)
                return True
        return False

    def revert(self) -> None:
        """Put back what is saved, as an edit that can be undone; all of it is seen from its start."""
        self.editor.replace_all(self._controller.saved_text)
        self.editor.move_cursor((self.editor.cursor_location[0], 0))

    # What can be written, and what it means

    def forget_completions(self) -> None:
        """New runs may have come: read again what recordings know."""
        self._assist.forget()

    async def explain(self) -> bool:
        """Show what the word at the cursor means; False when there is nothing to say."""
        return await self._assist.explain(self.editor, self._prototype_class)

    def on_config_editor_asked(self, event: ConfigEditor.Asked) -> None:
        """What can be written at the cursor?"""
        event.stop()
        bench = self._controller.bench
        if bench is not None:
            answer = partial(
                self._assist.answer, event, self._prototype_class, bench.store, bench.run.suite_key, bench.run.test_id
            )
            start_worker(self.screen, answer, group="assist", name="completing")

    @property
    def _prototype_class(self) -> str:
        state = self._controller
        assert state.bench is not None
        return state.bench.criteria[state.criterion].spec.prototype_class
