"""Traces whose spans still arrive: what is known of each, and when one is complete.

Exporters send spans in batches when they end, children before their parents as a rule, and each process its own. A
trace is complete when the span that started it has come and nothing of it came for `quiet_s`; without that span, after
`patience_s` without news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from agenteval_tui.extensions.otel.export_request import SentEvent, SentSpan
from agenteval_tui.extensions.otel.importer import recording_of, span_of
from agenteval_tui.formats.importers.message_formats import as_list
from agenteval_tui.formats.importers.recording import Recording, Skipped
from agenteval_tui.transcripts.codec import content_text

MOST_SPANS = 20_000
"""Of one trace; those that come after them are counted and left out."""
MOST_TRACES, MOST_OF_ALL = 2_000, 200_000
"""Traces that are open at a time, and all their spans and events: the quietest are closed for others."""
_REMEMBERED = 200  # closed traces that may be opened again, while they hold no more than MOST_OF_ALL
_KNOWN = 50_000  # ids of those before them
SERVICE = "service.name"
_REMOTE = 0x300  # SpanFlags: it is known whether the parent is remote, and it is


class OpenTrace(Struct):
    """One trace as far as it has come. `spans`: as OTLP JSON, by id; `events`: for spans that may not be here yet."""

    id: str
    heard_s: float
    spans: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    events: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    resource: dict[str, Any] = field(default_factory=dict)
    rooted: bool = False
    told_events: int = 0
    left_out: int = 0

    @property
    def service(self) -> str:
        """What the program that sent it calls itself; "" where it does not say."""
        name = content_text(self.resource.get(SERVICE)).strip()
        return "" if name.startswith("unknown_service") else name

    @property
    def size(self) -> int:
        """Spans and events."""
        return len(self.spans) + self.told_events

    def add_span(self, span: str, sent: SentSpan) -> None:
        """Take a span with its id."""
        if len(self.spans) >= MOST_SPANS and span not in self.spans:
            self.left_out += 1
            return
        self.spans[span] = sent.span
        self.resource.update(sent.resource)
        self.rooted = self.rooted or _begins(sent.span)

    def add_event(self, sent: SentEvent) -> None:
        """Take an event of a span, which may not be here yet."""
        if self.told_events >= MOST_SPANS:
            self.left_out += 1
            return
        self.told_events += 1
        self.events.setdefault(sent.span.lower(), []).append(sent.event)

    def told(self) -> list[dict[str, Any]]:
        """Its spans that are about a model, an agent or a tool, as the importer of files reads them."""
        spans = []
        for key, span in self.spans.items():
            more = self.events.get(key)
            whole = {**span, "events": [*as_list(span.get("events")), *more]} if more else span
            normal = span_of(whole)
            if normal["attributes"] or normal["evaluations"]:
                spans.append(normal)
        return spans

    def recording(self) -> Recording | Skipped:
        """The run that it holds so far; `Skipped`: nothing was said in it (yet)."""
        spans = self.told()
        if not spans:
            return Skipped("no span of it is about a model, an agent or a tool", place=f"trace {self.id[:32]}")
        return recording_of(self.id, spans)


class OpenTraces:
    """All traces that are open. Times are seconds of any clock that only goes forward.

    What comes of a trace that was closed opens it again, with all that it had, while it is remembered. What comes of a
    trace that was forgotten is counted as `late`.
    """

    def __init__(self, quiet_s: float, patience_s: float) -> None:
        self._quiet_s = quiet_s
        self._patience_s = patience_s
        self._open: dict[str, OpenTrace] = {}
        self._closed: dict[str, OpenTrace] = {}
        self._remembered = 0  # spans and events of those that are closed
        self._forgotten: dict[str, None] = {}
        self._newly_forgotten: list[str] = []
        self.late = 0
        """Spans and events of traces that are not remembered any more: they were left out."""

    def __len__(self) -> int:
        return len(self._open)

    def add(self, spans: Iterable[SentSpan], events: Iterable[SentEvent], now_s: float) -> dict[str, OpenTrace]:
        """Take what a request brought; gives the traces that it changed, by id."""
        changed: dict[str, OpenTrace] = {}
        for sent in spans:
            trace, span = content_text(sent.span.get("traceId")).lower(), content_text(sent.span.get("spanId")).lower()
            open_trace = self._trace(trace, now_s) if trace and span else None
            if open_trace is None:
                continue
            changed[trace] = open_trace
            open_trace.add_span(span, sent)
        for event in events:
            open_trace = self._trace(event.trace.lower(), now_s)
            if open_trace is None:
                continue
            changed[open_trace.id] = open_trace
            open_trace.add_event(event)
        return changed

    def closed(self, now_s: float) -> list[OpenTrace]:
        """Close the traces that are complete, or of which no more is expected, and give them."""
        ended = [open_trace for open_trace in self._open.values() if now_s >= self._due(open_trace)]
        remaining = sorted(
            (open_trace for open_trace in self._open.values() if now_s < self._due(open_trace)),
            key=lambda open_trace: open_trace.heard_s,
        )
        size = sum(open_trace.size for open_trace in remaining)
        for number, open_trace in enumerate(remaining):
            if len(remaining) - number <= MOST_TRACES and size <= MOST_OF_ALL:
                break
            ended.append(open_trace)
            size -= open_trace.size
        return [self._close(open_trace) for open_trace in ended]

    def forgotten(self) -> list[str]:
        """The traces that were forgotten since the last call, by id."""
        forgotten_ids, self._newly_forgotten = self._newly_forgotten, []
        return forgotten_ids

    def all(self) -> list[OpenTrace]:
        """Close all traces, as they are."""
        return [self._close(open_trace) for open_trace in list(self._open.values())]

    def next_s(self) -> float | None:
        """The moment at which the next trace may be complete; None: none is open."""
        return min(map(self._due, self._open.values()), default=None)

    def _due(self, trace: OpenTrace) -> float:
        return trace.heard_s + (self._quiet_s if trace.rooted else self._patience_s)

    def _trace(self, trace: str, now_s: float) -> OpenTrace | None:
        if trace in self._forgotten:
            self.late += 1
            return None
        open_trace = self._open.get(trace) or self._closed.pop(trace, None) or OpenTrace(trace, now_s)
        # One that is opened again counts as open, and no more as remembered.
        if trace not in self._open:
            self._remembered -= open_trace.size
        self._open[trace] = open_trace
        open_trace.heard_s = now_s
        return open_trace

    def _close(self, trace: OpenTrace) -> OpenTrace:
        del self._open[trace.id]
        self._closed[trace.id] = trace
        self._remembered += trace.size
        # At least one is remembered, however large: what comes late mostly comes of the last one.
        while len(self._closed) > _REMEMBERED or (self._remembered > MOST_OF_ALL and len(self._closed) > 1):
            old = next(iter(self._closed))
            self._remembered -= self._closed.pop(old).size
            self._forgotten[old] = None
            self._newly_forgotten.append(old)
        if len(self._forgotten) > _KNOWN:
            del self._forgotten[next(iter(self._forgotten))]
        return trace


def _begins(span: Mapping[str, Any]) -> bool:
    """Whether a trace begins with this span, as far as its program knows: it has no parent, or one elsewhere."""
    return not span.get("parentSpanId") or is_remote(span)


def is_remote(span: Mapping[str, Any]) -> bool:
    """Whether a span says that its parent is of another program."""
    flags = span.get("flags")
    return isinstance(flags, int) and flags & _REMOTE == _REMOTE
