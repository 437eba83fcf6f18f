"""Executions: started, resumed, watched. Each lives in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from textual.app import App

from agenteval_tui.agents.permission import NotTrustedError, TrustRequirement
from agenteval_tui.runs import client
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.tui.actions import key_of
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.code_watch import WatchRequest
from agenteval_tui.tui.input_queue import InputQueue
from agenteval_tui.tui.navigation import Navigation
from agenteval_tui.tui.notifications import NotificationSource, Notifier
from agenteval_tui.tui.presenters.run_rows import Expected
from agenteval_tui.tui.presenters.trust_lines import TrustQuestion
from agenteval_tui.tui.screens.executions import ExecutionsScreen
from agenteval_tui.tui.screens.plan import ResumeScreen
from agenteval_tui.tui.screens.trust import TrustScreen
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.workers import is_busy

T = TypeVar("T")


class _Refusal(Struct, frozen=True):
    """What would run and is not trusted, and what a person is asked about it."""

    needs: tuple[TrustRequirement, ...]
    asked: tuple[TrustQuestion, ...]


class ExecutionLauncher:
    """Starts and resumes executions for the screen that is shown, and has them watched."""

    def __init__(
        self,
        app: App[Any],
        session: Session,
        notifier: Notifier,
        navigation: Navigation,
        keymap: Mapping[str, str],
        started: Callable[[Live], None],
        recorded: Callable[[str], None],
        queue: InputQueue,
        begun: set[str],
    ) -> None:
        """`started` is called with each execution that was started here, `recorded` with the id of each that is a
        recording. `begun` has the id of each from the moment it runs: who quits then is told of it."""
        self._begun = begun
        self._started = started
        self._recorded = recorded
        self._queue = queue
        self._app = app
        self._keymap = keymap
        self._session = session
        self._notifier = notifier
        self._navigation = navigation

    def start_run(self, paths: Sequence[Path], options: PlanOptions) -> None:
        """Start an execution in its own process and watch it; asks first where it would start programs."""
        self.launch(
            "Running this",
            lambda trust: self._session.workspace.start(paths, replace(options, trust=options.trust or trust)),
            lambda started, show: self.watch(started[0], Expected.of(started[1]), show=show),
        )

    def start_live(self, doing: str, start: Callable[[], Live]) -> None:
        """Start an execution in a process of its own with `start`, which may take long, and watch it."""
        self.launch(doing, lambda _: start(), lambda live, show: self.watch(live, None, show=show))

    def watch_code(self, request: WatchRequest) -> None:
        """Watch the code of agents, in a process that ends with the app. Asks first where it would start programs."""
        self.launch(
            "Running this after each save",
            lambda trust: self._session.workspace.watched(replace(request, trusted=request.trusted or trust)),
            lambda permitted, _: self._navigation.watch_code(permitted),
            announce=False,
        )

    def start_fork(self, request: ForkRequest, then: Callable[[Live], None]) -> None:
        """Continue a run in a process of its own; `then` is called when it runs. Asks first where it would start
        programs."""
        screen = self._navigation.top

        def begun(live: Live, _: bool) -> None:
            then(live)
            self._started(live)
            if screen is not None:
                screen.agenteval.count_running()

        self.launch(
            "Continuing this",
            lambda trust: self._session.workspace.start_fork(replace(request, trust=request.trust or trust)),
            begun,
            announce=False,
        )

    def resume_execution(self, execution: str, limits: PlanOptions | None = None) -> None:
        """Run the rest of an execution and watch it. If a limit stopped it, ask for a new limit first."""
        if limits is None:
            screen = self._navigation.top
            if screen is None:
                return

            def resume(chosen: PlanOptions | None) -> None:
                if chosen is not None:
                    self.resume_execution(execution, chosen)

            def then(options: PlanOptions) -> None:
                if options.max_cost is None and options.max_tokens is None and options.max_seconds is None:
                    resume(options)
                else:
                    self._app.push_screen(ResumeScreen(options), resume)

            screen.ask(lambda: self._session.workspace.limits_of(execution), then, group="limits")
            return
        self.launch(
            "Resuming this",
            lambda trust: self._session.workspace.resume(execution, replace(limits, trust=trust)),
            lambda live, show: self.watch(live, None, show=show),
        )

    def watch_recorded(self, live: Live, show: bool) -> None:
        """Watch a recording that was started; whether it is shown."""
        self._recorded(live.execution)
        self.watch(live, None, show=show)

    def watch(self, live: Live, expected: Expected | None, *, show: bool) -> None:
        """Watch an execution that was started here; whether it is shown."""
        self._navigation.watch_live(live, expected, show=show)
        self._started(live)

    def launch(
        self, doing: str, start: Callable[[bool], T], watch: Callable[[T, bool], None], *, announce: bool = True
    ) -> None:
        """Call `start(trusted)` in a thread; where it needs trust that is not there, ask for it and call it again. Then
        call `watch` with what was started, and whether to show it: not if a key was pressed meanwhile. The next keys
        are meant for what is shown, and would go on as keys of the Run screen, where S stops the execution.
        """
        screen = self._navigation.top
        if screen is None:
            return
        if is_busy(screen, "start"):
            self._notifier.say("A run is already starting.")
            return

        def begin(attempt: Callable[[], T | _Refusal]) -> None:
            # The number of the last key now: a key that comes meanwhile is meant for the screen that is shown.
            screen.ask(attempt, partial(then, self._queue.last), group="start", beside=True)

        def then(turn: int, outcome: T | _Refusal) -> None:
            if isinstance(outcome, _Refusal):
                self._ask(outcome.asked, doing, lambda answer: again(outcome.needs, answer))
                return
            show = self._navigation.top is screen and self._queue.is_last(turn)
            watch(outcome, show)
            if announce and not show:
                key = key_of("go.run", self._keymap)
                self._notifier.say(
                    f"The run has started. Press {key} to watch it.", place=NotificationSource("screen", "run")
                )
                screen.agenteval.count_running()

        def again(needs: Sequence[TrustRequirement], answer: str) -> None:
            begin(lambda: self._attempt(start, needs, answer))

        begin(lambda: self._attempt(start))

    def _attempt(
        self, start: Callable[[bool], T], needs: Sequence[TrustRequirement] = (), answer: str = ""
    ) -> T | _Refusal:
        """Start it, in a thread; or what is to be asked first. `answer` ("once", "trust") is about these `needs`: where
        something else would run by now, that is asked about."""
        # Without trust at first, whatever was answered: only a refusal says what would run by now.
        try:
            return self._noted(start(False))
        except NotTrustedError as error:
            refusal = error.needs
        # What was agreed to is exactly what was shown: files may have changed since.
        if not answer or refusal != tuple(needs):
            return _Refusal(refusal, tuple(self._question(need) for need in refusal))
        if answer == "trust":
            self._session.workspace.trust(refusal)
            # Trusted now, so it need not be told to trust.
            return self._noted(start(False))
        return self._noted(start(True))

    def _noted(self, outcome: T) -> T:
        """What was started: it may be the app's last moment, in which nothing else takes note of it."""
        live = outcome[0] if isinstance(outcome, tuple) else outcome
        if isinstance(live, Live):
            self._begun.add(live.execution)
        return outcome

    def _question(self, need: TrustRequirement) -> TrustQuestion:
        return TrustQuestion(need, self._session.workspace.why_not(need))

    def ask_trust(self, trust_questions: Sequence[TrustQuestion], doing: str, then: Callable[[bool], None]) -> None:
        """Ask whether programs of these folders may run; `then` is called when they may: True for this once, False
        when the folders are trusted now."""

        def answered(answer: str) -> None:
            screen = self._navigation.top
            if answer == "once":
                then(True)
            elif screen is not None:
                needs = [trust_question.need for trust_question in trust_questions]
                screen.ask(lambda: self._session.workspace.trust(needs), lambda _: then(False), group="trust")

        self._ask(trust_questions, doing, answered)

    def _ask(self, trust_questions: Sequence[TrustQuestion], doing: str, then: Callable[[str], None]) -> None:
        """Ask it; `then` gets the answer, "once" or "trust"."""

        def answered(answer: str | None) -> None:
            if answer:
                then(answer)
            else:
                self._notifier.say("Nothing ran.")

        self._app.push_screen(TrustScreen(trust_questions, doing), answered)

    def choose_live(self, watched: str = "") -> None:
        """Choose which of the running executions to watch; the only one at once."""
        screen = self._navigation.top
        if screen is None:
            return

        def show(live: list[Live]) -> None:
            if not live:
                self._notifier.say("No execution is running.")
            elif len(live) == 1:
                if live[0].execution == watched:
                    self._notifier.say("No other execution is running.")
                else:
                    self._navigation.watch_live(live[0])
            else:
                by_id = {execution.execution: execution for execution in live}

                def watch(chosen: str) -> None:
                    self._navigation.watch_live(by_id[chosen])

                self._app.push_screen(ExecutionsScreen(live, watched), if_answered(watch))

        screen.ask(client.live_executions, show, group="live")
