"""Which agents the Agents screen lists, a row each and one in full, what their checks found, and the conversations with
them. No widget."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from agenteval_tui.agents.base import CheckReport
from agenteval_tui.agents.permission import NotTrustedError, Permission
from agenteval_tui.analysis.drafted_test import GoodRuns, questions_of
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.numbers import count, short_dollars, short_duration, token_count
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_factory import Configured, Surrounding, check_configured
from agenteval_tui.runs.chat_session import Conversation
from agenteval_tui.runs.trust_check import check_agents
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.suites.files import unreadable
from agenteval_tui.tui.actions import key_of
from agenteval_tui.tui.presenters.status_style import glyph, mark
from agenteval_tui.tui.presenters.tabs import Much
from agenteval_tui.tui.presenters.trust_lines import TrustQuestion
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import (
    Cell,
    Line,
    cell_len,
    empty_state,
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
from agenteval_tui.tui.workspace import Workspace
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
        error = AgentevalError(problem.message, where=problem.where, fix=problem.fix or "")
        lines += indented(error_lines(error, width - 1))
    if len(problems) > 3:
        lines.append(((f" … and {len(problems) - 3} more", "error"),))
    return lines


def _words(configured: Configured) -> str:
    return " ".join(
        (configured.name, configured.kind, configured.address, configured.suite, configured.file.name, configured.about)
    ).casefold()


AT_ONCE = 8
"""Agents that are checked at the same time."""


class About(Struct, frozen=True):
    """What is known of an agent without asking it: what of it needs to be trusted, the names of its keys and whether
    each is set, and which Python and `.env` it uses."""

    needs: tuple[str, ...] = ()
    keys: tuple[tuple[str, bool], ...] = ()
    around: tuple[Surrounding, ...] = ()


class AgentCandidates(Struct, frozen=True):
    """The agents that are configured, what is wrong with their files, and by their keys what is known of each."""

    agents: list[Configured]
    problems: list[Problem]
    about: dict[str, About]


def read_agents(workspace: Workspace) -> AgentCandidates:
    """Read what is configured. Raises `AgentevalError`."""
    agents, problems = workspace.agents()
    about: dict[str, About] = {}
    environments: dict[tuple[Path, str], Mapping[str, str]] = {}
    for agent in agents:
        place = (agent.base_dir, str(agent.config.get("env_file") or ""))
        if place not in environments:
            try:
                environments[place] = environment_for(agent.base_dir, config=agent.config)
            except AgentevalError as error:
                environments[place] = os.environ
                file = re.sub(r":\d+:\d+\Z", "", error.where) or str(agent.base_dir / ".env")
                problems.append(unreadable(Path(file), error))
        keys = tuple(agent.keys(environments[place]))
        about[agent.key] = About(agent.executes(), keys, agent.surroundings())
    return AgentCandidates(agents, problems, about)


def no_chat() -> list[Line]:
    """What is shown instead of a conversation."""
    return empty_state(
        "A place to try a prompt.",
        "Nothing is stored. Press {agents.test} to turn the conversation into a test.",
        "tab",
        "write a message, and enter to send it",
        style="dim",
    )


class AgentsController:
    """The state of the Agents screen. `agent` in its methods is the one with the cursor; None: there is none."""

    def __init__(self) -> None:
        self.rows: AgentRows | None = None  # None: not read yet
        self.query = ""
        self.shown: Conversation | None = None
        self.agent_candidates = AgentCandidates([], [], {})
        self.reports: dict[str, CheckReport | None] = {}  # None: it is being checked
        self._chats: dict[str, Conversation] = {}
        self._asked_at: dict[str, float] = {}
        self._allowed: set[str] = set()  # agents whose programs may run until the app ends

    # The agents

    def take(self, agent_candidates: AgentCandidates) -> list[Conversation]:
        """These are the agents now. The conversations with agents that were changed or removed: they are over."""
        configs = {agent.key: agent.config for agent in agent_candidates.agents}
        over = []
        for agent in self.agent_candidates.agents:
            if configs.get(agent.key) != agent.config:
                # Another configuration is another agent: what was found out about the old one does not hold.
                self.reports.pop(agent.key, None)
                self._allowed.discard(agent.key)
                over += self.drop_chat(agent)
        self.agent_candidates = agent_candidates
        return over

    def arrange(self) -> AgentRows:
        """The rows of the agents that the filter leaves."""
        self.rows = AgentRows(self.agent_candidates.agents, self.reports, self.query)
        return self.rows

    def fail(self) -> AgentRows:
        """They can't be read: no rows."""
        self.rows = None
        return AgentRows((), self.reports)

    def agent_at(self, index: int) -> Configured | None:
        """The agent at `index` of the list; None where there is none."""
        agents = self.rows.agents if self.rows is not None else []
        return agents[index] if 0 <= index < len(agents) else None

    # Trust

    def needs_reading(self, agents: Iterable[Configured]) -> bool:
        """Whether files must be read to know if programs of these agents may run."""
        return any(
            agent.suite and self.agent_candidates.about.get(agent.key, About(("unknown",))).needs for agent in agents
        )

    def permission(self, agents: Sequence[Configured], workspace: Workspace) -> Permission | list[TrustQuestion]:
        """The permission to run programs of these agents, or what a person is to be asked first."""
        try:
            return check_agents(agents, trusted=all(agent.key in self._allowed for agent in agents))
        except NotTrustedError as error:
            return [TrustQuestion(need, workspace.why_not(need)) for need in error.needs]

    def allow(self, agents: Iterable[Configured]) -> None:
        """Programs of these agents may run until the app ends."""
        self._allowed.update(agent.key for agent in agents)

    # Checks

    def unchecked(self, agents: Iterable[Configured]) -> list[Configured]:
        """Those of the agents that are not being checked already."""
        return [agent for agent in agents if self.reports.get(agent.key, True) is not None]

    def begin_checks(self, agents: Iterable[Configured]) -> None:
        """These are checked from now on."""
        for agent in agents:
            self.reports[agent.key] = None

    async def check(self, agent: Configured, room: asyncio.Semaphore, permission: Permission) -> None:
        """Check an agent, and keep what was found; where that is cancelled it is as if it was not asked for."""
        try:
            async with room:
                self.reports[agent.key] = await check_configured(agent, permission, thorough=True)
        finally:
            if self.reports.get(agent.key, True) is None:
                del self.reports[agent.key]

    # The conversations

    def chat_with(self, agent: Configured | None) -> Conversation | None:
        """The conversation with the agent; None: none was begun."""
        return self._chats.get(agent.key) if agent is not None else None

    def begin_turn(self, agent: Configured, permission: Permission, store: Callable[[], Store]) -> Conversation:
        """The conversation with the agent, which is asked something now."""
        chat = self._chats.get(agent.key)
        if chat is None:
            chat = self._chats[agent.key] = Conversation(agent, permission, store=store)
        self._asked_at[agent.key] = time.monotonic()
        return chat

    def end_turn(self, agent: Configured) -> None:
        """The agent has answered, or it was cancelled."""
        self._asked_at.pop(agent.key, None)

    def drop_chat(self, agent: Configured) -> list[Conversation]:
        """Forget the conversation with the agent; it is returned, to be closed."""
        chat = self._chats.pop(agent.key, None)
        return [chat] if chat is not None else []

    async def close(self) -> None:
        """End all conversations."""
        for chat in self._chats.values():
            await chat.close()

    def chat_for_test(self, agent: Configured | None) -> GoodRuns | None:
        """The conversation that can become a test; None: nothing was asked yet. Raises `AgentevalError`: it can't."""
        chat = self.chat_with(agent)
        if chat is None or chat.busy:
            return None
        questions_of(chat.answered)
        return GoodRuns((chat.answered,), agent=chat.configured.name, suite=chat.configured.file.resolve())

    @property
    def answering(self) -> bool:
        """Whether the agent whose conversation is shown is answering."""
        return self.shown is not None and self.shown.busy

    @property
    def can_become_test(self) -> bool:
        """Whether the conversation that is shown has an answer to make a test of."""
        return self.shown is not None and bool(self.shown.turns) and not self.shown.busy

    # Lines

    def problem_lines(self, width: int) -> list[Line]:
        """What is wrong with the files that configure agents."""
        return problem_lines(self.agent_candidates.problems, width)

    def empty(self) -> list[Line]:
        """What is shown instead of rows."""
        if self.query:
            return empty_state("", "No agent matches the filter.", "{everywhere.back}", "clear the filter")
        return empty_state(
            "An agent is what a suite tests: a model, a program or a URL. Check your agents here, and try a prompt.",
            "No agents are configured.",
            "{go.suites}",
            "go to the suites, then {suites.editor} to open one; name your agents under `agents:`",
            "Or write agents.yaml in the configuration folder; `agenteval doctor` says where that is.",
        )

    def detail_lines(self, agent: Configured | None, width: int, keymap: Mapping[str, str]) -> list[Line]:
        """The agent in full, with what its check found."""
        if agent is None:
            return []
        about = self.agent_candidates.about.get(agent.key, About())
        check = key_of("agents.check", keymap)
        lines = agent_lines(
            agent,
            self.reports,
            trusting=about.needs,
            keys=about.keys,
            width=width - 1,
            check_key=check,
            around=about.around,
        )
        return indented(lines)

    def chat_heading(self, agent: Configured | None) -> tuple[str, Much]:
        """The title of the conversation: at which address, how long."""
        return "conversation", partial(chat_heading, agent, self.chat_with(agent))

    @staticmethod
    def to_lines(agent: Configured | None, width: int) -> list[Line]:
        """Whom the message is for."""
        if agent is None:
            return [()]
        return [fit(((" to ", "dim"), (one_line(agent.name, 60), "bold"), ("  ", "")), width)]

    def status_lines(self, agent: Configured | None, width: int) -> list[Line]:
        """How far the last answer is."""
        began = self._asked_at.get(agent.key) if agent is not None else None
        waiting = (time.monotonic() - began) * 1000 if began is not None else None
        return [chat_status(self.shown, waiting, width)]

    def agents_heading(self) -> tuple[str, str]:
        """The title of the list: how many are checked, and how many there are."""
        if self.rows is None:
            return "agents", ""
        visible = f"{self.rows.count()} of " if self.query else ""
        agents = self.agent_candidates.agents
        # Not all reports: the check of an agent may have ended after it was removed.
        reports = [report for agent in agents if (report := self.reports.get(agent.key)) is not None]
        checks = f" · {len(reports)} checked · {sum(report.ok for report in reports)} healthy" if reports else ""
        return "agents", f"{visible}{count(len(agents), 'agent')}{checks}"
