"""What a run's program asked of models and was answered, as the history has it."""

from __future__ import annotations

from msgspec.structs import replace

from agenteval_tui.agents.recording.cassette import Cassette, of_documents
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store


def tape_of(store: Store, row: RunRow) -> Cassette:
    """What the run's program asked and was answered. Raises `AgentevalError` where that was not kept."""
    documents = store.tape(row.recorded)
    if not documents:
        raise AgentevalError(
            f"the model calls of run {short_id(row.id)} were not stored",
            where=f"run {row.id}",
            fix="record it with `agenteval record`, or with `capture: model` of its agent",
        )
    tape = of_documents(documents, f"run {short_id(row.id)}")
    # One run: whose it was does not matter any more.
    return replace(tape, exchanges=tuple([replace(exchange, session="") for exchange in tape.exchanges]))
