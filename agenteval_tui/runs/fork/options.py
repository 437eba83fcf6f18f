"""The options of continuing a stored run, and of a fork."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import field

from agenteval_tui.core.options import MOST_CONCURRENCY, Options, limits

MAX_COST = "Stop when agents and judges have cost this much"


class ContinuationOptions(Options, frozen=True, kw_only=True):
    """What continuing a run may use. `trust`: programs and functions of the suite's folder may run, even if the folder
    is not trusted."""

    max_cost: Annotated[float, limits(f"{MAX_COST}.", "USD", gt=0)] | None = None
    concurrency: (
        Annotated[int, limits("How many continuations at the same time.", "N", ge=1, le=MOST_CONCURRENCY)] | None
    ) = None
    trust: Annotated[bool, limits("Let programs and Python functions in the suite's folder run.")] = False


class ForkRequest(ContinuationOptions, frozen=True):
    """A request to continue a run (its id) `n` times, from a step (counted from 1) or from the start (None), with
    these changes (`edits.CHANGES`). `sweep`: several changes, one branch for each; they override `changes`, and may
    have `at` and `label`. `agent`: a different agent continues the run; "": the run's own."""

    run: str
    at: Annotated[int, limits("The step: a message's number in `agenteval show RUN`.", "STEP", ge=1)] | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    n: Annotated[int, limits("Continuations per branch.", "N", ge=1, le=1000)] = 5
    sweep: tuple[Mapping[str, Any], ...] = ()
    agent: Annotated[str, limits("Let this agent of the run's suite continue, instead of the run's own.", "A")] = ""
