"""A scratch conversation with an agent: nothing of it is stored. It can be made into a test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.base import Agent, AgentRequest, Done, Failed, PromptSent, Recorded
from agenteval_tui.agents.permission import NOTHING, Permission
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.redaction import EventRedactor
from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.ids import new_id
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_factory import Configured, make_configured, redactor_of
from agenteval_tui.runs.pricing import price_for
from agenteval_tui.runs.single_answer import cost_of
from agenteval_tui.transcripts.model import ErrorCode, Message, RunError, Timing, Transcript, Usage

CANCELLED = "cancelled"


class ChatMessage(Struct, frozen=True):
    """One turn: what the person wrote, when it started (seconds, monotonic) and what it used."""

    text: str
    usage: Usage = field(default_factory=Usage)
    took_ms: float | None = None
    first_token_ms: float | None = None
    error: RunError | None = None


class Conversation:
    """A conversation of several turns with one configured agent.

    `say` asks and returns when the answer is there; `changed` is called with every event that came. One turn at a
    time. `transcript` is all of it until now, also while an answer streams. Use it in one event loop; `close` it.
    """

    def __init__(
        self,
        agent: Configured,
        permission: Permission = NOTHING,
        *,
        store: Callable[[], Store] | None = None,
    ) -> None:
        """`store` is asked for by agents that replay an execution, and read only.

        `permission`: see `agent_factory.make_configured`.
        """
        self.configured = agent
        self.turns: list[ChatMessage] = []
        self.busy = False
        self._store = store
        self._permission = permission
        self._agent: Agent | None = None
        self._before = Transcript()
        # Without turns that failed or were cancelled: a server would not take calls without results.
        self.answered = Transcript()
        """The turns that were answered: what the agent is sent next, before the next question."""
        self._recorder: Recorder | None = None
        self._replayed: Transcript | None = None
        self._question: Message | None = None
        self._run = new_id()

    @property
    def transcript(self) -> Transcript:
        """The whole conversation until now. `error` is that of the last turn."""
        if self._question is None:
            return self._before
        return _joined(self._before, self._question, self._made())

    @property
    def usage(self) -> Usage:
        """What all turns used together."""
        return self.transcript.usage

    async def say(self, text: str, changed: Callable[[], None]) -> ChatMessage:
        """Ask the agent. A failure is the turn's `error`; cancelling ends it with kind "cancelled" and raises.

        Raises `AgentevalError` when the agent can't be built (a wrong option, a variable that is not set).
        """
        self.busy = True
        try:
            if self._agent is None:
                self._agent = await asyncio.to_thread(self._make)
        except BaseException:
            self.busy = False
            raise
        began = time.monotonic()
        question = self._question = Message("user", text)
        self._recorder, self._replayed = Recorder(()), None
        self.turns.append(ChatMessage(text))
        changed()
        error: RunError | None = None
        try:
            error = await self._listen(self._agent, question, self._recorder, changed)
        except BaseException as broken:
            # Cancelled (the usual case), or the agent broke: what it said until then stays.
            kind = CANCELLED if not isinstance(broken, Exception) else type(broken).__name__
            if kind == CANCELLED:
                error = RunError(kind, "cancelled", code=ErrorCode.CANCELLED)
            else:
                error = RunError.told(kind, f"the agent broke: {broken}")
            if not isinstance(broken, Exception):
                raise
        finally:
            self._end(question, error, (time.monotonic() - began) * 1000)
            changed()
        return self.turns[-1]

    def _make(self) -> Agent:
        store = self._store() if self._store is not None and self.configured.kind == "replay" else None
        return make_configured(self.configured, self._permission, store=store)

    async def close(self) -> None:
        """Give back the agent's connections and processes."""
        if self._agent is not None:
            agent, self._agent = self._agent, None
            await agent.close()

    async def _listen(
        self, agent: Agent, question: Message, recorder: Recorder, changed: Callable[[], None]
    ) -> RunError | None:
        request = AgentRequest(
            messages=(*self.answered.messages, question),
            test_id="chat",
            seed=len(self.turns),
            tool_calls=self.answered.tool_calls,
            run=self._run,
            turn=len(self.turns),
        )
        done = False
        redactor = EventRedactor(redactor_of(self.configured))
        async with aclosing(redactor.clean_all(agent.run(request))) as events:
            async for event in events:
                if isinstance(event, PromptSent):
                    continue  # the agent's own system prompt; it adds that to each request itself
                if isinstance(event, Recorded):
                    self._replayed = _answers(event.transcript)
                    done = True
                else:
                    recorder.apply(event)
                changed()
                if isinstance(event, Failed):
                    return event.error
                done = done or isinstance(event, Done)
                if isinstance(event, Done):
                    break
        if not done and not recorder.transcript().final_output:
            message = "the agent stopped without an answer and without saying that it was done"
            return RunError("protocol", message, code=ErrorCode.NOT_DONE)
        return None

    def _priced(self, transcript: Transcript) -> Usage:
        """What the turn used, with its cost where a price is known."""
        price = price_for(self.configured.config, config_dir())
        return replace(transcript.usage, cost=cost_of(price, transcript.model, transcript.usage))

    def _made(self) -> Transcript:
        """What the agent said in this turn."""
        return self._replayed or (self._recorder.transcript() if self._recorder is not None else Transcript())

    def _end(self, question: Message, error: RunError | None, took_ms: float) -> None:
        self.busy = False
        transcript, last = self._made(), self.turns[-1]
        usage = self._priced(transcript)
        transcript = replace(transcript, usage=usage)
        if error is None:
            self.answered = _joined(self.answered, question, transcript)
        self.turns[-1] = replace(
            last, usage=usage, took_ms=took_ms, first_token_ms=transcript.timing.first_token_ms, error=error
        )
        self._before = replace(_joined(self._before, question, transcript), error=error)
        self._question = self._recorder = self._replayed = None


def _answers(recorded: Transcript) -> Transcript:
    """What the agent of a recording said, without what it was asked."""
    roles = [message.role for message in recorded.messages]
    first = roles.index("assistant") if "assistant" in roles else len(roles)
    calls = tuple(
        replace(call, message=None if call.message is None else call.message - first) for call in recorded.tool_calls
    )
    return replace(recorded, messages=recorded.messages[first:], tool_calls=calls)


def _joined(before: Transcript, question: Message, transcript: Transcript) -> Transcript:
    """A conversation, with one more turn behind it. Times of the turn's calls are meant from its own start."""
    own = (*before.messages, question)
    calls, place = len(before.tool_calls), len(own)
    messages = tuple(
        replace(
            message,
            tool_calls=tuple(index + calls for index in message.tool_calls),
            tool_call=None if message.tool_call is None else message.tool_call + calls,
        )
        for message in transcript.messages
    )
    moved = tuple(
        replace(call, message=None if call.message is None else call.message + place) for call in transcript.tool_calls
    )
    return Transcript(
        messages=(*own, *messages),
        tool_calls=(*before.tool_calls, *moved),
        timing=Timing(transcript.timing.first_token_ms, transcript.timing.total_ms),
        usage=before.usage + transcript.usage,
        model=transcript.model or before.model,
        finish_reason=transcript.finish_reason,
        final_output=transcript.final_output,
        error=transcript.error,
    )
