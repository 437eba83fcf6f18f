"""tau-bench results: a list of `{task_id, trial, reward, info: {task: {...}, reward_info}, traj: [messages]}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.analysis.blame.expectation import LACKED
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.agenteval_run import KEY, is_ours, restore_or_note, without_own_fields
from agenteval_tui.formats.importers.derived_criteria import criteria_of_actions
from agenteval_tui.formats.importers.format import Format, run_per_value
from agenteval_tui.formats.importers.message_formats import as_object, plain_text, value_at
from agenteval_tui.formats.importers.recording import Recording, first_user_text
from agenteval_tui.formats.importers.usage_import import number
from agenteval_tui.grading.grade import foreign_result, unreadable_result
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model import RunError

NAME = "tau-bench"
REWARD = "tau-bench reward"


def can_read(value: Any) -> bool:
    """Whether a value of the file is a tau-bench result."""
    return isinstance(value, Mapping) and "task_id" in value and "traj" in value


def _recording(value: Mapping[str, Any]) -> Recording:
    """A task's trial as a repetition of one test, the reward as a criterion result."""
    task_id, trial, reward = value["task_id"], value.get("trial"), value.get("reward")
    if isinstance(task_id, bool) or not isinstance(task_id, int | str) or not str(task_id).strip():
        raise AgentevalError("`task_id` is neither a number nor a text")
    if not isinstance(value["traj"], list):
        raise AgentevalError("`traj` is not a list of messages")
    info = as_object(value.get("info"))
    task = as_object(info.get("task"))
    transcript = from_openai_messages([_marked(message) for message in value["traj"]])
    if info.get("error"):
        # What tau-bench writes when the run itself broke: a reward of 0 that says nothing about the agent.
        transcript = replace(transcript, error=RunError.told("tau-bench", str(info["error"])))
    elif not transcript.messages and not is_ours(info.get(KEY)):
        raise AgentevalError("`traj` is empty")
    recording = Recording(
        test_id=str(task_id),
        test_name=f"Task {task_id}",
        transcript=transcript,
        repetition=trial + 1 if isinstance(trial, int) and not isinstance(trial, bool) and trial >= 0 else None,
        prompt=first_user_text(transcript) or str(task.get("instruction") or ""),
        variables=_variables(task),
        expected=criteria_of_actions(task.get("actions"), transcript, tool=NAME),
        results=() if transcript.error is not None else (_verdict(reward, info),),
        variation=plain_text(info.get("variation")),
        source=(("", {**value, "info": without_own_fields(info, info.get(KEY))}),),
    )
    return restore_or_note(recording, info.get(KEY))


def _marked(message: object) -> object:
    """A tool's answer, marked as failed where it says so: tau-bench's tools give the error as their result."""
    if not isinstance(message, Mapping) or message.get("role") != "tool" or "is_error" in message:
        return message
    content = message.get("content")
    return {**message, "is_error": isinstance(content, str) and content.lstrip().startswith("Error:")}


def _variables(task: Mapping[str, Any]) -> dict[str, Any]:
    """What the task's author knew: the right actions as `expected_actions`, and what the user was told to want."""
    variables = {"expected_actions": task.get("actions"), **{key: task.get(key) for key in _TASK}}
    return {key: value for key, value in variables.items() if value is not None}


_TASK = ("user_id", "instruction", "outputs")


def _verdict(reward: Any, info: Mapping[str, Any]) -> CriterionResult:
    if reward is None:
        return foreign_result(REWARD, source=NAME, reason="the file gives no reward")
    if isinstance(reward, str | bool) or number(reward) is None:
        return unreadable_result(REWARD, source=NAME, reason=f"the reward can't be read: {plain_text(reward)}")
    # tau-bench itself calls a run successful when its reward is 1, give or take 1e-6.
    criterion_result = foreign_result(
        REWARD, score=float(reward), passed=abs(reward - 1) <= 1e-6, source=NAME, reason=_reason(reward, info)
    )
    lacked = _lacked_outputs(info)
    return replace(criterion_result, fields={LACKED: lacked}) if lacked else criterion_result


def _lacked_outputs(info: Mapping[str, Any]) -> list[str]:
    """The outputs that the agent never said, as tau-bench's own evaluation found."""
    outputs = as_object(value_at(info, "reward_info", "info", "outputs"))
    return [str(key) for key, there in outputs.items() if not there]


def _reason(reward: float, info: Mapping[str, Any]) -> str:
    reason = f"tau-bench gave a reward of {reward:g}"
    details = as_object(value_at(info, "reward_info", "info"))
    if details.get("r_actions") == 0:
        reason += ": the database is not in the state that the right actions lead to"
    elif details.get("r_outputs") == 0:
        missing = _lacked_outputs(info)
        reason += ": the answer lacks " + (", ".join(map(repr, missing)) if missing else "what it must say")
    return reason


FORMAT = Format(
    name=NAME,
    title="tau-bench results",
    looks_like="a list of objects with `task_id`, `reward` and `traj`",
    can_read=can_read,
    recordings=run_per_value(
        _recording, can_read=can_read, refusal="not a tau-bench result: it has no `task_id` and `traj`"
    ),
    rank=40,
)
