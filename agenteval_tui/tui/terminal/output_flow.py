"""Whether the terminal has what was sent to it: it is asked, behind a picture, where its cursor is.

A pseudo-terminal, sshd and the network take many kilobytes before a writer has to wait, so that a line seems quick that
is not. An answer may be lost, and what looks like one may be a key (Shift+F3 is `CSI 1;2R`): so the cursor is put
somewhere first, each time elsewhere, and only that place is an answer. See docs/decisions/0006.
"""

from __future__ import annotations

ASKED_FROM = 300
"""Bytes that are on their way when it is asked; less is soon there on any line."""
ON_ITS_WAY = 2_000
"""Bytes: with more, pictures wait for the answer."""
PATIENCE_S = 1.0
"""How long to wait for an answer, until answers have taken longer."""
MOST_PATIENCE_S = 12.0  # however slow answers are: one that was lost must not stop the picture for long
SLOW_S = 0.25
"""A line on which `SLOW_ANSWERS` answers after each other took longer is slow; one that came sooner ends that."""
SLOW_ANSWERS = 3
MISSES = 2
"""After this many unanswered questions, no more are asked."""
MOST_OPEN = 8
"""Questions whose answer may still come."""
WHERE = "\x1b[6n"
_MODIFIED_F3 = range(2, 17)
"""Columns of the first row that a key with that shape names: no question is asked there."""


class Arrival:
    """How much was sent, and how much of it has arrived. Times are seconds of one clock; places are 1-based."""

    def __init__(self) -> None:
        self._sent = self._arrived = 0  # bytes of pictures
        self._open: dict[tuple[int, int], tuple[int, float]] = {}  # by place: what was sent then, and when
        self._last: tuple[int, int] | None = None  # the question that pictures wait for
        self._patience = PATIENCE_S
        self._misses = 0
        self._number = 0
        self._answers = False
        self._slow = 0  # answers in a row that took long

    def forget(self) -> None:
        """The terminal has changed (its size, or another program used it): its state is unknown."""
        self._open.clear()
        self._last, self._misses, self._arrived = None, 0, self._sent
        self._slow = 0

    def sending(self, size: int, columns: int, rows: int, now: float) -> str:
        """So many bytes are sent now; gives the question to send behind them, "" for none."""
        self._sent += size
        self._look(now)
        if self._last is not None or self._misses >= MISSES or self._sent - self._arrived < ASKED_FROM:
            return ""
        return self._question(columns, rows, now)

    def asks_again(self, columns: int, rows: int, now: float) -> str:
        """The question to send by itself, because more was sent since the last one than may be on its way."""
        self._look(now)
        due = self._last is None and self._misses < MISSES and self._sent - self._arrived > ON_ITS_WAY
        return self._question(columns, rows, now) if due else ""

    def answered(self, row: int, column: int, now: float) -> bool:
        """The terminal says that its cursor is there. False: there was no question."""
        mark = self._open.pop((row, column), None)
        if mark is None:
            return False
        sent, at = mark
        # What was asked before it has arrived too, or never will.
        self._open = {place: entry for place, entry in self._open.items() if entry[0] > sent}
        # The question that pictures wait for is answered too, or was dropped.
        if self._last not in self._open:
            self._last = None
        self._arrived = max(self._arrived, sent)
        self._answers, self._misses = True, 0
        self._slow = self._slow + 1 if now - at > SLOW_S else 0
        # A slow line does not mean a line that loses data.
        self._patience = min(max(2 * (now - at), PATIENCE_S), MOST_PATIENCE_S)
        return True

    @property
    def is_slow(self) -> bool:
        """Have the last answers taken long?"""
        return self._slow >= SLOW_ANSWERS

    def is_behind(self, now: float) -> bool:
        """Has the terminal more to take than it should, as far as it says so?"""
        self._look(now)
        return self._answers and self._last is not None and self._sent - self._arrived > ON_ITS_WAY

    def is_awaited(self, now: float) -> bool:
        """Is an answer on its way that is not late? It would be typed to whoever has the terminal next."""
        self._look(now)
        return self._answers and self._last is not None

    def _look(self, now: float) -> None:
        """An answer that is late is not waited for."""
        if self._last is not None and now - self._open[self._last][1] >= self._patience:
            self._last = None
            self._misses += 1
            self._patience = PATIENCE_S

    def _question(self, columns: int, rows: int, now: float) -> str:
        # Each question has a column of its own, from the right, in the last row: so answers can be told apart, and from
        # the key.
        places = max(columns - _MODIFIED_F3.stop + 1, 1)
        place = (max(rows, 1), max(columns - self._number % places, 1))
        self._number += 1
        self._open[place] = (self._sent, now)
        # The oldest first; a late answer to it is then no answer.
        while len(self._open) > MOST_OPEN:
            del self._open[next(iter(self._open))]
        self._last = place
        return f"\x1b[{place[0]};{place[1]}H{WHERE}"


def modified_f3(row: int, column: int) -> int | None:
    """The number of the modifiers (2: shift, 5: ctrl) when a report of that place may be the key F3; else None."""
    return column if row == 1 and column in _MODIFIED_F3 else None
