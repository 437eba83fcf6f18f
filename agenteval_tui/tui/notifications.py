"""What the app says: notes with the place that they are about, errors with their remedy, bugs; and what was said
before, kept for a while."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct
from textual.notifications import Notification

from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError, path_error
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.private_files import log_error
from agenteval_tui.tui.actions import key_of, with_keys
from agenteval_tui.tui.styled_text import ELLIPSIS, cell_len, fit_text
from agenteval_tui.tui.terminal.output_filters import displayable_note

MOST = 100  # notices that are kept

Kind = Literal["suite", "test", "run", "execution", "file", "screen"]


class NotificationSource(Struct, frozen=True):
    """Something that the app can show: `ref` is its id, of a suite its key, and of a test `test` within that suite; of
    a file its path (it opens in the person's editor), of a screen its name."""

    kind: Kind
    ref: str
    test: str = ""


class Notice(Struct, frozen=True):
    """One thing that was said, when, and what it was about (None: nothing that can be gone to); `times`: how often."""

    text: str
    severity: str
    at_ms: int
    place: NotificationSource | None = None
    times: int = 1


class Notices:
    """The last notices, newest first."""

    def __init__(self) -> None:
        self._kept: deque[Notice] = deque(maxlen=MOST)

    def add(self, text: str, severity: str, place: NotificationSource | None) -> None:
        """Keep one. What was said right before, word for word, is kept once: the newer time counts."""
        times = 1
        if self._kept and (self._kept[0].text, self._kept[0].place) == (text, place):
            times += self._kept.popleft().times
        self._kept.appendleft(Notice(text, severity, now_ms(), place, times))

    def all(self) -> tuple[Notice, ...]:
        """What is kept, newest first."""
        return tuple(self._kept)

    def last_place(self) -> NotificationSource | None:
        """What the newest notice that is about something was about."""
        return next((notice.place for notice in self._kept if notice.place is not None), None)


MOST_STANDING = 2  # notes on the screen at once: the oldest goes
NAME = 60  # cells of a name in a note
_TIMES = 5  # cells that how often a note was said takes
_LEAST = 20  # cells of a note that are worth having before what comes behind them


class Notifier:
    """Says things, and remembers the latest notices (`notices`). `show` puts a note on the screen; it has one line of
    `room()` cells (0: as many as it needs). `typing()` says whether letters go into a text."""

    def __init__(
        self,
        show: Callable[[Notification], object],
        keymap: dict[str, str],
        room: Callable[[], int] = lambda: 0,
        typing: Callable[[], bool] = lambda: False,
    ) -> None:
        self.notices = Notices()
        self._show = show
        self._keymap = keymap
        self._room = room
        self._typing = typing
        self._standing: list[tuple[str, int, Notification]] = []  # what is shown: its text, how often, the note

    def say(self, message: str, *, severity: str = "information", place: NotificationSource | None = None) -> None:
        """A short note: what happened and where it is. With a `place`, one key goes there. `{suites.run}` and the like
        stand for the person's keys."""
        message = with_keys(message, self._keymap)
        self.notices.add(message, severity, place)
        goes = f"  {key_of('notice.go', self._keymap)}: go there" if place is not None else ""
        self._stand([message], severity, goes)

    def say_error(self, error: AgentevalError) -> None:
        """What is wrong, where, and how to correct it."""
        message = with_keys(str(error), self._keymap)
        self.notices.add(message, "error", None)
        # Where there is no room for all of it, the place goes first: what is wrong and what to do about it decide.
        remedy = f" ({error.fix})" if error.fix and not error.remedies else ""
        shorter = [with_keys(f"{error.what}{more}", self._keymap) for more in dict.fromkeys((remedy, ""))]
        self._stand([message, *shorter], "error")

    def _stand(self, ways: Sequence[str], severity: str, goes: str = "") -> None:
        """Show a note, the first of these ways to say it that has room. A note that is already shown is counted, not
        shown twice; only a few are shown at once."""
        times = 1
        standing: list[tuple[str, int, Notification]] = []
        for text, before, earlier in self._standing:
            if earlier.has_expired:
                continue
            if text == ways[0]:
                times += before
                earlier.timeout = 0.0  # it goes when the next comes
            else:
                standing.append((text, before, earlier))
        for _, _, earlier in standing[: 1 - MOST_STANDING]:
            earlier.timeout = 0.0
        key = "" if self._typing() else key_of("notice.list", self._keymap)
        more = f"  {key}: the rest" if key else ""
        room = self._room()
        message = note_line(ways, max(room - _TIMES, 1) if room and times > 1 else room, goes, more)
        note = displayable_note(message, times=times, severity=severity)
        self._standing = [*standing[1 - MOST_STANDING :], (ways[0], times, note)]
        self._show(note)

    @property
    def is_standing(self) -> bool:
        """Whether a note may be on the screen."""
        return bool(self._standing)

    def expire(self, note: Notification) -> Notification | None:
        """The time of a note is over. Returns the newest of the others that are on the screen."""
        note.timeout = 0.0
        self._standing = [entry for entry in self._standing if entry[2] is not note]
        return self._standing[-1][2] if self._standing else None

    def standing(self, message: str) -> Notification | None:
        """The note that says this, as `say` got it, if it may be on the screen."""
        text = with_keys(message, self._keymap)
        return next(
            (note for message_text, _, note in self._standing if message_text == text and not note.has_expired), None
        )

    def forget_standing(self) -> None:
        """All notes were taken from the screen."""
        self._standing = []

    def say_bug(self, error: BaseException, doing: str) -> None:
        """An unexpected error: one sentence here, the traceback in a file. What says itself what is wrong, or a system
        error about a path that the user gave, is not a bug."""
        agenteval_error = error if isinstance(error, AgentevalError) else path_error(error)
        if agenteval_error is not None:
            self.say_error(agenteval_error)
            return
        path = log_error(error, doing, directories.data_dir())
        kind = type(error).__name__
        location = f"The traceback is in {path}" if path is not None else "Its traceback can't be written"
        self.say(f"A bug in agenteval ({doing}: {kind}: {error}). {location}", severity="error")

    def say_changed(self, files: Iterable[tuple[str, str, int]]) -> None:
        """Say which suites changed on disk: (their keys, their names, how many errors they have now)."""
        changed = list(files)
        if not changed:
            return
        key, name, errors = changed[0]
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        wrong = f"; {errors} problem{'s' if errors > 1 else ''} in it" if errors else ""
        message = f"{one_line(name, NAME)}{more} changed on disk and was reloaded{wrong}."
        self.say(message, severity="warning" if errors else "information", place=NotificationSource("suite", key))


def note_line(ways: Sequence[str], room: int, goes: str = "", more: str = "") -> str:
    """The first of these ways to say something that fits into one line of `room` cells, with `goes` behind it; where
    none does, the last one, cut, and `more`. Without room as it is."""
    if room <= 0:
        return f"{ways[0]}{goes}"
    for way in ways:
        if "\n" not in way and cell_len(f"{way}{goes}") <= room:
            return f"{way}{goes}"
    shortest = one_line(ways[-1].partition("\n")[0], max(len(ways[-1]), 1))
    for end in (f"{more}{goes}", goes or more, ""):
        if room - cell_len(end) >= _LEAST:
            return f"{fit_text(f'{shortest}{ELLIPSIS}', room - cell_len(end))}{end}"
    return fit_text(shortest, room)
