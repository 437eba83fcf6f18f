"""The four protocols of model servers: what a request says, what an answer says, and how an error is told.

A conversation is read as OpenAI chat messages, with `reasoning` and, at a tool's result, `is_error`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.base import ReasoningDelta, ToolCallFinished
from agenteval_tui.agents.http.errors import words_in
from agenteval_tui.agents.http.sse import ServerEvent, SseReader
from agenteval_tui.agents.models.anthropic import MessagesReply
from agenteval_tui.agents.models.gemini import GeminiReply
from agenteval_tui.agents.models.hosted_calls import HostedCall, code_result, executed_code, hosted_call
from agenteval_tui.agents.models.openai_chat import ChatReply
from agenteval_tui.agents.models.openai_responses import ResponsesReply
from agenteval_tui.agents.models.stream import EmptyResponseError, ModelReply, ProviderError
from agenteval_tui.agents.recording.exchange import Answer, Question, encoded
from agenteval_tui.agents.recording.mcp_requests import error_of, is_mcp
from agenteval_tui.agents.usage import read_usage, total_tokens
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.content_parts import attachment_fields
from agenteval_tui.transcripts.model import Note, Usage
from agenteval_tui.transcripts.model_request import OfferedTool

Name = Literal["chat", "responses", "messages", "gemini", ""]
_QUOTED = 300  # characters of an error that are kept
_SYSTEM = ("system", "developer")
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
)
"""Ends of the paths of other requests that cost something."""


class Request(Struct, frozen=True):
    """What a request says. `messages` are without the system prompt, which is `system` ("" for none). `previous`: the
    id of the answer that it continues, where the server keeps the conversation; `conversation`: the id of that.
    `parameters`: all else that was asked for."""

    messages: tuple[dict[str, Any], ...]
    system: str = ""
    model: str = ""
    previous: str = ""
    conversation: str = ""
    tools: tuple[OfferedTool, ...] = ()
    parameters: Mapping[str, Any] = {}


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
    """What comes before its message: calls of tools that the server ran itself, with what came back."""


_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
"""Blocks of calls in the Messages API: of the program's tools, and of those that the server runs."""


def protocol_of(question: Question) -> Name:
    """Which protocol a request speaks; "": none, it is passed on unread."""
    path = question.path.rstrip("/")
    if question.method != "POST":
        return ""
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith("/messages"):
        return "messages"
    return "gemini" if path.endswith((":generateContent", ":streamGenerateContent")) else ""


def read_request(question: Question) -> Request | None:
    """What a request to a model says; None where it is none, or can't be read."""
    protocol = protocol_of(question)
    if not protocol or not isinstance(question.body, Mapping):
        return None
    body = question.body
    conversation = body.get("conversation")
    try:
        return replace(
            _REQUESTS[protocol](body, question.path),
            conversation=str((conversation.get("id") if isinstance(conversation, Mapping) else conversation) or ""),
            tools=offered_tools(body.get("tools")),
            parameters={str(key): value for key, value in body.items() if key not in _TOLD},
        )
    except (TypeError, ValueError, AttributeError, KeyError):
        return None


_TOLD = frozenset(
    (
        "messages",
        "input",
        "instructions",
        "system",
        "tools",
        "model",
        "stream",
        "stream_options",
        "contents",
        "systemInstruction",
        "system_instruction",
        "previous_response_id",
        "conversation",
        "metadata",
        "user",
        "prompt_cache_key",
        "safety_identifier",
    )
)
"""What of a body stands elsewhere, or says nothing to the model."""


def offered_tools(listed: object) -> tuple[OfferedTool, ...]:
    """The tools that a request lists, in the words of any protocol."""
    offered_tools: list[OfferedTool] = []
    for tool in listed if isinstance(listed, list | tuple) else ():
        if not isinstance(tool, Mapping):
            continue
        declared = tool.get("functionDeclarations") or tool.get("function_declarations")
        if isinstance(declared, list):
            offered_tools += [_offered_tool(function) for function in declared if isinstance(function, Mapping)]
        else:
            function = tool.get("function")
            offered_tools.append(_offered_tool(function if isinstance(function, Mapping) else tool))
    return tuple(offered_tools)


_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
"""Where the JSON Schema of a tool's arguments is."""


def _offered_tool(tool: Mapping[str, Any]) -> OfferedTool:
    schemas = (tool.get(key) for key in _SCHEMAS)
    schema: Mapping[str, Any] = next((schema for schema in schemas if isinstance(schema, Mapping)), {})
    return OfferedTool(str(tool.get("name") or tool.get("type") or ""), str(tool.get("description") or ""), schema)


def read_reply(question: Question, answer: Answer) -> Reply:
    """What the answer to a request of a model says."""
    if answer.error:
        return Reply(error=answer.error)
    if not 200 <= answer.status < 300:
        return Reply(error=f"HTTP {answer.status}: {_said(answer)}".rstrip(": "))
    reply, thoughts, error = _REPLIES[protocol_of(question)](), list[str](), ""
    before, position = list[dict[str, Any]](), 0
    try:
        for event in _read(reply, answer):
            if isinstance(event, ReasoningDelta):
                thoughts.append(event.text)
            elif isinstance(event, ToolCallFinished):
                before += _hosted(reply.hosted[-1], "".join(reply.text[position:]))
                position = len(reply.text)
    except ProviderError as refused:
        error = on_one_line(words_in(encoded(refused.error)), _QUOTED)
    except EmptyResponseError as nothing:
        error = str(nothing)
    if not answer.whole:
        error = "the answer was cut off"
    message: dict[str, Any] | None = None
    if reply.text or reply.calls or thoughts or not error:
        message = {"role": "assistant", "content": "".join(reply.text[position:])}
        if thoughts:
            message["reasoning"] = "".join(thoughts)
        open_calls = [_call(call.id, call.name, call.arguments) for call in reply.hosted if call.result is None]
        open_calls += [_call(call.given_id, call.name, call.arguments_text) for call in reply.calls]
        if open_calls:
            message["tool_calls"] = open_calls
    used = reply.usage or Usage()
    notes = reply.figures.notes
    return Reply(
        message,
        model=reply.model,
        finish_reason=reply.finish_reason,
        usage=used,
        id=_id_of(answer),
        error=error,
        notes=notes,
        before=tuple(before),
    )


def _hosted(call: HostedCall, text: str) -> list[dict[str, Any]]:
    """A call that the server made and answered, as messages; `text`: what the model said before it."""
    answer: dict[str, Any] = {"role": "tool", "content": call.result or ""}
    if call.id:
        answer["tool_call_id"] = call.id
    if call.failed:
        answer["is_error"] = True
    calls = [_call(call.id, call.name, call.arguments)]
    return [{"role": "assistant", "content": text, "tool_calls": calls}, answer]


def used_by(question: Question, answer: Answer) -> tuple[str, Usage] | None:
    """The model that gave a server's answer, and its usage (empty: not told); None if no model answered. An error costs
    nothing. Requests that are not part of a conversation count if they have a usage (embeddings do), or if their
    endpoint is known to cost something (images do)."""
    if answer.status != 0 and not 200 <= answer.status < 300:
        return None
    body = question.body if isinstance(question.body, Mapping) else {}
    request = read_request(question)
    named = request.model if request is not None else str(body.get("model") or "") or _model_in(question.path)
    if protocol_of(question):
        reply = read_reply(question, answer)
        return reply.model or named or "the model", reply.usage
    if question.method != "POST" or is_mcp(question):
        return None
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
    protocol = protocol_of(question)
    if protocol == "messages":
        body: dict[str, Any] = {"type": "error", "error": {"type": "agenteval", "message": message}}
    elif protocol == "gemini":
        body = {"error": {"code": status, "message": message, "status": "AGENTEVAL"}}
    elif is_mcp(question):
        body = error_of(message)
    else:
        body = {"error": {"message": message, "type": "agenteval", "code": "agenteval", "param": None}}
    return Answer(status, "application/json", body)


def without_system(question: Question) -> object:
    """The body of a request without its system prompt."""
    body = question.body
    if not isinstance(body, Mapping) or not protocol_of(question):
        return body
    rest = {
        key: value
        for key, value in body.items()
        if key not in ("system", "instructions", "systemInstruction", "system_instruction")
    }
    for key in ("messages", "input"):
        if isinstance(rest.get(key), list):
            rest[key] = [
                message
                for message in rest[key]
                if not (isinstance(message, Mapping) and message.get("role") in _SYSTEM)
            ]
    return rest


# Requests


def _chat(body: Mapping[str, Any], _: str) -> Request:
    messages, system = [], list[str]()
    for message in body["messages"]:
        role = str(message["role"])
        if role in _SYSTEM:
            system.append(content_text(message.get("content")))
            continue
        copy: dict[str, Any] = {"role": role, "content": content_text(message.get("content"))}
        for key in ("tool_calls", "function_call", "tool_call_id", "name", "reasoning_content", "refusal"):
            if message.get(key) is not None:
                copy[key] = message[key]
        messages.append(_with_files(copy, attachment_fields(message.get("content"))))
    return Request(tuple(messages), "\n\n".join(filter(None, system)), str(body.get("model") or ""))


def _with_files(message: dict[str, Any], files: list[dict[str, Any]]) -> dict[str, Any]:
    return {**message, "attachments": files} if files else message


def _responses(body: Mapping[str, Any], _: str) -> Request:
    inputs = body.get("input")
    items = [{"role": "user", "content": inputs}] if isinstance(inputs, str) else list(inputs or ())
    messages, system = _Messages(), [content_text(body.get("instructions"))]
    for item in items:
        kind = item.get("type") or "message"
        if kind == "message" and item.get("role") in _SYSTEM:
            system.append(content_text(item.get("content")))
        elif kind == "message":
            content = item.get("content")
            messages.say(str(item.get("role") or "user"), content_text(content), attachment_fields(content))
        elif kind == "reasoning":
            messages.think(content_text(item.get("summary") or item.get("content") or ()))
        elif kind in ("function_call", "custom_tool_call"):
            messages.call(item.get("call_id"), item.get("name"), item.get("arguments", item.get("input")))
        elif kind.endswith("_call_output"):
            output = item.get("output")
            messages.result(item.get("call_id"), content_text(output), files=attachment_fields(output))
        elif (hosted := hosted_call(item)) is not None:
            messages.call(hosted.id, hosted.name, hosted.arguments)
            if hosted.result is not None:
                messages.result(hosted.id, hosted.result, failed=hosted.failed)
    return Request(
        tuple(messages.made),
        "\n\n".join(filter(None, system)),
        str(body.get("model") or ""),
        str(body.get("previous_response_id") or ""),
    )


def _anthropic(body: Mapping[str, Any], _: str) -> Request:
    messages = _Messages()
    for message in body["messages"]:
        role, content = str(message["role"]), message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
        if role == "user":  # what tools gave comes before what the user says, as the API wants it
            blocks.sort(key=lambda block: not str(block.get("type")).endswith("tool_result"))
        texts: list[str] = []
        files: list[dict[str, Any]] = []
        began = len(messages.made)
        for block in blocks:
            kind = str(block.get("type"))
            if kind.endswith("tool_result"):
                result = block.get("content")
                messages.result(
                    block.get("tool_use_id"),
                    content_text(result),
                    failed=bool(block.get("is_error")),
                    files=attachment_fields(result),
                )
            elif kind in _CALLS:
                _flush(messages, role, texts, files)
                messages.call(block.get("id"), block.get("name"), block.get("input"), fresh=len(messages.made) == began)
            elif kind == "thinking":
                messages.think(str(block.get("thinking") or ""))
            elif kind not in ("redacted_thinking",):
                files += attachment_fields([block])
                texts.append(str(block["text"]) if isinstance(block.get("text"), str) else f"[{kind}]")
        _flush(messages, role, texts, files)
    return Request(tuple(messages.made), content_text(body.get("system")), str(body.get("model") or ""))


def _gemini(body: Mapping[str, Any], path: str) -> Request:
    messages = _Messages()
    for content in body["contents"]:
        role = "assistant" if content.get("role") == "model" else "user"
        texts: list[str] = []
        files: list[dict[str, Any]] = []
        began = len(messages.made)
        for part in content.get("parts") or ():
            called, answered = part.get("functionCall"), part.get("functionResponse")
            if isinstance(called, Mapping):
                _flush(messages, role, texts, files)
                messages.call(
                    called.get("id"), called.get("name"), called.get("args"), fresh=len(messages.made) == began
                )
            elif isinstance(answered, Mapping):
                text, failed = _function_response(answered.get("response"))
                messages.result(answered.get("id"), text, name=answered.get("name"), failed=failed)
            elif (code := executed_code(part)) is not None:
                _flush(messages, role, texts, files)
                messages.call(code.id, code.name, code.arguments, fresh=len(messages.made) == began)
            elif (result := code_result(part)) is not None:
                messages.result("", result[0], failed=result[1])
            elif part.get("thought") is True:
                messages.think(str(part.get("text") or ""))
            else:
                kind = next((key for key in part if key not in ("thoughtSignature", "thought")), "part")
                files += [{**file, "mark": f"[{kind}]"} for file in attachment_fields([part])]
                texts.append(str(part["text"]) if isinstance(part.get("text"), str) else f"[{kind}]")
        _flush(messages, role, texts, files)
    instruction = body.get("systemInstruction") or body.get("system_instruction")
    system = content_text(instruction.get("parts") if isinstance(instruction, Mapping) else instruction)
    return Request(tuple(messages.made), system, _model_in(path))


def _function_response(response: Any) -> tuple[str, bool]:
    """What a tool gave, and whether it failed."""
    if isinstance(response, Mapping) and len(response) == 1:
        key, value = next(iter(response.items()))
        if key in ("result", "output", "error", "content"):
            return (value if isinstance(value, str) else encoded(value)), key == "error"
    return (response if isinstance(response, str) else encoded(response)), False


def _flush(messages: _Messages, role: str, texts: list[str], files: list[dict[str, Any]]) -> None:
    if texts:
        messages.say(role, "".join(texts), [*files])
    texts.clear()
    files.clear()


class _Messages:
    """Messages that are told in parts: calls belong to the assistant's message before them."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self._thoughts = ""

    def say(self, role: str, text: str, files: Sequence[dict[str, Any]] = ()) -> None:
        message: dict[str, Any] = _with_files({"role": role, "content": text}, [*files])
        if role == "assistant" and self._thoughts:
            message["reasoning"], self._thoughts = self._thoughts, ""
        self.made.append(message)

    def think(self, text: str) -> None:
        self._thoughts += text

    def call(self, call_id: Any, name: Any, arguments: object, *, fresh: bool = False) -> None:
        if fresh or not self.made or self.made[-1]["role"] != "assistant":
            self.say("assistant", "")
        text = arguments if isinstance(arguments, str) else encoded({} if arguments is None else arguments)
        self.made[-1].setdefault("tool_calls", []).append(_call(call_id, str(name or ""), text))

    def result(
        self,
        call_id: Any,
        text: str,
        *,
        name: Any = None,
        failed: bool = False,
        files: Sequence[dict[str, Any]] = (),
    ) -> None:
        message: dict[str, Any] = _with_files({"role": "tool", "content": text}, [*files])
        if call_id:
            message["tool_call_id"] = str(call_id)
        if isinstance(name, str):
            message["name"] = name
        if failed:
            message["is_error"] = True
        self.made.append(message)


def _call(call_id: Any, name: str, arguments: str) -> dict[str, Any]:
    return {"id": str(call_id or ""), "type": "function", "function": {"name": name, "arguments": arguments}}


_REQUESTS: Mapping[Name, Callable[[Mapping[str, Any], str], Request]] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _anthropic,
    "gemini": _gemini,
}


# Replies

_REPLIES: Mapping[Name, Callable[[], ModelReply]] = {
    "chat": ChatReply,
    "responses": ResponsesReply,
    "messages": MessagesReply,
    "gemini": GeminiReply,
}


def _read(reply: ModelReply, answer: Answer) -> Iterator[Any]:
    if answer.streamed:
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
        with suppress(ValueError, RecursionError):
            data = json.loads(event.partition("data:")[2])
            if isinstance(data, Mapping):
                yield data


def _model_in(path: str) -> str:
    """The model that a path of Gemini names."""
    return path.rpartition("/models/")[2].partition(":")[0] if "/models/" in path else ""


def _said(answer: Answer) -> str:
    return on_one_line(words_in(answer.data().decode("utf-8", "replace")), _QUOTED)


def _id_of(answer: Answer) -> str:
    """The id of an answer of the Responses API, which a later request may name."""
    body = answer.body
    if isinstance(body, Mapping):
        return str(body.get("id") or "")
    for event in body[:3] if answer.streamed else ():
        at = event.find("data:")
        try:
            data = json.loads(event[at + 5 :]) if at >= 0 else {}
            return str(data["response"]["id"])
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return ""


def first_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the user said first; "" for nothing."""
    return next(
        (str(message["content"]) for message in messages if message.get("role") == "user" and message.get("content")),
        "",
    )
