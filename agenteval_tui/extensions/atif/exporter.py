"""Runs as ATIF trajectories (Harbor, NeMo), one a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval_tui.formats.agenteval_run import KEY
from agenteval_tui.formats.exporters.exporter import (
    ATTACHED,
    LABELS,
    Exporter,
    StoredRun,
    chat_messages,
    json_line,
    own,
)
from agenteval_tui.transcripts.call_arguments import decode_arguments
from agenteval_tui.transcripts.model import Transcript, Usage

VERSION = "ATIF-v1.8"
LOSSES = (LABELS, ATTACHED)
_SOURCES = {"system": "system", "user": "user", "assistant": "agent"}
_PLAIN = frozenset({"role", "content", "tool_calls", "reasoning_content"})


def _pieces(runs: Iterable[StoredRun]) -> Iterator[str]:
    """A line a run. The runs of sub-agents that follow it are in it, where the calls that they answer refer to them."""
    family: dict[str, dict[str, Any]] = {}  # the parent and its sub-agents so far, by test
    for run in runs:
        link = run.row.variables.get("subagent")
        parent = family.get(str(link.get("of"))) if isinstance(link, Mapping) else None
        if parent is None:
            yield from _lines(family)
            family = {}
        family[run.row.test_id] = trajectory = _trajectory(run)
        if parent is not None:
            assert isinstance(link, Mapping)
            _adopt(parent, trajectory, str(link.get("call") or ""))
    yield from _lines(family)


def _lines(family: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    if family:
        yield json_line(next(iter(family.values()))) + "\n"


def _adopt(parent: dict[str, Any], child: dict[str, Any], call: str) -> None:
    """Put a sub-agent's trajectory into that of its parent."""
    parent.setdefault("subagent_trajectories", []).append(child)
    for step in parent["steps"]:
        for result in (step.get("observation") or {}).get("results", ()):
            if result["source_call_id"] == call:
                reference = {"trajectory_id": child["trajectory_id"]}
                result.setdefault("subagent_trajectory_ref", []).append(reference)


def _trajectory(run: StoredRun) -> dict[str, Any]:
    transcript = run.transcript
    agent: dict[str, Any] = {"name": run.row.agent or "agent", "version": run.row.agent_version or "unknown"}
    if transcript.model:
        agent["model_name"] = transcript.model
    steps = [{"step_id": number, **step} for number, step in enumerate(_steps(transcript), 1)]
    return {
        "schema_version": VERSION,
        "session_id": run.row.id,
        "trajectory_id": run.row.test_id,
        "agent": agent,
        "steps": steps,
        "final_metrics": {**_metrics(transcript.usage), "total_steps": len(steps)},
        "extra": {
            KEY: {**own(run, LOSSES), "repetition": run.row.repetition, "variation": run.row.variation},
        },
    }


def _metrics(usage: Usage) -> dict[str, Any]:
    written = usage.cache_write_tokens
    metrics = {
        "total_prompt_tokens": usage.input_tokens,
        "total_completion_tokens": usage.output_tokens,
        "total_cached_tokens": usage.cached_tokens,
        "total_cost_usd": usage.cost,
        "extra": None if written is None else {"cache_creation_input_tokens": written},
    }
    return {key: value for key, value in metrics.items() if value is not None}


def _steps(transcript: Transcript) -> Iterator[dict[str, Any]]:
    """A step a message; results that follow their calls are in the step of the calls. A message for which a step has no
    place is a step of the system, which holds it as it is."""
    messages = chat_messages(transcript)
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        calls = message.get("tool_calls") or []
        if message["role"] not in _SOURCES or message.keys() - _PLAIN or not all(map(_is_object, _arguments(calls))):
            yield {"source": "system", "message": _text(message), "extra": {KEY: {"message": message}}}
            continue
        step: dict[str, Any] = {"source": _SOURCES[message["role"]], "message": _text(message)}
        if message.get("reasoning_content"):
            step["reasoning_content"] = message["reasoning_content"]
        if calls:
            step["tool_calls"] = [
                {"tool_call_id": call["id"], "function_name": call["function"]["name"], "arguments": arguments}
                for call, arguments in zip(calls, _arguments(calls), strict=True)
            ]
        ids = [call["id"] for call in calls]
        results, failed = [], []
        while at < len(messages) and _answers(messages[at], ids):
            answer = messages[at]
            at += 1
            ids.remove(answer["tool_call_id"])
            results.append({"source_call_id": answer["tool_call_id"], "content": answer["content"]})
            if answer.get("is_error"):
                failed.append(answer["tool_call_id"])
        if results:
            step["observation"] = {"results": results}
        if failed:
            step["extra"] = {KEY: {"failed": failed}}
        yield step


def _answers(message: Mapping[str, Any], ids: list[str]) -> bool:
    handled = {"role", "content", "tool_call_id", "is_error"}
    return message["role"] == "tool" and message.get("tool_call_id") in ids and not message.keys() - handled


def _arguments(calls: Iterable[Mapping[str, Any]]) -> list[Any]:
    return [decode_arguments(call["function"]["arguments"])[0] for call in calls]


def _is_object(arguments: Any) -> bool:
    return isinstance(arguments, Mapping)


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


EXPORTER = Exporter(
    name="atif",
    title="ATIF trajectories",
    about="ATIF trajectories, one per line (JSONL)",
    suffix=".atif.jsonl",
    pieces=_pieces,
    losses=LOSSES,
    rank=35,
)
