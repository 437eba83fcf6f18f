"""What an execution may use, and whether one more run may begin."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from msgspec import Struct

from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.runs.plan.model import Limits

FIRST = 1
"""Until a run of an agent has ended, the cost of one is unknown: no more than this many are in flight."""


class Spending(Struct, frozen=True):
    """US dollars and tokens."""

    cost: float = 0.0
    tokens: int = 0


NOTHING = Spending()


class Budget:
    """Says whether a run may begin, so that what is in flight can end without going over a limit.

    For each run in flight, and for the one that would begin, as much is set aside as the dearest run of its agent has
    taken. If nothing is in flight, the mean is enough: the limit is exceeded by a part of this one run at most. Runs
    at once exceed it only if several take more than any run of their agent before them; what their requests cost more
    is held back by `RequestRoom`.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.limited = limits != Limits()

    def holds_up(
        self,
        used: Spending,
        ended: int,
        in_flight: Collection[Spending],
        seconds: float,
        most: Spending | None = NOTHING,
    ) -> str:
        """The limit that lets no run begin now, in words; "" when one may.

        `used` by what has ended, `ended` runs of which were paid for; `in_flight` is what those have used so far, or
        what is set aside for them; `seconds` since the start. `most`: what the dearest run of the next run's agent
        took; None: it is not known, of this agent or of one in flight.
        """
        limits = self._limits
        if limits.seconds is not None and seconds >= limits.seconds:
            return f"the limit of {limits.seconds:g} s"
        if limits.cost is not None and not _fits(
            limits.cost,
            used.cost,
            ended,
            [spending.cost for spending in in_flight],
            None if most is None else most.cost,
        ):
            return f"the limit of {dollars(limits.cost)}"
        if limits.tokens is not None and not _fits(
            limits.tokens,
            used.tokens,
            ended,
            [spending.tokens for spending in in_flight],
            None if most is None else most.tokens,
        ):
            return f"the limit of {limits.tokens:,} tokens"
        return ""

    def used_up(self, used: Spending) -> str:
        """The limit that lets no request be sent any more, in words; "" when one may. `used` by all runs until now."""
        limits = self._limits
        if limits.cost is not None and used.cost >= limits.cost:
            return f"the limit of {dollars(limits.cost)}"
        if limits.tokens is not None and used.tokens >= limits.tokens:
            return f"the limit of {limits.tokens:,} tokens"
        return ""


def _fits(limit: float, used: float, ended: int, in_flight: list[float] | list[int], most: float | None) -> bool:
    if used + sum(in_flight) >= limit:
        return False
    if in_flight and (not ended or most is None):
        return len(in_flight) < FIRST
    mean = used / ended if ended else 0.0
    if in_flight:
        mean = max(mean, most or 0.0)
    # A little more than the limit is within it: sums of prices are not exact.
    return used + mean + sum(max(cost, mean) for cost in in_flight) <= limit * (1 + 1e-9)


def dollars(amount: float) -> str:
    """An amount as people write it: $1.00, or $0.0005 where cents are too coarse."""
    return f"${amount:,.2f}" if amount >= 0.01 or amount == 0 else f"${amount:.6f}".rstrip("0")


COST = "--max-cost"


class SpendingLimit:
    """A limit of `most` US dollars, with `spent` dollars spent so far. `unknown`: the model whose cost is not known.
    `closed`: why nothing is asked at all, in words; "": questions are allowed.

    Take the `turn` for each question, because the next question must wait for the cost of the last answer.
    """

    def __init__(self, most: float = 0.0, spent: float = 0.0, unknown: str = "", closed: str = "") -> None:
        self.turn = asyncio.Lock()
        self._most = most
        self._spent = spent
        self._unknown = unknown
        self._closed = closed

    @property
    def refusal(self) -> str:
        """Why no more questions may be asked, in words; "" if they may."""
        if self._closed:
            return f"was not asked: {self._closed}"
        if self._unknown:
            return f"was not asked: {COST} can't be kept, because what {self._unknown} costs is not known"
        if self._spent >= self._most:
            return f"was not asked: {COST} is reached: ${self._spent:.4f} of ${self._most:g} are spent"
        return ""

    def count(self, name: str, reply: Reply) -> None:
        """Add the cost of a reply of `name`."""
        if reply.cost is not None:
            self._spent += reply.cost
        elif not reply.error or reply.input_tokens or reply.output_tokens:
            self._unknown = self._unknown or reply.model or name
