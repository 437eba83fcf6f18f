"""What leaves the app: the person's own editor on a file, a text for the clipboard, a picture of the screen."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from pathlib import Path

from textual.app import SuspendNotSupported

from agenteval_tui.core import directories
from agenteval_tui.core.clipboard import TMUX_COMMAND, clipboard_sequence, said_of_copy, way_to_clipboard
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.private_files import make_private
from agenteval_tui.tui.notifications import Notifier
from agenteval_tui.tui.terminal.terminal_app import TerminalApp
from agenteval_tui.tui.workers import start_worker

TMUX_S = 2.0  # so long may tmux take


class ExternalPrograms:
    """Hands files and texts to other programs."""

    def __init__(self, app: TerminalApp, notifier: Notifier) -> None:
        self._app = app
        self._notifier = notifier

    def open_editor(self, path: Path, line: int) -> None:
        """The person's own editor on a file at a line; the app waits for it."""
        if self._app.awaits_terminal:
            # What the terminal answers now would be typed into the editor.
            self._app.set_timer(0.1, lambda: self.open_editor(path, line))
            return
        try:
            editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
        except ValueError as error:
            self._notifier.say_error(AgentevalError(f"$EDITOR can't be read: {error}", mend="close its quotes"))
            return
        if not editor:
            where = f"{path}:{line}"
            self._notifier.say_error(
                AgentevalError("no editor is set", where=where, mend="set $EDITOR, for example to vim")
            )
            return
        command = [*editor, f"+{line}", str(path)]
        try:
            with self._app.suspend():
                subprocess.run(command, check=False)  # noqa: S603  the person's own editor
        except OSError as error:
            self._notifier.say_error(AgentevalError(f"{command[0]} can't be started", mend=str(error)))
        except SuspendNotSupported:
            self._notifier.say_error(
                AgentevalError("this terminal can't be given to an editor", where=f"{path}:{line}")
            )
        self._app.refresh()

    def copy(self, text: str, what: str = "") -> None:
        """Give `text`, which may be shown, to the clipboard; with `what` it is, say how far it came."""
        way = way_to_clipboard(os.environ)

        def say(said: str) -> None:
            if what:
                self._notifier.say(f"{said}: {what}")

        if way != "tmux":
            self._app.keep_clipboard(text, clipboard_sequence(text, way))
            say(said_of_copy(way))
            return

        self._app.keep_clipboard(text)

        async def copy_in_tmux() -> None:
            if await asyncio.to_thread(_copied_by_tmux, text):
                say(said_of_copy("tmux"))
            else:
                # tmux may be one of another machine, or an old one: the terminal is asked, and tmux may let it through.
                self._app.keep_clipboard(text, clipboard_sequence(text, "terminal"))
                say(said_of_copy("terminal"))

        start_worker(self._app, copy_in_tmux, group="copy", exclusive=False)


def _copied_by_tmux(text: str) -> bool:
    """Did tmux take the text? Waits for it: call it in a thread."""
    try:
        done = subprocess.run(  # noqa: S603  the tmux that this program is in
            TMUX_COMMAND, input=text.encode("utf-8"), capture_output=True, timeout=TMUX_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def save_picture(svg: str, name: str) -> Path:
    """Write a picture of the screen `name` into the data folder: a project holds what its people put there.

    Raises `AgentevalError` where nothing can be written.
    """
    folder = directories.data_dir()
    try:
        make_private(folder)
        path = _free_name(folder / f"agenteval-{name}.svg")
        path.write_text(svg, encoding="utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        raise AgentevalError("the picture can't be written", where=str(folder), mend=why) from error
    return path


def _free_name(path: Path) -> Path:
    number = 1
    free = path
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free
