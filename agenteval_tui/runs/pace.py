"""How far an execution is and when it will end."""

from __future__ import annotations

from collections import deque

WINDOW_S = 15.0
ENOUGH = 5


class Pace:
    """Counts ended runs over time. Times are seconds of any one steady clock."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()
        self._mean_s: float | None = None

    def ended(self, duration_s: float) -> None:
        """A run of this length ended. Later ones count more: agents get slower or faster."""
        if self._mean_s is None:
            self._mean_s = duration_s
        else:
            self._mean_s += (duration_s - self._mean_s) * 0.1

    def sample(self, now: float, done: int) -> None:
        """`done` runs have ended by `now`; to be told a few times a second."""
        self._samples.append((now, done))
        while len(self._samples) > 2 and now - self._samples[0][0] > WINDOW_S:
            self._samples.popleft()

    def forget(self) -> None:
        """What came before says nothing of what comes (after a pause, or with another concurrency)."""
        self._samples.clear()

    @property
    def rate(self) -> float:
        """Ended runs a second over the last seconds; 0 when there is nothing to tell it from."""
        if len(self._samples) < 2:
            return 0.0
        (first, before), (last, after) = self._samples[0], self._samples[-1]
        return (after - before) / (last - first) if last > first else 0.0

    def eta_s(self, queued: int, ages_s: list[float], concurrency: int) -> float | None:
        """Seconds until `queued` runs and those in flight (running since `ages_s`) have ended; None: not known.

        From the rate where enough runs have ended lately, else from their mean length.
        """
        left = queued + len(ages_s)
        if left == 0:
            return 0.0
        if self._samples and self._samples[-1][1] - self._samples[0][1] >= ENOUGH and self.rate > 0:
            return left / self.rate
        if self._mean_s is None:
            return None
        mean = self._mean_s
        work = queued * mean + sum(max(mean - age, 0.0) for age in ages_s)
        return work / max(1, min(concurrency, left))
