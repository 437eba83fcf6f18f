"""Crews and agents of CrewAI: how to run one, and what it gives. Runs in the child: only the standard library, of
Python 3.8 or later."""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Call, Message, Read, Request, Run

if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_context as contexts
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    contexts = sys.modules["_agenteval.python_context"]
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]
_KEPT = "what CrewAI keeps in events: calls in words, which calls failed; name the crew or the agent itself"
_OTHER_TASKS = "those of other tasks than that of a TaskOutput; return the whole CrewOutput"
_ran: set[int] = set()  # ids of results whose events were heard


def runner(agent: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    if getattr(agent, "is_crew_class", None) is True and callable(getattr(agent, "crew", None)):
        agent = agent.crew()  # an object of a class with @CrewBase
    names = [cls.__name__ for cls in type(agent).__mro__]
    if "Crew" in names and hasattr(agent, "fetch_inputs"):
        # A crew writes what it is asked into its texts, for good: each request has a copy.
        return lambda request: _run(agent.copy(), _of_crew(agent, target, request))
    if "BaseAgent" in names and hasattr(agent, "kickoff_async"):
        return lambda request: _run(agent, _messages(request, target))
    return None


def _of_crew(crew: Any, target: str, request: Request) -> dict[str, Any]:
    """What the texts of a crew ask for, by name. Raises WrongTarget where none asks for anything."""
    how = request.get("_how") or {}
    own = contexts.fields_of(request, target, "the inputs of the crew")
    if isinstance(how.get("input"), dict):
        own.update(how["input"])
    prompt = request["prompt"] if isinstance(how.get("input"), dict) else pieces.prompt_of(request, target)
    variables = dict(request.get("variables") or {}, **own)
    inputs = {name: variables.get(name, request.get(name, prompt)) for name in crew.fetch_inputs()}
    inputs.update({name: value for name, value in own.items() if name not in inputs})
    if not inputs:
        raise pieces.WrongTarget(target + " is a crew that asks for nothing; write {prompt} into a task's description")
    if not variables.keys() & inputs.keys() or "prompt" in inputs:
        whole = pieces.with_history(request, prompt)
        inputs = {name: whole if value == prompt else value for name, value in inputs.items()}
    return inputs


def _messages(request: Request, target: str) -> list[dict[str, Any]]:
    contexts.refuse(request, target, "an agent of CrewAI takes no context; a crew takes it as its inputs")
    return pieces.conversation(request, target)


def result_of(last: object) -> object:
    """What a crew gives in the form that its last task declares, else its text."""
    structured = getattr(last, "pydantic", None) or getattr(last, "json_dict", None)
    return getattr(last, "raw", last) if structured is None else structured


async def _run(agent: Any, inputs: object) -> AsyncIterator[object]:
    bus: Any = importlib.import_module("crewai.events").crewai_event_bus
    usage_events: Any = importlib.import_module("crewai.events.types.tool_usage_events")
    kinds = (usage_events.ToolUsageFinishedEvent, usage_events.ToolUsageErrorEvent)
    events: list[Any] = []

    def tell(source: Any, event: Any) -> None:
        events.append(event)

    async with pieces.alone_async(bus):  # which is the same for all crews of a process
        for kind in kinds:
            bus.register_handler(kind, tell)
        failure: Exception | None = None
        try:
            if isinstance(inputs, dict):
                result = await agent.kickoff_async(inputs=inputs)
            else:
                result = await agent.kickoff_async(inputs)
            if hasattr(result, "__aiter__"):
                # A crew that streams has its result only when the stream has ended.
                async for _ in result:
                    pass
                result = result.result
        except Exception as error:  # what was called before is told first
            failure = error
        finally:
            # The bus tells its handlers in threads of its own; they may be behind.
            bus.flush()
            for kind in kinds:
                bus.off(kind, tell)
    # In threads the order is not that of what happened.
    events.sort(key=lambda event: event.emission_sequence or 0)
    if failure is not None:
        for number, event in enumerate(events, 1):
            key = "call " + str(number)
            problem = getattr(event, "error", None)
            yield {"type": "tool_call", "id": key, "name": event.tool_name, "arguments": _arguments(event)}
            answer = {"error": str(problem)} if problem is not None else {"result": pieces.plain(event.output)}
            yield dict({"type": "tool_result", "id": key}, **answer)
        raise failure
    for event in events:
        yield event
    _ran.add(id(result))
    yield result


class Pieces:
    """Reads what a crew or an agent returns, and its events."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation
        self._events: list[Any] = []

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        name = type(piece).__name__
        if name in ("ToolUsageFinishedEvent", "ToolUsageErrorEvent"):
            self._events.append(piece)
            self._conversation.empty = False
        elif name in ("CrewOutput", "LiteAgentOutput", "TaskOutput"):
            self._result(piece)
        else:
            return False
        return True

    def _result(self, result: Any) -> None:
        heard = id(result) in _ran
        _ran.discard(id(result))
        tasks = [list(map(dict, task.messages or ())) for task in getattr(result, "tasks_output", None) or [result]]
        by_task = [[pieces.message_of(message, self._conversation.note) for message in task] for task in tasks]
        for number, task in enumerate(getattr(result, "tasks_output", None) or [result]):
            name = getattr(task, "agent", None) or getattr(task, "agent_role", None)
            for message in by_task[number]:
                message["agent"] = name
        if any(message.get("calls") for task in by_task for message in task):
            self._mark([message for task in by_task for message in task])
        elif self._events:
            by_task.insert(0, self._called())
        if not heard:
            # A task whose messages have no calls may have called in words.
            known = all(any(message.get("calls") for message in task) for task in by_task)
            self._conversation.note("left_out" if known else "unread_calls", _KEPT)
            if type(result).__name__ == "TaskOutput":
                self._conversation.note("unread_calls", _OTHER_TASKS)
        for task in by_task:
            self._conversation.append(task)
        metrics = getattr(result, "token_usage", None) or {}
        self._conversation.only_total(result, pieces.usage_of(metrics))
        self._conversation.final(result.raw or "")

    def _mark(self, messages: list[Message]) -> None:
        """Results of calls that failed: the messages do not say which."""
        results = {message["call_id"]: message for message in messages if message["role"] == "tool"}
        calls = [call for message in messages for call in message.get("calls", ())]
        for event in self._events:
            call = next((call for call in calls if call["name"] == event.tool_name), None)
            if call is None:
                continue
            # The next event of this tool is of another call.
            calls.remove(call)
            if call.get("id") in results:
                results[call["id"]]["error"] = _failed(event)

    def _called(self) -> list[Message]:
        """Calls and results of a model that calls tools in words."""
        messages: list[Message] = []
        for number, event in enumerate(self._events, 1):
            key = "call " + str(number)
            call: Call = {"id": key, "name": event.tool_name, "arguments": _arguments(event)}
            messages.append({"role": "assistant", "text": "", "reasoning": "", "calls": [call], "closed": True})
            error = getattr(event, "error", None)
            text = str(error) if error is not None else pieces.text_of(event.output, self._conversation.note)
            failed = _failed(event)
            messages.append({"role": "tool", "call_id": key, "name": event.tool_name, "text": text, "error": failed})
        return messages


def _arguments(event: Any) -> object:
    return event.tool_args if isinstance(event.tool_args, str) else pieces.plain(event.tool_args)


def _failed(event: Any) -> bool:
    return type(event).__name__ == "ToolUsageErrorEvent" or getattr(event, "failure", None) is not None


FRAMEWORK = frameworks.Framework(
    title="CrewAI",
    runner=runner,
    pieces=Pieces,
    makers=(frameworks.Maker("crewai", ("Crew", "Agent")),),
    result_of=result_of,
)
