"""The options of the kind `demo`; apart from the agent, so that a suite can be checked without loading the shop."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from agenteval_tui.agents.options import AgentOptions


class DemoOptions(AgentOptions):
    """Options of the bundled agent."""

    takes_tools: ClassVar[bool] = True

    version: Literal["v1", "v2"] = Field("v1", description="Two versions of the program; their code differs.")
    pace: float = Field(1.0, ge=0, description="How slowly it answers. 1: slowly enough to watch; 0: at once.")
    seed: int | None = Field(None, description="One seed for all repetitions. Default: each repetition has its own.")
