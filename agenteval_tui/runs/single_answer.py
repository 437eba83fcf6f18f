"""One answer of an agent that is not tested: a judge, a simulated user. Equal questions that are asked at the same time
are asked once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from agenteval_tui.agents.base import Agent, AgentRequest, Done, Failed, closing
from agenteval_tui.agents.prices import Cost
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.transcripts.model import ErrorCode, RunError, Transcript, Usage

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SingleAnswer(Struct, frozen=True):
    """What the agent left behind, and why it gave no answer (`error`; `retry`: another attempt may help). `recorded`:
    the transcript is a recording, whatever was asked."""

    transcript: Transcript
    error: RunError | None = None
    retry: bool = False
    retry_after_s: float | None = None
    recorded: bool = False


async def ask_once(agent: Agent, request: AgentRequest) -> SingleAnswer:
    """Ask the agent once. Raises what the agent raises."""
    recorder = Recorder(request.messages, tool_calls=request.tool_calls)
    failed: Failed | None = None
    done = False
    async with closing(agent.run(request)) as events:
        async for event in events:
            recorder.apply(event)
            if isinstance(event, Failed):
                failed = event
                break
            if isinstance(event, Done):
                done = True
                break
    transcript, recorded = recorder.transcript(), recorder.recorded
    if failed is not None:
        return SingleAnswer(transcript, failed.error, failed.retry, failed.retry_after_s, recorded)
    error = transcript.error  # of a recording
    if error is None and not done:  # the text may be the beginning of another: "1" of "10"
        error = RunError("protocol", "stopped without saying that it was done", code=ErrorCode.NOT_DONE)
    return SingleAnswer(transcript, error, recorded=recorded)


def cost_of(price: Cost | None, model: str, usage: Usage) -> float | None:
    """What an answer cost: as its server says, else by the lists of prices."""
    if usage.cost is not None or usage.total_tokens is None or price is None:
        return usage.cost
    return price(model, usage)


class _Call(Struct):
    task: asyncio.Task[Any]
    waiting: int = 0


class SharedCalls(Generic[K, T]):
    """Calls by what tells them apart. A call is cancelled when no one waits for it any more. Use it in one event
    loop, and close it."""

    def __init__(self) -> None:
        self._calls: dict[K, _Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    async def get(self, key: K, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the call of this key gives; it is made unless it is under way."""
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = _Call(asyncio.create_task(make()))
            call.task.add_done_callback(lambda _: self._calls.pop(key, None))
        call.waiting += 1
        try:
            result: T = await asyncio.shield(call.task)
            return result
        finally:
            call.waiting -= 1
            if not call.waiting and not call.task.done():
                call.task.cancel()

    async def close(self) -> None:
        """End what is under way."""
        calls = list(self._calls.values())
        for call in calls:
            call.task.cancel()
        await asyncio.gather(*(call.task for call in calls), return_exceptions=True)
