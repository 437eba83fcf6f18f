"""Agents and workflows of Microsoft's Agent Framework: how to run one, and what it gives. Runs in the child: only the
standard library, of Python 3.8 or later."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
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
_UNNAMED = "UnnamedAgent"
"""What an agent without a name writes as."""


def runner(agent: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    names = [cls.__name__ for cls in type(agent).__mro__]
    if "Workflow" in names:
        return lambda request: _run(agent.as_agent(), request, target)
    if "BaseAgent" in names and hasattr(agent, "run"):
        return lambda request: _run(agent, request, target)
    return None


async def _run(agent: Any, request: Request, target: str) -> AsyncIterator[object]:
    contexts.refuse(request, target, "an agent of Agent Framework takes no context")
    updates: list[Any] = []
    stream = agent.run(_messages(pieces.conversation(request, target)), stream=True)
    try:
        async for update in stream:
            updates.append(update)
            yield update
        response = await stream.get_final_response()
    except Exception:
        # What it did until then; the calls of a stream are whole only when its updates are put together.
        if updates:
            yield sys.modules["agent_framework"].AgentResponse.from_updates(updates)
        raise
    yield response


def _messages(messages: list[dict[str, Any]]) -> list[Any]:
    framework: Any = sys.modules["agent_framework"]
    content = framework.Content
    converted: list[Any] = []
    for message in messages:
        role, text = message.get("role"), message.get("content") or ""
        if role == "tool":
            contents = [content.from_function_result(message.get("tool_call_id") or "", result=text)]
        else:
            contents = [content.from_text(text)] if text else []
            for call in message.get("tool_calls") or ():
                function = call["function"]
                arguments = pieces.decoded_arguments(function["arguments"])
                contents.append(content.from_function_call(call["id"], function["name"], arguments=arguments))
        converted.append(framework.Message("system" if role == "developer" else role, contents))
    return converted


def result_of(last: object) -> object:
    """What the agent gave: the object that it was to give, else its text."""
    value = getattr(last, "value", None)
    return getattr(last, "text", last) if value is None else value


def messages_of(piece: Any, note: Note) -> list[Message] | None:
    """The messages in a `Message`; None where this is something else."""
    if type(piece).__name__ != "Message":
        return None
    answer: Message = {"role": str(piece.role), "text": "", "reasoning": "", "calls": [], "agent": _author(piece)}
    results: list[Message] = []
    for content in piece.contents:
        kind = content.type
        if kind == "text":
            answer["text"] += content.text or ""
        elif kind == "text_reasoning":
            answer["reasoning"] += content.text or ""
        elif kind == "function_call":
            arguments = pieces.plain(content.arguments)
            answer["calls"].append({"id": content.call_id, "name": content.name, "arguments": arguments})
        elif kind == "function_result":
            results.append(_tool_result(content, note))
        elif kind != "usage":
            note("left_out", "a part of a message: " + str(kind))
    return [*([] if results and not answer["text"] and not answer["calls"] else [answer]), *results]


def _author(piece: Any) -> str | None:
    return None if piece.author_name == _UNNAMED else piece.author_name


def _tool_result(content: Any, note: Note) -> Message:
    return {
        "role": "tool",
        "call_id": content.call_id,
        "name": None,
        "text": pieces.text_of(content.result, note) if content.result is not None else content.exception or "",
        "error": content.exception is not None,
    }


def whole_of(piece: Any, streamed: bool) -> str:
    """See `python_frameworks.Framework`."""
    return "return the agent's response" if type(piece).__name__ == "Message" else ""


class Pieces:
    """Reads what an agent streams or returns."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation
        self._number = 0  # of the answer that is streamed
        self._answered = False  # a result came: the next text or call is of another answer
        self._calls: list[dict[str, Any]] = []  # of this answer, as far as they have come
        self._agent: str | None = None  # who wrote last
        self._agents = 0  # that wrote, one after another
        self._counted = False  # their usage is known

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        name = type(piece).__name__
        if name == "AgentResponseUpdate":
            self._update(piece)
        elif name == "AgentResponse":
            self._response(piece)
        else:
            messages = messages_of(piece, self._conversation.note)
            if messages is None:
                return False
            self._conversation.append(messages)
        return True

    def _update(self, update: Any) -> None:
        self._conversation.empty = False
        agent = _author(update)
        if agent != self._agent:  # of a workflow
            self._agent, self._answered = agent, self._agents > 0
            self._agents += 1
        for content in update.contents:
            kind = content.type
            if kind == "function_result":
                self._tell_calls(agent)
                self._conversation.append([_tool_result(content, self._conversation.note)])
                self._answered = True
            elif kind == "usage":
                # What the agent used until now: the last figure of each counts. A workflow's response has the last
                # agent's alone.
                self._counted = True
                self._conversation.total(f"agent {self._agents}", pieces.usage_of(content.usage_details or {}))
            elif kind in ("text", "text_reasoning", "function_call"):
                # An answer ends where its calls have results, or where another agent goes on.
                if self._answered:
                    self._number, self._answered = self._number + 1, False
                if kind == "function_call":
                    self._call(content)
                elif content.text:
                    key = ("answer", self._number)
                    self._conversation.text(content.text, key, "text" if kind == "text" else "reasoning", agent)
            else:
                self._conversation.note("left_out", "a part of a message: " + str(kind))
        self._conversation.about(finish=update.finish_reason)

    def _call(self, content: Any) -> None:
        """A call, or a further piece of the JSON of its arguments."""
        known = next((call for call in self._calls if content.call_id and call["id"] == content.call_id), None)
        if known is None and content.call_id:
            self._calls.append({"id": content.call_id, "name": content.name, "arguments": content.arguments or ""})
        elif self._calls:
            call = known or self._calls[-1]
            pieces_of_text = isinstance(call["arguments"], str) and isinstance(content.arguments, str)
            call["arguments"] = call["arguments"] + content.arguments if pieces_of_text else content.arguments

    def _tell_calls(self, agent: str | None) -> None:
        """The calls of this answer are whole, as one has a result."""
        for call in self._calls:
            told: Any = dict(call, arguments=pieces.plain(call["arguments"]))
            self._conversation.call(("answer", self._number), told, agent)
        self._calls = []

    def _response(self, response: Any) -> None:
        messages: list[Message] = []
        for message in response.messages:
            messages += messages_of(message, self._conversation.note) or ()
        self._conversation.whole(messages)
        if not self._counted:
            self._conversation.only_total(response, pieces.usage_of(response.usage_details or {}))
        self._conversation.about(finish=response.finish_reason)
        value = getattr(response, "value", None)
        if value is not None:
            self._conversation.final(pieces.text_of(value, self._conversation.note))


FRAMEWORK = frameworks.Framework(
    title="Agent Framework",
    runner=runner,
    pieces=Pieces,
    makers=(
        frameworks.Maker("agent_framework", ("Agent", "RawAgent")),
        frameworks.Maker("agent_framework", ("WorkflowBuilder",), needs="build"),
    ),
    result_of=result_of,
    whole_of=whole_of,
    messages_of=messages_of,
)
