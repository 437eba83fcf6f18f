"""Why a stored run ended as it did, with all that the history tells beside it."""

from __future__ import annotations

from agenteval_tui.analysis.blame.free_answer import Given
from agenteval_tui.analysis.blame.known import blame_beside
from agenteval_tui.analysis.explanation import Explanation, explanation_of
from agenteval_tui.analysis.lost_from_sight import lost_from_sight
from agenteval_tui.analysis.repetitions import divergence_beside
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store


def stored_explanation(store: Store, row: RunRow, criterion: str = "") -> Explanation:
    """The explanation of all criteria, where repetitions part, and which step the run was lost at; with `wanted` that
    of one criterion, without the step. Raises `AgentevalError`: there is no such criterion, or several are."""
    transcript, results = store.transcript(row.id), store.results(row.id)
    blame = None if criterion else blame_beside(store, row, Given(transcript, results))
    parted, labels = divergence_beside(store, row), store.labels([row.id])
    lost = lost_from_sight(transcript, results) if blame is None else blame.lost
    return explanation_of(
        row, results, transcript, labels, criterion=criterion, divergence=parted, blame=blame, lost=lost
    )
