"""The options of the kind `replay`."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from agenteval_tui.agents.options import AgentOptions
from agenteval_tui.core.schema_rules import exactly_one


class ReplayOptions(AgentOptions):
    """Where the recordings come from: exactly one of `file`, `transcripts`, `execution`."""

    model_config = ConfigDict(json_schema_extra={"allOf": [exactly_one("file", "transcripts", "execution")]})

    file: str | None = Field(None, description="A .json or .jsonl file of recordings, relative to the suite's folder.")
    transcripts: dict[str, Any] | None = Field(
        None, description="For each test id a transcript, or a list of transcripts."
    )
    execution: str | None = Field(None, description='A stored execution: its id, the beginning of its id, or "last".')
    pace: float = Field(0.0, ge=0, description="1: at the recorded speed; 0: at once.")
    beyond: Literal["error", "repeat"] = Field(
        "error", description="What to do if a test has more repetitions than recordings: fail, or start over."
    )

    @property
    def prefix_problem(self) -> tuple[str, str]:
        """It has only what was recorded."""
        return (
            "repeats recordings, and answers nothing new",
            "let an agent that answers continue it: `agenteval fork RUN --agent NAME`",
        )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        names = [name for name in ("file", "transcripts", "execution") if getattr(self, name) is not None]
        if len(names) != 1:
            message = "nothing says where the recordings are" if not names else f"both {' and '.join(names)} are given"
            raise ValueError(f"{message}; give one of `file`, `transcripts`, `execution`")
        return self
