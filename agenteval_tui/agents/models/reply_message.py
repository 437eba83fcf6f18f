"""The message that a model's reply becomes in a conversation, as Chat Completions has it."""

from __future__ import annotations

from typing import Any

from agenteval_tui.agents.base import AgentEvent, ReasoningDelta, ToolCallFinished
from agenteval_tui.agents.models.hosted_calls import HostedCall
from agenteval_tui.agents.models.requests import call_entry
from agenteval_tui.agents.models.stream import ModelReply


class ReplyMessage:
    """The assistant's message of one reply. `before`: what comes before it, which is each call of a tool that the
    server ran itself, with its result."""

    def __init__(self, reply: ModelReply) -> None:
        self._reply = reply
        self._thoughts: list[str] = []
        self._told = 0
        """How many pieces of the reply's text are in `before`."""
        self.before: list[dict[str, Any]] = []

    def take(self, event: AgentEvent) -> None:
        """One event of the reply, as soon as the reply gave it."""
        if isinstance(event, ReasoningDelta):
            self._thoughts.append(event.text)
        elif isinstance(event, ToolCallFinished):
            self.before += _hosted(self._reply.hosted[-1], "".join(self._reply.text[self._told :]))
            self._told = len(self._reply.text)

    @property
    def empty(self) -> bool:
        """Whether the reply has nothing yet that a message could say."""
        return not (self._reply.text or self._reply.calls or self._thoughts)

    def fields(self) -> dict[str, Any]:
        """The message, as far as it has arrived."""
        reply = self._reply
        message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.text[self._told :])}
        if self._thoughts:
            message["reasoning"] = "".join(self._thoughts)
        calls = [call_entry(call.id, call.name, call.arguments) for call in reply.hosted if call.result is None]
        calls += [call_entry(call.given_id, call.name, call.arguments_text) for call in reply.calls]
        if calls:
            message["tool_calls"] = calls
        return message


def _hosted(call: HostedCall, text: str) -> list[dict[str, Any]]:
    """A call that the server made and answered, as messages; `text`: what the model said before it."""
    answer: dict[str, Any] = {"role": "tool", "content": call.result or ""}
    if call.id:
        answer["tool_call_id"] = call.id
    if call.failed:
        answer["is_error"] = True
    calls = [call_entry(call.id, call.name, call.arguments)]
    return [{"role": "assistant", "content": text, "tool_calls": calls}, answer]
