"""What a run's program asked of models and was answered, as the history has it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.prices import Cost
from agenteval_tui.agents.recording.cassette import Cassette, of_documents
from agenteval_tui.agents.recording.exchange import Exchange
from agenteval_tui.agents.recording.protocols import read_reply, read_request
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


class ReplayPrice(Struct, frozen=True):
    """The most that a replay can ask of servers, from its recording: the case that already the first request differs.
    `cost`: US dollars; None: not known."""

    requests: int
    tokens: int
    cost: float | None


def replay_price(exchanges: Sequence[Exchange], cost: Cost) -> ReplayPrice:
    """The price of all requests of a recording, if servers answer them again."""
    requests = tokens = 0
    dollars: float | None = 0.0
    for exchange in exchanges:
        request = read_request(exchange.question)
        if request is None:
            continue
        reply = read_reply(exchange.question, exchange.answer)
        used = reply.usage.counted_tokens
        requests, tokens = requests + 1, tokens + used
        took = cost(reply.model or request.model, reply.usage) if used else None
        dollars = None if took is None or dollars is None else dollars + took
    return ReplayPrice(requests, tokens, dollars)
