"""A request of an OTLP exporter: spans, or log records, as protobuf or JSON.

The forms are those of OTLP 1.x (https://opentelemetry.io/docs/specs/otlp/, "OTLP/HTTP"): both become OTLP JSON, which
the importer of files reads. Instrumentations since the conventions of 1.28 send what was said as log records with an
`event.name` instead of events of the span; they are put into the span that they name.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from msgspec import Struct

from agenteval_tui.core.numbers import count
from agenteval_tui.formats.importers.message_formats import as_list, objects_in, value_at

LARGEST = 64_000_000
"""Bytes of a request, unpacked."""
TRACES, LOGS, METRICS = "/v1/traces", "/v1/logs", "/v1/metrics"
JSON, PROTOBUF = "application/json", "application/x-protobuf"
_BYTES = ("traceId", "spanId", "parentSpanId")
_REJECTED = {TRACES: ("rejectedSpans", "rejected_spans"), LOGS: ("rejectedLogRecords", "rejected_log_records")}
_LEVELS = {TRACES: ("resourceSpans", "scopeSpans", "spans"), LOGS: ("resourceLogs", "scopeLogs", "logRecords")}


class RefusedExportError(Exception):
    """A request that is answered with an HTTP status and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class SentSpan(Struct, frozen=True):
    """A span as OTLP JSON, with the attributes of the resource (the program) that sent it."""

    span: Mapping[str, Any]
    resource: Mapping[str, Any]


class SentEvent(Struct, frozen=True):
    """A log record that belongs to a span, as an event of it."""

    trace: str
    span: str
    event: Mapping[str, Any]
    resource: Mapping[str, Any]


def unpacked(body: bytes, encoding: str) -> bytes:
    """A body without its compression. Raises `RefusedExportError`."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise RefusedExportError(415, f"bodies packed with {encoding[:40]} are not read; send gzip")
    # 32: with the header of gzip or of zlib, whichever was sent as "deflate".
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        # With a limit: a small body may unpack to more than the memory holds.
        data = unpacking.decompress(body, LARGEST)
    except zlib.error:
        raise RefusedExportError(400, f"the body is not {encoding}") from None
    if unpacking.unconsumed_tail:
        raise RefusedExportError(413, f"a request may have {LARGEST // 1_000_000} MB, unpacked")
    if not unpacking.eof:
        raise RefusedExportError(400, f"the body is cut off: its {encoding} has no end")
    return data


def decoded(path: str, body: bytes, kind: str) -> dict[str, Any]:
    """The request as OTLP JSON. `kind`: its content type. Raises `RefusedExportError`."""
    kind = kind.partition(";")[0].strip().lower()
    if kind == JSON:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            raise RefusedExportError(400, "the body is not JSON") from None
        if not isinstance(document, dict):
            raise RefusedExportError(400, "the body is not a request of OTLP")
        return document
    if kind != PROTOBUF:
        raise RefusedExportError(415, f"send {PROTOBUF} or {JSON}")
    return _from_protobuf(path, body)


def reply(path: str, kind: str, unread: int) -> tuple[bytes, str]:
    """The reply to an exporter, in the format of its request, and its content type: empty if everything was read, else
    OTLP's "partial success" with the number of unread spans or log records."""
    message = said_unread(unread) if unread else ""
    if kind.partition(";")[0].strip().lower() == JSON:
        rejected = {_REJECTED[path][0]: str(unread), "errorMessage": message}
        return (json.dumps({"partialSuccess": rejected}).encode() if unread else b"{}"), JSON
    return (_protobuf_reply(path, unread, message) if unread else b""), PROTOBUF


def said_unread(unread: int) -> str:
    """A sentence on why `unread` parts of a request were not read."""
    return f"{count(unread, 'part')} of it could not be read: a span has a traceId and a spanId"


def unread_in(path: str, request: Mapping[str, Any]) -> int:
    """The number of parts of an OTLP JSON request that are left out, because they are not valid OTLP."""
    outer, inner, items = _LEVELS[path]
    resources, unread = _maps(request.get(outer))
    for resource in resources:
        scopes, more = _maps(resource.get(inner))
        unread += more
        for scope in scopes:
            spans, more = _maps(scope.get(items))
            unread += more
            if path == TRACES:
                unread += sum(not (_is_id(span.get("traceId")) and _is_id(span.get("spanId"))) for span in spans)
    return unread


def spans_of(request: Mapping[str, Any]) -> Iterator[SentSpan]:
    """The spans in an OTLP JSON request. Leaves out invalid spans, which `unread_in` counts."""
    for resource, scope in _scopes(request, "resourceSpans", "scopeSpans"):
        for span in objects_in(scope.get("spans")):
            if _is_id(span.get("traceId")) and _is_id(span.get("spanId")):
                yield SentSpan(span, resource)


def events_of(request: Mapping[str, Any]) -> Iterator[SentEvent]:
    """The log records in a request that are events of a span."""
    for resource, scope in _scopes(request, "resourceLogs", "scopeLogs"):
        for record in objects_in(scope.get("logRecords")):
            attributes = as_list(record.get("attributes"))
            named = (_plain(pair.get("value")) for pair in objects_in(attributes) if pair.get("key") == "event.name")
            name = record.get("eventName") or next(named, "")
            # Instrumentations send what was said as a map.
            fields = as_list(value_at(record, "body", "kvlistValue", "values"))
            trace, span = record.get("traceId"), record.get("spanId")
            if _is_id(name) and _is_id(trace) and _is_id(span):
                event = {"name": name, "attributes": [*fields, *attributes]}
                yield SentEvent(trace, span, event, resource)


def _scopes(
    request: Mapping[str, Any], outer: str, inner: str
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for entry in objects_in(request.get(outer)):
        pairs = objects_in(value_at(entry, "resource", "attributes"))
        attributes = {str(pair.get("key")): _plain(pair.get("value")) for pair in pairs}
        for scope in objects_in(entry.get(inner)):
            yield attributes, scope


def _plain(value: object) -> object:
    """The value of a resource's attribute, where it is a scalar."""
    return next(iter(value.values()), None) if isinstance(value, Mapping) else value


def _is_id(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value)


def _maps(value: Any) -> tuple[list[Mapping[str, Any]], int]:
    """The objects in a list, and how many of what it holds are none. What is absent holds nothing."""
    if value is None:
        return [], 0
    if not isinstance(value, list):
        return [], 1
    mappings = [item for item in value if isinstance(item, Mapping)]
    return mappings, len(value) - len(mappings)


def _from_protobuf(path: str, body: bytes) -> dict[str, Any]:
    # The extra `otel`, which takes 60 ms: only who listens pays for it.
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    message = (ExportTraceServiceRequest if path == TRACES else ExportLogsServiceRequest)()
    try:
        message.ParseFromString(body)
        document: dict[str, Any] = MessageToDict(message, use_integers_for_enums=True)
    except (DecodeError, RecursionError, ValueError):
        raise RefusedExportError(400, "the body is not a request of OTLP") from None
    # Protobuf's own JSON has bytes in base64; OTLP's has the ids in hexadecimal.
    for outer, inner, items in _LEVELS.values():
        for _, scope in _scopes(document, outer, inner):
            for record in as_list(scope.get(items)):
                record.update({key: base64.b64decode(record[key]).hex() for key in _BYTES if key in record})
    return document


def _protobuf_reply(path: str, unread: int, message: str) -> bytes:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    reply = (ExportTraceServiceResponse if path == TRACES else ExportLogsServiceResponse)()
    setattr(reply.partial_success, _REJECTED[path][1], unread)
    reply.partial_success.error_message = message
    return bytes(reply.SerializeToString())
