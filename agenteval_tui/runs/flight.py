"""One run in flight: its attempts, and what streams of it to the watchers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, cast

from agenteval_tui.agents.interface import (
    Agent,
    AgentEvent,
    AgentRequest,
    Done,
    Failed,
    ReasoningDelta,
    Recorded,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.agents.record import Recorder, add_usage
from agenteval_tui.runs.events import (
    AttemptFailed,
    Event,
    ReasoningStreamed,
    RunStarted,
    TextStreamed,
    ToolArguments,
    ToolFinished,
    ToolStarted,
    UsageCounted,
)
from agenteval_tui.runs.plan import RunPlan
from agenteval_tui.text.identity import now_ms
from agenteval_tui.transcripts.codec import arguments_text
from agenteval_tui.transcripts.model import RunError, Transcript, Usage

Tell = Callable[..., None]
"""`tell(EventClass, *fields)`: number an event and send it out."""

RESULT_LIMIT = 4_000
ARGUMENTS_LIMIT = 16_000
RECORDED_CALLS = 50
MAX_ATTEMPTS = 3
MAX_BACK_OFF_S = 30.0
BREATH = 100
"""After so many events of an agent that never waits, others get a turn."""


@dataclass(frozen=True, slots=True)
class Retries:
    """When to try again: at most `attempts` in all, waiting `base_s`, twice that, ... (with jitter) between them."""

    attempts: int = MAX_ATTEMPTS
    base_s: float = 0.5

    def wait_s(self, attempt: int, retry_after_s: float | None) -> float:
        """Seconds to wait after failed attempt number `attempt`. What a server asks for is the least."""
        back_off = min(self.base_s * 2.0 ** (attempt - 1), MAX_BACK_OFF_S)
        jitter = random.random()  # noqa: S311 - spreads load, hides nothing
        if retry_after_s is not None:
            return max(retry_after_s, 0.0) + back_off * 0.1 * jitter
        return back_off * (0.5 + 0.5 * jitter)


class Flight:
    """A run from its first attempt to the agent's end. `fly` once; `stop` says why it was ended from outside.

    Afterwards `transcript()` is what the agent left behind, with the `error` in it if there was one.
    """

    def __init__(self, plan: RunPlan, agent: Agent, request: AgentRequest, retries: Retries, tell: Tell) -> None:
        self.plan = plan
        self.run = plan.ref.run
        self.attempt = 0
        self.noted = 0
        """The last attempt that the store was told of."""
        self.started_ms = 0
        self.duration_ms = 0.0
        self.stop = ""
        """Empty, "timeout" or "cancelled"."""
        self.landed = False
        """True once the agent is done; what follows is grading, which the run's time does not count."""
        self.settled = False
        """True once its end was given to the store."""
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        """Runs out when the agent does not end although it was stopped."""
        self.usage = Usage()
        self.spent = Usage()
        """What all attempts used together; `usage` is that of the current one."""
        self._agent = agent
        self._request = request
        self._retries = retries
        self._tell = tell
        self._began = time.monotonic()
        self.deadline = self._began + plan.timeout_s
        self._recorder: Recorder | None = None
        self._error: RunError | None = None
        self._texts: list[str] = []
        self._texts_kind: type[Event] = TextStreamed
        self._arguments: dict[int, list[str]] = {}
        self._shown = False  # something of this attempt has streamed

    async def fly(self) -> None:
        """Run the agent, again where that may help. Raises only CancelledError; errors are in the transcript."""
        self.started_ms = now_ms()
        while not self.stop:
            self.attempt += 1
            self._tell(RunStarted, self.run, self.attempt, now_ms())
            failed = await self._attempt()
            if failed is None or not failed.retry or self.attempt >= self._retries.attempts:
                break
            wait_s = self._retries.wait_s(self.attempt, failed.retry_after_s)
            if wait_s >= self.deadline - time.monotonic():
                # The run would time out while it waits: say now what is wrong.
                if failed.retry_after_s is not None:
                    asked = f"it asks to wait {failed.retry_after_s:g} s, longer than the run may take"
                    self._error = replace(failed.error, message=f"{failed.error.message}; {asked}")
                break
            self.flush()
            self._tell(AttemptFailed, self.run, self.attempt, failed.error.message, wait_s)
            await asyncio.sleep(wait_s)
            self._error = None

    def land(self) -> None:
        """The agent is done: stop the clock, send what is left of the stream."""
        if self.landed:
            return
        self.landed = True
        self.duration_ms = (time.monotonic() - self._began) * 1000
        self.flush()
        if self.timer is not None:
            self.timer.cancel()

    def transcript(self) -> Transcript:
        """What there is of the conversation; complete when the agent ended by itself."""
        if self._recorder is None:
            return Transcript(messages=self.plan.messages)
        transcript = self._recorder.transcript()
        error = self._error
        if self.stop == "timeout":
            limit = f"{self.plan.timeout_s:g} s"
            error = RunError("timeout", f"the run did not end within {limit}", "raise `timeout` of the test")
        elif self.stop == "cancelled":
            error = RunError("cancelled", "the run was cancelled")
        return transcript if error is None else replace(transcript, error=error)

    def flush(self) -> None:
        """Send the text that was gathered since the last time, as one event."""
        if self._texts:
            text = "".join(self._texts)
            self._texts.clear()
            self._tell(self._texts_kind, self.run, text)

    async def _attempt(self) -> Failed | None:
        """One attempt; gives how it failed, or None when the agent was done."""
        self._recorder = recorder = Recorder(self._request.messages)
        self._arguments.clear()
        self._shown = False
        self.usage = Usage()
        try:
            stream = self._agent.run(self._request)
            if hasattr(stream, "aclose"):
                async with aclosing(cast(Any, stream)):
                    return await self._consume(stream, recorder)
            return await self._consume(stream, recorder)
        except Exception as error:
            said = str(error) or "no message"
            self._error = RunError("exception", f"the agent raised {type(error).__name__}: {said}")
            return Failed(self._error)

    async def _consume(self, stream: AsyncIterator[AgentEvent], recorder: Recorder) -> Failed | None:
        count = 0
        async for event in stream:
            if self.stop:
                return None
            recorder.apply(event)
            kind = type(event)
            if kind is TextDelta:
                self._stream(TextStreamed, cast(TextDelta, event).text)
            elif kind is Done:
                return None
            elif kind is Failed:
                self._error = cast(Failed, event).error
                return cast(Failed, event)
            else:
                self._other(event)
            count += 1
            if count % BREATH == 0:
                await asyncio.sleep(0)
        if not self.stop:
            self._error = RunError("protocol", "the agent stopped without saying that it was done")
            return Failed(self._error)
        return None

    def _stream(self, kind: type[Event], text: str) -> None:
        self._shown = True
        if kind is not self._texts_kind:
            self.flush()
            self._texts_kind = kind
        self._texts.append(text)

    def _other(self, event: AgentEvent) -> None:
        match event:
            case ReasoningDelta(text):
                self._stream(ReasoningStreamed, text)
            case ToolCallStarted(key, _, name):
                self.flush()
                self._shown = True
                self._arguments[key] = []
                self._tell(ToolStarted, self.run, key, name)
            case ToolArgumentsDelta(key, text):
                if key in self._arguments:
                    self._arguments[key].append(text)
            case ToolCallFinished(key, result, error):
                self.flush()
                self._send_arguments(key)
                self._tell(ToolFinished, self.run, key, result[:RESULT_LIMIT], error)
            case TurnEnded():
                for key in tuple(self._arguments):
                    self._send_arguments(key)
            case UsageReported(usage):
                self.usage = add_usage(self.usage, usage)
                self.spent = add_usage(self.spent, usage)
                self._tell_usage()
            case Recorded(transcript):
                self._replayed(transcript)

    def _send_arguments(self, key: int) -> None:
        pieces = self._arguments.pop(key, None)
        if pieces is not None:
            self.flush()
            self._tell(ToolArguments, self.run, key, "".join(pieces)[:ARGUMENTS_LIMIT])

    def _replayed(self, transcript: Transcript) -> None:
        """Show a recording that did not stream as if it had just happened: its last calls, then the answer."""
        if not self._shown:
            self._show(transcript)
        self.usage = transcript.usage
        self.spent = add_usage(self.spent, transcript.usage)
        if self.usage != Usage():
            self._tell_usage()

    def _show(self, transcript: Transcript) -> None:
        for index, call in list(enumerate(transcript.tool_calls))[-RECORDED_CALLS:]:
            self._tell(ToolStarted, self.run, index, call.name)
            self._tell(ToolArguments, self.run, index, arguments_text(call)[:ARGUMENTS_LIMIT])
            if call.result is not None:
                self._tell(ToolFinished, self.run, index, call.result[:RESULT_LIMIT], call.status == "error")
        if transcript.final_output:
            self._stream(TextStreamed, transcript.final_output)

    def _tell_usage(self) -> None:
        self._tell(UsageCounted, self.run, self.usage.input_tokens, self.usage.output_tokens, self.usage.cost)
