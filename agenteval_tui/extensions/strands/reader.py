"""Agents, graphs and swarms of Strands: how to run one, and what it gives. Runs in the child: only the standard
library, of Python 3.8 or later."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
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
_ALONE = "those of an AgentResult; name the agent itself, or yield what its stream_async gives"
_FINISHES = {"end_turn": "stop", "max_tokens": "length", "content_filtered": "content_filter"}


class StreamEvent:
    """An event of `stream_async`, which is a dict that does not say whose it is."""

    def __init__(self, event: Any) -> None:
        self.event = event


def runner(agent: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    if not hasattr(agent, "stream_async"):
        return None
    if hasattr(agent, "messages"):
        return lambda request: _run(agent, request, target)
    return lambda request: _run_several(agent, request, target)


async def _run(agent: Any, request: Request, target: str) -> AsyncIterator[object]:
    is_continued = pieces.is_continued(request)
    prompt = None if is_continued else pieces.prompt_of(request, target)
    history = pieces.conversation(request, target) if is_continued else pieces.before(request)
    state = contexts.fields_of(request, target, "`invocation_state`")
    more = {"invocation_state": state} if state else {}
    async with pieces.alone_async(agent):
        # What its maker gave it stays; what this request says must not be in the next one.
        own = list(agent.messages)
        agent.messages[:] = [*own, *_history(history)]
        try:
            async for event in agent.stream_async(prompt, **more):
                yield StreamEvent(event)
        finally:
            agent.messages[:] = own


async def _run_several(agent: Any, request: Request, target: str) -> AsyncIterator[object]:
    """A graph or a swarm: it has no conversation, so what was said before is one with the prompt."""
    prompt = pieces.prompt_of(request, target)
    state = contexts.fields_of(request, target, "`invocation_state`")
    prompt = pieces.with_history(request, prompt)
    async for event in agent.stream_async(prompt, **({"invocation_state": state} if state else {})):
        yield StreamEvent(event)


def _history(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages before as Bedrock has them. Results of tools belong to the user."""
    for message in messages:
        role, content = message.get("role"), message.get("content") or ""
        if role == "tool":
            result = {"toolUseId": message.get("tool_call_id"), "status": "success", "content": [{"text": content}]}
            yield {"role": "user", "content": [{"toolResult": result}]}
            continue
        blocks: Any = [{"text": content}] if content else []
        for call in message.get("tool_calls") or ():
            arguments = pieces.decoded_arguments(call["function"]["arguments"])
            blocks.append({"toolUse": {"toolUseId": call["id"], "name": call["function"]["name"], "input": arguments}})
        if blocks:
            yield {"role": "assistant" if role == "assistant" else "user", "content": blocks}


def result_of(last: object) -> object:
    """What the agent gave: the object that it was to give, else its text."""
    event = last.event if isinstance(last, StreamEvent) else None
    result = event.get("result") if isinstance(event, dict) else last
    structured = getattr(result, "structured_output", None)
    return str(result) if structured is None else structured


class Pieces:
    """Reads what an agent streams or returns."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation
        self._number = 0  # of the model's answer
        self._heard = False
        self._agent: str | None = None  # of a graph or a swarm, the node that is running

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        if isinstance(piece, StreamEvent):
            self._heard = True
            self._conversation.empty = False
            self._event(piece.event)
        elif type(piece).__name__ == "AgentResult":
            self._result(piece)
        elif type(piece).__name__ in ("MultiAgentResult", "GraphResult", "SwarmResult"):
            self._results(piece)
        else:
            return False
        return True

    def _event(self, event: object) -> None:
        if not isinstance(event, dict):
            return
        if event.get("type") == "multiagent_node_stream":
            self._agent = event.get("node_id")
            self._event(event.get("event"))
        elif isinstance(event.get("data"), str):
            self._conversation.text(event["data"], key=("answer", self._number), agent=self._agent)
        elif isinstance(event.get("reasoningText"), str):
            text, key = event["reasoningText"], ("answer", self._number)
            self._conversation.text(text, key=key, what="reasoning", agent=self._agent)
        elif isinstance(event.get("message"), dict):
            self._message(event["message"])
        elif event.get("result") is not None:
            self.read(event["result"])

    def _message(self, message: Any) -> None:
        answer: Message = {"role": "assistant", "text": "", "reasoning": "", "calls": [], "closed": True}
        results: list[Message] = []
        for block in message.get("content") or ():
            if "text" in block:
                answer["text"] += block["text"]
            elif "reasoningContent" in block:
                answer["reasoning"] += (block["reasoningContent"].get("reasoningText") or {}).get("text") or ""
            elif "toolUse" in block:
                used = block["toolUse"]
                answer["calls"].append({"id": used["toolUseId"], "name": used["name"], "arguments": used.get("input")})
            elif "toolResult" in block:
                results.append(self._tool_result(block["toolResult"]))
            elif "cachePoint" not in block:
                self._conversation.note("left_out", "a part of a message: " + ", ".join(map(str, block)))
        if message.get("role") == "assistant":
            used = pieces.usage_of((message.get("metadata") or {}).get("usage") or {})
            answer.update({"id": ("answer", self._number), "usage": used, "agent": self._agent})
            self._conversation.one(answer)
            self._number += 1
        if results:
            self._conversation.append(results)

    def _tool_result(self, result: Any) -> Message:
        parts = result.get("content") or ()
        texts = [
            part["text"] if "text" in part else pieces.text_of(part.get("json", part), self._conversation.note)
            for part in parts
        ]
        failed = result.get("status") == "error"
        return {
            "role": "tool",
            "call_id": result.get("toolUseId"),
            "name": None,
            "text": "".join(texts),
            "error": failed,
        }

    def _result(self, result: Any) -> None:
        metrics = getattr(result, "metrics", None)
        if not self._heard:
            if getattr(metrics, "tool_metrics", None):
                self._conversation.note("unread_calls", _ALONE)
            self._message(result.message)
        self._conversation.only_total(result, pieces.usage_of(getattr(metrics, "accumulated_usage", None) or {}))
        stop = getattr(result, "stop_reason", None)
        self._conversation.about(finish=_FINISHES.get(str(stop), stop))
        structured = getattr(result, "structured_output", None)
        if structured is not None:
            self._conversation.final(pieces.text_of(structured, self._conversation.note))

    def _results(self, result: object) -> None:
        """Of a graph or a swarm: the answers of its nodes, of which the last one is the answer."""
        self._conversation.only_total(result, pieces.usage_of(getattr(result, "accumulated_usage", None) or {}))
        if self._heard:
            return
        for name, node in (getattr(result, "results", None) or {}).items():
            self._agent = name
            for agent_result in node.get_agent_results():
                self._result(agent_result)


FRAMEWORK = frameworks.Framework(
    title="strands",
    runner=runner,
    pieces=Pieces,
    makers=(
        frameworks.Maker("strands", ("Agent", "Swarm")),
        frameworks.Maker("strands", ("GraphBuilder",), needs="build"),
    ),
    result_of=result_of,
)
