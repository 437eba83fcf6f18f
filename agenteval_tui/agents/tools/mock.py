"""Tools with canned answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.base import ToolOutcome, ToolSpec
from agenteval_tui.agents.tools.options import MockEntry
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.transcripts.tool_text import argument_text


class MockTool(Struct, frozen=True):
    """Answers from a list of canned answers, else with `otherwise` (None: a call that nothing fits is a failure)."""

    spec: ToolSpec
    pairs: tuple[Mapping[str, Any], ...] = ()
    otherwise: str | None = None

    async def call(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """The response of the first pair that fits the call."""
        for pair in self.pairs:
            if fits(pair, arguments):
                return ToolOutcome(_as_text(pair.get("response")))
        if self.otherwise is not None:
            return ToolOutcome(self.otherwise)
        return ToolOutcome(f"the mock tool {self.spec.name} has no answer to these arguments", error=True)


def mock_tool(entry: MockEntry) -> MockTool:
    """The tool as it was written. Raises `AgentevalError` for a pair that can fit no call."""
    spec = ToolSpec(entry.name, (entry.description or ""), entry.parameters or _schema_of(entry.arguments))
    pairs: Any = entry.request_response_pairs or ()
    if isinstance(pairs, Mapping):
        pairs = [{"request": str(request), "response": response} for request, response in pairs.items()]
    for number, pair in enumerate(pairs, 1):
        if not isinstance(pair, Mapping) or not {"request", "requests", "arguments"} & set(pair):
            raise AgentevalError(
                f"tool {entry.name!r}: pair {number} does not say for which call it is",
                fix="add `request`, `requests` or `arguments`",
            )
    otherwise = entry.sample_response
    return MockTool(spec, tuple(pairs), None if otherwise is None else _as_text(otherwise))


def fits(pair: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether a pair answers a call.

    `arguments`: the call has all of these, with equal values, as JSON compares them; objects in them may have more.
    With `exact: true` the call has these and no others. `request`, `requests`: one of these texts is the call's first
    argument, or all its arguments as JSON.
    """
    expected = pair.get("arguments")
    if isinstance(expected, Mapping):
        return _json_equal(arguments, expected) if pair.get("exact") else _json_contains(arguments, expected)
    first = argument_text(next(iter(arguments.values()))).strip() if arguments else None
    for request in (pair.get("request"), *(pair.get("requests") or ())):
        if not isinstance(request, str):
            continue
        if first is not None and request.strip() == first:
            return True
        if request.lstrip().startswith("{") and _json_equal(arguments, parsed_json(request)):
            return True
    return False


def _json_equal(value: object, other: object) -> bool:
    """Whether two JSON values are the same: 1 is 1.0 and not true, the order of an object's keys does not count."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(_json_equal(value[key], other[key]) for key in value)
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_json_equal, value, other))
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def _json_contains(actual: object, expected: object) -> bool:
    """Whether `actual` is `expected`, or more: objects may have more keys, on every level."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return all(key in actual and _json_contains(actual[key], value) for key, value in expected.items())
    if isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        return len(actual) == len(expected) and all(map(_json_contains, actual, expected))
    return _json_equal(actual, expected)


def _schema_of(arguments: object) -> dict[str, Any]:
    """A JSON Schema from arguments as Power UI declares them: a list of names, or of objects with `name`."""
    properties: dict[str, Any] = {}
    if isinstance(arguments, Mapping):
        properties = {str(name): {"description": str(description or "")} for name, description in arguments.items()}
    for argument in arguments if isinstance(arguments, list) else ():
        if isinstance(argument, Mapping) and isinstance(argument.get("name"), str):
            properties[argument["name"]] = {"description": str(argument.get("description") or "")}
        elif isinstance(argument, str):
            properties[argument] = {}
    return {"type": "object", "properties": properties}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
