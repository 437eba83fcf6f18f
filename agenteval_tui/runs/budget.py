"""What an execution may use, and whether one more run may begin."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from agenteval_tui.runs.plan.model import Limits

FIRST = 4
"""Until a run has ended, the cost of one is unknown: no more than this many start."""


class Spending(Struct, frozen=True):
    """US dollars and tokens."""

    cost: float = 0.0
    tokens: int = 0


class Budget:
    """Says whether a run may begin, so that what is in flight can end without going over a limit.

    For each run in flight, and for the one that would begin, the mean of the ended ones is set aside. It is an
    estimate: runs that take much more than those before them may go over.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.limited = limits != Limits()

    def holds_up(self, used: Spending, ended: int, in_flight: Collection[Spending], seconds: float) -> str:
        """The limit that lets no run begin now, in words; "" when one may.

        `used` by what has ended, `ended` runs of which were paid for; `in_flight` is what those have used so far;
        `seconds` since the start.
        """
        limits = self._limits
        if limits.seconds is not None and seconds >= limits.seconds:
            return f"the limit of {limits.seconds:g} s"
        if limits.cost is not None and not _fits(limits.cost, used.cost, ended, [one.cost for one in in_flight]):
            return f"the limit of {dollars(limits.cost)}"
        if limits.tokens is not None and not _fits(limits.tokens, used.tokens, ended, [o.tokens for o in in_flight]):
            return f"the limit of {limits.tokens:,} tokens"
        return ""


def _fits(limit: float, used: float, ended: int, in_flight: list[float] | list[int]) -> bool:
    if used + sum(in_flight) >= limit:
        return False
    if not ended:
        return len(in_flight) < FIRST
    mean = used / ended
    # A little more than the limit is within it: sums of prices are not exact.
    return used + mean + sum(max(one, mean) for one in in_flight) <= limit * (1 + 1e-9)


def dollars(amount: float) -> str:
    """An amount as people write it: $1.00, or $0.0005 where cents are too coarse."""
    return f"${amount:,.2f}" if amount >= 0.01 or amount == 0 else f"${amount:.6f}".rstrip("0")
