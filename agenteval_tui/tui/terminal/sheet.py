"""A sheet over a work screen, that is left once.

Textual's `Screen.dismiss` takes away whichever screen is on top. What a person does in quick succession (a double
click, escape twice) is handed to the sheet before the first of it has closed it: each would take away one more screen,
until none is left. Here a sheet takes away itself, once, and does nothing more that a person or its own widgets ask of
it. Every sheet of this program is a `Sheet`, and Textual's palette is opened as a `CommandSheet`.

With a Textual that is known no more (`textual_support.py`) a sheet still goes once; only what is asked of it meanwhile
may reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, ClassVar, TypeVar, cast

from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.color import Color
from textual.command import CommandList, CommandPalette
from textual.content import Content
from textual.errors import NoWidget
from textual.geometry import Size
from textual.message import Message
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, Screen
from textual.worker import Worker, WorkerState

from agenteval_tui.tui.actions import BY_ID, bindings, key_of
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.services import Services, services
from agenteval_tui.tui.terminal.mounting import DISPATCHES, drop_messages, is_there

T = TypeVar("T")


def if_answered(then: Callable[[T], object]) -> Callable[[T | None], None]:
    """What a sheet calls when it has gone: `then` with its answer, and nothing where a person left it without one."""

    def gone(answer: T | None) -> None:
        if answer is not None:
            then(answer)

    return gone


_ASKED = (events.InputEvent, events.Paste)
# A sheet may be closed before it was composed.
_OF_ITS_LIFE = (events.Compose, events.Mount, events.ScreenResume, events.Resize, events.Focus, events.Blur)


class _Dim(BackgroundScreen):
    """What lies under a sheet in the terminal's own colours, with which no veil can be mixed."""

    @classmethod
    def process_segments(cls, segments: Iterable[Segment], color: Color) -> Iterable[Segment]:
        """As Textual's, and dim."""
        for text, style, control in super().process_segments(segments, color):
            yield Segment(text, None if style is None else style + _DIM, control)


_DIM = Style(dim=True)


def _veiled(below: RenderableType) -> RenderableType:
    """The background that Textual has for a sheet, dim where it is not tinted."""
    if isinstance(below, BackgroundScreen) and below.color.a == 0:
        return cast("RenderableType", _Dim(below.screen, below.color))
    return below


class SheetExit:
    """How far a sheet is with its end: shown, done but under another sheet, gone."""

    def __init__(self, sheet: Screen[Any]) -> None:
        self._sheet = sheet
        self.done = False
        self.result: Any = None

    def begins(self, result: Any) -> bool:
        """It is to go, with this result. True when it goes now, False when another sheet lies over it."""
        self.done, self.result = True, result
        return self.on_top

    @property
    def on_top(self) -> bool:
        """Is it the screen that is shown?"""
        stack = self._sheet.app.screen_stack
        return bool(stack) and stack[-1] is self._sheet

    def drops(self, message: Message) -> bool:
        """Is this something that comes too late to be done?"""
        # Events of its life (a timer, its size) still reach it while it is done and waits under another sheet.
        is_asked = isinstance(message, _ASKED) or (message.bubble and not isinstance(message, events.Event))
        if self._taken_away():
            return is_asked or isinstance(message, _OF_ITS_LIFE)
        return is_asked and self.done

    def _taken_away(self) -> bool:
        # Where the app ends, its sheets are on the stack until all of them have gone.
        return self._sheet not in self._sheet.app.screen_stack or not self._sheet.is_attached


def _drops(sheet: Sheet[Any], message: Message) -> bool:
    return sheet._leaving.drops(message)


@drop_messages(_drops)
class Sheet(ModalScreen[T]):
    """The base of every sheet: dismissed once, whatever is asked of it meanwhile; escape closes it. `SCOPE` names the
    sheet in the table of actions, where it has keys of its own."""

    SCOPE: ClassVar[str] = "sheet"
    BINDINGS: ClassVar[list[BindingType]] = bindings("sheet")

    def __init__(self) -> None:
        super().__init__()
        self._leaving: SheetExit = SheetExit(self)

    @property
    def agenteval(self) -> Services:
        """What the app offers."""
        return services(self)

    def render(self) -> RenderableType:
        """What lies under it."""
        return _veiled(super().render())

    def edge(self, *entries: str | tuple[str, str], close: str = "") -> Keys:
        """The keys that the lower edge names, with the person's own, and last the one that closes the sheet.

        An entry is an action of the sheet by name, such an action with other words for it, or a key of a part of the
        sheet (a list, a form) with what it does. `close`: what closing is called now.
        """
        keymap = self.agenteval.keymap
        keys: list[tuple[str, str]] = []
        for entry in entries:
            name, words = (entry, "") if isinstance(entry, str) else entry
            action = BY_ID.get(f"{self.SCOPE}.{name}")
            keys.append((name, words) if action is None else (key_of(action.id, keymap), words or action.label))
        closes = BY_ID.get(f"{self.SCOPE}.close", BY_ID["sheet.close"])
        return (*keys, (key_of(closes.id, keymap), close or closes.label))

    def action_close(self) -> None:
        """Close it without a result. Sheets that have to stop something first override it."""
        self.dismiss(None)

    def leaves(self, result: T | None) -> None:
        """It goes now, with this result. Sheets override it for what is to be done once."""

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Take this sheet away, and no other screen. Nothing, when that was done already."""
        if self._leaving.done or self not in self.app.screen_stack:
            return AwaitComplete()
        # Before it goes: what is done once may look at its widgets.
        self.leaves(result)
        # Under another sheet it goes when that one has gone.
        return super().dismiss(result) if self._leaving.begins(result) else AwaitComplete()

    def call_after_refresh(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
        """As Textual's, but nothing is called for a sheet that has gone meanwhile."""

        def call() -> object:
            return callback(*args, **kwargs) if is_there(self) else None

        return super().call_after_refresh(call)

    def on_screen_resume(self) -> None:
        """The sheet above it is gone: it goes too, when it was done meanwhile."""
        if self._leaving.done and self._leaving.on_top:
            super().dismiss(self._leaving.result)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Before it is there it can only be closed."""
        return is_there(self) or action in ("close", "dismiss")

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A worker that broke: say it once; the sheet stays open."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.agenteval.say_bug(event.worker.error, event.worker.name)


class _Commands(CommandList):
    """The palette's list, in which a click may find the list of a moment ago."""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As Textual's. The layout knows then whether there is a scroll bar: it is not painted a second time for it."""
        height = super().get_content_height(container, viewport, width)
        most = self.styles.max_height
        if most is not None and self.styles.overflow_y == "auto":
            room = most.resolve(container, viewport) - self.gutter.height
            bar = height > room
            self.set_reactive(CommandList.show_vertical_scrollbar, bar)
            self.set_reactive(CommandList.virtual_size, Size(width - bar * self.scrollbar_size_vertical, height))
        return height

    def on_click(self, event: events.Click) -> None:
        """A click on a command that is not listed any more does nothing."""
        clicked = event.style.meta.get("option")
        # Textual would look for the option by its number, and break the app.
        if clicked is not None and not 0 <= clicked < self.option_count:
            event.prevent_default()

    # Textual's own look for the line of a command that the list has not laid out, or does not have.
    def action_page_up(self) -> None:
        """One page up; nothing where nothing is laid out."""
        with suppress(KeyError):
            super().action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        """One page down; nothing where nothing is laid out."""
        with suppress(KeyError):
            super().action_page_down()  # type: ignore[no-untyped-call]


class CommandSheet(CommandPalette):
    """Textual's palette, dismissed once."""

    def __init__(self) -> None:
        super().__init__(id="--command-palette")
        self._leaving: SheetExit = SheetExit(self)

    def render(self) -> RenderableType:
        """What lies under it."""
        return _veiled(super().render())

    def compose(self) -> ComposeResult:
        """As Textual's, with our list."""
        for widget in super().compose():
            yield _Commands() if type(widget) is CommandList else widget

    def on_mount(self) -> None:
        """Give it the title and the keys of a sheet."""
        keys = Content.assemble(
            ("enter", "bold $accent"),
            " do it   ",
            ("↑ ↓", "bold $accent"),
            " move   ",
            ("esc", "bold $accent"),
            " close",
        )
        above, below = self.query_one("#--input"), self.query_one(CommandList)
        above.border_title = Content("Commands")
        above.border_subtitle = below.border_subtitle = keys

    def dismiss(self, result: object = None) -> AwaitComplete:
        """Take the palette away, and no other screen."""
        if self._leaving.done or self not in self.app.screen_stack:
            return AwaitComplete()
        return super().dismiss(None) if self._leaving.begins(None) else AwaitComplete()

    if DISPATCHES:

        async def _dispatch_message(self, message: Message) -> None:
            if self._leaving.drops(message):
                return
            try:
                await super()._dispatch_message(message)
            except NoWidget:
                # Textual asks what lies under a click only when it handles it: the terminal may have shrunk since.
                if not isinstance(message, events.Click):
                    raise
