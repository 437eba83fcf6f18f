"""ATIF, the agent trajectory interchange format of Harbor (and of NeMo): `schema_version`, `agent` and `steps`.

A sub-agent (`subagent_trajectories`, from version 1.7 on) is a run of its own behind that of its parent: two agents are
two conversations. Its variable `subagent` says whose it is, and which call of the parent it answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.agenteval_run import KEY, is_ours, restore_or_note, without_own_fields
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import (
    as_list,
    as_object,
    is_message,
    objects_in,
    plain_text,
    value_at,
)
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_repetition, skipped_element
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.formats.stream.json_stream import BrokenElement
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.model import Usage

NAME = "atif"
_KNOWN = (1, 8)
_NUMBERS = re.compile(r"ATIF-v(\d{1,6})\.(\d{1,6})")


def can_read(value: Any) -> bool:
    """Whether a value of the file is a trajectory."""
    return (
        isinstance(value, Mapping)
        and plain_text(value.get("schema_version")).startswith("ATIF")
        and isinstance(value.get("steps"), list)
    )


def _recordings(source: Source) -> Iterator[Recording | Skipped]:
    for element in source.values():
        if isinstance(element, BrokenElement):
            yield skipped_element(element)
        elif not can_read(element.value):
            yield Skipped(_REFUSAL, element.line)
        else:
            version = plain_text(element.value["schema_version"])
            numbers = _NUMBERS.match(version)
            if numbers is not None and tuple(map(int, numbers.groups())) > _KNOWN:
                newest = ".".join(map(str, _KNOWN))
                reason = f"it is of version {version[:40]}, newer than what this program knows ({newest})"
                yield Skipped(reason, element.line, counts=False)
            yield from _family(element.value, element.line, {}, 0)


def _family(value: Mapping[str, Any], line: int, link: Mapping[str, str], depth: int) -> Iterator[Recording | Skipped]:
    """The run of a trajectory, and those of its sub-agents. `link`: whose it is, and which call it answers."""
    try:
        recording = _recording(value, link)
    except AgentevalError as error:
        yield Skipped(error.what, line)
        return
    yield recording
    children = objects_in(value.get("subagent_trajectories"))
    answers = _references(value)
    for number, child in enumerate(children, 1):
        if not isinstance(child.get("steps"), list) or depth >= _DEEPEST:
            yield Skipped(f"sub-agent {number} of {recording.test_id}: it has no steps that can be read", line)
            continue
        name = plain_text(child.get("trajectory_id")) or f"{recording.test_id}-subagent-{number}"
        own = {"of": recording.test_id, "call": answers.pop(plain_text(child.get("trajectory_id")), "")}
        yield from _family({**child, "session_id": None, "trajectory_id": name}, line, own, depth + 1)
    for name in answers:
        yield Skipped(
            f"sub-agent {name} of {recording.test_id} is in another file: import that file too", line, counts=False
        )


def _references(value: Mapping[str, Any]) -> dict[str, str]:
    """Which call each sub-agent answers, by its trajectory's id, or by the path of its file."""
    calls = {}
    for step in value["steps"]:
        results = objects_in(value_at(step, "observation", "results"))
        holders = [(result, plain_text(result.get("source_call_id"))) for result in results]
        for holder, call in [*holders, (as_object(step), "")]:
            for reference in objects_in(holder.get("subagent_trajectory_ref")):
                name = next((reference[key] for key in _REFERRED if reference.get(key)), "")
                calls[plain_text(name)] = call
    calls.pop("", None)
    return calls


_REFERRED = ("trajectory_id", "trajectory_path", "session_id")
_DEEPEST = 20
_REFUSAL = "not a trajectory: it has no `schema_version` of ATIF and no `steps`"


def _recording(value: Mapping[str, Any], link: Mapping[str, str]) -> Recording:
    agent = as_object(value.get("agent"))
    session = Session(
        plain_text(value.get("session_id") or value.get("trajectory_id")),
        agent=plain_text(agent.get("name")),
        model=plain_text(agent.get("model_name")),
    )
    spent, total = UsageReader(), UsageReader()
    for step in value["steps"]:
        if isinstance(step, Mapping):
            session.saw(step.get("timestamp"))
            session.messages += _messages(step)
            session.model = session.model or plain_text(step.get("model_name"))
            if step.get("is_copied_context") is not True:  # of an earlier trajectory, which counts there
                spent.add(_usage(step.get("metrics")))
        else:
            session.notes.append(f"a step is not an object: {plain_text(step)[:100]}")
    total.add(_usage(value.get("final_metrics")))
    session.usage = spent if total.total == Usage() else total
    extra = as_object(value.get("extra"))
    own = extra.get(KEY)
    # Which kind of step it is is no text of its own.
    steps = [_without_references(step) if isinstance(step, Mapping) else step for step in value["steps"]]
    about = {**value, "schema_version": None, "steps": steps, "extra": without_own_fields(extra, own)}
    about |= {"subagent_trajectories": None, "trajectory_id": None}
    source = (("", {**about, "agent": None} if is_ours(own) else about),)
    recording = session_recording(session, source, ours=is_ours(own))
    version = {"agent_version": agent["version"]} if agent.get("version") else {}
    if version or link:
        recording = replace(recording, variables={**version, **({"subagent": dict(link)} if link else {})})
    if link:
        recording = replace(recording, test_name=f"{recording.agent or 'sub-agent'}: {recording.test_name}")
    if isinstance(own, Mapping) and is_ours(own):
        variation, repetition = plain_text(own.get("variation")), as_repetition(own.get("repetition"))
        recording = replace(recording, variation=variation, repetition=repetition)
    return restore_or_note(recording, own)


def _without_references(step: Mapping[str, Any]) -> dict[str, Any]:
    """A step without what is read of it elsewhere: which kind it is, and whose trajectories it refers to."""
    copy = {**step, "source": None, "subagent_trajectory_ref": None}
    observed = step.get("observation")
    if isinstance(observed, Mapping) and isinstance(observed.get("results"), list):
        results = [
            {**result, "subagent_trajectory_ref": None} if isinstance(result, Mapping) else result
            for result in observed["results"]
        ]
        copy["observation"] = {**observed, "results": results}
    return copy


def _messages(step: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    ours = as_object(value_at(step, "extra", KEY))
    if is_message(ours.get("message")):
        yield dict(ours["message"])
        return
    broken = as_list(ours.get("failed"))
    source = step.get("source")
    role = {"agent": "assistant", "user": "user", "system": "system"}.get(plain_text(source), "user")
    message: dict[str, Any] = {"role": role, "content": content_text(step.get("message"))}
    calls = objects_in(step.get("tool_calls"))
    if step.get("reasoning_content"):
        message["reasoning"] = content_text(step["reasoning_content"])
    if calls:
        message["tool_calls"] = [
            {
                "id": call.get("tool_call_id"),
                "function": {"name": call.get("function_name"), "arguments": call.get("arguments")},
            }
            for call in calls
        ]
    results = objects_in(value_at(step, "observation", "results"))
    if message["content"] or calls or message.get("reasoning") or not results:
        yield message
    call_ids = [call.get("tool_call_id") for call in calls]
    for result in results:
        text = content_text(result.get("content"))
        if result.get("source_call_id") in call_ids and result.get("source_call_id") is not None:
            is_error = value_at(result, "extra", "is_error") is True or result.get("is_error") is True
            failed = is_error or result["source_call_id"] in broken
            answer = {"role": "tool", "tool_call_id": result["source_call_id"], "content": text}
            yield {**answer, "is_error": failed}
        elif text:  # of an action that is no tool call, or of the system
            yield {"role": "user" if role == "assistant" else role, "content": text, "name": "observation"}


def _usage(metrics: Any) -> dict[str, Any]:
    """The metrics with those that are not part of the format beside them, such as the tokens written into a cache."""
    if not isinstance(metrics, Mapping):
        return {}
    return {**as_object(metrics.get("extra")), **metrics}


FORMAT = Format(
    name=NAME,
    title="ATIF trajectories",
    looks_like="an object with `schema_version` (ATIF-v1.x), `agent` and `steps`",
    can_read=can_read,
    recordings=_recordings,
    rank=15,
)
