"""The options of the kind `python`."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from agenteval_tui.agents.options import AgentOptions
from agenteval_tui.agents.process.options import ProgramTimeouts, checked_callable


class PythonOptions(AgentOptions):
    """A Python function, sync, async or a generator, in a process of its own."""

    callable: str = Field(description='"package.module:name": a function, or an object that can be called.')
    path: list[str] = Field(
        default_factory=list, description="More places to find modules, relative to the suite's folder; within it."
    )
    python: str | None = Field(
        None, description="The interpreter, such as .venv/bin/python. Default: the one that runs agenteval."
    )
    reuse: bool = Field(
        False, description="true: a process serves many runs, one after the other; imports and globals stay."
    )
    env: dict[str, str] = Field(default_factory=dict, description="More environment variables.")
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Anything for the function: its `config`. Variations may differ."
    )
    timeouts: ProgramTimeouts = Field(default=ProgramTimeouts(), description="How long to wait for its output.")
    max_reply_mb: float = Field(16.0, gt=0, description="More output is an error.")

    @model_validator(mode="after")
    def _right_callable(self) -> Self:
        checked_callable(self.callable, "callable")
        return self
