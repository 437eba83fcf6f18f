"""A prototype class: it takes the value that metrics look at out of a transcript."""

from __future__ import annotations

from pydantic import Field

from agenteval_tui.grading.extracted_value import NothingExtracted, Value
from agenteval_tui.grading.extractors.extractor import Prototype
from agenteval_tui.transcripts.model import Transcript


class LastToolResult(Prototype):
    """What the last tool call answered."""

    tool: str | None = Field(default=None, description="Only calls of this tool.")

    def extract(self, transcript: Transcript) -> Value | None:
        for call in reversed(transcript.tool_calls):
            if call.result is not None and self.tool in (None, call.name):
                return Value(transcript, call.result)
        return None

    def why_nothing(self, transcript: Transcript) -> NothingExtracted:
        called = ", ".join(dict.fromkeys(call.name for call in transcript.tool_calls)) or "none"
        wanted = f"of the tool {self.tool!r} " if self.tool else ""
        return NothingExtracted(f"no call {wanted}was answered (tools called: {called})")
