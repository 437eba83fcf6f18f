"""All that the spans of one run tell, whichever conversation of its program it belongs to.

The importer of files takes the longest conversation: there a trace may be of many programs. Here the run is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.agents.recording.conversation import Asked, UsedTool, transcript_of_asked
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.message_formats import plain_text
from agenteval_tui.formats.importers.otel import (
    Span,
    asked_of,
    conversation_in,
    innermost,
    name_of_tool,
    sorted_out,
    with_measures,
)
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.model import Transcript


def whole_transcript(spans: Sequence[Span]) -> tuple[Transcript, float] | None:
    """Each call of a model and of a tool that the spans of one run tell, in one conversation or several; with the
    moment in which the first started (milliseconds since 1970), which its times count from. None: they tell nothing."""
    spans, tools, agents, models = sorted_out(spans)
    if not spans:
        return None
    models = innermost(models)
    top, base = agents[0] if agents else spans[0], spans[0]["start"] or 0.0
    requests = [request for span in models if (request := asked_of(span, base, agents)) is not None]
    try:
        longest, _ = conversation_in(spans, tools, agents, models)
        bare = longest is None or all(message.role == "assistant" for message in longest.messages)
        transcript = (
            transcript_of_asked(requests, _untold(tools, requests, base)) if requests or (bare and tools) else longest
        )
    except AgentevalError:
        return None
    if longest is not None and (transcript is None or len(longest.messages) > len(transcript.messages)):
        transcript = longest
    return None if transcript is None else (with_measures(transcript, spans, models or [top], tools, top), base)


def _untold(tools: Sequence[Span], requests: Sequence[Asked], base: float) -> list[UsedTool]:
    """The calls of tools that no answer of a model has: the program made them by itself."""
    calls = [
        call
        for request in requests
        for message in (*request.request.messages, request.reply.message or {})
        for call in message.get("tool_calls") or ()
    ]
    ids, names = {str(call.get("id")) for call in calls}, {call["function"]["name"] for call in calls}
    used = []
    for span in tools:
        about = span["attributes"]
        key = plain_text(about.get("gen_ai.tool.call.id"))
        if span["start"] is not None and key not in ids and (key or name_of_tool(span) not in names):
            result = about.get("gen_ai.tool.call.result")
            arguments = content_text(about.get("gen_ai.tool.call.arguments")) or "{}"
            result_text = None if result is None else content_text(result)
            used.append(UsedTool(key, name_of_tool(span), arguments, result_text, started_ms=span["start"] - base))
    return used
