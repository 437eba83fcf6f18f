"""Agents and workflows of LlamaIndex: how to run one, and what it gives. Runs in the child: only the standard library,
of Python 3.8 or later."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Call, Message, Read, Request, Run

if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_context as contexts
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    contexts = sys.modules["_agenteval.python_context"]
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]
_IGNORED = ("AgentInput", "AgentSetup", "ToolCall", "AgentStreamStructuredOutput", "StartEvent")
_LEFT_OUT = "what an AgentOutput does not hold: results of calls, and what was used before the answer"
# What workflows call the prompt.
_PROMPTS = ("user_msg", "input", "query", "question", "message", "task", "topic", "text", "prompt")


def runner(workflow: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    if hasattr(workflow, "run") and pieces.made_by(workflow, "llama_index", "workflows") and _is_workflow(workflow):
        return lambda request: _run(workflow, request, target)
    return None


def _is_workflow(workflow: object) -> bool:
    return any(cls.__name__ == "Workflow" for cls in type(workflow).__mro__)


async def _run(workflow: Any, request: Request, target: str) -> AsyncIterator[object]:
    agent = any(cls.__name__ in ("BaseWorkflowAgent", "AgentWorkflow") for cls in type(workflow).__mro__)
    fields = contexts.fields_of(request, target, "the store of the workflow's Context")
    more: Any = {}
    if fields:
        more["ctx"] = context = sys.modules[_package(workflow) + ".context"].Context(workflow)
        for name, value in fields.items():
            await context.store.set(name, value)
    inputs = (request.get("_how") or {}).get("input")
    if isinstance(inputs, dict):
        running = workflow.run(**dict(inputs, **more))
    elif agent:
        is_continued = pieces.is_continued(request)
        prompt = None if is_continued else pieces.prompt_of(request, target)
        history = list(_history(pieces.conversation(request, target) if is_continued else pieces.before(request)))
        running = workflow.run(user_msg=prompt, chat_history=history, **more)
    else:
        own_request = request if inputs is None else dict(request, prompt=pieces.prompt_of(request, target))
        running = workflow.run(**dict(_inputs(workflow, own_request, target), **more))
    async for event in running.stream_events():
        # It holds the result, which comes below.
        if not _stops(event):
            yield event
    yield await running


def _package(workflow: object) -> str:
    """Where the workflow's classes are: `workflows`, or an older LlamaIndex."""
    return next(
        name
        for name in ("workflows", "llama_index.core.workflow")
        if name + ".context" in sys.modules and any(cls.__module__.startswith(name) for cls in type(workflow).__mro__)
    )


def result_of(last: Any) -> object:
    """What the workflow gave: of an agent its structured answer, else its text."""
    if type(last).__name__ == "AgentOutput":
        result = getattr(last, "structured_response", None)
        return str(last.response.content or "") if result is None else result
    result = getattr(last, "result", None) if _stops(last) else None
    return last if result is None else result


def _stops(event: object) -> bool:
    return any(cls.__name__ == "StopEvent" for cls in type(event).__mro__)


def _inputs(workflow: Any, request: Request, target: str) -> dict[str, Any]:
    """What the workflow begins with: fields of its own event, or all names that a prompt has."""
    kind = getattr(workflow, "start_event_class", None) or getattr(workflow, "_start_event_class", None)
    fields = list(getattr(kind, "model_fields", ()))
    if "messages" not in fields:
        pieces.refuse_answers(request, target, "the field")
    # A plain StartEvent takes any name: the workflow reads the one that it knows.
    if not fields:
        return dict.fromkeys(_PROMPTS, request["prompt"])
    inputs = {name: request[name] for name in fields if name in request}
    inputs.update({name: request["prompt"] for name in fields if name in _PROMPTS})
    if not inputs:
        message = target + " is a workflow that begins with: " + ", ".join(fields) + "; write a function that runs it"
        raise pieces.WrongTarget(message)
    return inputs


def _history(messages: list[dict[str, Any]]) -> Iterator[object]:
    llms: Any = sys.modules["llama_index.core.llms"]
    for message in messages:
        more: dict[str, Any] = {}
        if message.get("tool_calls"):
            more["tool_calls"] = message["tool_calls"]
        if message.get("tool_call_id"):
            more["tool_call_id"] = message["tool_call_id"]
        role = message.get("role")
        yield llms.ChatMessage(role=role, content=message.get("content") or "", additional_kwargs=more)


def whole_of(piece: Any, streamed: bool) -> str:
    """See `python_frameworks.Framework`."""
    name = type(piece).__name__
    if name == "ChatMessage" and str(getattr(piece.role, "value", piece.role)) not in pieces.ANSWERING:
        return ""
    if name in ("ChatMessage", "ChatResponse") or (hasattr(piece, "response") and hasattr(piece, "source_nodes")):
        is_chat = name in ("AgentChatResponse", "StreamingAgentChatResponse")
        return "" if is_chat else "yield the events of the agent"
    return ""


class Pieces:
    """Reads what an agent or a workflow streams or returns."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation
        self._read = read
        self._number = 0  # of the model's answer
        self._results = 0
        self._asked = False  # the model, since it answered last
        self._calls: set[str | None] = set()  # their ids

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        name = type(piece).__name__
        self._asked = self._asked or name in ("AgentInput", "AgentStream")
        if name == "AgentStream":
            key, agent = ("output", self._number), _agent_of(piece)
            if piece.delta:
                self._conversation.text(piece.delta, key=key, agent=agent)
            if getattr(piece, "thinking_delta", None):
                self._conversation.text(piece.thinking_delta, key=key, what="reasoning", agent=agent)
        elif name == "AgentOutput":
            self._output(piece)
        elif name == "ToolCallResult":
            self._conversation.append([self._result(piece.tool_id, piece.tool_output)])
        elif name == "ChatMessage":
            self._conversation.append([self._message(piece, None)])
        elif name == "ChatResponse":
            self._conversation.whole([self._message(piece.message, piece.raw)])
        elif name in ("AgentChatResponse", "StreamingAgentChatResponse"):
            self._chat(piece)
        elif _stops(piece):
            result = getattr(piece, "result", None)
            self._read(piece.model_dump() if result is None or result is piece else result, False)
        elif hasattr(piece, "response") and hasattr(piece, "source_nodes"):  # of a query engine
            self._conversation.final(str(piece.response or ""))
        elif any(cls.__name__ == "Event" for cls in type(piece).__mro__):
            self._conversation.empty = False
            if name not in _IGNORED:
                self._conversation.note("left_out", "an event of the kind " + name)
        else:
            return False
        return True

    def _output(self, output: Any) -> None:
        note = self._conversation.note
        message = self._message(output.response, getattr(output, "raw", None))
        message["agent"] = _agent_of(output)
        calls = [_call(tool_call) for tool_call in output.tool_calls or ()] or message["calls"]
        if self._asked:
            message["calls"], message["id"] = calls, ("output", self._number)
            self._number += 1
            self._conversation.one(message)
        else:  # the result of the whole, with all calls of it
            new = [call for call in calls if call.get("id") not in self._calls]
            if new:
                note("left_out", _LEFT_OUT)
                self._conversation.append([{"role": "assistant", "text": "", "calls": new, "agent": message["agent"]}])
            if self._number:
                self._conversation.final(message["text"])
            else:
                message["calls"] = []
                self._conversation.append([message])
        self._asked = False
        self._calls.update(call.get("id") for call in calls)
        structured = getattr(output, "structured_response", None)
        if structured is not None:
            self._conversation.final(pieces.text_of(structured, note))

    def _chat(self, answer: Any) -> None:
        """The answer of a chat engine, with the results of the tools that it called."""
        for source in answer.sources or ():
            # A source has no id of its call.
            self._results += 1
            key = "source " + str(self._results)
            call: Call = {"id": key, "name": source.tool_name, "arguments": pieces.plain(source.raw_input or {})}
            self._conversation.append([{"role": "assistant", "text": "", "calls": [call]}, self._result(key, source)])
        self._conversation.final(answer.response or "")

    def _result(self, key: object, output: Any) -> Message:
        text = output.content if isinstance(output.content, str) else str(output)
        failed = bool(getattr(output, "is_error", False))
        return {"role": "tool", "call_id": str(key), "name": output.tool_name, "text": text, "error": failed}

    def _message(self, message: Any, raw: object) -> Message:
        """A ChatMessage of the model."""
        note = self._conversation.note
        answer: Message = {
            "role": str(getattr(message.role, "value", message.role)),
            "text": "",
            "reasoning": "",
            "calls": [],
        }
        answer["role"] = pieces.ROLES.get(answer["role"], answer["role"])
        more = getattr(message, "additional_kwargs", None) or {}
        for block in getattr(message, "blocks", None) or ():
            kind = getattr(block, "block_type", type(block).__name__)
            if kind == "text":
                answer["text"] += block.text
            elif kind == "thinking":
                answer["reasoning"] += block.content or ""
            elif kind == "tool_call":
                answer["calls"].append(_call(block))
            elif kind != "cache":
                note("left_out", "a part of a message: " + str(kind))
        if answer["role"] == "tool":
            answer.update({"call_id": more.get("tool_call_id"), "error": False, "name": None})
            return answer
        raw = raw if raw is not None else {}
        figures = pieces.field(raw, "usage") or pieces.field(raw, "usage_metadata") or raw  # Ollama has it in the reply
        answer["usage"] = pieces.usage_of(figures) or pieces.usage_of(more)
        answer["model"] = pieces.field(raw, "model")
        choices = pieces.field(raw, "choices")
        if isinstance(choices, (list, tuple)) and choices:
            answer["finish"] = pieces.field(choices[0], "finish_reason")
        answer["closed"] = True
        return answer


def _agent_of(event: object) -> str | None:
    return getattr(event, "current_agent_name", None) or None


def _call(selection: Any) -> Call:
    """A ToolSelection or a ToolCallBlock."""
    arguments = selection.tool_kwargs
    call: Call = {
        "name": selection.tool_name,
        "arguments": arguments if isinstance(arguments, str) else pieces.plain(arguments),
    }
    key = getattr(selection, "tool_id", None) or getattr(selection, "tool_call_id", None)
    if key:
        call["id"] = str(key)
    return call


FRAMEWORK = frameworks.Framework(
    title="LlamaIndex",
    runner=runner,
    pieces=Pieces,
    makers=(
        frameworks.Maker(
            "llama_index",
            (
                "FunctionAgent",
                "ReActAgent",
                "CodeActAgent",
                "AgentWorkflow",
                "SimpleChatEngine",
                "RetrieverQueryEngine",
            ),
        ),
    ),
    result_of=result_of,
    whole_of=whole_of,
)
