"""`capture: otel`: agents whose runs are made of the spans that they send.

A program gets in its environment where spans are sent to, and whose they are: TRACEPARENT, which those in its trace
name, and an attribute of the resource, which all of its spans have. A server gets the header `traceparent`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from agenteval_tui.agents.base import (
    Agent,
    AgentEvent,
    AgentRequest,
    AgentSetup,
    Captured,
    CheckReport,
    Closable,
    Done,
    Failed,
    Noted,
    Prepared,
    UsageReported,
    closing,
)
from agenteval_tui.agents.options import AgentOptions
from agenteval_tui.agents.recording.conversation import Asked, UsedTool, transcript_of_asked
from agenteval_tui.agents.recording.providers import past_proxies
from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.core.numbers import count
from agenteval_tui.extensions.otel.export_request import LOGS, METRICS, TRACES, SentEvent, SentSpan
from agenteval_tui.extensions.otel.importer import (
    Span,
    asked_of,
    conversation_in,
    innermost,
    name_of_tool,
    sorted_out,
    with_measures,
)
from agenteval_tui.extensions.otel.open_traces import OpenTrace, is_remote
from agenteval_tui.extensions.otel.protobuf import require_protobuf
from agenteval_tui.extensions.otel.receiver import Receiver
from agenteval_tui.formats.importers.message_formats import plain_text
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.model import Message, Note, RunError, Step, Timing, Transcript, Usage

RUN, TRACE = "agenteval.run.id", "agenteval.trace.id"
"""Attributes of the resource of a program's spans: which run it is, and which turn of it."""
_QUIET_S = 0.1  # nothing more comes of a trace that is whole
_PROGRAM_S, _SERVER_S = 1.0, 10.0
"""How long spans are waited for: a program sent its own before it ended; a server sends them every five seconds."""
NO_SPANS = {
    False: "it must export OTLP over HTTP, end its spans, and let its tracer shut down",
    True: "start it with OTEL_EXPORTER_OTLP_ENDPOINT={address}, and let it take `traceparent` from requests",
}
"""Why no span may have come of a program and of a server (True), and what helps."""


class TracedAgent:
    """Another agent, whose spans are received. Where they tell nothing the run is what the agent itself told.

    Runs at the same time have traces of their own. A turn that failed is told as far as its spans tell it. Failures
    beside those of the agent are of the kind capture: the receiver's port can't be had.
    """

    def __init__(self, inner: Agent, setup: AgentSetup, options: AgentOptions) -> None:
        require_protobuf()
        self._inner = inner
        self._setup = setup
        self._port: int = getattr(options, "capture_port", None) or 0
        self._receiver: Receiver | None = None
        self._starting = asyncio.Lock()
        self._open: dict[str, _Turn] = {}  # by the id of the trace that it was given
        self._traces: dict[str, _Turn] = {}  # by the ids of traces that its program began by itself
        self._earlier: dict[str, list[_Turn]] = {}  # by run

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """The agent's events; before the end what its spans told."""
        try:
            receiver = await self._started()
        except AgentevalError as error:
            yield Failed(RunError.told("capture", error.sentence, ""))
            return
        if request.turn <= 1:
            self._earlier.pop(request.run, None)
        turn = _Turn()
        self._open[turn.trace.id] = turn
        usage: list[UsageReported] = []
        end: Done | Failed | None = None
        try:
            async with closing(self._inner.run(self._request(request, receiver, turn))) as events:
                async for event in events:  # to its end: a program that is done sends its last spans then
                    if isinstance(event, UsageReported):
                        usage.append(event)
                    elif isinstance(event, Done | Failed):
                        end = end or event
                        turn.done = turn.done or time.monotonic()
                    else:
                        yield event
            if end is None:
                return
            await turn.wait(_SERVER_S if self._port else _PROGRAM_S)
        finally:
            self._shut(turn)
        yield Prepared("wait for its spans", (time.monotonic() - turn.done) * 1000)
        for last in self._ended(request, turn, usage, end):
            yield last

    async def check(self, thorough: bool = False) -> CheckReport:
        """As the agent itself says."""
        return await self._inner.check(thorough)

    def release(self, run: str) -> None:
        """The run is over."""
        self._earlier.pop(run, None)
        if isinstance(self._inner, Closable):
            self._inner.release(run)

    async def close(self) -> None:
        """Stop receiving, and close the agent."""
        try:
            await self._inner.close()
        finally:
            if self._receiver is not None:
                await self._receiver.close()

    async def _started(self) -> Receiver:
        async with self._starting:
            if self._receiver is None:
                receiver = Receiver(self._take)
                try:
                    await receiver.start(self._port)
                except InfrastructureError as error:
                    fix = "end what listens there, or choose another `capture_port`"
                    raise AgentevalError(error.what, fix=fix) from None
                self._receiver = receiver
            return self._receiver

    def _take(self, spans: Sequence[SentSpan], events: Sequence[SentEvent]) -> None:
        """Spans that arrived, of any run."""
        for sent in spans:
            trace, span = (content_text(sent.span.get(key)).lower() for key in ("traceId", "spanId"))
            turn = self._turn(trace, sent.resource)
            if turn is not None and span:
                turn.trace.add_span(span, sent)
                turn.heard()
        for event in events:
            turn = self._turn(event.trace.lower(), event.resource)
            if turn is not None:
                turn.trace.add_event(event)
                turn.heard()

    def _turn(self, trace: str, resource: Mapping[str, Any]) -> _Turn | None:
        """Whose it is: what the program says of itself, else its trace. None: of no run that still listens."""
        # A program that ignores TRACEPARENT begins traces of its own: its resource still says whose they are.
        named = self._open.get(content_text(resource.get(TRACE)))
        if named is not None and trace:
            self._traces[trace] = named
        return named or self._open.get(trace) or self._traces.get(trace)

    def _shut(self, turn: _Turn) -> None:
        del self._open[turn.trace.id]
        self._traces = {trace: waiting_turn for trace, waiting_turn in self._traces.items() if waiting_turn is not turn}

    def _request(self, request: AgentRequest, receiver: Receiver, turn: _Turn) -> AgentRequest:
        """The request with whose the spans are."""
        config = dict(request.config or self._setup.config)
        if self._port:
            headers = config.get("headers") or {}
            own_headers = {name: text for name, text in headers.items() if name.lower() != "traceparent"}
            config["headers"] = {**own_headers, "traceparent": turn.parent}
            return replace(request, config=config)
        before = config.get("env") or {}
        env = {**self._setup.env, **before}
        config["env"] = {**before, **environment(receiver.address, turn.parent, request.run, env)}
        if "reuse" in config:
            config["reuse"] = False  # a process keeps the environment that it was started with
        return replace(request, config=config)

    def _ended(
        self, request: AgentRequest, turn: _Turn, usage: list[UsageReported], end: Done | Failed
    ) -> list[AgentEvent]:
        turns = [*self._earlier.get(request.run, ()), turn]
        if request.run:
            # The spans of earlier turns are kept: the transcript is made of all turns together.
            self._earlier[request.run] = turns
        own_turn = whole_transcript(turn.trace.told())
        whole = whole_transcript([span for turn in turns for span in turn.trace.told()])
        if own_turn is None or whole is None:
            assert self._receiver is not None
            why = NO_SPANS[bool(self._port)].format(address=self._receiver.address)
            if self._receiver.refused:
                why = f"{why}; its last request could not be read: {self._receiver.last_refusal}"
            return [*usage, Noted(Note("no_spans", why)), end]
        transcript, began_ms = whole
        if all(message.role != "user" for message in transcript.messages):  # of tools alone
            transcript = _asked_first(
                transcript, [message for message in request.messages if message.role in ("system", "user")]
            )
        # Usage is of this turn alone, as the engine adds it up.
        events: list[AgentEvent] = list(usage) if own_turn[0].usage == Usage() else [UsageReported(own_turn[0].usage)]
        if missing := len(turn.missing()):
            events.append(Noted(Note("open_spans", f"{count(missing, 'span')} that others belong to did not come")))
        if turn.trace.left_out:
            text = f"{count(turn.trace.left_out, 'span')} of it: a trace may have no more"
            events.append(Noted(Note("left_out", text)))
        events.append(Captured(_later(transcript, began_ms - turns[0].began_ms)))
        if isinstance(end, Done):
            end = replace(
                end, finish_reason=own_turn[0].finish_reason or end.finish_reason, model=own_turn[0].model or end.model
            )
        return [*events, end]


class _Turn:
    """One turn of a run that is traced: its spans as far as they have come. `parent` is its `traceparent`."""

    def __init__(self) -> None:
        self.began_ms = time.time() * 1000
        self.done = 0.0
        """When the agent had finished, as `time.monotonic` says it."""
        self.trace = OpenTrace(secrets.token_hex(16), time.monotonic())
        self._span = secrets.token_hex(8)
        self.parent = f"00-{self.trace.id}-{self._span}-01"
        self._news = asyncio.Event()

    def heard(self) -> None:
        """More of it has come."""
        self.trace.heard_s = time.monotonic()
        self._news.set()

    def missing(self) -> set[str]:
        """The spans that others belong to, and that have not come; those of other programs apart, as far as is said."""
        known_ids = {*self.trace.spans, self._span, ""}
        return {
            parent
            for span in self.trace.spans.values()
            if (parent := content_text(span.get("parentSpanId")).lower()) not in known_ids and not is_remote(span)
        }

    async def wait(self, most_s: float) -> None:
        """Until it is whole, or nothing came for so long."""
        while True:
            self._news.clear()
            now, whole = time.monotonic(), bool(self.trace.spans) and not self.missing()
            # A whole trace may still get a late sibling of its last span; an unfinished one gets the whole time.
            end = self.trace.heard_s + _QUIET_S if whole else max(self.trace.heard_s, self.done) + most_s
            if now >= end:
                return
            try:
                await asyncio.wait_for(self._news.wait(), end - now)
            except TimeoutError:
                pass


def environment(address: str, parent: str, run: str, env: Mapping[str, str]) -> dict[str, str]:
    """The variables that have a program send its spans to `address`, as those of the run. What else its environment
    says of its tracing stays."""
    trace = parent.split("-")[1]
    own = f"{RUN}={quote(run)},{TRACE}={trace}"
    before = env.get("OTEL_RESOURCE_ATTRIBUTES", "").strip(", ")
    variables = {
        "TRACEPARENT": parent,
        "OTEL_RESOURCE_ATTRIBUTES": f"{before},{own}" if before else own,
        "OTEL_EXPORTER_OTLP_ENDPOINT": address,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_BLRP_SCHEDULE_DELAY": "200",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_SDK_DISABLED": "false",
        **past_proxies(env),
    }
    for path in (TRACES, LOGS, METRICS):  # the variables of a signal come before those of all
        own = f"OTEL_EXPORTER_OTLP_{path.rpartition('/')[2].upper()}"
        # Only where it is set: an exporter that has none takes the general one, with the path of the signal.
        if f"{own}_ENDPOINT" in env:
            variables[f"{own}_ENDPOINT"] = f"{address}{path}"
        if f"{own}_PROTOCOL" in env:
            variables[f"{own}_PROTOCOL"] = "http/protobuf"
    for content in ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "TRACELOOP_TRACE_CONTENT"):
        # Without it, instrumentations record no messages. Who set it has decided.
        if content not in env:
            variables[content] = "true"
    return variables


def _asked_first(transcript: Transcript, messages: Sequence[Message]) -> Transcript:
    """The transcript after what was asked."""
    more = len(messages)
    calls = [
        replace(tool_call, message=None if tool_call.message is None else tool_call.message + more)
        for tool_call in transcript.tool_calls
    ]
    return replace(transcript, messages=(*messages, *transcript.messages), tool_calls=tuple(calls))


def _later(transcript: Transcript, by_ms: float) -> Transcript:
    """The transcript with times that count from so much earlier."""

    def at(moment: float | None) -> float | None:
        return None if moment is None else max(0.0, moment + by_ms)

    timing = transcript.timing
    steps = tuple([Step(step.name, at(step.started_ms) or 0.0, step.duration_ms) for step in timing.steps])
    calls = tuple([replace(call, started_ms=at(call.started_ms)) for call in transcript.tool_calls])
    return replace(
        transcript, tool_calls=calls, timing=Timing(at(timing.first_token_ms), timing.total_ms, steps), error=None
    )


def whole_transcript(spans: Sequence[Span]) -> tuple[Transcript, float] | None:
    """Each call of a model and of a tool that the spans of one run tell, in one conversation or several; with the
    moment in which the first started (milliseconds since 1970), which its times count from. None: they tell nothing.

    The importer of files takes the longest conversation: there a trace may be of many programs. Here the run is known.
    """
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
