"""The Run screen: an execution that lives in its own process, watched."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize, ScreenResume

from agenteval_tui.text.display import one_line
from agenteval_tui.text.identity import now_ms
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.lines import Cell, Line
from agenteval_tui.tui.presenters.run_rows import RunGrid, bar, parts_of, run_heading, run_lines, status_cells
from agenteval_tui.tui.screens.frame import FrameScreen
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from agenteval_tui.runs.client import Attachment, Live
    from agenteval_tui.runs.events import StreamPart
    from agenteval_tui.runs.view import ExecutionView

# Ten repaints a second are enough to read by, and half of what a slow line may get (page 7).
REPAINT_SECONDS = 0.1
ASKED_SECONDS = 1.0  # after this the figures of the execution have come round


class RunScreen(FrameScreen):
    """Overall progress, a cell a run, and the transcript of the chosen run as it streams."""

    SCOPE = "run"
    CSS_PATH = "run.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("run"))

    def __init__(self) -> None:
        super().__init__()
        self._live: Live | None = None
        self._attachment: Attachment | None = None
        self._view: ExecutionView | None = None
        self._grid: RunGrid | None = None
        self._dirty: set[str] = set()
        self._watched = ""
        self._follow = True
        self._cancel_asked = False
        self._asked_at_once = (float("-inf"), 0)
        self._choosing = -1
        self._composed = False
        self._lost = False
        self._fetched = ""
        self._stored: dict[str, list[StreamPart]] = {}

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(lambda width: [bar(self._view, width)] if self._view else [()], id="progress")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield VirtualList(id="cells")
            with Vertical(id="right"):
                yield LineBlock(id="heading")
                yield LinesView(id="stream", follow=True)
        yield self.key_bar()

    def on_mount(self) -> None:
        cells = self.query_one("#cells", VirtualList)
        cells.set_empty(
            [
                (),
                (("  Nothing is being watched.", ""),),
                (("  1 goes to the suites; r runs what is selected there.", "dim"),),
                (("  5 goes to the history; w watches an execution that runs.", "dim"),),
            ]
        )
        cells.focus()
        self.set_interval(REPAINT_SECONDS, self._repaint)
        self._composed = True
        if self._live is None:
            self._find_live()
        else:
            self.attach(self._live)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Come back: to an execution that was left, or to one that somebody else began meanwhile."""
        self._dirty.add("")
        if not self._composed or self._attachment is not None:
            return
        if self._view is None:
            self._find_live()
        elif self._live is not None and self._view.ended is None and not self._lost:
            self.attach(self._live)

    def _find_live(self) -> None:
        from agenteval_tui.runs.client import live_executions

        self.ask(
            live_executions, lambda live: self.attach(live[0]) if live and self._live is None else None, group="live"
        )

    # Watching

    def attach(self, live: Live) -> None:
        """Watch an execution from now on, with everything since its start."""
        self._live = live
        if not self._composed:
            return
        self._follow = True
        self._cancel_asked = False
        self._lost = False
        self.run_worker(self._watch(live), group="watch", exclusive=True, exit_on_error=False, name="watching")

    async def _watch(self, live: Live) -> None:
        from agenteval_tui.runs.client import attach
        from agenteval_tui.runs.view import ExecutionView

        try:
            attachment = await attach(live)
        except AgentevalError:
            # It was over before we came: its runs are in the history.
            self._lost = True
            if self.is_current:
                self.agenteval.show_execution(live.execution)
            return
        view = ExecutionView()
        self._attachment = attachment
        try:
            async for event in attachment:
                changed = view.apply(event)
                if self._view is not view:
                    self._begin(view)
                self._dirty.add(changed)
        except AgentevalError as error:
            self.agenteval.say_error(error)
        finally:
            # Another one may be watched already.
            if self._attachment is attachment:
                self._attachment = None
            await attachment.close()
        self._lost = view.ended is None
        self._dirty.add("")
        self.query_one("#keys", LineBlock).show(self._key_lines)
        self._say_end(view)

    def show_view(self, view: ExecutionView) -> None:
        """Show what a watcher knows of an execution."""
        self._begin(view)
        self._dirty.add("")
        self._repaint()

    def _begin(self, view: ExecutionView) -> None:
        self._view = view
        self._asked_at_once = (float("-inf"), 0)
        self._grid = RunGrid(view)
        self._watched = ""
        cells = self.query_one("#cells", VirtualList)
        cells.set_source(self._grid, keep_key=self._grid.key(0) if self._grid.count() else None)
        self.query_one("#keys", LineBlock).show(self._key_lines)
        self.agenteval.count_running()

    def _say_end(self, view: ExecutionView) -> None:
        self.agenteval.count_running()
        if view.ended is None:
            self.agenteval.say(
                "The execution went away without an end; the history has what ended.", severity="warning"
            )
            return
        bad = view.count("failed") + view.count("error")
        note = f"{view.title or 'The execution'}: {view.ended.status}, {view.count('passed')} of {view.total} passed"
        if view.ended.status == "failed":
            self.agenteval.say(f"{note}. {view.ended.message}", severity="error")
        else:
            self.agenteval.say(note + (". n goes to the first failure, enter opens it." if bad else "."))

    # Painting: at most ten times a second, and only what changed

    def _repaint(self) -> None:
        view, grid = self._view, self._grid
        if view is None or grid is None or not self.is_current:
            return
        running = self._watching
        if not self._dirty and not running:
            return
        dirty, self._dirty = self._dirty, set()
        cells = self.query_one("#cells", VirtualList)
        if self._follow and running:
            self._follow_running()
        cells.refresh_rows({grid.row_of[run] for run in dirty if run in grid.row_of})
        self.retitle()
        self.query_one("#progress", LineBlock).show(lambda width: [bar(view, width)])
        self._draw_run()

    def _follow_running(self) -> None:
        view, grid = self._view, self._grid
        assert view is not None
        assert grid is not None
        current = view.runs.get(self._chosen)
        if current is not None and not current.ended and current.status != "queued":
            return
        flying = view.in_flight()
        if flying:
            self._choose(flying[-1].ref.run)

    @property
    def _watching(self) -> bool:
        """Does what is shown still change by itself?"""
        return self._view is not None and self._view.ended is None and not self._lost

    @property
    def _chosen(self) -> str:
        return self._grid.chosen(self.query_one("#cells", VirtualList).cursor) if self._grid else ""

    def _choose(self, run: str) -> None:
        if self._grid is None or run not in self._grid.row_of:
            return
        self._grid.column = self._grid.column_of(run)
        cells = self.query_one("#cells", VirtualList)
        row = self._choosing = self._grid.row_of[run]
        if cells.cursor != row:
            cells.cursor = row
        cells.refresh_rows([row])

    def _draw_run(self) -> None:
        view = self._view
        run = view.runs.get(self._chosen) if view else None
        if run is None:
            return
        if run.ref.run != self._watched:
            self._watched = run.ref.run
            self._send("watch", run=self._watched)
            place = False
        else:
            place = True
        at = now_ms()
        stored = self._stored.get(run.ref.run, [])
        # Of runs that ended long ago nothing that streamed is kept; the history has it.
        if run.ended and not run.parts and not stored and self._fetched != run.ref.run:
            self._fetched = run.ref.run
            self._fetch(run.ref.run)
        self.query_one("#heading", LineBlock).show(lambda width: [((" ", ""), *run_heading(run, at, width - 1))])
        self.query_one("#stream", LinesView).show(
            lambda width: [((" ", ""), *line) for line in run_lines(run, width - 1, stored)], keep_place=place
        )

    def _fetch(self, run: str) -> None:
        """The transcript of a run that ended and of which nothing streamed here, out of the history."""
        session = self.agenteval.session

        def then(parts: list[StreamPart]) -> None:
            self._stored = {run: parts}
            self._draw_run()

        self.ask(lambda: parts_of(session.store.transcript(run)), then, group="stored")

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        if self._view is None:
            return (), ()
        name: Line = ((f"{one_line(self._view.title, 40)}  ", ""),) if width >= 100 else ()
        lost: Line = (("  went away; the history has what ended", "error"),) if self._lost else ()
        return (*name, *status_cells(self._view, width), *lost), ()

    def keys(self) -> list[tuple[str, str, str]]:
        keys = super().keys()
        if self._view is None:
            return [("1", "suites", "app.go('suites')"), ("5", "history", "app.go('history')"), *keys[-1:]]
        if not self._watching:
            over = ("pause", "cancel", "more", "less", "follow")
            keys = [key for key in keys if key[2] not in over]
            keys[1:1] = [("l", "next run", "next_cell"), ("1", "suites", "app.go('suites')")]
        return keys

    # What a person does

    def _send(self, verb: str, *, run: str = "", number: int = 0) -> None:
        from agenteval_tui.runs.events import Command

        attachment = self._attachment
        if attachment is None:
            return

        async def send() -> None:
            await attachment.send(Command(verb, run=run, number=number))

        self.run_worker(send(), group="send", exit_on_error=False)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Another test: show its run in the chosen column. A person who moved does not want to be moved."""
        if event.index != self._choosing:
            self._follow = False
        self._draw_run()

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter or a click on the selected row."""
        self.action_inspect()

    def action_inspect(self) -> None:
        view = self._view
        run = view.runs.get(self._chosen) if view else None
        if view is None or run is None:
            return
        if not run.ended:
            self.agenteval.say("This run has not ended yet; its answer is shown as it streams.")
            return
        ended = [ref for ref, one in view.runs.items() if one.ended]
        self.agenteval.inspect(run.ref.run, runs=ended)

    def _move(self, step: int) -> None:
        cells = self.query_one("#cells", VirtualList)
        if self._grid is None or cells.cursor < 0:
            return
        self._follow = False
        last = len(self._grid.groups[cells.cursor]) - 1
        self._grid.column = max(0, min(min(self._grid.column, last) + step, last))
        cells.refresh_rows([cells.cursor])
        self._draw_run()

    def action_next_cell(self) -> None:
        self._move(1)

    def action_previous_cell(self) -> None:
        self._move(-1)

    def action_next_failure(self) -> None:
        view = self._view
        if view is None or not view.failures:
            self.agenteval.say("Nothing has failed.")
            return
        self._follow = False
        places = {run: place for place, run in enumerate(view.runs)}
        order = sorted(view.failures, key=places.__getitem__)
        now = places.get(self._chosen, -1)
        self._choose(next((run for run in order if places[run] > now), order[0]))
        self._draw_run()

    def action_follow(self) -> None:
        self._follow = True

    def action_pause(self) -> None:
        if self._view is not None and self._watching:
            self._send("resume" if self._view.paused else "pause")

    def action_cancel(self) -> None:
        view = self._view
        if view is None or not self._watching:
            return
        if not self._cancel_asked:
            self._cancel_asked = True
            self.agenteval.say("Press c again to cancel the execution; what has ended stays in the history.")
            self.set_timer(4.0, self._forget_cancel)
            return
        self.agenteval.say("Cancelling …")
        self._send("cancel")

    def _forget_cancel(self) -> None:
        self._cancel_asked = False

    def _at_once(self, step: int) -> None:
        view = self._view
        if view is not None and view.progress is not None and view.ended is None:
            # Keys are faster than the figures that come back: count from what was asked for a moment ago.
            asked_at, asked = self._asked_at_once
            known = asked if time.monotonic() - asked_at < ASKED_SECONDS else view.progress.concurrency
            number = max(known + step, 1)
            self._asked_at_once = (time.monotonic(), number)
            self._send("set_concurrency", number=number)

    def action_more(self) -> None:
        self._at_once(1)

    def action_less(self) -> None:
        self._at_once(-1)

    def action_detach(self) -> None:
        if self._attachment is not None:
            self.workers.cancel_group(self, "watch")
            self.agenteval.say("Detached: the execution goes on. History (5), w comes back to it.")
        self.agenteval.go("suites")

    def action_next_pane(self) -> None:
        cells = self.query_one("#cells", VirtualList)
        stream = self.query_one("#stream", LinesView)
        (stream if cells.has_focus else cells).focus()
        self.set_class(stream.has_focus, "show-stream")

    def step_back(self) -> bool:
        if self.has_class("show-stream"):
            self.action_next_pane()
            return True
        return False
