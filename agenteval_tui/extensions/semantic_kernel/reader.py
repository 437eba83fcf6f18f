"""Agents of Semantic Kernel: how to run one, and what it gives. Runs in the child: only the standard library, of Python
3.8 or later."""

from __future__ import annotations

import contextvars
import importlib
import sys
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Call, Figures, Message, Note, Part, Read, Request, Run

if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_context as contexts
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    contexts = sys.modules["_agenteval.python_context"]
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]
_WHOLE = {
    "AgentResponseItem": "name the agent itself, or yield what on_intermediate_message gets, too",
    "ChatMessageContent": "name the agent itself, or return the whole ChatHistory",
    "StreamingChatMessageContent": "name the agent itself, or return the whole ChatHistory",
}
_FAILED = "which calls failed, as messages of Semantic Kernel do not say it; name the agent itself"


class Told:
    """What an agent tells while it runs: a whole message between others, with the ids of its calls that failed."""

    def __init__(self, message: Any, failed: set[str]) -> None:
        self.message = message
        self.failed = failed


def runner(agent: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    names = [cls.__name__ for cls in type(agent).__mro__]
    if "Agent" in names and hasattr(agent, "invoke_stream") and hasattr(agent, "kernel"):
        return lambda request: _run(agent, request, target)
    return None


async def _run(agent: Any, request: Request, target: str) -> AsyncIterator[object]:
    fields = contexts.fields_of(request, target, "the kernel's arguments")
    functions: Any = importlib.import_module("semantic_kernel.functions")
    more = {"arguments": functions.KernelArguments(**fields)} if fields else {}
    messages = pieces.conversation(request, target)
    intermediate: list[Any] = []
    failed: set[str] = set()
    # The filter of a function is not told which call it is for, and calls may run at the same time, each in a context
    # of its own.
    call: Any = contextvars.ContextVar("call", default=None)

    async def of_call(context: Any, next: Any) -> None:
        call.set(getattr(context.function_call_content, "id", None))
        await next(context)

    async def of_function(context: Any, next: Any) -> None:
        try:
            await next(context)
        except Exception:  # the agent makes a text of it
            failed.add(call.get())
            raise

    async def tell(message: Any) -> None:
        intermediate.append(message)

    # Which calls failed only filters see: a message has what the model reads of it, a text.
    filters = {"auto_function_invocation": of_call, "function_invocation": of_function}
    for kind, each in filters.items():
        agent.kernel.add_filter(kind, each)
    try:
        streaming = agent.invoke_stream(messages=list(_messages(messages)), on_intermediate_message=tell, **more)
        async for item in streaming:
            # Told by a callback, which can't yield it.
            while intermediate:
                yield Told(intermediate.pop(0), failed)
            yield Told(item.message, failed)
    finally:
        for kind, each in filters.items():
            agent.kernel.remove_filter(kind, filter_id=id(each))
    while intermediate:
        yield Told(intermediate.pop(0), failed)


def _messages(messages: list[dict[str, Any]]) -> Iterator[object]:
    contents: Any = importlib.import_module("semantic_kernel.contents")
    names: Any = {}
    for message in messages:
        role, content, items = message.get("role"), message.get("content") or "", []
        if role == "tool":
            key = message.get("tool_call_id")
            items = [contents.FunctionResultContent(id=key, name=names.get(key, "tool"), result=content)]
        elif content:
            items = [contents.TextContent(text=content)]
        for tool_call in message.get("tool_calls") or ():
            names[tool_call["id"]] = tool_call["function"]["name"]
            arguments = tool_call["function"]["arguments"]
            items.append(
                contents.FunctionCallContent(id=tool_call["id"], name=names[tool_call["id"]], arguments=arguments)
            )
        yield contents.ChatMessageContent(role="system" if role == "developer" else role, items=items)


def result_of(last: Any) -> object:
    """The text of the last message."""
    message = getattr(last, "message", last)
    return message.content if hasattr(message, "items") else message


def messages_of(piece: Any, note: Note) -> list[Message] | None:
    """The messages in a whole ChatMessageContent; None where this is something else."""
    is_message = type(piece).__name__ in ("ChatMessageContent", "StreamingChatMessageContent")
    return _messages_in(piece, note, None) if is_message else None


def whole_of(piece: Any, streamed: bool) -> str:
    """See `python_frameworks.Framework`."""
    return _WHOLE.get(type(piece).__name__, "")


def _messages_in(piece: Any, note: Note, failed: set[str] | None) -> list[Message]:
    """`failed`: the ids of its calls that failed, where that is known."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Call] = []
    results: list[Message] = []
    for item in piece.items:
        kind = str(getattr(item, "content_type", type(item).__name__)).replace("streaming_", "")
        if kind == "text":
            texts.append(item.text or "")
        elif kind == "reasoning":
            thoughts.append(item.text or "")
        elif kind == "function_call":
            calls.append({"id": item.id, "name": item.name, "arguments": pieces.plain(item.arguments or {})})
        elif kind == "function_result":
            text = pieces.text_of(str(item.result), note)
            error = item.id in (failed or ())
            results.append({"role": "tool", "call_id": item.id, "name": item.name, "text": text, "error": error})
        else:
            note("left_out", "a part of a message: " + kind)
    if results:
        if failed is None:
            note("left_out", _FAILED)
        return results
    role = str(getattr(piece.role, "value", piece.role))
    message: Message = {
        "role": "system" if role == "developer" else role,
        "text": "".join(texts),
        "reasoning": "".join(thoughts),
    }
    finish = getattr(piece, "finish_reason", None)
    message.update({"calls": calls, "closed": True, "agent": piece.name, "usage": _usage(piece)})
    message.update({"model": piece.ai_model_id, "finish": getattr(finish, "value", finish)})
    return [message]


def _usage(message: Any) -> Figures:
    return pieces.usage_of((message.metadata or {}).get("usage") or {})


class Pieces:
    """Reads what an agent streams or returns."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation
        self._read = read
        self._number = 0  # of the model's answer

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        name = type(piece).__name__
        if name == "Told":
            self._message(piece.message, piece.failed)
        elif name == "ChatHistory":
            self._read(list(piece.messages), False)
        elif name == "AgentResponseItem":
            self._message(piece.message, None)
        elif name in ("ChatMessageContent", "StreamingChatMessageContent"):
            self._message(piece, None)
        else:
            return False
        return True

    def _message(self, message: Any, failed: set[str] | None) -> None:
        whole = bool(getattr(message, "finish_reason", None)) or not type(message).__name__.startswith("Streaming")
        messages = _messages_in(message, self._conversation.note, failed)
        self._conversation.empty = False
        if messages[0]["role"] == "tool":
            self._conversation.append(messages)
            return
        key = "answer " + str(self._number)
        self._conversation.total(key, messages[0].pop("usage"))
        if whole or messages[0]["calls"]:
            messages[0]["id"] = key
            self._conversation.one(messages[0])
            self._number += 1
        else:
            parts: tuple[Part, ...] = ("reasoning", "text")
            for what in parts:
                if messages[0][what]:
                    self._conversation.text(messages[0][what], key=key, what=what, agent=message.name)
            self._conversation.about(model=message.ai_model_id)


FRAMEWORK = frameworks.Framework(
    title="Semantic Kernel",
    runner=runner,
    pieces=Pieces,
    makers=(frameworks.Maker("semantic_kernel.agents", ("ChatCompletionAgent", "OpenAIResponsesAgent")),),
    result_of=result_of,
    whole_of=whole_of,
    messages_of=messages_of,
)
