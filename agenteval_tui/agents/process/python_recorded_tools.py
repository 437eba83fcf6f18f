"""Calls of tools that get their recorded results in place of the tools' functions, by what each framework offers for
that. Runs in the child: only the standard library.

A tool that an agent's own code calls is none of these: only what a model asked for was recorded. One that LangGraph
gives the state of the graph runs for real, as it may choose the node that comes next.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import functools
import inspect
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_message import Event, Tell

_answering: Any = contextvars.ContextVar("agenteval_recorded_tools", default=None)
_active: list[RecordedTools] = []  # of all calls of agents in progress
_added: set[str] = set()  # the frameworks whose tools are asked for by way of us


class RecordedTools:
    """The calls of a recorded run: each is used once, the last of equal ones again and again."""

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        self._calls = calls
        self._used: set[int] = set()
        self._called: dict[str, str] = {}  # the names of the tools, by the ids of all calls
        self._answered: set[str] = set()  # ids
        self._real: dict[str, None] = {}  # names, in the order of their first call

    def result(self, call_id: object, name: str, arguments: object) -> str | None:
        """What the model was given for a call with these arguments, or their JSON; None: the tool has to run."""
        wanted_arguments = _decoded(arguments)
        alike = [
            place
            for place, call in enumerate(self._calls)
            if call["name"] == name and _decoded(call["arguments"]) == wanted_arguments
        ]
        if not alike:
            self.runs(name)
            return None
        self._answered.add(str(call_id))
        # The model's answers are recorded ones, with their ids: of equal calls, that is the one that was made there.
        unused = [place for place in alike if place not in self._used] or alike[-1:]
        same = [place for place in unused if self._calls[place]["id"] == call_id]
        place = (same or unused)[0]
        self._used.add(place)
        text: str = self._calls[place]["result"]
        return text

    def runs(self, name: str) -> None:
        """A tool runs for real."""
        self._real[name] = None

    def told(self, event: Event) -> None:
        """The agent told this."""
        if event["type"] == "tool_call":
            self._called[str(event.get("id"))] = str(event.get("name"))

    def tell_real(self, tell: Tell) -> None:
        """Tell which tools ran for real."""
        # Of a framework that can't be led here, all of them did.
        names = self._real if _added else dict.fromkeys(self._called.values())
        for name in names:
            tell({"type": "note", "code": "real_tool", "what": name})


@contextlib.contextmanager
def answering(calls: list[dict[str, Any]] | None) -> Iterator[RecordedTools | None]:
    """Give calls of tools that are made inside their recorded results; None: all tools run."""
    if calls is None:
        yield None
        return
    _lead()
    tools = RecordedTools(calls)
    token = _answering.set(tools)
    _active.append(tools)
    try:
        yield tools
    finally:
        _active.remove(tools)
        _answering.reset(token)


def _current() -> RecordedTools | None:
    """Those of the running call. A thread that the agent started by itself has no context; it belongs to the only call
    that there is."""
    tools = _answering.get()
    return _active[0] if tools is None and len(_active) == 1 else tools


def _decoded(arguments: object) -> object:
    if isinstance(arguments, (str, bytes)):
        try:
            return json.loads(arguments or "{}")
        except ValueError:
            return arguments
    return arguments


def _lead() -> None:
    for package, lead in _LEADING.items():
        if package not in _added and package in sys.modules:
            # A version without what is needed: its tools run.
            with contextlib.suppress(Exception):
                lead()
                _added.add(package)


def _lead_pydantic_ai() -> None:
    capability: Any = import_module("pydantic_ai.capabilities").AbstractCapability
    agent: Any = sys.modules["pydantic_ai"].Agent
    if "capabilities" not in inspect.signature(agent.iter).parameters:
        raise NotImplementedError

    class Recorded(capability):  # type: ignore[misc]
        async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> object:
            tools = _current()
            text = None if tools is None else tools.result(call.tool_call_id, call.tool_name, call.args)
            return await handler(args) if text is None else _value_of(text, getattr(tool_def, "return_schema", None))

    _ = capability.wrap_tool_execute  # an older version lacks it
    recorded, iterate = Recorded(), agent.iter

    @functools.wraps(iterate)
    def led(self: object, *arguments: object, **named: Any) -> object:
        if _current() is not None:
            named["capabilities"] = [*(named.get("capabilities") or ()), recorded]
        return iterate(self, *arguments, **named)

    agent.iter = led


def _value_of(text: str, schema: Any) -> object:
    """What a tool returned, of the text that a model was given of it: models of some servers are given values."""
    if isinstance(schema, dict) and schema.get("type") == "string":
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    # pydantic writes JSON without blanks: a text that has some was a text.
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value if isinstance(value, (dict, list)) and written == text else text


def _lead_openai_agents() -> None:
    agent: Any = sys.modules["agents"].Agent
    all_tools = agent.get_all_tools

    def led(tool: Any) -> Any:
        invoke = getattr(tool, "on_invoke_tool", None)
        if invoke is None:
            return tool

        async def invoked(context: Any, arguments: str) -> object:
            tools = _current()
            call_id = getattr(context, "tool_call_id", None)
            text = None if tools is None else tools.result(call_id, tool.name, arguments)
            return await invoke(context, arguments) if text is None else text

        # The agent's own stays as it is: who made it may use it elsewhere.
        ours = copy.copy(tool)
        ours.on_invoke_tool = invoked
        return ours

    @functools.wraps(all_tools)
    async def get_all_tools(self: object, *arguments: object, **named: object) -> object:
        tools = await all_tools(self, *arguments, **named)
        return tools if _current() is None else [led(tool) for tool in tools]

    agent.get_all_tools = get_all_tools


def _lead_langchain() -> None:
    base: Any = sys.modules["langchain_core.tools.base"].BaseTool
    message: Any = import_module("langchain_core.messages").ToolMessage
    run: Callable[..., object] = base.run
    arun: Callable[..., Awaitable[object]] = base.arun

    def recorded(tool: Any, arguments: object, call_id: str | None) -> object:
        tools = _current()
        if tools is None or call_id is None:
            return None
        if _is_given_state(tool):
            tools.runs(tool.name)
            return None
        text = tools.result(call_id, tool.name, arguments)
        return None if text is None else message(content=text, tool_call_id=call_id, name=tool.name)

    @functools.wraps(run)
    def led_run(self: Any, tool_input: object, *arguments: object, **named: Any) -> object:
        answer = recorded(self, tool_input, named.get("tool_call_id"))
        return run(self, tool_input, *arguments, **named) if answer is None else answer

    @functools.wraps(arun)
    async def led_arun(self: Any, tool_input: object, *arguments: object, **named: Any) -> object:
        answer = recorded(self, tool_input, named.get("tool_call_id"))
        return await arun(self, tool_input, *arguments, **named) if answer is None else answer

    base.run, base.arun = led_run, led_arun


def _is_given_state(tool: Any) -> bool:
    """Whether a tool takes more than the model writes, such as the state of its graph."""
    takes, written = tool.get_input_schema(), tool.tool_call_schema
    return not isinstance(written, dict) and set(takes.model_fields) != set(written.model_fields)


_LEADING = {
    "pydantic_ai": _lead_pydantic_ai,
    "agents": _lead_openai_agents,
    "langchain_core.tools.base": _lead_langchain,
}
