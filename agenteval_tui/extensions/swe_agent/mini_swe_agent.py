"""mini-swe-agent's trajectories (`*.traj.json`): chat messages, each with what the program knows of it in `extra`.

Its only tool is `bash`. Where the model wrote the command as text, the command becomes a call of `bash`, and the
message that answers it the call's result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.formats.importers.message_formats import as_object, objects_in, plain_text, value_at
from agenteval_tui.formats.importers.recording import Recording
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.formats.importers.usage_import import number
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.codec import content_text

NAME = "mini-swe-agent"
TOOL = "bash"
_COMMAND = re.compile(r"```(?:bash|sh|mswea_bash_command)[ \t]*\n(.*?)\n?```", re.DOTALL)
_RETURNED = re.compile(r"\s*<returncode>(-?\d{1,9})</returncode>")
_LIMITS = ("limitsexceeded", "timeexceeded", "repeatedformaterror", "userinterruption", "")
"""How it ends without having submitted, and without an exception."""


def is_trajectory(value: Any) -> bool:
    """Whether a value of a file is a trajectory."""
    if not isinstance(value, Mapping) or not isinstance(value.get("messages"), list):
        return False
    is_told = plain_text(value.get("trajectory_format")).startswith(NAME)
    return is_told or "mini_version" in as_object(value.get("info"))


def trajectory_recording(value: Mapping[str, Any]) -> Recording:
    """The run that a trajectory is. Raises `AgentevalError` when the agent says nothing in it."""
    info = as_object(value.get("info"))
    listed = objects_in(value["messages"])
    session = Session(plain_text(value.get("instance_id")), agent=NAME, source=[("", value)])
    session.messages = list(_messages(listed))
    session.model = plain_text(value_at(info, "config", "model", "model_name"))
    session.usage = UsageReader()
    for message in listed:
        session.usage.add(value_at(message, "extra", "response", "usage"))
        seconds = number(_extra(message).get("timestamp"))
        if seconds is not None and seconds > 0:
            session.saw_ms(seconds * 1000)
    last = _extra(listed[-1]) if listed else {}
    status = plain_text(info.get("exit_status") or last.get("exit_status"))
    if status and status.lower() not in ("submitted", *_LIMITS):
        session.error = f"{status}: {plain_text(last.get('exception_str'))}".rstrip(": ")
    session.finish_reason = status
    recording = session_recording(session)
    cost = number(value_at(info, "model_stats", "instance_cost"))
    usage = recording.transcript.usage
    submission = plain_text(info.get("submission") or last.get("submission"))
    return replace(
        recording,
        test_name=session.id or recording.test_name,
        transcript=replace(recording.transcript, usage=usage if cost is None else replace(usage, cost=cost)),
        results=tuple(_results(status)),
        variables={"submission": submission} if submission else {},
    )


def _messages(listed: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    called = 0
    waiting: list[str] = []  # ids of the calls that the next messages answer
    for message in listed:
        role, extra = plain_text(message.get("role")), _extra(message)
        fields = {key: value for key, value in message.items() if key not in ("extra", "usage")}
        if role == "exit":
            continue
        if message.get("object") == "response" and isinstance(message.get("output"), list):
            yield from map(dict, objects_in(message["output"]))
        elif role == "assistant" and not message.get("tool_calls"):
            commands = _commands(message)
            waiting = [f"action_{called + number}" for number in range(1, len(commands) + 1)]
            called += len(commands)
            if commands:
                fields["tool_calls"] = [
                    {"id": name, "function": {"name": TOOL, "arguments": {"command": command}}}
                    for name, command in zip(waiting, commands, strict=True)
                ]
            yield fields
        elif role == "user" and waiting and not extra.get("interrupt_type"):
            text = content_text(message.get("content"))
            yield {"role": "tool", "content": text, "tool_call_id": waiting.pop(0), "is_error": _failed(extra, text)}
        elif role == "tool":
            yield {**fields, "is_error": _failed(extra, content_text(message.get("content")))}
        else:
            waiting = []
            yield fields


def _commands(message: Mapping[str, Any]) -> list[str]:
    """What a message has run: as the program found it; else what it finds in the text, if that is one command."""
    actions = _extra(message).get("actions")
    if isinstance(actions, list):
        return [plain_text(action["command"]) for action in objects_in(actions) if action.get("command")]
    commands = [command.strip() for command in _COMMAND.findall(content_text(message.get("content")))]
    return commands if len(commands) == 1 else []


def _failed(extra: Mapping[str, Any], text: str) -> bool:
    code = extra.get("returncode")
    if isinstance(code, int):
        return code != 0
    written = _RETURNED.match(text)
    return written is not None and int(written.group(1)) != 0


def _extra(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_object(message.get("extra"))


def _results(status: str) -> Iterator[CriterionResult]:
    if status:
        passed = status.lower() == "submitted"
        yield foreign_result(f"{NAME} submitted", passed=passed, source=NAME, reason=f"exit status: {status}")
