"""What judges and embedders may cost together, where somebody set a limit."""

from __future__ import annotations

import asyncio

from agenteval_tui.grading.remote_requests import Reply

COST = "--max-cost"


class SpendingLimit:
    """`most` US dollars, of which `spent` are spent. `unknown`: why nobody knows how much is.

    Take the `turn` for each question: who asks next must know what the answer before cost.
    """

    def __init__(self, most: float, spent: float = 0.0, unknown: str = "") -> None:
        self.turn = asyncio.Lock()
        self._most = most
        self._spent = spent
        self._unknown = unknown

    @property
    def refusal(self) -> str:
        """Why nobody may be asked any more, in words; "" where somebody may."""
        if self._unknown:
            return f"was not asked: {COST} can't be kept, because what {self._unknown} costs is not known"
        if self._spent >= self._most:
            return f"was not asked: {COST} is reached: ${self._spent:.4f} of ${self._most:g} are spent"
        return ""

    def count(self, name: str, reply: Reply) -> None:
        """What `name` said, and what that cost."""
        if reply.cost is not None:
            self._spent += reply.cost
        elif not reply.error or reply.input_tokens or reply.output_tokens:
            self._unknown = self._unknown or reply.model or name
