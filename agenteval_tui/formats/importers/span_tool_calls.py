"""What only the spans of a trace tell of tools: results, and whole calls that no message of a model has (the program
made them itself, or what the model said was not recorded as messages). They are calls of the run like all others.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.models.hosted_calls import HostedCall
from agenteval_tui.core.document import extended
from agenteval_tui.core.groups import grouped
from agenteval_tui.transcripts.model import CallStatus, Message, Note, ToolCall, Transcript, message_place
from agenteval_tui.transcripts.model_request import ModelRequests

_PLACE = re.compile(r"messages\[(\d{1,9})\]")


class UntoldCall(HostedCall, frozen=True):
    """A call of a tool as its span tells it. `arguments` in any form that `called_with` reads. `after`: how many of the
    transcript's calls are known to have started before it. `started_ms`, `duration_ms` as in `ToolCall`."""

    after: int = 0
    started_ms: float | None = None
    duration_ms: float | None = None


def with_untold_calls(transcript: Transcript, untold: Sequence[UntoldCall]) -> Transcript:
    """The transcript with these calls, each as a message that makes it and one that answers it: behind the calls that
    started before it, at the latest before the final answer."""
    if not untold:
        return transcript
    # By the message that they go before.
    added = grouped(
        (_place_of(transcript, call.after), call) for call in sorted(untold, key=lambda untold_call: untold_call.after)
    )
    numbers = _numbers(transcript, added)
    messages: list[Message] = []
    places: list[int] = []
    calls: dict[int, ToolCall] = {}
    for at in range(len(transcript.messages) + 1):
        for number, call in zip(numbers.added.get(at, ()), added.get(at, ()), strict=True):
            calls[number] = _tool_call_of(call, len(messages))
            messages.append(Message("assistant", tool_calls=(number,)))
            if call.result is not None:
                answer = Message("tool", call.result, tool_call=number, tool_call_id=call.id, name=call.name)
                messages.append(answer)
        if at < len(transcript.messages):
            message = transcript.messages[at]
            places.append(len(messages))
            answered = message.tool_call
            messages.append(
                replace(
                    message,
                    tool_calls=tuple([numbers.kept[tool_call] for tool_call in message.tool_calls]),
                    tool_call=None if answered is None else numbers.kept[answered],
                )
            )
    # Messages have moved: what refers to them by their number follows.
    for old, tool_call in enumerate(transcript.tool_calls):
        calls[numbers.kept[old]] = (
            tool_call if tool_call.message is None else replace(tool_call, message=places[tool_call.message])
        )
    return replace(
        transcript,
        messages=tuple(messages),
        tool_calls=tuple([calls[number] for number in sorted(calls)]),
        notes=tuple([_note_at(note, places) for note in transcript.notes]),
        requests=_requests_at(transcript.requests, places),
    )


class _Numbers(Struct, frozen=True):
    """The new numbers of calls: of those that are kept, by their old ones; of those that are added, by their place."""

    kept: list[int]
    added: dict[int, list[int]]


def _numbers(transcript: Transcript, added: Mapping[int, Sequence[UntoldCall]]) -> _Numbers:
    old_numbers: list[int] = []
    numbers: dict[int, list[int]] = {}
    number = 0
    waiting = sorted(added)
    for call in transcript.tool_calls:
        while waiting and call.message is not None and call.message >= waiting[0]:
            at = waiting.pop(0)
            numbers[at] = list(range(number, number + len(added[at])))
            number += len(added[at])
        old_numbers.append(number)
        number += 1
    for at in waiting:
        numbers[at] = list(range(number, number + len(added[at])))
        number += len(added[at])
    return _Numbers(old_numbers, numbers)


def _tool_call_of(call: UntoldCall, message: int) -> ToolCall:
    status: CallStatus = "error" if call.failed else "ok"
    return extended(ToolCall, call, arguments=called_with(call.arguments), status=status, message=message)


def with_results(transcript: Transcript, calls: Sequence[ToolCall]) -> Transcript:
    """The transcript with these calls in place of its own: the same ones, some with a result that no message has. Each
    of these becomes a message behind the one that made the call."""
    answered = {message.tool_call for message in transcript.messages}
    fresh = {index for index, call in enumerate(calls) if call.result is not None and index not in answered}
    if not any(index in fresh for message in transcript.messages for index in message.tool_calls):
        return replace(transcript, tool_calls=tuple(calls))
    messages: list[Message] = []
    places: list[int] = []
    for message in transcript.messages:
        places.append(len(messages))
        messages.append(message)
        for index in message.tool_calls:
            if index in fresh:
                call = calls[index]
                messages.append(
                    Message("tool", call.result or "", tool_call=index, tool_call_id=call.id, name=call.name)
                )
    return replace(
        transcript,
        messages=tuple(messages),
        tool_calls=tuple(
            [call if call.message is None else replace(call, message=places[call.message]) for call in calls]
        ),
        notes=tuple([_note_at(note, places) for note in transcript.notes]),
        requests=_requests_at(transcript.requests, places),
    )


def _requests_at(requests: ModelRequests | None, places: Sequence[int]) -> ModelRequests | None:
    """The requests with the new places of the answers that they led to."""
    if requests is None:
        return None
    return replace(
        requests,
        references=tuple(
            [
                reference
                if reference.answer is None or reference.answer >= len(places)
                else replace(reference, answer=places[reference.answer])
                for reference in requests.references
            ]
        ),
    )


def _note_at(note: Note, places: Sequence[int]) -> Note:
    place = _PLACE.fullmatch(note.place)
    at = int(place.group(1)) if place is not None else len(places)
    return replace(note, place=message_place(places[at])) if at < len(places) else note


def called_with(arguments: object) -> object:
    """What a tool was called with, as its span tells it: JSON, or (LangChain) the text of a Python object, also as the
    only input; {} where nothing is told."""
    inner = arguments["input"] if isinstance(arguments, Mapping) and arguments.keys() == {"input"} else arguments
    value = _decoded(inner)
    if value is None or value == "":
        return {}
    return value if isinstance(value, Mapping | list) or inner is arguments else arguments


def _decoded(value: object) -> object:
    if not isinstance(value, str):
        return value
    for read in (json.loads, ast.literal_eval) if value[:1] in ("{", "[", '"') else ():
        try:
            return read(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return value


def _place_of(transcript: Transcript, after: int) -> int:
    """Where the messages of a call go that follows that many calls."""
    messages = transcript.messages
    before = transcript.tool_calls[:after]
    last = before[-1].message if before else None
    if last is not None:
        at = last + 1
        # Behind the results, too: a call between calls and their results would make two answers of one.
        while at < len(messages) and messages[at].role == "tool":
            at += 1
        return at
    # No call is known to come before it: so it goes before the first one, which may depend on it.
    calling = next((at for at, message in enumerate(messages) if message.tool_calls), None)
    if calling is not None and after == 0:
        return calling
    # An answer that ends the conversation may rest on the call.
    is_answered = bool(messages) and messages[-1].role == "assistant"
    return len(messages) - is_answered
