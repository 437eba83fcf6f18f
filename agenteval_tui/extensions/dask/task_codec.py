"""What goes between an execution and a worker: a run's task and an agent's events, as JSON data.

No key is in a task: the agent's configuration goes as it was written, `${VAR}` unexpanded, and the request without the
configuration that the engine expanded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from agenteval_tui.agents import base as agents
from agenteval_tui.agents.base import AgentEvent, AgentRequest
from agenteval_tui.agents.permission import Permission, permission_from_json
from agenteval_tui.core.version import __version__
from agenteval_tui.grading.spec import json_like
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.transcripts import codec
from agenteval_tui.transcripts.model import Attachment, Message, Note, RunError, ToolCall, Usage
from agenteval_tui.transcripts.traceback import traceback_from

_PLAIN = {
    kind.__name__: kind
    for kind in (
        agents.AgentNamed,
        agents.TextDelta,
        agents.ReasoningDelta,
        agents.ToolCallStarted,
        agents.ToolArgumentsDelta,
        agents.ToolCallFinished,
        agents.TurnEnded,
        agents.Preparing,
        agents.Prepared,
        agents.Restarted,
        agents.TextWasReasoning,
        agents.LogLine,
        agents.Printed,
        agents.ModelAsked,
        agents.Done,
    )
}


class Task(Struct, frozen=True):
    """One attempt of one run, or one turn of it. `topic` is where its events are published."""

    version: str
    topic: str
    agent: AgentPlan
    permission: Permission
    request: AgentRequest


def task_data(topic: str, agent: AgentPlan, request: AgentRequest, permission: Permission) -> dict[str, Any]:
    """A task as JSON data: see `read_task`."""
    return {
        "version": __version__,
        "topic": topic,
        "agent": {"name": agent.name, "config": json_like(agent.config), "base_dir": str(agent.base_dir)},
        "permission": permission.to_json(),
        "request": {
            "messages": [asdict(message) for message in request.messages],
            "tool_calls": [{**asdict(call), "arguments": json_like(call.arguments)} for call in request.tool_calls],
            "context": json_like(request.context),
            "test_id": request.test_id,
            "repetition": request.repetition,
            "seed": request.seed,
            "run": request.run,
            "turn": request.turn,
            "variables": json_like(request.variables),
        },
    }


def read_task(data: Mapping[str, Any]) -> Task:
    """The task in what `task_data` gave. Raises KeyError or TypeError when it is something else."""
    agent_data, asked = data["agent"], data["request"]
    request = AgentRequest(
        **{
            **asked,
            "messages": tuple(_message(each) for each in asked["messages"]),
            "tool_calls": tuple(ToolCall(**each) for each in asked["tool_calls"]),
        }
    )
    agent = AgentPlan(agent_data["name"], agent_data["config"], Path(agent_data["base_dir"]), "")
    return Task(str(data["version"]), str(data["topic"]), agent, permission_from_json(data["permission"]), request)


def event_data(event: AgentEvent) -> list[Any]:
    """An event as JSON data: its kind and its fields. Raises TypeError for anything that is not an event."""
    name = type(event).__name__
    if name in _PLAIN:
        return [name, asdict(event)]
    match event:
        case agents.PromptSent(messages):
            return [name, [_message_data(message) for message in messages]]
        case agents.UsageReported(usage, model):
            return [name, {**asdict(usage), "model": model}]
        case agents.Noted(note):
            return [name, asdict(note)]
        case agents.Attached(attachment):
            return [name, asdict(attachment)]
        case agents.Recorded(transcript) | agents.Seen(transcript):
            return [name, codec.to_json(transcript)]
        case agents.Captured(transcript, tape, answers):
            return [name, [codec.to_json(transcript), list(tape), answers]]
        case agents.Failed(error, retry, retry_after_s):
            return [name, [to_builtins(error), retry, retry_after_s]]
    raise TypeError(f"the agent yielded a {name}, which is not an event")


def _message_data(message: Message) -> dict[str, Any]:
    return {**asdict(message), "attachments": [asdict(attachment) for attachment in message.attachments]}


def read_event(data: Any) -> AgentEvent:
    """The event in what `event_data` gave. Raises KeyError, TypeError or ValueError when it is something else."""
    name, fields = data
    if name in _PLAIN:
        event: AgentEvent = _PLAIN[name](**fields)
        return event
    match name:
        case "PromptSent":
            return agents.PromptSent(tuple(_message(message) for message in fields))
        case "UsageReported":
            return agents.UsageReported(
                Usage(**{key: value for key, value in fields.items() if key != "model"}), fields["model"]
            )
        case "Noted":
            return agents.Noted(Note(**fields))
        case "Attached":
            return agents.Attached(Attachment(**fields))
        case "Recorded":
            return agents.Recorded(codec.from_json(fields))
        case "Seen":
            return agents.Seen(codec.from_json(fields))
        case "Captured":
            transcript, tape, answers = fields
            return agents.Captured(codec.from_json(transcript), tuple(tape), answers)
        case "Failed":
            error, retry, retry_after_s = fields
            traceback = traceback_from(error.pop("traceback", None))
            return agents.Failed(RunError(**error, traceback=traceback), bool(retry), retry_after_s)
    raise ValueError(f"there is no event {name!r}")


def _message(data: Mapping[str, Any]) -> Message:
    attachments = tuple(Attachment(**attachment) for attachment in data.get("attachments") or ())
    return Message(**{**data, "tool_calls": tuple(data["tool_calls"]), "attachments": attachments})
