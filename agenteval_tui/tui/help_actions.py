"""What helps to find one's way: jump mode, notifications to go to, themes to look at, help, the palette."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import events
from textual.app import SystemCommand
from textual.command import CommandPalette
from textual.screen import Screen

from agenteval_tui.tui.actions import in_scope, keys_of
from agenteval_tui.tui.execution_launcher import ExecutionLauncher
from agenteval_tui.tui.notification_log import NotificationSource
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.terminal.sheet import CommandSheet

if TYPE_CHECKING:
    from agenteval_tui.tui.jump_mode import Jump


class HelpController(ExecutionLauncher):
    """An app that one finds one's way in."""

    _jump: Jump | None = None

    # Jump mode

    def action_jump(self) -> None:
        """Letters on what can be seen; typing one goes there."""
        if self._jump is not None:
            self._end_jump()
            return
        from agenteval_tui.tui.jump_mode import Jump

        jump = Jump(self.screen)
        if jump.begin():
            self._jump = jump

    def _end_jump(self) -> None:
        if self._jump is not None:
            self._jump.end()
            self._jump = None

    async def on_event(self, event: events.Event) -> None:
        """While letters are shown every key is theirs; whatever else a person does ends that."""
        if self._jump is not None and not getattr(event, "is_forwarded", False):
            if isinstance(event, events.Key):
                if not self._jump.key(event.character):
                    self._jump = None
                return
            if isinstance(event, events.MouseDown | events.Resize):
                self._end_jump()
        await super().on_event(event)

    # Notifications

    def action_visit_notice(self) -> None:
        """Go to what the last notification was about."""
        place = self.notices.last_place()
        if place is None:
            self.say("There is no notification yet that leads somewhere.")
            return
        self.clear_notifications()
        self.visit(place)

    def action_list_notices(self) -> None:
        """The last notifications."""
        from agenteval_tui.tui.screens.notification_log import NoticesScreen

        def go(place: NotificationSource | None) -> None:
            if place is not None:
                self.visit(place)

        self.clear_notifications()
        self.push_screen(NoticesScreen(self.notices.all()), go)

    # Help and commands

    def action_command_palette(self) -> None:
        """Find a command or a place by its name."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandSheet())

    def action_help(self) -> None:
        """The keys of where you are."""
        from agenteval_tui.tui.screens.help import HelpScreen, pane_keys

        screen = self.screen

        def closed(find: bool | None) -> None:
            if find:
                self.action_command_palette()

        if isinstance(screen, FrameScreen) and screen.SCOPE:
            self.push_screen(HelpScreen(screen.SCOPE, self.keymap, pane_keys(screen)), closed)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action that applies here, for the palette."""
        if not isinstance(screen, FrameScreen):
            return
        said: set[str] = set()
        for action in in_scope(screen.SCOPE):
            if action.method == "app.command_palette" or action.method in said:
                continue
            said.add(action.method)

            async def act(method: str = action.method, on: FrameScreen = screen) -> None:
                await on.run_action(method)

            yield SystemCommand(action.description, f"{keys_of(action, self.keymap)}   {action.id}", act)
