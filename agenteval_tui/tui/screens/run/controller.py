"""What the Run screen knows of the execution that it shows, how it is watched in its own process, and what the screen's
actions are meant for. It knows no widget."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from agenteval_tui.analysis.regression_gate import compare_to_baseline
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count
from agenteval_tui.history.store import Store
from agenteval_tui.runs.client import Attachment, attach
from agenteval_tui.runs.events import Command, Event, Planned, RunState, Snapshot, StreamPart, Throttled
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.tui.actions import key_of
from agenteval_tui.tui.presenters.failure_banner import banner, failure_lines
from agenteval_tui.tui.presenters.run_grid import RunGrid, legend
from agenteval_tui.tui.presenters.run_rows import (
    Expected,
    agents_of,
    bar,
    facts,
    spent_text,
    status_cells,
    waiting_counts,
)
from agenteval_tui.tui.presenters.run_stream import RunStream
from agenteval_tui.tui.styled_text import SUITES_KEY, Cell, Line, empty_state, fit
from agenteval_tui.views.baseline import fell_text, notice_lines
from agenteval_tui.views.comparison import section_text
from agenteval_tui.views.failure import Failure

ALL = "*"
"""What `changed` is called with when anything may be different."""
SLICE_S = 0.008
"""How long events may be processed one after another; then the keyboard gets a turn."""


class Watching:
    """`run` attaches and takes in events until the execution ends; `changed` is called for each: with the id
    of the run, "" for figures of the whole, or `ALL`.

    `lost`: its process disappeared without an end. `view.planned` is None until the first event.
    """

    def __init__(self, live: Live, changed: Callable[[str], None]) -> None:
        self.live = live
        self.view = ExecutionView()
        self.lost = False
        self._waits_until: dict[str, float] = {}  # agent: seconds, monotonic
        self._changed = changed
        self._attachment: Attachment | None = None

    @property
    def attached(self) -> bool:
        """Do events come?"""
        return self._attachment is not None

    @property
    def over(self) -> bool:
        """Will nothing change any more?"""
        return self.lost or self.view.ended is not None

    async def run(self) -> None:
        """Watch until the end. Raises `AgentevalError` when the execution was over before anybody came."""
        attachment = self._attachment = await attach(self.live)
        until = time.monotonic() + SLICE_S
        try:
            async for event in attachment:
                self._take(event)
                # What was received already comes without waiting: a flood of it would hold the keyboard.
                if time.monotonic() > until:
                    await asyncio.sleep(0)
                    until = time.monotonic() + SLICE_S
        except AgentevalError:
            # The process closes its socket behind the last event: then nothing was lost.
            self.lost = self.view.ended is None
            raise
        finally:
            self._attachment = None
            await attachment.close()
        self.lost = self.view.ended is None
        self.view.lose()
        self._changed("")

    def _take(self, event: Event) -> None:
        changed = self.view.apply(event)
        if isinstance(event, Throttled):
            self._waits_until[event.agent] = time.monotonic() + event.wait_s
        elif isinstance(event, Snapshot):
            now = time.monotonic()
            self._waits_until = {throttled.agent: now + throttled.wait_s for throttled in event.throttled}
        self._changed(ALL if isinstance(event, Planned | Snapshot) else changed)

    def slowed(self) -> list[tuple[Throttled, float]]:
        """Who is slowed down, and how many seconds each still waits."""
        if self.over:
            return []
        now = time.monotonic()
        until = self._waits_until
        return [
            (throttled, max(until.get(throttled.agent, now) - now, 0.0)) for throttled in self.view.throttled.values()
        ]

    async def send(self, verb: str, *, run: str = "", number: int = 0) -> None:
        """Tell the execution to do something; nothing when it is not attached to."""
        if self._attachment is not None:
            await self._attachment.send(Command(verb, run=run, number=number))


ASKED_SECONDS = 1.0  # after this the figures of the execution have come round
RESUMABLE = ("stopped", "cancelled", "failed")
NOT_ASKED = (float("-inf"), 0)


class EndNotice(Struct, frozen=True):
    """How an execution ended, in a sentence; whether it ended as it should."""

    sentence: str
    severity: str
    finished: bool


def baseline_changes(store: Store, execution: str) -> tuple[str, str] | None:
    """What an execution changed against its baseline, in a sentence, with its severity; None: nothing, or there is no
    baseline. Raises `AgentevalError`."""
    result = compare_to_baseline(store, store.execution(execution))
    if result is None:
        return None
    counts = result.shown.counts()
    parts = [f"{count(len(result.regressed), 'test')} regressed"] if result.regressed else []
    parts += [fell] if (fell := fell_text(result)) else []
    parts += [section_text(state, counts[state]) for state in ("worse", "better", "mixed") if counts.get(state)]
    parts += [f"{count(len(result.by_chance), 'fall')} within chance"] if result.by_chance else []
    parts += notice_lines([notice for notice in result.notices if notice.missing or notice.new_failure])
    if not parts:
        return None
    return f"Against the baseline: {'; '.join(parts)}.", "warning" if result.regressions.found else "information"


class RunController:
    """The state of the Run screen. `row` in its methods is the row of cells with the cursor."""

    def __init__(self) -> None:
        self.watch: Watching | None = None
        self.view: ExecutionView | None = None  # what is shown
        self.grid: RunGrid | None = None
        self.expected = Expected()
        self.follow = True  # the run at work is shown, until the user chooses a different one
        self.cancel_asked = False  # cancelling takes the key twice
        self.resume_key = "R"  # the person's
        self._agents: list[str] = []
        self._changed: set[str] = set()  # what is to be painted: ids of runs, "" for figures of the whole, or `ALL`
        self._asked_at_once = NOT_ASKED  # when, and how many runs at once
        self._watched = ""  # the run whose stream is shown
        self._read = ""  # the run whose stored transcript was asked for
        self._stored: dict[str, list[StreamPart]] = {}
        self._prompt = ("", "")  # of which run, what was asked
        self.offer: Failure | None = None  # the clearest failure of what ended
        self._offer_seen = False
        self._stream = RunStream()

    # The execution

    def attach(self, live: Live, changed: Callable[[str], None], expected: Expected | None) -> Watching:
        """Watch this execution from now on; `changed` is called as `Watching` says. Its view is shown when its plan is
        there (`show_watched`)."""
        self.watch = Watching(live, changed)
        self.expected = expected or Expected()
        self.follow, self.cancel_asked = True, False
        return self.watch

    def show_watched(self) -> bool:
        """Show the watched execution, if its plan is there. False: it is shown already, or is not there."""
        watch = self.watch
        if watch is None or watch.view is self.view or watch.view.planned is None:
            return False
        self.show(watch.view)
        return True

    def show(self, view: ExecutionView) -> None:
        """Show an execution."""
        self.view, self.grid, self._agents = view, RunGrid(view), agents_of(view)
        self.offer, self._offer_seen = None, False
        self._asked_at_once = NOT_ASKED
        self._watched = ""
        self._stream = RunStream()

    @property
    def shows_watched(self) -> bool:
        """Is what is shown what is watched?"""
        return self.watch is not None and self.watch.view is self.view

    @property
    def running(self) -> bool:
        """Does what is shown still change by itself?"""
        return self.view is not None and self.view.ended is None and not self.lost

    @property
    def starting(self) -> bool:
        """Is nothing shown yet of an execution that is watched? Its plan has not come."""
        return self.view is None and self.watch is not None and not self.watch.over

    @property
    def lost(self) -> bool:
        """Did the process go away without an end?"""
        return self.watch is not None and self.watch.view is self.view and self.watch.lost

    def watches(self, execution: str) -> bool:
        """Is this the execution that is watched?"""
        return self.watch is not None and self.watch.live.execution == execution

    def end_notice(self, watch: Watching) -> EndNotice:
        """How the watched execution ended."""
        view = watch.view
        if view.ended is None and view.listens:
            sentence = (
                f"Its process died. {count(view.done, 'run')} and all answers in a cassette are saved. Start it again."
            )
            return EndNotice(sentence, "warning", False)
        if view.ended is None:
            sentence = (
                f"The execution stopped unexpectedly: its process died. {view.done:,} of {view.total:,} runs "
                "have ended and are saved. Press {run.resume} to resume the others."
            )
            return EndNotice(sentence, "warning", False)
        status, message = view.ended.status, view.ended.message
        if status == "failed" and view.listens:
            return EndNotice(f"{view.title}: {message}", "error", False)
        if view.listens and view.done == view.count("skipped"):
            outcome = f"{count(view.done, 'run')} received, not graded"
        else:
            outcome = f"{view.count('passed'):,} of {view.total:,} passed"
        sentence = f"{view.title or 'The execution'}: {status}, {outcome}"
        sentence += f", {spent_text(view)}" if view.progress is not None else ""
        if status == "failed":
            return EndNotice(f"{sentence}. {message}", "error", False)
        if status == "stopped":
            return EndNotice(f"{sentence}. {message} Press {{run.resume}} to resume it.", "warning", False)
        return EndNotice(f"{sentence}.", "information", True)

    @property
    def awaits_offer(self) -> bool:
        """Whether the shown execution has ended with failures, and the clearest failure is not known yet."""
        view = self.view
        return view is not None and not self.running and self.offer is None and bool(view.failures)

    def take_offer(self, offer: Failure | None) -> str:
        """Take the clearest failure of the ended execution. Returns the run to go to; "" if the person chose a run."""
        self.offer = offer if offer is not None and self.view is not None and offer.run in self.view.runs else None
        if self.offer is None or not self.follow:
            return ""
        self.follow = False
        return self.offer.run

    # What changed

    def note(self, run: str) -> None:
        """Note a change of this run, of the whole execution (""), or of everything (`ALL`)."""
        self._changed.add(run)

    @property
    def still(self) -> bool:
        """Is there nothing to paint, and nothing that changes by itself?"""
        return not self._changed and not self.running

    def take_changes(self) -> set[int] | None:
        """The rows of cells that look different since this was called last; None for all."""
        changed, self._changed = self._changed, set()
        grid = self.grid
        if grid is None:
            return set()
        if ALL in changed:
            grid.note_all()
            return None
        before = grid.count()
        for run in changed:
            grid.note(run)
        if grid.count() > before:
            self._agents = agents_of(grid.view)
        return {grid.row_of[run] for run in changed if run in grid.row_of}

    # The chosen run

    def chosen(self, row: int) -> RunState | None:
        """The run of the chosen cell."""
        return self.view.runs.get(self.grid.chosen(row)) if self.view is not None and self.grid is not None else None

    def choose(self, run: str) -> int | None:
        """Choose this run's cell. Gives its row; None: there is no such run."""
        if self.grid is None or run not in self.grid.row_of:
            return None
        self.grid.column = self.grid.column_of(run)
        return self.grid.row_of[run]

    def run_to_follow(self, row: int) -> str:
        """The run at work to go to, where the chosen one has ended or has not begun; "" to stay."""
        chosen = self.chosen(row)
        if not self.follow or not self.running or self.grid is None:
            return ""
        if chosen is not None and not chosen.ended and chosen.status != "queued":
            return ""
        return next(reversed(self.grid.flying), "")

    def step(self, row: int, by: int) -> bool:
        """The cell beside the chosen one. False: there are no cells."""
        if self.grid is None or row < 0:
            return False
        self.follow = False
        last = len(self.grid.groups[row]) - 1
        self.grid.column = max(0, min(min(self.grid.column, last) + by, last))
        return True

    def next_failure(self, row: int) -> str:
        """The failure after the chosen run in the order of the plan, then from the beginning; "" for none. If no run is
        chosen yet, the first failure."""
        view = self.view
        if view is None or not view.failures:
            return ""
        places = {run: place for place, run in enumerate(view.runs)}
        order = sorted(view.failures, key=places.__getitem__)
        chosen = None if self.follow else self.chosen(row)
        # The last line offers this key for it: it goes there wherever the cursor is.
        if self.offer is not None and not self._offer_seen:
            return self.offer.run
        self.follow = False
        now = places[chosen.ref.run] if chosen is not None else -1
        return next((run for run in order if places[run] > now), order[0])

    def runs_to_inspect(self, run: RunState) -> list[str] | str:
        """The runs that next and previous go through from this one; or why it can't be opened."""
        if self.view is None or not run.ended:
            return "This run has not ended yet. You see its answer as it streams."
        if run.status == "skipped":
            return "This run was not needed, because its test's pass rate was already decided."
        return [ref for ref, run_state in self.view.runs.items() if run_state.ended and run_state.status != "skipped"]

    # Its transcript

    def watch_stream(self, run: RunState) -> bool:
        """Its stream is shown now. False: it was already."""
        before, self._watched = self._watched, run.ref.run
        return before != run.ref.run

    def lacks_transcript(self, run: RunState) -> bool:
        """Must its transcript be read? Of a run that ended unseen nothing streamed here, or only its beginning; the
        history has it. True only once."""
        if not run.ended or self._stored.get(run.ref.run) or self._read == run.ref.run:
            return False
        self._read = run.ref.run
        return True

    def take_transcript(self, run: str, parts: list[StreamPart]) -> None:
        """The stored transcript of a run."""
        # Of one run only: transcripts are large, and one is shown.
        self._stored = {run: parts}

    def lacks_prompt(self, run: RunState) -> bool:
        """Whether the app must read the run's prompt. No event has it for every watcher, but the history has it from
        the start. True only once."""
        if self._prompt[0] == run.ref.run:
            return False
        self._prompt = (run.ref.run, "")
        return True

    def take_prompt(self, run: str, prompt: str) -> bool:
        """Take the prompt of a run. False if the screen shows a different run by now."""
        if self._prompt[0] != run:
            return False
        self._prompt = (run, prompt)
        return True

    def stream_lines(self, run: RunState, width: int) -> list[Line]:
        """The run's prompt, and its messages so far."""
        prompt = self._prompt[1] if self._prompt[0] == run.ref.run else ""
        return self._stream.lines(run, width, self._stored.get(run.ref.run, []), prompt=prompt)

    # What a person asks of the execution

    @property
    def why_not(self) -> str:
        """Why nothing can be changed in how it runs; "" when it can."""
        if self.running:
            return ""
        if self.view is not None:
            return "This execution has ended."
        return "The execution is starting." if self.starting else "You are not watching an execution."

    @property
    def why_not_steered(self) -> str:
        """Why it can't be paused, and has no number of runs at once; "" when it has."""
        if self.running and self.view is not None and self.view.listens:
            return (
                "Another program makes these runs, so they can't be paused. Press {run.cancel} to stop the execution."
            )
        return self.why_not

    def concurrency(self, step: int) -> int | None:
        """How many runs at once to ask for; None before the first figures."""
        if self.view is None or self.view.progress is None:
            return None
        # Keys are faster than the figures that come back: count from what was asked for a moment ago.
        now, (asked_at, requested) = time.monotonic(), self._asked_at_once
        current = requested if now - asked_at < ASKED_SECONDS else self.view.progress.concurrency
        self._asked_at_once = (now, max(current + step, 1))
        return self._asked_at_once[1]

    @property
    def resumable(self) -> bool:
        """Did it end before all of its runs had?"""
        view = self.view
        if view is None or self.running or view.listens:
            return False
        return self.lost or (view.ended is not None and view.ended.status in RESUMABLE and waiting_counts(view) > 0)

    # Lines

    def empty(self) -> list[Line]:
        """What is shown instead of cells, while no execution is shown, or it has no runs yet."""
        if self.view is not None and not self.running and not self.view.total:
            return empty_state("", "It ended before a run arrived.", *SUITES_KEY)
        if self.view is not None and self.view.listens:
            purpose = "Each run appears here as it arrives, with its transcript."
            return empty_state(purpose, "Nothing has arrived yet.", "{run.cancel}", "stop listening")
        purpose = "Watch tests run: a cell for each run, and the transcript of the chosen one as it is written."
        if self.starting:
            return empty_state(purpose, "The execution is starting.")
        return empty_state(
            purpose,
            "You are not watching an execution.",
            *SUITES_KEY,
            "Press {run.watch} to watch a running execution, or {go.history} to list finished executions.",
        )

    def heading(self, width: int, narrow: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        """The left and right texts of the title, which are shorter below `narrow` cells."""
        if self.view is None:
            return (), ()
        name: Line = ((f"{one_line(self.view.title, 40)}  ", ""),) if width >= 100 else ()
        lost: Line = (("  stopped unexpectedly", "error"),) if self.lost else ()
        end: Line = ((f"exec {short_id(self.view.execution)}", "dim"),) if width >= narrow else ()
        return (*name, *status_cells(self.view, width), *lost), end

    def bar_lines(self, width: int) -> list[Line]:
        """The progress."""
        return [bar(self.view, width)] if self.view is not None else [()]

    def fact_lines(self, width: int) -> list[Line]:
        """The plan, the usage, the slowed agents, and the end of the execution."""
        if self.view is None:
            return []
        slowed: Sequence[tuple[Throttled, float]] = ()
        if self.running and self.watch is not None and self.shows_watched:
            slowed = self.watch.slowed()
        elif self.running:
            slowed = [(throttled, throttled.wait_s) for throttled in self.view.throttled.values()]
        return facts(self.view, self._agents, self.expected, slowed, width, lost=self.lost, resume_key=self.resume_key)

    def offer_lines(self, row: int, width: int, keymap: Mapping[str, str]) -> list[Line]:
        """The clearest failure of the ended execution, with the key that opens it or goes to it; () if the person has
        looked at it and left it."""
        if self.offer is None or self.view is None:
            return []
        run, chosen = self.view.runs[self.offer.run], self.chosen(row)
        here = chosen is not None and chosen.ref.run == self.offer.run
        if self._offer_seen and not here:
            return []
        self._offer_seen = here
        key = ("run.inspect", "open it") if here else ("run.next_failure", "go to it")
        head: Line = (("The clearest failure:   ", ""), (key_of(key[0], keymap), "bold accent"), (f"  {key[1]}", ""))
        return banner([fit(head, width - 4), *failure_lines(run.ref.test, self.offer, width - 4)])[:-1]

    def legend_lines(self, width: int) -> list[Line]:
        """The meaning of the signs beside cells."""
        line = legend(self.grid, width) if self.grid is not None else ()
        return [line] if line else []

    def key_names(self, row: int) -> list[str]:
        """The names of the actions that are possible now, the most important first."""
        view = self.view
        if view is None or not view.total:
            return []
        errors = ["errors"] if view.count("error") else []
        if self.running:
            chosen = self.chosen(row)
            named = [*errors, *(["inspect"] if chosen is not None and chosen.ended else [])]
            named += [] if self.follow else ["follow"]
            named += ["next_failure"] if view.failures else ["next_cell"]
            return named[:4]
        named = ["resume"] if self.resumable else []
        named += ["next_failure", "inspect", "causes", "compare"] if view.failures else ["inspect", "compare"]
        return [*named, *errors, "next_cell"]
