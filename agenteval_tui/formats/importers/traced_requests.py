"""The exact requests for the answers of an imported run, where its file has them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.recording.conversation import Asked, transcript_of_asked
from agenteval_tui.agents.recording.protocols import Reply, Request, offered_tools
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.message_formats import plain_text, transcript_of
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.transcripts.model_request import ModelRequests, RequestPart

_PROMPTS = ("system", "developer")
_PREVIOUS = ("previous_response_id", "conversation")
_MODEL = ("model", "model_name")
_SAID_ELSEWHERE = (
    "messages", "input", "contents", "prompt", "system", "instructions", "tools", "stream", "stream_options", "_type",
    "metadata", "user", *_MODEL, *_PREVIOUS,
)  # fmt: skip


def asked_in(
    messages: Sequence[Any],
    answer: Sequence[Any] = (),
    *,
    number: int,
    started: float | None = None,
    ended: float | None = None,
    about: Mapping[str, Any] | None = None,
    model: str = "",
    agent: str = "",
    error: str = "",
) -> Asked | None:
    """A request as another tool recorded it, of `messages` and an `answer` in any dialect; None where nobody can read
    it, or where it has results of calls that it has not: no model was asked so, and the record is not whole.

    `number`: which one of the run it is, from 0, where its times (milliseconds) are not known. `about`: all else that
    was sent (tools, parameters, the id of what a server keeps); None where only the messages were recorded."""
    try:
        told = to_openai_messages(transcript_of(list(messages)))
        replied = to_openai_messages(transcript_of(list(answer))) if answer else []
    except AgentevalError:
        return None
    said = next((one for one in reversed(replied) if one["role"] == "assistant"), None)
    given = about or {}
    kept = next((value for key in _PREVIOUS if (value := given.get(key))), "")
    request = Request(
        tuple([one for one in told if one["role"] not in _PROMPTS]),
        "\n\n".join(str(one["content"]) for one in told if one["role"] in _PROMPTS and one.get("content")),
        model or next((plain_text(given[key]) for key in _MODEL if given.get(key)), ""),
        plain_text(kept.get("id") if isinstance(kept, Mapping) else kept),
        tools=offered_tools(given.get("tools")),
        parameters={
            str(key): value for key, value in given.items() if key not in _SAID_ELSEWHERE and value is not None
        },
    )
    if not (request.messages or request.system) or (_has_orphans(request) and not request.previous):
        return None
    begun = float(number) if started is None else started
    reply = Reply(said, request.model, error=error)
    unrecorded: frozenset[RequestPart] = frozenset(("tools", "parameters")) if about is None else frozenset()
    return Asked(begun, max(begun, ended or begun), begun, request, reply, agent, unrecorded)


def _has_orphans(request: Request) -> bool:
    made: set[Any] = set()
    for message in request.messages:
        made.update(call.get("id") for call in message.get("tool_calls") or ())
        if message["role"] == "tool" and message.get("tool_call_id") not in made:
            return True
    return False


def with_requests(transcript: Transcript, asked: Iterable[Asked | None]) -> Transcript:
    """The transcript with these requests, each with the message that it led to: those of the same role, text and calls,
    in their order. It stays as it is without any, and where one of them is not known: what the model saw at an answer
    is then not known either."""
    listed = list(asked)
    known = [one for one in listed if one is not None]
    if not known or len(known) < len(listed):
        return transcript
    told = transcript_of_asked(known)
    if told.requests is None:
        return transcript
    places: dict[tuple[Any, ...], deque[int]] = {}
    for place, message in enumerate(transcript.messages):
        places.setdefault(_key(message, transcript), deque()).append(place)
    calls = {call.id: number for number, call in enumerate(transcript.tool_calls)}
    return replace(transcript, requests=_placed(told, told.requests, places, calls))


def _placed(
    told: Transcript,
    requests: ModelRequests,
    places: Mapping[tuple[Any, ...], deque[int]],
    calls: Mapping[str, int],
) -> ModelRequests:
    def place_of(answer: int | None) -> int | None:
        waiting = None if answer is None else places.get(_key(told.messages[answer], told))
        return waiting.popleft() if waiting else None

    def call_of(number: int | None) -> int | None:
        return None if number is None else calls.get(told.tool_calls[number].id)

    return replace(
        requests,
        references=tuple([replace(one, answer=place_of(one.answer)) for one in requests.references]),
        lines=tuple([replace(one, called_by=call_of(one.called_by)) for one in requests.lines]),
    )


def _key(message: Message, transcript: Transcript) -> tuple[Any, ...]:
    made = tuple(_calls(message, transcript))
    return message.role, "" if made else message.content.strip(), made


def _calls(message: Message, transcript: Transcript) -> Iterator[tuple[str, str]]:
    for number in message.tool_calls:
        call = transcript.tool_calls[number]
        yield call.name, repr(call.arguments)
