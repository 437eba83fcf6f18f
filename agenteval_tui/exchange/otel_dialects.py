"""What instrumentations other than today's GenAI conventions write, in the words of those.

Events of a span (`gen_ai.user.message`, `gen_ai.choice`; conventions up to 1.36), and OpenInference's attributes
(`llm.input_messages.0.message.content`), as Phoenix and its instrumentations record them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agenteval_tui.exchange.message_dialects import plain_text

OF_EVENTS = "gen_ai.messages_of_events"
"""The attribute under which the messages of a span's events are kept, as OpenAI chat messages."""
PREFIXES = ("llm.", "openinference.span.kind", "tool.", "tool_call.", "agent.name")

_MESSAGE = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_OPENINFERENCE = re.compile(r"llm\.(input|output)_messages\.(\d{1,5})\.message\.(.+)")
_CALL = re.compile(r"tool_calls\.(\d{1,5})\.tool_call\.(?:function\.)?(id|name|arguments)")
_NAMES = {
    "llm.model_name": "gen_ai.response.model", "llm.token_count.prompt": "gen_ai.usage.input_tokens",
    "llm.token_count.completion": "gen_ai.usage.output_tokens", "tool.name": "gen_ai.tool.name",
    "llm.token_count.prompt_details.cache_read": "gen_ai.usage.cache_read.input_tokens",
    "llm.cost.total": "gen_ai.usage.cost", "tool_call.id": "gen_ai.tool.call.id", "tool.id": "gen_ai.tool.call.id",
    "agent.name": "gen_ai.agent.name",
}  # fmt: skip
_KINDS = {"LLM": "chat", "TOOL": "execute_tool", "AGENT": "invoke_agent"}


def in_conventions(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """A span's attributes with OpenInference's in the words of the GenAI conventions; others as they are."""
    kind = attributes.get("openinference.span.kind")
    if not isinstance(kind, str):
        found = {key: value for key, value in attributes.items() if not key.startswith(PREFIXES) or "llm.usage" in key}
        if "agent.name" in attributes:
            found.setdefault("gen_ai.agent.name", attributes["agent.name"])
        return found
    found = {}
    for key, value in attributes.items():
        match = _OPENINFERENCE.fullmatch(key)
        if match is not None:
            side, index, rest = match.groups()
            call = _CALL.fullmatch(rest)
            rest = f"tool_calls.{call.group(1)}.{call.group(2)}" if call is not None else rest
            if rest.startswith("contents.") and rest.endswith(".message_content.text"):
                rest = "content"  # of several parts the last text
            found[f"gen_ai.{'prompt' if side == 'input' else 'completion'}.{index}.{rest}"] = value
        elif key in _NAMES:
            found[_NAMES[key]] = value
        elif not key.startswith(PREFIXES):
            found[key] = value
    if (operation := _KINDS.get(kind.upper())) is not None:
        found.setdefault("gen_ai.operation.name", operation)
    return found


def message_of_event(name: str, attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages that an event of a span is; none for other events."""
    match = _MESSAGE.fullmatch(name)
    if match is not None:
        return [_message(match.group(1), attributes)]
    if name == "gen_ai.choice":
        inner = _decoded(attributes.get("message"))
        return [_message("assistant", {**attributes, **(inner if isinstance(inner, Mapping) else {"content": inner})})]
    for key, role in (("gen_ai.prompt", "user"), ("gen_ai.completion", "assistant")):
        if key in attributes:
            said = _decoded(attributes[key])
            listed = said if isinstance(said, list) else [said]
            return [_message(role, one if isinstance(one, Mapping) else {"content": one}) for one in listed]
    return []


def _message(role: str, given: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"role": plain_text(given.get("role")) or role, "content": given.get("content")}
    calls = _decoded(given.get("tool_calls"))
    if isinstance(calls, list):
        made["tool_calls"] = calls
    if made["role"] == "tool":
        made["tool_call_id"] = given.get("id") or given.get("tool_call_id")
    return made


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
