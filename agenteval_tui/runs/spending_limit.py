"""The limit for the cost of judges and embedders together."""

from __future__ import annotations

import asyncio

from agenteval_tui.grading.remote_requests import Reply

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
