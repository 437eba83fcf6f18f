"""A thorough check of an agent that is a program: does it answer a short prompt?"""

from __future__ import annotations

import time

from agenteval_tui.agents.base import Agent, AgentRequest, CheckReport, CheckStep, Failed, TextDelta, ToolCallStarted
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.transcripts.model import Message

PROMPT = "ping"
_SHOWN = 60


def unreachable(message: str, fix: str, *, key_refused: bool = False) -> CheckReport:
    """The report on a program or a function that doesn't exist."""
    steps = (CheckStep("reachable", False, message),)
    return CheckReport(False, message, fix=fix, steps=steps, key_refused=key_refused)


async def check_answer(agent: Agent, message: str, started: float, *, thorough: bool) -> CheckReport:
    """The report on a program that exists. `message` describes it; the check started at `started` (perf_counter).
    `thorough` asks the program once."""
    took = (time.perf_counter() - started) * 1000
    reachable = CheckStep("reachable", True, message, took)
    if not thorough:
        return CheckReport(True, message, took, steps=(reachable,))
    # No time limit here: whoever asks for the check sets one.
    began = time.perf_counter()
    messages = (Message("user", PROMPT),)
    recorder, pieces, tools = Recorder(messages), 0, 0
    failed: Failed | None = None
    async for event in agent.run(AgentRequest(messages, test_id="check", run="check")):
        recorder.apply(event)
        pieces += isinstance(event, TextDelta)
        tools += isinstance(event, ToolCallStarted)
        failed = event if isinstance(event, Failed) else failed
    took = (time.perf_counter() - began) * 1000
    if failed is not None:
        message = failed.error.message
        steps = (reachable, CheckStep("streams", False, message, took))
        return CheckReport(False, message, took, failed.error.fix, steps)
    transcript = recorder.transcript()
    answer = " ".join(transcript.final_output.split())
    shortened = answer if len(answer) <= _SHOWN else answer[:_SHOWN] + "…"
    # One piece says nothing: a short answer comes in one also where longer ones are streamed.
    streams = CheckStep(
        "streams",
        True if pieces > 1 else None,
        f"it answered in {pieces} pieces" if pieces > 1 else "it answered in one piece" if pieces else "no text came",
        transcript.timing.first_token_ms,
    )
    count = "no tool" if not tools else "a tool" if tools == 1 else f"{tools} tools"
    called = CheckStep("tools", True if tools else None, f"it called {count}")
    return CheckReport(True, f"it answers {PROMPT!r} with {shortened!r}", took, steps=(reachable, streams, called))
