"""What became of a question: continuations of a run, how each ended, and why."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agenteval_tui.core.groups import grouped
from agenteval_tui.grading.results import Outcome
from agenteval_tui.history import causes
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.model import AnyEdit, Purpose


class Answer(Struct, frozen=True):
    """One continuation. `failed`: the names of criteria that failed; `causes`: the signatures of why
    (`grading.causes`), or of the agent's error. `stored`: it was known, and cost nothing now."""

    run: RunRow
    failed: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    stored: bool = False

    @property
    def status(self) -> str:
        """passed, failed, needs_review or error."""
        return self.run.status

    @property
    def passed(self) -> bool:
        """Whether it passed."""
        return self.run.status == "passed"


class Outcomes(Struct, frozen=True):
    """The answers to one question. `step` (from 0) and `edits` say what was asked, `label` what a person calls it.

    `stopped`: why there are fewer answers than were wanted; "": there are not.
    """

    step: int
    edits: tuple[AnyEdit, ...]
    answers: tuple[Answer, ...]
    stopped: str = ""
    label: str = ""
    purpose: Purpose = "fork"

    @property
    def decided(self) -> int:
        """Answers that passed or failed."""
        return sum(answer.status in ("passed", "failed") for answer in self.answers)

    @property
    def passed(self) -> int:
        """Answers that passed."""
        return sum(answer.passed for answer in self.answers)

    @property
    def cost(self) -> float | None:
        """US dollars of the agents for answers that were not known before; None: not measured."""
        costs = [answer.run.cost for answer in self.answers if not answer.stored and answer.run.cost is not None]
        return sum(costs) if costs else None


def answers_of(store: Store, rows: Sequence[RunRow], *, stored: bool) -> list[Answer]:
    """Continuations with what failed in them, and why."""
    signatures = grouped(
        (failure.run, failure.signature) for failure in causes.failures(store, [row.rowid for row in rows])
    )
    return [
        Answer(
            row,
            tuple(result.criterion for result in store.results(row.id) if result.outcome is Outcome.FAILED),
            tuple(signatures.get(row.rowid, ())),
            stored,
        )
        for row in rows
    ]
