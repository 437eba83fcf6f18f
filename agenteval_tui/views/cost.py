"""What is shown of what an execution used: agents by test and in all; judges and simulated users apart."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval_tui.analysis.costs import Costs, CostTotals
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.transcripts.model import Transcript, Usage
from agenteval_tui.views.model import Column, Row, Table, View, paragraphs, text


def costs_view(costs: Costs) -> View:
    """By test, by agent, by criterion, the dearest first; then all of it, and what it is without."""
    attempts = "attempt that was" if costs.failed_attempts == 1 else "attempts that were"
    unknown = costs.agents.count - costs.agents.priced if costs.agents.priced is not None else 0
    cached = f"{numbers.count(costs.cached, 'answer')} came from the history and cost nothing"
    notes = (
        text((f"with {costs.failed_attempts:,} failed {attempts} retried" if costs.failed_attempts else "", "dim")),
        text((cached if costs.cached else "", "dim")),
        text((f"the price of {numbers.count(unknown, 'run')} is not known" if unknown else "", "warn")),
    )
    columns = (Column(""), *(Column(head, "right") for head in ("runs", "input", "output", "cost", "a run")))
    return (Table(columns, tuple(_rows(costs))), *paragraphs(notes))


def _rows(costs: Costs) -> Iterator[Row]:
    for test in costs.by_test:
        yield _row(test.test, test.agents)
        if test.judges.count:
            yield _row("  its judges", test.judges)
        if test.users.count:
            yield _row("  its users", test.users)
    yield Row(((),))
    yield from (_row(f"agent {agent.name}", agent.spent) for agent in costs.by_agent)
    yield from (_row(f"judges of {criterion.name or 'criteria'}", criterion.spent) for criterion in costs.by_criterion)
    yield from (_row(f"simulated user ({user.name})", user.spent) for user in costs.by_user)
    yield Row(((),))
    yield _row("all agents", costs.agents)
    if costs.judges.count:
        yield _row("all judges", costs.judges)
    if costs.users.count:
        yield _row("all users", costs.users)
    parts = (costs.agents, costs.judges, costs.users)
    read, written = sum(part.input_tokens for part in parts), sum(part.output_tokens for part in parts)
    figures = (
        f"in all, {read + written:,} tokens",
        "",
        f"{read:,}",
        f"{written:,}",
        _dollars(costs.cost, costs.agents.whole),
        "",
    )
    yield Row(tuple(text((cell, "bold")) for cell in figures))


def _row(name: str, spent: CostTotals) -> Row:
    counted = spent.measured != 0
    read, written = (f"{amount:,}" if counted else "–" for amount in (spent.input_tokens, spent.output_tokens))
    figures = (name, f"{spent.count:,}", read, written, _dollars(spent.cost, spent.whole), _dollars(spent.mean_cost))
    return Row(tuple(map(text, figures)), name)


def _dollars(cost: float | None, whole: bool = True) -> str:
    return f"{'' if whole or not cost else '≥ '}{numbers.dollars(cost) or '–'}"


def spent_view(costs: Costs) -> View:
    """The same in a few lines, for the end of a run: each agent, each simulated user, and how many answers cost
    nothing. Nothing where nothing was measured."""
    named = [(agent.name, agent.spent) for agent in costs.by_agent]
    named += [(f"simulated user ({user.name})", user.spent) for user in costs.by_user]
    used = ((name, _used(spent.input_tokens, spent.output_tokens, spent.cost, spent.whole)) for name, spent in named)
    lines = [f"{one_line(name, 80)}: {usage_text}" for name, usage_text in used if usage_text]
    lines += [f"{numbers.count(costs.cached, 'answer')} from the history"] if costs.cached else []
    return paragraphs(text((line, "dim")) for line in lines)


def judges_view(replies: int, usage: Usage) -> View:
    """What judges and embedders took now, apart from the tested agents (what they had said before cost nothing);
    nothing where none was asked."""
    if not replies:
        return ()
    used = _used(usage.input_tokens or 0, usage.output_tokens or 0, usage.cost)
    summary = ", ".join(filter(None, (numbers.count(replies, "reply"), used)))
    return paragraphs([text((f"judges and others: {summary}", "dim"))])


def user_usage_text(usage: Usage) -> str:
    """What the simulated user of a run took: `simulated user: 200 + 60 tokens, $0.0100`; "" where nothing was
    measured."""
    return _named("simulated user", usage)


def usage_view(transcript: Transcript) -> View:
    """What the agent and the simulated user of a run took, a line each; nothing for a run without such a user."""
    user = user_usage_text(transcript.user_usage)
    lines = [_named("agent", transcript.usage), user] if user else []
    return paragraphs(text((line, "dim")) for line in lines)


def _named(who: str, usage: Usage) -> str:
    used = _used(usage.input_tokens or 0, usage.output_tokens or 0, usage.cost)
    return f"{who}: {used}" if used else ""


def _used(read: int, written: int, cost: float | None, whole: bool = True) -> str:
    """`200 + 60 tokens, $0.0100`: input and output. `whole`: all of the cost is known."""
    parts = [f"{read:,} + {written:,} tokens"] if read or written else []
    return ", ".join(filter(None, [*parts, numbers.dollars(cost, whole=whole)]))
