"""What a request to a model says, in each of the six protocols.

A conversation is read as OpenAI chat messages, with `reasoning` and, at a tool's result, `is_error`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.models.hosted_calls import code_result, executed_code, hosted_call
from agenteval_tui.agents.recording.exchange import encoded
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.content_parts import attachment_fields
from agenteval_tui.transcripts.model_request import OfferedTool

ProtocolName = Literal["chat", "responses", "messages", "gemini", "ollama", "converse", ""]
SYSTEM_ROLES = ("system", "developer")
_CLAUDE_ON_VERTEX = re.compile(r"/publishers/anthropic/models/(?!count-tokens)[^/]+:(?:streamR|r)awPredict$")
_BEDROCK = re.compile(r"/model/(?P<model>[^/]+)/(?P<what>converse|invoke)(?:-stream|-with-response-stream)?$")


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


_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
"""Blocks of calls in the Messages API: of the program's tools, and of those that the server runs."""


def protocol_of(path: str) -> ProtocolName:
    """Which protocol a request to this path speaks; "": none."""
    path = path.rstrip("/")
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith("/messages") or _CLAUDE_ON_VERTEX.search(path) is not None:
        return "messages"
    # Many a server has such a path: it is Ollama's where the proxy was led there (`python_http_clients.py`).
    if path in ("ollama/api/chat", "ollama/api/generate"):
        return "ollama"
    if (bedrock := _BEDROCK.search(path)) is not None:
        if bedrock["what"].startswith("converse"):
            return "converse"
        # The model's own API, which has the vendor in the model's name.
        return "messages" if "anthropic" in bedrock["model"] else ""
    return "gemini" if path.endswith((":generateContent", ":streamGenerateContent")) else ""


def read_body(path: str, body: object) -> Request | None:
    """What the body of a request to this path says to a model; None where it is for none, or can't be read."""
    protocol = protocol_of(path)
    if not protocol or not isinstance(body, Mapping):
        return None
    elsewhere = _TOLD
    if protocol == "converse" and isinstance(config := body.get("toolConfig"), Mapping):
        body = {**body, **config}  # its tools are in an object of their own
        elsewhere = _TOLD | {"toolConfig"}
    elif protocol == "ollama":
        elsewhere = _TOLD | {"prompt", "images"}
    conversation = body.get("conversation")
    try:
        return replace(
            _REQUESTS[protocol](body, path),
            conversation=str((conversation.get("id") if isinstance(conversation, Mapping) else conversation) or ""),
            tools=offered_tools(body.get("tools")),
            parameters={str(key): value for key, value in body.items() if key not in elsewhere},
        )
    # Bodies are whatever a program sends; one that can't be read is passed on, and only not understood.
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
        declared = tool.get("functionDeclarations", tool.get("function_declarations"))
        if isinstance(declared, list):
            offered_tools += [_offered_tool(function) for function in declared if isinstance(function, Mapping)]
        else:
            function = tool.get("function", tool.get("toolSpec"))
            offered_tools.append(_offered_tool(function if isinstance(function, Mapping) else tool))
    return tuple(offered_tools)


_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
"""Where the JSON Schema of a tool's arguments is."""


def _offered_tool(tool: Mapping[str, Any]) -> OfferedTool:
    schemas = (tool.get(key) for key in _SCHEMAS)
    schema: Mapping[str, Any] = next((schema for schema in schemas if isinstance(schema, Mapping)), {})
    if isinstance(schema.get("json"), Mapping):  # Bedrock's
        schema = schema["json"]
    return OfferedTool(str(tool.get("name") or tool.get("type") or ""), str(tool.get("description") or ""), schema)


def _chat(body: Mapping[str, Any], _: str) -> Request:
    messages = []
    for message in body["messages"]:
        copy: dict[str, Any] = {"role": str(message["role"]), "content": content_text(message.get("content"))}
        for key in ("tool_calls", "function_call", "tool_call_id", "name", "reasoning_content", "refusal"):
            if message.get(key) is not None:
                copy[key] = message[key]
        messages.append(_with_files(copy, attachment_fields(message.get("content"))))
    system, rest = parted(messages)
    return Request(rest, system, str(body.get("model") or ""))


def parted(messages: Sequence[dict[str, Any]]) -> tuple[str, tuple[dict[str, Any], ...]]:
    """(the system prompt, the messages behind it). What a program says as the system later on is a message in its
    place: the prompt does not change by it."""
    prompts = [*takewhile(lambda message: message["role"] in SYSTEM_ROLES, messages)]
    rest = [
        {**message, "role": "system"} if message["role"] in SYSTEM_ROLES else message
        for message in messages[len(prompts) :]
    ]
    return "\n\n".join(filter(None, (content_text(prompt.get("content")) for prompt in prompts))), tuple(rest)


def _with_files(message: dict[str, Any], files: list[dict[str, Any]]) -> dict[str, Any]:
    return {**message, "attachments": files} if files else message


def _responses(body: Mapping[str, Any], _: str) -> Request:
    inputs = body.get("input")
    items = [{"role": "user", "content": inputs}] if isinstance(inputs, str) else list(inputs or ())
    messages = _Messages()
    if instructions := content_text(body.get("instructions")):
        messages.say("system", instructions)
    for item in items:
        kind = item.get("type") or "message"
        if kind == "message":
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
    system, rest = parted(messages.made)
    return Request(
        rest,
        system,
        str(body.get("model") or ""),
        str(body.get("previous_response_id") or ""),
    )


def _anthropic(body: Mapping[str, Any], path: str) -> Request:
    messages = _Messages()
    for message in body["messages"]:
        role, content = str(message["role"]), message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
        if role == "user":  # what tools gave comes before what the user says, as the API wants it
            blocks.sort(key=lambda block: not str(block.get("type")).endswith("tool_result"))
        texts: list[str] = []
        files: list[dict[str, Any]] = []
        # Calls belong to the message that they stand in: only the first one of it may begin a message (`fresh`).
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
    model = str(body.get("model") or model_in_path(path))
    return Request(tuple(messages.made), content_text(body.get("system")), model)


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
    return Request(tuple(messages.made), system, model_in_path(path))


def _converse(body: Mapping[str, Any], path: str) -> Request:
    messages = _Messages()
    for message in body["messages"]:
        role, began = str(message["role"]), len(messages.made)
        texts: list[str] = []
        files: list[dict[str, Any]] = []
        for block in message.get("content") or ():
            called, answered, thought = (block.get(key) for key in ("toolUse", "toolResult", "reasoningContent"))
            if isinstance(called, Mapping):
                _flush(messages, role, texts, files)
                fresh = len(messages.made) == began
                messages.call(called.get("toolUseId"), called.get("name"), called.get("input"), fresh=fresh)
            elif isinstance(answered, Mapping):
                parts = [*map(_converse_part, answered.get("content") or ())]
                messages.result(
                    answered.get("toolUseId"),
                    content_text(parts),
                    failed=answered.get("status") == "error",
                    files=attachment_fields(parts),
                )
            elif isinstance(thought, Mapping):
                messages.think(str((thought.get("reasoningText") or {}).get("text") or ""))
            elif "cachePoint" not in block:
                part = _converse_part(block)
                files += attachment_fields([part])
                texts.append(content_text([part]))
        _flush(messages, role, texts, files)
    system = [part for part in body.get("system") or () if "cachePoint" not in part]
    return Request(tuple(messages.made), content_text(system), model_in_path(path))


def _converse_part(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """A text, an image or a document as the Messages API has it."""
    if isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    if "json" in block:
        return {"type": "text", "text": encoded(block["json"])}
    kind = next((key for key in block if isinstance(block[key], Mapping)), "part")
    file = block.get(kind, {})
    media_type = f"{'application' if kind == 'document' else kind}/{file.get('format', '*')}"
    data = (file.get("source") or {}).get("bytes")
    return {"type": kind, "name": file.get("name"), "source": {"media_type": media_type, "data": data}}


def _ollama(body: Mapping[str, Any], _: str) -> Request:
    # `/api/generate` has one message, as fields of the request.
    generated = [
        {"role": "system", "content": body.get("system")},
        {"role": "user", "content": body.get("prompt"), "images": body.get("images")},
    ]
    messages = _Messages()
    for message in generated if "prompt" in body else body["messages"]:
        role, text = str(message["role"]), str(message.get("content") or "")
        images = [{"type": "image", "data": data} for data in message.get("images") or ()]
        content = [{"type": "text", "text": text}, *images] if images else text
        if role == "tool":
            name = message.get("tool_name") or message.get("name")
            messages.result(message.get("tool_call_id"), text, name=name)
            continue
        messages.think(str(message.get("thinking") or ""))
        if text or images or not message.get("tool_calls"):
            messages.say(role, content_text(content), attachment_fields(content))
        for place, call in enumerate(message.get("tool_calls") or ()):
            function = call["function"]
            messages.call(
                call.get("id"), function.get("name"), function.get("arguments"), fresh=not (place or text or images)
            )
    system, rest = parted([message for message in messages.made if message["content"] or message["role"] != "system"])
    return Request(rest, system, str(body.get("model") or ""))


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
        self.made[-1].setdefault("tool_calls", []).append(call_entry(call_id, str(name or ""), text))

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


def call_entry(call_id: Any, name: str, arguments: str) -> dict[str, Any]:
    return {"id": str(call_id or ""), "type": "function", "function": {"name": name, "arguments": arguments}}


_REQUESTS: Mapping[ProtocolName, Callable[[Mapping[str, Any], str], Request]] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
    "converse": _converse,
}


def first_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the user said first; "" for nothing."""
    return next(
        (str(message["content"]) for message in messages if message.get("role") == "user" and message.get("content")),
        "",
    )


def model_in_path(path: str) -> str:
    """The model that a path of Gemini or of Bedrock names."""
    if (bedrock := _BEDROCK.search(path)) is not None:
        return unquote(bedrock["model"])
    return path.rpartition("/models/")[2].partition(":")[0] if "/models/" in path else ""
