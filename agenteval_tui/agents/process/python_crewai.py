"""Crews and agents of CrewAI: how to run one, and what it gives. Runs in the child: only the standard library, of
Python 3.8 or later."""

from __future__ import annotations

import importlib
import sys
from typing import Any

if __name__.startswith("_agenteval_"):  # in the child, where this package need not be installed
    pieces: Any = sys.modules["_agenteval_python_pieces"]
    contexts: Any = sys.modules["_agenteval_python_context"]
else:
    from agenteval_tui.agents.process import python_context, python_pieces

    pieces, contexts = python_pieces, python_context
_KEPT = "what CrewAI keeps in events: calls in words, which calls failed; name the crew or the agent itself"
_ran: Any = set()  # ids of results whose events were heard


def runner(found: Any, target: Any) -> Any:
    """See python_frameworks."""
    names = [cls.__name__ for cls in type(found).__mro__]
    if "Crew" in names and hasattr(found, "fetch_inputs"):
        # A crew writes what it is asked into its texts, for good: each request has a copy.
        return lambda request: _run(found.copy(), _of_crew(found, target, request))
    if "BaseAgent" in names and hasattr(found, "kickoff_async"):
        return lambda request: _run(found, _messages(request, target))
    return None


def _of_crew(crew: Any, target: Any, request: Any) -> Any:
    """What the texts of a crew ask for, by name. Raises WrongTarget where none asks for anything."""
    how = request.get("_how") or {}
    own = contexts.fields_of(request, target, "the inputs of the crew")
    if isinstance(how.get("input"), dict):
        own.update(how["input"])
    prompt = request["prompt"] if isinstance(how.get("input"), dict) else pieces.prompt_of(request, target)
    known = dict(request.get("variables") or {}, **own)
    inputs = {name: known.get(name, request.get(name, prompt)) for name in crew.fetch_inputs()}
    inputs.update({name: value for name, value in own.items() if name not in inputs})
    if not inputs:
        raise pieces.WrongTarget(target + " is a crew that asks for nothing; write {prompt} into a task's description")
    if not known.keys() & inputs.keys() or "prompt" in inputs:
        whole = pieces.with_history(request, prompt)
        inputs = {name: whole if value == prompt else value for name, value in inputs.items()}
    return inputs


def _messages(request: Any, target: Any) -> Any:
    contexts.refuse(request, target, "an agent of CrewAI takes no context; a crew takes it as its inputs")
    if (request.get("_how") or {}).get("input") is None:
        return request["messages"]
    return [*pieces.before(request), {"role": "user", "content": pieces.prompt_of(request, target)}]


def result_of(last: Any) -> Any:
    """What a crew gives in the form that its last task declares, else its text."""
    found = getattr(last, "pydantic", None) or getattr(last, "json_dict", None)
    return getattr(last, "raw", last) if found is None else found


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
        failure: Any = None
        try:
            if isinstance(asked, dict):
                result = await found.kickoff_async(inputs=asked)
            else:
                result = await found.kickoff_async(asked)
            if hasattr(result, "__aiter__"):
                async for _ in result:
                    pass
                result = result.result
        except Exception as error:  # what was called before is told first
            failure = error
        finally:
            bus.flush()
            for kind in kinds:
                bus.off(kind, tell)
    told.sort(key=lambda one: one.emission_sequence or 0)
    if failure is not None:
        for number, event in enumerate(told, 1):
            key = "call " + str(number)
            problem = getattr(event, "error", None)
            yield {"type": "tool_call", "id": key, "name": event.tool_name, "arguments": _arguments(event)}
            answer = {"error": str(problem)} if problem is not None else {"result": pieces.plain(event.output)}
            yield dict({"type": "tool_result", "id": key}, **answer)
        raise failure
    for event in told:
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
        for number, task in enumerate(getattr(result, "tasks_output", None) or [result]):
            name = getattr(task, "agent", None) or getattr(task, "agent_role", None)
            made[number] = [dict(one, agent=name) for one in made[number]]
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
            call = {"id": key, "name": event.tool_name, "arguments": _arguments(event)}
            made.append({"role": "assistant", "text": "", "reasoning": "", "calls": [call], "closed": True})
            error = getattr(event, "error", None)
            text = str(error) if error is not None else pieces.text_of(event.output, self._said.note)
            result = {"role": "tool", "call_id": key, "name": event.tool_name, "text": text}
            made.append(dict(result, error=_failed(event)))
        return made


def _arguments(event: Any) -> Any:
    return event.tool_args if isinstance(event.tool_args, str) else pieces.plain(event.tool_args)


def _failed(event: Any) -> Any:
    return type(event).__name__ == "ToolUsageErrorEvent" or getattr(event, "failure", None) is not None
