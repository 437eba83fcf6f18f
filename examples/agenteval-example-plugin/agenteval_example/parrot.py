"""An agent: it takes a conversation and yields events."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pydantic import Field

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    Done,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
)
from agenteval_tui.agents.options import AgentOptions, read_options


class ParrotOptions(AgentOptions):
    """The options of kind `parrot`; with them the linter knows what is wrong in a suite."""

    ending: str = Field(default="", description="What it says after every answer.")


class Parrot:
    """Looks up nothing in a tool called `mirror`, then repeats the last message, word by word."""

    options_model = ParrotOptions

    def __init__(self, setup: AgentSetup) -> None:
        self._options = read_options(ParrotOptions, setup.name, setup.config)

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        heard = request.messages[-1].content
        yield ToolCallStarted(0, "call-1", "mirror")
        yield ToolArgumentsDelta(0, "{}")
        yield TurnEnded()
        yield ToolCallFinished(0, heard[::-1])
        for word in heard.split(" "):
            yield TextDelta(word + " ")
        yield TextDelta(self._options.ending)
        yield TurnEnded()
        yield Done(model="parrot")

    async def check(self, thorough: bool = False) -> CheckReport:
        return CheckReport(True, "a parrot is always there")

    async def close(self) -> None:
        """Nothing to give back."""
