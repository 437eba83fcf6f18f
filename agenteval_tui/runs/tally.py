"""The figures of an execution: outcomes, tokens and cost, rate and estimate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agenteval_tui.runs.pace import Pace
from agenteval_tui.runs.verdicts import CANCELLED
from agenteval_tui.text.identity import now_ms

if TYPE_CHECKING:
    from agenteval_tui.runs.flight import Flight

Spent = tuple[int, int, float | None]
"""Input tokens, output tokens, cost in US dollars (None: never measured)."""


class Tally:
    """Counts what ended and what it cost; failed attempts are in the cost, they are paid for as well."""

    def __init__(self) -> None:
        self.pace = Pace()
        self._counts: dict[str, int] = {}
        self._spent: Spent = (0, 0, None)

    @property
    def ended(self) -> int:
        """How many runs have an outcome that is stored, or were cancelled."""
        return sum(self._counts.values())

    def landed(self, flight: Flight, status: str) -> None:
        """A run's agent is done."""
        self._spent = self._with([flight])
        if status != CANCELLED:
            self.pace.ended(flight.duration_ms / 1000)

    def count(self, status: str) -> None:
        """A run's end is in the store."""
        self._counts[status] = self._counts.get(status, 0) + 1

    def figures(
        self, *, total: int, queued: int, dropped: int, flights: Sequence[Flight], limit: int, paused: bool
    ) -> tuple[Any, ...]:
        """What a `Progress` event holds behind its number. `dropped` runs wait for nothing any more."""
        counts = self._counts
        now = now_ms()
        eta_s = self.pace.eta_s(queued, [(now - flight.started_ms) / 1000 for flight in flights], limit)
        return (
            total,
            queued,
            total - queued - dropped - self.ended,
            counts.get("passed", 0),
            counts.get("failed", 0),
            counts.get("error", 0),
            counts.get(CANCELLED, 0),
            counts.get("needs_review", 0),
            round(self.pace.rate, 3),
            None if eta_s is None else round(eta_s, 1),
            *self._with(flights),
            limit,
            paused,
        )

    def _with(self, flights: Sequence[Flight]) -> Spent:
        tokens_in, tokens_out, cost = self._spent
        for flight in flights:
            spent = flight.spent
            tokens_in += spent.input_tokens or 0
            tokens_out += spent.output_tokens or 0
            if spent.cost is not None:
                cost = (cost or 0.0) + spent.cost
        return tokens_in, tokens_out, cost
