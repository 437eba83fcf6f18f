"""All comparisons with a second reading, and how many cases each had when the program was reviewed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import attributed
import figures
import imported
import relaxed
import saved
import text_match
import tool_check
import trajectory
import triaged
import verdicts
from tally import Tally


@dataclass(frozen=True, slots=True)
class Comparison:
    """`count`: the cases of the review. `brief`: so many in `make test`. `there`: false where it needs recordings that
    are not beside the project."""

    compare: Callable[[int, int], Tally]
    count: int
    brief: int
    there: bool = True


THERE = imported.DATA.is_dir()

COMPARISONS = {
    "textmatch": Comparison(text_match.compare, 59_156, 300),
    "toolcheck": Comparison(tool_check.compare, 71_145, 300),
    "trajectory": Comparison(trajectory.compare, 6_000, 200),
    "verdicts": Comparison(verdicts.compare, 20_000, 300),
    "statistics": Comparison(figures.compare, 6_800, 150),
    "relaxations": Comparison(relaxed.compare, 8_725, 30),
    "saves": Comparison(saved.compare, 4_355, 6),
    "attribution": Comparison(attributed.compare, 2_000, 30),
    "triage": Comparison(triaged.compare, 300, 4),
    "inspect": Comparison(imported.compare_inspect, 1, 1, THERE),
    "tau-bench": Comparison(imported.compare_tau, 1, 1, THERE),
    "damaged": Comparison(imported.compare_damaged, 72, 4, THERE),
}
