"""How many runs of an agent may ask its server at once, as the server lets us know by refusing some (429).

Additive increase, multiplicative decrease, as in TCP, with two differences. One refusal among many answers says
something of that run and nothing of the server: only a second one soon after it cuts the number in half. And what was
on its way at the cut and is answered was taken all at once: the number does not stay below that. A burst of refusals
is one sign, not many: what was asked before the last cut does not cut again.
"""

from __future__ import annotations

BARREN = 10
"""So many bursts of refusals with no success between them: the server is not busy, it does not want us."""
LONE = 2
"""A refusal is a lone one when since the one before so many times the runs on their way were answered."""


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
        self._most = 0  # on their way at the last cut, without the one that was refused
        self._together = 0  # of them, answered
        self._since: float = float("inf")  # answered since the last refusal; the first one is a lone one too
        self._over = 0  # lone refusals just before

    def number(self, began: float) -> int:
        """To which burst a refusal of what was asked at `began` belongs, counted since anything was accepted."""
        return max(1, self._bursts) if began < self._cut_at else self._bursts + 1

    @property
    def barren(self) -> bool:
        """Whether it makes no sense to wait any longer."""
        return self._bursts >= BARREN

    def lone(self, busy: int) -> bool:
        """Whether a refusal now, with `busy` runs on their way, is one among many answers. It is to be told of by
        `passed_over` then, and else by `refused`."""
        return self._since >= LONE * max(busy, 1)

    def passed_over(self) -> None:
        """A lone refusal: the next one is not, if it comes soon."""
        self._since, self._over = 0, 1

    def refused(self, began: float, now: float, busy: int, wait_s: float) -> bool:
        """A run that asked at `began` was refused, `busy` were on their way, it shall wait `wait_s`.

        True when the limit was cut.
        """
        self.until = max(self.until, now + wait_s)
        self._since = 0
        if began < self._cut_at:
            return False
        self._cut_at = now
        self._accepted = self._together = 0
        self._most = busy - 1
        busy += self._over
        self._over = 0
        self._bursts += 1
        at_once = busy if self.limit is None else min(busy, self.limit)
        self.limit = max(1, at_once // 2)
        return True

    def accepted(self, began: float, wanted: int) -> bool:
        """A run that asked at `began` was served; `wanted` at once would be right. True when the limit was raised."""
        self._bursts = 0
        self._since += 1
        if self.limit is None:
            return False
        if began < self._cut_at:
            self._together = min(self._together + 1, self._most)
            raised = self._together > self.limit
            self.limit = max(self.limit, self._together)
            return raised
        self._accepted += 1
        if self._accepted < self.limit:
            return False
        self._accepted = 0
        self.limit += 1
        if self.limit >= wanted:
            self.limit = None
        return True
