"""How reliable each kind of evidence is: of the measured failures in which it was the strongest evidence, in how many
it named the step at which the run went wrong.

A step is called decisive for evidence of a kind that named the right one in at least four of five failures of each set
in which it named any, and whose share over all sets is surely above one half: the lower end of its 95 % interval is.
That takes four cases without a mistake, or more with one: two or three right answers prove nothing. Evidence of another
kind, or of one that was never measured, is shown without that claim. `measurements` has the counts.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agenteval_tui.analysis.blame.measurements import MEASUREMENTS
from agenteval_tui.analysis.blame.model import ClueCode
from agenteval_tui.analysis.statistics import wilson
from agenteval_tui.core.document import Count, Document, Share

FOUR_OF_FIVE = 0.8
_ONE_HALF = 0.5

Counts = tuple[int, int]
"""(right, all)"""


class Reliability(Document, frozen=True):
    """How often evidence of a kind named the right step, over all sets of failures."""

    right: Count
    n: Annotated[Count, Meta(description="measured failures in which it was the strongest evidence")]
    low: Annotated[Share, Meta(description="the lower end of the 95 % interval of the share")]
    high: Share


def reliability_of(code: ClueCode) -> Reliability | None:
    """The measured reliability of a kind of evidence; None: it was never the strongest in a measured failure."""
    counts = MEASUREMENTS.get(code)
    return None if counts is None else _of_all(list(counts.values()))


def decides(code: ClueCode) -> bool:
    """Whether the step that evidence of this kind names is called decisive."""
    return is_reliable(list(MEASUREMENTS.get(code, {}).values()))


def is_reliable(counts: list[Counts]) -> bool:
    """The rule, on the counts of each set in which a kind of evidence named any step."""
    if not counts:
        return False
    return all(right >= FOUR_OF_FIVE * n for right, n in counts) and _of_all(counts).low > _ONE_HALF


def _of_all(counts: list[Counts]) -> Reliability:
    right, n = sum(right for right, _ in counts), sum(n for _, n in counts)
    return Reliability(right, n, *wilson(right, n))
