"""What the app says: notes with the place that they are about, errors with their remedy, bugs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.notifications import Notification

from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError, path_error
from agenteval_tui.core.private_files import log_error
from agenteval_tui.tui.actions import key_of, with_keys
from agenteval_tui.tui.notification_log import Notices, NotificationSource
from agenteval_tui.tui.terminal.output_filters import displayable_note

MOST_STANDING = 2  # notes on the screen at once: the oldest goes
NAME = 60  # cells of a name in a note


class Notifier:
    """Says things, and remembers the latest notices (`notices`). `show` puts a note on the screen."""

    def __init__(self, show: Callable[[Notification], object], keymap: dict[str, str]) -> None:
        self.notices = Notices()
        self._show = show
        self._keymap = keymap
        self._standing: list[tuple[str, int, Notification]] = []  # what is shown: its text, how often, the note

    def say(self, message: str, *, severity: str = "information", place: NotificationSource | None = None) -> None:
        """A short note: what happened and where it is. With a `place`, one key goes there. `{suites.run}` and the like
        stand for the person's keys."""
        message = with_keys(message, self._keymap)
        self.notices.add(message, severity, place)
        if place is not None:
            message = f"{message}  {key_of('notice.go', self._keymap)} goes there."
        self._stand(message, severity)

    def say_error(self, error: AgentevalError) -> None:
        """What is wrong, where, and how to correct it."""
        said = with_keys(str(error), self._keymap)
        self.notices.add(said, "error", None)
        self._stand(said, "error")

    def _stand(self, message: str, severity: str) -> None:
        """Show a note. A note that is already shown is counted, not shown twice; only a few are shown at once."""
        times = 1
        kept: list[tuple[str, int, Notification]] = []
        for said, before, shown in self._standing:
            if shown.has_expired:
                continue
            if said == message:
                times += before
                shown.timeout = 0.0  # it goes when the next comes
            else:
                kept.append((said, before, shown))
        for _, _, shown in kept[: 1 - MOST_STANDING]:
            shown.timeout = 0.0
        one = displayable_note(message, times=times, severity=severity)
        self._standing = [*kept[1 - MOST_STANDING :], (message, times, one)]
        self._show(one)

    @property
    def is_standing(self) -> bool:
        """Whether a note is on the screen."""
        return any(not shown.has_expired for _, _, shown in self._standing)

    def forget_standing(self) -> None:
        """All notes were taken from the screen."""
        self._standing = []

    def say_bug(self, error: BaseException, doing: str) -> None:
        """An unexpected error: one sentence here, the traceback in a file. What says itself what is wrong, or a system
        error about a path that the user gave, is not a bug."""
        known = error if isinstance(error, AgentevalError) else path_error(error)
        if known is not None:
            self.say_error(known)
            return
        path = log_error(error, doing, directories.data_dir())
        kind = type(error).__name__
        kept = f"The traceback is in {path}" if path is not None else "Its traceback can't be written"
        self.say(f"A bug in agenteval ({doing}: {kind}: {error}). {kept}", severity="error")

    def say_changed(self, files: Iterable[tuple[str, str, int]]) -> None:
        """Say which suites changed on disk: (their keys, their names, how many errors they have now)."""
        changed = list(files)
        if not changed:
            return
        key, name, errors = changed[0]
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        wrong = f"; {errors} problem{'s' if errors > 1 else ''} in it" if errors else ""
        said = f"{one_line(name, NAME)}{more} changed on disk and was reloaded{wrong}."
        self.say(said, severity="warning" if errors else "information", place=NotificationSource("suite", key))
