"""Transcripts as JSON: this project's own form, and OpenAI chat messages."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, convert, to_builtins
from msgspec.structs import replace

from agenteval_tui.core.display import one_line
from agenteval_tui.core.document import Document, one_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.call_arguments import decode_arguments
from agenteval_tui.transcripts.content_parts import attachment_of, attachments_in
from agenteval_tui.transcripts.impossible_figures import LEFT_OUT, shown_figure, with_possible_figures
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
    last_answer,
    message_place,
)
from agenteval_tui.transcripts.model_request import (
    UNRECORDED,
    ModelRequests,
)
from agenteval_tui.transcripts.observed import KINDS, SAID_ELSEWHERE, UNMATCHED_RESULT, may_be_call, observes, unseen
from agenteval_tui.transcripts.state import ProbeState, Reading
from agenteval_tui.transcripts.traceback import Traceback, traceback_from

VERSION: Literal[1] = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")


class StoredReading(Document, frozen=True, kw_only=True):
    """What a probe read at one time."""

    value: Annotated[Any, Meta(description="a JSON value; absent where it could not be read")] = UNSET
    problem: Annotated[str | UnsetType, Meta(description="why there is no value")] = UNSET
    fields: Annotated[dict[str, Any] | UnsetType, Meta(description="what the problem is about")] = UNSET
    traceback: Annotated[Traceback | UnsetType, Meta(description="where its function raised")] = UNSET
    output: Annotated[str | UnsetType, Meta(description="the end of what its function printed before it failed")] = (
        UNSET
    )


class StoredState(Document, frozen=True, kw_only=True):
    """What a probe read before and after a run; absent where it was not read then."""

    name: str
    before: StoredReading | UnsetType = UNSET
    after: StoredReading | UnsetType = UNSET


class StoredTranscript(Document, frozen=True, kw_only=True):
    """A transcript in this project's JSON form. Files that people write may leave out all but the messages."""

    version: Literal[1] = VERSION
    messages: tuple[Message, ...]
    tool_calls: tuple[ToolCall, ...] | UnsetType = UNSET
    timing: Timing | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    model: str | UnsetType = UNSET
    finish_reason: str | UnsetType = UNSET
    final_output: str | UnsetType = UNSET
    error: RunError | UnsetType | None = UNSET
    log: str | UnsetType = UNSET
    notes: tuple[Note, ...] | UnsetType = UNSET
    observes: Annotated[
        tuple[Annotated[str, one_of(*KINDS)], ...] | UnsetType,
        Meta(
            description="what could be seen, if that is not all: a criterion on anything else is not checked. Absent "
            "where only `usage` or `requests` are not known"
        ),
    ] = UNSET
    user_usage: Annotated[
        Usage | UnsetType, Meta(description="what the simulated user used; `usage` is the agent's alone")
    ] = UNSET
    output: Annotated[
        tuple[Output, ...] | UnsetType,
        Meta(description="what the agent's code printed and logged: the last 64 KB"),
    ] = UNSET
    hooks: Annotated[tuple[HookRun, ...] | UnsetType, Meta(description="what ran before and after the run")] = UNSET
    workdir: Annotated[str | UnsetType, Meta(description="the folder of its own that the run worked in")] = UNSET
    state: Annotated[
        tuple[StoredState, ...] | UnsetType, Meta(description="what the test's probes read before and after the run")
    ] = UNSET
    requests: Annotated[
        ModelRequests | UnsetType, Meta(description="what its models were asked; absent where that is not known")
    ] = UNSET
    outputs: Annotated[
        dict[str, Any] | UnsetType, Meta(description="what the agent returned beside its answer, by name")
    ] = UNSET


def to_json(transcript: Transcript) -> dict[str, Any]:
    """This project's JSON form as plain data; `from_json` reads it back to an equal transcript."""
    plain: dict[str, Any] = to_builtins(stored_transcript(transcript))
    return plain


def stored_transcript(transcript: Transcript) -> StoredTranscript:
    """This project's JSON form. Empty fields are left out."""
    return StoredTranscript(
        messages=transcript.messages,
        tool_calls=transcript.tool_calls,
        timing=transcript.timing,
        usage=transcript.usage,
        model=transcript.model,
        finish_reason=transcript.finish_reason,
        final_output=transcript.final_output,
        error=transcript.error,
        log=transcript.log or UNSET,
        notes=transcript.notes or UNSET,
        observes=observes(transcript) if unseen(transcript, frozenset(KINDS) - SAID_ELSEWHERE) is not None else UNSET,
        user_usage=UNSET if transcript.user_usage == Usage() else transcript.user_usage,
        output=transcript.output or UNSET,
        hooks=transcript.hooks or UNSET,
        workdir=transcript.workdir or UNSET,
        state=tuple(map(stored_state, transcript.state)) or UNSET,
        requests=UNSET if transcript.requests is None else transcript.requests,
        outputs=dict(transcript.outputs) or UNSET,
    )


def _requests(data: object) -> ModelRequests | None:
    """As stored. Raises ValueError for references to what no table has."""
    if data is None:
        return None
    requests = convert(data, ModelRequests)
    requests = replace(requests, unrecorded=tuple([part for part in UNRECORDED if part in requests.unrecorded]))
    if not requests.is_complete:
        raise ValueError("a request refers to a text that is not there")
    return requests


def stored_state(state: ProbeState) -> StoredState:
    """What a probe read, as documents hold it."""
    return StoredState(name=state.name, before=_stored_reading(state.before), after=_stored_reading(state.after))


def _stored_reading(reading: Reading | None) -> StoredReading | UnsetType:
    if reading is None:
        return UNSET
    if reading.problem:
        return StoredReading(
            problem=reading.problem,
            fields=dict(reading.fields) or UNSET,
            traceback=reading.traceback or UNSET,
            output=reading.output or UNSET,
        )
    return StoredReading(value=reading.value)


def from_json(data: object) -> Transcript:
    """Read a transcript: this project's JSON, or OpenAI chat messages (a list, or an object with `messages`).

    Figures that can't be so are left out, and noted. Raises `AgentevalError` when it is neither.
    """
    if isinstance(data, list):
        return from_openai_messages(data)
    if not isinstance(data, Mapping) or not isinstance(data.get("messages"), list | tuple):
        # An object of another kind must not become an empty transcript: every check for an absence would pass on it.
        raise AgentevalError(
            f"this is not a transcript: it is {describe_json(data)}",
            fix="give this project's JSON (an object with `messages`) or a list of OpenAI chat messages",
        )
    if "version" not in data:
        transcript = from_openai_messages(data["messages"])
        final = data.get("final_output")
        return replace(transcript, final_output=final) if isinstance(final, str) else transcript
    try:
        return with_possible_figures(_read(data))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise AgentevalError(
            f"this transcript can't be read: {error}", fix="`agenteval schema transcript` prints its form"
        ) from error


def from_openai_messages(raw: Iterable[Any]) -> Transcript:
    """OpenAI chat messages as a transcript; tool results are paired with their calls by id, else by order.

    Lenient: content as a list of parts is joined, arguments may be text or objects, unknown roles stay.
    Raises `AgentevalError` when an item is not a message.
    """
    messages: list[Message] = []
    calls: list[ToolCall] = []
    open_calls = _OpenCalls()
    notes: list[Note] = []
    for number, item in enumerate(raw):
        # A dict is known sooner than a mapping.
        if not isinstance(item, (dict, Mapping)) or not isinstance(role := item.get("role"), str):
            raise AgentevalError(
                f"message {number + 1} has no role", fix="a message is an object with `role` and `content`"
            )
        if len(item) == 2 and role != "tool" and role != "function" and (text := item.get("content")).__class__ is str:
            messages.append(Message(role=role, content=text))  # nothing else is in it
            continue
        content = content_text(item.get("content")) or _refusal_of(item)
        notes.extend(Note("unread", kind, message_place(number)) for kind in _unread_kinds(item, content))
        if role == "assistant":
            notes.extend(Note("unread_calls", what, message_place(number)) for what in _unread_calls(item))
        elif isinstance(unknown := item.get("unread_role"), str):  # of an importer
            notes.append(Note("unread_calls", f"a message of the role {one_line(unknown, 40)}", message_place(number)))
        numbers: list[int] = []
        for position, raw_call in enumerate(_calls_of(item)):
            call = _call_from_openai(raw_call, fallback_id=f"call_{number}_{position}", message=number)
            if call is not None:
                numbers.append(len(calls))
                open_calls.add(len(calls), call)
                calls.append(call)
        answered: int | None = None
        call_id = item.get("tool_call_id", item.get("id") if role == "tool" else None)
        name = item.get("name")
        if role in ("tool", "function"):
            # An empty id is none: agents that have no ids write both sides so.
            named_id = call_id or None
            answered = open_calls.answer(named_id, name)
            # A second result of a call that has one is no result without a call.
            if answered is None and not (open_calls.has_had(named_id) if named_id is not None else calls):
                whose = one_line(str(name or call_id or "tool"), 40)
                notes.append(Note(UNMATCHED_RESULT, whose, message_place(number)))
            elif answered is not None:
                failed = bool(item.get("error")) or bool(item.get("is_error"))
                calls[answered] = replace(calls[answered], result=content, status="error" if failed else "ok")
        messages.append(
            Message(
                role="tool" if role == "function" else role,
                content=content,
                reasoning=_reasoning_of(item),
                tool_calls=tuple(numbers),
                tool_call=answered,
                tool_call_id=call_id if isinstance(call_id, str) else None,
                name=name if isinstance(name, str) else None,
                attachments=_attachments(item),
            )
        )
    done = tuple(messages)
    return Transcript(messages=done, tool_calls=tuple(calls), final_output=last_answer(done), notes=tuple(notes))


def _unread_kinds(item: Mapping[str, Any], content: str) -> list[str]:
    """The types of a message's parts if no part could be read; an importer that has read the parts itself gives
    them under `unread`."""
    parts, unread = item.get("content"), item.get("unread")
    if isinstance(unread, list):
        return [f"a part of the type {one_line(kind, 40)}" for kind in dict.fromkeys(map(str, unread))]
    if not isinstance(parts, list) or not content:
        return []
    kinds = [str(part.get("type") or "part") if is_unread_part(part) else "" for part in parts]
    return [f"a part of the type {one_line(kind, 40)}" for kind in dict.fromkeys(kinds)] if all(kinds) else []


def _unread_calls(item: Mapping[str, Any]) -> list[str]:
    """What in an agent's message may be a call of a tool that could not be read, in words; an importer that has read
    the parts itself gives them under `unread_parts`."""
    unread_parts, parts, calls = item.get("unread_parts"), item.get("content"), _calls_of(item)
    if not isinstance(unread_parts, list):
        unread_parts = (
            [str(part.get("type") or "part") for part in parts if is_unread_part(part)]
            if isinstance(parts, list)
            else []
        )
    kinds = [one_line(str(kind), 40) for kind in unread_parts if may_be_call(str(kind))]
    unread = [f"a part of the type {kind}" for kind in dict.fromkeys(kinds)]
    nameless = any(_call_from_openai(call, fallback_id="", message=0) is None for call in calls)
    return [*unread, "a call without a name"] if nameless or item.get("nameless_call") else unread


def is_unread_part(part: object) -> bool:
    """Whether a part of a message has neither a text nor an image or file that is known."""
    return isinstance(part, Mapping) and _text_of_part(part) is None and attachment_of(part) is None


def _attachments(item: Mapping[str, Any]) -> tuple[Attachment, ...]:
    """Those among its parts; an importer that has read the parts itself gives them under `attachments`."""
    content, listed = item.get("content"), item.get("attachments")
    attachments = attachments_in(content) if isinstance(content, list) else ()
    if isinstance(listed, list):
        attachments += tuple(attachment for attachment in listed if isinstance(attachment, Attachment))
    return attachments


class OpenAIFunction(Document, frozen=True, kw_only=True):
    """The tool of a call."""

    name: str
    arguments: Annotated[str, Meta(description="JSON text")]


class OpenAIToolCall(Document, frozen=True, kw_only=True):
    """A call of a message."""

    id: str
    type: Literal["function"] = "function"
    function: OpenAIFunction


class OpenAIMessage(Document, frozen=True, kw_only=True):
    """A message as an OpenAI-compatible server takes it."""

    role: str
    content: str
    tool_calls: list[OpenAIToolCall] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


def to_openai_messages(transcript: Transcript) -> list[dict[str, Any]]:
    """The transcript's messages as an OpenAI-compatible server takes them, as plain data."""
    return [to_builtins(message) for message in openai_messages(transcript)]


def openai_messages(transcript: Transcript) -> tuple[OpenAIMessage, ...]:
    """The transcript's messages as an OpenAI-compatible server takes them."""
    return tuple(_openai_message(message, transcript.tool_calls) for message in transcript.messages)


def _openai_message(message: Message, calls: Sequence[ToolCall]) -> OpenAIMessage:
    tool_calls = [
        OpenAIToolCall(id=call.id, function=OpenAIFunction(name=call.name, arguments=arguments_text(call)))
        for call in (calls[index] for index in message.tool_calls)
    ]
    answers: str | None = None
    if message.role == "tool":
        answers = message.tool_call_id if message.tool_call is None else calls[message.tool_call].id
    return OpenAIMessage(
        role=message.role,
        content=message.content,
        tool_calls=tool_calls or UNSET,
        tool_call_id=UNSET if answers is None else answers,
        name=UNSET if message.name is None else message.name,
    )


def arguments_text(call: ToolCall) -> str:
    """The call's arguments as the JSON text that stands on the wire (the raw text when it was malformed)."""
    return call.arguments if call.malformed else json.dumps(call.arguments, ensure_ascii=False)


def describe_json(value: object) -> str:
    """What a JSON value is, in a few words: "an object with the keys a, b"."""
    if isinstance(value, Mapping):
        keys = [one_line(str(key), 40) for key in value]
        more = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
        return f"an object with the keys {', '.join(keys[:8])}{more}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list whose first item is {_kind(value[0])}" if value else "an empty list"
    return _kind(value)


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {value!r:.40}"
    if isinstance(value, str):
        return "a text"
    return "an object" if isinstance(value, Mapping) else "a list"


def content_text(content: object) -> str:
    """A message's content as text: a string as it is, parts joined by newlines, other values as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "\n".join(text for part in content if (text := _part_text(part)))
    return json.dumps(content, ensure_ascii=False)


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        text = _text_of_part(part)
        return f"[{part.get('type', 'part')}]" if text is None else text
    return json.dumps(part, ensure_ascii=False)


def _text_of_part(part: Mapping[str, Any]) -> str | None:
    for key in ("text", "refusal", "content"):
        if isinstance(part.get(key), str) and part.get("type") != "blob":  # OpenTelemetry's, in base64
            return str(part[key])
    return None


def _reasoning_of(item: Mapping[str, Any]) -> str:
    for key in ("reasoning_content", "reasoning"):
        text = item.get(key)
        if text is not None and isinstance(text, str):
            return text
    return ""


def _refusal_of(item: Mapping[str, Any]) -> str:
    """What a model that refuses says instead of an answer (Chat Completions)."""
    refusal = item.get("refusal")
    return refusal if isinstance(refusal, str) else ""


def _calls_of(item: Mapping[str, Any]) -> list[Any]:
    listed = item.get("tool_calls")
    if isinstance(listed, list):
        return listed
    legacy = item.get("function_call")
    return [{"function": legacy}] if legacy is not None and isinstance(legacy, Mapping) else []


def _call_from_openai(raw: object, *, fallback_id: str, message: int) -> ToolCall | None:
    if not isinstance(raw, (dict, Mapping)):
        return None
    function = raw.get("function")
    if not isinstance(function, (dict, Mapping)):
        function = raw
    name = function.get("name")
    if not isinstance(name, str):
        return None
    arguments, malformed = decode_arguments(function.get("arguments", function.get("args")))
    call_id = raw.get("id")
    return ToolCall(
        id=call_id if isinstance(call_id, str) and call_id else fallback_id,
        name=name,
        arguments=arguments,
        status="pending",
        message=message,
        malformed=malformed,
    )


class _OpenCalls:
    """Calls without a result, by their numbers. Looked up and not searched: a conversation may have thousands."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._by_id: dict[str, deque[int]] = defaultdict(deque)
        self._by_name: dict[str, deque[int]] = defaultdict(deque)
        self._all: deque[int] = deque()

    def add(self, number: int, call: ToolCall) -> None:
        self._open.add(number)
        for queue in (self._by_id[call.id], self._by_name[call.name], self._all):
            queue.append(number)

    def has_had(self, call_id: object) -> bool:
        """Whether there was a call of this id, answered or not."""
        return isinstance(call_id, str) and call_id in self._by_id

    def answer(self, call_id: object, name: object) -> int | None:
        """The first call of this id that is not answered yet. Without an id: of this name, without a name: of all."""
        queue: deque[int] | None = self._all
        if call_id is not None:
            queue = self._by_id.get(call_id) if isinstance(call_id, str) else None
        elif name is not None:
            queue = self._by_name.get(name) if isinstance(name, str) else None
        while queue:
            number = queue.popleft()
            if number in self._open:
                self._open.remove(number)
                return number
        return None


def _read(data: Mapping[str, Any]) -> Transcript:
    messages = tuple(
        Message(
            role=str(item["role"]),
            content=str(item.get("content") or ""),
            reasoning=str(item.get("reasoning") or ""),
            tool_calls=tuple(item.get("tool_calls") or ()),
            tool_call=item.get("tool_call"),
            tool_call_id=item.get("tool_call_id"),
            name=item.get("name"),
            simulated=bool(item.get("simulated", False)),
            attachments=read_attachments(item.get("attachments")),
        )
        for item in data["messages"]
    )
    calls = tuple(
        ToolCall(
            id=str(item.get("id") or f"call_{number}"),
            name=str(item["name"]),
            arguments=item.get("arguments", {}),
            result=item.get("result"),
            status=item.get("status", "ok"),
            started_ms=item.get("started_ms"),
            duration_ms=item.get("duration_ms"),
            message=item.get("message"),
            malformed=bool(item.get("malformed", False)),
            traceback=traceback_from(item.get("traceback")),
        )
        for number, item in enumerate(data.get("tool_calls") or ())
    )
    if any(index >= len(calls) for message in messages for index in message.tool_calls):
        raise ValueError("a message names a tool call that is not there")
    notes: list[Note] = []

    def figures(holder: Any, name: str, kinds: tuple[type, ...], place: str = "") -> Any:
        """The object or list with figures at a key; empty, with a note, where something else is."""
        value = holder.get(name)
        if value is None or isinstance(value, kinds):
            return value or kinds[0]()
        notes.append(Note(LEFT_OUT, shown_figure(value), f"{place}{name}"))
        return kinds[0]()

    timing = figures(data, "timing", (dict,))
    steps = tuple(Step(**step) for step in figures(timing, "steps", (list, tuple), "timing."))
    error = data.get("error")
    final = data.get("final_output")
    return Transcript(
        messages=messages,
        tool_calls=calls,
        timing=Timing(timing.get("first_token_ms"), timing.get("total_ms"), steps),
        usage=Usage(**figures(data, "usage", (dict,))),
        model=str(data.get("model") or ""),
        finish_reason=str(data.get("finish_reason") or ""),
        final_output=final if isinstance(final, str) else last_answer(messages),
        error=_error(error) if error else None,
        log=str(data.get("log") or ""),
        output=convert(data.get("output") or (), tuple[Output, ...]),
        hooks=tuple(map(_hook, data.get("hooks") or ())),
        workdir=str(data.get("workdir") or ""),
        state=convert(data.get("state") or (), tuple[ProbeState, ...]),
        requests=_requests(data.get("requests")),
        outputs=dict(data.get("outputs") or {}),
        user_usage=Usage(**figures(data, "user_usage", (dict,))),
        notes=(
            *(
                Note(str(note["code"]), str(note["what"]), str(note.get("place", "")))
                for note in data.get("notes") or ()
            ),
            *notes,
        ),
    )


def read_attachments(raw: Any) -> tuple[Attachment, ...]:
    """The attachments of a message as plain data, or a person wrote so. Raises TypeError for something else."""
    attachments = []
    for entry in raw or ():
        attachment = Attachment(**entry)
        texts = (
            attachment.media_type,
            attachment.sha256,
            attachment.name,
            attachment.description,
            attachment.url,
            attachment.mark,
        )
        if not all(isinstance(text, str) for text in texts) or not (
            attachment.size is None or type(attachment.size) is int
        ):
            raise TypeError("the fields of an attachment are texts, and `size` a number")
        if attachment.sha256 and not _SHA256.fullmatch(attachment.sha256):
            raise TypeError("`sha256` of an attachment is 64 digits from 0 to f")
        attachments.append(attachment)
    return tuple(attachments)


def _hook(data: Mapping[str, Any]) -> HookRun:
    error = data.get("error")
    return HookRun(**{**data, "error": _error(error) if error else None})


def _error(data: Mapping[str, Any]) -> RunError:
    error = RunError(**{**data, "traceback": traceback_from(data.get("traceback"))})
    if not isinstance(error.code, str) or not isinstance(error.fields, Mapping):
        raise TypeError("`code` of an error is a text and `fields` an object")
    return error
