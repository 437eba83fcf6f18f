"""What the history knows of one run beside its transcript and results: labels, feedback, replies of judges, failed
attempts."""

from __future__ import annotations

from msgspec import Struct

from agenteval_tui.analysis.regrade import threshold_of
from agenteval_tui.analysis.repetitions import repetitions
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.history.feedback import Feedback
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import FailedAttempt, RunRow
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store


class RunFacts(Struct, frozen=True):
    """`labels`, `feedback` and `replies` oldest first; `repetitions`: runs of the same test, row and variation in its
    execution.

    0 repetitions: not known. `pass_threshold`: the test's, when it was run.
    """

    labels: tuple[Label, ...] = ()
    replies: tuple[StoredReply, ...] = ()
    attempts: tuple[FailedAttempt, ...] = ()
    repetitions: int = 0
    pass_threshold: float | None = None
    feedback: tuple[Feedback, ...] = ()


def facts_of_run(store: Store, row: RunRow) -> RunFacts:
    """Read them; a few queries."""

    return RunFacts(
        labels=tuple(store.labels([row.id])),
        replies=tuple(store.replies(row.id)),
        attempts=tuple(store.failed_attempts(row.id)),
        repetitions=len(repetitions(store, row, everywhere=False)),
        pass_threshold=threshold_of(store, row),
        feedback=tuple(store.feedback([row.id])),
    )


def last_labels(labels: tuple[Label, ...]) -> dict[str, Label]:
    """The label of the run as a whole that counts of each person, by name: the last one."""
    return {label.who: label for label in labels if label.whole}


def disagrees(label: Label, outcome: str) -> bool:
    """Whether the person contradicts the verdict. False for a run without a verdict."""
    return outcome in DECIDED and label.good != (outcome == "passed")
