"""The Run screen: an execution that lives in its own process, watched."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize, ScreenResume, ScreenSuspend
from textual.timer import Timer

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count
from agenteval_tui.runs.client import live_executions
from agenteval_tui.runs.events import RunState, StreamPart
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.tui.actions import bindings, key_of, named_keys
from agenteval_tui.tui.code_watch import WatchRequest, watched_tests
from agenteval_tui.tui.notifications import NotificationSource
from agenteval_tui.tui.presenters.run_grid import RunGrid
from agenteval_tui.tui.presenters.run_rows import Expected, run_heading
from agenteval_tui.tui.presenters.run_stream import parts_of
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.run.controller import ALL, RunController, Watching, baseline_changes
from agenteval_tui.tui.screens.run_errors import RunErrorsScreen, error_groups
from agenteval_tui.tui.styled_text import Cell, Line
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.titled_pane import Heading, PaneTitle
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import call_after, start_worker
from agenteval_tui.views.failure import Failure, clearest_of

# Ten repaints a second are enough to read by, and half of what a slow line may get (page 7).
REPAINT_SECONDS = 0.1
CANCEL_SECONDS = 4.0  # so long does the second key that cancels count
LEAST_ROWS = 4  # of the runs on a narrow screen, where the transcript is below them


class RunScreen(FrameScreen):
    """Overall progress, a cell a run, and the transcript of the chosen run as it streams. What is shown and chosen is
    the controller's."""

    SCOPE = "run"
    BINDINGS: ClassVar[list[BindingType]] = bindings("run")

    def __init__(self) -> None:
        super().__init__()
        self.controller = RunController()
        self._timer: Timer | None = None
        self._refused: tuple[str, str] | None = None  # a run that was to be opened and had not ended, and what was said
        self._rows: int | None = None  # of the cells and what is below them, if they are above the transcript

    def compose(self) -> ComposeResult:
        self.controller.resume_key = key_of("run.resume", self.agenteval.keymap)
        yield self.title_bar()
        yield LineBlock(self.controller.bar_lines, id="progress")
        yield LineBlock(self.controller.fact_lines, id="facts")
        yield LineBlock(self._offer_lines, id="offer")
        with Horizontal(id="body"):
            with Vertical(id="left", classes="pane"):
                yield PaneTitle(self._cells_heading, id="cells-title")
                yield VirtualList(id="cells")
                yield LineBlock(id="legend")
            with Vertical(id="right", classes="pane"):
                yield PaneTitle(self._stream_heading, id="heading")
                yield LinesView(id="stream", follow=True)
        yield self.key_bar()

    def on_mount(self) -> None:
        self.set_class(self.app.size.width < self.NARROW, "narrow")  # already for the first frame
        self._cells.set_empty(self.controller.empty())
        self.add_class("empty")  # there is no run to show a transcript of
        self._cells.focus()
        # It runs only while something may change: an idle app stays asleep.
        self._timer = self.set_interval(REPAINT_SECONDS, self._repaint, pause=True)
        if self.controller.watch is None:
            self._find_live()
        else:
            self.attach(self.controller.watch.live, self.controller.expected)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")
        self.call_after_refresh(self._fit_cells)

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Come back: to an execution that was left, or to one that was started elsewhere meanwhile."""
        watch = self.controller.watch
        # It is shown for the first time: `on_mount` begins.
        if self._timer is None:
            return
        if watch is None:
            if self.controller.view is None:
                self._find_live()
        elif not watch.attached and not watch.over:
            self.attach(watch.live, self.controller.expected)
        else:
            self._changed("")

    def on_screen_suspend(self, event: ScreenSuspend) -> None:
        """Nobody looks."""
        if self._timer is not None:
            self._timer.pause()

    @property
    def _cells(self) -> VirtualList:
        return self.query_one("#cells", VirtualList)

    @property
    def _run(self) -> RunState | None:
        return self.controller.chosen(self._cells.cursor)

    # Watching

    def _find_live(self) -> None:
        def watch_newest(live: list[Live]) -> None:
            # One that was asked for meanwhile comes first.
            if live and self.controller.watch is None:
                self.attach(live[-1])

        self.ask(live_executions, watch_newest, group="live")

    def attach(self, live: Live, expected: Expected | None = None) -> None:
        """Watch an execution from now on, with everything since its start. `expected`: what its plan said."""
        watch = self.controller.attach(live, self._changed, expected)
        if self._timer is not None:
            self._cells.set_empty(self.controller.empty())
            start_worker(self, partial(self._watch_on, watch), group="watch", name="watching")

    def watches(self, execution: str) -> bool:
        """Is this the execution that is watched here, also while another screen is shown?"""
        return self.controller.watches(execution)

    async def _watch_on(self, watch: Watching) -> None:
        try:
            await watch.run()
        except AgentevalError as error:
            if watch.view.planned is not None:
                self.agenteval.say_error(error)
            else:
                # It was over before we came: its runs are in the history.
                watch.lost = True
                self._cells.set_empty(self.controller.empty())
                if self.is_current:
                    self.agenteval.show_ended(watch.live.execution)
                    self._say_changes(watch.live.execution)
                return
        self.rekey()
        self._say_end(watch)

    def _say_end(self, watch: Watching) -> None:
        self.agenteval.count_running()
        notice = self.controller.end_notice(watch)
        if self.is_current:
            # The header says how it ended; a note would lie over what the chosen run says.
            if notice.severity != "information":
                self.agenteval.say(notice.sentence, severity=notice.severity)
        else:
            place = NotificationSource("execution", watch.live.execution)
            self.agenteval.say(notice.sentence, severity=notice.severity, place=place)
        if notice.finished:
            self._say_changes(watch.live.execution)
        self._look_for_offer(watch.view)

    def _look_for_offer(self, view: ExecutionView) -> None:
        """An execution that ended with failures offers the clearest one."""
        if self.controller.view is not view or not self.controller.awaits_offer:
            return
        store, execution = self.agenteval.session.store, view.execution

        def then(offer: Failure | None) -> None:
            # Another execution may be shown by now.
            if self.controller.view is view:
                if run := self.controller.take_offer(offer):
                    self._choose(run)
                self._changed("")

        def work() -> Failure | None:
            return clearest_of(store.runs_of_execution(execution), store.results)

        self.ask(work, then, group="offer", failed=lambda error: None, beside=True)

    def _say_changes(self, execution: str) -> None:
        """Compare an execution that has ended with its baseline by itself, and say what changed."""
        store = self.agenteval.session.store

        def say(answer: tuple[str, str] | None) -> None:
            if answer is not None:
                message, severity = answer
                hint = "Press {run.compare} to compare." if self.is_current else "Press {go.compare} to compare."
                self.agenteval.say(f"{message} {hint}", severity=severity)

        self.ask(lambda: baseline_changes(store, execution), say, group="baseline", beside=True)

    def _changed(self, run: str) -> None:
        """A run changed, or the execution as a whole. Painted with the next tick."""
        self.controller.note(run)
        if self._timer is not None and self.is_current:
            self._timer.resume()

    def show_view(self, view: ExecutionView, expected: Expected | None = None) -> None:
        """Show what a watcher knows of an execution."""
        self.controller.expected = expected or Expected()
        self.controller.show(view)
        self._begin()
        self.controller.note(ALL)
        self._repaint()

    def _begin(self) -> None:
        """Another execution is shown."""
        grid, cells = self.controller.grid, self._cells
        assert grid is not None
        self.set_class(grid.count() == 0, "empty")
        cells.set_empty(self.controller.empty())
        with cells.prevent(VirtualList.Highlighted):
            cells.set_source(grid, keep_key=grid.key(0) if grid.count() else None)
        self.query_one("#cells-title", PaneTitle).retell()
        self.rekey()
        self.agenteval.count_running()
        self._look_for_offer(grid.view)

    # Painting: at most ten times a second, and only what changed

    def _repaint(self) -> None:
        controller = self.controller
        if controller.show_watched():
            self._begin()
        if controller.view is None or not self.is_current:
            return
        if controller.still:
            if self._timer is not None:
                self._timer.pause()
            return
        before = grid.count() if (grid := controller.grid) is not None else 0
        rows = controller.take_changes()
        if grid is not None and grid.count() > before:
            self._show_more_rows(grid)
        if run := controller.run_to_follow(self._cells.cursor):
            self._choose(run)
        self._cells.refresh_rows(rows)
        self.retitle()
        self.query_one("#progress", LineBlock).show(controller.bar_lines)
        self.query_one("#facts", LineBlock).show(controller.fact_lines)
        self.query_one("#legend", LineBlock).show(controller.legend_lines)
        self._fit_cells()
        self.rekey()
        self._draw_run()

    def _show_more_rows(self, grid: RunGrid) -> None:
        """Runs came that were not planned: an execution listens."""
        cells = self._cells
        at = cells.cursor
        self.remove_class("empty")
        with cells.prevent(VirtualList.Highlighted):
            cells.set_source(grid, keep_key=grid.key(at) if at >= 0 else grid.key(0))
        self.query_one("#cells-title", PaneTitle).retell()

    def _cells_heading(self) -> Heading:
        grid = self.controller.grid
        return "runs", count(grid.count(), "test") if grid is not None else ""

    def _stream_heading(self) -> Heading:
        run = self._run
        return "transcript", partial(run_heading, run, now_ms()) if run is not None else ""

    def zoom_changed(self) -> None:
        self._fit_cells()

    def _fit_cells(self) -> None:
        """Above the transcript the cells take no more rows than there are tests; at most two fifths of the screen."""
        widget, rows, grid = self.query_one("#left"), None, self.controller.grid
        if self.has_class("narrow") and grid is not None and not self.pane_focus.zoomed:
            most = round(self.query_one("#body").size.height * 0.4)
            height = grid.count() + len(self.controller.legend_lines(widget.size.width)) + 1
            rows = max(min(height, most), LEAST_ROWS)
        # Another height lays out the whole screen, and this is called for each picture of what runs.
        if rows != self._rows:
            self._rows = rows
            widget.styles.height = rows

    def _choose(self, run: str) -> None:
        row, cells = self.controller.choose(run), self._cells
        if row is not None:
            # Nobody is told: what is told was moved by a person.
            with cells.prevent(VirtualList.Highlighted):
                cells.cursor = row
            cells.refresh_rows([row])

    def _draw_run(self) -> None:
        controller, run = self.controller, self._run
        if run is None:
            return
        if self._refused is not None:
            run_id, reason = self._refused
            # It can be inspected now, or another run is chosen: the note is not true any more.
            if run_id != run.ref.run or controller.runs_to_inspect(run) != reason:
                self._refused = None
                self.agenteval.take_back(reason)
        begins = controller.watch_stream(run)
        if begins:
            self._send("watch", run=run.ref.run)
        if controller.lacks_transcript(run):
            self._read_transcript(run.ref.run)
        if controller.lacks_prompt(run):
            self._read_prompt(run.ref.run)
        self.query_one("#offer", LineBlock).retell()
        self.query_one("#heading", PaneTitle).retell()
        self.query_one("#stream", LinesView).show(
            lambda width: controller.stream_lines(run, width), keep_place=not begins
        )

    def _offer_lines(self, width: int) -> list[Line]:
        return self.controller.offer_lines(self._cells.cursor, width, self.agenteval.keymap)

    def _read_prompt(self, run: str) -> None:
        session = self.agenteval.session

        def then(prompt: str) -> None:
            if self.controller.take_prompt(run, prompt):
                self._draw_run()

        self.ask(
            lambda: session.store.run(run).prompt_head,
            then,
            group="prompt",
            failed=lambda error: None,
            beside=True,
        )

    def _read_transcript(self, run: str) -> None:
        session = self.agenteval.session

        def then(parts: list[StreamPart]) -> None:
            self.controller.take_transcript(run, parts)
            self._draw_run()

        # A run that was cancelled or skipped before it started has none.
        self.ask(
            lambda: parts_of(session.store.transcript(run)),
            then,
            group="stored",
            failed=lambda error: None,
            beside=True,
        )

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        return self.controller.heading(width, self.NARROW)

    def keys(self) -> list[tuple[str, str, str]]:
        view, keymap, keys = self.controller.view, self.agenteval.keymap, super().keys()
        suites, history = named_keys("go", ("suites", "history"), keymap)
        if view is None:
            return [suites, history, *keys[-1:]]
        named = named_keys("run", self.controller.key_names(self._cells.cursor), keymap)
        if not self.controller.running:
            return [*named, suites, *keys[-1:]]
        pause, cancel = named_keys("run", ("pause", "cancel"), keymap)
        if view.listens:
            return [cancel, *named, *keys[-1:]]
        both = " ".join(key for key, _, _ in named_keys("run", ("more", "less"), keymap))
        first = (pause[0], "continue" if view.paused else pause[1], pause[2])
        return [first, cancel, (both, "concurrency", "more|less"), *named, *keys[-1:]]

    # What a person looks at

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Another test: show its run in the chosen column. A person who moved does not want to be moved."""
        self.controller.follow = False
        self.rekey()
        self._draw_run()

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter or a click on the selected row."""
        self.action_inspect()

    def action_inspect(self) -> None:
        run = self._run
        if run is None:
            self.agenteval.say("There is no run to open yet.")
            return
        runs = self.controller.runs_to_inspect(run)
        if isinstance(runs, str):
            self.agenteval.say(runs)
            self._refused = (run.ref.run, runs)
        else:
            self.agenteval.inspect(run.ref.run, runs=runs)

    def _step(self, by: int) -> None:
        cells = self._cells
        if self.controller.step(cells.cursor, by):
            cells.refresh_rows([cells.cursor])
            self._draw_run()

    def action_next_cell(self) -> None:
        self._step(1)

    def action_previous_cell(self) -> None:
        self._step(-1)

    def action_next_failure(self) -> None:
        run = self.controller.next_failure(self._cells.cursor)
        if run:
            self._choose(run)
            self._draw_run()
        else:
            self.agenteval.say("Nothing has failed.")

    def action_errors(self) -> None:
        view = self.controller.view
        groups = error_groups(view) if view is not None else []
        if not groups:
            self.agenteval.say(
                "No run ended in an error." + (" Press {run.next_failure} to see failures." if view else "")
            )
            return

        def then(run: str) -> None:
            self.controller.follow = False
            self._choose(run)
            self._draw_run()

        self.app.push_screen(RunErrorsScreen(groups), if_answered(then))

    def action_follow(self) -> None:
        self.controller.follow = True
        self._changed("")

    def action_compare(self) -> None:
        """What has ended of this execution beside the baseline."""
        if self.controller.view is not None:
            self.agenteval.compare("", self.controller.view.execution)
        else:
            self.agenteval.say(self.controller.why_not)

    def action_causes(self) -> None:
        """The causes of the failures that there are so far."""
        if self.controller.view is not None:
            self.agenteval.show_causes(self.controller.view.execution)
        else:
            self.agenteval.say(self.controller.why_not)

    def action_next_pane(self) -> None:
        cells, stream = self._cells, self.query_one("#stream", LinesView)
        # Narrow, what follows is alone on the screen.
        follow = not self.has_class("show-stream") if self.has_class("narrow") else cells.has_focus
        self.set_class(follow, "show-stream")
        (stream if follow else cells).focus()

    def step_back(self) -> bool:
        if self.has_class("show-stream"):
            self.action_next_pane()
            return True
        return False

    # What a person asks of the execution

    def _send(self, verb: str, *, run: str = "", number: int = 0) -> None:
        watch = self.controller.watch
        if watch is not None and self.controller.shows_watched:
            # Not exclusive: each command is sent, also one that follows at once.
            start_worker(self, partial(watch.send, verb, run=run, number=number), group="send", exclusive=False)

    def _over(self, *, steered: bool = False) -> bool:
        """Is there nothing that runs (or can be `steered`)? Say so to who wants to change how it runs."""
        why = self.controller.why_not_steered if steered else self.controller.why_not
        if why:
            self.agenteval.say(why)
        return bool(why)

    def action_pause(self) -> None:
        view = self.controller.view
        if not self._over(steered=True) and view is not None:
            self._send("resume" if view.paused else "pause")

    def action_cancel(self) -> None:
        if self._over():
            return
        if not self.controller.cancel_asked:
            self.controller.cancel_asked = True
            self.agenteval.say("Press {run.cancel} again to stop the execution. Finished runs are kept.")
            call_after(self, CANCEL_SECONDS, self._forget_cancel)
            return
        self.agenteval.say("Cancelling …")
        self._send("cancel")

    def _forget_cancel(self) -> None:
        self.controller.cancel_asked = False

    def _at_once(self, step: int) -> None:
        if not self._over(steered=True) and (number := self.controller.concurrency(step)) is not None:
            self._send("set_concurrency", number=number)

    def action_more(self) -> None:
        self._at_once(1)

    def action_less(self) -> None:
        self._at_once(-1)

    def action_resume(self) -> None:
        view = self.controller.view
        if self.controller.resumable and view is not None:
            self.agenteval.resume_execution(view.execution)
        else:
            self.agenteval.say("Nothing to resume. Only an execution that stopped early can be resumed.")

    def action_watch_code(self) -> None:
        """Run the recorded runs of this execution's tests again after each save of their agents' code."""
        view = self.controller.view
        if view is None:
            self.agenteval.say(self.controller.why_not)
            return
        store, execution = self.agenteval.session.store, view.execution
        self.ask(lambda: watched_tests(store.runs_of_execution(execution)), self._watch_code, group="watch code")

    def _watch_code(self, request: WatchRequest | None) -> None:
        if request is None:
            self.agenteval.say("The suites of this execution are not files: their agents' code can't be watched.")
        else:
            self.agenteval.watch_code(request)

    def action_watch(self) -> None:
        view = self.controller.view
        self.agenteval.choose_live(view.execution if view is not None and self.controller.running else "")

    def action_detach(self) -> None:
        watch = self.controller.watch
        if watch is not None and watch.attached:
            self.workers.cancel_group(self, "watch")
            self.agenteval.say("Detached: the execution continues. Press {go.run} to return to it.")
        self.agenteval.go("suites")
