"""Tools that we answer for a model: what it is told of them, and what a call gives."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from agenteval_tui.agents.interface import ToolSpec
from agenteval_tui.agents.shop.tools import ToolOutcome
from agenteval_tui.suites.tool_files import load_tools
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.codec import decode_arguments
from agenteval_tui.transcripts.tool_text import argument_text

DEMO_SHOP = "builtin:demo-shop"
_KEYS = {
    "name",
    "description",
    "parameters",
    "arguments",
    "request_response_pairs",
    "sample_response",
    "type",
    "strict",
}


class Tool(Protocol):
    """Something that answers calls."""

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        ...

    async def call(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """The answer. Never raises for wrong arguments: that is an outcome with `error`."""
        ...


@dataclass(frozen=True, slots=True)
class MockTool:
    """Answers from a list of canned answers, else with `otherwise` (None: a call that nothing fits is a failure)."""

    spec: ToolSpec
    pairs: tuple[Mapping[str, Any], ...] = ()
    otherwise: str | None = None

    async def call(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """The response of the first pair that fits the call."""
        for pair in self.pairs:
            if _fits(pair, arguments):
                return ToolOutcome(_as_text(pair.get("response")))
        if self.otherwise is not None:
            return ToolOutcome(self.otherwise)
        return ToolOutcome(f"the mock tool {self.spec.name} has no answer to these arguments", error=True)


@dataclass(slots=True)
class ShopTool:
    """A tool of the bundled shop, on a database that the tools of one run share."""

    spec: ToolSpec
    shop: sqlite3.Connection

    async def call(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """What the shop says."""
        from agenteval_tui.agents.shop.tools import call_tool

        return call_tool(self.shop, self.spec.name, arguments)


@dataclass(slots=True)
class Toolbox:
    """The tools of one run, by name: `async with toolbox:` around the run starts what must run and gives it back."""

    tools: Mapping[str, Tool]
    shop: sqlite3.Connection | None = field(default=None)

    async def __aenter__(self) -> Toolbox:
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self.shop is not None:
            self.shop.close()

    def specs(self) -> list[ToolSpec]:
        """What the model is told of the tools, in order. Complete once the toolbox was entered."""
        return [tool.spec for tool in self.tools.values()]

    async def call(self, name: str, arguments_text: str) -> ToolOutcome:
        """The outcome of a call as the model made it: unknown tools and malformed arguments are failures in words."""
        tool = self.tools.get(name)
        if tool is None:
            known = ", ".join(self.tools) or "none"
            return ToolOutcome(f"there is no tool {name!r}; tools: {known}", error=True)
        arguments, malformed = decode_arguments(arguments_text)
        if malformed:
            return ToolOutcome("the arguments are not valid JSON", error=True)
        if not isinstance(arguments, Mapping):
            return ToolOutcome("the arguments must be a JSON object", error=True)
        try:
            return await tool.call(arguments)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            return ToolOutcome(f"the tool failed: {error or type(error).__name__}", error=True)


def make_toolbox(tools: str | Sequence[Any] | None, context: Mapping[str, Any], base_dir: Path) -> Toolbox:
    """The tools of an agent's configuration, with those of the test's context (`sample_tools`) in their place or added.

    `tools` is a list, the name of a file with one, or "builtin:demo-shop": the bundled shop's own tools.
    Nothing is started before the toolbox is entered. Raises `AgentevalError` when a tool is written wrongly.
    """
    made: dict[str, Tool] = {}
    shop: sqlite3.Connection | None = None
    if tools == DEMO_SHOP:
        from agenteval_tui.agents.shop.database import open_shop
        from agenteval_tui.agents.shop.tools import TOOLS

        shop = open_shop()
        made.update({spec.name: ShopTool(spec, shop) for spec in TOOLS})
    else:
        made.update({tool["name"]: _mock(tool) for tool in load_tools(tools, base_dir)})
    for tool in _sample_tools(context.get("sample_tools")):
        made[tool["name"]] = _mock(tool)
    return Toolbox(made, shop)


def _sample_tools(sample: Any) -> list[dict[str, Any]]:
    if isinstance(sample, Mapping):
        sample = [{**tool, "name": name} for name, tool in sample.items()]
    return load_tools(list(sample or ()), Path())


def _mock(tool: Mapping[str, Any]) -> MockTool:
    unknown = sorted(set(tool) - _KEYS)
    if unknown:
        raise AgentevalError(
            f"tool {tool['name']!r} has the unknown key {unknown[0]!r}",
            mend=f"keys of a tool: {', '.join(sorted(_KEYS - {'type', 'strict'}))}",
        )
    parameters = tool.get("parameters") or _schema_of(tool.get("arguments"))
    spec = ToolSpec(str(tool["name"]), str(tool.get("description") or ""), parameters)
    pairs = tool.get("request_response_pairs") or ()
    if isinstance(pairs, Mapping):
        pairs = [{"request": str(request), "response": response} for request, response in pairs.items()]
    otherwise = tool.get("sample_response")
    return MockTool(spec, tuple(pairs), None if otherwise is None else _as_text(otherwise))


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


def _fits(pair: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether a pair answers a call.

    `arguments`: the call has all of these, with equal values. `request`, `requests`: one of these texts is the call's
    first argument, or all its arguments as JSON.
    """
    wanted = pair.get("arguments")
    if isinstance(wanted, Mapping):
        return all(name in arguments and arguments[name] == value for name, value in wanted.items())
    requests = [pair.get("request"), *(pair.get("requests") or ())]
    given = {json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))}
    if arguments:
        given.add(argument_text(next(iter(arguments.values()))).strip())
    return any(isinstance(request, str) and _compact(request) in given for request in requests)


def _compact(request: str) -> str:
    """A request that is a JSON object without its white space, any other text as it is."""
    if request.lstrip().startswith("{"):
        try:
            return json.dumps(json.loads(request), ensure_ascii=False, separators=(",", ":"))
        except ValueError:
            pass
    return request.strip()


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
