"""Claude's agent SDK: how to run its options or its client, and what it gives. Runs in the child: only the standard
library, of Python 3.8 or later."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Message, Read, Request, Run

if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_context as contexts
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    contexts = sys.modules["_agenteval.python_context"]
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]


def runner(agent: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    if type(agent).__name__ in ("ClaudeAgentOptions", "ClaudeSDKClient"):
        return lambda request: _run(agent, request, target)
    return None


async def _run(agent: Any, request: Request, target: str) -> AsyncIterator[object]:
    contexts.refuse(request, target, "Claude's agent SDK has no run context")
    # A new session: what was said before is one text with the prompt.
    prompt = pieces.with_history(request, pieces.prompt_of(request, target))
    if type(agent).__name__ == "ClaudeAgentOptions":
        async for message in sys.modules["claude_agent_sdk"].query(prompt=prompt, options=agent):
            yield message
        return
    # To enter it starts Claude's program: so each request has a conversation of its own.
    async with pieces.alone_async(agent), agent:
        await agent.query(prompt)
        async for message in agent.receive_response():
            yield message


def result_of(last: object) -> object:
    """What the ResultMessage has: the object that was asked for, else the text."""
    structured = getattr(last, "structured_output", None)
    return getattr(last, "result", last) if structured is None else structured


def whole_of(piece: Any, streamed: bool) -> str:
    """See `python_frameworks.Framework`."""
    name = type(piece).__name__
    last = name == "ResultMessage" or (name == "AssistantMessage" and not streamed)
    return "yield all messages of the query" if last else ""


class Pieces:
    """Reads the messages of a query."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation
        self._read = read
        self._messages: dict[object, Message] = {}  # each comes in several parts, by its id
        self._agents: dict[str, str] = {}  # the names of sub-agents, by the call that started them

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        name = type(piece).__name__
        if name == "AssistantMessage":
            self._answer(piece)
        elif name == "UserMessage":
            self._conversation.empty = False
            if isinstance(piece.content, list):
                self._conversation.append([result for block in piece.content for result in self._results(block)])
        elif name == "ResultMessage":
            self._result(piece)
        elif name.endswith(("Message", "Event")):  # what the program tells of itself
            self._conversation.empty = False
        else:
            return False
        return True

    def _answer(self, message: Any) -> None:
        key = message.message_id or id(message)
        answer = self._messages.setdefault(key, {"role": "assistant", "text": "", "reasoning": "", "calls": []})
        agent = self._agents.get(message.parent_tool_use_id)
        answer.update({"id": key, "closed": True, "model": message.model, "agent": agent})
        results: list[Message] = []
        for block in message.content:
            kind = type(block).__name__
            if kind == "TextBlock":
                answer["text"] += block.text
            elif kind == "ThinkingBlock":
                answer["reasoning"] += block.thinking
            elif kind in ("ToolUseBlock", "ServerToolUseBlock"):
                answer["calls"].append({"id": block.id, "name": block.name, "arguments": block.input})
                if isinstance(block.input.get("subagent_type"), str):
                    self._agents[block.id] = block.input["subagent_type"]
            else:
                results += self._results(block)
        # A copy, as the next parts of this message are added to `answer`.
        whole = answer.copy()
        whole["calls"] = list(answer["calls"])
        self._conversation.one(whole)
        self._conversation.append(results)

    def _results(self, block: Any) -> list[Message]:
        """The result of a call in a block; [] for other blocks."""
        key = getattr(block, "tool_use_id", None)
        if key is None:
            if type(block).__name__ != "TextBlock":
                self._conversation.note("left_out", "a part of a message: " + type(block).__name__)
            return []
        content = block.content
        text = content if isinstance(content, str) else pieces.text_of(content, self._conversation.note)
        if isinstance(content, list) and all(part.get("type") == "text" for part in content):
            text = "".join(part["text"] for part in content)
        failed = bool(getattr(block, "is_error", None))
        return [{"role": "tool", "call_id": key, "name": None, "text": text, "error": failed}]

    def _result(self, result: Any) -> None:
        used = pieces.usage_of(_figures(result))
        if result.total_cost_usd is not None:
            used["cost"] = result.total_cost_usd
        self._conversation.only_total(result, used)
        if result.is_error:
            reason = result.result or "; ".join(result.errors or ()) or result.subtype
            self._read({"type": "error", "kind": "agent", "message": reason}, True)
            return
        self._conversation.about(finish={"end_turn": "stop"}.get(result.stop_reason, result.stop_reason))
        final = result_of(result)
        if final is not None:
            self._conversation.final(pieces.text_of(final, self._conversation.note))


def _figures(result: Any) -> object:
    """The tokens of all models, in the words of the Messages API; those of sub-agents are in `model_usage` alone."""
    names = {
        "input_tokens": "inputTokens",
        "output_tokens": "outputTokens",
        "cache_read_input_tokens": "cacheReadInputTokens",
        "cache_creation_input_tokens": "cacheCreationInputTokens",
    }
    models = list((getattr(result, "model_usage", None) or {}).values())
    if not models:
        return result.usage or {}
    return {name: sum(model.get(theirs) or 0 for model in models) for name, theirs in names.items()}


FRAMEWORK = frameworks.Framework(
    title="Claude's agent SDK",
    runner=runner,
    pieces=Pieces,
    makers=(frameworks.Maker("claude_agent_sdk", ("ClaudeAgentOptions", "ClaudeSDKClient")),),
    result_of=result_of,
    whole_of=whole_of,
)
