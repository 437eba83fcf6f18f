"""The Run screen: an execution that lives in its own process, watched."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize, ScreenResume, ScreenSuspend
from textual.timer import Timer

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.runs.client import live_executions
from agenteval_tui.tui.actions import bindings, named_keys
from agenteval_tui.tui.execution_watcher import ALL, Watching
from agenteval_tui.tui.notification_log import NotificationSource
from agenteval_tui.tui.presenters.run_errors import error_groups
from agenteval_tui.tui.presenters.run_grid import RunGrid, legend
from agenteval_tui.tui.presenters.run_rows import (
    Expected,
    agents_of,
    bar,
    facts,
    run_heading,
    status_cells,
    waiting_counts,
)
from agenteval_tui.tui.presenters.run_stream import RunStream, parts_of
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.compare_shortcuts import say_what_regressed
from agenteval_tui.tui.screens.run_errors import ErrorsScreen
from agenteval_tui.tui.styled_text import Cell, Line
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import start_worker

if TYPE_CHECKING:
    from agenteval_tui.runs.events import StreamPart, Throttled
    from agenteval_tui.runs.live_registry import Live
    from agenteval_tui.runs.live_view import ExecutionView

# Ten repaints a second are enough to read by, and half of what a slow line may get (page 7).
REPAINT_SECONDS = 0.1
ASKED_SECONDS = 1.0  # after this the figures of the execution have come round
LEAST_ROWS = 4
RESUMABLE = ("stopped", "cancelled", "failed")


class RunScreen(FrameScreen):
    """Overall progress, a cell a run, and the transcript of the chosen run as it streams."""

    SCOPE = "run"
    CSS_PATH = "run.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("run"))

    def __init__(self) -> None:
        super().__init__()
        self._watch: Watching | None = None
        self._view: ExecutionView | None = None
        self._grid: RunGrid | None = None
        self._agents: list[str] = []
        self._expected = Expected()
        self._dirty: set[str] = set()
        self._watched = ""
        self._follow = True
        self._cancel_asked = False
        self._asked_at_once = (float("-inf"), 0)
        self._timer: Timer | None = None
        self._fetched = ""
        self._stored: dict[str, list[StreamPart]] = {}
        self._prompt = ("", "")  # of which run, what was asked
        self._stream = RunStream()
        self._rows: int | None = None  # of the cells and what is below them, where they stand above the transcript

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(self._bar_lines, id="progress")
        yield LineBlock(self._fact_lines, id="facts")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield VirtualList(id="cells")
                yield LineBlock(id="legend")
            with Vertical(id="right"):
                yield LineBlock(id="heading")
                yield LinesView(id="stream", follow=True)
        yield self.key_bar()

    def on_mount(self) -> None:
        self.set_class(self.app.size.width < self.NARROW, "narrow")  # already for the first frame
        cells = self.query_one("#cells", VirtualList)
        cells.set_empty(
            [
                (),
                (("  Nothing is being watched.", ""),),
                (("  1 goes to the suites; r runs what is selected there, P plans a run.", "dim"),),
                (("  5 goes to the history; w watches an execution that runs, R resumes one.", "dim"),),
            ]
        )
        cells.focus()
        # It runs only while something may change: who waits for nothing wakes nobody.
        self._timer = self.set_interval(REPAINT_SECONDS, self._repaint, pause=True)
        if self._watch is None:
            self._find_live()
        else:
            self.attach(self._watch.live, self._expected)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")
        self.call_after_refresh(self._fit_cells)

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Come back: to an execution that was left, or to one that somebody else began meanwhile."""
        watch = self._watch
        if self._timer is None:
            return
        if watch is None and self._view is None:
            self._find_live()
        elif watch is not None and not watch.attached and not watch.over:
            self.attach(watch.live, self._expected)
        elif watch is not None:
            self._changed("")

    def on_screen_suspend(self, event: ScreenSuspend) -> None:
        """Nobody looks."""
        if self._timer is not None:
            self._timer.pause()

    def _find_live(self) -> None:
        self.ask(
            live_executions, lambda live: self.attach(live[-1]) if live and self._watch is None else None, group="live"
        )

    # Watching

    def attach(self, live: Live, expected: Expected | None = None) -> None:
        """Watch an execution from now on, with everything since its start. `expected`: what its plan said."""
        self._watch = Watching(live, self._changed)
        self._expected = expected or Expected()
        if self._timer is None:
            return
        self._follow = True
        self._cancel_asked = False
        start_worker(self, partial(self._watch_on, self._watch), group="watch", name="watching")

    async def _watch_on(self, watch: Watching) -> None:
        try:
            await watch.run()
        except AgentevalError as error:
            if watch.view.planned is not None:
                self.agenteval.say_error(error)
            else:
                # It was over before we came: its runs are in the history.
                watch.lost = True
                if self.is_current:
                    self.agenteval.show_execution(watch.live.execution, back=False)
                    say_what_regressed(self, watch.live.execution)
                return
        self._rekey()
        self._say_end(watch)

    def _changed(self, run: str) -> None:
        """A run changed, or the execution as a whole. Painted with the next tick."""
        self._dirty.add(run)
        if self._timer is not None and self.is_current:
            self._timer.resume()

    def show_view(self, view: ExecutionView, expected: Expected | None = None) -> None:
        """Show what a watcher knows of an execution."""
        self._expected = expected or Expected()
        self._begin(view)
        self._dirty.add(ALL)
        self._repaint()

    def _begin(self, view: ExecutionView) -> None:
        self._view = view
        self._asked_at_once = (float("-inf"), 0)
        self._grid = RunGrid(view)
        self._agents = agents_of(view)
        self._watched = ""
        self._stream = RunStream()
        cells = self.query_one("#cells", VirtualList)
        with cells.prevent(VirtualList.Highlighted):
            cells.set_source(self._grid, keep_key=self._grid.key(0) if self._grid.count() else None)
        self._rekey()
        self.agenteval.count_running()

    def _rekey(self) -> None:
        self.query_one("#keys", LineBlock).show(self._key_lines)

    def watches(self, execution: str) -> bool:
        """Is this the execution that is watched here, also while another screen is shown?"""
        return self._watch is not None and self._watch.live.execution == execution

    def _say_end(self, watch: Watching) -> None:
        self.agenteval.count_running()
        view = watch.view
        # Who looks at it needs no way to it.
        place = None if self.is_current else NotificationSource("execution", watch.live.execution)
        if view.ended is None:
            self.agenteval.say(
                f"The execution stopped unexpectedly: its process died. {view.done:,} of {view.total:,} runs "
                "have ended and are saved. R resumes the others.",
                severity="warning",
                place=place,
            )
            return
        bad = view.count("failed") + view.count("error")
        note = f"{view.title or 'The execution'}: {view.ended.status}, {view.count('passed')} of {view.total} passed"
        if view.ended.status == "failed":
            self.agenteval.say(f"{note}. {view.ended.message}", severity="error", place=place)
        elif view.ended.status == "stopped":
            self.agenteval.say(f"{note}. {view.ended.message} R resumes it.", severity="warning", place=place)
        else:
            hint = ". n goes to the first failure, enter opens it." if bad and place is None else "."
            self.agenteval.say(note + hint, place=place)
            say_what_regressed(self, watch.live.execution)

    # Painting: at most ten times a second, and only what changed

    def _repaint(self) -> None:
        watch = self._watch
        if watch is not None and watch.view is not self._view and watch.view.planned is not None:
            self._begin(watch.view)
        view, grid = self._view, self._grid
        if view is None or grid is None or not self.is_current:
            return
        running = self._watching
        if not self._dirty and not running:
            if self._timer is not None:
                self._timer.pause()
            return
        dirty, self._dirty = self._dirty, set()
        if ALL in dirty:
            grid.note_all()
        else:
            for run in dirty:
                grid.note(run)
        if self._follow and running:
            self._follow_running(view, grid)
        cells = self.query_one("#cells", VirtualList)
        cells.refresh_rows({grid.row_of[run] for run in dirty if run in grid.row_of} if ALL not in dirty else None)
        self.retitle()
        self.query_one("#progress", LineBlock).show(self._bar_lines)
        self.query_one("#facts", LineBlock).show(self._fact_lines)
        self.query_one("#legend", LineBlock).show(self._legend_lines)
        self._fit_cells()
        self._rekey()
        self._draw_run()

    def _fit_cells(self) -> None:
        """Above the transcript the cells take no more rows than there are tests; at most two fifths of the screen."""
        left, rows = self.query_one("#left"), None
        if self.has_class("narrow") and self._grid is not None:
            most = round(self.query_one("#body").size.height * 0.4)
            wanted = self._grid.count() + len(self._legend_lines(left.size.width)) + 1
            rows = max(min(wanted, most), LEAST_ROWS)
        if rows != self._rows:
            self._rows = rows
            left.styles.height = rows

    def _follow_running(self, view: ExecutionView, grid: RunGrid) -> None:
        current = view.runs.get(self._chosen)
        if current is not None and not current.ended and current.status != "queued":
            return
        flying = next(reversed(grid.flying), "")
        if flying:
            self._choose(flying)

    @property
    def _watching(self) -> bool:
        """Does what is shown still change by itself?"""
        return self._view is not None and self._view.ended is None and not self._lost

    @property
    def _lost(self) -> bool:
        """Did the process go away without an end?"""
        watch = self._watch
        return watch is not None and watch.view is self._view and watch.lost

    @property
    def _chosen(self) -> str:
        return self._grid.chosen(self.query_one("#cells", VirtualList).cursor) if self._grid else ""

    def _choose(self, run: str) -> None:
        if self._grid is None or run not in self._grid.row_of:
            return
        self._grid.column = self._grid.column_of(run)
        cells = self.query_one("#cells", VirtualList)
        row = self._grid.row_of[run]
        # Nobody is told: what is told was moved by a person.
        with cells.prevent(VirtualList.Highlighted):
            cells.cursor = row
        cells.refresh_rows([row])

    def _draw_run(self) -> None:
        view = self._view
        run = view.runs.get(self._chosen) if view else None
        if run is None:
            return
        place = run.ref.run == self._watched
        if not place:
            self._watched = run.ref.run
            self._send("watch", run=self._watched)
        at = now_ms()
        stored = self._stored.get(run.ref.run, [])
        # Of a run that ended unseen nothing streamed here, or only its beginning; the history has it.
        if run.ended and not stored and self._fetched != run.ref.run:
            self._fetched = run.ref.run
            self._fetch(run.ref.run)
        if self._prompt[0] != run.ref.run:
            self._ask_prompt(run.ref.run)
        prompt = self._prompt[1]
        self.query_one("#heading", LineBlock).show(lambda width: [((" ", ""), *run_heading(run, at, width - 1))])
        self.query_one("#stream", LinesView).show(
            lambda width: self._stream.lines(run, width, stored, prompt=prompt), keep_place=place
        )

    def _ask_prompt(self, run: str) -> None:
        """What the run is asked: no event says it to every watcher, the history knows it from the start."""
        session = self.agenteval.session
        self._prompt = (run, "")

        def then(prompt: str) -> None:
            if self._prompt[0] == run:
                self._prompt = (run, prompt)
                self._draw_run()

        self.ask(lambda: session.store.run(run).prompt_head, then, group="prompt", failed=lambda error: None)

    def _fetch(self, run: str) -> None:
        """The transcript of a run that ended and of which nothing streamed here, out of the history."""
        session = self.agenteval.session

        def then(parts: list[StreamPart]) -> None:
            self._stored = {run: parts}
            self._draw_run()

        # A run that was cancelled or skipped before it began has none.
        self.ask(lambda: parts_of(session.store.transcript(run)), then, group="stored", failed=lambda error: None)

    # Lines

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        if self._view is None:
            return (), ()
        name: Line = ((f"{one_line(self._view.title, 40)}  ", ""),) if width >= 100 else ()
        lost: Line = (("  stopped unexpectedly", "error"),) if self._lost else ()
        end: Line = ((f"exec {self._view.execution[-8:]}", "dim"),) if width >= self.NARROW else ()
        return (*name, *status_cells(self._view, width), *lost), end

    def _bar_lines(self, width: int) -> list[Line]:
        return [bar(self._view, width)] if self._view is not None else [()]

    def _fact_lines(self, width: int) -> list[Line]:
        if self._view is None:
            return []
        slowed: Sequence[tuple[Throttled, float]] = ()
        if self._watching:
            watched = self._watch is not None and self._watch.view is self._view
            slowed = (
                self._watch.slowed()
                if self._watch and watched
                else [(o, o.wait_s) for o in self._view.throttled.values()]
            )
        return facts(self._view, self._agents, self._expected, slowed, width, lost=self._lost)

    def _legend_lines(self, width: int) -> list[Line]:
        line = legend(self._grid, width) if self._grid is not None else ()
        return [line] if line else []

    def keys(self) -> list[tuple[str, str, str]]:
        keys = super().keys()
        if self._view is None:
            return [("1", "suites", "app.go('suites')"), ("5", "history", "app.go('history')"), *keys[-1:]]
        if self._watching:
            return [*self._keys_while_running(self._view), *keys[-1:]]
        named = ["resume"] if self._resumable else []
        named += ["next_failure", "inspect", "causes", "compare"] if self._view.failures else ["inspect", "compare"]
        named += ["errors"] if self._view.count("error") else []
        named += ["next_cell"]
        return [*named_keys("run", named, self.agenteval.keymap), ("1", "suites", "app.go('suites')"), *keys[-1:]]

    def _keys_while_running(self, view: ExecutionView) -> list[tuple[str, str, str]]:
        keymap = self.agenteval.keymap
        pause, cancel = named_keys("run", ("pause", "cancel"), keymap)
        both = " ".join(key for key, _, _ in named_keys("run", ("more", "less"), keymap))
        chosen = view.runs.get(self._chosen)
        named = ["errors"] if view.count("error") else []
        named += ["inspect"] if chosen is not None and chosen.ended else []
        named += ["detach", *([] if self._follow else ["follow"])]
        named += ["next_failure"] if view.failures else ["next_cell"]
        at_once = (both, "at once", "more|less")
        return [
            (pause[0], "go on" if view.paused else pause[1], pause[2]),
            cancel,
            at_once,
            *named_keys("run", named[:4], keymap),
        ]

    # What a person does

    def _send(self, verb: str, *, run: str = "", number: int = 0) -> None:
        watch = self._watch
        if watch is not None and watch.view is self._view:
            start_worker(self, partial(watch.send, verb, run=run, number=number), group="send", exclusive=False)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Another test: show its run in the chosen column. A person who moved does not want to be moved."""
        self._follow = False
        self._rekey()
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
        if run.status == "skipped":
            self.agenteval.say("This run was not needed: its test's pass rate was decided before.")
            return
        ended = [ref for ref, one in view.runs.items() if one.ended and one.status != "skipped"]
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

    def action_compare(self) -> None:
        """What has ended of this execution beside the baseline."""
        if self._view is not None:
            self.agenteval.compare("", self._view.execution)

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

    def action_errors(self) -> None:

        groups = error_groups(self._view) if self._view is not None else []
        if not groups:
            self.agenteval.say("No run has met an error." + (" n goes to what failed." if self._view else ""))
            return

        def then(run: str | None) -> None:
            if run:
                self._follow = False
                self._choose(run)
                self._draw_run()

        self.app.push_screen(ErrorsScreen(groups), then)

    def action_follow(self) -> None:
        self._follow = True
        self._changed("")

    def _over(self) -> bool:
        """Is there nothing that runs? Say so to who wants to change how it runs."""
        if self._watching:
            return False
        self.agenteval.say("This execution has ended." if self._view is not None else "No execution is watched.")
        return True

    def action_pause(self) -> None:
        if not self._over() and self._view is not None:
            self._send("resume" if self._view.paused else "pause")

    def action_cancel(self) -> None:
        if self._over():
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
        if not self._over() and view is not None and view.progress is not None:
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

    @property
    def _resumable(self) -> bool:
        view = self._view
        if view is None or self._watching:
            return False
        return self._lost or (view.ended is not None and view.ended.status in RESUMABLE and waiting_counts(view) > 0)

    def action_resume(self) -> None:
        if self._resumable and self._view is not None:
            self.agenteval.resume_execution(self._view.execution)
        else:
            self.agenteval.say("There is nothing to resume: R runs what is left of an execution that was stopped.")

    def action_causes(self) -> None:
        """The causes of the failures that there are so far."""
        if self._view is not None:
            self.agenteval.show_causes(self._view.execution)

    def action_watch(self) -> None:
        self.agenteval.choose_live(self._view.execution if self._view is not None and self._watching else "")

    def action_detach(self) -> None:
        watch = self._watch
        if watch is not None and watch.attached:
            self.workers.cancel_group(self, "watch")
            self.agenteval.say("Detached: the execution goes on. Run (3) or w comes back to it.")
        self.agenteval.go("suites")

    def action_next_pane(self) -> None:
        cells = self.query_one("#cells", VirtualList)
        stream = self.query_one("#stream", LinesView)
        # Narrow, what follows is alone on the screen; what was hidden can take the focus only when it is shown.
        follow = not self.has_class("show-stream") if self.has_class("narrow") else cells.has_focus
        self.set_class(follow, "show-stream")
        self.call_after_refresh((stream if follow else cells).focus)

    def shown_executions(self) -> int:
        return int(self._watching and self._watch is not None and self._watch.view is self._view)

    def step_back(self) -> bool:
        if self.has_class("show-stream"):
            self.action_next_pane()
            return True
        return False
