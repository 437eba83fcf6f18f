"""`ToolResponse`: the formatted text of all tool calls."""

from __future__ import annotations

from functools import cache

from agenteval_tui.grading.extracted_value import Value
from agenteval_tui.grading.extractors.extractor import Extract, Prototype
from agenteval_tui.grading.results import Span
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.observed import ObservedKind
from agenteval_tui.transcripts.tool_text import ArgumentRange, format_tool_calls, format_with_places


class ToolResponse(Prototype):
    """The tool calls as text: one block per call, with the tool's name and its arguments."""

    @property
    def needs(self) -> frozenset[ObservedKind]:
        return frozenset(("tool_calls",))

    def extract(self, transcript: Transcript) -> Value | None:
        return _tool_text(transcript)

    def compile(self) -> Extract:
        return _tool_text


def _tool_text(transcript: Transcript) -> Value:
    @cache
    def places() -> tuple[ArgumentRange, ...]:
        return format_with_places(transcript.tool_calls)[1]

    def spans(start: int, end: int) -> tuple[Span, ...]:
        spans = [Span("value", 0, start, end)]
        for place in places():
            if place.start < max(end, start + 1) and start < place.end:
                call = transcript.tool_calls[place.call]
                if place.argument is None or not isinstance(call.arguments, dict):
                    spans.append(Span("tool", place.call))
                else:
                    spans.append(Span("arguments", place.call, path=place.argument))
        return tuple(dict.fromkeys(spans))

    return Value(transcript, lambda: format_tool_calls(transcript.tool_calls), spans)
