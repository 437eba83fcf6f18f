"""What every screen has: a title line, a body, the keys that matter now; and asking for things without waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, TypeVar

from textual.binding import BindingType
from textual.events import Resize, ScreenResume
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from agenteval_tui.core.entry_points import ACTIONS, EntryPoint
from agenteval_tui.core.errors import AgentevalError, path_error
from agenteval_tui.tui.actions import footer, named_keys
from agenteval_tui.tui.pane_focus import PaneFocus
from agenteval_tui.tui.presenters.navigation_strip import StripState, strip_line, strip_zones
from agenteval_tui.tui.services import Services, services
from agenteval_tui.tui.styled_text import Cell, Line, fit, spread, width_of
from agenteval_tui.tui.terminal.mounting import drop_messages, is_there, is_too_late, mounted
from agenteval_tui.tui.widgets.line_block import LineBlock, TitleBar
from agenteval_tui.tui.workers import is_busy, start_worker, until_painted

T = TypeVar("T")

# Screens that are not a tab of the strip themselves, or have a different name there.
_TAB_OF = {"edit": "editor"}

RESTING_S = 0.12  # so long does a cursor stay on a row before what is beside the list follows it


@drop_messages(is_too_late)
class FrameScreen(Screen[None]):
    """The base of the work screens. `SCOPE` names the screen in the registry of actions."""

    SCOPE: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]] = []
    # Each screen says itself what has the focus; Textual's own choice would come after it and win.
    AUTO_FOCUS = ""
    NARROW = 120
    SMALLEST = 30  # columns, below which a screen shows little
    LOWEST = 10  # rows, below which it has no title line of its own
    _followed = 0.0
    _following: Callable[[], None] | None = None
    unanswered = 0
    """How many of its questions (`ask`) are being answered."""

    def __init__(self) -> None:
        super().__init__()
        self.pane_focus = PaneFocus(self, self.zoom_changed)
        self._was_shown = False

    def watch_focused(self, focused: Widget | None) -> None:
        """The focus moved: so may the tint of the panes' titles."""
        self.pane_focus.follow(focused)

    @property
    def agenteval(self) -> Services:
        """What the app offers."""
        return services(self)

    def zoom_changed(self) -> None:
        """A pane was zoomed, or the panes are side by side again. A screen that says itself which are displayed
        overrides it."""

    def title_bar(self) -> LineBlock:
        """The strip with all screens, and below it the screen's own title line where it has one (`heading`)."""
        return TitleBar(self._title_lines, id="title")

    def key_bar(self) -> LineBlock:
        """The last line: at most eight keys, those that matter now."""
        return LineBlock(self._key_lines, id="keys")

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]] | None:
        """What stands left and right in the screen's own title line; None: its panes' titles say it all, and there is
        no such line. Screens override it. Whether there is a line may not change while the screen fills: all that is
        below would move."""
        return None

    def tab(self) -> str:
        """Which screen of the strip is marked while this one is shown. Screens that show several override it."""
        return _TAB_OF.get(self.SCOPE, self.SCOPE)

    def retitle(self) -> None:
        """Update the title, if it changed."""
        if is_there(self):
            self.query_one("#title", LineBlock).retell()

    def rekey(self) -> None:
        """Update the keys that the last line names, if they changed."""
        self.query_one("#keys", LineBlock).retell()

    def keys(self) -> list[tuple[str, str, str]]:
        """(key, label, action) of what the last line names, most important first, help last.

        An action with `focused.` before it is the focused widget's. Two keys (`J K`) have two actions (`this|that`).
        """
        return footer(self.SCOPE, self.agenteval.keymap)

    def keys_without_runs(self) -> list[tuple[str, str, str]]:
        """What the last line of a screen about runs names while nothing has run."""
        return [*named_keys("go", ("suites",), self.agenteval.keymap), *footer(self.SCOPE, self.agenteval.keymap)[-1:]]

    def new_runs(self) -> None:
        """Runs have ended since the last look, while this screen is shown. Screens that count runs override it."""

    def revisited(self) -> None:
        """The person goes to this screen again, which is not the way back. Screens override it where what they show by
        themselves may be another thing by now."""

    @property
    def is_typing(self) -> bool:
        """Whether letters go into a text."""
        return self.focused is not None and self.focused.check_consume_key("n", "n")

    def leave_text(self) -> None:
        """Give the keys back to the screen after typing; the text stays. Screens with a text override it. It is called
        while somebody types, when they come from another screen: there, letters were keys."""

    def let_keys_work(self) -> None:
        """Who comes to a screen means its keys, also where they typed before they left it."""
        if self.is_typing:
            self.leave_text()

    def pane_scope(self) -> str:
        """The scope of the pane with the focus in the registry of actions, where it has keys of its own; "" where not.
        Screens override it."""
        return ""

    def step_back(self) -> bool:
        """Take `escape` for something inside the screen; False when there is nothing to leave."""
        return False

    def kept(self) -> dict[str, Any] | None:
        """What to know again at the next start, as plain data; None: what was kept before stays. Screens override."""
        return None

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take what an earlier start kept ({} for nothing), before the screen is mounted. Anything may be missing."""

    def show_soon(self, show: Callable[[], None]) -> None:
        """Show what follows a cursor: at once, but where the cursor is moved quickly only when it rests.

        A key that is held would else send all that stands beside the list for each row that is passed. Any other key
        finds shown what the cursor is on (`follow_now`).
        """
        now = time.monotonic()
        before, self._followed = self._followed, now
        if now - before > RESTING_S:
            # What was to be shown later is of a row before this one.
            self.workers.cancel_group(self, "follow")
            self._following = None
            show()
            return

        async def rested() -> None:
            await asyncio.sleep(RESTING_S)
            self._following = None
            show()

        self._following = show

        start_worker(self, rested, group="follow")

    def follow_now(self) -> None:
        """Show what `soon` would show in a moment."""
        show, self._following = self._following, None
        if show is not None:
            self.workers.cancel_group(self, "follow")
            show()

    def ask(
        self,
        work: Callable[[], T],
        then: Callable[[T], None],
        *,
        group: str = "ask",
        failed: Callable[[AgentevalError], None] | None = None,
        painted: bool = False,
        beside: bool = False,
    ) -> None:
        """Do `work` in a thread, then call `then` with its result here; a newer question of the group wins.

        An AgentevalError, or the system's error about a path, goes to `failed`, or is shown once as a notification. The
        next keys wait a moment for the answer, for they may act on it; not where it only adds to what is shown
        (`beside`). `painted`: as `beside`, and begin when the screen shows what it has now, for the thread takes half
        of the processor from painting.
        """

        async def answer() -> None:
            if painted:
                await until_painted(self)
            self.unanswered += 1
            try:
                result = await asyncio.to_thread(work)
            except (AgentevalError, OSError) as error:
                agenteval_error = error if isinstance(error, AgentevalError) else path_error(error)
                if agenteval_error is None:
                    raise
                # The answer may come before the screen is composed, or when it is being taken away.
                if await mounted(self):
                    (failed or self.agenteval.say_error)(agenteval_error)
                return
            finally:
                self.unanswered -= 1
            if await mounted(self):
                then(result)
                self.agenteval.count_badges()

        start_worker(self, answer, group=group, awaited=not (beside or painted))

    def still_writes(self, group: str) -> bool:
        """Is the change before still being written? Then say so: a second one would write beside it."""
        busy = is_busy(self, group)
        if busy:
            self.agenteval.say("The last change is still being written. Try again in a moment.")
        return busy

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A key that was pressed on the previous screen may arrive here first: the user has not seen what it would act
        on."""
        return is_there(self)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A worker that broke is a bug: say it once, keep the traceback, go on."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.agenteval.say_bug(event.worker.error, event.worker.name)

    def _title_lines(self, width: int) -> list[Line]:
        strip = strip_line(self._strip_state(), width)
        heading = self.heading(width) if self.size.height >= self.LOWEST else None
        if heading is None:
            return [strip]
        if width < self.SMALLEST:
            return [strip, fit(((" too small: ", "bold error"), (f"{width} columns", "")), width)]
        left, right = heading
        return [strip, spread(((" ", ""), *left), (*right, (" ", "")), width)]

    def _strip_state(self) -> StripState:
        app = self.agenteval
        return StripState(app.strip_tabs(), self.tab(), app.session.shows_all)

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Counts may have changed while another screen was shown."""
        # A screen that is shown for the first time has just got its styles: Textual needn't look for them again.
        event.refresh_styles = event.refresh_styles and self._was_shown
        self._was_shown = True
        self.retitle()

    def on_resize(self, event: Resize) -> None:
        """With few rows there is no title line."""
        self.retitle()

    def action_projects(self) -> None:
        """List the runs of this project, or of all; so on every screen, and at the next start."""
        session = self.agenteval.session
        session.everything = not session.everything
        self.agenteval.keep_places()
        self.retitle()
        self.projects_changed()

    def projects_changed(self) -> None:
        """The runs of other projects are wanted now. Screens that list runs override it."""

    def _key_lines(self, width: int) -> list[Line]:
        cells: list[Cell] = [(" ", "")]
        keys = self.keys()
        last = keys[-1:]
        room = width - 1 - sum(len(key) + len(label) + 3 for key, label, _ in last)
        for key, label, _ in keys[:-1]:
            entry: list[Cell] = [(key, "bold accent"), (" " + label, "dim"), ("  ", "")]
            if width_of(entry) > room:
                continue
            cells += entry
            room -= width_of(entry)
        for key, label, _ in last:
            cells += [(key, "bold accent"), (" " + label, "dim")]
        return [fit(cells, width)]

    def on_line_block_clicked(self, event: LineBlock.Clicked) -> None:
        """A click in the strip goes to a screen, lists them, or changes the scope; one on a key in the last line does
        what the key does."""
        if event.block.id == "title" and event.y == 0:
            self._click_strip(event)
        if event.block.id != "keys":
            return
        column = 0
        for text, _style in self._key_lines(event.block.size.width)[0]:
            if event.x < column + len(text):
                word = text.strip()
                for key, label, method in self.keys():
                    if method and word in (key, label):
                        # Two keys in one entry (`J K`) do one thing each.
                        both = method.split("|")
                        second = word == key and event.x - column >= (len(key) + 1) // 2
                        # Not exclusive: as with keys, a second click does not end what the first one does.
                        start_worker(
                            self, partial(self.do, both[-1] if second else both[0]), group="click", exclusive=False
                        )
                        return
                return
            column += len(text)

    def _click_strip(self, event: LineBlock.Clicked) -> None:
        for zone in strip_zones(self._strip_state(), event.block.size.width):
            if zone.start <= event.x < zone.end:
                if zone.target == "program":
                    self.agenteval.choose_screen()
                elif zone.target == "scope":
                    self.action_projects()
                else:
                    self.agenteval.go(zone.target)

    async def do(self, method: str) -> None:
        """Run an action of the pane that has the focus, else of the screen, as its key would."""
        pane = self.pane_focus.pane
        mine = pane is None or not hasattr(pane, f"action_{method.split('(')[0]}")
        await (self if mine or pane is None else pane).run_action(method)

    def action_extension(self, place: str) -> None:
        """Call an extension's function ("package.module:name") with this screen."""
        try:
            act = EntryPoint(ACTIONS, self.SCOPE, place, "").load_as("action")
        except AgentevalError as error:
            self.agenteval.say_error(error)
        else:
            act(self)
