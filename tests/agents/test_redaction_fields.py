"""No text of an event keeps a secret: each field of each event is filled with one, so that a new field is not
forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct
from msgspec.structs import fields

from agenteval_tui.agents.base import AgentEvent
from agenteval_tui.agents.redaction import EventRedactor
from agenteval_tui.transcripts.redact import TranscriptRedactor

KEY = "sk-0123456789-abcdef"
KEPT = {
    "Asks.body",  # what is sent, which is neither stored nor shown
    "ModelAsked.usage",  # of which only numbers of tokens are read
    "Attachment.sha256",  # digits of a hash
    "ProbeState.name",  # the suite's
    "Transcript.workdir",  # a folder that we made
    # One of our own words, by which others are told apart:
    *("HookRun.phase", "Output.source", "Reading.problem", "RunError.code", "Traceback.language"),
}
"""Texts that stay as they are, and why."""


def filled(hint: Any, path: str) -> Any:
    """A value of a type with the secret in all of its texts."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is str:
        return f"a {KEY} of {path}"
    if origin is Annotated:
        return filled(arguments[0], path)
    if origin is Literal:
        return arguments[0]
    if origin in (Union, UnionType):
        return filled(next(part for part in arguments if part is not NoneType), path)
    if origin is tuple:
        parts = arguments[:1] if arguments[-1] is Ellipsis else arguments
        return tuple(filled(part, path) for part in parts)
    if origin in (list, Sequence):
        return [filled(arguments[0], path)]
    if origin in (dict, Mapping):
        return {"key": filled(arguments[1], path)}
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = get_type_hints(hint, include_extras=True)
        return hint(
            **{field.name: filled(hints[field.name], f"{hint.__name__}.{field.name}") for field in fields(hint)}
        )
    if hint is Any:
        return {"key": f"a {KEY} of {path}"}
    return {int: 0, float: 0.0, bool: False}[hint]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Struct):
        for field in fields(value):
            yield from texts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield from texts([*value, *value.values()])
    elif isinstance(value, Sequence):
        for part in value:
            yield from texts(part)


@pytest.mark.parametrize("kind", get_args(AgentEvent), ids=lambda kind: kind.__name__)
def test_no_text_of_an_event_keeps_a_secret(kind: type[Any]) -> None:
    event = filled(kind, "")
    redactor = EventRedactor(TranscriptRedactor([KEY]))
    kept = [text.partition(" of ")[2] for clean in redactor.clean(event) for text in texts(clean) if KEY in text]
    assert set(kept) <= KEPT


def test_all_texts_are_filled() -> None:
    """The test above would pass on events without texts."""
    paths = {text.partition(" of ")[2] for kind in get_args(AgentEvent) for text in texts(filled(kind, ""))}
    assert paths >= {*KEPT, "ModelAsked.agent", "ToolCall.arguments", "Frame.locals", "OfferedTool.description"}
