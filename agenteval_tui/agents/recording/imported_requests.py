"""Requests to models that somebody else has told: what imports and frameworks say of each, with its answer."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.models.requests import Request, offered_tools, parted
from agenteval_tui.agents.recording.conversation import Asked, transcript_of_asked
from agenteval_tui.agents.recording.protocols import Reply
from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.json_values import json_text
from agenteval_tui.transcripts.model import Message, Transcript, Usage
from agenteval_tui.transcripts.model_request import ModelRequests, RequestPart

_PREVIOUS = ("previous_response_id", "conversation")
_MODEL = ("model", "model_name")
_NO_PARAMETERS = (
    "messages",
    "input",
    "contents",
    "prompt",
    "system",
    "instructions",
    "tools",
    "stream",
    "stream_options",
    "_type",
    "metadata",
    "user",
    *_MODEL,
    *_PREVIOUS,
)


def asked_in(
    messages: Sequence[dict[str, Any]] | None,
    replied: Sequence[dict[str, Any]] | None,
    *,
    number: int,
    started: float | None = None,
    ended: float | None = None,
    about: Mapping[str, Any] | None = None,
    model: str = "",
    agent: str = "",
    error: str = "",
    unrecorded: Iterable[RequestPart] | None = None,
    usage: object = None,
) -> Asked | None:
    """A request as another tool recorded it, of OpenAI chat messages and what was replied; None where they could not
    be read, or where there are results of calls that are not there: no client sends that, so the record is not whole.

    `number`: which one of the run it is, from 0, where its times (milliseconds) are not known. `about`: all else that
    was sent (tools, parameters, the id of what a server keeps); None where only the messages were recorded.
    `unrecorded`: what of all that is not known; None: as `about` says. `usage`: its own, in any dialect."""
    if messages is None or replied is None:
        return None
    answered = next((message for message in reversed(replied) if message["role"] == "assistant"), None)
    fields = about or {}
    conversation = fields.get("conversation")
    # Only the prompt at its start. Were later ones joined to it, each event that an agent tells its model would change
    # the system prompt, and a fork would put it in front.
    system, rest = parted(messages)
    request = Request(
        rest,
        system,
        model or next((json_text(fields[key]) for key in _MODEL if fields.get(key)), ""),
        json_text(fields.get("previous_response_id")),
        json_text(conversation.get("id") if isinstance(conversation, Mapping) else conversation),
        tools=offered_tools(fields.get("tools")),
        parameters={
            str(key): value for key, value in fields.items() if key not in _NO_PARAMETERS and value is not None
        },
    )
    # Where a server keeps the conversation, the calls of these results are there.
    if not (request.messages or request.system) or (
        _has_orphans(request) and not (request.previous or request.conversation)
    ):
        return None
    begun = float(number) if started is None else started
    reply = Reply(answered, request.model, usage=UsageReader().read(usage) if usage else Usage(), error=error)
    missing = (("tools", "parameters") if about is None else ()) if unrecorded is None else unrecorded
    return Asked(
        begun,
        ended_ms=max(begun, ended or begun),
        first_ms=begun,
        request=request,
        reply=reply,
        agent=agent,
        unrecorded=frozenset[RequestPart](missing),
    )


def _has_orphans(request: Request) -> bool:
    # An agent may give an id of any type, such as a list, which can't be looked up among others.
    call_ids = set[str]()
    for message in request.messages:
        call_ids.update(json_text(call.get("id")) for call in message.get("tool_calls") or ())
        if message["role"] == "tool" and json_text(message.get("tool_call_id")) not in call_ids:
            return True
    return False


def with_requests(transcript: Transcript, requests: Iterable[Asked | None], given: int = 0) -> Transcript:
    """The transcript with these requests, each with the message that it led to: those of the same role, text and calls,
    in their order; the first `given` messages were there before. It stays as it is if there are none, or one is
    not known: what the model saw at an answer is then not known either."""
    listed = list(requests)
    complete = [request for request in listed if request is not None]
    if not complete or len(complete) < len(listed):
        return transcript
    return with_requests_of(transcript, transcript_of_asked(complete), given)


def with_requests_of(transcript: Transcript, whole: Transcript, given: int = 0) -> Transcript:
    """The transcript with the requests of another transcript of the same run, as with `with_requests`."""
    if whole.requests is None:
        return transcript
    places: dict[tuple[Any, ...], deque[int]] = {}
    for place, message in enumerate(transcript.messages[given:], given):
        places.setdefault(_key(message, transcript), deque()).append(place)
    calls = {call.id: number for number, call in enumerate(transcript.tool_calls)}
    return replace(transcript, requests=_placed(whole, whole.requests, places, calls))


def _placed(
    transcript: Transcript,
    requests: ModelRequests,
    places: Mapping[tuple[Any, ...], deque[int]],
    calls: Mapping[str, int],
) -> ModelRequests:
    # Equal answers are told apart by their order only: each request takes the next one.
    def place_of(answer: int | None) -> int | None:
        waiting = None if answer is None else places.get(_key(transcript.messages[answer], transcript))
        return waiting.popleft() if waiting else None

    def call_of(number: int | None) -> int | None:
        return None if number is None else calls.get(transcript.tool_calls[number].id)

    return replace(
        requests,
        references=tuple([replace(reference, answer=place_of(reference.answer)) for reference in requests.references]),
        lines=tuple([replace(line, called_by=call_of(line.called_by)) for line in requests.lines]),
    )


def _key(message: Message, transcript: Transcript) -> tuple[Any, ...]:
    own = [transcript.tool_calls[number] for number in message.tool_calls]
    # Frameworks write the arguments of a call in one order, and its model may have written them in another.
    calls = tuple([(call.name, json.dumps(call.arguments, sort_keys=True, default=str)) for call in own])
    return message.role, "" if calls else message.content.strip(), calls
