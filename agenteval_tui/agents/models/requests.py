"""What a request to a model says, in each of the six protocols.

A conversation is read as OpenAI chat messages, with `reasoning` and, at a tool's result, `is_error`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import Any, Literal
from urllib.parse import unquote

from msgspec import Struct

from agenteval_tui.agents.models.hosted_calls import code_result, executed_code, hosted_call
from agenteval_tui.agents.recording.exchange import encoded
from agenteval_tui.core.common_prefix import SharedStarts
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.content_parts import attachment_fields
from agenteval_tui.transcripts.model import SYSTEM_ROLES
from agenteval_tui.transcripts.model_request import OfferedTool

ProtocolName = Literal["chat", "responses", "messages", "gemini", "ollama", "converse", ""]
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
    return RequestReader().read(path, body)


class RequestReader:
    """Reads the requests of one program.

    Each repeats the conversation before it, as a rule. What it has in common with an earlier one is read once, and is
    the same objects in both: whoever compares requests then sees at once what is new.
    """

    def __init__(self) -> None:
        self._conversations = {protocol: SharedStarts[_Conversation]() for protocol in _PROTOCOLS}

    def read(self, path: str, body: object) -> Request | None:
        """The same as `read_body`."""
        protocol = protocol_of(path)
        if not protocol or not isinstance(body, Mapping):
            return None
        elsewhere = _TOLD
        if protocol == "converse" and isinstance(config := body.get("toolConfig"), Mapping):
            body = {**body, **config}  # its tools are in an object of their own
            elsewhere = _TOLD | {"toolConfig"}
        elif protocol == "ollama":
            elsewhere = _TOLD | {"prompt", "images"}
        conversation, shape = body.get("conversation"), _PROTOCOLS[protocol]
        try:
            messages, system = self._messages(protocol, body), shape.system_prompt(body)
            if shape.has_prompts:
                prompt, messages = parted(messages)
                system = "\n\n".join(filter(None, (system, prompt)))
            return Request(
                messages,
                system,
                str(body.get("model") or ("" if shape.has_prompts else model_in_path(path))),
                str(body.get("previous_response_id") or ""),
                str((conversation.get("id") if isinstance(conversation, Mapping) else conversation) or ""),
                tools=(*offered_tools(body.get("tools")), *offered_tools(body.get("functions"))),
                parameters={str(key): value for key, value in body.items() if key not in elsewhere},
            )
        # Bodies are whatever a program sends; one that can't be read is passed on, and only not understood.
        except (TypeError, ValueError, AttributeError, KeyError):
            return None

    def _messages(self, protocol: ProtocolName, body: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        shape = _PROTOCOLS[protocol]
        unread, items = _Conversation(shape.take), [*shape.items(body)]
        # A prompt at the start may have the time in it: it is read by itself, as what follows is repeated all the same.
        start = sum(1 for _ in takewhile(lambda item: item.get("role") in SYSTEM_ROLES, items))
        prompts, rest = unread.continued(items[:start], 0), items[start:]
        conversation = self._conversations[protocol].of(
            rest, lambda shared, earlier: (earlier or unread).continued(rest, shared)
        )
        return *prompts.messages, *conversation.messages


_TOLD = frozenset(
    (
        "messages",
        "input",
        "instructions",
        "system",
        "tools",
        "functions",
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


def _take_chat(conversation: _Conversation, message: Mapping[str, Any]) -> None:
    role = str(message["role"])
    role = "tool" if role == "function" else role  # what tools were called before they had ids
    copy: dict[str, Any] = {"role": role, "content": content_text(message.get("content"))}
    for key in ("tool_calls", "function_call", "tool_call_id", "name", "reasoning_content", "refusal"):
        if message.get(key) is not None:
            copy[key] = message[key]
    conversation.messages.append(_with_files(copy, attachment_fields(message.get("content"))))


def parted(messages: Sequence[dict[str, Any]]) -> tuple[str, tuple[dict[str, Any], ...]]:
    """(the system prompt, the messages behind it). What a program says as the system later on is a message in its
    place: the prompt does not change by it."""
    prompts = [*takewhile(lambda message: message["role"] in SYSTEM_ROLES, messages)]
    rest = [
        {**message, "role": "system"} if message["role"] == "developer" else message
        for message in messages[len(prompts) :]
    ]
    return "\n\n".join(filter(None, (content_text(prompt.get("content")) for prompt in prompts))), tuple(rest)


def _with_files(message: dict[str, Any], files: list[dict[str, Any]]) -> dict[str, Any]:
    return {**message, "attachments": files} if files else message


def _responses_items(body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    inputs = body.get("input")
    return [{"role": "user", "content": inputs}] if isinstance(inputs, str) else list(inputs or ())


def _take_responses(conversation: _Conversation, item: Mapping[str, Any]) -> None:
    kind = item.get("type") or "message"
    if kind == "message":
        content = item.get("content")
        conversation.say(str(item.get("role") or "user"), content_text(content), attachment_fields(content))
    elif kind == "reasoning":
        conversation.think(content_text(item.get("summary") or item.get("content") or ()))
    elif kind in ("function_call", "custom_tool_call"):
        conversation.call(item.get("call_id"), item.get("name"), item.get("arguments", item.get("input")))
    elif kind.endswith("_call_output"):
        output = item.get("output")
        conversation.result(item.get("call_id"), content_text(output), files=attachment_fields(output))
    elif (hosted := hosted_call(item)) is not None:
        conversation.call(hosted.id, hosted.name, hosted.arguments)
        if hosted.result is not None:
            conversation.result(hosted.id, hosted.result, failed=hosted.failed)


def _take_anthropic(conversation: _Conversation, message: Mapping[str, Any]) -> None:
    role, content = str(message["role"]), message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    if role == "user":  # what tools gave comes before what the user says, as the API wants it
        blocks.sort(key=lambda block: not str(block.get("type")).endswith("tool_result"))
    texts: list[str] = []
    files: list[dict[str, Any]] = []
    # Calls belong to the message that they stand in: only the first one of it may begin a message (`fresh`).
    began = len(conversation.messages)
    for block in blocks:
        kind = str(block.get("type"))
        if kind.endswith("tool_result"):
            result = block.get("content")
            conversation.result(
                block.get("tool_use_id"),
                content_text(result),
                failed=bool(block.get("is_error")),
                files=attachment_fields(result),
            )
        elif kind in _CALLS:
            _flush(conversation, role, texts, files)
            conversation.call(
                block.get("id"), block.get("name"), block.get("input"), fresh=len(conversation.messages) == began
            )
        elif kind == "thinking":
            conversation.think(str(block.get("thinking") or ""))
        elif kind not in ("redacted_thinking",):
            files += attachment_fields([block])
            texts.append(str(block["text"]) if isinstance(block.get("text"), str) else f"[{kind}]")
    _flush(conversation, role, texts, files)


def _take_gemini(conversation: _Conversation, content: Mapping[str, Any]) -> None:
    role = "assistant" if content.get("role") == "model" else "user"
    texts: list[str] = []
    files: list[dict[str, Any]] = []
    began = len(conversation.messages)
    for part in content.get("parts") or ():
        called, answered = part.get("functionCall"), part.get("functionResponse")
        if isinstance(called, Mapping):
            _flush(conversation, role, texts, files)
            conversation.call(
                called.get("id"), called.get("name"), called.get("args"), fresh=len(conversation.messages) == began
            )
        elif isinstance(answered, Mapping):
            text, failed = _function_response(answered.get("response"))
            conversation.result(answered.get("id"), text, name=answered.get("name"), failed=failed)
        elif (code := executed_code(part)) is not None:
            _flush(conversation, role, texts, files)
            conversation.call(code.id, code.name, code.arguments, fresh=len(conversation.messages) == began)
        elif (result := code_result(part)) is not None:
            conversation.result("", result[0], failed=result[1])
        elif part.get("thought") is True:
            conversation.think(str(part.get("text") or ""))
        else:
            kind = next((key for key in part if key not in ("thoughtSignature", "thought")), "part")
            files += [{**file, "mark": f"[{kind}]"} for file in attachment_fields([part])]
            texts.append(str(part["text"]) if isinstance(part.get("text"), str) else f"[{kind}]")
    _flush(conversation, role, texts, files)


def _gemini_system(body: Mapping[str, Any]) -> str:
    instruction = body.get("systemInstruction") or body.get("system_instruction")
    return content_text(instruction.get("parts") if isinstance(instruction, Mapping) else instruction)


def _take_converse(conversation: _Conversation, message: Mapping[str, Any]) -> None:
    role, began = str(message["role"]), len(conversation.messages)
    texts: list[str] = []
    files: list[dict[str, Any]] = []
    for block in message.get("content") or ():
        called, answered, thought = (block.get(key) for key in ("toolUse", "toolResult", "reasoningContent"))
        if isinstance(called, Mapping):
            _flush(conversation, role, texts, files)
            fresh = len(conversation.messages) == began
            conversation.call(called.get("toolUseId"), called.get("name"), called.get("input"), fresh=fresh)
        elif isinstance(answered, Mapping):
            parts = [*map(_converse_part, answered.get("content") or ())]
            conversation.result(
                answered.get("toolUseId"),
                content_text(parts),
                failed=answered.get("status") == "error",
                files=attachment_fields(parts),
            )
        elif isinstance(thought, Mapping):
            conversation.think(str((thought.get("reasoningText") or {}).get("text") or ""))
        elif "cachePoint" not in block:
            part = _converse_part(block)
            files += attachment_fields([part])
            texts.append(content_text([part]))
    _flush(conversation, role, texts, files)


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


def _converse_system(body: Mapping[str, Any]) -> str:
    return content_text([part for part in body.get("system") or () if "cachePoint" not in part])


def _ollama_items(body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    # `/api/generate` has one message, as fields of the request.
    generated = [
        {"role": "system", "content": body.get("system")},
        {"role": "user", "content": body.get("prompt"), "images": body.get("images")},
    ]
    return generated if "prompt" in body else list(body["messages"])


def _take_ollama(conversation: _Conversation, message: Mapping[str, Any]) -> None:
    role, text = str(message["role"]), str(message.get("content") or "")
    images = [{"type": "image", "data": data} for data in message.get("images") or ()]
    content = [{"type": "text", "text": text}, *images] if images else text
    if role == "tool":
        name = message.get("tool_name") or message.get("name")
        conversation.result(message.get("tool_call_id"), text, name=name)
        return
    conversation.think(str(message.get("thinking") or ""))
    # `/api/generate` without a system prompt has an empty one.
    if text or images or not (message.get("tool_calls") or role == "system"):
        conversation.say(role, content_text(content), attachment_fields(content))
    for place, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        conversation.call(
            call.get("id"), function.get("name"), function.get("arguments"), fresh=not (place or text or images)
        )


def _function_response(response: Any) -> tuple[str, bool]:
    """What a tool gave, and whether it failed."""
    if isinstance(response, Mapping) and len(response) == 1:
        key, value = next(iter(response.items()))
        if key in ("result", "output", "error", "content"):
            return (value if isinstance(value, str) else encoded(value)), key == "error"
    return (response if isinstance(response, str) else encoded(response)), False


def _flush(conversation: _Conversation, role: str, texts: list[str], files: list[dict[str, Any]]) -> None:
    if texts:
        conversation.say(role, "".join(texts), [*files])
    texts.clear()
    files.clear()


class _Conversation:
    """Messages that are told in parts: calls belong to the assistant's message before them. `take` reads an item."""

    def __init__(self, take: Callable[[_Conversation, Mapping[str, Any]], None]) -> None:
        self.messages: list[dict[str, Any]] = []
        self._take = take
        self._thoughts = ""
        self._ends: list[int | None] = []  # of each item, how many messages are complete behind it; None: one is not

    def continued(self, items: Sequence[Mapping[str, Any]], shared: int) -> _Conversation:
        """The conversation of these items, of which it has read the first `shared`."""
        # An assistant's message may still get calls: it must be read again with what follows it.
        while shared and self._ends[shared - 1] is None:
            shared -= 1
        conversation = _Conversation(self._take)
        conversation._ends = self._ends[:shared]
        conversation.messages = self.messages[: self._ends[shared - 1] if shared else 0]
        for item in items[shared:]:
            self._take(conversation, item)
            conversation._ends.append(None if conversation._is_open else len(conversation.messages))
        return conversation

    @property
    def _is_open(self) -> bool:
        return bool(self._thoughts) or (bool(self.messages) and self.messages[-1]["role"] == "assistant")

    def say(self, role: str, text: str, files: Sequence[dict[str, Any]] = ()) -> None:
        message: dict[str, Any] = _with_files({"role": role, "content": text}, [*files])
        if role == "assistant" and self._thoughts:
            message["reasoning"], self._thoughts = self._thoughts, ""
        self.messages.append(message)

    def think(self, text: str) -> None:
        self._thoughts += text

    def call(self, call_id: Any, name: Any, arguments: object, *, fresh: bool = False) -> None:
        if fresh or not self.messages or self.messages[-1]["role"] != "assistant":
            self.say("assistant", "")
        text = arguments if isinstance(arguments, str) else encoded({} if arguments is None else arguments)
        self.messages[-1].setdefault("tool_calls", []).append(call_entry(call_id, str(name or ""), text))

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
        self.messages.append(message)


def call_entry(call_id: Any, name: str, arguments: str) -> dict[str, Any]:
    return {"id": str(call_id or ""), "type": "function", "function": {"name": name, "arguments": arguments}}


class _Protocol(Struct, frozen=True):
    """Where a protocol has the conversation. `items` are its messages, or what they are told in; `take` reads one.
    `has_prompts`: the system prompt is among them, at the start; else `system_prompt` alone has it, and the model may
    be named in the path."""

    items: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]]
    take: Callable[[_Conversation, Mapping[str, Any]], None]
    system_prompt: Callable[[Mapping[str, Any]], str]
    has_prompts: bool = False


_PROTOCOLS: Mapping[ProtocolName, _Protocol] = {
    "chat": _Protocol(itemgetter("messages"), _take_chat, lambda body: "", True),
    "responses": _Protocol(
        _responses_items, _take_responses, lambda body: content_text(body.get("instructions")), True
    ),
    "messages": _Protocol(itemgetter("messages"), _take_anthropic, lambda body: content_text(body.get("system"))),
    "gemini": _Protocol(itemgetter("contents"), _take_gemini, _gemini_system),
    "ollama": _Protocol(_ollama_items, _take_ollama, lambda body: "", True),
    "converse": _Protocol(itemgetter("messages"), _take_converse, _converse_system),
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
