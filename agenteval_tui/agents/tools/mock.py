"""Tools with canned answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.base import ToolOutcome, ToolSpec
from agenteval_tui.agents.tools.options import MockEntry
from agenteval_tui.core.errors import AgentevalError
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
    spec = ToolSpec(entry.name, entry.said, entry.parameters or _schema_of(entry.arguments))
    pairs: Any = entry.request_response_pairs or ()
    if isinstance(pairs, Mapping):
        pairs = [{"request": str(request), "response": response} for request, response in pairs.items()]
    for number, pair in enumerate(pairs, 1):
        if not isinstance(pair, Mapping) or not {"request", "requests", "arguments"} & set(pair):
            raise AgentevalError(
                f"tool {entry.name!r}: pair {number} does not say for which call it is",
                mend="add `request`, `requests` or `arguments`",
            )
    otherwise = entry.sample_response
    return MockTool(spec, tuple(pairs), None if otherwise is None else _as_text(otherwise))


def fits(pair: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether a pair answers a call.

    `arguments`: the call has all of these, with equal values, as JSON compares them; objects in them may have more.
    With `exact: true` the call has these and no others. `request`, `requests`: one of these texts is the call's first
    argument, or all its arguments as JSON.
    """
    wanted = pair.get("arguments")
    if isinstance(wanted, Mapping):
        return _json_equal(arguments, wanted) if pair.get("exact") else _json_contains(arguments, wanted)
    first = argument_text(next(iter(arguments.values()))).strip() if arguments else None
    for request in (pair.get("request"), *(pair.get("requests") or ())):
        if not isinstance(request, str):
            continue
        if first is not None and request.strip() == first:
            return True
        if request.lstrip().startswith("{"):
            try:
                if _json_equal(arguments, json.loads(request)):
                    return True
            except (ValueError, RecursionError):
                continue
    return False


def _json_equal(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same: 1 is 1.0 and not true, the order of an object's keys does not count."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_json_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_json_equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _json_contains(got: Any, wanted: Any) -> bool:
    """Whether `got` is `wanted`, or more: objects may have more keys, on every level."""
    if isinstance(got, Mapping) and isinstance(wanted, Mapping):
        return all(key in got and _json_contains(got[key], value) for key, value in wanted.items())
    if isinstance(got, list | tuple) and isinstance(wanted, list | tuple):
        return len(got) == len(wanted) and all(map(_json_contains, got, wanted))
    return _json_equal(got, wanted)


def _schema_of(arguments: Any) -> dict[str, Any]:
    """A JSON Schema from arguments as Power UI declares them: a list of names, or of objects with `name`."""
    properties: dict[str, Any] = {}
    if isinstance(arguments, Mapping):
        properties = {str(name): {"description": str(said or "")} for name, said in arguments.items()}
    for one in arguments if isinstance(arguments, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("name"), str):
            properties[one["name"]] = {"description": str(one.get("description") or "")}
        elif isinstance(one, str):
            properties[one] = {}
    return {"type": "object", "properties": properties}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
