"""What helps to find one's way: jump mode, notifications to go to, help, the palette."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import App
from textual.command import CommandPalette

from agenteval_tui.tui.action import EVERYWHERE, Action
from agenteval_tui.tui.actions import ACTIONS, SCREENS_OF_PANES, beside_pane, in_scope, keys_of
from agenteval_tui.tui.navigation import Navigation
from agenteval_tui.tui.notifications import Notifier
from agenteval_tui.tui.screen_registry import sheet
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.services import PaletteCommand
from agenteval_tui.tui.terminal.sheet import CommandSheet, if_answered
from agenteval_tui.tui.workers import start_worker, until_painted

if TYPE_CHECKING:
    from agenteval_tui.tui.jump_mode import Jump

GROUPS = ("this screen", "go to", "settings")
"""Of the palette's commands, in this order; what is found of suites and history has groups of its own."""
_SCREEN_OF = {"edit": "editor"} | dict.fromkeys(SCREENS_OF_PANES, "inspect")
"""Screens that are not called like the scope of their actions."""
_SCOPE_OF = {"editor": "edit"}


class HelpController:
    """Helps to find one's way in an app."""

    def __init__(self, app: App[Any], notifier: Notifier, navigation: Navigation, keymap: Mapping[str, str]) -> None:
        self._app = app
        self._notifier = notifier
        self._navigation = navigation
        self._keymap = keymap
        self._jump: Jump | None = None

    # Jump mode

    def jump(self) -> None:
        """Letters on what can be seen; typing one goes there."""
        if self._jump is not None:
            self._end_jump()
            return
        # Of what is seen: what the key before it changed is to be painted first.
        start_worker(self._app.screen, self._begin_jump, group="jump", awaited=True)

    async def _begin_jump(self) -> None:
        # 8 ms with the views of transcripts, whose blocks are gone to: the first frame does not wait for it.
        from agenteval_tui.tui.jump_mode import Jump

        screen = self._app.screen
        await until_painted(screen)
        if self._jump is None and self._app.screen is screen:
            jump = Jump(screen)
            if jump.begin():
                self._jump = jump

    def _end_jump(self) -> None:
        if self._jump is not None:
            self._jump.end()
            self._jump = None

    def takes(self, event: events.Event) -> bool:
        """While letters are shown every key is theirs; whatever else a person does ends that."""
        if self._jump is not None and not self._jump.is_seen:
            self._end_jump()  # another screen was gone to
        if self._jump is not None and not getattr(event, "is_forwarded", False):
            if isinstance(event, events.Key):
                if not self._jump.key(event.character):
                    self._jump = None
                return True
            if isinstance(event, events.MouseDown | events.Resize):
                self._end_jump()
        return False

    # Notifications

    def visit_notice(self) -> None:
        """Go to what the last notification was about."""
        place = self._notifier.notices.last_place()
        if place is None:
            self._notifier.say("No notification leads anywhere yet.")
            return
        self._app.clear_notifications()
        self._navigation.visit(place)

    def list_notices(self) -> None:
        """The last notifications."""
        self._app.clear_notifications()
        self._app.push_screen(sheet("notices", self._notifier.notices.all()), if_answered(self._navigation.visit))

    # Help and commands

    def show_palette(self) -> None:
        """Find a command or a place by its name."""
        if not isinstance(self._app.screen, CommandPalette):
            self._app.push_screen(CommandSheet())

    def show_help(self) -> None:
        """The keys of where you are."""
        screen = self._navigation.top
        if screen is not None and screen.SCOPE:
            self._app.push_screen(sheet("help", screen, self._keymap), if_answered(lambda _: self.show_palette()))

    def commands(self, screen: FrameScreen) -> Iterable[PaletteCommand]:
        """Every action that applies on a screen, for the palette: those of the screen, the other screens, the rest."""
        methods: set[str] = set()
        pane = screen.pane_scope()
        own = [action for action in ACTIONS if pane and action.scope == pane]
        actions = [*own, *beside_pane(screen.SCOPE, pane, self._keymap), *in_scope(EVERYWHERE)]
        for action in sorted(actions, key=lambda action: GROUPS.index(_group_of(action))):
            if action.method == "app.command_palette" or action.method in methods:
                continue
            methods.add(action.method)

            async def act(method: str = action.method, on: FrameScreen = screen) -> None:
                await on.do(method)

            yield PaletteCommand(
                _group_of(action), action.description, keys_of(action, self._keymap), act, action.label
            )

    def commands_elsewhere(self, screen: FrameScreen) -> Iterable[PaletteCommand]:
        """Every action of the other screens: it leads to its screen, where it has something to act on."""
        for action in ACTIONS:
            name = _SCREEN_OF.get(action.scope, action.scope)
            if action.scope == EVERYWHERE or name == screen.tab():
                continue

            async def act(there: str = name) -> None:
                self._navigation.go(there)

            group = f"on {_SCOPE_OF.get(name, name)}"
            yield PaletteCommand(group, action.description, keys_of(action, self._keymap), act, action.label)


def _group_of(action: Action) -> str:
    if action.scope != EVERYWHERE:
        return "this screen"
    return "go to" if action.id.startswith("go.") or action.id in ("back", "jump", "notice.go") else "settings"
