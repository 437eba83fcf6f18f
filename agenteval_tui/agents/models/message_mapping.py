"""A request's messages as every protocol can tell them: calls with ids of their own, each followed by its result."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.models.hosted_calls import HostedCall
from agenteval_tui.core.json_values import json_object
from agenteval_tui.transcripts.codec import arguments_text
from agenteval_tui.transcripts.model import SYSTEM_ROLES, Attachment, Message, ToolCall

# Protocols demand a result for each call. This replaces one that was never recorded.
NO_RESULT = "(no result was recorded)"
_PLACEHOLDER = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}|\[#~?([\w.:-]+)#\]")


class ToolCallDraft(HostedCall, frozen=True):
    """A call that the model made earlier. `arguments` is the JSON text, or whatever the model sent instead."""

    result: str = NO_RESULT


class ProviderMessage(Struct, frozen=True):
    """One message of the conversation. `calls` are an assistant's, with their results; no message has the role
    "tool"."""

    role: str
    text: str
    name: str | None = None
    calls: tuple[ToolCallDraft, ...] = ()
    attachments: tuple[Attachment, ...] = ()


class CallIds(Struct):
    """Gives out ids that no other call of the conversation has: servers refuse one that has the same id twice."""

    taken: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, messages: Sequence[ProviderMessage]) -> CallIds:
        """With those that calls of these messages have already."""
        return cls({call.id for message in messages for call in message.calls})

    def fresh(self, base: str) -> str:
        """`base` if it is still free, else a new one that begins with it."""
        base = base or "call"
        candidate, number = base, len(self.taken)
        while candidate in self.taken or candidate == "call":
            number += 1
            candidate = f"{base}_{number}"
        self.taken.add(candidate)
        return candidate


def provider_messages(messages: Sequence[Message], calls: Sequence[ToolCall], ids: CallIds) -> list[ProviderMessage]:
    """The conversation; every call has an id of its own and a result.

    A result stands with its call, wherever it stood among the messages. A result that names no call belongs to the
    first call with its id that has none; if there is no such call, it is told in words, since servers refuse it else.
    """
    results = _results(messages, calls)
    used = {place for place, _ in results.values()}
    translated: list[ProviderMessage] = []
    for place, message in enumerate(messages):
        # A result stands with its call now.
        if place in used:
            continue
        if message.role == "tool":
            tool = message.name or message.tool_call_id
            translated.append(
                ProviderMessage("user", f"Result of {f'the tool {tool}' if tool else 'a tool'}: {message.content}")
            )
            continue
        # A run that was continued or cut may name calls that are not in it.
        own = [index for index in message.tool_calls if 0 <= index < len(calls)]
        drafts = tuple(_made(calls[index], results.get(index), ids) for index in own)
        translated.append(ProviderMessage(message.role, message.content, message.name, drafts, message.attachments))
    return translated


def _results(messages: Sequence[Message], calls: Sequence[ToolCall]) -> dict[int, tuple[int, str]]:
    """Call -> (place of the message that answers it, its text)."""
    with_calls = {index for message in messages for index in message.tool_calls}
    results: dict[int, tuple[int, str]] = {}
    waiting: dict[str, list[int]] = {}
    # The list is taken from its end, so that the first call with that id is answered first.
    for index in sorted(with_calls, reverse=True):
        if 0 <= index < len(calls):
            waiting.setdefault(calls[index].id, []).append(index)
    for place, message in enumerate(messages):
        if message.role != "tool":
            continue
        answers = message.tool_call
        if answers is None:
            same = [index for index in waiting.get(message.tool_call_id or "", ()) if index not in results]
            answers = same[-1] if same else None
        if answers is not None and answers in with_calls and answers not in results:
            results[answers] = (place, message.content)
    return results


def _made(call: ToolCall, result: tuple[int, str] | None, ids: CallIds) -> ToolCallDraft:
    text = result[1] if result is not None else call.result
    arguments = call.arguments if call.malformed and isinstance(call.arguments, str) else arguments_text(call)
    return ToolCallDraft(
        ids.fresh(call.id), call.name, arguments, NO_RESULT if text is None else text, call.status == "error"
    )


def arguments_object(text: str) -> dict[str, Any] | None:
    """A call's arguments as an object; {} for none at all, None when they are something else."""
    if not text.strip():
        return {}
    return json_object(text)


def with_system(request: AgentRequest, system: str | None) -> tuple[Message, ...]:
    """The messages, with the system prompt and the input data that the test's context or the agent's options bring.

    A system message of the test's own stands. `input_data` is added to the last user message, as JSON,
    in the first turn: later ones hold what was said then.
    """
    messages = request.messages
    prompt = request.context.get("sample_system_prompt") or system
    if prompt and not any(message.role in SYSTEM_ROLES for message in messages):
        first = Message("system", _filled(str(prompt), request.context.get("sample_concepts")))
        messages = (first, *messages)
    data = request.context.get("input_data")
    if data is not None and request.turn == 1 and messages and messages[-1].role == "user":
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        last = messages[-1]
        messages = (*messages[:-1], replace(last, content=f"{last.content}\n\n{text}"))
    return messages


def _filled(text: str, concepts: Any) -> str:
    """A system prompt with its placeholders, {{name}} or [#name#], filled; unknown ones stay."""
    if not isinstance(concepts, Mapping) or not concepts:
        return text

    def value(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        return str(concepts[name]) if name in concepts else match.group()

    return _PLACEHOLDER.sub(value, text)
