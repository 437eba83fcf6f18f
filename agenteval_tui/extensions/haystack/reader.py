"""Agents and pipelines of Haystack: how to run one, and what it gives. Runs in the child: only the standard library, of
Python 3.8 or later."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Message, Note, Read, Request, Run

if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_context as contexts
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    contexts = sys.modules["_agenteval.python_context"]
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]
_CALLING = ("Agent", "ToolInvoker")


class PipelineResult:
    """What the components of a pipeline gave, which is a dict that does not say whose it is."""

    def __init__(self, outputs: dict[str, Any], calling: bool) -> None:
        self.outputs = outputs
        self.calling = calling


def runner(agent: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    names = [cls.__name__ for cls in type(agent).__mro__]
    if "Agent" in names and hasattr(agent, "run_async"):
        return lambda request: _run(agent, request, target)
    if "PipelineBase" in names and hasattr(agent, "run"):
        return lambda request: _run_pipeline(agent, request, target)
    return None


async def _run(agent: Any, request: Request, target: str) -> object:
    state = contexts.fields_of(request, target, "the state of the agent")
    return await agent.run_async(messages=_messages(pieces.conversation(request, target)), **state)


async def _run_pipeline(pipeline: Any, request: Request, target: str) -> PipelineResult:
    contexts.refuse(request, target, "a pipeline of Haystack takes no context; write what it takes in `input`")
    data = (request.get("_how") or {}).get("input")
    if not isinstance(data, dict):
        data = _inputs(pipeline, request, pieces.prompt_of(request, target), target)
    outputs = await pipeline.run_async(data) if hasattr(pipeline, "run_async") else pipeline.run(data)
    return PipelineResult(outputs, any(type(component).__name__ in _CALLING for _, component in pipeline.walk()))


def _inputs(pipeline: Any, request: Request, prompt: str, target: str) -> dict[str, dict[str, Any]]:
    """The prompt or the messages for each input that a pipeline must have. Raises WrongTarget where one is neither."""
    inputs: dict[str, dict[str, Any]] = {}
    for component, sockets in pipeline.inputs().items():
        for name, about in sockets.items():
            if not about["is_mandatory"]:
                continue
            kind = str(about["type"])
            if "ChatMessage" in kind:
                value: Any = _messages([*pieces.before(request), {"role": "user", "content": prompt}])
            elif "str" in kind or "Any" in kind:  # as the variables of a template are
                value = pieces.with_history(request, prompt)
            else:
                where = component + ": {" + name + ": ...}"
                raise pieces.WrongTarget(target + " is a pipeline that needs more than texts; write `input: {" + where)
            inputs.setdefault(component, {})[name] = value
    if not inputs:
        raise pieces.WrongTarget(target + " is a pipeline that needs nothing; write what it takes in `input`")
    return inputs


def _messages(messages: list[dict[str, Any]]) -> list[Any]:
    haystack: Any = importlib.import_module("haystack.dataclasses")
    converted: list[Any] = []
    calls: dict[str | None, Any] = {}
    for message in messages:
        role, content = message.get("role"), message.get("content") or ""
        if role == "assistant":
            for tool_call in message.get("tool_calls") or ():
                arguments = pieces.decoded_arguments(tool_call["function"]["arguments"])
                calls[tool_call["id"]] = haystack.ToolCall(tool_call["function"]["name"], arguments, id=tool_call["id"])
            own = [calls[tool_call["id"]] for tool_call in message.get("tool_calls") or ()]
            converted.append(haystack.ChatMessage.from_assistant(content or None, tool_calls=own or None))
        elif role == "tool":
            key = message.get("tool_call_id")
            # A request may begin after the call, and Haystack takes no result without one.
            call = calls.get(key) or haystack.ToolCall("tool", {}, id=key)
            converted.append(haystack.ChatMessage.from_tool(content, call))
        elif role in ("system", "developer"):
            converted.append(haystack.ChatMessage.from_system(content))
        else:
            converted.append(haystack.ChatMessage.from_user(content))
    return converted


def result_of(last: object) -> object:
    """What came out beside the messages; their last one is its text."""
    outputs = last.outputs if isinstance(last, PipelineResult) else last
    return _plain(outputs) if isinstance(outputs, dict) else outputs


def _plain(value: Any) -> object:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.text if type(value).__name__ == "ChatMessage" else value


def messages_of(piece: Any, note: Note) -> list[Message] | None:
    """The messages in a ChatMessage; None where this is something else."""
    if type(piece).__name__ != "ChatMessage":
        return None
    results: list[Message] = [
        {
            "role": "tool",
            "call_id": tool_call_result.origin.id,
            "name": tool_call_result.origin.tool_name,
            "text": pieces.content_of(tool_call_result.result, note)[0],
            "error": bool(tool_call_result.error),
        }
        for tool_call_result in piece.tool_call_results
    ]
    if results:
        return results
    thought = getattr(piece, "reasoning", None)
    meta = piece.meta or {}
    message: Message = {
        "role": str(getattr(piece.role, "value", piece.role)),
        "text": "\n".join(piece.texts),
        "closed": True,
    }
    message["reasoning"] = getattr(thought, "reasoning_text", None) or ""
    message["calls"] = [
        {"id": tool_call.id, "name": tool_call.tool_name, "arguments": pieces.plain(tool_call.arguments)}
        for tool_call in piece.tool_calls
    ]
    message.update({"usage": pieces.usage_of(meta.get("usage") or {}), "model": meta.get("model")})
    message.update({"finish": meta.get("finish_reason"), "agent": piece.name})
    return [message]


def whole_of(piece: Any, streamed: bool) -> str:
    """See `python_frameworks.Framework`."""
    return "return all `messages` of the agent's result" if type(piece).__name__ == "ChatMessage" else ""


class Pieces:
    """Reads what an agent, a pipeline or a chat generator returns."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation
        self._read = read

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        if isinstance(piece, PipelineResult):
            self._outputs(piece)
            return True
        messages = messages_of(piece, self._conversation.note)
        if messages is None:
            return False
        self._conversation.append(messages)
        return True

    def _outputs(self, result: PipelineResult) -> None:
        """What the components that end a pipeline gave: the messages of an agent, the replies of a model."""
        whole = False
        for outputs in result.outputs.values():
            messages = outputs.get("messages") or outputs.get("replies") or outputs.get("answers")
            whole = whole or bool(outputs.get("messages"))
            if messages:
                self._read(list(messages), False)
        # Replies are only the model's last ones: what was called before them is not there.
        if result.calling and not whole:
            self._conversation.note(
                "unread_calls", "those of a pipeline; name its agent, or record it with capture: model"
            )
        if self._conversation.empty:
            self._read(_plain(result.outputs), False)


FRAMEWORK = frameworks.Framework(
    title="Haystack",
    runner=runner,
    pieces=Pieces,
    makers=(frameworks.Maker("haystack.components.agents", ("Agent",)),),
    result_of=result_of,
    whole_of=whole_of,
    messages_of=messages_of,
)
