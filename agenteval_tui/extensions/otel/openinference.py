"""OpenInference's spans, as Phoenix and its instrumentations write them, in the words of the GenAI conventions.

Its attributes are flat (`llm.input_messages.0.message.content`). Phoenix' own export has them so, nested, or as the
columns of a table (`attributes.llm.input_messages`), and the kind of the span beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.agents.process.python_usage import is_usage_attribute
from agenteval_tui.formats.importers.message_formats import as_list
from agenteval_tui.formats.importers.trace_conversation import (
    answered_messages,
    decoded,
    request_messages,
    tells_calls,
    text_of,
)

KIND = "openinference.span.kind"
PREFIXES = ("llm.", KIND, "tool.", "tool_call.", "agent.name")
OF_TEXT = "openinference.said"
"""The attribute under which is kept what went into an agent and came out of it: messages, of which a model may say
more."""
TEXT_ONLY = "openinference.text_only"
"""The attribute of a model whose answer is recorded in a form that has no place for calls."""

TOOLS = "openinference.tools"
"""The attribute that lists the tools that a model could call, as their JSON schemas."""
_TOOL_SCHEMA = re.compile(r"llm\.tools\.(\d{1,5})\.tool\.json_schema")
_NESTED = ("llm", "openinference", "input", "output", "tool", "tool_call", "agent", "gen_ai")
_VALUES = ("input.value", "output.value", "tool.parameters", "tool.json_schema", "llm.invocation_parameters")
_MESSAGE = re.compile(r"llm\.(input|output)_messages\.(\d{1,5})\.message\.(.+)")
_CALL = re.compile(r"tool_calls\.(\d{1,5})\.tool_call\.(?:function\.)?(id|name|arguments)")
_PART = re.compile(r"contents\.(\d{1,5})\.message_content\.(?:image\.image\.)?(type|text|url)")
_NAMES = {
    "llm.model_name": "gen_ai.response.model",
    "tool.name": "gen_ai.tool.name",
    "tool_call.id": "gen_ai.tool.call.id",
    "tool.id": "gen_ai.tool.call.id",
    "tool_call.function.arguments": "gen_ai.tool.call.arguments",
    "agent.name": "gen_ai.agent.name",
}
_OPERATIONS = {"LLM": "chat", "TOOL": "execute_tool", "AGENT": "invoke_agent"}
_DEEPEST = 20


def spans_in(value: Any) -> list[Mapping[str, Any]]:
    """The spans of Phoenix' export in a value of a file, each with `context` and `attributes`: the value itself, a row
    of a table, or those under `spans` or `data`; [] for anything else."""
    if not isinstance(value, Mapping):
        return []
    # A span of its own. Without `context` it is of another tool.
    if isinstance(value.get("attributes"), Mapping):
        return [value] if isinstance(value.get("context"), Mapping) else []
    if "context.trace_id" in value:
        return [_of_row(value)]
    listed = value.get("spans", value.get("data"))
    return [span for each in as_list(listed) for span in spans_in(each)]


def _of_row(row: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {"context": {}, "attributes": {}}
    for key, value in row.items():
        holder, _, name = key.partition(".")
        if holder in ("context", "attributes") and name:
            if value is not None:
                fields[holder][name] = value
        else:
            fields[key] = value
    return fields


def with_kind(span: Mapping[str, Any], attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes of a span, flat, with the kind that Phoenix keeps beside them."""
    kind = span.get("span_kind")
    is_nested = any(isinstance(attributes.get(name), Mapping) for name in _NESTED)
    has_lists = any(isinstance(attributes.get(f"llm.{side}_messages"), list) for side in ("input", "output"))
    if is_nested or has_lists:
        attributes = dict(_flat(attributes))
    return {KIND: kind, **attributes} if isinstance(kind, str) and kind else attributes


def _flat(value: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        name = f"{path}.{key}" if path else str(key)
        is_open = name.partition(".")[0] in _NESTED and name not in _VALUES and depth < _DEEPEST
        if is_open and isinstance(item, Mapping) and key != "arguments":
            yield from _flat(item, name, depth + 1)
        # A list of objects is flat by numbers, as OpenInference writes it into attributes.
        elif is_open and name.startswith("llm.") and isinstance(item, list) and item and isinstance(item[0], Mapping):
            yield from _flat({str(number): item for number, item in enumerate(item)}, name, depth + 1)
        else:
            yield name, item


def genai_attributes(attributes: Mapping[str, Any], *, is_root: bool) -> dict[str, Any]:
    """A span's attributes in the words of the GenAI conventions. `attributes`: flat ones, with a kind."""
    kind = str(attributes[KIND]).upper()
    renamed: dict[str, Any] = {}
    for key, value in attributes.items():
        if key in _NAMES:
            renamed[_NAMES[key]] = value
        elif not key.startswith((*PREFIXES, "input.", "output.")) or is_usage_attribute(key):
            renamed[key] = value
    if (operation := _OPERATIONS.get(kind)) is not None:
        renamed.setdefault("gen_ai.operation.name", operation)
    inputs, answered = attributes.get("input.value"), attributes.get("output.value")
    if kind == "TOOL":
        if inputs is not None:
            renamed.setdefault("gen_ai.tool.call.arguments", inputs)
        if answered is not None:
            renamed.setdefault("gen_ai.tool.call.result", answered)
    elif kind == "LLM":
        sides = _messages(attributes)
        renamed["gen_ai.input.messages"] = sides["input"] or _asked(inputs)
        renamed["gen_ai.output.messages"] = sides["output"] or answered_messages(answered)
        if schemas := _tool_schemas(attributes):
            renamed[TOOLS] = schemas
        # `output.value` may be the text alone, though the model also called tools.
        renamed[TEXT_ONLY] = not sides["output"] and not tells_calls(answered)
    elif kind == "AGENT" or is_root:
        messages = answered_messages(answered)
        # What comes out of some agents is the whole conversation, in which the question is already.
        is_whole = any(message.get("role") == "user" for message in messages)
        renamed[OF_TEXT] = messages if is_whole else [*_asked(inputs), *messages]
    return renamed


def _tool_schemas(attributes: Mapping[str, Any]) -> list[Any]:
    schemas = {
        int(match.group(1)): decoded(value)
        for key, value in attributes.items()
        if (match := _TOOL_SCHEMA.fullmatch(key)) is not None
    }
    return [schemas[number] for number in sorted(schemas)]


def _asked(value: Any) -> list[Any]:
    if value is None or value == "":
        return []
    return request_messages(value) or [{"role": "user", "content": text_of(decoded(value))}]


def _messages(attributes: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """What a model was asked (`input`) and answered (`output`), as chat messages."""
    by_place: dict[tuple[str, int], dict[str, Any]] = {}
    for key, value in attributes.items():
        match = _MESSAGE.fullmatch(key)
        if match is None:
            continue
        side, index, rest = match.groups()
        message = by_place.setdefault((side, int(index)), {"parts": {}, "calls": {}})
        if (call := _CALL.fullmatch(rest)) is not None:
            message["calls"].setdefault(int(call.group(1)), {})[call.group(2)] = value
        elif (part := _PART.fullmatch(rest)) is not None:
            message["parts"].setdefault(int(part.group(1)), {})[part.group(2)] = value
        elif rest in ("function_call_name", "function_call_arguments_json"):
            name = "name" if rest == "function_call_name" else "arguments"
            # The older form has one call without a number.
            message["calls"].setdefault(-1, {})[name] = value
        elif rest in ("role", "content", "tool_call_id", "name"):
            message[rest] = value
    sides: dict[str, list[dict[str, Any]]] = {"input": [], "output": []}
    for (side, _), message in sorted(by_place.items()):
        parts = [part for _, part in sorted(message.pop("parts").items())]
        calls = [call for _, call in sorted(message.pop("calls").items())]
        message.setdefault("role", "assistant" if side == "output" else "user")
        if not message.get("content"):
            message["content"] = _content(parts)
        if calls:
            message["tool_calls"] = [{"id": call.pop("id", None), "function": call} for call in calls]
        sides[side].append(message)
    return sides


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    texts = [part.get("text") for part in parts]
    if all(isinstance(text, str) for text in texts):
        return "\n".join(map(str, texts))
    return [{"type": "image_url", **part} if "url" in part else part for part in parts]
