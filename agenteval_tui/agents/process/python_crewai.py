"""Crews and agents of CrewAI: how to run one, and what it gives. Runs in the child: only the standard library, of
Python 3.8 or later."""

from __future__ import annotations

import importlib
import sys
from typing import Any

if __name__.startswith("_agenteval_"):  # in the child, where this package need not be installed
    pieces: Any = sys.modules["_agenteval_python_pieces"]
else:
    from agenteval_tui.agents.process import python_pieces

    pieces = python_pieces
_KEPT = "what CrewAI keeps in events: calls in words, which calls failed; name the crew or the agent itself"
_ran: Any = set()  # ids of results whose events were heard


def runner(found: Any, target: Any) -> Any:
    """See python_frameworks."""
    names = [cls.__name__ for cls in type(found).__mro__]
    if "Crew" in names and hasattr(found, "fetch_inputs"):
        # A crew writes what it is asked into its texts, for good: each request has a copy.
        return lambda request: _run(found.copy(), _of_crew(found, target, request))
    if "BaseAgent" in names and hasattr(found, "kickoff_async"):
        return lambda request: _run(found, request["messages"])
    return None


def _of_crew(crew: Any, target: Any, request: Any) -> Any:
    """What the texts of a crew ask for, by name. Raises WrongTarget where none asks for anything."""
    known = dict(request.get("variables") or {})
    inputs = {name: known.get(name, request.get(name, request["prompt"])) for name in crew.fetch_inputs()}
    if not inputs:
        raise pieces.WrongTarget(target + " is a crew that asks for nothing; write {prompt} into a task's description")
    if not known.keys() & inputs.keys() or "prompt" in inputs:
        before = pieces.before(request)
        said = [str(one.get("role")) + ": " + one["content"] for one in before if one.get("content")]
        if said:
            whole = "\n\n".join([*said, "user: " + request["prompt"]])
            inputs = {name: whole if value == request["prompt"] else value for name, value in inputs.items()}
    return inputs


async def _run(found: Any, asked: Any) -> Any:
    bus: Any = importlib.import_module("crewai.events").crewai_event_bus
    known: Any = importlib.import_module("crewai.events.types.tool_usage_events")
    kinds = (known.ToolUsageFinishedEvent, known.ToolUsageErrorEvent)
    told: Any = []

    def tell(source: Any, event: Any) -> None:
        told.append(event)

    async with pieces.alone_async(bus):  # which is the same for all crews of a process
        for kind in kinds:
            bus.register_handler(kind, tell)
        try:
            if isinstance(asked, dict):
                result = await found.kickoff_async(inputs=asked)
            else:
                result = await found.kickoff_async(asked)
            if hasattr(result, "__aiter__"):
                async for _ in result:
                    pass
                result = result.result
            bus.flush()
        finally:
            for kind in kinds:
                bus.off(kind, tell)
    for event in sorted(told, key=lambda one: one.emission_sequence or 0):
        yield event
    _ran.add(id(result))
    yield result


class Pieces:
    """Reads what a crew or an agent returns, and its events."""

    def __init__(self, said: Any, read: Any) -> None:
        self._said = said
        self._events: Any = []

    def read(self, piece: Any) -> Any:
        """Whether this could be read."""
        name = type(piece).__name__
        if name in ("ToolUsageFinishedEvent", "ToolUsageErrorEvent"):
            self._events.append(piece)
            self._said.empty = False
        elif name in ("CrewOutput", "LiteAgentOutput", "TaskOutput"):
            self._result(piece)
        else:
            return False
        return True

    def _result(self, result: Any) -> None:
        heard = id(result) in _ran
        _ran.discard(id(result))
        tasks = [list(map(dict, task.messages or ())) for task in getattr(result, "tasks_output", None) or [result]]
        made = [[pieces.message_of(one, self._said.note) for one in task] for task in tasks]
        if any(one.get("calls") for task in made for one in task):
            self._mark([one for task in made for one in task])
        elif self._events:
            made.insert(0, self._called())
        if not heard:
            self._said.note("left_out", _KEPT)
        for task in made:
            self._said.append(task)
        metrics = getattr(result, "token_usage", None) or {}
        self._said.only_total(result, pieces.usage_of(metrics))
        self._said.final(result.raw or "")

    def _mark(self, messages: Any) -> None:
        """Results of calls that failed: the messages do not say which."""
        results = {one["call_id"]: one for one in messages if one["role"] == "tool"}
        calls = [call for one in messages for call in one.get("calls", ())]
        for event in self._events:
            call = next((one for one in calls if one["name"] == event.tool_name), None)
            if call is None:
                continue
            calls.remove(call)
            if call.get("id") in results:
                results[call["id"]]["error"] = _failed(event)

    def _called(self) -> Any:
        """Calls and results of a model that calls tools in words."""
        made: Any = []
        for number, event in enumerate(self._events, 1):
            key = "call " + str(number)
            arguments = event.tool_args if isinstance(event.tool_args, str) else pieces.plain(event.tool_args)
            call = {"id": key, "name": event.tool_name, "arguments": arguments}
            made.append({"role": "assistant", "text": "", "reasoning": "", "calls": [call], "closed": True})
            error = getattr(event, "error", None)
            text = str(error) if error is not None else pieces.text_of(event.output, self._said.note)
            result = {"role": "tool", "call_id": key, "name": event.tool_name, "text": text}
            made.append(dict(result, error=_failed(event)))
        return made


def _failed(event: Any) -> Any:
    return type(event).__name__ == "ToolUsageErrorEvent" or getattr(event, "failure", None) is not None
