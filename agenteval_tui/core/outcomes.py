"""How runs and checks end: the one list of outcomes, and of the statuses of runs that are made of it."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """Of a metric, a criterion or a run. `error`: the check itself could not run; never a fail, never a pass."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    NEEDS_REVIEW = "needs_review"


OUTCOMES = tuple(map(str, Outcome))
ENDED = (*OUTCOMES, "cancelled")
"""The statuses of a run that has ended."""
STATUSES = (*OUTCOMES, "queued", "running", "grading", "cancelled")
"""All statuses of a run."""
DECIDED = (str(Outcome.PASSED), str(Outcome.FAILED))
"""How a run ended that has a verdict."""
COMPLETED = (*DECIDED, str(Outcome.ERROR), str(Outcome.NEEDS_REVIEW))
"""How a run ended that took place: neither skipped nor cancelled."""
