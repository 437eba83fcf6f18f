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
    asked = [one for span in models if (one := asked_of(span, base, agents)) is not None]
    try:
        longest, _ = conversation_in(spans, tools, agents, models)
        bare = longest is None or all(one.role == "assistant" for one in longest.messages)
        found = transcript_of_asked(asked, _untold(tools, asked, base)) if asked or (bare and tools) else longest
    except AgentevalError:
        return None
    if longest is not None and (found is None or len(longest.messages) > len(found.messages)):
        found = longest
    return None if found is None else (with_measures(found, spans, models or [top], tools, top), base)


def _untold(tools: Sequence[Span], asked: Sequence[Asked], base: float) -> list[UsedTool]:
    """The calls of tools that no answer of a model has: the program made them by itself."""
    made = [
        call
        for one in asked
        for message in (*one.request.messages, one.reply.message or {})
        for call in message.get("tool_calls") or ()
    ]
    ids, names = {str(call.get("id")) for call in made}, {call["function"]["name"] for call in made}
    found = []
    for span in tools:
        about = span["attributes"]
        key = plain_text(about.get("gen_ai.tool.call.id"))
        if span["start"] is not None and key not in ids and (key or name_of_tool(span) not in names):
            result = about.get("gen_ai.tool.call.result")
            given = content_text(about.get("gen_ai.tool.call.arguments")) or "{}"
            said = None if result is None else content_text(result)
            found.append(UsedTool(span["start"] - base, key, name_of_tool(span), given, said))
    return found
