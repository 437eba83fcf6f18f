"""Executions that run now, whoever started them: how many, whether one has a failure, whether one has ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.history.records import ExecutionRow, RunFilter, RunRow
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.badges import history_stamp
from agenteval_tui.tui.notifications import NAME, NotificationSource, Notifier

if TYPE_CHECKING:
    from agenteval_tui.runs.live_registry import Live
    from agenteval_tui.views.failure import Miss

COUNT_SECONDS = 2.0  # between two counts, while some run: each reads the folder of live executions
VALUE = 30  # characters of an expected or an actual value in a note
BAD = ("failed", "error")


class WatchingScreens(Protocol):
    """What is to be known of the screens here: `Navigation` has it."""

    def watches(self, execution: str) -> bool:
        """Does a screen watch it, shown or not? Then that screen says itself how it ended."""

    def looks_at(self, execution: str) -> bool:
        """Is the person looking at it?"""

    def retitle(self) -> None:
        """What the title says has changed."""

    def tell_new_runs(self) -> None:
        """What the history says may be different now."""


class LiveExecutions:
    """Knows what runs beside the app, and says what happens there while the person looks elsewhere."""

    def __init__(
        self,
        session: Session,
        notifier: Notifier,
        watching_screens: WatchingScreens,
        ended: Callable[[ExecutionRow, bool, bool], object] = lambda row, here, looked_at: None,
    ) -> None:
        """`ended` is called with each execution that has ended, whether this app started it, and whether the person
        looks at it."""
        self._ended = ended
        self._started: set[str] = set()  # by this app
        self._session = session
        self._notifier = notifier
        self._shown = watching_screens
        self._running = 0
        self._live: dict[str, Live] = {}  # those that run, and those whose end is still to be said
        self._failing: set[str] = set()  # executions whose first failure was said
        self._seen = _stamp()
        self._written = history_stamp(session.db)
        self._runs: tuple[int, ...] | None = None

    def started(self, live: Live) -> None:
        """This app has started it: its end is seen, however soon it comes."""
        self._started.add(live.execution)
        self._live[live.execution] = live

    def have_changed(self) -> bool:
        """Has an execution begun or ended, in whichever process, since this was asked last? Reads no file."""
        before, self._seen = self._seen, _stamp()
        return self._seen != before

    def runs_have_changed(self) -> bool:
        """Has any process brought or removed runs, or ended some, since this was asked last: an execution, an import, a
        merge, traces? Reads the history only where it was written, so call it in a thread."""
        written = history_stamp(self._session.db)
        if written == self._written and self._runs is not None:
            return False
        # What was written before the first look may be newer than what is shown.
        # The stamp is taken before the rows: what is written in between is seen by the next look.
        was_written, self._written = written != self._written, written
        try:
            before, self._runs = self._runs, self._session.store.runs_state()
        except AgentevalError:
            return False  # the screens say what is wrong with the history
        return was_written if before is None else self._runs != before

    async def watch(self) -> None:
        """Look how many executions run now, for the strip; while there are some, look again."""
        # 13 ms, for which the first frame does not wait.
        from agenteval_tui.runs.client import live_executions

        while True:
            live = {live.execution: live for live in await asyncio.to_thread(live_executions)}
            before = len(self._live)
            await self.take(live)
            if before or live:
                self._shown.tell_new_runs()
            if not live:
                return
            await asyncio.sleep(COUNT_SECONDS)

    async def take(self, live: Mapping[str, Live]) -> None:
        """What runs now, by the execution's id. Say what has ended since the last look, and the first failure of what
        still runs."""
        if len(live) != self._running:
            self._running = len(live)
            self._shown.retitle()
        self._live.update(live)
        for execution in [execution for execution in self._live if execution not in live]:
            if self._live[execution].pid == os.getpid():
                del self._live[execution]  # a sheet of this app asks: it shows the answers
                continue
            row = await asyncio.to_thread(self._execution, execution)
            # Not before: where this look is cut off, the next one says it.
            if self._live.pop(execution, None) is None or row is None:
                continue
            if not self._shown.watches(execution) and not self._shown.looks_at(execution):
                place = NotificationSource("execution", row.id)
                self._notifier.say(_end_text(row), severity=_weight(row), place=place)
            self._ended(row, execution in self._started, self._shown.looks_at(execution))
        for execution, entry in live.items():
            if entry.pid != os.getpid() and execution not in self._failing and not self._shown.looks_at(execution):
                failure = await asyncio.to_thread(self._first_failure, execution)
                # Asked again: another look may have said it while this one read.
                if failure is not None and execution not in self._failing:
                    run, message = failure
                    self._failing.add(execution)
                    self._notifier.say(message, severity="warning", place=NotificationSource("run", run))

    def _execution(self, execution: str) -> ExecutionRow | None:
        try:
            return self._session.store.execution(execution)
        except AgentevalError:
            return None  # of another history: none of this app's business

    def _first_failure(self, execution: str) -> tuple[str, str] | None:
        """The run's id, and why it failed, in a sentence."""
        # 40 ms with what explains failures, for which the first frame does not wait.
        from agenteval_tui.views.failure import first_miss

        store = self._session.store
        try:
            ids = store.run_ids(RunFilter(execution_id=execution, outcomes=BAD))
            run = next(iter(store.run_rows(ids[-1:])), None)
            # The screens say what is wrong with the history.
            return None if run is None else (run.id, _failure_of(run, first_miss(store.results(run.id))))
        except AgentevalError:
            return None

    @property
    def known(self) -> tuple[str, ...]:
        """The executions that ran at the last look."""
        return tuple(self._live)

    @property
    def running(self) -> int:
        """How many executions run now."""
        return self._running


def _stamp() -> int:
    """Differs when a file came into the folder of running executions or went from it; 0 where there is none."""
    try:
        return (directories.runtime_dir() / "live").stat().st_mtime_ns
    except OSError:
        return 0


def _end_text(row: ExecutionRow) -> str:
    """How an execution ended, in a sentence."""
    counts = (
        (row.failed, "failed"),
        (row.errors, "errors"),
        (row.needs_review, "to be reviewed"),
        (row.runs - row.ended, "not run"),
    )
    bad = [f"{n} {word}" for n, word in counts if n > 0]
    beside = f", {', '.join(bad)}" if bad else ""
    title = one_line(row.title or f"execution {short_id(row.id)}", NAME)
    return f"{title} {row.status}: {row.passed:,} of {row.runs:,} passed{beside}."


def _failure_of(run: RunRow, miss: Miss | None) -> str:
    """That a run failed, and why, in a sentence that mostly has room in a line."""
    if run.status == "failed" and miss is not None and miss.expected:
        why = f"expected {one_line(miss.expected, VALUE)}"
        why += f": {one_line(miss.note, 2 * VALUE)}" if miss.looks_equal else f", got {one_line(miss.got, VALUE)}"
    else:
        why = one_line(run.why or run.error_message, 160)
    return f"{one_line(run.test_id, NAME)} run {run.repetition} {run.status}{': ' + why if why else '.'}"


def _weight(row: ExecutionRow) -> str:
    return "information" if row.status == "finished" else "warning"
