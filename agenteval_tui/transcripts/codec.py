"""Transcripts as JSON: this project's own form, and OpenAI chat messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, UnsetType, convert, to_builtins
from msgspec.structs import asdict, replace

from agenteval_tui.core.display import one_line
from agenteval_tui.core.document import Count, Document, one_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.content_parts import attachment_of, attachments_in
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
    OfferedTool,
    RequestLine,
    RequestReference,
)
from agenteval_tui.transcripts.observed import KINDS, SAID_ELSEWHERE, may_be_call, observes, unseen
from agenteval_tui.transcripts.possible_figures import LEFT_OUT, shown_figure, with_possible_figures
from agenteval_tui.transcripts.state import ProbeState, Reading
from agenteval_tui.transcripts.traceback import Traceback, traceback_data, traceback_from

VERSION: Literal[1] = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
_T = TypeVar("_T")


class StoredAttachment(Document, frozen=True, kw_only=True):
    """An image or a file of a message. Its bytes are not in the transcript."""

    media_type: str | UnsetType = UNSET
    size: Annotated[Count | UnsetType, Meta(description="in bytes; absent where only an address is known")] = UNSET
    sha256: Annotated[str | UnsetType, Meta(description="of its bytes, in hex")] = UNSET
    name: str | UnsetType = UNSET
    description: Annotated[str | UnsetType, Meta(description="what it shows, in words")] = UNSET
    url: str | UnsetType = UNSET
    mark: Annotated[str | UnsetType, Meta(description="the text in its place in the message's content")] = UNSET


class StoredMessage(Document, frozen=True, kw_only=True):
    """A message of a transcript."""

    role: str
    content: str
    reasoning: str | UnsetType = UNSET
    tool_calls: Annotated[
        tuple[Count, ...] | UnsetType, Meta(description="indices into the transcript's tool_calls")
    ] = UNSET
    tool_call: Annotated[Count | UnsetType, Meta(description="of a tool message: the call that it answers")] = UNSET
    tool_call_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    simulated: Annotated[bool | UnsetType, Meta(description="a simulated user wrote it")] = UNSET
    attachments: tuple[StoredAttachment, ...] | UnsetType = UNSET


class StoredFrame(Document, frozen=True, kw_only=True):
    """A call of a traceback."""

    file: Annotated[
        str,
        Meta(description="from the suite's folder for a file of the project, else the path that it is imported by"),
    ]
    line: Annotated[Count | UnsetType, Meta(description="from 1; absent where it is not known")] = UNSET
    function: str | UnsetType = UNSET
    source: Annotated[str | UnsetType, Meta(description="the line itself")] = UNSET
    project: Annotated[bool | UnsetType, Meta(description="it is the project's, no package's")] = UNSET
    locals: Annotated[
        dict[str, str] | UnsetType, Meta(description="variables as they are shown, of the project's last two frames")
    ] = UNSET


class StoredException(Document, frozen=True, kw_only=True):
    """An exception of a traceback."""

    type: str
    message: str | UnsetType = UNSET
    frames: Annotated[tuple[StoredFrame, ...] | UnsetType, Meta(description="the first call first")] = UNSET
    left_out: Annotated[Count | UnsetType, Meta(description="how many frames in their middle were not kept")] = UNSET
    relation: Annotated[
        Annotated[str, one_of("cause", "context", "member")] | UnsetType,
        Meta(description="what it is to its parent: its cause, what was being handled, or a member of a group"),
    ] = UNSET
    parent: Annotated[Count | UnsetType, Meta(description="the number of the exception that it belongs to")] = UNSET


class StoredTraceback(Document, frozen=True, kw_only=True):
    """Where something was raised: what was raised first, then what it came from."""

    language: Annotated[str, one_of("python", "javascript")]
    exceptions: tuple[StoredException, ...]


class StoredToolCall(Document, frozen=True, kw_only=True):
    """A tool call of a transcript."""

    id: str
    name: str
    arguments: Annotated[Any, Meta(description="the decoded JSON value; text when it was malformed")]
    result: str | UnsetType = UNSET
    status: Annotated[str, one_of("ok", "error", "pending")]
    started_ms: float | UnsetType = UNSET
    duration_ms: float | UnsetType = UNSET
    message: Count | UnsetType = UNSET
    malformed: bool | UnsetType = UNSET
    traceback: Annotated[
        StoredTraceback | UnsetType, Meta(description="where its function raised; absent where that is not known")
    ] = UNSET


class StoredStep(Document, frozen=True, kw_only=True):
    """A turn of the model or a tool call, with its time."""

    name: str
    started_ms: float
    duration_ms: float
    setup: bool | UnsetType = UNSET


class StoredTiming(Document, frozen=True, kw_only=True):
    """The times of a transcript."""

    first_token_ms: float | UnsetType = UNSET
    total_ms: float | UnsetType = UNSET
    steps: tuple[StoredStep, ...] | UnsetType = UNSET


class StoredUsage(Document, frozen=True, kw_only=True):
    """What a run used; absent: not measured."""

    input_tokens: Count | UnsetType = UNSET
    output_tokens: Count | UnsetType = UNSET
    cached_tokens: Count | UnsetType = UNSET
    reasoning_tokens: Count | UnsetType = UNSET
    cost: float | UnsetType = UNSET
    cache_write_tokens: Annotated[
        Count | UnsetType, Meta(description="of `input_tokens`, those that the server wrote into its cache")
    ] = UNSET
    cache_write_1h_tokens: Annotated[
        Count | UnsetType, Meta(description="of `cache_write_tokens`, those that the cache keeps for an hour")
    ] = UNSET


class StoredError(Document, frozen=True, kw_only=True):
    """Why an agent did not finish."""

    kind: str
    message: str
    mend: str
    code: Annotated[str | UnsetType, Meta(description="what exactly went wrong; empty where no code says it")] = UNSET
    fields: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="what the code is about; `fingerprint`: foreign words, reduced"),
    ] = UNSET
    traceback: Annotated[
        StoredTraceback | UnsetType, Meta(description="where it was raised; absent where that is not known")
    ] = UNSET


class StoredNote(Document, frozen=True, kw_only=True):
    """Something that a run says although it went on."""

    code: str
    what: str
    place: str | UnsetType = UNSET


class StoredOutput(Document, frozen=True, kw_only=True):
    """What the agent's code printed or logged."""

    at_ms: Annotated[float, Meta(description="since the start of the run")]
    source: Annotated[str, one_of("stdout", "stderr", "log")]
    text: str
    level: str | UnsetType = UNSET
    logger: str | UnsetType = UNSET


class StoredHook(Document, frozen=True, kw_only=True):
    """A hook that ran before or after the run."""

    phase: Annotated[str, one_of("before_all", "before", "after", "after_all")]
    name: Annotated[str, Meta(description="its command, or its Python function")]
    duration_ms: float
    output: Annotated[str | UnsetType, Meta(description="the end of what it printed")] = UNSET
    error: Annotated[StoredError | UnsetType, Meta(description="why it failed; absent: it did not")] = UNSET
    attempt: Annotated[int | UnsetType, Meta(description="the attempt of the run that it belongs to")] = UNSET


class StoredReading(Document, frozen=True, kw_only=True):
    """What a probe read at one time."""

    value: Annotated[Any, Meta(description="a JSON value; absent where it could not be read")] = UNSET
    problem: Annotated[str | UnsetType, Meta(description="why there is no value")] = UNSET
    fields: Annotated[dict[str, Any] | UnsetType, Meta(description="what the problem is about")] = UNSET
    traceback: Annotated[StoredTraceback | UnsetType, Meta(description="where its function raised")] = UNSET
    output: Annotated[str | UnsetType, Meta(description="the end of what its function printed before it failed")] = (
        UNSET
    )


class StoredState(Document, frozen=True, kw_only=True):
    """What a probe read before and after a run; absent where it was not read then."""

    name: str
    before: StoredReading | UnsetType = UNSET
    after: StoredReading | UnsetType = UNSET


class StoredTool(Document, frozen=True, kw_only=True):
    """A tool that a model could call."""

    name: str
    description: str | UnsetType = UNSET
    parameters: Annotated[dict[str, Any] | UnsetType, Meta(description="its JSON Schema")] = UNSET


class StoredRequest(Document, frozen=True, kw_only=True):
    """What a model was asked for one answer. Texts are in the tables beside `requests`, each once."""

    agent: Annotated[Count, Meta(description="which agent asked, from 1, as far as requests tell agents apart")]
    model: str | UnsetType = UNSET
    system: Annotated[Count, Meta(description="the place of the system prompt in `systems`")]
    messages: Annotated[
        tuple[tuple[Count, Count], ...],
        Meta(description="stretches of the table of messages: the first, and the one behind the last"),
    ]
    tools: Annotated[Count, Meta(description="the place in `tools` of the list of those that could be called")]
    parameters: Annotated[Count, Meta(description="the place in `parameters`")]
    previous: Annotated[
        str | UnsetType,
        Meta(description="the id of what the server keeps of the conversation, which is not in the request"),
    ] = UNSET
    cached_tokens: Count | UnsetType = UNSET
    error: Annotated[str | UnsetType, Meta(description="why there is no answer")] = UNSET
    answer: Annotated[Count | UnsetType, Meta(description="the transcript's message that it led to")] = UNSET


class StoredLine(Document, frozen=True, kw_only=True):
    """One conversation with a model: of an agent, a sub-agent, a summariser."""

    name: Annotated[str, Meta(description="as messages of the transcript name it")]
    about: Annotated[str | UnsetType, Meta(description="how its system prompt begins, or what it was asked first")] = (
        UNSET
    )
    called_by: Annotated[Count | UnsetType, Meta(description="the tool call that it worked for")] = UNSET
    used_in: Annotated[
        Count | UnsetType, Meta(description="the request of another line that has its last answer, from 1")
    ] = UNSET


class StoredRequests(Document, frozen=True, kw_only=True):
    """What models were asked in a run, in the order of time."""

    messages: Annotated[
        tuple[dict[str, Any], ...], Meta(description="as OpenAI has them, without system prompts; each once")
    ]
    systems: tuple[str, ...]
    tools: tuple[tuple[StoredTool, ...], ...]
    parameters: tuple[dict[str, Any], ...]
    requests: tuple[StoredRequest, ...]
    lines: Annotated[
        tuple[StoredLine, ...] | UnsetType, Meta(description="the agents that asked, in the order of their numbers")
    ] = UNSET
    unrecorded: Annotated[
        tuple[Annotated[str, one_of(*UNRECORDED)], ...] | UnsetType,
        Meta(description="parts of requests that were not recorded: they are empty, and the model may have seen some"),
    ] = UNSET


class StoredTranscript(Document, frozen=True, kw_only=True):
    """A transcript in this project's JSON form. Files that people write may leave out all but the messages."""

    version: Literal[1] = VERSION
    messages: tuple[StoredMessage, ...]
    tool_calls: tuple[StoredToolCall, ...] | UnsetType = UNSET
    timing: StoredTiming | UnsetType = UNSET
    usage: StoredUsage | UnsetType = UNSET
    model: str | UnsetType = UNSET
    finish_reason: str | UnsetType = UNSET
    final_output: str | UnsetType = UNSET
    error: StoredError | UnsetType | None = UNSET
    log: str | UnsetType = UNSET
    notes: tuple[StoredNote, ...] | UnsetType = UNSET
    observes: Annotated[
        tuple[Annotated[str, one_of(*KINDS)], ...] | UnsetType,
        Meta(
            description="what could be seen, if that is not all: a criterion on anything else is not checked. Absent "
            "where only `usage` or `requests` are not known"
        ),
    ] = UNSET
    user_usage: Annotated[
        StoredUsage | UnsetType, Meta(description="what the simulated user used; `usage` is the agent's alone")
    ] = UNSET
    output: Annotated[
        tuple[StoredOutput, ...] | UnsetType,
        Meta(description="what the agent's code printed and logged: the last 64 KB"),
    ] = UNSET
    hooks: Annotated[tuple[StoredHook, ...] | UnsetType, Meta(description="what ran before and after the run")] = UNSET
    workdir: Annotated[str | UnsetType, Meta(description="the folder of its own that the run worked in")] = UNSET
    state: Annotated[
        tuple[StoredState, ...] | UnsetType, Meta(description="what the test's probes read before and after the run")
    ] = UNSET
    requests: Annotated[
        StoredRequests | UnsetType, Meta(description="what its models were asked; absent where that is not known")
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
        messages=tuple(map(_stored_message, transcript.messages)),
        tool_calls=stored_calls(transcript),
        timing=stored_timing(transcript.timing),
        usage=stored_usage(transcript.usage),
        model=transcript.model,
        finish_reason=transcript.finish_reason,
        final_output=transcript.final_output,
        error=stored_error(transcript.error),
        log=transcript.log or UNSET,
        notes=tuple(map(stored_note, transcript.notes)) or UNSET,
        observes=observes(transcript) if unseen(transcript, frozenset(KINDS) - SAID_ELSEWHERE) is not None else UNSET,
        user_usage=UNSET if transcript.user_usage == Usage() else stored_usage(transcript.user_usage),
        output=tuple(
            StoredOutput(
                at_ms=output.at_ms,
                source=output.source,
                text=output.text,
                level=output.level or UNSET,
                logger=output.logger or UNSET,
            )
            for output in transcript.output
        )
        or UNSET,
        hooks=tuple(map(stored_hook, transcript.hooks)) or UNSET,
        workdir=transcript.workdir or UNSET,
        state=tuple(map(stored_state, transcript.state)) or UNSET,
        requests=UNSET if transcript.requests is None else _stored_requests(transcript.requests),
        outputs=dict(transcript.outputs) or UNSET,
    )


def _stored_requests(requests: ModelRequests) -> StoredRequests:
    return StoredRequests(
        messages=tuple(map(dict, requests.messages)),
        systems=requests.systems,
        tools=tuple(
            tuple(
                StoredTool(
                    name=tool.name,
                    description=tool.description or UNSET,
                    parameters=dict(tool.parameters) or UNSET,
                )
                for tool in listed
            )
            for listed in requests.tools
        ),
        parameters=tuple(map(dict, requests.parameters)),
        requests=tuple(
            StoredRequest(
                agent=reference.line,
                model=reference.model or UNSET,
                system=reference.system,
                messages=reference.messages,
                tools=reference.tools,
                parameters=reference.parameters,
                previous=reference.previous or UNSET,
                cached_tokens=_unless_none(reference.cached_tokens),
                error=reference.error or UNSET,
                answer=_unless_none(reference.answer),
            )
            for reference in requests.references
        ),
        lines=tuple(
            StoredLine(
                name=line.name,
                about=line.about or UNSET,
                called_by=_unless_none(line.called_by),
                used_in=_unless_none(line.used_in),
            )
            for line in requests.lines
        )
        or UNSET,
        unrecorded=requests.unrecorded or UNSET,
    )


def _requests(data: Any) -> ModelRequests | None:
    """As stored. Raises ValueError for references to what no table has."""
    if data is None:
        return None
    stored = convert(data, StoredRequests)
    references = tuple(
        [
            RequestReference(
                request.agent,
                request.model or "",
                request.system,
                request.messages,
                request.tools,
                request.parameters,
                request.previous or "",
                None if request.cached_tokens is UNSET else request.cached_tokens,
                request.error or "",
                None if request.answer is UNSET else request.answer,
            )
            for request in stored.requests
        ]
    )
    tools = tuple(
        tuple(OfferedTool(tool.name, tool.description or "", tool.parameters or {}) for tool in listed)
        for listed in stored.tools
    )
    lines = tuple(
        RequestLine(
            line.name,
            line.about or "",
            None if line.called_by is UNSET else line.called_by,
            None if line.used_in is UNSET else line.used_in,
        )
        for line in stored.lines or ()
    )
    unrecorded = tuple([part for part in UNRECORDED if part in (stored.unrecorded or ())])
    requests = ModelRequests(stored.messages, stored.systems, tools, stored.parameters, references, lines, unrecorded)
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
            traceback=_stored_traceback(reading.traceback),
            output=reading.output or UNSET,
        )
    return StoredReading(value=reading.value)


def stored_calls(transcript: Transcript) -> tuple[StoredToolCall, ...]:
    """The tool calls of a transcript."""
    return tuple(
        StoredToolCall(
            id=call.id,
            name=call.name,
            arguments=call.arguments,
            result=_unless_none(call.result),
            status=call.status,
            started_ms=_unless_none(call.started_ms),
            duration_ms=_unless_none(call.duration_ms),
            message=_unless_none(call.message),
            malformed=call.malformed or UNSET,
            traceback=_stored_traceback(call.traceback),
        )
        for call in transcript.tool_calls
    )


def stored_timing(timing: Timing) -> StoredTiming:
    """The times of a run."""
    return StoredTiming(
        first_token_ms=_unless_none(timing.first_token_ms),
        total_ms=_unless_none(timing.total_ms),
        steps=tuple(
            StoredStep(
                name=step.name,
                started_ms=step.started_ms,
                duration_ms=step.duration_ms,
                setup=step.setup or UNSET,
            )
            for step in timing.steps
        )
        or UNSET,
    )


def stored_usage(usage: Usage) -> StoredUsage:
    """What a run used."""
    return StoredUsage(**{name: value for name, value in asdict(usage).items() if value is not None})


def stored_note(note: Note) -> StoredNote:
    """A note as documents hold it."""
    return StoredNote(code=note.code, what=note.what, place=note.place or UNSET)


def stored_error(error: RunError | None) -> StoredError | None:
    """Why an agent did not finish, with its code and fields where it has a code; None for none."""
    if error is None:
        return None
    traceback = _stored_traceback(error.traceback)
    if not error.code:
        return StoredError(kind=error.kind, message=error.message, mend=error.mend, traceback=traceback)
    return StoredError(
        kind=error.kind,
        message=error.message,
        mend=error.mend,
        code=error.code,
        fields=dict(error.fields),
        traceback=traceback,
    )


def stored_hook(hook: HookRun) -> StoredHook:
    """A hook as documents hold it."""
    return StoredHook(
        phase=hook.phase,
        name=hook.name,
        duration_ms=round(hook.duration_ms, 1),
        output=hook.output or UNSET,
        error=stored_error(hook.error) or UNSET,
        attempt=hook.attempt or UNSET,
    )


def _stored_traceback(traceback: Traceback | None) -> StoredTraceback | UnsetType:
    if traceback is None:
        return UNSET
    return convert({"language": traceback.language, **traceback_data(traceback)}, StoredTraceback)


def _stored_message(message: Message) -> StoredMessage:
    return StoredMessage(
        role=message.role,
        content=message.content,
        reasoning=message.reasoning or UNSET,
        tool_calls=message.tool_calls or UNSET,
        tool_call=_unless_none(message.tool_call),
        tool_call_id=message.tool_call_id or UNSET,
        name=message.name or UNSET,
        simulated=message.simulated or UNSET,
        attachments=stored_attachments(message) or UNSET,
    )


def stored_attachments(message: Message) -> tuple[StoredAttachment, ...]:
    """The images and files of a message."""
    return tuple(
        StoredAttachment(**{name: value for name, value in asdict(attachment).items() if value not in (None, "")})
        for attachment in message.attachments
    )


def _unless_none(value: _T | None) -> _T | UnsetType:
    return UNSET if value is None else value


def from_json(data: Any) -> Transcript:
    """Read a transcript: this project's JSON, or OpenAI chat messages (a list, or an object with `messages`).

    Figures that can't be so are left out, and noted. Raises `AgentevalError` when it is neither.
    """
    if isinstance(data, list):
        return from_openai_messages(data)
    if not isinstance(data, Mapping) or not isinstance(data.get("messages"), list | tuple):
        # An object of another kind must not become an empty transcript: every check for an absence would pass on it.
        raise AgentevalError(
            f"this is not a transcript: it is {describe_json(data)}",
            mend="give this project's JSON (an object with `messages`) or a list of OpenAI chat messages",
        )
    if "version" not in data:
        transcript = from_openai_messages(data["messages"])
        final = data.get("final_output")
        return replace(transcript, final_output=final) if isinstance(final, str) else transcript
    try:
        return with_possible_figures(_read(data))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise AgentevalError(
            f"this transcript can't be read: {error}", mend="`agenteval schema transcript` prints its form"
        ) from error


def from_openai_messages(raw: Iterable[Any]) -> Transcript:
    """OpenAI chat messages as a transcript; tool results are paired with their calls by id, else by order.

    Lenient: content as a list of parts is joined, arguments may be text or objects, unknown roles stay.
    Raises `AgentevalError` when an item is not a message.
    """
    messages: list[Message] = []
    calls: list[ToolCall] = []
    open_calls: list[int] = []
    notes: list[Note] = []
    for number, item in enumerate(raw):
        # A dict is known sooner than a mapping.
        if not isinstance(item, (dict, Mapping)) or not isinstance(role := item.get("role"), str):
            raise AgentevalError(
                f"message {number + 1} has no role", mend="a message is an object with `role` and `content`"
            )
        if len(item) == 2 and role != "tool" and role != "function" and (said := item.get("content")).__class__ is str:
            messages.append(Message(role=role, content=said))  # nothing else is in it
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
                open_calls.append(len(calls))
                calls.append(call)
        answered: int | None = None
        call_id = item.get("tool_call_id", item.get("id") if role == "tool" else None)
        name = item.get("name")
        if role in ("tool", "function"):
            answered = _answered(calls, open_calls, call_id, name)
            if answered is not None:
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
    """The types of a message's parts if none of them could be read; an importer that has read the parts itself gives
    them under `unread`."""
    parts, unread = item.get("content"), item.get("unread")
    if isinstance(unread, list):
        return [f"a part of the type {one_line(str(kind), 40)}" for kind in dict.fromkeys(unread)]
    if not isinstance(parts, list) or not content:
        return []
    kinds = [str(part.get("type") or "part") if is_unread_part(part) else "" for part in parts]
    return [f"a part of the type {one_line(kind, 40)}" for kind in dict.fromkeys(kinds)] if all(kinds) else []


def _unread_calls(item: Mapping[str, Any]) -> list[str]:
    """What in an agent's message may be a call of a tool that could not be read, in words; an importer that has read
    the parts itself gives them under `unread_parts`."""
    unread_parts, parts, calls = item.get("unread_parts"), item.get("content"), _calls_of(item)
    if not isinstance(unread_parts, list):
        unread_parts = [str(part.get("type") or "part") for part in parts if is_unread_part(part)] if isinstance(
            parts, list
        ) else []  # fmt: skip
    kinds = [one_line(str(kind), 40) for kind in unread_parts if may_be_call(str(kind))]
    unread = [f"a part of the type {kind}" for kind in dict.fromkeys(kinds)]
    nameless = any(_call_from_openai(call, fallback_id="", message=0) is None for call in calls)
    return [*unread, "a call without a name"] if nameless or item.get("nameless_call") else unread


def is_unread_part(part: Any) -> bool:
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


def decode_arguments(raw: Any) -> tuple[Any, bool]:
    """(arguments, malformed): JSON text decoded; "" and None mean none; what is not JSON stays text, marked."""
    if raw is None or raw == "":
        return {}, False
    if not isinstance(raw, str):
        return raw, False
    try:
        return json.loads(raw), False
    except (ValueError, RecursionError):
        return raw, True


def describe_json(value: Any) -> str:
    """What a JSON value is, in a few words: "an object with the keys a, b"."""
    if isinstance(value, Mapping):
        keys = [one_line(str(key), 40) for key in value]
        more = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
        return f"an object with the keys {', '.join(keys[:8])}{more}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list whose first item is {_kind(value[0])}" if value else "an empty list"
    return _kind(value)


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {value!r:.40}"
    if isinstance(value, str):
        return "a text"
    return "an object" if isinstance(value, Mapping) else "a list"


def content_text(content: Any) -> str:
    """A message's content as text: a string as it is, parts joined by newlines, other values as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "\n".join(text for part in content if (text := _part_text(part)))
    return json.dumps(content, ensure_ascii=False)


def _part_text(part: Any) -> str:
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


def _call_from_openai(raw: Any, *, fallback_id: str, message: int) -> ToolCall | None:
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


def _answered(calls: list[ToolCall], open_calls: list[int], call_id: Any, name: Any) -> int | None:
    for index in open_calls:
        if call_id is not None and calls[index].id == call_id:
            open_calls.remove(index)
            return index
    if call_id is None:
        for index in open_calls:
            if name is None or calls[index].name == name:
                open_calls.remove(index)
                return index
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
    """What `stored_attachments` gave as plain data, or a person wrote so. Raises TypeError for something else."""
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
