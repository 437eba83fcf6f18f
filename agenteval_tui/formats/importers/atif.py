"""ATIF, the agent trajectory interchange format of Harbor (and of NeMo): `schema_version`, `agent` and `steps`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.formats.agenteval_run import KEY, is_ours, restore_or_note, without_own_fields
from agenteval_tui.formats.importers.format import Format, run_per_value
from agenteval_tui.formats.importers.message_formats import as_list, is_message, plain_text
from agenteval_tui.formats.importers.recording import Recording, as_repetition
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.model import Usage

NAME = "atif"


def can_read(value: Any) -> bool:
    """Whether a value of the file is a trajectory."""
    return (
        isinstance(value, Mapping)
        and plain_text(value.get("schema_version")).startswith("ATIF")
        and isinstance(value.get("steps"), list)
    )


def _recording(value: Mapping[str, Any]) -> Recording:
    agent = value["agent"] if isinstance(value.get("agent"), Mapping) else {}
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
            spent.add(_usage(step.get("metrics")))
        else:
            session.notes.append(f"a step is not an object: {plain_text(step)[:100]}")
    total.add(_usage(value.get("final_metrics")))
    session.usage = spent if total.total == Usage() else total
    extra = value["extra"] if isinstance(value.get("extra"), Mapping) else {}
    own = extra.get(KEY)
    # Which kind of step it is is no text of its own.
    steps = [{**step, "source": None} if isinstance(step, Mapping) else step for step in value["steps"]]
    about = {**value, "schema_version": None, "steps": steps, "extra": without_own_fields(extra, own)}
    source = (("", {**about, "agent": None} if is_ours(own) else about),)
    found = session_recording(session, source, ours=is_ours(own))
    if agent.get("version"):
        found = replace(found, variables={"agent_version": agent["version"]})
    if isinstance(own, Mapping) and is_ours(own):
        variation, repetition = plain_text(own.get("variation")), as_repetition(own.get("repetition"))
        found = replace(found, variation=variation, repetition=repetition)
    return restore_or_note(found, own)


def _messages(step: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    extra = step["extra"] if isinstance(step.get("extra"), Mapping) else {}
    ours = extra[KEY] if isinstance(extra.get(KEY), Mapping) else {}
    if is_message(ours.get("message")):
        yield dict(ours["message"])
        return
    broken = as_list(ours.get("failed"))
    source = step.get("source")
    role = {"agent": "assistant", "user": "user", "system": "system"}.get(plain_text(source), "user")
    said: dict[str, Any] = {"role": role, "content": content_text(step.get("message"))}
    calls = [one for one in as_list(step.get("tool_calls")) if isinstance(one, Mapping)]
    if step.get("reasoning_content"):
        said["reasoning"] = content_text(step["reasoning_content"])
    if calls:
        said["tool_calls"] = [
            {
                "id": one.get("tool_call_id"),
                "function": {"name": one.get("function_name"), "arguments": one.get("arguments")},
            }
            for one in calls
        ]
    observed = step["observation"] if isinstance(step.get("observation"), Mapping) else {}
    results = [one for one in as_list(observed.get("results")) if isinstance(one, Mapping)]
    if said["content"] or calls or said.get("reasoning") or not results:
        yield said
    known = [one.get("tool_call_id") for one in calls]
    for result in results:
        text = content_text(result.get("content"))
        if result.get("source_call_id") in known and result.get("source_call_id") is not None:
            about = result["extra"] if isinstance(result.get("extra"), Mapping) else {}
            told = about.get("is_error") is True or result.get("is_error") is True
            failed = told or result["source_call_id"] in broken
            answer = {"role": "tool", "tool_call_id": result["source_call_id"], "content": text}
            yield {**answer, "is_error": failed}
        elif text:  # of an action that is no tool call, or of the system
            yield {"role": "user" if role == "assistant" else role, "content": text, "name": "observation"}


def _usage(metrics: Any) -> dict[str, Any]:
    """The metrics with those that are not part of the format beside them, such as the tokens written into a cache."""
    if not isinstance(metrics, Mapping):
        return {}
    return {**(metrics["extra"] if isinstance(metrics.get("extra"), Mapping) else {}), **metrics}


FORMAT = Format(
    name=NAME,
    looks_like="ATIF trajectories: an object with `schema_version` (ATIF-v1.x), `agent` and `steps`",
    can_read=can_read,
    recordings=run_per_value(
        _recording, can_read=can_read, refusal="not a trajectory: it has no `schema_version` of ATIF and no `steps`"
    ),
    rank=15,
)
