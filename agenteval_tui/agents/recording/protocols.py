"""What the exchanges of a program with model servers say, and how an error is told in the words of its protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.http.aws_events import AWS_EVENTS, events_in
from agenteval_tui.agents.http.errors import words_in
from agenteval_tui.agents.http.sse import ServerEvent, SseReader
from agenteval_tui.agents.models.anthropic import MessagesReply
from agenteval_tui.agents.models.gemini_reply import GeminiReply
from agenteval_tui.agents.models.openai_chat import ChatReply
from agenteval_tui.agents.models.openai_responses import ResponsesReply
from agenteval_tui.agents.models.recorded_replies import ConverseReply, OllamaReply
from agenteval_tui.agents.models.requests import (
    ProtocolName,
    Request,
    RequestReader,
    model_in_path,
    protocol_of,
)
from agenteval_tui.agents.models.stream import EmptyResponseError, ModelReply, ProviderError, ReplyMessage
from agenteval_tui.agents.recording.exchange import LINES, Answer, Question, encoded
from agenteval_tui.agents.recording.mcp_requests import error_of, is_mcp
from agenteval_tui.agents.usage import read_usage, total_tokens
from agenteval_tui.core.json_values import json_object
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.transcripts.model import SYSTEM_ROLES, Note, Usage

_QUOTED = 300  # characters of an error that are kept
_PAID = (
    "/completions",
    "/complete",
    "/embeddings",
    "/images/generations",
    "/images/edits",
    "/images/variations",
    "/audio/speech",
    "/audio/transcriptions",
    "/audio/translations",
    "/videos",
    ":embedContent",
    ":batchEmbedContents",
    ":predict",
    ":predictLongRunning",
    "/invoke",
    "/invoke-with-response-stream",
)
"""Ends of the paths of other requests that cost something."""


class Reply(Struct, frozen=True):
    """What an answer says. `message`: the assistant's; None where there is none. `error`: why, in words."""

    message: dict[str, Any] | None = None
    model: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    id: str = ""
    error: str = ""
    notes: tuple[Note, ...] = ()
    """What can't be so in the usage."""
    before: tuple[dict[str, Any], ...] = ()
    """What comes before its message: calls of tools that the server ran itself, with their results."""


def read_request(question: Question, reader: RequestReader | None = None) -> Request | None:
    """What a request to a model says; None where it is none, or can't be read. `reader` has read those before it."""
    return (reader or RequestReader()).read(question.path, question.body) if question.method == "POST" else None


def _protocol(question: Question) -> ProtocolName:
    """Which protocol a request speaks; "": none, it is passed on unread."""
    return protocol_of(question.path) if question.method == "POST" else ""


def read_reply(question: Question, answer: Answer) -> Reply:
    """What the answer to a request of a model says."""
    if answer.error:
        return Reply(error=answer.error)
    if not 200 <= answer.status < 300:
        return Reply(error=f"HTTP {answer.status}: {_text_of(answer)}".rstrip(": "))
    reply, error = _REPLIES[_protocol(question)](), ""
    message = ReplyMessage(reply)
    # As a client of ours reads it, event by event: a stream may say an error in its middle.
    try:
        for event in _read(reply, answer):
            message.take(event)
    except ProviderError as refused:
        error = on_one_line(words_in(encoded(refused.error)), _QUOTED)
    except EmptyResponseError as nothing:
        error = str(nothing)
    if not answer.whole:
        error = "the answer was cut off"
    # An answer that broke off has a message all the same, as far as it came.
    return Reply(
        None if error and message.empty else message.fields(),
        model=reply.model,
        finish_reason=reply.finish_reason,
        usage=reply.usage or Usage(),
        id=_id_of(answer),
        error=error,
        notes=reply.figures.notes,
        before=tuple(message.before),
    )


def used_by(question: Question, answer: Answer) -> tuple[str, Usage] | None:
    """The model that gave a server's answer, and its usage (empty: not told); None if no model answered. An error costs
    nothing. Requests that are not part of a conversation count if they have a usage (embeddings do), or if their
    endpoint is known to cost something (images do)."""
    if answer.status != 0 and not 200 <= answer.status < 300:
        return None
    body = question.body if isinstance(question.body, Mapping) else {}
    request = read_request(question)
    # What the answer says comes first: it names the version that a name such as `gpt-4o` stood for.
    named = request.model if request is not None else str(body.get("model") or "") or model_in_path(question.path)
    if _protocol(question):
        reply = read_reply(question, answer)
        return reply.model or named or "the model", reply.usage
    if question.method != "POST" or is_mcp(question):
        return None
    # The last object that has one: in streams the usage comes at the end, and earlier ones are sums until then.
    chunk = next((chunk for chunk in _said_last(answer) if isinstance(chunk.get("usage"), Mapping)), None)
    if chunk is None:
        return (named or "the model", Usage()) if question.path.endswith(_PAID) else None
    usage = read_usage(chunk["usage"])
    if usage.input_tokens is None and usage.output_tokens is None:  # embeddings of some have a total only
        total = total_tokens(chunk["usage"])
        usage = usage if total is None else replace(usage, input_tokens=total, output_tokens=0)
    return str(chunk.get("model") or named or "the model"), usage


def error_answer(question: Question, status: int, message: str) -> Answer:
    """An error in the words of the protocol, so that a client shows it."""
    protocol = _protocol(question)
    if protocol == "messages":
        body: dict[str, Any] = {"type": "error", "error": {"type": "agenteval", "message": message}}
    elif protocol == "gemini":
        body = {"error": {"code": status, "message": message, "status": "AGENTEVAL"}}
    elif protocol == "ollama":
        body = {"error": message}
    elif protocol == "converse":
        body = {"message": message}
    elif is_mcp(question):
        body = error_of(message)
    else:
        body = {"error": {"message": message, "type": "agenteval", "code": "agenteval", "param": None}}
    return Answer(status, "application/json", body)


def without_system(question: Question) -> object:
    """The body of a request without its system prompt."""
    body = question.body
    if not isinstance(body, Mapping) or not _protocol(question):
        return body
    rest = {
        key: value
        for key, value in body.items()
        if key not in ("system", "instructions", "systemInstruction", "system_instruction")
    }
    # Chat Completions and Responses have the prompt among the messages, the others beside them.
    for key in ("messages", "input"):
        if isinstance(rest.get(key), list):
            rest[key] = [
                message
                for message in rest[key]
                if not (isinstance(message, Mapping) and message.get("role") in SYSTEM_ROLES)
            ]
    return rest


# Replies

_REPLIES: Mapping[ProtocolName, Callable[[], ModelReply]] = {
    "chat": ChatReply,
    "responses": ResponsesReply,
    "messages": MessagesReply,
    "gemini": GeminiReply,
    "ollama": OllamaReply,
    "converse": ConverseReply,
}


def _read(reply: ModelReply, answer: Answer) -> Iterator[Any]:
    if answer.type.startswith(AWS_EVENTS):
        for sent in events_in(answer.data()):
            if not reply.over:
                yield from reply.take(sent)
    elif answer.streamed and answer.type.startswith(LINES):
        for line in answer.body:
            if line.strip():
                yield from reply.take(ServerEvent("", line))
    elif answer.streamed:
        reader = SseReader()
        for sent in (*reader.feed(answer.data()), *reader.close()):
            if not reply.over:
                yield from reply.take(sent)
    elif isinstance(answer.body, list):  # Gemini's stream without `alt=sse`
        for chunk in answer.body:
            yield from reply.take(ServerEvent("", encoded(chunk)))
    else:
        yield from reply.take_whole(answer.data().decode("utf-8", "replace"))
    yield from reply.rest()


def _said_last(answer: Answer) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of an answer, the last one first."""
    if isinstance(answer.body, Mapping):
        yield answer.body
    for event in reversed(answer.body) if answer.streamed else ():
        data = json_object(event.partition("data:")[2])
        if data is not None:
            yield data


def _text_of(answer: Answer) -> str:
    return on_one_line(words_in(answer.data().decode("utf-8", "replace")), _QUOTED)


def _id_of(answer: Answer) -> str:
    """The id of an answer of the Responses API, which a later request may name."""
    body = answer.body
    if isinstance(body, Mapping):
        return str(body.get("id") or "")
    # The first events of a stream have the response with its id; to read them all would cost as much as the answer.
    for event in body[:3] if answer.streamed else ():
        response = (json_object(event.partition("data:")[2]) or {}).get("response")
        if isinstance(response, Mapping) and "id" in response:
            return str(response["id"])
    return ""
