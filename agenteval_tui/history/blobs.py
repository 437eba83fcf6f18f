"""Transcripts and results as they lie in the file: compact JSON, compressed where that pays; and what search finds.

Both are written by position, not by name: half the bytes, and several times as fast to write and read as
`transcripts.codec` and `grading.codec`, which stay the form for people and other programs. The first item is the
version of the layout; a field that the models gain needs a new one (a test compares the fields).
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from agenteval_tui.core.ids import criterion_names
from agenteval_tui.core.storable import storable
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome, Span
from agenteval_tui.transcripts.model import (
    Attachment,
    HookRun,
    Message,
    Note,
    Output,
    RunError,
    Step,
    Timing,
    ToolCall,
    Transcript,
    Usage,
)
from agenteval_tui.transcripts.model_request import (
    ModelRequests,
    OfferedTool,
    RequestLine,
    RequestPart,
    RequestReference,
)
from agenteval_tui.transcripts.state import ProbeState, Reading
from agenteval_tui.transcripts.traceback import traceback_data, traceback_from

_LAYOUT = 1
_LAYOUT_WITH_ATTACHMENTS = 2
"""Of transcripts with images or files, so that a program that knows no attachments refuses to read them."""
_BEGINNINGS = tuple(b"[%d,[" % layout for layout in (_LAYOUT, _LAYOUT_WITH_ATTACHMENTS))
_RESULTS_LAYOUT = 2
_PLAIN = 400  # bytes; what is shorter is kept as it is: compressing it costs more time than it saves space
_SMALL = 8192  # bytes
_LARGEST = 1 << 30  # bytes, no longer compressed
# What most results say, for the compression to refer to: two thirds of the bytes, in less time. Never to be
# changed: what was written with it can't be read without it.
_WORDS = (
    rb'["tool","name","id","message",null,"pending","error"],["system","user","assistant","tool_calls","arguments"'
    rb'"the criterion is negated: nothing is configured: the metric checks nothing","skipped","needs_review","warning"'
    rb'"the agent did not finish"ToolSequence","ToolUse","Latency","Cost","Regex","JsonSchema","JmesPath","Judge",'
    rb'"NumberMatch","Similarity","value",1,0,0,0,""]]],"JsonResponse","ToolCall","Transcript","Reasoning",'
    rb'" must not be in the text, but it is (lines and "the text does not contain any of ",'
    rb'"the text does not begin with ","the text does not end with ","the text is not ","the text is empty",'
    rb'"is not in the text; the nearest is '
    rb'"not_contains_any[0]",true,"is not in the text",null,[],[],"ContainsNot"],["not_contains_any[1]",'
    rb'"equals",true,"the text is ","Equals"]]],"starts_with",true,"the text begins with ","StartsWith"]]],'
    rb'"ends_with",true,"the text ends with \","EndsWith"]]],"matches",false,"the text matches ","Matches"]]],'
    rb'[1,[[["passed",1.0,"error",1.0,false,"TextResponse","failed",0.0,"error",1.0,false,"TextResponse","'
    rb'[["message",1,0,"",[["TextMatch","TextMatch","failed",0.0,1.0,false,"the text does not contain \"'
    rb'","",[["TextMatch","TextMatch","passed",1.0,1.0,false,"",[["contains_ignore_case",true,"the text contains '
    rb'\" (line 1)","",""]],[],"Contains"],["contains_all[0]",true,"the text contains \"","",[["message",1,'
    rb'""]],[],"Contains"]]],["TextMatch","TextMatch","passed",1.0,1.0,false,"",[["contains",true,'
    rb'"the text contains \"'
)

# ASCII only: lone surrogates, which servers do send, survive as escapes.
_encode = json.JSONEncoder(separators=(",", ":")).encode


def decoded_json(data: bytes) -> Any:
    """The value that `json.loads` gives, or its errors; of megabytes in a third of the time."""
    try:
        return msgspec.json.decode(data)
    except ValueError:
        return json.loads(data)  # which also reads lone surrogates, NaN, and numbers that become infinite


def json_text(value: object) -> str:
    """Compact ASCII JSON."""
    return _encode(value)


def plan_hash(prompt: str, tags: str, variables: str, criteria: str) -> bytes:
    """What tells the plan of a run from others: a hash of its prompt and of three columns of JSON."""
    # No text can hold the mark between the parts: JSON escapes it.
    parts = "\0".join((json_text(prompt), tags, variables, criteria))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).digest()[:16]


def _compress(data: bytes) -> bytes:
    """zlib's format, or `data` itself where it is short. Level 1 is within 10 % of level 6 here; a small window saves
    clearing memory."""
    if len(data) <= _PLAIN:
        return data
    if len(data) > _SMALL:
        return zlib.compress(data, 1)
    compressor = zlib.compressobj(1, zlib.DEFLATED, 13, 6, zlib.Z_DEFAULT_STRATEGY, _WORDS)
    return compressor.compress(data) + compressor.flush()


def _decompress(data: bytes) -> bytes:
    """What `_compress` was given. JSON begins with a bracket, and no stream of zlib does."""
    if data[:1] == b"[":
        return data
    stream = zlib.decompressobj(zdict=_WORDS)
    text = stream.decompress(data)
    if not stream.eof:
        raise zlib.error("incomplete or truncated stream")
    return text


def inflated(data: bytes, most: int, *, words: bool = True) -> bytes:
    """What was compressed, at most `most` bytes: a few foreign bytes may unpack to gigabytes.

    `words`: with the words of transcripts and results. Raises ValueError: it is more, or something else.
    """
    if words and data[:1] == b"[":
        return data
    try:
        stream = zlib.decompressobj(zdict=_WORDS) if words else zlib.decompressobj()
        text = stream.decompress(data, most)
    except zlib.error as wrong:
        raise ValueError(str(wrong)) from wrong
    if not stream.eof:
        raise ValueError("it is too large, or its end is missing")
    if text[:1] not in (b"[", b"{"):
        raise ValueError("it is not JSON")  # such as something compressed again
    return text


def is_transcript(content_hash: bytes, data: bytes) -> bool:
    """Whether these are the bytes that `pack_transcript` made with this hash."""
    try:
        text = inflated(data, _LARGEST)
    except ValueError:
        return False
    # The inputs of runs are stored with such a hash, too; they are no transcript.
    return text.startswith(_BEGINNINGS) and hashlib.sha256(text).digest()[:16] == content_hash


def are_results(data: bytes) -> bool:
    """Whether these are bytes that `pack_results` made."""
    try:
        inflated(data, _LARGEST)
        unpack_results(data)
    except ValueError:
        return False
    return True


def pack_transcript(transcript: Transcript) -> tuple[bytes, bytes]:
    """The transcript's content hash (16 bytes) and its compressed bytes. Raises ValueError where JSON can't hold it."""
    timing, usage, error = transcript.timing, transcript.usage, transcript.error
    text = _encode(
        [
            _LAYOUT_WITH_ATTACHMENTS if any(m.attachments for m in transcript.messages) else _LAYOUT,
            [
                _message_with_attachments(m)
                if m.attachments
                else (m.role, m.content, m.reasoning, m.tool_calls, m.tool_call, m.tool_call_id, m.name, True)
                if m.simulated
                else (m.role, m.content, m.reasoning, m.tool_calls, m.tool_call, m.tool_call_id, m.name)
                if m.reasoning
                or m.tool_calls
                or m.tool_call is not None
                or m.tool_call_id is not None
                or m.name is not None
                else (m.role, m.content)
                for m in transcript.messages
            ],
            [
                (c.id, c.name, c.arguments, c.result, c.status, c.started_ms, c.duration_ms, c.message, c.malformed)
                if c.traceback is None
                else (*astuple(c)[:-1], traceback_data(c.traceback))
                for c in transcript.tool_calls
            ],
            (timing.first_token_ms, timing.total_ms, [_step(s) for s in timing.steps]),
            _usage(usage),
            transcript.model,
            transcript.finish_reason,
            transcript.final_output,
            _error(error),
            *_rest(transcript),
        ]
    )
    data = text.encode("ascii")
    return hashlib.sha256(data).digest()[:16], _compress(data)


def _usage(usage: Usage) -> tuple[object, ...]:
    counts = usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens, usage.cost
    written = usage.cache_write_tokens, usage.cache_write_1h_tokens
    return counts if written == (None, None) else (*counts, *written)


def _rest(transcript: Transcript) -> tuple[object, ...]:
    """What few transcripts have, as far as the last of it that this one has."""
    simulated = transcript.user_usage != Usage()
    around = bool(transcript.hooks or transcript.workdir)
    requests = transcript.requests
    rare = simulated or transcript.output or around or transcript.state or requests is not None or transcript.outputs
    if not (transcript.log or transcript.notes or rare):
        return ()
    notes = [(note.code, note.what, note.place) if note.place else (note.code, note.what) for note in transcript.notes]
    output = [(line.at_ms, line.source, line.text, line.level, line.logger) for line in transcript.output]
    hooks = [
        (hook.phase, hook.name, hook.duration_ms, hook.output, _error(hook.error), hook.attempt)
        for hook in transcript.hooks
    ]
    state = [(probe.name, _reading(probe.before), _reading(probe.after)) for probe in transcript.state]
    rest = (transcript.log, notes, _usage(transcript.user_usage), output, hooks, transcript.workdir, state)
    packed = None if requests is None else _requests(requests, transcript.messages)
    if transcript.outputs:
        return (*rest, packed, dict(transcript.outputs))
    if requests is not None:
        return (*rest, packed)
    # Written by position: what comes last and is empty is left out, so that most transcripts stay short.
    return rest[: 7 if state else 6 if around else 4 if output else 3 if simulated else 2 if notes else 1]


_ELSEWHERE = "@content"
"""The key, in a message of a request, of the transcript's message that has the same text."""
_SHORT = 40  # characters that need no place elsewhere


def _requests(requests: ModelRequests, messages: Sequence[Message]) -> tuple[object, ...]:
    places = {message.content: place for place, message in enumerate(messages) if len(message.content) > _SHORT}
    tools = [[(tool.name, tool.description, dict(tool.parameters)) for tool in listed] for listed in requests.tools]
    references = [
        (
            reference.line,
            reference.model,
            reference.system,
            reference.messages,
            reference.tools,
            reference.parameters,
            reference.previous,
            reference.cached_tokens,
            reference.error,
            reference.answer,
            *(() if reference.input_tokens is None else (reference.input_tokens,)),
        )
        for reference in requests.references
    ]
    return (
        [_elsewhere(message, places) for message in requests.messages],
        [places.get(system, system) for system in requests.systems],
        tools,
        list(map(dict, requests.parameters)),
        references,
        [(line.name, line.about, line.called_by, line.used_in) for line in requests.lines],
        requests.unrecorded,
    )


def _elsewhere(sent_message: Mapping[str, Any], places: Mapping[str, int]) -> dict[str, Any]:
    """A message of a request, without a text that the transcript has."""
    content = sent_message.get("content")
    place = places.get(content) if isinstance(content, str) else None
    if place is None or _ELSEWHERE in sent_message:
        return dict(sent_message)
    return {
        _ELSEWHERE if key == "content" else key: place if key == "content" else value
        for key, value in sent_message.items()
    }


def _read_requests(
    conversation: Sequence[Message],
    messages: list[Any],
    systems: list[Any],
    tools: list[Any],
    parameters: list[Any],
    references: list[list[Any]],
    lines: Iterable[Any] = (),
    unrecorded: Iterable[RequestPart] = (),
) -> ModelRequests:
    requests = ModelRequests(
        tuple([_read_message(message, conversation) for message in messages]),
        systems=tuple([conversation[system].content if isinstance(system, int) else system for system in systems]),
        tools=tuple([tuple([OfferedTool(*tool) for tool in listed]) for listed in tools]),
        parameters=tuple(parameters),
        references=tuple(
            [
                RequestReference(line, model, system, tuple([(first, end) for first, end in stretches]), *rest)
                for line, model, system, stretches, *rest in references
            ]
        ),
        lines=tuple([RequestLine(*line) for line in lines]),
        unrecorded=tuple(unrecorded),
    )
    if not requests.is_complete:
        raise ValueError("these bytes are not a transcript: a request refers to a text that is not there")
    return requests


def _read_message(message: dict[str, Any], conversation: Sequence[Message]) -> dict[str, Any]:
    if type(message.get(_ELSEWHERE)) is not int:
        return message
    return {
        "content" if key == _ELSEWHERE else key: conversation[value].content if key == _ELSEWHERE else value
        for key, value in message.items()
    }


def _reading(reading: Reading | None) -> tuple[object, ...] | None:
    if reading is None:
        return None
    if not reading.problem:
        return (reading.value,)
    raised = None if reading.traceback is None else traceback_data(reading.traceback)
    more = (raised, reading.output) if raised is not None or reading.output else ()
    return (None, reading.problem, dict(reading.fields), *more)


def _read_reading(
    value: object, problem: str = "", fields: Mapping[str, Any] | None = None, traceback: Any = None, output: str = ""
) -> Reading:
    return Reading(value, problem, fields or {}, traceback_from(traceback), output)


def _read_state(name: str, before: list[Any] | None, after: list[Any] | None) -> ProbeState:
    return ProbeState(name, *(None if reading is None else _read_reading(*reading) for reading in (before, after)))


def _read_call(*parts: Any) -> ToolCall:
    return replace(ToolCall(*parts[:9]), traceback=traceback_from(parts[9]))


def _message_with_attachments(m: Message) -> tuple[object, ...]:
    attachments = [
        (file.media_type, file.size, file.sha256, file.name, file.description, file.url, file.mark)
        for file in m.attachments
    ]
    return (m.role, m.content, m.reasoning, m.tool_calls, m.tool_call, m.tool_call_id, m.name, m.simulated, attachments)


def _message(m: list[Any]) -> Message:
    simulated = len(m) > 7 and bool(m[7])
    attachments = tuple([Attachment(*parts) for parts in m[8]]) if len(m) > 8 else ()
    return Message(
        m[0],
        content=m[1],
        reasoning=m[2],
        tool_calls=tuple(m[3]),
        tool_call=m[4],
        tool_call_id=m[5],
        name=m[6],
        simulated=simulated,
        attachments=attachments,
    )


def _error(error: RunError | None) -> tuple[object, ...] | None:
    if error is None:
        return None
    parts = (error.kind, error.message, error.fix)
    if error.traceback is not None:
        return (*parts, error.code, dict(error.fields), traceback_data(error.traceback))
    return (*parts, error.code, dict(error.fields)) if error.code else parts


def _read_error(parts: list[Any] | None) -> RunError | None:
    if parts is None:
        return None
    kind, message, fix, *more = parts
    missing: tuple[Any, ...] = ("", {}, None)
    code, fields, traceback = (*more, *missing[len(more) :])
    return RunError(kind, message, fix, code, fields, traceback_from(traceback))


def _hook(phase: str, name: str, took_ms: float, output: str, error: list[Any] | None, attempt: int) -> HookRun:
    return HookRun(phase, name, took_ms, output, _read_error(error), attempt)


def _step(step: Step) -> tuple[object, ...]:
    parts = (step.name, step.started_ms, step.duration_ms)
    return (*parts, True) if step.setup else parts


def unpack_transcript(data: bytes) -> Transcript:
    """The transcript that `pack_transcript` packed. Raises ValueError when the bytes are something else."""
    try:
        layout, messages, calls, timing, usage, model, finish, final, error, *more = decoded_json(_decompress(data))
        if layout not in (_LAYOUT, _LAYOUT_WITH_ATTACHMENTS):
            raise ValueError(f"layout {layout} is not known")
        conversation = tuple([Message(m[0], m[1]) if len(m) == 2 else _message(m) for m in messages])
        return Transcript(
            messages=conversation,
            tool_calls=tuple([ToolCall(*call) if len(call) < 10 else _read_call(*call) for call in calls]),
            timing=Timing(timing[0], timing[1], tuple([Step(*step) for step in timing[2]])),
            usage=Usage(*usage),
            model=model,
            finish_reason=finish,
            final_output=final,
            error=_read_error(error),
            log=more[0] if more else "",
            notes=tuple([Note(*note) for note in more[1]]) if len(more) > 1 else (),
            user_usage=Usage(*more[2]) if len(more) > 2 else Usage(),
            output=tuple([Output(*line) for line in more[3]]) if len(more) > 3 else (),
            hooks=tuple([_hook(*hook) for hook in more[4]]) if len(more) > 4 else (),
            workdir=more[5] if len(more) > 5 else "",
            state=tuple([_read_state(*probe) for probe in more[6]]) if len(more) > 6 else (),
            requests=_read_requests(conversation, *more[7]) if len(more) > 7 and more[7] is not None else None,
            outputs=more[8] if len(more) > 8 else {},
        )
    except (zlib.error, TypeError, LookupError, RecursionError) as wrong:
        raise ValueError(f"these bytes are not a transcript: {wrong}") from wrong


def pack_results(results: Iterable[CriterionResult]) -> bytes:
    """Criterion results with metrics and evidence, compressed. Raises ValueError where JSON can't hold them."""
    packed = [
        (
            (r.criterion, r.outcome, r.score, r.severity, r.weight, r.negate, r.prototype_class, r.criterion_hash),
            (
                r.value,
                _spans(r.value_spans) if r.value_spans else (),
                r.message,
                r.source,
                r.code,
                r.fields,
                *((True,) if r.derived else ()),
            ),
            [
                (
                    (m.name, m.type, m.outcome, m.score, m.weight, m.neutral, m.message, m.code, m.fields)
                    if m.message or m.code or m.fields
                    else (m.name, m.type, m.outcome, m.score, m.weight, m.neutral),
                    [_evidence(e) for e in m.evidence],
                )
                for m in r.metrics
            ],
        )
        for r in results
    ]
    return _compress(_encode([_RESULTS_LAYOUT, packed]).encode("ascii"))


def unpack_results(data: bytes) -> tuple[CriterionResult, ...]:
    """The results that `pack_results` packed. Raises ValueError when the bytes are something else."""
    try:
        layout, packed = decoded_json(_decompress(data))
        if layout != _RESULTS_LAYOUT:
            raise ValueError(f"layout {layout} is not known")
        results = [_result(*parts) for parts in packed]
        # Two criteria of one name, as another tool's results may have, are told apart.
        names = criterion_names([result.criterion for result in results])
        return tuple(
            [
                result if result.criterion == name else replace(result, criterion=name)
                for result, name in zip(results, names, strict=True)
            ]
        )
    except (zlib.error, TypeError, LookupError, RecursionError) as wrong:
        raise ValueError(f"these bytes are not results: {wrong}") from wrong


def _evidence(e: Evidence) -> tuple[Any, ...]:
    spans = _spans(e.spans) if e.spans else ()
    near = _spans(e.near) if e.near else ()
    return e.condition, e.passed, e.message, e.expected, e.found, spans, near, e.group, e.code, e.fields


def _spans(spans: Iterable[Span]) -> list[tuple[Any, ...]]:
    return [(s.kind, s.index, s.start, s.end, s.path) for s in spans]


def _result(head: list[Any], rest: list[Any], metrics: list[list[Any]]) -> CriterionResult:
    criterion, outcome, score, severity, weight, negate, prototype, content_hash = head
    value, value_spans, message, source, code, fields, *derived = rest
    return CriterionResult(
        criterion,
        outcome=Outcome(outcome),
        score=score,
        severity=severity,
        weight=weight,
        negate=negate,
        prototype_class=prototype,
        criterion_hash=content_hash,
        value=value,
        value_spans=_read_spans(value_spans),
        metrics=tuple([_metric(*parts) for parts in metrics]),
        message=message,
        source=source,
        code=code,
        fields=fields or {},
        derived=derived == [True],
    )


def _metric(head: list[Any], evidence: list[list[Any]]) -> MetricResult:
    name, kind, outcome, score, weight, neutral, *more = head
    message, code, fields = more or ("", "", None)
    lines = tuple([_read_evidence(*parts) for parts in evidence])
    return MetricResult(
        name,
        type=kind,
        outcome=Outcome(outcome),
        score=score,
        weight=weight,
        neutral=neutral,
        evidence=lines,
        message=message,
        code=code,
        fields=fields or {},
    )


def _read_evidence(
    condition: str,
    passed: bool | None,
    message: str,
    expected: object,
    found: Any,
    spans: list[list[Any]],
    near: list[list[Any]],
    group: str,
    code: str,
    fields: dict[str, Any] | None,
) -> Evidence:
    return Evidence(
        condition,
        passed,
        message=message,
        expected=expected,
        found=found,
        spans=_read_spans(spans),
        near=_read_spans(near),
        group=group,
        code=code,
        fields=fields or {},
    )


def _read_spans(items: list[list[Any]]) -> tuple[Span, ...]:
    return tuple([Span(*item) for item in items])


def search_document(transcript: Transcript) -> tuple[str, str, str]:
    """What search finds of a run: prompts, answers, tool names and arguments.

    The same transcript must always give the same texts: the index is without content, and an entry is taken out by
    giving its texts again. Who changes this function must rebuild the index in a migration.
    """
    prompts = [m.content for m in transcript.messages if m.role == "user"]
    answers = [m.content for m in transcript.messages if m.role == "assistant" and m.content]
    if transcript.final_output and transcript.final_output not in answers:
        answers.append(transcript.final_output)
    tools = [
        f"{c.name} {c.arguments if isinstance(c.arguments, str) else ' '.join(_words(c.arguments))}"
        for c in transcript.tool_calls
    ]
    return storable("\n".join(prompts)), storable("\n".join(answers)), storable("\n".join(tools))


def _words(value: object) -> Iterable[str]:
    """Names and values of a JSON value, in order. Without recursion: arguments may be nested as deep as they like."""
    out: list[str] = []
    if value.__class__ is dict and all(inner.__class__ is str for inner in value.values()):
        # Nearly always: names, and a text for each.
        for key, inner in value.items():
            out += (str(key), inner)
        return out
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            out.append(item)
        elif isinstance(item, dict):
            # Reversed, since the last of the list is taken next: words come in their order.
            for key, inner in reversed(item.items()):
                pending.append(inner)
                pending.append(str(key))
        elif isinstance(item, (list, tuple)):
            pending.extend(reversed(item))
        elif item is not None:
            out.append(str(item))
    return out
