"""A run of a model: asks, answers its tool calls, asks again, until it calls no more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from agenteval_tui.agents.http_wire import Wire
from agenteval_tui.agents.interface import AgentEvent, Done, Failed, Noted, ToolCallFinished, TurnEnded, UsageReported
from agenteval_tui.agents.protocol import Dialogue
from agenteval_tui.agents.reply import CallParts
from agenteval_tui.agents.tools import Toolbox
from agenteval_tui.transcripts.error_codes import ErrorCode
from agenteval_tui.transcripts.model import Usage

# Calls of one turn that are answered at once: a model that makes thousands must not start thousands of programs.
_AT_ONCE = 32


async def converse(
    wire: Wire, path: str, dialogue: Dialogue[Any], toolbox: Toolbox, max_steps: int
) -> AsyncGenerator[AgentEvent, None]:
    """The events of the whole loop; ends with `Done` or `Failed`."""
    key = 0
    for _ in range(max_steps):
        reply = dialogue.reply(key)
        async with aclosing(wire.ask(path, reply, json=dialogue.body())) as events:
            async for event in events:
                yield event
                if isinstance(event, Failed):
                    return
        yield TurnEnded()
        yield UsageReported(reply.usage or Usage())
        odd = reply.figures.note()
        if odd is not None:
            yield Noted(odd)
        if not reply.calls and not reply.unfinished:
            yield Done(reply.finish_reason or "stop", reply.model)
            return
        results: dict[int, ToolCallFinished] = {}
        async with aclosing(_call_tools(toolbox, reply.calls)) as ended:
            async for finished in ended:
                results[finished.key] = finished
                yield finished
        dialogue.go_on(reply, results)
        key += len(reply.calls)
    yield wire.server.failed(
        "max_steps",
        ErrorCode.MAX_STEPS,
        f"the model still called tools after {max_steps} requests",
        "raise `max_steps`, or look at what its tools answer",
    )


async def _call_tools(toolbox: Toolbox, calls: Sequence[CallParts]) -> AsyncGenerator[ToolCallFinished, None]:
    """All calls of a turn at once; each as it ends."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def one(call: CallParts) -> ToolCallFinished:
        async with free:
            began = time.perf_counter()
            outcome = await toolbox.call(call.name, call.arguments_text)
            return ToolCallFinished(call.key, outcome.text, outcome.error, (time.perf_counter() - began) * 1000)

    tasks = [asyncio.create_task(one(call)) for call in calls]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        # A tool that is being stopped gives back what it holds (a program, a connection) before the run is over.
        await asyncio.gather(*tasks, return_exceptions=True)
