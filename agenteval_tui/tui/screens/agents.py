"""The Agents screen: what is configured and from where, whether it is there, and a conversation to try a prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize, ScreenResume, ScreenSuspend
from textual.timer import Timer
from textual.widgets import Input

from agenteval_tui.agents.permission import Permission
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.agent_factory import Configured
from agenteval_tui.runs.chat_session import Conversation
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.actions import bindings, typing_key
from agenteval_tui.tui.presenters.trust_lines import TrustQuestion
from agenteval_tui.tui.screen_registry import sheet
from agenteval_tui.tui.screens.agents_controller import AT_ONCE, AgentCandidates, AgentsController, no_chat, read_agents
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.styled_text import error_state, width_of
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.widgets.filter_box import FilterBox
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.titled_pane import PaneTitle
from agenteval_tui.tui.widgets.transcript_view import TranscriptView
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import start_worker

REPAINT_SECONDS = 0.1  # an answer may stream faster than anyone reads
MOST_NAME = 30  # cells before the message line


class MessageInput(Input):
    """One line of text. Keys that mean nothing in one line scroll the conversation above it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("message")


class AgentsScreen(FrameScreen):
    """A list of agents; the chosen one in full; the conversation with it. What is known of agents, and what was said,
    is the controller's."""

    SCOPE = "agents"
    BINDINGS: ClassVar[list[BindingType]] = bindings("agents")

    def __init__(self) -> None:
        super().__init__()
        self.controller = AgentsController()
        self._timer: Timer | None = None
        self._changed = False

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        with Horizontal(id="body"):
            with Vertical(id="left"):
                with Vertical(id="list", classes="pane"):
                    yield PaneTitle(self.controller.agents_heading, id="agents-title")
                    yield LineBlock(self.controller.problem_lines, id="problems")
                    yield FilterBox("filter: words of an agent", id="filter")
                    yield VirtualList(id="agents")
                with Vertical(id="about", classes="pane"):
                    yield PaneTitle(lambda: ("details", ""), id="about-title")
                    yield LinesView(id="detail")
            with Vertical(id="right", classes="pane"):
                yield PaneTitle(lambda: self.controller.chat_heading(self._one), id="with")
                yield TranscriptView(id="chat", empty=no_chat())
                yield LineBlock(id="status")
                # In sight at every size, whatever has the keys.
                with Horizontal(id="message"):
                    yield LineBlock(lambda width: self.controller.to_lines(self._one, width), id="to")
                    yield MessageInput(
                        placeholder="write a message; press enter to send it", id="prompt", classes="filter"
                    )
        yield self.key_bar()

    def on_mount(self) -> None:
        self.set_class(self.app.size.width < self.NARROW, "narrow")  # already for the first frame
        agents = self.query_one("#agents", VirtualList)
        agents.set_empty([(("  Reading the agents …", "dim"),)])
        agents.focus()
        self._timer = self.set_interval(REPAINT_SECONDS, self._tick, pause=True)
        self._show_chat()
        self.action_reload()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self.controller.rows is not None:
            self.action_reload()
            self._touch()

    def on_screen_suspend(self, event: ScreenSuspend) -> None:
        """Nobody looks; answers come in all the same."""
        if self._timer is not None:
            self._timer.pause()

    async def on_unmount(self) -> None:
        await self.controller.close()

    # What is shown

    def action_reload(self) -> None:
        """Read the agents again; the cursor stays."""
        workspace = self.agenteval.session.workspace
        self.ask(lambda: read_agents(workspace), self._show_agents, group="agents", failed=self._show_failure)

    def _show_failure(self, error: AgentevalError) -> None:
        view = self.query_one("#agents", VirtualList)
        view.set_empty(error_state(error, self.query_one("#left").size.width))
        view.set_source(self.controller.fail())

    def _show_agents(self, agent_candidates: AgentCandidates) -> None:
        if self.controller.rows is not None and agent_candidates == self.controller.agent_candidates:
            return  # nothing is written to the terminal that is there already
        self._close(self.controller.take(agent_candidates))
        self.query_one("#problems", LineBlock).retell()
        self._arrange()

    def _arrange(self) -> None:
        view = self.query_one("#agents", VirtualList)
        keep = view.cursor_key
        rows = self.controller.arrange()
        view.set_empty(self.controller.empty())
        view.set_source(rows, keep_key=keep)
        self.query_one("#agents-title", PaneTitle).retell()
        self._show_one()

    def _close(self, chats: Iterable[Conversation]) -> None:
        for chat in chats:
            self.workers.cancel_group(self, f"chat-{chat.configured.key}")
            # Not exclusive: each of them is closed, and none ends the closing of another.
            start_worker(self, chat.close, group="close", exclusive=False)

    @property
    def _one(self) -> Configured | None:
        return self.controller.agent_at(self.query_one("#agents", VirtualList).cursor)

    def _show_one(self) -> None:
        agent = self._one
        keymap = self.agenteval.keymap
        self.query_one("#detail", LinesView).show(lambda width: self.controller.detail_lines(agent, width, keymap))
        self._show_chat()

    def _show_chat(self) -> None:
        controller, agent = self.controller, self._one
        chat = controller.chat_with(agent)
        view = self.query_one("#chat", TranscriptView)
        # Nothing instead of nothing would be painted, and sent, all the same.
        if chat is not controller.shown or (chat is None and view.cursor_key is not None):
            controller.shown = chat
            view.show_transcript(chat.transcript if chat is not None else Transcript())
            view.action_last()
        self.query_one("#with", PaneTitle).retell()
        to = self.query_one("#to", LineBlock)
        to.styles.width = width_of(controller.to_lines(agent, MOST_NAME)[0])
        to.show(lambda width: controller.to_lines(agent, width))
        self._show_status()

    def _show_status(self) -> None:
        agent = self._one
        self.query_one("#status", LineBlock).show(lambda width: self.controller.status_lines(agent, width))
        self.rekey()

    def on_descendant_focus(self) -> None:
        """Other keys in the prompt: there letters are text. What has the focus is seen: narrow, one half is."""
        focused = self.focused
        self.set_class(focused is not None and focused.id in ("chat", "prompt"), "show-chat")
        self.rekey()

    def keys(self) -> list[tuple[str, str, str]]:
        focused = self.focused
        if focused is None or focused.id != "prompt":
            return super().keys()
        keymap, test = self.agenteval.keymap, ("agents.test", "make a test", "make_test")
        named = [
            ("back", "cancel" if self.controller.answering else "back to the list", "app.back"),
            *([test] if self.controller.can_become_test else []),
            ("agents.pane", "pane", "next_pane"),
            ("help", "help", "app.help"),
        ]
        return [("enter", "send", ""), *((typing_key(action, keymap), label, do) for action, label, do in named)]

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Another agent."""
        agent = self._one
        if agent is not None and self.controller.chat_with(agent) is not self.controller.shown:
            self._show_chat()
        self.show_soon(self._show_one)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter or a click on the chosen agent."""
        self.action_chat()

    # Checks

    def action_check(self) -> None:
        agent = self._one
        if agent is not None:
            self._check([agent])

    def action_check_all(self) -> None:
        if self.controller.rows is not None and self.controller.rows.agents:
            self._check(self.controller.rows.agents)

    def _check(self, agents: Iterable[Configured]) -> None:
        unchecked = self.controller.unchecked(agents)
        self._permitted(unchecked, "Checking", lambda permission: self._begin_checks(unchecked, permission))

    def _begin_checks(self, agents: Sequence[Configured], permission: Permission) -> None:
        room = asyncio.Semaphore(AT_ONCE)
        self.controller.begin_checks(agents)
        for agent in agents:
            start_worker(self, partial(self._check_one, agent, room, permission), group=f"check-{agent.key}")
        self._refresh_agents()

    async def _check_one(self, agent: Configured, room: asyncio.Semaphore, permission: Permission) -> None:
        try:
            await self.controller.check(agent, room, permission)
        finally:
            if self.is_attached:
                self._refresh_agents()

    def _refresh_agents(self) -> None:
        self.query_one("#agents", VirtualList).refresh_rows()
        self.query_one("#agents-title", PaneTitle).retell()
        self._show_one()

    def _permitted(self, agents: Sequence[Configured], doing: str, then: Callable[[Permission], None]) -> None:
        """Go on when programs of these agents may run; ask where that is not known."""
        controller, session = self.controller, self.agenteval.session

        def look() -> Permission | list[TrustQuestion]:
            return controller.permission(agents, session.workspace)

        def allowed(once: bool) -> None:
            if once:
                controller.allow(agents)
            self.ask(look, answer, group="trust")

        def answer(permission: Permission | list[TrustQuestion]) -> None:
            if isinstance(permission, list):
                self.agenteval.ask_trust(permission, doing, allowed)
            else:
                then(permission)

        if controller.needs_reading(agents):
            self.ask(look, answer, group="trust")
        else:
            answer(look())

    # The conversation

    def action_chat(self) -> None:
        if self._one is None:
            return
        self.query_one("#prompt", Input).focus()

    def action_scroll_chat(self, how: str) -> None:
        """Scroll the conversation while the message line has the keys."""
        getattr(self.query_one("#chat", TranscriptView), f"action_{how}")()

    def _send(self, text: str) -> None:
        agent = self._one
        if agent is None or not text.strip():
            return
        chat = self.controller.chat_with(agent)
        if chat is not None and chat.busy:
            self.agenteval.say("The agent is still answering. Press {everywhere.back} to cancel.")
            return
        self._permitted([agent], "Asking this agent", lambda permission: self._ask(agent, text, permission))

    def _ask(self, agent: Configured, text: str, permission: Permission) -> None:
        session = self.agenteval.session
        chat = self.controller.begin_turn(agent, permission, lambda: session.store)
        box = self.query_one("#prompt", Input)
        # Something else may have been written while a person was asked about trust.
        if box.value == text:
            box.value = ""
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
            self.controller.end_turn(agent)
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
        chat = self.controller.shown
        if changed:
            if chat is not None:
                self.query_one("#chat", TranscriptView).update(chat.transcript)
            self._show_chat()
        elif chat is not None and chat.busy:
            self._show_status()
        elif self._timer is not None:
            self._timer.pause()

    def action_forget(self) -> None:
        agent = self._one
        if agent is not None and (dropped := self.controller.drop_chat(agent)):
            self._close(dropped)
            self._show_chat()
        else:
            self.agenteval.say("There is no conversation yet. Press {agents.chat} to begin one.")

    def action_make_test(self) -> None:
        try:
            chat = self.controller.chat_for_test(self._one)
        except AgentevalError as error:
            self.agenteval.say_error(error)
            return
        if chat is None:
            self.agenteval.say("Ask the agent something first: the test is made from the conversation.")
            return

        def added(written: tuple[str, str]) -> None:
            self.agenteval.show_test(*written)
            self.agenteval.say(
                "Added a draft. Press {suites.edit} to edit its criteria, {suites.run} to run it:"
                f" {one_line(written[1], 60)}"
            )

        self.app.push_screen(sheet("make_test", chat, "conversation"), if_answered(added))

    # Keys

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: send what was written, or go to what was found."""
        if event.input.id == "prompt":
            self._send(event.value)
        else:
            self.query_one("#agents", VirtualList).focus()
            event.input.display = bool(event.value)

    def leave_text(self) -> None:
        self.query_one("#agents", VirtualList).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter filters."""
        if event.input.id == "filter":
            self.controller.query = event.value
            self._arrange()

    def action_filter(self) -> None:
        self.query_one(FilterBox).open()

    def action_next_pane(self) -> None:
        # The keys of the conversation are in its message line: typing works at once.
        order = [self.query_one(f"#{name}") for name in ("agents", "prompt", "detail")]
        now = next((place for place, pane in enumerate(order) if pane.has_focus), -1)
        order[(now + 1) % len(order)].focus()

    def action_open_editor(self) -> None:
        agent = self._one
        if agent is not None:
            self.agenteval.open_editor(agent.file, agent.line)
            self.action_reload()

    def step_back(self) -> bool:
        agent = self._one
        if self.controller.answering and agent is not None:
            self.workers.cancel_group(self, f"chat-{agent.key}")
        elif (
            self.query_one("#prompt", Input).has_focus
            or self.has_class("show-chat")
            or self.query_one(FilterBox).close()
        ):
            self.query_one("#agents", VirtualList).focus()
        else:
            return False
        return True
