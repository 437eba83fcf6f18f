"""All comparisons with a second reading, and how many cases each had when the program was reviewed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import figures
import relaxed
import text_match
import tool_check
import trajectory
import verdicts
from tally import Tally


@dataclass(frozen=True, slots=True)
class Comparison:
    """`count`: the cases of the review. `brief`: so many in `make test`."""

    compare: Callable[[int, int], Tally]
    count: int
    brief: int


COMPARISONS = {
    "textmatch": Comparison(text_match.compare, 59_156, 300),
    "toolcheck": Comparison(tool_check.compare, 71_145, 300),
    "trajectory": Comparison(trajectory.compare, 6_000, 200),
    "verdicts": Comparison(verdicts.compare, 20_000, 300),
    "statistics": Comparison(figures.compare, 6_800, 150),
    "relaxations": Comparison(relaxed.compare, 8_725, 30),
}
