"""OpenTelemetry's GenAI spans: OTLP JSON (a document, or one a line), and the spans that its SDK prints.

A trace is a run: the conversation of its outermost agent, its tools' spans for times and failures. The spans of a trace
may be anywhere in a file, so they are collected on disk.

Other instrumentations are read as if they wrote today's GenAI conventions: events of a span (`gen_ai.user.message`,
`gen_ai.choice`; conventions up to 1.36), and OpenInference's attributes (`llm.input_messages.0.message.content`), as
Phoenix and its instrumentations record them.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.models.requests import Request, offered_tools, parted
from agenteval_tui.agents.process.python_usage import is_usage_attribute
from agenteval_tui.agents.recording.conversation import Asked
from agenteval_tui.agents.recording.imported_requests import with_requests
from agenteval_tui.agents.recording.protocols import Reply
from agenteval_tui.agents.usage import UsageReader, usage_attributes
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.json_values import json_object, parsed_json
from agenteval_tui.extensions.otel import openinference
from agenteval_tui.extensions.otel.openinference import PREFIXES
from agenteval_tui.formats.agenteval_run import is_ours, restore_or_note
from agenteval_tui.formats.importers.agenteval_results import results_of
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import (
    as_list,
    as_object,
    json_in,
    messages_of,
    objects_in,
    plain_text,
    value_at,
)
from agenteval_tui.formats.importers.recording import (
    Recording,
    Skipped,
    as_id,
    as_repetition,
    first_user_text,
    skipped_element,
)
from agenteval_tui.formats.importers.span_tool_calls import UntoldCall, called_with, with_results, with_untold_calls
from agenteval_tui.formats.importers.trace_names import is_by_chance, with_test_names
from agenteval_tui.formats.importers.traced_requests import lived_conversation
from agenteval_tui.formats.importers.usage_import import moment_ms, number, with_usage
from agenteval_tui.formats.omitted_texts import texts_of
from agenteval_tui.formats.stream.json_reader import skipped_by
from agenteval_tui.formats.stream.json_stream import BrokenElement, UnreadableFile
from agenteval_tui.formats.stream.sniff import sniff
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.formats.stream.spool import Spool
from agenteval_tui.grading.grade import foreign_result, unreadable_result
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.codec import content_text, from_openai_messages
from agenteval_tui.transcripts.model import Note, RunError, Step, Timing, ToolCall, Transcript, Usage
from agenteval_tui.transcripts.model_request import RequestPart
from agenteval_tui.transcripts.observed import UNREAD_CALLS, without_calls

_TIMES = ("startTimeUnixNano", "endTimeUnixNano", "start_time_unix_nano", "end_time_unix_nano")
_READ = (
    "context",
    "status",
    "attributes",
    "events",
    "name",
    "kind",
    "traceState",
    "flags",
    "span_kind",
    "status_code",
    "status_message",
    *_TIMES,
)
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
SOURCE = "otel"
_TOOL, _AGENTS = "execute_tool", ("invoke_agent", "create_agent", "invoke_workflow")
_INDEXED = re.compile(r"gen_ai\.(prompt|completion)\.(\d+)\.(.+)")
_INDEXED_CALL = re.compile(r"tool_calls\.(\d+)\.(id|name|arguments)")
_OURS = "agenteval.evaluation."
_TWICE = ("agenteval.run", "agenteval.not_kept", "error.type")
_DEEPEST = 10  # spans between two of one call
_MOST = 10_000  # messages of the older, indexed form
Span = Mapping[str, Any]
"""As `span_of` gives it."""
OF_EVENTS = "gen_ai.messages_of_events"
"""The attribute under which the messages of a span's events are kept, as OpenAI chat messages."""
_MESSAGE = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")


def can_read(value: Any) -> bool:
    """Whether a file's first value is an export of spans, or a span."""
    if not isinstance(value, Mapping):
        return False
    if "resourceSpans" in value or "resource_spans" in value:
        return True
    return any("trace_id" in span["context"] for span in openinference.spans_in(value))


def recordings(source: Source) -> Iterator[Recording | Skipped]:
    """The runs of all traces that have GenAI spans, in the order in which the traces begin in the file."""
    with Spool() as spool:
        others = 0
        passed_over: Counter[str] = Counter()
        # Of spans that no run is made of, only the places of their texts are kept.
        for span in _spans(source):
            if isinstance(span, Skipped):
                yield span
                continue
            passed_over.update(span.pop("passed_over"))
            if span["attributes"]:
                spool.put(span["trace"], span)
            else:
                others += 1
                passed_over.update(path for path, _ in texts_of(span["others"], "attributes"))
        if others:
            about = "span is" if others == 1 else "spans are"
            yield Skipped(f"{others:,} {about} not about a model, an agent or its tools", counts=False)
        if passed_over:
            yield Skipped("", counts=False, fields=passed_over)
        for trace, spans in spool.groups():
            yield recording_of(trace, spans)


def _spans(source: Source) -> Iterator[dict[str, Any] | Skipped]:
    first = next(iter(sniff(source).values), None)
    if openinference.spans_in(first):
        for element in source.values():
            if isinstance(element, BrokenElement):
                yield skipped_element(element)
            else:
                yield from map(span_of, openinference.spans_in(element.value))
        return
    reader = source.reader()
    try:
        while reader.kind():
            # Exports follow one another (a line each), or are in one list.
            if reader.kind() != "list":
                yield from _export(reader)
                continue
            for _ in reader.elements():
                yield from _export(reader)
    except UnreadableFile as error:
        reason = f"from here on the file can't be read: {error.reason}"
        yield Skipped(reason, reader.line, error.cut_off, unread=True)
    yield from skipped_by(reader)


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
                                yield span_of(span)


def span_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """A span of either form, without what is not about a model, an agent or a tool."""
    context = as_object(data.get("context"))
    status = as_object(data.get("status"))
    code = status.get("code", status.get("status_code", data.get("status_code")))
    parent = plain_text(data.get("parentSpanId") or data.get("parent_span_id") or data.get("parent_id"))
    whole = openinference.with_kind(data, _attributes(data.get("attributes")))
    is_openinference = isinstance(whole.get(openinference.KIND), str)
    also = ("input.value", "output.value") if is_openinference else ()
    own = {key: value for key, value in whole.items() if key.startswith(_KEPT) or key in also}
    if any(key.startswith("gen_ai.") for key in own):  # the AI SDK has the tokens of the cache in names of its own
        own.update((key, value) for key, value in whole.items() if key.startswith("ai.usage."))
    attributes = _genai_attributes(own, is_root=not parent)
    rest = {key: value for key, value in data.items() if key not in _READ}
    passed_over = Counter(path for path, _ in texts_of(rest))
    others = {
        key: value
        for key, value in whole.items()
        if not key.startswith(_KEPT)
        or (not is_openinference and key.startswith(PREFIXES) and key not in attributes and key != "agent.name")
    }
    evaluations, messages = [], []
    for event in objects_in(data.get("events")):
        inner = _attributes(event.get("attributes"))
        name = plain_text(event.get("name"))
        if name == "gen_ai.evaluation.result":
            evaluations.append(inner)
        elif event_messages := message_of_event(name, inner):
            messages += event_messages
        else:
            # What the span itself says counts more.
            attributes = {**{key: value for key, value in inner.items() if key.startswith(_KEPT)}, **attributes}
            others.update({f"{key} (of an event)": inner[key] for key in inner if not key.startswith(_KEPT)})
            # Its attributes say what it is; this name is the one of every exception.
            passed_over["events[].name"] += name not in ("", "exception")
    if messages:
        attributes[OF_EVENTS] = messages
    return {
        "trace": plain_text(data.get("traceId") or data.get("trace_id") or context.get("trace_id")),
        "id": plain_text(data.get("spanId") or data.get("span_id") or context.get("span_id")),
        "parent": parent,
        "name": plain_text(data.get("name")),
        "start": _moment(data, "startTimeUnixNano", "start_time_unix_nano", "start_time"),
        "end": _moment(data, "endTimeUnixNano", "end_time_unix_nano", "end_time"),
        "failed": code in (2, "STATUS_CODE_ERROR", "ERROR"),
        "message": plain_text(status.get("message") or status.get("description") or data.get("status_message")),
        "attributes": attributes,
        "evaluations": evaluations,
        "others": others,
        "passed_over": dict(passed_over),
    }


def _moment(data: Mapping[str, Any], *keys: str) -> float | None:
    """Milliseconds since 1970, of nanoseconds or of a date."""
    for key in keys:
        value = data.get(key)
        if (key == "start_time" or key == "end_time") and (moment := moment_ms(value)) is not None:
            return moment
        if (nanoseconds := number(value)) is not None:
            return nanoseconds / 1e6
    return None


def _attributes(data: Any) -> dict[str, Any]:
    if isinstance(data, Mapping):
        return {str(key): value for key, value in data.items()}
    return {str(pair.get("key")): _value(pair.get("value")) for pair in objects_in(data)}


def _value(data: object, depth: int = 0) -> object:
    """OTLP's AnyValue."""
    if not isinstance(data, Mapping) or depth > 100:
        return data
    for key, value in data.items():
        if key == "intValue":
            # OTLP JSON writes 64-bit numbers as texts.
            return int(value) if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 20 else value
        if key == "arrayValue":
            return [_value(item, depth + 1) for item in as_list(value_at(value, "values"))]
        if key == "kvlistValue":
            pairs = objects_in(value_at(value, "values"))
            return {str(pair.get("key")): _value(pair.get("value"), depth + 1) for pair in pairs}
        if key == "bytesValue":
            return _bytes(value)
        return value
    return None


def _bytes(value: Any) -> str:
    try:
        return base64.b64decode(value).decode("utf-8", "replace")
    except (ValueError, TypeError):
        return plain_text(value)


FORMAT = Format(
    name="otel",
    title="OpenTelemetry GenAI spans",
    looks_like="OTLP JSON with `resourceSpans`, or a list of spans with `attributes`",
    can_read=can_read,
    recordings=with_test_names(recordings),
    gathered=True,
    aliases=("otlp",),
    rank=50,
)


# The spans of one trace as a recorded run


def recording_of(trace: str, spans: Sequence[Mapping[str, Any]]) -> Recording | Skipped:
    """The run that a trace holds; `Skipped` when nothing was recorded of what was said."""
    spans, tools, agents, models = sorted_out(spans)
    # The first to start is the outermost: what is around others starts before them.
    top = agents[0] if agents else spans[0]
    try:
        transcript, tellers = conversation_in(spans, tools, agents, models)
    except AgentevalError as error:
        return Skipped(error.what, place=f"trace {trace[:32]}")
    requests = [asked_of(span, spans[0]["start"] or 0.0, agents) for span in innermost(models) if _has_messages(span)]
    # Spans of one agent may hold a cut conversation; its requests together then tell more.
    lived = lived_conversation(requests) if len(tellers) < 2 else None
    if transcript is not None and lived is not None and len(lived.messages) > len(transcript.messages):
        transcript = lived
    about = top["attributes"]
    own = _object(about.get("agenteval.run"))
    if transcript is None and is_ours(own):
        transcript = Transcript()
    if transcript is None:
        return Skipped(
            "no span of this trace has messages or calls of tools: what was said is not in it",
            place=f"trace {trace[:32]}",
        )
    named = plain_text(about.get("agenteval.test.id"))
    conversations = (plain_text(span["attributes"].get("gen_ai.conversation.id")) for span in (top, *agents))
    conversation = next(filter(None, conversations), "")
    # Without a test, runs of one conversation repeat one another; a trace alone is a test of its own.
    name = named or conversation or trace
    agent = next(filter(None, map(_agent_name, (top, *agents, *models))), "")
    # Without spans of models, usage and times are those of the agents that told the conversation.
    measured = with_measures(transcript, spans, models or tellers or [top], tools, tellers[-1] if tellers else top)
    if not tools and not any(map(_has_messages, (*agents, *models))):
        # Texts alone have no place for calls: that there are none is not known.
        measured = without_calls(measured, SOURCE)
    measured = with_requests(measured, requests)
    recording = Recording(
        test_id=as_id(name),
        test_name=plain_text(about.get("agenteval.test.name")) or name,
        transcript=measured,
        repetition=as_repetition(about.get("agenteval.run.repetition")),
        prompt=first_user_text(transcript),
        variables=_object(about.get("agenteval.test.variables")),
        agent=agent or transcript.model,
        trace_name="" if named or (conversation and not is_by_chance(conversation)) else agent or _root_name(spans),
        variation=plain_text(about.get("agenteval.run.variation")),
        results=tuple(_evaluation(evaluation, measured) for span in spans for evaluation in span["evaluations"]),
        started_ms=spans[0]["start"],
        source=tuple(("", _told(span, is_ours(own))) for span in spans),
    )
    return restore_or_note(recording, own or None, events=True)


def _agent_name(span: Span) -> str:
    """The name of the agent that a span is of; "" for none."""
    about, name = span["attributes"], str(span["name"])
    own, agent_id = name.removeprefix(f"{_AGENTS[0]} "), plain_text(about.get("gen_ai.agent.id"))
    if own == name:
        own = "" if is_by_chance(agent_id) else agent_id
    return plain_text(about.get("gen_ai.agent.name") or about.get("agent_name")) or own


def _root_name(spans: Sequence[Span]) -> str:
    """The name of the span that no other one is around."""
    ids = {span["id"] for span in spans}
    return next((str(span["name"]) for span in spans if span["parent"] not in ids), "")


def sorted_out(spans: Sequence[Span]) -> tuple[list[Span], list[Span], list[Span], list[Span]]:
    """The spans in the order in which they started, and those of tools, of agents, of models."""
    spans = sorted(spans, key=lambda span: (span["start"] is None, span["start"] or 0))
    tools = [span for span in spans if _operation(span) == _TOOL]
    agents = [span for span in spans if _operation(span) in _AGENTS]
    return spans, tools, agents, [span for span in spans if _operation(span) not in (_TOOL, *_AGENTS)]


def _told(span: Mapping[str, Any], ours: bool) -> dict[str, Any]:
    """What a span says; its operation tells what kind of span it is. `ours`: this program wrote it, and what it says of
    the run once more in the words of the conventions is nothing that could be lost."""
    attributes = {**span.get("others", {}), **span["attributes"], "gen_ai.operation.name": None}
    if ours:
        attributes = {key: value for key, value in attributes.items() if not key.startswith(_TWICE)}
    evaluations = [{} if f"{_OURS}result" in evaluation else evaluation for evaluation in span["evaluations"]]
    return {
        "name": None if ours else span["name"],
        "status": {"message": span["message"]},
        "attributes": attributes,
        "events[].attributes": evaluations,
    }


def _object(text: Any) -> dict[str, Any]:
    """An object that an attribute holds as JSON: a test's variables, or our own data about a run."""
    return (json_object(text) or {}) if isinstance(text, str) else {}


def _operation(span: Mapping[str, Any]) -> str:
    operation = plain_text(span["attributes"].get("gen_ai.operation.name"))
    if operation:
        return operation
    return _TOOL if "gen_ai.tool.name" in span["attributes"] else ""


def conversation_in(
    spans: Sequence[Span], tools: Sequence[Span], agents: Sequence[Span], models: Sequence[Span]
) -> tuple[Transcript | None, list[Span]]:
    """What the spans of a trace say, as `sorted_out` gives them, and the agents that said it, if there are any.

    The conversation is that of the outermost agent; those of agents that it called are other conversations. If several
    agents are outermost (a workflow of agents), their conversations follow one another, and the messages of the second
    and further ones have their agent's name. Without messages it is empty if there are calls of tools, which
    `with_measures` adds; else None."""
    owners = _agents_around([*agents, *models], spans, agents)
    below = grouped((owners[span["id"]], span) for span in (*agents, *models))
    outermost = [agent for agent in agents if not owners[agent["id"]]]
    free = [model for model in models if not owners[model["id"]]]
    lines: list[tuple[Span, list[dict[str, Any]]]] = []
    # An agent that has said nothing itself is told by those that it called.
    waiting = outermost[::-1]
    while waiting:
        agent = waiting.pop()
        inside = below.get(agent["id"], [])
        beside = free if agent is outermost[0] else []
        line = _line(agent, [span for span in (*beside, *inside) if _operation(span) not in _AGENTS])
        if line:
            lines.append((agent, line))
        else:
            waiting += [span for span in inside if _operation(span) in _AGENTS][::-1]
    if not lines:
        line = _line(spans[0], models)
        return from_openai_messages(line) if line or tools else None, []
    return from_openai_messages(_one_after_another(lines)), [agent for agent, _ in lines]


def _agents_around(inner: Sequence[Span], spans: Sequence[Span], agents: Sequence[Span]) -> dict[str, str]:
    """The id of the innermost agent that each span is inside of, by the span's id; "" for none."""
    parents = {span["id"]: span["parent"] for span in spans}
    ids = {agent["id"] for agent in agents}
    owners: dict[str, str] = {}
    for span in inner:
        way = [span["id"]]
        around = parents.get(span["id"], "")
        # `way` also ends a circle of parents, which a broken export may have.
        while around and around not in ids and around not in owners and around not in way:
            way.append(around)
            around = parents.get(around, "")
        owner = around if around in ids else owners.get(around, "")
        owners.update(dict.fromkeys((span_id for span_id in way if span_id not in ids or span_id == span["id"]), owner))
    return owners


def _line(carrier: Span, models: Sequence[Span]) -> list[dict[str, Any]]:
    """The longest conversation that a span tells: each turn's input holds all that came before. Behind it the answer
    that only `carrier` tells, where the last turn ended with calls."""
    own = said_in(carrier["attributes"])
    best = own
    for span in models:
        messages = said_in(span["attributes"])
        # Of equal length the later one: it is of the last turn.
        if len(messages) >= len(best):
            best = messages
    own = own or [
        entry for message in as_list(carrier["attributes"].get(openinference.OF_TEXT)) for entry in messages_of(message)
    ]
    if not best:
        return own
    return [*best, own[-1]] if own and _is_answer(own[-1]) and not _is_answer(best[-1]) else best


def _is_answer(message: Mapping[str, Any]) -> bool:
    return message["role"] == "assistant" and bool(message.get("content")) and not message.get("tool_calls")


def _one_after_another(lines: Sequence[tuple[Span, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """The conversations of several agents. One that starts with everything said before continues it."""
    merged: list[dict[str, Any]] = []
    spoken = 0
    for agent, line in lines:
        line = _with_ids(line)
        if not merged:
            merged, spoken = line, 1
            continue
        spoken += 1
        name = _agent_name(agent) or f"agent {spoken}"
        spoken_before = [entry for entry in merged if entry["role"] not in ("system", "developer")]
        before = [_key(entry) for entry in spoken_before]
        rest = [entry for entry in line if entry["role"] not in ("system", "developer")]
        if before and [_key(entry) for entry in rest[: len(before)]] == before:
            told = {_key(entry) for entry in merged}
            ids = _ids_in(rest[: len(before)], spoken_before)
            line = [
                *(entry for entry in line if entry not in rest and _key(entry) not in told),
                *(_with_id(entry, ids) for entry in rest[len(before) :]),
            ]
        merged += [entry if entry["role"] == "tool" else {**entry, "name": name} for entry in line]
    return merged


def _ids_in(line: Sequence[dict[str, Any]], told: Sequence[dict[str, Any]]) -> dict[Any, Any]:
    """The ids that calls of a conversation have where the same was told before."""
    return {
        call.get("id"): same.get("id")
        for entry, earlier in zip(line, told, strict=True)
        for call, same in zip(entry.get("tool_calls") or (), earlier.get("tool_calls") or (), strict=True)
    }


def _with_id(message: dict[str, Any], ids: Mapping[Any, Any]) -> dict[str, Any]:
    answered = message.get("tool_call_id")
    return {**message, "tool_call_id": ids[answered]} if answered in ids else message


def _with_ids(line: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a conversation. A result without an id is that of the first call that is open in it."""
    open_calls: list[Any] = []
    messages = []
    for message in line:
        open_calls += [call.get("id") for call in message.get("tool_calls") or ()]
        if message["role"] == "tool":
            answered = message.get("tool_call_id")
            if answered in open_calls:
                open_calls.remove(answered)
            elif answered is None and open_calls:
                message = {**message, "tool_call_id": open_calls.pop(0)}
        messages.append(message)
    return messages


def _key(message: Mapping[str, Any]) -> str:
    calls = [tool_call.get("function") for tool_call in message.get("tool_calls") or ()]
    return json.dumps([message["role"], message.get("content"), calls], sort_keys=True, default=str)


def _has_messages(span: Span) -> bool:
    """Whether it tells what was said in a form that has a place for calls."""
    return bool(said_in(span["attributes"])) and span["attributes"].get(openinference.TEXT_ONLY) is not True


def said_in(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    instructions = _message_list(attributes.get("gen_ai.system_instructions"))
    if instructions:
        texts = [
            instruction.get("content") if isinstance(instruction, Mapping) else instruction
            for instruction in instructions
        ]
        messages.append({"role": "system", "content": "\n".join(plain_text(text) for text in texts)})
    whole = _message_list(attributes.get("pydantic_ai.all_messages"))
    turns = [
        *(_message_list(attributes.get("gen_ai.input.messages")) or whole),
        *_message_list(attributes.get("gen_ai.output.messages")),
    ]
    for turn in turns:
        if isinstance(turn, Mapping):
            called = len(messages[-1].get("tool_calls") or ()) if messages else 0
            messages += [message for each in _by_result(turn, called) for message in messages_of(each)]
    return messages if turns else attributes.get(OF_EVENTS) or _indexed(attributes)


def _by_result(turn: Mapping[str, Any], called: int) -> list[Mapping[str, Any]]:
    """A turn; one of results without ids, as texts, is as many as calls were made before it."""
    parts = turn.get("parts")
    if turn.get("role") != "tool" or called < 2 or not isinstance(parts, list) or len(parts) != called:
        return [turn]
    if not all(isinstance(part, Mapping) and part.get("type") == "text" for part in parts):
        return [turn]
    return [{**turn, "parts": [part]} for part in parts]


def innermost(models: Sequence[Span]) -> list[Span]:
    """A request that several instrumentations told is told by the innermost: the spans of models that have no other
    below them."""
    outer = {model["parent"] for model in models if said_in(model["attributes"])}
    return [model for model in models if model["id"] not in outer]


def asked_of(span: Span, base: float, agents: Sequence[Span] = ()) -> Asked | None:
    """The request and the answer that a model's span tells: what comes last of the assistant is the answer. `base`: the
    moment that times count from. `agents`: the spans of agents that it may be inside of."""
    dialogue, about = said_in(span["attributes"]), span["attributes"]
    if span["start"] is None or not dialogue or not all(map(_is_whole, dialogue)):
        return None
    answer = dialogue[-1] if dialogue[-1]["role"] == "assistant" else None
    before = dialogue if answer is None else dialogue[:-1]
    system, messages = parted(before)
    if not messages:
        return None
    started = span["start"] - base
    ended = started if span["end"] is None else max(started, span["end"] - base)
    error = (span["message"] or "it failed") if span["failed"] else ""
    used = UsageReader().read(usage_attributes(about))
    reply = Reply(answer, _model(about), _finish_reason(about), usage=used, error=error)
    first = number(about.get("gen_ai.server.time_to_first_token"))
    previous = (value for key, value in about.items() if key.endswith("previous_response_id") and value)
    tools = next((message_list for key in _DEFINITIONS if (message_list := _message_list(about.get(key)))), None)
    request = Request(
        messages,
        system,
        previous=plain_text(next(previous, "")),
        tools=offered_tools(tools),
        parameters={
            key.removeprefix(_REQUEST): value
            for key, value in about.items()
            if key.startswith(_REQUEST) and key != f"{_REQUEST}model" and not key.endswith("previous_response_id")
        },
    )
    unrecorded: frozenset[RequestPart] = frozenset(("tools",)) if tools is None else frozenset()
    name = plain_text(about.get("gen_ai.agent.name")) or _agent_around(span, agents)
    begun = ended if first is None else started + first * 1000
    return Asked(
        started, ended_ms=ended, first_ms=begun, request=request, reply=reply, agent=name, unrecorded=unrecorded
    )


def _model(about: Mapping[str, Any]) -> str:
    return plain_text(about.get("gen_ai.response.model") or about.get("gen_ai.request.model"))


def _finish_reason(about: Mapping[str, Any]) -> str:
    # One for each choice: what is kept as the answer is the last one's.
    return plain_text(next(reversed(as_list(about.get(_REASONS))), ""))


_REASONS = "gen_ai.response.finish_reasons"
_REQUEST = "gen_ai.request."
_DEFINITIONS = ("gen_ai.tool.definitions", "gen_ai.request.tools", openinference.TOOLS)
"""Attributes that list the tools that a model could call."""


def _agent_around(span: Span, agents: Sequence[Span]) -> str:
    """The name of the agent whose span is the parent of this one; "" where it is none."""
    around = next((agent for agent in agents if agent["id"] == span["parent"]), None)
    return "" if around is None else _agent_name(around)


def _is_whole(message: Mapping[str, Any]) -> bool:
    """Whether a message says who speaks, and each of its calls which tool is called."""
    calls = message.get("tool_calls") or ()
    return isinstance(message.get("role"), str) and all(
        isinstance(call, Mapping) and isinstance(call.get("function"), Mapping) and "name" in call["function"]
        for call in calls
    )


def _message_list(value: Any) -> list[Any]:
    return as_list(parsed_json(value) if isinstance(value, str) else value)


def _indexed(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """`gen_ai.prompt.0.content` and so on, as instrumentations wrote before the conventions had messages."""
    # Prompts sort before completions, each by their number.
    by_place: dict[tuple[bool, int], dict[str, Any]] = {}
    for key, value in attributes.items():
        match = _INDEXED.fullmatch(key)
        if match is None or len(match.group(2)) > 5:
            continue
        kind, index, rest = match.groups()
        message = by_place.setdefault((kind == "completion", int(index)), {"role": "", "content": "", "calls": {}})
        call = _INDEXED_CALL.fullmatch(rest)
        if call is not None and len(call.group(1)) <= 5:
            message["calls"].setdefault(int(call.group(1)), {})[call.group(2)] = value
        elif rest in ("role", "content", "tool_call_id"):
            message[rest] = plain_text(value)
    messages = []
    for (answered, _), entry in sorted(by_place.items())[:_MOST]:
        calls = [
            {"id": call.get("id"), "function": {"name": call.get("name"), "arguments": call.get("arguments")}}
            for _, call in sorted(entry.pop("calls").items())
        ]
        entry["role"] = entry["role"] or ("assistant" if answered else "user")
        messages.append({**entry, "tool_calls": calls} if calls else entry)
    return messages


def with_measures(
    transcript: Transcript,
    spans: Sequence[Mapping[str, Any]],
    models: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    top: Mapping[str, Any],
) -> Transcript:
    """With times, usage, model, and how the trace ended."""
    base = min((span["start"] for span in spans if span["start"] is not None), default=None)
    ended = max((span["end"] for span in spans if span["end"] is not None), default=None)
    paired = _of_calls(transcript.tool_calls, tools)
    calls = [_timed(call, span, base) for call, span in paired]
    untold = _untold(tools, [span for _, span in paired], spans, base)
    if not calls and not untold and _asked_for_tools(models):
        transcript = replace(transcript, notes=(*transcript.notes, Note(UNREAD_CALLS, _CALLS_NOT_RECORDED)))
    steps = tuple(
        Step(_step_name(span), span["start"] - base, span["end"] - span["start"])
        for span in sorted(
            (span for span in (*models, *tools) if span["start"] is not None), key=lambda span: span["start"]
        )
        if base is not None and span["end"] is not None and (span["end"] > span["start"] or span is not top)
    )
    last = models[-1]["attributes"]
    # An agent sums up what its models used: both together would count twice.
    used, whole = UsageReader(), UsageReader()
    for model in models:
        used.add(usage_attributes(model["attributes"]))
    whole.add(usage_attributes(top["attributes"]))
    first = number(models[0]["attributes"].get("gen_ai.server.time_to_first_token"))
    transcript = with_untold_calls(with_results(transcript, calls), untold)
    return replace(
        with_usage(transcript, whole if used.total == Usage() else used),
        timing=Timing(
            first_token_ms=None if first is None else first * 1000,
            total_ms=None if base is None or ended is None or ended <= base else ended - base,
            steps=steps,
        ),
        model=_model(last),
        finish_reason=_finish_reason(last if last.get(_REASONS) else top["attributes"]),
        error=_error(top) if top["failed"] else None,
    )


def _of_calls(
    calls: Sequence[ToolCall], tools: Sequence[Mapping[str, Any]]
) -> list[tuple[ToolCall, Mapping[str, Any] | None]]:
    """Each call with its tool's span: told by the call's id, else by name and arguments, else (a span without an id or
    without arguments) by name, in their order."""

    span_of: dict[int, Mapping[str, Any]] = {}
    by_id: dict[str, list[Mapping[str, Any]]] = {}
    # Taken from the end of the list: so the first span of an id is the first call's.
    for span in reversed(tools):
        by_id.setdefault(_call_id(span), []).append(span)
    for index, call in enumerate(calls):
        if call.id and by_id.get(call.id):
            span_of[index] = by_id[call.id].pop()
    paired = {id(span) for span in span_of.values()}
    by_name = grouped((name_of_tool(span), span) for span in tools if id(span) not in paired)
    for by_arguments in (True, False):
        for index, call in enumerate(calls):
            same_name = by_name.get(call.name, []) if index not in span_of else []
            for place, span in enumerate(same_name):
                is_vague = not (_call_id(span) and _has_arguments(span))
                if _arguments(span) == call.arguments if by_arguments else is_vague:
                    span_of[index] = same_name.pop(place)
                    break
    return [(call, span_of.get(index)) for index, call in enumerate(calls)]


_CALLS_NOT_RECORDED = "a model asked for tools, and the trace has neither its messages nor spans of tools"


def _asked_for_tools(models: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an answer of a model ended with calls of tools, though its messages were not recorded."""
    return any(
        reason in ("tool_calls", "tool_call", "tool_use", "function_call")
        for model in models
        if not said_in(model["attributes"])
        for reason in as_list(model["attributes"].get(_REASONS))
    )


def _untold(
    tools: Sequence[Mapping[str, Any]],
    paired: Sequence[Mapping[str, Any] | None],
    spans: Sequence[Mapping[str, Any]],
    base: float | None,
) -> list[UntoldCall]:
    """The calls that only a tool's span tells. `paired`: the spans of the transcript's calls, in their order."""
    outer = _same_call_around(tools, spans)
    of_call = {id(span): number for number, span in enumerate(paired) if span is not None}
    handled = {span["id"] for span in paired if span is not None}
    handled |= {outer_id for span in tools if id(span) in of_call for outer_id in outer[span["id"]]}
    untold_calls: list[UntoldCall] = []
    last = -1
    for span in tools:
        if id(span) in of_call:
            last = max(last, of_call[id(span)])
        elif span["id"] not in handled and not handled.intersection(outer[span["id"]]):
            handled.add(span["id"])
            untold_calls.append(_untold_call(span, last + 1, base))
    return untold_calls


def _same_call_around(tools: Sequence[Mapping[str, Any]], spans: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The ids of the spans that are of the same call and around a tool's span, as where the library of the tool has
    spans, too."""
    parents = {span["id"]: span["parent"] for span in spans if span["id"]}
    called = {span["id"]: (name_of_tool(span), _arguments(span) if _has_arguments(span) else None) for span in tools}
    same_calls: dict[str, list[str]] = {}
    for span in tools:
        name, arguments = called[span["id"]]
        same: list[str] = []
        around, steps = span["parent"], 0
        while around in parents and steps < _DEEPEST:
            other, other_given = called.get(around, ("", None))
            if other == name and (arguments is None or other_given is None or arguments == other_given):
                same.append(around)
            around, steps = parents[around], steps + 1
        same_calls[span["id"]] = same
    return same_calls


def _untold_call(span: Mapping[str, Any], after: int, base: float | None) -> UntoldCall:
    started_ms, duration_ms = _times(span, base)
    result = span["attributes"].get("gen_ai.tool.call.result")
    return UntoldCall(
        id=_call_id(span) or f"span_{span['id']}",
        name=name_of_tool(span),
        arguments=_arguments(span),
        result=content_text(result) if result is not None else span["message"] if span["failed"] else None,
        failed=span["failed"],
        after=after,
        started_ms=started_ms,
        duration_ms=duration_ms,
    )


def _times(span: Mapping[str, Any], base: float | None) -> tuple[float | None, float | None]:
    """When it started, counted from `base`, and how long it took; None for what the span does not tell."""
    started, ended = span["start"], span["end"]
    if started is None:
        return None, None
    return None if base is None else started - base, None if ended is None or ended <= started else ended - started


def _call_id(span: Mapping[str, Any]) -> str:
    return plain_text(span["attributes"].get("gen_ai.tool.call.id"))


def _has_arguments(span: Mapping[str, Any]) -> bool:
    return span["attributes"].get("gen_ai.tool.call.arguments") is not None


def _arguments(span: Mapping[str, Any]) -> object:
    return called_with(span["attributes"].get("gen_ai.tool.call.arguments"))


def name_of_tool(span: Mapping[str, Any]) -> str:
    name = plain_text(span["attributes"].get("gen_ai.tool.name"))
    return name or str(span["name"]).removeprefix(f"{_TOOL} ").removesuffix(".tool")


def _step_name(span: Mapping[str, Any]) -> str:
    """A tool by its name; the conventions call its span `execute_tool NAME`."""
    return plain_text(span["attributes"].get("gen_ai.tool.name")) or str(span["name"])


def _timed(call: ToolCall, span: Mapping[str, Any] | None, base: float | None) -> ToolCall:
    if span is None:
        return call
    result = call.result
    if result is None and "gen_ai.tool.call.result" in span["attributes"]:
        result = content_text(span["attributes"]["gen_ai.tool.call.result"])
    started_ms, duration_ms = _times(span, base)
    return replace(
        call,
        result=result,
        status="error" if span["failed"] else "ok" if result is not None else call.status,
        started_ms=started_ms,
        duration_ms=duration_ms,
    )


def _error(span: Mapping[str, Any]) -> RunError:
    kind = plain_text(span["attributes"].get("error.type")) or SOURCE
    return RunError.told(kind, span["message"] or "the trace ended with an error")


def _evaluation(fields: Mapping[str, Any], transcript: Transcript) -> CriterionResult:
    """An evaluation that was recorded in the trace (`gen_ai.evaluation.result`); one of ours as it was."""
    if whole := _object(fields.get(f"{_OURS}result")):
        try:
            return results_of([whole], transcript)[0]
        except AgentevalError:
            pass  # the conventions describe it beside it
    severity, weight = fields.get(f"{_OURS}severity"), number(fields.get(f"{_OURS}weight"))
    return replace(
        _told_evaluation(fields),
        severity=severity if severity in ("warning", "info") else "error",
        weight=1.0 if weight is None or weight < 0 else weight,
        negate=fields.get(f"{_OURS}negate") is True,
    )


def _told_evaluation(fields: Mapping[str, Any]) -> CriterionResult:
    score = number(fields.get("gen_ai.evaluation.score.value"))
    label = plain_text(fields.get("gen_ai.evaluation.score.label"))
    passed = {"pass": True, "passed": True, "fail": False, "failed": False}.get(label.casefold())
    reason = plain_text(fields.get("gen_ai.evaluation.explanation")) or label
    name = plain_text(fields.get("gen_ai.evaluation.name")) or "evaluation"
    if label.casefold() == "error" and score is None:
        return unreadable_result(f"{SOURCE} {name}", source=SOURCE, reason=reason)
    # On another scale, nothing says what is enough.
    if score is not None and passed is None and not 0 <= score <= 1:
        score, reason = None, f"score {score:g}; {reason}"
    return foreign_result(f"{SOURCE} {name}", score=score, passed=passed, source=SOURCE, reason=reason)


# What instrumentations other than today's GenAI conventions write, in the words of those


def _genai_attributes(attributes: Mapping[str, Any], *, is_root: bool) -> dict[str, Any]:
    if isinstance(attributes.get(openinference.KIND), str):
        return openinference.genai_attributes(attributes, is_root=is_root)
    renamed = {
        key: value for key, value in attributes.items() if not key.startswith(PREFIXES) or is_usage_attribute(key)
    }
    if "agent.name" in attributes:
        renamed.setdefault("gen_ai.agent.name", attributes["agent.name"])
    return renamed


def message_of_event(name: str, attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages that an event of a span is; none for other events."""
    match = _MESSAGE.fullmatch(name)
    if match is not None:
        return [_message(match.group(1), attributes)]
    if name == "gen_ai.choice":
        inner = json_in(attributes.get("message"))
        return [_message("assistant", {**attributes, **(inner if isinstance(inner, Mapping) else {"content": inner})})]
    for key, role in (("gen_ai.prompt", "user"), ("gen_ai.completion", "assistant")):
        if key in attributes:
            content = json_in(attributes[key])
            listed = content if isinstance(content, list) else [content]
            return [_message(role, entry if isinstance(entry, Mapping) else {"content": entry}) for entry in listed]
    return []


def _message(role: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": plain_text(fields.get("role")) or role, "content": fields.get("content")}
    calls = json_in(fields.get("tool_calls"))
    if isinstance(calls, list):
        message["tool_calls"] = calls
    if message["role"] == "tool":
        message["tool_call_id"] = fields.get("id") or fields.get("tool_call_id")
    return message
