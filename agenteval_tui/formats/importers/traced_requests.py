"""The exact requests for the answers of an imported run, where its file has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agenteval_tui.agents.recording.conversation import Asked, transcript_of_asked
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.message_formats import transcript_of
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.request_changes import changes_since


def as_asked(messages: Sequence[Any]) -> list[dict[str, Any]] | None:
    """Messages in any dialect as OpenAI chat messages; None if they can't be read."""
    try:
        return to_openai_messages(transcript_of(list(messages))) if messages else []
    except AgentevalError:
        return None


def lived_conversation(asked_requests: Iterable[Asked | None]) -> Transcript | None:
    """The conversation with the longest request, as its agent lived it, where no request has all of it; else None: the
    longest request with its answer is the conversation."""
    listed = list(asked_requests)
    complete = [request for request in listed if request is not None]
    requests = transcript_of_asked(complete).requests if complete and len(complete) == len(listed) else None
    if requests is None:
        return None
    in_order = sorted(complete, key=lambda request: request.started_ms)
    sizes = [sum(end - first for first, end in reference.messages) for reference in requests.references]
    line = requests.references[sizes.index(max(sizes))].line
    numbers = requests.numbers_of_line(line)
    if all((change := changes_since(requests, number)) is None or change.grew_only for number in numbers):
        return None
    transcript = transcript_of_asked([in_order[number - 1] for number in numbers])
    return Transcript(transcript.messages, transcript.tool_calls, final_output=transcript.final_output)
