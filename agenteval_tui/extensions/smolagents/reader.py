"""Agents of smolagents: how to run one, and what it gives. Runs in the child: only the standard library, of Python 3.8
or later."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Call, Message, Note, Read, Request, Run

if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_context as contexts
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    contexts = sys.modules["_agenteval.python_context"]
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]


def result_of(last: object) -> object:
    """The final answer, as the agent gave it."""
    return getattr(last, "output", last)


def runner(agent: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    if hasattr(agent, "memory") and hasattr(agent, "run") and hasattr(agent, "step_callbacks"):
        return lambda request: _run(agent, request, target)
    return None


def _run(agent: Any, request: Request, target: str) -> Iterator[object]:
    prompt, fields = pieces.prompt_of(request, target), contexts.fields_of(request, target, "`additional_args`")
    more = {"additional_args": fields} if fields else {}
    with pieces.alone(agent):
        agent.memory.reset()
        agent.monitor.reset()
        agent.memory.steps.extend(_history(pieces.before(request)))
        reported: Any = None  # the step that was given last
        last = None
        in_code = _watched(agent)
        try:
            # Without `reset=False` what was said before would be forgotten.
            for piece in agent.run(prompt, stream=True, reset=False, **more):
                if type(piece).__name__ == "ActionStep":
                    reported = piece
                    if in_code is not None and in_code.is_known:
                        yield CodeCalls(in_code.take())
                if type(piece).__name__ == "FinalAnswerStep":
                    last = piece
                else:
                    yield piece
        finally:
            if in_code is not None:
                _active.remove(in_code)
        # What the agent answers after its last allowed step is not streamed.
        step = agent.memory.steps[-1]
        if type(step).__name__ == "ActionStep" and step is not reported:
            yield step
        if last is not None:
            yield last


# An agent that writes code calls its tools in it: the framework tells only the code.


class CodeCalls:
    """The calls of tools, and of other agents, in the code of the step that comes next: what was called, with which
    arguments, and what it returned or raised."""

    def __init__(self, calls: list[tuple[str, dict[str, Any], object, bool]]) -> None:
        self.calls = calls


class _InCode:
    """The calls of one run, as they are made."""

    def __init__(self) -> None:
        self.is_known = True
        self._calls: list[tuple[str, dict[str, Any], object, bool]] = []
        self._inside = 0  # a tool, or an agent, whose own calls are not those of the code

    def take(self) -> list[tuple[str, dict[str, Any], object, bool]]:
        calls, self._calls = self._calls, []
        return calls

    def call(self, function: Callable[..., Any], tool: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        # What the agent answers is told as its answer.
        if self._inside or tool.name == "final_answer":
            return function(tool, *arguments, **named)
        names = getattr(tool, "inputs", None) or ("task",)
        one_by_one = dict(zip(names, arguments))  # noqa: B905 - Python 3.8 has no `strict`
        if len(arguments) == 1 and not named and isinstance(arguments[0], dict) and set(arguments[0]) <= set(names):
            one_by_one = arguments[0]  # as `Tool.__call__` takes it
        values = {**one_by_one, **{name: value for name, value in named.items() if name in names}}
        self._inside += 1
        try:
            result = function(tool, *arguments, **named)
        except BaseException as error:
            self._calls.append((tool.name, values, str(error), True))
            raise
        finally:
            self._inside -= 1
        self._calls.append((tool.name, values, result, False))
        return result


_active: list[_InCode] = []
_observed: set[type] = set()


def _watched(agent: Any) -> _InCode | None:
    """What the agent will call in its code; None where it writes none, or where that runs in another process."""
    if type(getattr(agent, "python_executor", None)).__name__ != "LocalPythonExecutor":
        return None
    # Older versions keep other agents elsewhere.
    for tool in (*agent.tools.values(), *(getattr(agent, "managed_agents", None) or {}).values()):
        owner = next(cls for cls in type(tool).__mro__ if "__call__" in vars(cls))
        if owner not in _observed:
            _observed.add(owner)
            _observe(owner)
    in_code = _InCode()
    _active.append(in_code)
    # The code runs in a thread, which does not tell of which run it is.
    for each in _active if len(_active) > 1 else ():
        each.is_known = False
    return in_code


def _observe(owner: Any) -> None:
    function = owner.__call__

    @functools.wraps(function)
    def observed(self: object, *arguments: Any, **named: Any) -> object:
        return (
            _active[0].call(function, self, arguments, named)
            if len(_active) == 1
            else function(self, *arguments, **named)
        )

    owner.__call__ = observed


def _is_in_code(call_id: object) -> bool:
    """Whether a call was made by the code of a step: `_called_in_code` gives it such an id."""
    return _IN_CODE in str(call_id)


_IN_CODE = "/code/"


def _history(messages: list[dict[str, Any]]) -> list[Any]:
    """Steps of the messages before."""
    memory: Any = sys.modules["smolagents.memory"]
    steps: list[Any] = []
    for message in messages:
        role, content = message.get("role"), message.get("content") or ""
        if role == "assistant":
            calls = []
            for call in message.get("tool_calls") or ():
                if _is_in_code(call["id"]):
                    continue  # the model never saw it as a call
                function = call["function"]
                calls.append(memory.ToolCall(function["name"], function["arguments"], call["id"]))
            timing = memory.Timing(start_time=0.0, end_time=0.0)
            steps.append(memory.ActionStep(len(steps), timing, model_output=content, tool_calls=calls or None))
        elif role == "tool" and _is_in_code(message.get("tool_call_id")):
            continue
        elif role == "tool":
            if not steps or not hasattr(steps[-1], "observations"):
                steps.append(memory.ActionStep(len(steps), memory.Timing(start_time=0.0, end_time=0.0)))
            steps[-1].observations = "\n".join(text for text in (steps[-1].observations, content) if text)
        elif role in ("system", "developer"):
            steps.append(memory.SystemPromptStep(content))
        else:
            steps.append(memory.TaskStep(content))
    return steps


def whole_of(piece: Any, streamed: bool) -> str:
    """See `python_frameworks.Framework`."""
    name = type(piece).__name__
    if name in ("ChatMessageStreamDelta", "ActionOutput", "FinalAnswerStep"):
        return "return the whole RunResult: run(..., return_full_result=True)"
    return ""


def kept_by(value: Any) -> list[object]:
    """The memory of an agent, if it has done anything."""
    memory = getattr(value, "memory", None)
    return [memory] if getattr(memory, "steps", None) else []


_CODE = "those in the code that the agent wrote; name the agent itself as `callable`, with its local executor"
_EARLIER = "those of the steps before; return the whole RunResult: run(..., return_full_result=True)"


class Pieces:
    """Reads what an agent of smolagents streams or returns."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation
        self._number = 0  # of the current step
        self._told: dict[str, Message] = {}  # id of a call -> its result, of the current step
        self._steps: list[object] = []  # those that were read: one may come twice
        self._answered = False
        self._in_code: CodeCalls | None = None  # of the step that comes next

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        name = type(piece).__name__
        if name == "ChatMessageStreamDelta":
            if piece.content:
                self._conversation.text(piece.content, key=("step", self._number))
        elif name == "ToolCall":
            if piece.name != "python_interpreter":  # whose result, and the text before it, come with the step
                self._conversation.call(("step", self._number), _call(piece, self._conversation.note))
        elif name == "CodeCalls":
            self._in_code = piece
        elif name == "ToolOutput":
            self._told[piece.id] = {
                "role": "tool",
                "call_id": str(piece.id),
                "name": piece.tool_call.name,
                "text": piece.observation,
                "error": False,
            }
            self._conversation.append([self._told[piece.id]])
        elif name in ("ActionStep", "PlanningStep"):
            # The first that is seen is not the first: the calls of those before it are unknown.
            if not self._steps and getattr(piece, "step_number", 1) > 1:
                self._conversation.note("unread_calls", _EARLIER)
            if not any(step is piece for step in self._steps):
                self._steps.append(piece)
                self._step(piece)
        elif name == "FinalAnswerStep":
            self._final(piece.output)
        elif name == "RunResult":
            for step in piece.steps:
                if "step_number" in step or "plan" in step:
                    self._step(step)
            self._final(piece.output)
            self._conversation.only_total(piece, pieces.usage_of(piece.token_usage or {}))
        elif name == "AgentMemory":
            for step in piece.steps:
                self.read(step)
            last: Any = piece.steps[-1] if piece.steps else None
            if getattr(last, "is_final_answer", False):
                self._final(last.observations if last.action_output is None else last.action_output)
        else:
            return name in ("ActionOutput", "TaskStep", "SystemPromptStep")
        return True

    def _final(self, output: object) -> None:
        if not self._answered:
            self._conversation.about(finish="max_steps")
        if output is not None:
            if pieces.made_by(output, "smolagents"):  # a text, an image or a sound of smolagents
                output = output.to_string() if hasattr(output, "to_string") else str(output)
            self._conversation.final(pieces.text_of(output, self._conversation.note))

    def _step(self, step: Any) -> None:
        """A step as an object, or as the dict of it in a `RunResult`."""
        note = self._conversation.note
        message = pieces.field(step, "model_output_message")
        plan = pieces.field(step, "plan")
        text, thought = pieces.content_of(pieces.field(step, "model_output") if plan is None else plan, note)
        calls = pieces.field(step, "tool_calls")
        if not calls and message is not None:
            calls = pieces.field(message, "tool_calls")
        answer: Message = {"role": "assistant", "text": text, "reasoning": thought, "closed": True}
        answer.update({"id": ("step", self._number), "calls": [_call(call, note) for call in calls or ()]})
        answer["usage"] = pieces.usage_of(pieces.field(step, "token_usage") or {})
        raw = pieces.field(message, "raw") if message is not None else None
        if raw is not None:
            choices = pieces.field(raw, "choices")
            choice = choices[0] if isinstance(choices, (list, tuple)) and choices else {}
            reply = pieces.field(choice, "message")
            answer["reasoning"] = thought or (pieces.field(reply, "reasoning_content") if reply else "") or ""
            answer["model"], answer["finish"] = pieces.field(raw, "model"), pieces.field(choice, "finish_reason")
        results = self._results(step, answer["calls"])
        if any(call["name"] == "python_interpreter" for call in answer["calls"]):
            results = [*self._called_in_code(answer["calls"]), *results]
        self._conversation.one(answer)
        self._conversation.append(results)
        self._answered = self._answered or bool(pieces.field(step, "is_final_answer"))
        self._number += 1
        self._told = {}

    def _called_in_code(self, calls: list[Call]) -> list[Message]:
        """Add the calls in the code of a step to `calls`, and give their results."""
        in_code, self._in_code = self._in_code, None
        results: list[Message] = []
        if in_code is None:
            self._conversation.note("unread_calls", _CODE)
            return results
        note, prefix = self._conversation.note, str(calls[0].get("id")) + _IN_CODE
        for number, (name, arguments, result, failed) in enumerate(in_code.calls):
            call = pieces.call_of({"id": prefix + str(number), "name": name, "arguments": arguments}, note)
            calls.append(call)
            text = pieces.text_of(result, note)
            results.append({"role": "tool", "call_id": call["id"], "name": name, "text": text, "error": failed})
        return results

    def _results(self, step: Any, calls: list[Call]) -> list[Message]:
        """Results of a step's calls that were not told as they came."""
        note = self._conversation.note
        missing = [call for call in calls if call.get("id") not in self._told]
        error, observations = pieces.field(step, "error"), pieces.field(step, "observations")
        if error is not None:
            reason = pieces.field(error, "message")
            text = reason if isinstance(reason, str) else str(error)
            if observations:
                text = observations + "\n" + text
            if len(missing) > 1:
                note("unread", "which of several calls of a step failed")
            if not calls and type(error).__name__ != "AgentMaxStepsError" and _kind(error) != "AgentMaxStepsError":
                note("left_out", "a step that failed: " + text)
        elif len(missing) > 1:
            text = observations
            if observations:
                note("unread", "the results of several calls, which are one text")
            missing = []
        else:
            text = observations
        return [
            {"role": "tool", "call_id": call.get("id"), "name": call["name"], "text": text or "", "error": bool(error)}
            for call in missing
        ]


def _kind(error: object) -> object:
    return error.get("type") if isinstance(error, dict) else type(error).__name__


def _call(call: Any, note: Note) -> Call:
    return pieces.call_of(call, note)


FRAMEWORK = frameworks.Framework(
    title="smolagents",
    runner=runner,
    pieces=Pieces,
    makers=(frameworks.Maker("smolagents", ("CodeAgent", "ToolCallingAgent")),),
    result_of=result_of,
    whole_of=whole_of,
    kept_by=kept_by,
)
