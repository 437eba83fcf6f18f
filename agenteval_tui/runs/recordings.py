"""Transcripts of a stored execution, as `replay` agents ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agenteval_tui.transcripts.model import Transcript

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store

_WITHOUT = ("queued", "running", "grading", "cancelled")


def recordings_of(store: Store, reference: str) -> Mapping[str, Sequence[Transcript]]:
    """The transcripts of the execution that `reference` names ("last", an id), by test, in order of repetition.

    Raises `AgentevalError` when there is no such execution.
    """
    rows = [row for row in store.runs_of_execution(store.execution(reference).id) if row.status not in _WITHOUT]
    rows.sort(key=lambda row: (row.variation != "", row.position))
    transcripts = dict(store.transcripts([row.id for row in rows]))
    found: dict[str, list[Transcript]] = {}
    for row in rows:
        if row.id in transcripts:
            found.setdefault(row.test_id, []).append(transcripts[row.id])
    return found
