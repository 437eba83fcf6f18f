"""Agents, teams and workflows of Agno: how to run one, and what it gives. Runs in the child: only the standard library,
of Python 3.8 or later."""

from __future__ import annotations

import importlib
import sys
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Call, Message, Part, Read, Request, Run

if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_context as contexts
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    contexts = sys.modules["_agenteval.python_context"]
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]
_ENDED_BADLY = ("ERROR", "CANCELLED")


def runner(agent: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    names = [cls.__name__ for cls in type(agent).__mro__]
    if hasattr(agent, "arun") and ("Agent" in names or "Team" in names or "Workflow" in names):
        return lambda request: _run(agent, request, target, "Workflow" in names)
    return None


async def _run(agent: Any, request: Request, target: str, workflow: bool) -> AsyncIterator[object]:
    state = contexts.fields_of(request, target, "the state of the session")
    # A session of its own: the request brings all that was said.
    more: Any = {"session_id": uuid.uuid4().hex, **({"session_state": state} if state else {})}
    if workflow:
        history: Any = pieces.with_history(request, pieces.prompt_of(request, target))
    else:
        messages = _history(pieces.conversation(request, target))
        history = [importlib.import_module("agno.models.message").Message(**message) for message in messages]
        # So that the last piece is the result, which `result_of` reads.
        more["yield_run_output"] = True
    async for event in agent.arun(history, stream=True, stream_events=True, **more):
        yield event


def _history(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        names = ("role", "content", "tool_calls", "tool_call_id")
        yield {name: message[name] for name in names if message.get(name) is not None}


def result_of(last: object) -> object:
    """What it gave: an object of its `output_schema`, or its text."""
    return getattr(last, "content", last)


def whole_of(piece: Any, streamed: bool) -> str:
    """See `python_frameworks.Framework`."""
    name = type(piece).__name__
    if name == "Message" and piece.role in pieces.ANSWERING:
        return "return the whole RunOutput"
    # Without `stream_events` only texts come, and no other event of the run.
    if name in ("RunContentEvent", "RunCompletedEvent", "RunContentCompletedEvent", "IntermediateRunContentEvent"):
        return "stream with stream_events=True"
    return ""


class Pieces:
    """Reads what an agent, a team or a workflow streams or returns."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation
        self._read = read
        self._answers: dict[str, int] = {}  # how often the model of a run was asked
        self._heard: set[str] = set()  # the runs whose events came

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        name = type(piece).__name__
        if name in ("RunOutput", "TeamRunOutput", "WorkflowRunOutput"):
            self._output(piece)
        elif name.endswith("Event") and hasattr(piece, "run_id"):
            self._conversation.empty = False
            self._event(name, piece)
        elif name == "Message" and hasattr(piece, "tool_call_error"):
            self._conversation.append(self._messages([piece], None))
        else:
            return False
        return True

    def _event(self, name: str, event: Any) -> None:
        run, agent = event.run_id, getattr(event, "agent_name", None) or getattr(event, "team_name", None)
        # Events name only their run: which of its answers they are of is counted.
        key = str(run) + " " + str(self._answers.get(run, 0))
        if name == "ModelRequestStartedEvent":
            self._answers[run] = self._answers.get(run, 0) + 1
            self._heard.add(run)
        elif name == "ModelRequestCompletedEvent":
            self._conversation.total(key, pieces.usage_of(vars(event)))
            self._conversation.about(model=event.model)
        elif name == "RunContentEvent":
            texts: tuple[tuple[Part, object], ...] = (("reasoning", event.reasoning_content), ("text", event.content))
            for what, text in texts:
                if isinstance(text, str) and text:
                    self._conversation.text(text, key=key, what=what, agent=agent)
        elif name == "ToolCallStartedEvent" and event.tool is not None:
            self._conversation.call(key, _call(event.tool), agent=agent)
        elif name == "ToolCallCompletedEvent" and event.tool is not None:
            self._conversation.append([_result(event.tool)])
        # What a member of a team raised is the team's to deal with.
        elif name == "RunErrorEvent" and not event.parent_run_id:
            self._failed(event.content)
        elif name == "RunCancelledEvent" and not event.parent_run_id:
            self._failed(event.reason)
        # No event of a model came: this is all that is told of the answer.
        elif name == "RunCompletedEvent" and not self._answers and not event.parent_run_id:
            self._answer(event.content)
        elif name == "WorkflowCompletedEvent":
            self._answer(event.content, alone=_is_own(event))

    def _output(self, output: Any) -> None:
        status = getattr(output, "status", None)
        if getattr(status, "value", status) in _ENDED_BADLY:
            self._failed(output.content)
            return
        agent = getattr(output, "agent_name", None) or getattr(output, "team_name", None)
        heard = output.run_id in self._heard
        if not heard:
            self._unheard(output, agent)
        if getattr(status, "value", status) == "PAUSED":
            waiting = [tool for tool in output.tools or () if tool.is_paused]
            self._conversation.note("interrupted", ", ".join(str(tool.tool_name) for tool in waiting))
            for tool in waiting:  # which were called, and not run
                self._conversation.call(
                    str(output.run_id) + " " + str(self._answers.get(output.run_id, 0)), _call(tool), agent
                )
        self._answer(output.content, alone=not heard and not getattr(output, "messages", None) and _is_own(output))

    def _unheard(self, output: Any, agent: str | None) -> None:
        """A result without the events of its run."""
        for run in getattr(output, "step_executor_runs", None) or ():  # of a workflow
            self._output(run)
        messages = self._messages_of(output, agent)
        self._conversation.whole(messages)
        self._conversation.about(model=getattr(output, "model", None))
        if not messages and not hasattr(output, "step_results"):
            for tool in getattr(output, "tools", None) or ():
                self._conversation.call(str(output.run_id) + " " + str(tool.tool_call_id), _call(tool), agent)
                self._conversation.append([_result(tool)])
            self._conversation.total(output, pieces.usage_of(getattr(output, "metrics", None) or {}))

    def _messages_of(self, output: object, agent: str | None) -> list[Message]:
        """The messages of a run; those of a team's members come before its answer."""
        messages = self._messages(getattr(output, "messages", None) or (), agent)
        inner: list[Message] = []
        for member in getattr(output, "member_responses", None) or ():
            name = getattr(member, "agent_name", None) or getattr(member, "team_name", None)
            inner += [
                message for message in self._messages_of(member, name) if message["role"] in ("assistant", "tool")
            ]
        return [*messages[:-1], *inner, *messages[-1:]]

    def _messages(self, messages: Iterable[Any], agent: str | None) -> list[Message]:
        normal: list[Message] = []
        for message in messages:
            # The run in which it was said has told it.
            if message.from_history:
                continue
            entry = pieces.message_of(message, self._conversation.note)
            if entry["role"] == "assistant":
                used = pieces.usage_of(message.metrics)
                entry.update({"id": None, "agent": agent, "reasoning": message.reasoning_content or "", "usage": used})
            elif entry["role"] == "tool":
                entry["error"] = bool(message.tool_call_error)
            normal.append(entry)
        return normal

    def _answer(self, content: object, alone: bool = True) -> None:
        """What a run gave. A text is that of all its messages, without anything between them."""
        if content is not None and (alone or not isinstance(content, str)):
            self._conversation.final(pieces.text_of(content, self._conversation.note))

    def _failed(self, reason: object) -> None:
        """Agno gives what was raised as an answer."""
        self._read({"type": "error", "kind": "agent", "message": str(reason or "the run of Agno failed")}, True)


def _is_own(output: object) -> bool:
    """Whether a run's result isn't an agent's text, which was already reported."""
    last = (getattr(output, "step_results", None) or [None])[-1]
    return getattr(last, "executor_type", None) not in ("agent", "team")


def _call(tool: Any) -> Call:
    return {"id": tool.tool_call_id, "name": tool.tool_name, "arguments": pieces.plain(tool.tool_args or {})}


def _result(tool: Any) -> Message:
    failed, text = bool(tool.tool_call_error), str(tool.result or "")
    return {"role": "tool", "call_id": tool.tool_call_id, "name": tool.tool_name, "text": text, "error": failed}


FRAMEWORK = frameworks.Framework(
    title="Agno",
    runner=runner,
    pieces=Pieces,
    makers=(frameworks.Maker("agno", ("Agent", "Team", "Workflow")),),
    result_of=result_of,
    whole_of=whole_of,
)
