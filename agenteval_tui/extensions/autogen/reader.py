"""Agents and teams of AutoGen (autogen-agentchat): how to run one, and what it gives. Runs in the child: only the
standard library, of Python 3.8 or later."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Call, Figures, Message, Read, Request, Run

if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_context as contexts
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    contexts = sys.modules["_agenteval.python_context"]
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]
_TEXTS = ("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage")


def runner(agent: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    if hasattr(agent, "run_stream") and (hasattr(agent, "on_reset") or hasattr(agent, "reset")):
        return lambda request: _run(agent, request, target)
    return None


async def _run(agent: Any, request: Request, target: str) -> AsyncIterator[object]:
    contexts.refuse(request, target, "agents of AutoGen have no run context")
    async with pieces.alone_async(agent):
        # The agent is the same for all requests, and would remember the one before.
        if hasattr(agent, "on_reset"):
            await agent.on_reset(sys.modules["autogen_core"].CancellationToken())
        else:
            await agent.reset()
        context = getattr(agent, "model_context", None)
        history: Any = pieces.prompt_of(request, target)
        if context is not None and hasattr(context, "add_message"):
            earlier = pieces.conversation(request, target)
            if pieces.is_continued(request):
                history = None
            else:
                earlier = pieces.before(request)
            for message in _history(earlier):
                await context.add_message(message)
        else:
            # A team ends after so many messages, as a rule: what was said before is one with the prompt.
            history = pieces.with_history(request, history)
        async for piece in agent.run_stream(task=history, output_task_messages=False):
            yield piece


def _history(messages: list[dict[str, Any]]) -> Iterator[object]:
    """The messages before as a model's context has them."""
    models: Any = sys.modules["autogen_core.models"]
    call: Any = sys.modules["autogen_core"].FunctionCall
    names: Any = {}
    for message in messages:
        role, content = message.get("role"), message.get("content") or ""
        if role == "assistant":
            calls = []
            for tool_call in message.get("tool_calls") or ():
                names[tool_call["id"]] = tool_call["function"]["name"]
                calls.append(call(tool_call["id"], tool_call["function"]["arguments"], names[tool_call["id"]]))
            if calls:
                yield models.AssistantMessage(content=calls, thought=content or None, source="assistant")
            elif content:
                yield models.AssistantMessage(content=content, source="assistant")
        elif role == "tool":
            key = message.get("tool_call_id") or ""
            result = models.FunctionExecutionResult(
                content=content, name=names.get(key, "tool"), call_id=key, is_error=False
            )
            yield models.FunctionExecutionResultMessage(content=[result])
        elif role in ("system", "developer"):
            yield models.SystemMessage(content=content)
        else:
            yield models.UserMessage(content=content, source="user")


def whole_of(piece: Any, streamed: bool) -> str:
    """See `python_frameworks.Framework`."""
    name = type(piece).__name__
    is_answer = (name in _TEXTS or name.startswith("StructuredMessage")) and piece.source != "user"
    return "return the whole TaskResult" if is_answer else ""


class Pieces:
    """Reads what an agent or a team streams or returns."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation
        self._thought = ""
        self._streamed: dict[tuple[str, object], str] = {}  # the texts that came in pieces, by the id of their message
        self._read_ids: set[object] = set()

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        name = type(piece).__name__
        if name == "TaskResult":
            for message in piece.messages:
                self._once(message)
            self._conversation.about(finish=piece.stop_reason)
            self._conversation.empty = self._conversation.empty and not piece.messages
        elif name == "Response":
            for message in (*(piece.inner_messages or ()), piece.chat_message):
                self._once(message)
        elif name == "ModelClientStreamingChunkEvent":
            key = ("stream", getattr(piece, "full_message_id", None))
            self._streamed[key] = self._streamed.get(key, "") + piece.content
            self._conversation.text(piece.content, key=key, agent=piece.source)
        elif hasattr(piece, "source") and hasattr(piece, "models_usage"):
            self._once(piece)
        else:
            return False
        return True

    def _once(self, message: Any) -> None:
        """A message or an event, which the result at the end repeats."""
        key = getattr(message, "id", None) or id(message)
        if key not in self._read_ids:
            self._read_ids.add(key)
            self._message(type(message).__name__, message, pieces.usage_of(message.models_usage or {}))

    def _message(self, name: str, message: Any, usage: Figures) -> None:
        note = self._conversation.note
        if name in _TEXTS or name.startswith("StructuredMessage"):
            if message.source == "user":
                self._conversation.empty = False
                return
            text = self._text(message.content)
            if text is None:
                text = pieces.text_of(message.content, note)
            self._answer(message, usage, text=text)
        elif name == "ThoughtEvent":
            self._thought = message.content
            self._conversation.empty = False
        elif name == "ToolCallRequestEvent":
            self._answer(message, usage, calls=[pieces.call_of(call, note) for call in message.content])
        elif name == "ToolCallExecutionEvent":
            self._conversation.append(
                [_result(result.call_id, result.name, result.content, result.is_error) for result in message.content]
            )
        elif name == "CodeGenerationEvent":
            code = [{"language": code_block.language, "code": code_block.code} for code_block in message.code_blocks]
            call: Call = {
                "id": "code " + str(message.retry_attempt),
                "name": "execute_code",
                "arguments": {"blocks": code},
            }
            self._answer(message, usage, text=message.content, calls=[call] if code else [])
        elif name == "CodeExecutionEvent":
            result = message.result
            failed = result.exit_code != 0
            self._conversation.append(
                [_result("code " + str(message.retry_attempt), "execute_code", result.output, failed)]
            )
        else:
            note("left_out", "an event of the kind " + name)
            self._conversation.total(message, usage)

    def _text(self, content: object) -> str | None:
        if isinstance(content, str):
            return content
        if not isinstance(content, list):
            return None
        if any(not isinstance(part, str) for part in content):
            self._conversation.note("left_out", "an image in a message")
        return "".join(part for part in content if isinstance(part, str))

    def _answer(self, message: Any, usage: Figures, text: str = "", calls: Sequence[Call] = ()) -> None:
        """A message of the model, in the place of what was streamed of it."""
        answer: Message = {"role": "assistant", "text": text, "reasoning": self._thought, "calls": list(calls)}
        key: tuple[str, object] = ("stream", message.id)
        if key not in self._streamed:  # a call of a tool has another id than the text before it
            key = next((streamed_key for streamed_key in self._streamed if calls or streamed_key[1] is None), key)
        streamed = self._streamed.pop(key, "")
        if calls and streamed:  # what AutoGen calls a thought was the text beside the calls
            answer["text"], answer["reasoning"] = streamed, self._thought if self._thought != streamed else ""
        self._thought = ""
        answer.update({"id": key, "closed": True, "usage": usage, "agent": message.source})
        self._conversation.one(answer)


def _result(key: object, name: str, text: str, failed: object) -> Message:
    return {"role": "tool", "call_id": str(key), "name": name, "text": text, "error": bool(failed)}


FRAMEWORK = frameworks.Framework(
    title="AutoGen",
    runner=runner,
    pieces=Pieces,
    makers=(
        frameworks.Maker(
            "autogen_agentchat",
            (
                "AssistantAgent",
                "CodeExecutorAgent",
                "SocietyOfMindAgent",
                "Swarm",
                "RoundRobinGroupChat",
                "SelectorGroupChat",
                "MagenticOneGroupChat",
                "GraphFlow",
            ),
        ),
        frameworks.Maker("autogen_ext", ("MagenticOne",)),
    ),
    whole_of=whole_of,
)
