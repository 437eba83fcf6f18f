"""OpenTelemetry's GenAI spans: OTLP JSON (a document, or one a line), and the spans that its SDK prints.

A trace is a run: the conversation of its outermost agent, its tools' spans for times and failures. The spans of a
trace may stand anywhere in a file, so they are brought together on the disk.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.exchange.foreign_usage import moment_ms, number
from agenteval_tui.exchange.head import look
from agenteval_tui.exchange.json_stream import Broken, Unreadable
from agenteval_tui.exchange.message_dialects import plain_text
from agenteval_tui.exchange.otel_dialects import OF_EVENTS, PREFIXES, in_conventions, message_of_event
from agenteval_tui.exchange.otel_run import recording_of
from agenteval_tui.exchange.recorded import Recording, Skipped
from agenteval_tui.exchange.source import Source
from agenteval_tui.exchange.spool import Spool
from agenteval_tui.exchange.unread import said_of, texts_of

NAME = "otel"
LOOKS_LIKE = "OpenTelemetry GenAI spans: OTLP JSON with `resourceSpans`, or a list of spans with `attributes`"

_TIMES = ("startTimeUnixNano", "endTimeUnixNano", "start_time_unix_nano", "end_time_unix_nano")
_READ = ("context", "status", "attributes", "events", "name", "kind", "traceState", "flags", *_TIMES)
_KEPT = (
    "gen_ai.",
    "agenteval.",
    "pydantic_ai.all_messages",
    "operation.cost",
    "error.type",
    "llm.usage.",
    "agent_name",
    *PREFIXES,
)


def fits(value: Any) -> bool:
    """Whether a file's first value is an export of spans, or a span."""
    if not isinstance(value, Mapping):
        return False
    if "resourceSpans" in value or "resource_spans" in value:
        return True
    context = value.get("context")
    return isinstance(value.get("attributes"), Mapping) and isinstance(context, Mapping) and "trace_id" in context


def recordings(source: Source) -> Iterator[Recording | Skipped]:
    """The runs of all traces that have GenAI spans, in the order in which the traces begin in the file."""
    with Spool() as spool:
        others = 0
        passed_over: Counter[str] = Counter()
        for one in _spans(source):
            if isinstance(one, Skipped):
                yield one
                continue
            passed_over.update(one.pop("passed_over"))
            if one["attributes"]:
                spool.put(one["trace"], one)
            else:
                others += 1
                passed_over.update(path for path, _ in texts_of(one["others"], "attributes"))
        if others:
            about = "span is" if others == 1 else "spans are"
            yield Skipped(f"{others:,} {about} not about a model, an agent or its tools", counts=False)
        if passed_over:
            yield Skipped("", counts=False, fields=passed_over)
        for trace, spans in spool.groups():
            yield recording_of(trace, spans)


def _spans(source: Source) -> Iterator[dict[str, Any] | Skipped]:
    first = next(iter(look(source).values), None)
    if isinstance(first, Mapping) and "attributes" in first:
        for one in source.values():
            if isinstance(one, Broken):
                yield Skipped(one.reason, one.line, one.cut_off, counts=not one.note)
            elif isinstance(one.value, Mapping):
                yield _span(one.value)
        return
    reader = source.reader()
    try:
        while reader.kind():
            if reader.kind() != "list":
                yield from _export(reader)
                continue
            for _ in reader.elements():
                yield from _export(reader)
    except Unreadable as error:
        yield Skipped(f"from here on the file can't be read: {error.reason}", reader.line, error.cut_off)
    yield from said_of(reader)


def _export(reader: Any) -> Iterator[dict[str, Any]]:
    """The spans of one export; a large one is not held in memory."""
    for key in reader.members():
        if key not in ("resourceSpans", "resource_spans"):
            continue
        for _ in reader.elements():
            for inner in reader.members():
                if inner not in ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
                    continue
                for _ in reader.elements():
                    for innermost in reader.members():
                        if innermost != "spans":
                            continue
                        for _ in reader.elements():
                            span = reader.bounded()
                            if isinstance(span, Mapping):
                                yield _span(span)


def _span(given: Mapping[str, Any]) -> dict[str, Any]:
    """A span of either form, without what is not about a model, an agent or a tool."""
    context = given["context"] if isinstance(given.get("context"), Mapping) else {}
    status = given["status"] if isinstance(given.get("status"), Mapping) else {}
    code = status.get("code", status.get("status_code"))
    whole = _attributes(given.get("attributes"), all_of_them=True)
    attributes = in_conventions({key: value for key, value in whole.items() if key.startswith(_KEPT)})
    rest = {key: value for key, value in given.items() if key not in _READ}
    passed_over = Counter(path for path, _ in texts_of(rest))
    openinference = isinstance(whole.get("openinference.span.kind"), str)
    others = {
        key: value
        for key, value in whole.items()
        if not key.startswith(_KEPT)
        or (not openinference and key.startswith(PREFIXES) and key not in attributes and key != "agent.name")
    }
    evaluations, messages = [], []
    events = given.get("events")
    for event in events if isinstance(events, list) else ():
        if isinstance(event, Mapping):
            inner = _attributes(event.get("attributes"), all_of_them=True)
            name = plain_text(event.get("name"))
            if name == "gen_ai.evaluation.result":
                evaluations.append(inner)
            elif said := message_of_event(name, inner):
                messages += said
            else:
                attributes = {**{key: value for key, value in inner.items() if key.startswith(_KEPT)}, **attributes}
                others.update({f"{key} (of an event)": inner[key] for key in inner if not key.startswith(_KEPT)})
    if messages:
        attributes[OF_EVENTS] = messages
    return {
        "trace": plain_text(given.get("traceId") or given.get("trace_id") or context.get("trace_id")),
        "id": plain_text(given.get("spanId") or given.get("span_id") or context.get("span_id")),
        "parent": plain_text(given.get("parentSpanId") or given.get("parent_span_id") or given.get("parent_id")),
        "name": plain_text(given.get("name")),
        "start": _moment(given, "startTimeUnixNano", "start_time_unix_nano", "start_time"),
        "end": _moment(given, "endTimeUnixNano", "end_time_unix_nano", "end_time"),
        "failed": code in (2, "STATUS_CODE_ERROR", "ERROR"),
        "said": plain_text(status.get("message") or status.get("description")),
        "attributes": attributes,
        "evaluations": evaluations,
        "others": others,
        "passed_over": dict(passed_over),
    }


def _moment(given: Mapping[str, Any], *keys: str) -> float | None:
    """Milliseconds since 1970, of nanoseconds or of a date."""
    for key in keys:
        value = given.get(key)
        if (key == "start_time" or key == "end_time") and (found := moment_ms(value)) is not None:
            return found
        if (nanoseconds := number(value)) is not None:
            return nanoseconds / 1e6
    return None


def _attributes(given: Any, *, all_of_them: bool = False) -> dict[str, Any]:
    if isinstance(given, Mapping):
        pairs = [(str(key), value) for key, value in given.items()]
    elif isinstance(given, list):
        pairs = [(str(one.get("key")), _value(one.get("value"))) for one in given if isinstance(one, Mapping)]
    else:
        return {}
    return {key: value for key, value in pairs if all_of_them or key.startswith(_KEPT)}


def _value(given: Any, depth: int = 0) -> Any:
    """OTLP's AnyValue."""
    if not isinstance(given, Mapping) or depth > 100:
        return given
    for key, value in given.items():
        if key == "intValue":
            return int(value) if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 20 else value
        if key == "arrayValue":
            inner = _list(value.get("values")) if isinstance(value, Mapping) else ()
            return [_value(one, depth + 1) for one in inner]
        if key == "kvlistValue":
            inner = _list(value.get("values")) if isinstance(value, Mapping) else ()
            pairs = [one for one in inner if isinstance(one, Mapping)]
            return {str(one.get("key")): _value(one.get("value"), depth + 1) for one in pairs}
        if key == "bytesValue":
            return _bytes(value)
        return value
    return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _bytes(value: Any) -> str:
    try:
        return base64.b64decode(value).decode("utf-8", "replace")
    except (ValueError, TypeError):
        return plain_text(value)
