"""Agents of Semantic Kernel: how to run one, and what it gives. Runs in the child: only the standard library, of Python
3.8 or later."""

from __future__ import annotations

import contextvars
import importlib
import sys
from typing import Any

if __name__.startswith("_agenteval_"):  # in the child, where this package need not be installed
    pieces: Any = sys.modules["_agenteval_python_pieces"]
    contexts: Any = sys.modules["_agenteval_python_context"]
else:
    from agenteval_tui.agents.process import python_context, python_pieces

    pieces, contexts = python_pieces, python_context
_ALONE = "those before an AgentResponseItem; name the agent itself, or yield what on_intermediate_message gets, too"
_FAILED = "which calls failed, as messages of Semantic Kernel do not say it; name the agent itself"


class Told:
    """What an agent tells while it runs: a whole message between others, with the ids of its calls that failed."""

    agenteval_reader = "python_semantic_kernel"

    def __init__(self, message: Any, failed: Any) -> None:
        self.message = message
        self.failed = failed


def runner(found: Any, target: Any) -> Any:
    """See python_frameworks."""
    names = [cls.__name__ for cls in type(found).__mro__]
    if "Agent" in names and hasattr(found, "invoke_stream") and hasattr(found, "kernel"):
        return lambda request: _run(found, request, target)
    return None


async def _run(agent: Any, request: Any, target: Any) -> Any:
    fields = contexts.fields_of(request, target, "the kernel's arguments")
    functions: Any = importlib.import_module("semantic_kernel.functions")
    more = {"arguments": functions.KernelArguments(**fields)} if fields else {}
    asked = [*pieces.before(request), {"role": "user", "content": pieces.prompt_of(request, target)}]
    told: Any = []
    failed: Any = set()
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
        told.append(message)

    filters = {"auto_function_invocation": of_call, "function_invocation": of_function}
    for kind, each in filters.items():
        agent.kernel.add_filter(kind, each)
    try:
        streaming = agent.invoke_stream(messages=list(_messages(asked)), on_intermediate_message=tell, **more)
        async for item in streaming:
            while told:
                yield Told(told.pop(0), failed)
            yield Told(item.message, failed)
    finally:
        for kind, each in filters.items():
            agent.kernel.remove_filter(kind, filter_id=id(each))
    while told:
        yield Told(told.pop(0), failed)


def _messages(given: Any) -> Any:
    known: Any = importlib.import_module("semantic_kernel.contents")
    names: Any = {}
    for message in given:
        role, content, items = message.get("role"), message.get("content") or "", []
        if role == "tool":
            key = message.get("tool_call_id")
            items = [known.FunctionResultContent(id=key, name=names.get(key, "tool"), result=content)]
        elif content:
            items = [known.TextContent(text=content)]
        for one in message.get("tool_calls") or ():
            names[one["id"]] = one["function"]["name"]
            arguments = one["function"]["arguments"]
            items.append(known.FunctionCallContent(id=one["id"], name=names[one["id"]], arguments=arguments))
        yield known.ChatMessageContent(role="system" if role == "developer" else role, items=items)


def result_of(last: Any) -> Any:
    """The text of the last message."""
    message = getattr(last, "message", last)
    return message.content if hasattr(message, "items") else message


def messages_of(piece: Any, note: Any, failed: Any = None) -> Any:
    """The messages in a whole ChatMessageContent; None where this is something else."""
    if type(piece).__name__ not in ("ChatMessageContent", "StreamingChatMessageContent"):
        return None
    texts, thoughts, calls, results = [], [], [], []
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
            made = {"role": "tool", "call_id": item.id, "name": item.name, "text": text}
            results.append(dict(made, error=item.id in (failed or ())))
        else:
            note("left_out", "a part of a message: " + kind)
    if results:
        if failed is None:
            note("left_out", _FAILED)
        return results
    role = str(getattr(piece.role, "value", piece.role))
    made = {"role": "system" if role == "developer" else role, "text": "".join(texts), "reasoning": "".join(thoughts)}
    made.update(calls=calls, closed=True, agent=piece.name, usage=_usage(piece), model=piece.ai_model_id)
    finish = getattr(piece, "finish_reason", None)
    return [dict(made, finish=getattr(finish, "value", finish))]


def _usage(message: Any) -> Any:
    return pieces.usage_of((message.metadata or {}).get("usage") or {})


class Pieces:
    """Reads what an agent streams or returns."""

    def __init__(self, said: Any, read: Any) -> None:
        self._said = said
        self._read = read
        self._number = 0  # of the model's answer

    def read(self, piece: Any) -> Any:
        """Whether this could be read."""
        name = type(piece).__name__
        if name == "Told":
            self._message(piece.message, piece.failed)
        elif name == "ChatHistory":
            self._read(list(piece.messages), False)
        elif name == "AgentResponseItem":
            if self._said.empty:
                self._said.note("unread_calls", _ALONE)
            self._message(piece.message, None)
        elif name in ("ChatMessageContent", "StreamingChatMessageContent"):
            self._message(piece, None)
        else:
            return False
        return True

    def _message(self, message: Any, failed: Any) -> None:
        whole = bool(getattr(message, "finish_reason", None)) or not type(message).__name__.startswith("Streaming")
        made = messages_of(message, self._said.note, failed)
        self._said.empty = False
        if made[0]["role"] == "tool":
            self._said.append(made)
            return
        key = "answer " + str(self._number)
        self._said.total(key, made[0].pop("usage"))
        if whole or made[0]["calls"]:
            self._said.one(dict(made[0], id=key))
            self._number += 1
        else:
            for what in ("reasoning", "text"):
                if made[0][what]:
                    self._said.text(made[0][what], key=key, what=what, agent=message.name)
            self._said.about(model=message.ai_model_id)
