"""The options of `blame`."""

from __future__ import annotations

from typing import Annotated

from agenteval_tui.core.options import limits
from agenteval_tui.runs.fork.options import MAX_COST, ContinuationOptions

SAMPLES = 8
"""How often a run is continued from a step where nothing else is asked for."""


class BlameOptions(ContinuationOptions, frozen=True, kw_only=True):
    """How a run is sampled. `samples` None: not at all, unless a limit on cost is given."""

    samples: (
        Annotated[
            int,
            limits("Also continue the run from each step, at most N times (8 is a good start).", "N", ge=2, le=200),
        ]
        | None
    ) = None
    max_cost: (
        Annotated[float, limits(f"{MAX_COST}; without --samples: sample, {SAMPLES} times.", "USD", gt=0)] | None
    ) = None
