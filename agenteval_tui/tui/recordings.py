"""Recordings of programs that the app starts. Each lives in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from textual.app import App

from agenteval_tui.agents.process.child_process import find_program
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.client import start_verb
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.recorded_program import (
    input_told,
    permission_of,
    plan_for,
    prices,
    program_in,
    program_text,
    replay_plan,
    surroundings_of,
)
from agenteval_tui.runs.recording_request import RecordingRequest, ReplayRequest
from agenteval_tui.runs.tapes import ReplayPrice, replay_price, tape_of
from agenteval_tui.runs.trust_check import check_trust
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.load import load_suites
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.execution_launcher import ExecutionLauncher
from agenteval_tui.tui.navigation import Navigation
from agenteval_tui.tui.notifications import Notifier
from agenteval_tui.tui.screen_registry import sheet
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.workspace import SuitesAndHistory


class RecordingLauncher:
    """Asks what to record or replay, and has `launcher` start and watch it."""

    def __init__(
        self,
        app: App[Any],
        session: Session,
        notifier: Notifier,
        navigation: Navigation,
        launcher: ExecutionLauncher,
    ) -> None:
        self._app = app
        self._session = session
        self._notifier = notifier
        self._navigation = navigation
        self._launcher = launcher
        self._recording = RecordingRequest("")  # what was asked for last
        self._replayed: dict[str, str] = {}  # run -> the program that was typed last

    def record(self) -> None:
        """Ask which program to record, and record it in a process of its own, which is watched. Asks again where
        grading it would run programs."""

        def asked(request: RecordingRequest) -> None:
            self._recording = request
            self._launcher.launch(
                "Recording this",
                lambda trust: start_recording(self._session, request, trust=trust),
                self._launcher.watch_recorded,
            )

        try:
            screen = sheet("record", self._recording)
        except AgentevalError as error:
            self._notifier.say_error(error)
        else:
            self._app.push_screen(screen, if_answered(asked))

    def replay(self, run: str) -> None:
        """Ask with which program to replay a recorded run, and do it as `record` does."""
        screen = self._navigation.top
        if screen is None:
            return

        def asked(request: ReplayRequest) -> None:
            self._replayed[request.run] = request.program
            self._launcher.launch(
                "Replaying this",
                lambda trust: start_replay(self._session, request, trust=trust),
                self._launcher.watch_recorded,
            )

        def offer(replay_offer: ReplayOffer) -> None:
            typed = self._replayed.get(run, replay_offer.program)
            self._app.push_screen(sheet("replay", replace(replay_offer, program=typed)), if_answered(asked))

        screen.ask(lambda: replay_offer(self._session, run), offer, group="replay")


def start_recording(opened: SuitesAndHistory, recording_request: RecordingRequest, *, trust: bool) -> Live:
    """Record a program in a process of its own; returns when it runs.

    Raises `NotTrustedError` before, where the program would get variables of a `.env`, or the test that grades it would
    run code, of a folder that is not trusted; `AgentevalError`: there is no such program, test or file.
    """
    folder = Path.cwd()
    program = program_in(folder, recording_request.argv)
    find_program(recording_request.argv[0], folder, program.env)
    permission_of(program, trusted=trust)  # the process would refuse as well; here it can be asked about
    suite, test = None, ""
    if recording_request.test:
        agents = load_agents(directories.config_dir())
        plan = plan_for(
            load_suites(opened.paths_looked_in), recording_request.test, program, user_agents=agents, trust=trust
        )
        check_trust(plan)
        suite, test = Path(plan.runs[0].suite_key), plan.runs[0].ref.test
    return start_verb(recording_request.command(suite, test, trust=trust), opened.db)


class ReplayOffer(Struct, frozen=True):
    """A recorded run that can be replayed: by which program ("": not known), and what that takes at most."""

    run: str
    name: str
    program: str
    price: ReplayPrice
    reads: bool
    """Whether it reads what the run's program read; else nothing."""
    folder: Path
    """Where it runs: in the folder of the run's program, where that is known (`as_agent`); else where the app runs."""
    as_agent: bool = False
    variables: tuple[str, ...] = ()
    """The names of the variables that the suite of the run's agent gives it."""


def replay_offer(opened: SuitesAndHistory, run: str) -> ReplayOffer:
    """What is offered of a run. Raises `AgentevalError` where nothing was kept that could be replayed."""
    row = opened.store.run(run)
    price = replay_price(tape_of(opened.store, row).exchanges, prices())
    reads = input_told(opened.store, row) is not None
    around = surroundings_of(opened.store, row, load_agents(directories.config_dir()))
    offer = ReplayOffer(run, row.test_name or row.test_id, program_text(opened.store, row), price, reads, Path.cwd())
    if around is None:
        return offer
    return replace(offer, folder=around.folder, as_agent=True, variables=tuple(around.variables))


def start_replay(opened: SuitesAndHistory, replay_request: ReplayRequest, *, trust: bool) -> Live:
    """Replay a run in a process of its own; returns when it runs.

    Raises `NotTrustedError` before, where grading it would run code of a folder that is not trusted; `AgentevalError`:
    there is no such program or recording.
    """
    folder, row = Path.cwd(), opened.store.run(replay_request.run)
    agents = load_agents(directories.config_dir())
    program = program_in(folder, replay_request.argv)
    around = surroundings_of(opened.store, row, agents) if replay_request.as_agent else None
    program = program if around is None else around.around(program)
    find_program(replay_request.argv[0], program.cwd, program.env)
    # The process would refuse as well; here it can be asked about.
    permission_of(program, trusted=trust)
    replay_plan(opened.store, row, program, user_agents=agents, trust=trust, around=around)
    return start_verb(replay_request.command(trust=trust), opened.db)
