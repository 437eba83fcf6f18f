"""Where two runs part."""

from __future__ import annotations

from agenteval_tui.transcripts.model import Transcript


def first_difference(before: Transcript, after: Transcript) -> int | None:
    """The first message, from 1, that two transcripts do not have in common; None: they are equal."""
    pairs = [_said(before, place) for place in range(len(before.messages))]
    others = [_said(after, place) for place in range(len(after.messages))]
    for place, (message, other) in enumerate(zip(pairs, others, strict=False), 1):
        if message != other:
            return place
    return None if len(pairs) == len(others) else min(len(pairs), len(others)) + 1


def _said(transcript: Transcript, place: int) -> tuple[object, ...]:
    message = transcript.messages[place]
    calls = [(call.name, call.arguments) for call in (transcript.tool_calls[index] for index in message.tool_calls)]
    return (message.role, message.content, calls)
