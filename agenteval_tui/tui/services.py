"""What a screen, a sheet and the palette ask of the program. They get it with `services(self)`, and never import the
app: the app imports the screens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack, cast

from msgspec import Struct
from textual.dom import DOMNode
from textual.screen import Screen
from textual.worker import Worker

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.criterion_templates import Starter
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.transcripts.model import Attachment
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.inspect_target import InspectTarget
from agenteval_tui.tui.notifications import NotificationSource
from agenteval_tui.tui.presenters.navigation_strip import Tab

if TYPE_CHECKING:
    from agenteval_tui.runs.live_registry import Live
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.tui.code_watch import WatchRequest
    from agenteval_tui.tui.presenters.run_rows import Expected
    from agenteval_tui.tui.presenters.trust_lines import TrustQuestion


class PaletteCommand(Struct, frozen=True):
    """A command in the palette: its group, what it does, its keys as a person reads them, what does it, and what the
    last line of the screen calls it."""

    group: str
    label: str
    keys: str
    act: Callable[[], Awaitable[None]]
    name: str


class Services(Protocol):
    """History and suites, keys, notifications, navigation, executions, other programs."""

    @property
    def session(self) -> Session:
        """Suites and history; its methods may take long, so screens call them in a thread."""

    @property
    def keymap(self) -> dict[str, str]:
        """The person's own keys: {id of an action: its keys}."""

    # Notifications

    def say(self, message: str, *, severity: str = "information", place: NotificationSource | None = None) -> None:
        """Show a short note: what happened and where it is. With a `place`, one key goes there."""

    def take_back(self, message: str) -> None:
        """Take a note that was said, and is no longer true, from the screen."""

    def say_error(self, error: AgentevalError) -> None:
        """Show what is wrong, where, and how to correct it."""

    def say_bug(self, error: BaseException, doing: str) -> None:
        """Show in one sentence that the program broke while `doing` something; the traceback goes to a file."""

    def say_changed(self, files: Iterable[tuple[str, str, int]]) -> None:
        """Show which suites changed on disk: (their keys, their names, how many errors they have now)."""

    # Navigation: each shows a screen, and makes it when it is shown for the first time.

    def go(self, name: str) -> None:
        """Show a screen by its name in the table of screens."""

    def commands_elsewhere(self, screen: Screen[object]) -> Iterable[PaletteCommand]:
        """The actions of the other screens, each of which leads to its screen."""

    def offered_commands(self, screen: Screen[object]) -> Iterable[PaletteCommand]:
        """The palette's commands on a screen."""

    def choose_screen(self) -> None:
        """Let the person choose a screen from a list."""

    def visit(self, place: NotificationSource) -> None:
        """Show what a notice, or a row of a list, is about."""

    def keep_places(self) -> None:
        """Keep where the person is and what the screens show, for the next start."""

    def inspect(self, run_id: str, **how: Unpack[InspectTarget]) -> None:
        """Open a run in the workbench."""

    def tried_criterion(self) -> CriterionSpec | None:
        """The criterion that is tried in Inspect and is in no file yet, as it is edited there."""

    def show_difference(self, left: str, right: str) -> None:
        """Show a run in the workbench, beside another run step by step."""

    def compare(self, a: str, b: str, *, test: tuple[str, str] | None = None) -> None:
        """Compare two executions by id; `a` "" is the baseline, `b` "" the newest execution. `test`: the suite's key
        and the id of the test to begin with."""

    def compare_versions(self, suite_key: str, test: str, criterion: str, old: str, new: str) -> None:
        """Compare two versions of a criterion over the stored runs of its test."""

    def show_causes(self, execution: str = "", *, suites: Sequence[str] = (), tests: Sequence[str] = ()) -> None:
        """Show the causes of failures: of an execution, else of the newest runs of these suites (keys; none: of all)
        and tests (ids; none: of all)."""

    def show_execution(self, execution: str, *, back: bool = True) -> None:
        """Show the runs of an execution that is in the history; esc leads `back` to the screen that asked."""

    def show_ended(self, execution: str) -> None:
        """Show an execution that ended before it could be watched: of a recording its run, else its runs."""

    def show_test(self, file: str, test: str) -> None:
        """Show a test on the Suites screen; the suites are read again."""

    def edit_test(
        self, suite: str, test: str, *, criterion: str = "", starter: Starter | None = None, run: str = ""
    ) -> None:
        """Open a test in the Editor; `starter`: with this criterion added, as an edit that is not saved yet; `run`: the
        recorded run that it is judged on first."""

    def new_test(self, loaded: LoadedSuite) -> None:
        """Ask for a new test's name and prompt, write it into the suite's file, and open it in the Editor."""

    def new_suite(self) -> None:
        """Offer a suite for each agent that is found in the folder, else a form for one with a first test."""

    # Executions

    def start_run(self, paths: Sequence[Path], options: PlanOptions) -> None:
        """Start an execution in its own process and watch it; asks first where it would start programs."""

    def watch_code(self, request: WatchRequest) -> None:
        """Run recorded runs again after each save of their agents' code; asks first where that would start programs."""

    def start_fork(self, request: ForkRequest, then: Callable[[Live], None]) -> None:
        """Continue a run in a process of its own; `then` is called when it runs. Asks first where it would start
        programs."""

    def record(self) -> None:
        """Ask what program to record, record it in a process of its own, watch it, and open its run at its end."""

    def replay(self, run: str) -> None:
        """Ask with which program to replay a recorded run, and do it as `record` does."""

    def start_live(self, doing: str, start: Callable[[], Live]) -> None:
        """Start an execution in a process of its own with `start`, which may take long, and watch it."""

    def resume_execution(self, execution: str) -> None:
        """Run the rest of an execution and watch it. If a limit stopped it, ask for a new limit first."""

    def watch_live(self, live: Live, expected: Expected | None = None) -> None:
        """Show an execution that runs now. `expected`: what its plan said that it takes."""

    def choose_live(self, watched: str = "") -> None:
        """Choose which of the running executions to watch; the only one at once."""

    def count_running(self) -> None:
        """Look how many executions run now, for the strip; while there are some, look again."""

    def keys_wait_for(self, work: Worker[Any]) -> None:
        """Have the next keys wait a moment for work that decides what they act on."""

    def count_badges(self) -> None:
        """Count what waits (open causes, runs to review) for the strip, where the history has changed."""

    def strip_tabs(self) -> Sequence[Tab]:
        """The screens as the strip names them, with what waits on them; reads nothing."""

    def ask_trust(self, trust_questions: Sequence[TrustQuestion], doing: str, then: Callable[[bool], None]) -> None:
        """Ask whether programs of these folders may run; `then` is called when they may: True for this once, False
        when the folders are trusted now."""

    # Other programs

    def copy(self, text: str, what: str = "") -> None:
        """Give `text`, which may be shown, to the clipboard; with `what` it is, say how far it came."""

    def open_attachment(self, attachment: Attachment) -> None:
        """Open an image or file of a message in a program of this machine, or say why not."""

    def debug_run(self, run: str) -> None:
        """Debug the agent on a stored run in this terminal (`agenteval debug`); the app waits for it."""

    def open_editor(self, path: Path, line: int) -> None:
        """Open the person's own editor on a file at a line; the app waits for it."""


def services(node: DOMNode) -> Services:
    """What the app offers a screen or a widget of it (`agenteval_tui.tui.app` checks that it is all there)."""
    return cast("Services", node.app)
