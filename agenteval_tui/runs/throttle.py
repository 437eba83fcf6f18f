"""How many runs of an agent may ask its server at once, as the server lets us know by refusing some (429).

Additive increase, multiplicative decrease, as in TCP: a refusal halves the number, as many accepted runs as the number
raise it by one. A burst of refusals is one sign, not many: what was asked before the last cut does not cut again.
"""

from __future__ import annotations

BARREN = 10
"""So many bursts of refusals with no success between them: the server is not busy, it does not want us."""


class Throttle:
    """One agent's limit. Times are seconds of any one steady clock.

    `limit` is the number of runs at once, None while nothing was refused (or all has been taken back); no run begins
    before `until`.
    """

    def __init__(self) -> None:
        self.limit: int | None = None
        self.until = 0.0
        self._cut_at = float("-inf")
        self._accepted = 0
        self._bursts = 0

    def number(self, began: float) -> int:
        """To which burst a refusal of what was asked at `began` belongs, counted since anything was accepted."""
        return max(1, self._bursts) if began < self._cut_at else self._bursts + 1

    @property
    def barren(self) -> bool:
        """Whether it makes no sense to wait any longer."""
        return self._bursts >= BARREN

    def refused(self, began: float, now: float, busy: int, wait_s: float) -> bool:
        """A run that asked at `began` was refused, `busy` were on their way, it shall wait `wait_s`.

        True when the limit was cut.
        """
        self.until = max(self.until, now + wait_s)
        if began < self._cut_at:
            return False
        self._cut_at = now
        self._accepted = 0
        self._bursts += 1
        at_once = busy if self.limit is None else min(busy, self.limit)
        self.limit = max(1, at_once // 2)
        return True

    def accepted(self, began: float, wanted: int) -> bool:
        """A run that asked at `began` was served; `wanted` at once would be right. True when the limit was raised."""
        self._bursts = 0
        if self.limit is None or began < self._cut_at:
            return False
        self._accepted += 1
        if self._accepted < self.limit:
            return False
        self._accepted = 0
        self.limit += 1
        if self.limit >= wanted:
            self.limit = None
        return True
