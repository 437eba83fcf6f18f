"""What leaves the app: the person's own editor on a file, a text for the clipboard, a picture of the screen."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from textual.app import SuspendNotSupported

from agenteval_tui.core import directories
from agenteval_tui.core.atomic_write import PRIVATE, write_whole
from agenteval_tui.core.attachment_files import kept, media_type_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import free_name
from agenteval_tui.core.private_files import make_private
from agenteval_tui.core.terminal_sequences import TMUX_COMMAND, clipboard_sequence, said_of_copy, way_to_clipboard
from agenteval_tui.transcripts.model import Attachment
from agenteval_tui.tui.notifications import Notifier
from agenteval_tui.tui.terminal.terminal_app import TerminalApp
from agenteval_tui.tui.workers import call_after, start_worker

TMUX_S = 2.0  # so long may tmux take
_DAY_S = 86_400.0  # after which a file that a program was started on is removed
_ENDINGS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "application/pdf": ".pdf",
}
_TEXTS = frozenset(("text/plain", "text/csv", "text/markdown", "application/json"))


class ExternalPrograms:
    """Hands files and texts to other programs."""

    def __init__(self, app: TerminalApp, notifier: Notifier) -> None:
        self._app = app
        self._notifier = notifier

    def open_editor(self, path: Path, line: int) -> None:
        """The person's own editor on a file at a line; the app waits for it."""
        if self._app.awaits_terminal:
            # What the terminal answers now would be typed into the editor.
            call_after(self._app, 0.1, lambda: self.open_editor(path, line))
            return
        try:
            editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
        except ValueError as error:
            self._notifier.say_error(AgentevalError(f"$EDITOR is malformed: {error}", fix="close its quotes"))
            return
        if not editor:
            where = f"{path}:{line}"
            self._notifier.say_error(
                AgentevalError("no editor is set", where=where, fix="set $EDITOR, for example to vim")
            )
            return
        command = [*editor, f"+{line}", str(path)]
        try:
            with self._app.suspend():
                subprocess.run(command, check=False)  # noqa: S603  the person's own editor
        except OSError as error:
            self._notifier.say_error(AgentevalError(f"can't start {command[0]}", fix=str(error)))
        except SuspendNotSupported:
            self._notifier.say_error(AgentevalError("this terminal can't run an editor", where=f"{path}:{line}"))
        self._app.refresh()

    def debug(self, run: str, history: Path) -> None:
        """`agenteval debug` on a run of this history, in this terminal; the app waits for it, then for enter."""
        if self._app.awaits_terminal:
            call_after(self._app, 0.1, lambda: self.debug(run, history))
            return
        command = directories.own_command("agenteval_tui", "debug", run, "--db", str(history))
        try:
            with self._app.suspend():
                subprocess.run(command, check=False)  # noqa: S603  agenteval itself
                sys.stdout.write("\nPress enter to go back to agenteval. ")
                sys.stdout.flush()
                sys.stdin.readline()
        except OSError as error:
            self._notifier.say_error(AgentevalError("agenteval debug can't be started", fix=str(error)))
        except SuspendNotSupported:
            fix = f"run agenteval debug {run}{directories.db_option(history)}"
            self._notifier.say_error(AgentevalError("a debugger needs the terminal", fix=fix))
        self._app.refresh()

    def copy(self, text: str, what: str = "") -> None:
        """Give `text`, which may be shown, to the clipboard; with `what` it is, say how far it came."""
        way = way_to_clipboard(os.environ)

        def say(message: str) -> None:
            if what:
                self._notifier.say(f"{message}: {what}")

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

        # Not exclusive: the copy before may still wait for tmux.
        start_worker(self._app, copy_in_tmux, group="copy", exclusive=False)

    def open_attachment(self, attachment: Attachment) -> None:
        """An image or file of a message in the program that this machine has for it; a sentence where that can't be."""

        async def open_it() -> None:
            try:
                path = await asyncio.to_thread(copy_to_open, attachment)
            except AgentevalError as error:
                self._notifier.say_error(error)
                return
            program = opener(os.environ, sys.platform)
            if program is None:
                self._notifier.say(f"No program here can open this file. It is at {path}")
                return
            try:
                await asyncio.to_thread(_start, program, path)
            except OSError as error:
                message = f"can't start {program}"
                self._notifier.say_error(AgentevalError(message, where=str(path), fix=error.strerror or str(error)))
                return
            self._notifier.say(f"Opened: {path}")

        # Not exclusive: several may be opened one after another.
        start_worker(self._app, open_it, group="attachment", exclusive=False)


def _start(program: str, path: Path) -> None:
    """Start a program on a file and forget it. Raises OSError."""
    quiet = subprocess.DEVNULL
    subprocess.Popen(  # noqa: S603  the system's own, on a file of ours
        [program, str(path)], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )


def opener(environ: Mapping[str, str], platform: str) -> str | None:
    """The program that opens a file as a double click does; None where there is none, or no screen for it."""
    if platform == "darwin":
        return shutil.which("open")
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return None
    return shutil.which("xdg-open")


def copy_to_open(attachment: Attachment) -> Path:
    """A copy of the bytes under a name of ours, with the ending of what they really are. Names and types that came with
    them are somebody else's, and decide nothing. Raises `AgentevalError`: the bytes are not here, or are of a kind that
    is not opened.
    """
    data = kept(attachment.sha256) if attachment.sha256 else None
    if data is None and attachment.url:
        raise AgentevalError(
            "only its address is stored, not its content",
            where=attachment.url,
            fix="open it in a browser if you trust it",
        )
    if data is None:
        fix = "run the test again, or look in the imported file"
        raise AgentevalError("its content is not stored on this machine", fix=fix)
    ending = _ENDINGS.get(media_type_of(data)) or (".txt" if attachment.media_type in _TEXTS and _is_text(data) else "")
    if not ending:
        raise AgentevalError("agenteval does not open files of this type", fix="it opens images, PDFs and plain text")
    folder = directories.cache_dir() / "opened"
    path = folder / f"{attachment.sha256[:16]}{ending}"
    try:
        make_private(folder)
        for old in folder.iterdir():
            # The program that was started reads its file at any time, and nothing says when it has done so.
            if old.stat().st_mtime < time.time() - _DAY_S:
                old.unlink(missing_ok=True)
        write_whole(path, (data,), mode=PRIVATE, durable=False)
    except OSError as error:
        why = error.strerror or str(error)
        raise AgentevalError("the file for the other program can't be written", where=str(folder), fix=why) from error
    return path


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


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
        stem = free_name(f"agenteval-{name}", lambda stem: (folder / f"{stem}.svg").exists())
        path = folder / f"{stem}.svg"
        path.write_text(svg, encoding="utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        raise AgentevalError("the picture can't be written", where=str(folder), fix=why) from error
    return path
