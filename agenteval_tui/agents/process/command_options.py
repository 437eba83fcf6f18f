"""The options of the kind `command`."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from agenteval_tui.agents.options import AgentOptions
from agenteval_tui.agents.process.options import ProgramTimeouts, checked_command


class CommandOptions(AgentOptions):
    """A program: the request on its standard input, its answer on standard output."""

    command: str | list[str] = Field(description="What to run: a list of words, or a text that is split into words.")
    shell: bool = Field(False, description="true: `command` is a text for /bin/sh, with pipes and variables.")
    cwd: str = Field(".", description="The folder to run in, relative to the suite's; within it.")
    env: dict[str, str] = Field(default_factory=dict, description="More environment variables.")
    input: Literal["json", "text"] = Field(
        "json", description="json: the request as one JSON document; text: the last user message alone."
    )
    output: Literal["auto", "jsonl", "text"] = Field(
        "auto", description="jsonl: events, one a line; text: the answer; auto: what its first line looks like."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Anything for the program: `config` in its request. Variations may differ."
    )
    timeouts: ProgramTimeouts = Field(default=ProgramTimeouts(), description="How long to wait for its output.")
    max_reply_mb: float = Field(16.0, gt=0, description="More output is an error.")

    @model_validator(mode="after")
    def _right_command(self) -> Self:
        checked_command(self.command, self.shell)
        return self
