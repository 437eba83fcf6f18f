"""The smallest input that still fails: what it may cost, how far it is, and what is left."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.display import one_line
from agenteval_tui.extensions.shrink.controller import ShrinkController
from agenteval_tui.extensions.shrink.view import price_text, progress_text, shrunk_view
from agenteval_tui.history.store import Store
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.screens.asking_sheet import AskingSheet
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.styled_text import Line, error_lines, indented, paragraph
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.workers import is_busy, start_worker

_WHAT = (
    "Removes parts of the agent's input (messages, calls, tools, sentences, JSON values, words) as long as it still "
    "fails for the same cause."
)
_KEPT = "Continuations are stored, are not asked twice, and never count in rates, trends, baselines or gates."


def shrink_run(screen: InspectScreen) -> None:
    """Open the sheet for the run that is inspected, and the criterion that is shown."""
    state = screen.controller
    if state.bench is not None:
        run, criterion = state.bench.run, state.criterion_name if state.was_graded else ""
        screen.app.push_screen(ShrinkScreen(screen.agenteval.session.store, run.id, run.test_id, criterion))


class ShrinkScreen(AskingSheet[None]):
    """Starts, shows and stops it."""

    controller: ShrinkController
    SCOPE = "shrink"
    BINDINGS: ClassVar[list[BindingType]] = bindings("shrink")

    def __init__(self, store: Store, run_id: str, test_id: str, criterion: str = "") -> None:
        super().__init__(ShrinkController(store, run_id, criterion))
        self._test = test_id

    def compose(self) -> ComposeResult:
        with SheetFrame("The smallest input", self._keys, subject=one_line(self._test, 60), width="large"):
            yield LinesView(id="shrunk")

    def on_mount(self) -> None:
        self.query_one("#shrunk", LinesView).focus()
        self._paint()

    # What a person does

    def action_calls(self) -> None:
        """Whether calls stay, and only what they say is shrunk."""
        if self.controller.can_ask:
            self.controller.keep_calls = not self.controller.keep_calls
            self._paint()

    def action_tools(self) -> None:
        """Whether the list of tools stays as it is."""
        if self.controller.can_ask:
            self.controller.keep_tools = not self.controller.keep_tools
            self._paint()

    def action_save(self) -> None:
        """Keep the small case as a test."""
        if self._can_save and not is_busy(self, "shrink-save"):
            start_worker(self, self._save, group="shrink-save", awaited=True)

    @property
    def _can_save(self) -> bool:
        controller = self.controller
        if controller.running or controller.shrunk is None:
            return False
        return bool(controller.shrunk.removed) and not controller.saved

    async def _save(self) -> None:
        controller, session = self.controller, self.agenteval.session

        def work() -> None:
            if (path := controller.save()) is not None:
                session.note_own_write(path)

        await asyncio.to_thread(work)
        self._paint()

    # What it looks like

    def _paint(self) -> None:
        self.query_one("#shrunk", LinesView).show(self._lines)
        self.query_one(SheetFrame).retell()

    def _keys(self) -> Keys:
        controller = self.controller
        if controller.stage in ("reading", "refused"):
            return self.edge()
        if controller.running:
            return self.edge("stop", close="stop and close")
        calls = "remove calls" if controller.keep_calls else "keep calls"
        tools = "remove tools" if controller.keep_tools else "keep tools"
        begin = "again" if controller.shrunk is not None else "start"
        saves = ("test",) if self._can_save else ()
        return self.edge(("start", begin), ("calls", calls), ("tools", tools), *saves)

    def _lines(self, width: int) -> list[Line]:
        controller = self.controller
        if controller.stage == "reading":
            return [((" Looking …", "dim"),)]
        lines: list[Line] = []
        if controller.error is not None:
            lines += [*error_lines(controller.error, width), ()]
        if controller.stage == "refused" or controller.question is None:
            return lines
        if controller.running:
            message = "Stopping …" if controller.stage == "stopping" else "Asking …"
            if controller.progress is not None and controller.stage == "running":
                message = progress_text(controller.progress)
            return [*lines, *indented(paragraph(message, max(width - 1, 1), "running"), 1)]
        if controller.shrunk is not None:
            lines += view_lines(shrunk_view(controller.shrunk, controller.question.criterion, dimmed=True), width)
            if controller.saved:
                lines += [(), *indented(paragraph(controller.saved, max(width - 1, 1), "passed"), 1)]
            if controller.price is not None:
                again = f"Starting again takes {price_text(controller.price)}. Stored continuations are free."
                lines += [(), *paragraph(again, width, "dim")]
            return lines
        lines += paragraph(_WHAT, width)
        stay = (
            "Tool calls stay. Only the text in them and in their results becomes shorter."
            if controller.keep_calls
            else ""
        )
        lines += paragraph(stay, width) if stay else []
        lines += paragraph("The list of tools stays as it is.", width) if controller.keep_tools else []
        lines += [(), *paragraph(price_text(controller.price) if controller.price is not None else "", width)]
        lines += paragraph(f"note: {controller.gone}", width, "review") if controller.gone else []
        return [*lines, (), *paragraph(_KEPT, width, "dim")]
