"""The Agents screen: what is configured and from where, whether it is there, and a conversation to try a prompt."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeAlias

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize, ScreenResume, ScreenSuspend
from textual.timer import Timer
from textual.widgets import Input

from agenteval_tui.agents.base import CheckReport
from agenteval_tui.agents.permission import NotTrustedError, Permission
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.numbers import count
from agenteval_tui.runs.agent_factory import Configured, check_configured
from agenteval_tui.runs.chat_session import Conversation, drafted_test
from agenteval_tui.runs.trust_check import check_agents
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.suites.load import unreadable
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.actions import BY_ID, bindings, key_word
from agenteval_tui.tui.presenters.agent_rows import AgentRows, agent_lines, chat_heading, chat_status, problem_lines
from agenteval_tui.tui.presenters.text_layout import empty_state, error_lines
from agenteval_tui.tui.presenters.trust_lines import TrustQuestion
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.make_test import MakeTestScreen
from agenteval_tui.tui.styled_text import Cell, Line
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.transcript_view import TranscriptView
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import start_worker

Found: TypeAlias = "tuple[list[Configured], list[Problem], dict[str, tuple[tuple[str, ...], list[tuple[str, bool]]]]]"
REPAINT_SECONDS = 0.1
AT_ONCE = 8
"""Agents that are checked at the same time."""


class AgentsScreen(FrameScreen):
    """A list of agents; the chosen one in full; the conversation with it."""

    SCOPE = "agents"
    CSS_PATH = "agents.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("agents"))

    def __init__(self) -> None:
        super().__init__()
        self._all: list[Configured] = []
        self._problems: Sequence[Problem] = ()
        self._rows: AgentRows | None = None
        self._query = ""
        self._reports: dict[str, CheckReport | None] = {}
        self._about: dict[str, tuple[tuple[str, ...], list[tuple[str, bool]]]] = {}
        self._chats: dict[str, Conversation] = {}
        self._shown: Conversation | None = None
        self._asked_at: dict[str, float] = {}
        self._allowed: set[str] = set()  # agents whose programs may run until the app ends
        self._timer: Timer | None = None
        self._changed = False

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield LineBlock(self._problem_lines, id="problems")
                yield Input(placeholder="filter: any word of an agent", id="filter", classes="filter")
                yield VirtualList(id="agents")
                yield LinesView(id="detail")
            with Vertical(id="right"):
                yield LineBlock(id="with")
                yield TranscriptView(id="chat", empty=self._no_chat())
                yield LineBlock(id="status")
                yield Input(placeholder="ask something; enter sends", id="prompt", classes="filter")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.set_class(self.app.size.width < self.NARROW, "narrow")  # already for the first frame
        self.query_one("#filter", Input).display = False
        agents = self.query_one("#agents", VirtualList)
        agents.set_empty([(("  Reading the agents …", "dim"),)])
        agents.focus()
        self._timer = self.set_interval(REPAINT_SECONDS, self._tick, pause=True)
        self._show_chat()
        self.action_reload()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self._rows is not None:
            self.action_reload()
            self._touch()

    def on_screen_suspend(self, event: ScreenSuspend) -> None:
        """Nobody looks; answers come in all the same."""
        if self._timer is not None:
            self._timer.pause()

    async def on_unmount(self) -> None:
        for chat in self._chats.values():
            await chat.close()

    # What is shown

    def action_reload(self) -> None:
        """Read the agents again; the cursor stays."""
        self.ask(self._read_agents, self._show_agents, group="agents", failed=self._show_failure)

    def _read_agents(self) -> Found:
        """In a thread: the agents, and by key what needs to be trusted and which keys are there."""
        agents, problems = self.agenteval.session.workspace.agents()
        environments: dict[Path, Mapping[str, str]] = {}
        for folder in dict.fromkeys(agent.base_dir for agent in agents):
            try:
                environments[folder] = environment_for(folder)
            except AgentevalError as error:
                environments[folder] = os.environ
                problems.append(unreadable(folder / ".env", error))
        return (
            agents,
            problems,
            {agent.key: (agent.executes(), agent.keys(environments[agent.base_dir])) for agent in agents},
        )

    def _show_failure(self, error: AgentevalError) -> None:
        lines = error_lines(error, max(self.query_one("#left").size.width - 4, 20))
        self._rows = None
        view = self.query_one("#agents", VirtualList)
        view.set_empty([(), *(((" ", ""), *line) for line in lines)])
        view.set_source(AgentRows((), self._reports))

    def _show_agents(self, found: Found) -> None:
        before = {one.key: one.config for one in self._all}
        self._all, self._problems, self._about = found
        for one in self._all:
            if before.get(one.key, one.config) != one.config:
                # Another configuration is another agent: what was found out about the old one does not hold.
                self._reports.pop(one.key, None)
                self._drop_chat(one.key)
                self._allowed.discard(one.key)
        self.query_one("#problems", LineBlock).show(self._problem_lines)
        self._arrange()

    def _arrange(self) -> None:
        view = self.query_one("#agents", VirtualList)
        keep = view.cursor_key
        self._rows = AgentRows(self._all, self._reports, self._query)
        view.set_empty(self._empty())
        view.set_source(self._rows, keep_key=keep)
        self.retitle()
        self._show_one()

    def _drop_chat(self, key: str) -> None:
        chat = self._chats.pop(key, None)
        if chat is not None:
            self.workers.cancel_group(self, f"chat-{key}")
            start_worker(self, chat.close, group="close", exclusive=False)

    def _empty(self) -> list[Line]:
        if self._query:
            return empty_state("", "No agent matches the filter.", "esc", "clears it")
        return empty_state(
            "Agents are what suites test: a model, a program, an address. Check them here, and try a prompt.",
            "No agents are configured.",
            "1",
            "goes to the suites: o opens a suite, in which `agents:` names them",
            "Or write agents.yaml in the configuration folder; `agenteval doctor` says where that is.",
        )

    @staticmethod
    def _no_chat() -> list[Line]:
        return empty_state(
            "A place to try a prompt.",
            "Nothing is stored; t makes a test of the conversation.",
            "enter",
            "begins one with the chosen agent",
            style="dim",
        )

    @property
    def _one(self) -> Configured | None:
        index = self.query_one("#agents", VirtualList).cursor
        rows = self._rows.agents if self._rows is not None else []
        return rows[index] if 0 <= index < len(rows) else None

    def _show_one(self) -> None:
        one = self._one
        view = self.query_one("#detail", LinesView)
        if one is None:
            view.show(lambda width: [])
        else:
            what, keys = self._about.get(one.key, ((), []))
            view.show(
                lambda width: [((" ", ""), *line) for line in agent_lines(one, self._reports, what, keys, width - 1)]
            )
        self._show_chat()

    def _show_chat(self) -> None:
        one = self._one
        chat = self._chats.get(one.key) if one is not None else None
        view = self.query_one("#chat", TranscriptView)
        # Nothing instead of nothing would be painted, and sent, all the same.
        if chat is not self._shown or (chat is None and view.cursor_key is not None):
            self._shown = chat
            view.show_transcript(chat.transcript if chat is not None else Transcript())
            view.action_last()
        self.query_one("#with", LineBlock).show(lambda width: [chat_heading(one, chat, width)])
        self._show_status()

    def _show_status(self) -> None:
        one, chat = self._one, self._shown
        began = self._asked_at.get(one.key) if one is not None else None
        waiting = (time.monotonic() - began) * 1000 if began is not None else None
        self.query_one("#status", LineBlock).show(lambda width: [chat_status(chat, waiting, width)])
        self.query_one("#keys", LineBlock).show(self._key_lines)

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        if self._rows is None:
            return (), ()
        shown = f"{self._rows.count()} of " if self._query else ""
        healthy = sum(report is not None and report.ok for report in self._reports.values())
        checked = sum(report is not None for report in self._reports.values())
        left: Line = ((f"{checked} checked, {healthy} healthy", "dim"),) if checked else ()
        return left, ((f"{shown}{count(len(self._all), 'agent')}", "dim"),)

    def _problem_lines(self, width: int) -> list[Line]:
        return problem_lines(self._problems, width)

    def on_descendant_focus(self) -> None:
        """Other keys in the prompt: there letters are text."""
        self.query_one("#keys", LineBlock).show(self._key_lines)

    def keys(self) -> list[tuple[str, str, str]]:
        focused = self.focused
        if focused is None or focused.id != "prompt":
            return super().keys()
        chat = self._shown
        busy = chat is not None and chat.busy
        test = self.agenteval.keymap.get("agents.test", BY_ID["agents.test"].keys).split(",")[-1]
        return [
            ("enter", "send", ""),
            ("esc", "cancel" if busy else "back to the list", "app.back"),
            *([(key_word(test), "make a test", "make_test")] if chat is not None and chat.turns and not busy else []),
            ("tab", "pane", "next_pane"),
            ("F1", "help", "app.help"),
        ]

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Another agent."""
        if self._one is not None and self._chats.get(self._one.key) is not self._shown:
            self._show_chat()
        self.show_soon(self._show_one)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter or a click on the chosen agent."""
        self.action_chat()

    # Checks

    def action_check(self) -> None:
        one = self._one
        if one is not None:
            self._check([one])

    def action_check_all(self) -> None:
        if self._rows is not None and self._rows.agents:
            self._check(self._rows.agents)

    def _check(self, agents: Iterable[Configured]) -> None:
        wanted = [agent for agent in agents if self._reports.get(agent.key, True) is not None]
        self._permitted(wanted, "Checking", lambda permission: self._begin_checks(wanted, permission))

    def _begin_checks(self, agents: Sequence[Configured], permission: Permission) -> None:
        room = asyncio.Semaphore(AT_ONCE)
        for agent in agents:
            self._reports[agent.key] = None
            start_worker(self, partial(self._check_one, agent, room, permission), group=f"check-{agent.key}")
        self._refresh_agents()

    async def _check_one(self, agent: Configured, room: asyncio.Semaphore, permission: Permission) -> None:
        try:
            async with room:
                self._reports[agent.key] = await check_configured(agent, permission, thorough=True)
        finally:
            if self._reports.get(agent.key, True) is None:
                del self._reports[agent.key]
            if self.is_attached:
                self._refresh_agents()

    def _refresh_agents(self) -> None:
        self.query_one("#agents", VirtualList).refresh_rows()
        self.retitle()
        self._show_one()

    def _permitted(self, agents: Sequence[Configured], doing: str, then: Callable[[Permission], None]) -> None:
        """Go on when programs of these agents may run; ask where that is not known."""

        def look() -> Permission | list[TrustQuestion]:

            try:
                return check_agents(agents, trusted=all(agent.key in self._allowed for agent in agents))
            except NotTrustedError as error:
                session = self.agenteval.session
                return [
                    TrustQuestion(need.folder, session.workspace.why_not(need), need.what, need.files)
                    for need in error.needs
                ]

        def allowed(once: bool) -> None:
            if once:
                self._allowed.update(agent.key for agent in agents)
            self.ask(look, answer, group="trust")

        def answer(permission: Permission | list[TrustQuestion]) -> None:
            if isinstance(permission, list):
                self.agenteval.ask_trust(permission, doing, allowed)
            else:
                then(permission)

        if not any(agent.suite and self._about.get(agent.key, (("unknown",), []))[0] for agent in agents):
            answer(look())  # nothing is read for it
        else:
            self.ask(look, answer, group="trust")

    # The conversation

    def action_chat(self) -> None:
        if self._one is None:
            return
        self.add_class("show-chat")
        self.query_one("#prompt", Input).focus()

    def _send(self, text: str) -> None:
        one = self._one
        if one is None or not text.strip():
            return
        chat = self._chats.get(one.key)
        if chat is not None and chat.busy:
            self.agenteval.say("The agent is still answering; esc cancels that.")
            return
        self._permitted([one], "Asking this agent", lambda permission: self._ask(one, text, permission))

    def _ask(self, agent: Configured, text: str, permission: Permission) -> None:
        chat = self._chats.get(agent.key)
        if chat is None:
            session = self.agenteval.session
            chat = self._chats[agent.key] = Conversation(agent, permission, store=lambda: session.store)
        box = self.query_one("#prompt", Input)
        if box.value == text:
            box.value = ""
        self._asked_at[agent.key] = time.monotonic()
        self._show_chat()
        start_worker(self, partial(self._talk, agent, chat, text), group=f"chat-{agent.key}")
        self._touch()

    async def _talk(self, agent: Configured, chat: Conversation, text: str) -> None:
        try:
            await chat.say(text, self._touch)
        except AgentevalError as error:
            # It can't be built at all: the detail pane shows its configuration.
            self.agenteval.say_error(error)
        finally:
            self._asked_at.pop(agent.key, None)
            self._touch()

    def _touch(self) -> None:
        """Something of a conversation changed: painted with the next tick."""
        self._changed = True
        if self._timer is not None and self.is_current:
            self._timer.resume()

    def _tick(self) -> None:
        if not self.is_current:
            return
        changed, self._changed = self._changed, False
        chat = self._shown
        if changed:
            if chat is not None:
                self.query_one("#chat", TranscriptView).update(chat.transcript)
            self._show_chat()
        elif chat is not None and chat.busy:
            self._show_status()
        elif self._timer is not None:
            self._timer.pause()

    def action_forget(self) -> None:
        one = self._one
        chat = self._chats.get(one.key) if one is not None else None
        if one is None or chat is None:
            return
        if chat.busy:
            self.workers.cancel_group(self, f"chat-{one.key}")
        self._drop_chat(one.key)
        self._show_chat()

    def action_make_test(self) -> None:

        one = self._one
        chat = self._chats.get(one.key) if one is not None else None
        if chat is None or chat.busy:
            self.agenteval.say("Ask the agent something first: the conversation becomes the test.")
            return
        try:
            drafted_test("draft", "draft", chat)
        except AgentevalError as error:
            self.agenteval.say_error(error)
            return

        def made(written: tuple[str, str] | None) -> None:
            if written is not None:
                self.agenteval.show_test(*written)
                self.agenteval.say(f"Added test {written[1]}. Its criteria are a start: r runs it, e edits them.")

        self.app.push_screen(MakeTestScreen(chat), made)

    # Keys

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: send what was written, or go to what was found."""
        if event.input.id == "prompt":
            self._send(event.value)
        else:
            self.query_one("#agents", VirtualList).focus()
            event.input.display = bool(event.value)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter filters."""
        if event.input.id == "filter":
            self._query = event.value
            self._arrange()

    def action_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.display = True
        self.remove_class("show-chat")
        box.focus()

    def action_next_pane(self) -> None:
        order = [self.query_one(f"#{name}") for name in ("agents", "detail", "chat", "prompt")]
        now = next((place for place, pane in enumerate(order) if pane.has_focus), -1)
        pane = order[(now + 1) % len(order)]
        self.set_class(pane.id in ("chat", "prompt"), "show-chat")
        pane.focus()

    def action_open_editor(self) -> None:
        one = self._one
        if one is not None:
            self.agenteval.open_editor(one.file, one.line)
            self.action_reload()

    def step_back(self) -> bool:
        one, box = self._one, self.query_one("#filter", Input)
        chat = self._shown
        if chat is not None and chat.busy and one is not None:
            self.workers.cancel_group(self, f"chat-{one.key}")
        elif self.query_one("#prompt", Input).has_focus or self.has_class("show-chat"):
            self.remove_class("show-chat")
            self.query_one("#agents", VirtualList).focus()
        elif box.display:
            box.value = ""
            box.display = False
            self.query_one("#agents", VirtualList).focus()
        else:
            return False
        return True
