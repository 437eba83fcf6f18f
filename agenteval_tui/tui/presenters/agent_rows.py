"""Configured agents in lines: a row each, and one in full with what its check found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from agenteval_tui.agents.base import CheckReport
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.numbers import count, short_dollars, short_duration, token_count
from agenteval_tui.runs.agent_factory import Configured
from agenteval_tui.runs.agent_surroundings import Surrounding
from agenteval_tui.runs.chat_session import Conversation
from agenteval_tui.tui.presenters.status_style import glyph, mark
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import (
    Cell,
    Line,
    cell_len,
    error_lines,
    fit,
    fit_text,
    indented,
    left,
    paragraph,
    right,
    spread,
    width_of,
)
from agenteval_tui.views.agents import agent_in_full, report_view

_STATE = 13  # cells of what is known of an agent
WIDE = 90  # cells from which a row says where its agent is defined


class AgentRows:
    """A row source: the agents that match the words of `query`. `reports` are those of checks by agent key; None while
    one is going on."""

    def __init__(
        self, agents: Sequence[Configured], reports: Mapping[str, CheckReport | None], query: str = ""
    ) -> None:
        words = query.casefold().split()
        self.agents = [agent for agent in agents if all(word in _words(agent) for word in words)]
        self._reports = reports
        self._places = {configured.key: place for place, configured in enumerate(self.agents)}
        names = Counter(agent.name for agent in agents)
        self._of_suites = {agent.key for agent in agents if names[agent.name] > 1}  # a name alone says not which
        self._names = min(max((cell_len(agent.name) for agent in self.agents), default=0), 26)

    def count(self) -> int:
        """How many rows there are."""
        return len(self.agents)

    def key(self, index: int) -> str:
        """What the row is."""
        return self.agents[index].key

    def index_of(self, key: str) -> int | None:
        """The row of an agent."""
        return self._places.get(key)

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Its state, name, kind, what it talks to; where it stands."""
        configured = self.agents[index]
        start: list[Cell] = [(" ", ""), state_mark(configured.key, self._reports), (" ", "")]
        start.append((left(one_line(configured.name, 60), self._names), ""))
        room = width - width_of(start) - 2 - _STATE - 1  # beside the name, which is not cut
        start += [(f"  {left(configured.kind, 9)}", "dim"), (one_line(configured.address, 200), "dim")]
        end: list[Cell] = []
        if width >= WIDE:
            end.append((f"{one_line(configured.file.name, 40)}:{configured.line}", "dim"))
        elif configured.key in self._of_suites:
            end.append((fit_text(one_line(configured.suite or "your own", 30), max(room, 0)), "dim"))
        end.append((right(state_text(configured.key, self._reports), _STATE), "dim"))
        return spread(start, (*end, (" ", "")), width)


def state_mark(key: str, reports: Mapping[str, CheckReport | None]) -> Cell:
    """Checked and healthy, checked and not, being checked, not checked."""
    if key not in reports:
        return glyph("cancelled"), "dim"
    report = reports[key]
    return mark("running") if report is None else mark("passed" if report.ok else "error")


def state_text(key: str, reports: Mapping[str, CheckReport | None]) -> str:
    """The same in words; of a healthy one how long its answer took."""
    if key not in reports:
        return "not checked"
    report = reports[key]
    if report is None:
        return "checking …"
    return (short_duration(report.latency_ms) or "healthy") if report.ok else "not healthy"


def agent_lines(
    configured: Configured,
    reports: Mapping[str, CheckReport | None],
    trusting: Sequence[str],
    keys: Sequence[tuple[str, bool]],
    width: int,
    check_key: str,
    around: Sequence[Surrounding] = (),
) -> list[Line]:
    """An agent in full, with its last check or the one that is going on. `check_key` checks it."""
    lines = [*view_lines(agent_in_full(configured, keys, trusting, around), width), ()]
    if configured.key not in reports:
        message = f"Not checked. Press {check_key} to check that it responds, accepts the key, streams and calls tools."
        return [*lines, *paragraph(message, width, "dim")]
    report = reports[configured.key]
    if report is None:
        return [*lines, (mark("running"), (" checking …", "running"))]
    return [*lines, *view_lines(report_view(report), width)]


def chat_heading(configured: Configured | None, chat: Conversation | None, width: int) -> Line:
    """Over the conversation: with whom, at which address, how long."""
    if configured is None:
        return ()
    turns = f"   {count(len(chat.turns), 'turn')}" if chat is not None and chat.turns else ""
    where = fit(((one_line(f"{configured.kind}  {configured.address}", 200), "dim"),), max(width - len(turns), 1))
    return (*where, (turns, "dim"))


def chat_status(chat: Conversation | None, waiting_ms: float | None, width: int) -> Line:
    """Under the conversation: what happens, or what the last turn took and all of it together."""
    if chat is None or not chat.turns:
        return ()
    if chat.busy:
        took = short_duration(waiting_ms) if waiting_ms is not None else ""
        return fit(((" ", ""), mark("running"), (f" answering {took}", "running"), ("   esc to cancel", "dim")), width)
    last, whole = chat.turns[-1], chat.usage
    cells: list[Cell] = [(" ", "")]
    if last.error is not None:
        ended = "cancelled" if last.error.kind == "cancelled" else "error"
        cells += [mark(ended), (f" {one_line(last.error.message, 200)}", "error" if ended == "error" else "")]
    else:
        facts = [
            short_duration(last.took_ms),
            f"first token {short_duration(last.first_token_ms)}" if last.first_token_ms else "",
        ]
        facts += [token_count(last.usage.total_tokens), short_dollars(last.usage.cost)]
        cells += [(glyph("passed"), "passed"), (" " + "  ".join(fact for fact in facts if fact), "dim")]
    end: list[Cell] = []
    if len(chat.turns) > 1:
        sums = [f"{len(chat.turns):,} turns", token_count(whole.total_tokens), short_dollars(whole.cost)]
        end = [("all: " + "  ".join(amount for amount in sums if amount), "dim"), (" ", "")]
    return spread(cells, end, width)


def problem_lines(problems: Sequence[Problem], width: int) -> list[Line]:
    """What is wrong in agents.yaml."""
    lines: list[Line] = []
    for problem in problems[:3]:
        place = f"{problem.file}:{problem.line}:{problem.column}"
        error = AgentevalError(problem.message, where=place, fix=problem.fix or "")
        lines += indented(error_lines(error, width - 1))
    if len(problems) > 3:
        lines.append(((f" … and {len(problems) - 3} more", "error"),))
    return lines


def _words(configured: Configured) -> str:
    return " ".join(
        (configured.name, configured.kind, configured.address, configured.suite, configured.file.name, configured.about)
    ).casefold()
