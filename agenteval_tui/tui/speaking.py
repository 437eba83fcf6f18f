"""What the app says: notes with the place that they are about, errors with their remedy, bugs."""

from __future__ import annotations

from typing import Any

from agenteval_tui import places
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.actions import key_of
from agenteval_tui.tui.in_order import InOrder
from agenteval_tui.tui.notices import Notices, Place
from agenteval_tui.tui.safe import say


class Speaking(InOrder):
    """An app that says things, and remembers the last of them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.notices = Notices()
        self.keymap: dict[str, str] = {}

    def say(self, message: str, *, severity: str = "information", place: Place | None = None) -> None:
        """A short note: what happened and where it is. With a `place`, one key goes there."""
        self.notices.add(message, severity, place)
        if place is not None:
            message = f"{message}  {key_of('notice.go', self.keymap)} goes there."
        say(self, message, severity=severity)

    def say_error(self, error: AgentevalError) -> None:
        """What is wrong, where, and how to mend it."""
        self.notices.add(str(error), "error", None)
        say(self, str(error), severity="error")

    def say_bug(self, error: BaseException, doing: str) -> None:
        """Something broke that should not: one sentence here, the traceback in a file."""
        import traceback

        path = places.data_dir() / "errors.log"
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with path.open("a", encoding="utf-8", errors="backslashreplace") as log:
                log.write(f"while: {doing}\n" + "".join(traceback.format_exception(error)) + "\n")
        except OSError:
            pass
        kind = type(error).__name__
        self.say(f"A bug in agenteval ({doing}: {kind}: {error}). The traceback is in {path}", severity="error")
