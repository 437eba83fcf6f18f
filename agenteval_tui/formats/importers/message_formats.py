"""Conversations in the formats of several libraries, as OpenAI chat messages.

Each message is recognized by itself: OpenAI chat messages and Responses items (OpenAI Agents), Anthropic's content
blocks, LangChain's messages (`dumpd`, `messages_to_dict`), pydantic-ai's requests and responses.

Roles that only hold calls or results (smolagents' `tool-call` and `tool-response`, `observation`) are read as those.

A message may consist of parts. Each part is recognized by itself, too: OpenTelemetry's GenAI conventions (`text`,
`tool_call`, `tool_call_response`), Vercel's AI SDK (its UIMessage, where calls hold their results: `tool-NAME`,
`dynamic-tool`, `tool-invocation`; its ModelMessage: `tool-call`, `tool-result`), Gemini (`functionCall`,
`functionResponse`, `executableCode`), Bedrock (`toolUse`, `toolResult`), and LlamaIndex (`blocks`).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.models.hosted_calls import CODE_EXECUTION, code_result, executed_code, hosted_call
from agenteval_tui.agents.process.python_pieces import NO_CALLS
from agenteval_tui.agents.think_tags import split_thinking
from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.usage_import import with_usage
from agenteval_tui.formats.omitted_texts import has_words
from agenteval_tui.transcripts.codec import content_text, from_openai_messages, is_unread_part
from agenteval_tui.transcripts.content_parts import attachment_of, attachments_in
from agenteval_tui.transcripts.model import Attachment, Transcript

LANGCHAIN_ROLES = {
    "human": "user",
    "ai": "assistant",
    # A streamed message has the name of its class as its type.
    "AIMessageChunk": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    # From before there were calls of tools: the result of a function.
    "function": "tool",
}
ITEMS = frozenset({"function_call", "reasoning", "custom_tool_call"})
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_THOUGHT_BLOCKS = frozenset({"thinking", "reasoning", "redacted_thinking"})
# What may stand beside a text and says nothing itself: a message that has nothing else is empty, and not unread.
_BESIDE = frozenset(
    {
        "role",
        "type",
        "id",
        "name",
        "usage",
        "model",
        "status",
        "timestamp",
        "metadata",
        "finish_reason",
        "stop_reason",
        "cost",
        "turn_idx",
        "source",
        "annotations",
        "createdAt",
        "index",
        "raw_data",
        "provider_data",
        "logprobs",
        "response_metadata",
        "additional_kwargs",
        "generation_time_seconds",
        "requestor",
        "tool_call_id",
    }
)
PART_CALLS = frozenset({"tool_call", "tool-call", "server_tool_call", "function_call", "functionCall", "toolUse"})
ANSWERS = frozenset(
    {
        "tool_call_response",
        "tool-result",
        "tool-error",
        "tool-output-denied",
        "server_tool_call_response",
        "function_response",
        "functionResponse",
        "toolResult",
    }
)
_THOUGHT_PARTS = frozenset({"reasoning", "thinking"})
_NAMELESS = "[unreadable]"
# The AI SDK marks where a request of the model begins: what follows is of another answer.
_STEPS = frozenset({"step-start", "step-finish"})
# Gemini says `model`, Cohere `chatbot`.
_ROLES = {"model": "assistant", "ai": "assistant", "chatbot": "assistant", "human": "user"}
_CALL_ROLES = frozenset({"tool-call", "tool-calls", "tool_call", "tool_calls", "function_call"})
_RESULT_ROLES = frozenset(
    {
        "tool-response",
        "tool_response",
        "tool-result",
        "tool_result",
        "function_response",
        "observation",
        # Llama 3's templates call a tool's results so.
        "ipython",
    }
)
_KNOWN_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_OBSERVATION = "Observation:\n"
"""What smolagents writes before a result."""


def is_message(value: Any) -> bool:
    """Whether a value is a message (or an item of a conversation) in one of the dialects."""
    return dialect_of(value) != ""


def messages_in(value: Any) -> list[Any]:
    """The messages of a list that has nothing else, or a single one in a list; [] for anything else."""
    if is_message(value):
        return [value]
    return value if isinstance(value, list) and all(map(is_message, value)) else []


def dialect_of(value: Any) -> str:
    """ "openai", "anthropic", "parts" (`has_parts`), "responses", "langchain" or "pydantic-ai"; "": no message."""
    if not isinstance(value, (dict, Mapping)) or "messages" in value:  # a dict is known sooner than a mapping
        return ""
    # A role first: the Responses API has messages with a role, too, which read like OpenAI's chat.
    if isinstance(value.get("role"), str):
        if isinstance(value.get("content"), str) and "parts" not in value and "toolInvocations" not in value:
            return "openai"  # nearly all are
        if has_parts(value):
            return "parts"
        if isinstance(value.get("content"), str):
            return "openai"
        return "anthropic" if any(_is_anthropic(block) for block in _blocks(value.get("content"))) else "openai"
    kind = _block_kind(value)
    # Kinds that other formats may use, too: known by a field that only such an item has.
    if kind in NO_CALLS and value.keys() & {"server_label", "approval_request_id", "encrypted_content"}:
        return "responses"
    is_item = kind in ITEMS or kind.endswith("_call_output")
    if (is_item and ("call_id" in value or kind == "reasoning")) or hosted_call(value) is not None:
        return "responses"
    if _langchain_fields(value) is not None:
        return "langchain"
    if value.get("kind") in ("request", "response") and isinstance(value.get("parts"), list):
        return "pydantic-ai"
    return ""


def transcript_of(messages: Iterable[Any], *, system: Any = None, notes: list[str] | None = None) -> Transcript:
    """The transcript of a list of messages in any dialect; `system`: a system prompt given beside them. The parts that
    could not be read are added to `notes`, and keep their place in the transcript. Raises `AgentevalError` when an item
    is not a message.
    """
    listed = list(messages)
    conversation = _Conversation([] if notes is None else notes)
    if system:
        conversation.say("system", content_text(system))
    dialects = [dialect_of(message) for message in listed]
    for number, (message, dialect) in enumerate(zip(listed, dialects, strict=True)):
        # Of two texts in a message Anthropic's belong together; OpenAI's are parts of their own.
        conversation.take(message, "anthropic" if dialect == "openai" and "anthropic" in dialects else dialect, number)
    transcript = from_openai_messages(conversation.messages)
    return replace(
        with_usage(transcript, conversation.usage), model=conversation.model, finish_reason=conversation.finish_reason
    )


class _Conversation:
    """The OpenAI chat messages so far, and what was said of usage and model."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self.messages: list[dict[str, Any]] = []
        self.usage = UsageReader()
        self.model = ""
        self.finish_reason = ""
        self._thoughts = ""
        self._instructed = ""

    def say(self, role: str, content: Any = "", **more: Any) -> dict[str, Any]:
        message = {"role": role, "content": content, **more}
        if role == "assistant" and self._thoughts:
            message["reasoning"] = _joined(self._thoughts, message.get("reasoning", ""))
            self._thoughts = ""
        self.messages.append(message)
        return message

    def take(self, message: Any, dialect: str, number: int) -> None:
        before = len(self.messages)
        self._take(message, dialect, number)
        added = self.messages[before:]
        read = ("openai", "anthropic", "parts", "langchain")
        if dialect in read and message.get("role") not in _CALL_ROLES and not any(map(_says, added)):
            # An empty message is one whose content is empty, and that says nothing elsewhere.
            rest = {key: value for key, value in message.items() if key not in _BESIDE}
            nowhere = not message.keys() & {"content", "parts"} and dialect != "langchain"
            if has_words(rest) or nowhere:
                del self.messages[before:]
                keys = ", ".join(f"`{str(key)[:40]}`" for key in list(message)[:20])
                self.notes.append(f"message {number + 1} has nothing that can be read (its keys: {keys})")
                text = f"[nothing readable; keys: {keys.replace('`', '')}]"
                self.say(str(message.get("role") or "user"), text, unread=["message"], unread_parts=["message"])

    def _take(self, message: Any, dialect: str, number: int) -> None:
        if dialect in ("openai", "anthropic", "parts") and message["role"] == "assistant":
            # As in answers of servers and in their logs: the message holds the usage of its turn.
            self.usage.add(message.get("usage"))
            self._of_model(message.get("model"), message.get("finish_reason") or message.get("stop_reason"))
        if dialect == "openai" and message["role"] in _CALL_ROLES:
            if message.get("tool_calls"):
                self._openai({**message, "role": "assistant"})
            else:
                self._told_calls(message, number)
        elif dialect == "openai":
            self._openai(message)
        elif dialect == "anthropic":
            self._anthropic(message)
        elif dialect == "parts":
            for entry in messages_of(message):
                self.say(**entry)
        elif dialect == "responses":
            self._item(message, number)
        elif dialect == "langchain":
            self._langchain(message)
        elif dialect == "pydantic-ai":
            self._pydantic_ai(message)
        else:
            raise AgentevalError(
                f"message {number + 1} has no role", fix="a message is an object with `role` and `content`"
            )

    def _told_calls(self, message: Mapping[str, Any], number: int) -> None:
        """Read a message whose text is a list of calls, and nothing else."""
        calls = _calls_in(content_text(message.get("content")))
        if not calls:
            self.notes.append(f"message {number + 1} has calls of tools that can't be read")
            self.say("assistant", content_text(message.get("content")), unread_parts=[message["role"]])
        for position, call in enumerate(calls):
            function = self._readable(call)
            inner = function["function"] if isinstance(function.get("function"), Mapping) else function
            arguments = inner.get("arguments", inner.get("parameters"))
            self._call(function.get("id") or f"call_{number}_{position}", inner["name"], arguments)

    def _openai(self, message: Mapping[str, Any]) -> None:
        message = _with_calls_beside(message)
        if message["role"] in _RESULT_ROLES:
            text = content_text(message.get("content")).removeprefix(_OBSERVATION)
            message = {**message, "role": "tool", "content": text}
        elif message["role"] not in _KNOWN_ROLES and _says(message):
            message = {**message, "unread_role": message["role"]}
        content = message.get("content")
        if isinstance(content, list):
            thoughts = [_thought(block) for block in objects_in(content) if _block_kind(block) in _THOUGHT_BLOCKS]
            if thoughts:
                rest = [block for block in content if not _typed(block, _THOUGHT_BLOCKS)]
                message = {**message, "content": rest, "reasoning": _joined(*thoughts)}
        if not message.get("content"):
            # Where `content` is empty, what was said may be a refusal, or the transcript of a spoken answer.
            spoken = first_text(message, ("text", "refusal", "message"))
            if spoken is None:
                spoken = first_text(as_object(message.get("audio")), ("transcript",))
            message = {**message, "content": spoken} if spoken else message
        if message["role"] == "assistant" and isinstance(answer := message.get("content"), str):
            # Servers that don't parse the thoughts of an open model leave them in its text, in tags.
            thinking, answer = split_thinking(answer)
            if thinking:
                message = {
                    **message,
                    "content": answer,
                    "reasoning": _joined(str(message.get("reasoning") or ""), thinking),
                }
        if isinstance(message.get("tool_calls"), list):
            calls = [self._readable(call) for call in message["tool_calls"]]
            message = {**message, "tool_calls": calls, "nameless_call": any(map(_is_nameless, calls))}
        if message["role"] == "assistant" and self._thoughts:
            message = {**message, "reasoning": _joined(self._thoughts, str(message.get("reasoning") or ""))}
            self._thoughts = ""
        self.messages.append(dict(message))

    def _readable(self, call: object) -> Mapping[str, Any]:
        """A call of a tool in OpenAI's form. One that has no name in any form is kept as it is, with a note."""
        if isinstance(call, (dict, Mapping)):
            # OpenAI's custom tools take a text in place of arguments.
            custom = call.get("custom")
            if custom is not None and isinstance(custom, Mapping) and isinstance(custom.get("name"), str):
                return _function(call.get("id"), custom["name"], custom.get("input"))
            if isinstance(call.get("function"), str):  # as Inspect writes them
                return _function(call.get("id"), call["function"], call.get("arguments"))
            function = call.get("function")
            if not isinstance(function, (dict, Mapping)):
                function = call
            if isinstance(function.get("name"), str):
                if "arguments" not in function and "input" in function:
                    return _function(call.get("id"), function["name"], function["input"])
                return call
            for key in ("toolName", "tool_name"):
                if isinstance(call.get(key), str):
                    messages = messages_of({"role": "assistant", "parts": [{**call, "type": "tool-call"}]})
                    readable: Mapping[str, Any] = messages[0]["tool_calls"][0]
                    return readable
        self.notes.append(f"a tool call has no name: {plain_text(call)[:200]}")
        return _function(None, _NAMELESS, call)

    def _item(self, item: Mapping[str, Any], number: int) -> None:
        kind = item["type"]
        if kind in NO_CALLS:
            return
        if kind == "reasoning":
            # An item of its own, before the answer that it belongs to.
            parts = item.get("summary") or item.get("content") or ()
            self._thoughts = _joined(self._thoughts, content_text(parts))
        elif (hosted := hosted_call(item)) is not None:
            call_id = hosted.id or f"call_{number}"
            self._call(call_id, hosted.name, hosted.arguments)
            if hosted.result is not None:
                self.say("tool", hosted.result, tool_call_id=call_id, is_error=hosted.failed)
        elif kind.endswith("_output"):
            self.say("tool", content_text(item.get("output")), tool_call_id=item.get("call_id"))
        else:
            arguments = item.get("arguments", item.get("input"))
            self._call(item.get("call_id") or f"call_{number}", item.get("name"), arguments)

    def _call(self, call_id: Any, name: Any, arguments: Any) -> None:
        # Each call is an item; those that follow one another are of one answer.
        if not self.messages or self.messages[-1]["role"] != "assistant":
            self.say("assistant")
        self.messages[-1].setdefault("tool_calls", []).append(_function(call_id, name, arguments))

    def _anthropic(self, message: Mapping[str, Any]) -> None:
        draft = _Draft()

        # A result is a message of its own: what stands before it in the same list ends there.
        def flush() -> None:
            nonlocal draft
            if not draft.is_empty:
                self.say(**draft.message(message["role"]))
            draft = _Draft()

        for block in _blocks(message.get("content")):
            kind = _block_kind(block)
            if kind in CALLS:
                arguments = block.get("input") if "input" in block else block.get("arguments")
                draft.calls.append(_function(block.get("id"), block.get("name"), arguments))
                if "result" in block and "tool_type" in block:  # as Inspect keeps what a server's tool did
                    flush()
                    self.say(
                        "tool",
                        content_text(block.get("error") or block.get("result")),
                        tool_call_id=block.get("id"),
                        is_error=bool(block.get("error")),
                    )
            elif kind.endswith("tool_result"):
                flush()
                result = block.get("content")
                self.say(
                    "tool",
                    content_text(result),
                    tool_call_id=block.get("tool_use_id"),
                    is_error=bool(block.get("is_error")),
                    attachments=list(attachments_in(result)),
                )
            elif kind in _THOUGHT_BLOCKS:
                draft.thoughts.append(_thought(block))
            elif isinstance(block.get("text"), str):
                draft.texts.append(block["text"])
            else:
                draft.add(block, kind, None)
        flush()

    def _langchain(self, message: Mapping[str, Any]) -> None:
        fields = _langchain_fields(message)
        assert fields is not None
        role = LANGCHAIN_ROLES.get(str(fields.get("type")), str(fields.get("role") or "user"))
        content, thoughts = fields.get("content"), ""
        calls: list[Mapping[str, Any]] = [
            _function(call.get("id"), call.get("name"), call.get("args"))
            # Calls whose arguments are no JSON are kept apart by LangChain. The model made them all the same.
            for key in ("tool_calls", "invalid_tool_calls")
            for call in objects_in(fields.get(key))
        ] or [self._readable(call) for call in as_list(_with_calls_beside(fields).get("tool_calls"))]
        results: list[dict[str, Any]] = []
        more: dict[str, Any] = {}
        if isinstance(content, list):
            # The calls of the program's tools are beside the content, too; those of the server's tools only in it.
            inside, content = _sorted_out(content, {call.get("id") for call in calls})
            thoughts = _joined(*(_thought(block) for block in objects_in(content) if _typed(block, _THOUGHT_BLOCKS)))
            content = [block for block in content if not _typed(block, _THOUGHT_BLOCKS)]
            calls += [call for inner in inside for call in inner.get("tool_calls") or ()]
            results = [inner for inner in inside if inner["role"] == "tool"]
            if unread := [str(block.get("type") or "part") for block in content if is_unread_part(block)]:
                more["unread_parts"] = unread
        if calls:
            more["tool_calls"] = calls
        if thoughts:
            more["reasoning"] = thoughts
        if role == "tool":
            more |= {"tool_call_id": fields.get("tool_call_id"), "is_error": fields.get("status") == "error"}
        if isinstance(fields.get("name"), str):
            more["name"] = fields["name"]
        if attached := attachments_in(content):
            more["attachments"] = list(attached)
        self.say(role, content_text(content), **more)
        for result in results:
            self.say(**result)
        if role == "assistant":
            # `usage_metadata` is LangChain's own; older versions only keep what the server said.
            about = as_object(fields.get("response_metadata"))
            self.usage.add(fields.get("usage_metadata") or about.get("token_usage") or about.get("usage"))
            self._of_model(about.get("model_name") or about.get("model"), about.get("finish_reason"))

    def _pydantic_ai(self, message: Mapping[str, Any]) -> None:
        instructions = message.get("instructions")
        # Each request says them again.
        if isinstance(instructions, str) and instructions and instructions != self._instructed:
            self._instructed = instructions
            self.say("system", instructions)
        if message["kind"] == "response":
            self.usage.add(message.get("usage"))
            self._of_model(message.get("model_name"), message.get("finish_reason"))
            self._pydantic_response(objects_in(message["parts"]))
            return
        for part in objects_in(message["parts"]):
            kind, content = part.get("part_kind"), content_text(part.get("content"))
            attached = list(attachments_in(part.get("content")))
            if str(kind).endswith("-return") or (kind == "retry-prompt" and part.get("tool_name")):
                # pydantic-ai has a model try again what failed.
                failed = kind == "retry-prompt" or part.get("outcome") not in (None, "success")
                call_id = part.get("tool_call_id")
                self.say("tool", content, tool_call_id=call_id, is_error=failed, attachments=attached)
            elif content or attached or kind == "user-prompt":  # changes of settings have no text
                is_user = kind in ("user-prompt", "retry-prompt", "retry-feedback")
                self.say("user" if is_user else "system", content, attachments=attached)

    def _pydantic_response(self, parts: list[Mapping[str, Any]]) -> None:
        message = self.say("assistant")
        texts: list[str] = []
        for part in parts:
            kind = str(part.get("part_kind"))
            if kind == "text":
                texts.append(str(part.get("content") or ""))
            elif kind == "thinking":
                message["reasoning"] = _joined(message.get("reasoning", ""), str(part.get("content") or ""))
            elif kind.endswith("tool-call"):
                call = _function(part.get("tool_call_id"), part.get("tool_name"), part.get("args"))
                message.setdefault("tool_calls", []).append(call)
            # A tool that the server ran: its result is part of the same answer.
            elif kind.endswith("tool-return"):
                self.say("tool", content_text(part.get("content")), tool_call_id=part.get("tool_call_id"))
            else:
                message.setdefault("unread_parts", []).append(kind)
        message["content"] = "".join(texts)

    def _of_model(self, model: Any, finish_reason: Any) -> None:
        # The newest answer counts; one that does not say it leaves what the last one said.
        self.model = model if isinstance(model, str) and model else self.model
        self.finish_reason = finish_reason if isinstance(finish_reason, str) else self.finish_reason


class _Draft:
    """What the parts of one message say, until it is known where the message ends."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[dict[str, Any]] = []
        self._attached: list[Attachment] = []
        self._unread: list[str] = []

    @property
    def is_empty(self) -> bool:
        return not (self.texts or self.thoughts or self.calls)

    def add(self, part: Mapping[str, Any], kind: str, text: str | None) -> None:
        """Add a part that is not a call: its text, or a mark in place of an image, a file, or what can't be read."""
        mark = f"[{kind or 'part'}]"
        attachment = attachment_of(part, mark)
        self.texts.append(mark if text is None or attachment is not None else text)
        if attachment is not None:
            self._attached.append(attachment)
        elif text is None:
            self._unread.append(kind or "part")

    def message(self, role: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": role, "content": "".join(self.texts)}
        if self.thoughts:
            message["reasoning"] = _joined(*self.thoughts)
        if self.calls:
            message["tool_calls"] = self.calls
        if self._attached:
            message["attachments"] = self._attached
        if self._unread:
            message["unread_parts"] = self._unread
            # Nothing of it could be read.
            if len(self._unread) == len(self.texts):
                message["unread"] = self._unread
        return message


def _is_nameless(call: Any) -> bool:
    function = call.get("function") if isinstance(call, Mapping) else None
    return isinstance(function, Mapping) and function.get("name") == _NAMELESS


def _hosted_call(item: Mapping[str, Any]) -> dict[str, Any]:
    name = plain_text(item.get("name")) or plain_text(item.get("type")).removesuffix("_call") or "tool"
    left_out = ("id", "type", "status", "name", "output", "results")
    arguments = {key: value for key, value in item.items() if key not in left_out}
    return {"id": item.get("id"), "function": {"name": name, "arguments": item.get("arguments", arguments)}}


def _with_calls_beside(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message with what LangChain and LlamaIndex keep beside it: calls, and the id of the call that it answers."""
    beside = message.get("additional_kwargs")
    if not isinstance(beside, Mapping):
        return message
    merged = dict(message)
    legacy = beside.get("function_call")
    calls = beside.get("tool_calls") or ([{"function": legacy}] if isinstance(legacy, Mapping) else None)
    # Of the Responses API, those of the server's tools.
    hosted = [_hosted_call(item) for item in objects_in(beside.get("tool_outputs"))]
    if hosted or (calls and not message.get("tool_calls")):
        merged["tool_calls"] = [*as_list(message.get("tool_calls") or calls), *hosted]
    if beside.get("tool_call_id") and not message.get("tool_call_id"):
        merged["tool_call_id"] = beside["tool_call_id"]
    return merged


def _sorted_out(blocks: Sequence[Any], call_ids: set[Any]) -> tuple[list[dict[str, Any]], list[Any]]:
    """(the calls and the results among the blocks of a message, as messages; the other blocks). `call_ids`: those of
    calls that are told elsewhere, too."""
    messages: list[dict[str, Any]] = []
    rest: list[Any] = []
    for block in blocks:
        kind = _part_kind(block)
        if (hosted := hosted_call(block) if kind else None) is not None:
            messages.append({"role": "assistant", "tool_calls": [_function(hosted.id, hosted.name, hosted.arguments)]})
            if hosted.result is not None:
                answer = {"tool_call_id": hosted.id, "content": hosted.result, "is_error": hosted.failed}
                messages.append({"role": "tool", **answer})
        elif kind in CALLS | PART_CALLS:
            if _first(block, *_ID_KEYS) not in call_ids:
                messages += messages_of({"role": "assistant", "parts": [{**block, "type": "tool_call"}]})
        elif kind in ANSWERS or kind.endswith("tool_result"):
            messages += messages_of({"role": "tool", "parts": [{**block, "type": "tool_call_response"}]})
        else:
            rest.append(block)
    return messages, rest


def _calls_in(text: str) -> list[Any]:
    """The calls that a text lists, as JSON or as Python writes it, behind a heading or not; [] for any other text."""
    # smolagents writes a heading before its list of calls.
    begin = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=None)
    if begin is None:
        return []
    # Programs in Python print their lists of calls as Python writes them, with single quotes.
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text[begin:].strip())
        # `literal_eval` raises MemoryError for a text that is nested too deep.
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, list) else [value]
    return []


def _says(message: Mapping[str, Any]) -> bool:
    """Whether there is anything in a message."""
    content = message.get("content")
    if content if isinstance(content, str) else content_text(content):
        return True
    return any(message.get(key) for key in ("reasoning", "reasoning_content", "tool_calls", "function_call"))


def _function(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {
        "id": call_id if isinstance(call_id, str) else None,
        "function": {"name": name if isinstance(name, str) else "", "arguments": arguments},
    }


def _langchain_fields(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if value.get("lc") is not None and isinstance(value.get("kwargs"), Mapping):
        fields: Mapping[str, Any] = value["kwargs"]
        # `dumpd` names the class: ["langchain", "schema", "messages", "AIMessage"].
        if "type" not in fields and isinstance(value.get("id"), list) and value["id"]:
            name = str(value["id"][-1]).removesuffix("Chunk").removesuffix("Message").lower()
            fields = {**fields, "type": name}
        return fields if "content" in fields else None
    if _block_kind(value) not in LANGCHAIN_ROLES:
        return None
    # As `messages_to_dict` writes them.
    if isinstance(value.get("data"), Mapping):
        return {"type": value["type"], **value["data"]}
    return value if "content" in value and "role" not in value else None


def _is_anthropic(block: Mapping[str, Any]) -> bool:
    kind = _block_kind(block)
    return kind in CALLS or kind.endswith("tool_result") or kind == "thinking"


def with_attachments(message: dict[str, Any], content: Any) -> dict[str, Any]:
    """A chat message whose text was made of `content`, with the images and files that are parts of it."""
    attachments = attachments_in(content)
    return {**message, "attachments": list(attachments)} if attachments else message


def _thought(block: Mapping[str, Any]) -> str:
    for key in ("thinking", "reasoning", "summary", "text"):
        text = block.get(key)
        if text:
            return text if isinstance(text, str) else content_text(text)
    return ""


def _typed(block: Any, kinds: frozenset[str]) -> bool:
    return isinstance(block, (dict, Mapping)) and _block_kind(block) in kinds


def _block_kind(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return objects_in(content)


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else []."""
    return value if isinstance(value, list) else []


def as_object(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else {}."""
    return value if isinstance(value, (dict, Mapping)) else {}


def value_at(value: object, *keys: str) -> object:
    """What nested objects have at these keys; None where one of them is not an object, or lacks its key."""
    for key in keys:
        value = as_object(value).get(key)
    return value


def objects_in(value: Any) -> list[Mapping[str, Any]]:
    """The objects in a list; [] for anything else."""
    return [entry for entry in value if isinstance(entry, (dict, Mapping))] if isinstance(value, list) else []


def listed(value: Any) -> list[Any]:
    """The value as a list: [value] for a single one, [] for nothing."""
    return value if isinstance(value, list) else [value] if value else []


def type_of(block: Any) -> str:
    """The `type` of a part of a message; "" without one."""
    return plain_text(block.get("type")) if isinstance(block, Mapping) else ""


def first_text(value: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    """The first of these keys that is a text."""
    return next((value[key] for key in keys if isinstance(value.get(key), str)), None)


def json_in(value: object) -> object:
    """The value; a text that is a JSON object or list is decoded."""
    try:
        return json.loads(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value
    except (ValueError, RecursionError):
        return value


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def plain_text(value: Any) -> str:
    """A value as text: a text as it is, everything else as JSON; "" for nothing."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# Messages that are made of parts, as OpenAI chat messages


def has_parts(message: Mapping[str, Any]) -> bool:
    """Whether a message with a role is made of such parts, in `parts` or in its content."""
    if any(isinstance(message.get(key), list) for key in ("parts", "blocks", "toolInvocations")):
        return True
    content = message.get("content")
    return isinstance(content, list) and any(
        _part_kind(part) in PART_CALLS | ANSWERS or _is_ui_call(part) for part in content
    )


def messages_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages that one of parts is: what tools answered are messages of their own, where they stand."""
    role = str(message.get("role") or "user")
    reader = _Parts(_ROLES.get(role, role))
    parts = message.get("parts") or message.get("blocks")
    content = message.get("content")
    if not isinstance(parts, list) or not parts:
        parts = listed(content)
    for part in parts:
        reader.take(part)
    for invocation in objects_in(message.get("toolInvocations")):
        # The AI SDK may say a call twice: among the parts, and here.
        if str(invocation.get("toolCallId")) not in reader.called:
            reader.take({"type": "tool-invocation", "toolInvocation": invocation})
    beside = _with_calls_beside(message)
    for call in objects_in(beside.get("tool_calls")) if not reader.called else ():
        function = call.get("function")
        reader.take(
            {"type": "tool_call", "id": call.get("id"), **(function if isinstance(function, Mapping) else call)}
        )
    messages = reader.ended()
    # LlamaIndex has the id of the call beside the parts, and not in them.
    if messages[0]["role"] == "tool" and beside.get("tool_call_id"):
        messages[0] = {"tool_call_id": beside["tool_call_id"], **messages[0]}
    if isinstance(message.get("name"), str):
        messages = [{"name": message["name"], **entry} for entry in messages]
    return messages


_ID_KEYS = ("call_id", "id", "toolCallId", "tool_call_id", "toolUseId")


class _Parts:
    """What the parts of a message say, so far."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._messages: list[dict[str, Any]] = []
        self._draft = _Draft()
        self._answers: list[dict[str, Any]] = []
        self.called: set[str] = set()

    def take(self, part: Any) -> None:
        if isinstance(part, str):
            part = {"type": "text", "text": part}
        if not isinstance(part, Mapping):
            return
        # LlamaIndex's name for it.
        if "type" not in part and isinstance(part.get("block_type"), str):
            part = {"type": part["block_type"], **part}
        kind = _part_kind(part)
        if (code := executed_code(part)) is not None:
            self._call({"id": code.id or None, "name": code.name, "arguments": code.arguments})
        elif (ran := code_result(part)) is not None:
            self._answer({"name": CODE_EXECUTION, "result": ran[0]}, failed=ran[1])
        elif kind in PART_CALLS:
            self._call(_with_nested(part, kind))
        elif kind in ANSWERS:
            self._answer(_with_nested(part, kind), failed=kind in ("tool-error", "tool-output-denied"))
        elif _is_ui_call(part):
            self._ui_call(part, kind)
        elif kind in _STEPS:
            self._flush()
        # Gemini's thoughts are texts with a mark.
        elif kind in _THOUGHT_PARTS or part.get("thought") is True:
            self._draft.thoughts.append(_text(part) or "")
        elif isinstance(part.get("reasoningContent"), Mapping):  # Bedrock's
            inner = part["reasoningContent"].get("reasoningText")
            self._draft.thoughts.append(_text(as_object(inner)) or "")
        else:
            if self._answers:
                self._flush()  # said after the tools answered
            self._draft.add(part, kind, _text(part))

    def _call(self, part: Mapping[str, Any]) -> None:
        if self._answers:
            self._flush()
        call_id = _first(part, *_ID_KEYS)
        arguments = _first(part, "arguments", "input", "args", "parameters", "tool_kwargs")
        name = _first(part, "name", "toolName", "tool_name")
        self.called.add(str(call_id))
        self._draft.calls.append(
            {"id": call_id, "function": {"name": name if isinstance(name, str) else "", "arguments": arguments}}
        )

    def _answer(self, part: Mapping[str, Any], *, failed: bool = False) -> None:
        value = _first(part, "response", "result", "output", "error", "errorText", "content")
        # The AI SDK says in the result's type how it is written, and whether the tool failed: `error-text`, `json`.
        if isinstance(value, Mapping) and isinstance(value.get("type"), str) and "value" in value:
            failed = failed or value["type"].startswith(("error", "execution-denied"))
            value = value["value"]
        # MCP's name, Anthropic's, and Bedrock's.
        if part.get("isError") is True or part.get("is_error") is True or part.get("status") == "error":
            failed = True
        answer = {"role": "tool", "content": _result_text(value), "is_error": failed}
        call_id, name = (
            _first(part, *_ID_KEYS, "tool_use_id"),
            _first(part, "name", "toolName", "tool_name"),
        )
        if call_id is not None:
            answer["tool_call_id"] = call_id
        if isinstance(name, str):
            answer["name"] = name
        self._answers.append(answer)

    def _ui_call(self, part: Mapping[str, Any], kind: str) -> None:
        """A call of Vercel's UIMessage: with its result, or why there is none."""
        inner = part.get("toolInvocation")
        about = inner if isinstance(inner, Mapping) else part
        name = about.get("toolName") or kind.removeprefix("tool-")
        self._call({**about, "name": name, "id": about.get("toolCallId")})
        state = about.get("state")
        if about.get("errorText") is not None or state in ("output-error", "output-denied"):
            outcome = about.get("errorText") or about.get("approval") or state
            self._answer({"id": about.get("toolCallId"), "name": name, "result": outcome}, failed=True)
        elif "output" in about or "result" in about:
            result = about["output"] if "output" in about else about["result"]
            self._answers.append(
                {
                    "role": "tool",
                    "tool_call_id": about.get("toolCallId"),
                    "name": str(name),
                    "content": content_text(result),
                    "is_error": about.get("isError") is True,
                }
            )

    def _flush(self) -> None:
        message = [] if self._draft.is_empty else [self._draft.message(self._role)]
        # Results come behind the calls that they answer; in a user's message they come before the user's text.
        calls_first = self._draft.calls or self._role == "assistant"
        self._messages += [*message, *self._answers] if calls_first else [*self._answers, *message]
        self._draft, self._answers = _Draft(), []

    def ended(self) -> list[dict[str, Any]]:
        self._flush()
        return self._messages or [{"role": self._role, "content": ""}]


def _with_nested(part: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """A part with what is under the key that its kind is: Gemini's and Bedrock's have all of it there."""
    nested = part.get(kind)
    return {**part, **nested} if isinstance(nested, Mapping) else part


def _is_ui_call(part: Any) -> bool:
    kind = _part_kind(part)
    if kind in PART_CALLS | ANSWERS:
        return False
    if kind in ("tool-invocation", "dynamic-tool"):
        return True
    # `tool-NAME` is a part of a UIMessage: only what is beside it tells it from a kind of part that is not known.
    return kind.startswith("tool-") and isinstance(part, Mapping) and ("toolCallId" in part or "state" in part)


def _part_kind(part: Any) -> str:
    """The kind of a part; Gemini's are called by the key that they have."""
    if not isinstance(part, (dict, Mapping)):  # a dict is known sooner than a mapping
        return ""
    kind = part.get("type")
    if isinstance(kind, str):
        return kind
    return next((key for key in part if key in PART_CALLS | ANSWERS), "")


def _text(part: Mapping[str, Any]) -> str | None:
    """What a part of text says; None when it is none."""
    return first_text(part, ("text", "content", "reasoning", "thinking", "refusal"))


def _result_text(result: Any) -> str:
    """What a tool gave; Bedrock's results are lists of `{"text": ...}` and `{"json": ...}`."""
    if isinstance(result, list) and any(isinstance(block, Mapping) and block.keys() == {"json"} for block in result):
        result = [
            block["json"] if isinstance(block, Mapping) and block.keys() == {"json"} else block for block in result
        ]
        return "\n".join(
            content_text([block]) if isinstance(block, Mapping) and "text" in block else plain_text(block)
            for block in result
        )
    return content_text(result)


def _first(part: Mapping[str, Any], *keys: str) -> object:
    return next((part[key] for key in keys if part.get(key) is not None), None)
