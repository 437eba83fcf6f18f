"""What leaves the app: the person's own editor on a file, a picture of the screen."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from textual.app import SuspendNotSupported

from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.private_files import make_private
from agenteval_tui.tui.notifications import Notifier
from agenteval_tui.tui.terminal.terminal_app import TerminalApp


class ExternalPrograms:
    """Hands files to other programs."""

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
