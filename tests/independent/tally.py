"""What a comparison with a second reading gives: how many cases were compared, and the first that differ."""

from __future__ import annotations

from dataclasses import dataclass, field

SHOWN = 20


@dataclass(slots=True)
class Tally:
    """`cases`: comparisons made. `differences`: the first of those that differ, in words; `differing`: all of them."""

    cases: int = 0
    differing: int = 0
    differences: list[str] = field(default_factory=list)

    def same(self, holds: bool, *said: object) -> None:
        """Count one comparison; `said` names the case if it differs: the case, what was found, what was expected."""
        self.cases += 1
        if not holds:
            self.differing += 1
            if len(self.differences) < SHOWN:
                self.differences.append(" | ".join(map(repr, said)))


def near(left: float | None, right: float | None, tolerance: float = 1e-9) -> bool:
    """Whether two figures are the same but for rounding; None is only None."""
    if left is None or right is None:
        return left is right
    return abs(left - right) <= tolerance * max(1.0, abs(left), abs(right))
