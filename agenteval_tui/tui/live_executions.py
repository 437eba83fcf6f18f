"""Executions that run now, whoever began them: how many, that one has met a failure, that one has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.navigation import Navigation
from agenteval_tui.tui.notification_log import NotificationSource
from agenteval_tui.tui.presenters.status_style import glyph
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.styled_text import Cell
from agenteval_tui.tui.terminal.mounting import is_there
from agenteval_tui.tui.workers import start_worker

if TYPE_CHECKING:
    from agenteval_tui.history.records import ExecutionRow, RunRow
    from agenteval_tui.runs.live_registry import Live
    from agenteval_tui.tui.analysis_context import Session
    from agenteval_tui.tui.screens.run import RunScreen

COUNT_SECONDS = 2.0
BAD = ("failed", "error")
NAME = 60  # cells of a name in a note


class LiveExecutions(Navigation):
    """An app that knows what runs beside it, and says what happens there while the person looks elsewhere."""

    session: Session

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._executions = 0
        self._live: dict[str, Live] = {}
        self._failing: set[str] = set()  # executions whose first failure was said

    def count_running(self) -> None:
        """Look how many executions run now, for the title; while there are some, look again."""
        start_worker(self, self._count_running, group="running")

    async def _count_running(self) -> None:
        from agenteval_tui.runs.client import live_executions

        while True:
            live = {one.execution: one for one in await asyncio.to_thread(live_executions)}
            before = len(self._live)
            self._set_running(len(live))
            await self._tell(live)
            if before or live:
                self.tell_new_runs()
            if not live:
                return
            await asyncio.sleep(COUNT_SECONDS)

    def tell_new_runs(self) -> None:
        """What the history says may be different now: the screen that is shown reads it again."""
        screen = self.screen_stack[-1] if self.screen_stack else None
        # One that is still to be mounted reads the history anyway.
        if isinstance(screen, FrameScreen) and is_there(screen):
            screen.new_runs()

    async def _tell(self, live: Mapping[str, Live]) -> None:
        """Say what has ended since the last look, and the first failure of what still runs."""
        self._live.update(live)
        for execution in [one for one in self._live if one not in live]:
            del self._live[execution]
            if not self._watched(execution):
                row = await asyncio.to_thread(self._execution, execution)
                if row is not None:
                    self.say(end_of(row), severity=_weight(row), place=NotificationSource("execution", row.id))
        for execution in live:
            if execution not in self._failing and not self._looked_at(execution):
                run = await asyncio.to_thread(self._first_failure, execution)
                if run is not None and execution not in self._failing:
                    self._failing.add(execution)
                    self.say(failure_of(run), severity="warning", place=NotificationSource("run", run.id))

    def _execution(self, execution: str) -> ExecutionRow | None:
        try:
            return self.session.store.execution(execution)
        except AgentevalError:
            return None  # of another history: none of this app's business

    def _first_failure(self, execution: str) -> RunRow | None:
        from agenteval_tui.history.records import RunFilter

        try:
            ids = self.session.store.run_ids(RunFilter(execution_id=execution, outcomes=BAD))
            return next(iter(self.session.store.run_rows(ids[-1:])), None)
        except AgentevalError:
            return None

    def _watched(self, execution: str) -> bool:
        """Does the Run screen watch it, shown or not? Then it says itself how it ended."""
        if not self.is_screen_installed("run"):
            return False
        screen: RunScreen = self.get_screen("run")  # type: ignore[assignment]
        return screen.watches(execution)

    def _looked_at(self, execution: str) -> bool:
        """Is the person looking at it?"""
        return self._shown == "run" and self._watched(execution)

    def _set_running(self, number: int) -> None:
        if number != self._executions:
            self._executions = number
            screen = self.screen_stack[-1] if self.screen_stack else None
            if isinstance(screen, FrameScreen):
                screen.retitle()

    def live_note(self, shown: int = 0) -> tuple[Cell, ...]:
        """What the title says of running executions; `shown`: so many of them the screen itself speaks of."""
        number = self._executions - shown
        if number <= 0:
            return ()
        what = "other" if shown else "execution"
        plural = "" if number == 1 else "s"
        return (("   ", ""), (f"{glyph('running')} {number} {what}{plural} running", "running"))

    def say_changed(self, files: Iterable[tuple[str, str, int]]) -> None:
        """Say which suites changed on disk: (their keys, their names, how many errors they have now)."""
        changed = list(files)
        if not changed:
            return
        key, name, errors = changed[0]
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        wrong = f"; {errors} problem{'s' if errors > 1 else ''} in it" if errors else ""
        said = f"{one_line(name, NAME)}{more} changed on disk and was read again{wrong}."
        self.say(said, severity="warning" if errors else "information", place=NotificationSource("suite", key))


def end_of(row: ExecutionRow) -> str:
    """How an execution ended, in a sentence."""
    bad = [f"{n} {word}" for n, word in ((row.failed, "failed"), (row.errors, "errors")) if n]
    beside = f", {', '.join(bad)}" if bad else ""
    title = one_line(row.title or f"execution {row.id[-8:]}", NAME)
    return f"{title} {row.status}: {row.passed} of {row.runs} passed{beside}."


def failure_of(run: RunRow) -> str:
    """That a run failed, and why, in a sentence."""
    why = one_line(run.why or run.error_message, 160)
    return f"{one_line(run.test_id, NAME)} run {run.repetition} {run.status}{': ' + why if why else '.'}"


def _weight(row: ExecutionRow) -> str:
    return "information" if row.status == "finished" else "warning"
