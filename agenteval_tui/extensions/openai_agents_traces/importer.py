"""openai-agents' own traces: objects `trace` and `trace.span`, as its exporter sends them (`data`), or lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import as_object, objects_in, plain_text, value_at
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_id, first_user_text, skipped_element
from agenteval_tui.formats.importers.trace_conversation import Kind, Span, conversation_of
from agenteval_tui.formats.importers.trace_names import is_by_chance, with_test_names
from agenteval_tui.formats.importers.usage_import import moment_ms
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement

NAME = "openai-agents-traces"
_OBJECTS = ("trace", "trace.span")
_KINDS: dict[str, Kind] = {"generation": "model", "response": "model", "function": "tool", "agent": "agent"}


def can_read(value: Any) -> bool:
    """Whether a value of the file is a trace, a span, or an export."""
    if not isinstance(value, Mapping):
        return False
    if value.get("object") in _OBJECTS:
        return True
    data = value.get("data")
    return isinstance(data, list) and bool(data) and isinstance(data[0], Mapping) and data[0].get("object") in _OBJECTS


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """A run for each trace."""
    traces: dict[str, list[Mapping[str, Any]]] = {}
    for element in elements:
        if isinstance(element, BrokenElement):
            yield skipped_element(element)
            continue
        if not can_read(element.value):
            yield Skipped("not a trace or a span of one", element.line)
            continue
        for entry in objects_in(element.value.get("data", [element.value])):
            key = plain_text(entry.get("trace_id")) or plain_text(entry.get("id"))
            traces.setdefault(key, []).append(entry)
    for trace, parts in traces.items():
        try:
            yield _recording(trace, parts)
        except AgentevalError as error:
            yield Skipped(error.what, place=f"trace {trace[:60]}")


def _recording(trace: str, parts: list[Mapping[str, Any]]) -> Recording:
    about = next((part for part in parts if part.get("object") == "trace"), {})
    listed = [part for part in parts if part.get("object") == "trace.span"]
    ids = {plain_text(span.get("id")) for span in listed}
    spans = [_span(span, ids) for span in listed]
    notes: list[str] = []
    transcript = conversation_of(spans, NAME, notes)
    name, group = plain_text(about.get("workflow_name")) or "trace", plain_text(about.get("group_id"))
    agent = next((span.name for span in spans if span.kind == "agent"), "")
    return Recording(
        test_id=as_id(group or trace),
        test_name=name,
        trace_name=agent or name if not group or is_by_chance(group) else "",
        transcript=transcript,
        prompt=first_user_text(transcript),
        agent=agent or transcript.model or name,
        started_ms=min((span.started for span in spans if span.started is not None), default=None),
        notes=tuple(notes),
        source=tuple(("data[]", part) for part in parts),
    )


def _span(span: Mapping[str, Any], ids: set[str]) -> Span:
    data = as_object(span.get("span_data"))
    kind = _KINDS.get(plain_text(data.get("type")), "other")
    response = data["response"] if isinstance(data.get("response"), Mapping) else None
    parent = plain_text(span.get("parent_id"))
    return Span(
        id=plain_text(span.get("id")),
        kind=kind,
        name=plain_text(data.get("name")) or plain_text(data.get("type")),
        parent=parent if parent in ids else "",
        started=moment_ms(span.get("started_at")),
        ended=moment_ms(span.get("ended_at")),
        asked=data.get("input"),
        answered=response if response is not None else data.get("output"),
        model=plain_text(data.get("model")),
        usage=data.get("usage") if kind == "model" else None,
        error=plain_text(value_at(span, "error", "message")),
    )


FORMAT = Format(
    name=NAME,
    title="traces of openai-agents",
    looks_like="objects with `object` (trace, trace.span), or a list of these in `data`",
    can_read=can_read,
    recordings=with_test_names(by_value(recordings)),
    gathered=True,
    rank=62,
)
