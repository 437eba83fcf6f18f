"""The Watch screen: the agent's code is edited elsewhere, and after each save the verdicts that change are here."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.change.model import RunChange, RunChecked
from agenteval_tui.tui.actions import bindings, named_keys
from agenteval_tui.tui.code_watch import CodeWatch, WatchRequest
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.watch_controller import MessageDifference, WatchController, WatchRows, read_difference
from agenteval_tui.tui.styled_text import Cell
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import call_after, start_worker

_GATHER_S = 0.1  # thousands of runs may be checked at once: a picture shows what came in so long


class WatchScreen(FrameScreen):
    """What the last save changed: a line, and a row for each run that differs."""

    SCOPE = "watch"
    CSS_PATH = "watch.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings("watch")

    def __init__(self) -> None:
        super().__init__()
        self.controller = WatchController()
        self._watch: CodeWatch | None = None
        self._composed = False
        self._gathers = False

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(lambda width: self.controller.lines(width), id="change")
        yield VirtualList(id="runs")
        yield LinesView(id="details")
        yield self.key_bar()

    def on_mount(self) -> None:
        self._composed = True
        self._list.focus()
        self._show()
        if self.controller.request is not None:
            self._begin()

    def watch_code(self, request: WatchRequest) -> None:
        """Watch these tests' agents, in place of what was watched before; what is watched already continues."""
        if request == self.controller.request and not self.controller.ended:
            return
        self.controller = WatchController(request, everything=self.controller.everything)
        if self._composed:
            self._show()
            self._begin()

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        return self.controller.heading()

    def tab(self) -> str:
        return "run"

    def keys(self) -> list[tuple[str, str, str]]:
        """Only what does something now."""
        controller, change = self.controller, self.controller.change
        names = ["open", "difference"] * bool(controller.rows().count())
        if change is not None:
            names += ["model"] * bool(change.needs_model)
            names += ["real"] * self.controller.has_to_run
        names += ["check"] * (not controller.ended) + ["everything"] * (change is not None)
        names += ["end"] * (not controller.ended)
        keys = named_keys(self.SCOPE, names, self.agenteval.keymap)
        labels = {"model": f"ask the model for {controller.needed()}"}
        labels["everything"] = "changed" if controller.everything else "all"
        return [*((key, labels.get(do, label), do) for key, label, do in keys), *super().keys()[-1:]]

    # The process

    def _begin(self) -> None:
        start_worker(self, self._follow, group="watch")

    async def _follow(self) -> None:
        request, session = self.controller.request, self.agenteval.session
        if request is None:
            return
        watch = self._watch = CodeWatch(request, session.db)
        try:
            async for event in watch.events():
                # Another one was begun meanwhile.
                if self._watch is not watch:
                    return
                self.controller.take(event)
                if isinstance(event, RunChecked):
                    self._show_gathered()
                else:
                    # To read a change of thousands of runs took its time: a key may wait.
                    await asyncio.sleep(0)
                    self._show()
            if self._watch is watch:
                self.controller.ended = "This is not watched any more."
        except AgentevalError as error:
            self.controller.ended = error.sentence
        finally:
            await watch.close()
        self.controller.busy = False
        self._show()

    def on_unmount(self) -> None:
        self._watch = None

    def _show_gathered(self) -> None:
        """Runs end by the hundred in a second: what ends within a tenth of it is shown at once."""
        if not self._gathers:
            self._gathers = True
            call_after(self, _GATHER_S, self._show)

    def _show(self) -> None:
        self._gathers = False
        if not self._composed:
            return
        rows, view = self.controller.rows(), self._list
        view.set_empty(self.controller.empty())
        view.set_source(rows, keep_key=view.cursor_key if view.cursor else None)
        self.query_one("#change", LineBlock).show(self.controller.lines)
        self.rekey()
        self.retitle()
        self._detail()

    def _detail(self) -> None:
        """The chosen run: what is another, in both runs."""
        run, controller = self._run(), self.controller
        self.set_class(run is None, "nothing")
        details = self.query_one("#details", LinesView)
        if run is None:
            details.show(lambda width: [], keep_place=False)
            return
        details.show(lambda width: controller.detail(run, max(width - 1, 10)), keep_place=False)
        if not controller.wants_difference(run):
            return
        store = self.agenteval.session.store

        def then(difference: MessageDifference | None) -> None:
            controller.take_difference(run, difference)
            details.show(lambda width: controller.detail(run, max(width - 1, 10)), keep_place=False)

        self.ask(lambda: read_difference(store, run), then, group="difference", failed=lambda _: None, beside=True)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Show it in full."""
        self.show_soon(self._detail)

    def action_next_pane(self) -> None:
        view, details = self._list, self.query_one("#details", LinesView)
        (view if details.has_focus else details).focus()

    # What a person does

    @property
    def _list(self) -> VirtualList:
        return self.query_one("#runs", VirtualList)

    def _run(self) -> RunChange | None:
        # Of the rows that are shown: more runs may have ended since.
        rows, place = self._list.source, self._list.cursor
        return rows.runs[place] if isinstance(rows, WatchRows) and 0 <= place < rows.count() else None

    def _chosen(self) -> RunChange | None:
        run = self._run()
        if run is None:
            self.agenteval.say("There is no run here to open.")
        return run

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter, or a click on the chosen row."""
        self.action_open()

    def action_open(self) -> None:
        """The new run; where it was not made, the recorded one."""
        if (run := self._chosen()) is not None:
            self.agenteval.inspect(run.after or run.before)

    def action_difference(self) -> None:
        """The recorded run beside the new one, at the first step that differs."""
        run = self._chosen()
        if run is None:
            return
        if run.after:
            self.agenteval.show_difference(run.before, run.after)
        else:
            self.agenteval.say("This run needs the model from its beginning: there is no new run to compare with.")

    def action_model(self) -> None:
        """Let the runs that need the model ask it."""
        if self.controller.needed() and not self.controller.ended:
            self._tell("model")

    def action_real(self) -> None:
        """Run the changed tests for real."""
        if self.controller.has_to_run:
            self._tell("real")
        else:
            self.agenteval.say("Every run is as it was recorded: there is nothing to run.")

    def action_check(self) -> None:
        """Run all recorded runs again."""
        self._tell("check")

    def action_everything(self) -> None:
        """List unchanged runs, too, or only those that changed."""
        self.controller.everything = not self.controller.everything
        self._show()

    def action_recorded_tools(self) -> None:
        """Let tools have their recorded results, or run them again."""
        if (request := self.controller.request) is not None:
            self.watch_code(replace(request, recorded_tools=not request.recorded_tools))

    def action_end(self) -> None:
        """End the watch; what it showed stays."""
        self._tell("stop")

    def _tell(self, command: str) -> None:
        if self._watch is None or self.controller.ended:
            self.agenteval.say("This is not watched any more. Watch it again from the suites.")
            return
        # The process says only what came of it: until then the screen says that it is busy.
        if command in ("model", "real", "check"):
            self.controller.busy = True
            self._show()
        self._watch.tell(command)
