"""SWE-agent's trajectories (`*.traj`): `history`, the messages, and `trajectory`, the actions with their observations.

An action that the model wrote as text becomes a call of the tool `bash`, its observation the call's result: so that
criteria about tools see it. Where the model called tools, the messages have the calls. Trajectories of mini-swe-agent
are another format (`mini_swe_agent`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.extensions.swe_agent.mini_swe_agent import is_trajectory, trajectory_recording
from agenteval_tui.formats.importers.format import Format, run_per_value
from agenteval_tui.formats.importers.message_formats import as_list, as_object, objects_in, plain_text
from agenteval_tui.formats.importers.recording import Recording, first_user_text
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult

NAME = "swe-agent"
TOOL = "bash"
_ENDED_WELL = ("submitted",)


def can_read(value: Any) -> bool:
    """Whether a value of the file is a trajectory."""
    if is_trajectory(value):
        return True
    if not isinstance(value, Mapping) or not isinstance(value.get("history"), list):
        return False
    if isinstance(value.get("trajectory"), list):
        return True
    first = next(iter(value["history"]), None)
    return isinstance(first, Mapping) and "role" in first and "agent" in first


def _recording(value: Mapping[str, Any]) -> Recording:
    if is_trajectory(value):
        return trajectory_recording(value)
    info = as_object(value.get("info"))
    environment = plain_text(value.get("environment"))
    session = Session(environment, agent=NAME, source=[("", value)])
    session.finish_reason = plain_text(info.get("exit_status"))
    history = objects_in(value["history"])
    session.messages = [*_messages(history), *_later(history, as_list(value.get("trajectory")))]
    stats = info.get("model_stats")
    if isinstance(stats, Mapping):
        spent = {"input_tokens": stats.get("tokens_sent"), "output_tokens": stats.get("tokens_received")}
        session.usage = UsageReader()
        session.usage.add({**spent, "cost": stats.get("instance_cost")})
    recording = session_recording(session)
    submission = plain_text(info.get("submission"))
    transcript = recording.transcript
    variables = {"submission": submission} if submission else {}
    message = next(
        (message for message in transcript.messages if message.role == "user" and message.name != "demonstration"), None
    )
    prompt = message.content if message is not None else first_user_text(transcript)
    name = environment or "trajectory"
    return replace(
        recording,
        results=tuple(_results(info)),
        variables=variables,
        prompt=prompt,
        test_name=name,
    )


def _messages(history: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    called = 0
    waiting = ""  # the id of the call that the next message answers
    for message in history:
        role, content = plain_text(message.get("role")), message.get("content")
        if message.get("is_demo") is True:
            yield {"role": role, "content": content, "name": "demonstration"}
        elif isinstance(message.get("tool_calls"), list) and message["tool_calls"]:
            yield {"role": "assistant", "content": content, "tool_calls": message["tool_calls"]}
        elif role == "tool":
            ids = as_list(message.get("tool_call_ids"))
            yield {"role": "tool", "content": content, "tool_call_id": ids[0] if ids else message.get("tool_call_id")}
        elif role == "assistant" and plain_text(message.get("action")).strip():
            called += 1
            waiting = f"action_{called}"
            call = {"id": waiting, "function": {"name": TOOL, "arguments": {"command": message["action"]}}}
            yield {"role": "assistant", "content": content, "tool_calls": [call]}
        elif role == "user" and waiting:
            yield {"role": "tool", "content": content, "tool_call_id": waiting}
            waiting = ""
        else:
            yield {"role": role or "user", "content": content}


def _later(history: list[Mapping[str, Any]], steps: list[Any]) -> Iterator[dict[str, Any]]:
    """The last steps, which the history ended before: `submit`, mostly."""
    acted = sum(message.get("role") == "assistant" and message.get("is_demo") is not True for message in history)
    for number, step in enumerate(steps[acted:] if acted else (), 1):
        if isinstance(step, Mapping) and plain_text(step.get("action")).strip():
            call = {"id": f"step_{number}", "function": {"name": TOOL, "arguments": {"command": step["action"]}}}
            yield {"role": "assistant", "content": step.get("thought") or step.get("response"), "tool_calls": [call]}
            yield {"role": "tool", "content": step.get("observation"), "tool_call_id": call["id"]}


def _results(info: Mapping[str, Any]) -> Iterator[CriterionResult]:
    status = plain_text(info.get("exit_status"))
    if status:
        passed = True if status in _ENDED_WELL else None if status.startswith("submitted") else False
        yield foreign_result("SWE-agent submitted", passed=passed, source=NAME, reason=f"exit status: {status}")


FORMAT = Format(
    name=NAME,
    title="SWE-agent trajectories",
    looks_like="an object with `history` and `trajectory`; those of mini-swe-agent",
    can_read=can_read,
    recordings=run_per_value(_recording, can_read=can_read, refusal="not a trajectory: it has no `history`"),
    aliases=("mini-swe-agent",),
    rank=42,
)
