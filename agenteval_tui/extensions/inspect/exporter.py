"""Runs as an Inspect log (JSON), so that `inspect view` opens them: tests are samples, repetitions epochs, criteria
scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from agenteval_tui.core.numbers import iso
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
from agenteval_tui.grading.explain import why
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.transcripts.call_arguments import decode_arguments
from agenteval_tui.transcripts.model import Transcript, Usage

LOSSES = (LABELS, ATTACHED)
_ROLES = ("system", "user", "assistant", "tool")
_PLAIN = frozenset({"role", "content", "tool_calls", "reasoning_content", "tool_call_id", "is_error"})
_STOPS = {
    "stop": "stop",
    "end_turn": "stop",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "content_filter": "content_filter",
}
_GRADES = {Outcome.PASSED: "C", Outcome.FAILED: "I"}


def _pieces(runs: Iterable[StoredRun]) -> Iterator[str]:
    """The log's head, then sample by sample: it is written as a stream. What sums them up comes last."""
    iterator = iter(runs)
    first = next(iterator, None)
    if first is None:
        yield json_line(_head("", "", None) | {"samples": []}) + "\n"
        return
    head = _head(first.row.suite_name, first.transcript.model or first.row.agent, first.row.started_ms)
    yield json_line(head)[:-1] + ', "samples": [\n'
    counts: Counter[str] = Counter()
    models: dict[str, Usage] = {}
    used_ids: set[tuple[str, int]] = set()
    before = ""
    for run in chain([first], iterator):
        counts[run.row.status] += 1
        model = run.transcript.model or run.row.agent or "unknown"
        models[model] = models.get(model, Usage()) + run.transcript.usage
        yield before + json_line(_sample(run, model, used_ids))
        before = ",\n"
    total = sum(counts.values())
    results = {"total_samples": total, "completed_samples": total - counts["cancelled"], "scores": []}
    stats = {"model_usage": {model: _usage(usage) for model, usage in models.items()}}
    yield "\n], " + json_line({"results": results, "stats": stats})[1:] + "\n"


def _head(task: str, model: str, started_ms: int | None) -> dict[str, Any]:
    evaluation = {
        "created": iso(started_ms or 0),
        "task": task or "agenteval",
        "dataset": {"name": task},
        "model": model or "unknown",
        "config": {},
        "metadata": {KEY: {"version": 1}},
    }
    return {"version": 2, "status": "success", "eval": evaluation}


def _sample(run: StoredRun, model: str, used_ids: set[tuple[str, int]]) -> dict[str, Any]:
    row, transcript = run.row, run.transcript
    name = row.case_name
    sample_id, number = name, 1
    while (sample_id, row.repetition) in used_ids:
        number += 1
        sample_id = f"{name} ({number})"
    used_ids.add((sample_id, row.repetition))
    messages = list(_messages(transcript))
    answer = next((message for message in reversed(messages) if message["role"] == "assistant"), None)
    sample: dict[str, Any] = {
        "id": sample_id,
        "epoch": row.repetition,
        "input": row.prompt_head,
        "target": "",
        "messages": messages,
        "output": {
            "model": model,
            "completion": transcript.final_output,
            "choices": [],
            "usage": _usage(transcript.usage),
        },
        "scores": {result.criterion: _score(result) for result in run.results if result.outcome in _GRADES},
        "metadata": {KEY: {**own(run, LOSSES), "repetition": row.repetition, "variation": row.variation}},
        "model_usage": {model: _usage(transcript.usage)},
    }
    if answer is not None:
        stop = _STOPS.get(transcript.finish_reason, "unknown" if transcript.finish_reason else "stop")
        sample["output"]["choices"] = [{"message": answer, "stop_reason": stop}]
    if row.duration_ms is not None:
        sample["total_time"] = row.duration_ms / 1000
    if transcript.error is not None:
        message = transcript.error.message
        sample["error"] = {"message": message, "traceback": message, "traceback_ansi": message}
    return sample


def _messages(transcript: Transcript) -> Iterator[dict[str, Any]]:
    for message in chat_messages(transcript):
        calls = message.get("tool_calls") or []
        content = message["content"] if isinstance(message.get("content"), str) else ""
        if message["role"] not in _ROLES or message.keys() - _PLAIN:
            # Inspect knows no such message: it is there as a user's, and comes back as it was.
            role = message["role"] if message["role"] in ("system", "assistant") and not calls else "user"
            yield {"role": role, "content": content, "metadata": {KEY: {"message": message}}}
            continue
        message_out: dict[str, Any] = {"role": message["role"], "content": content}
        if message.get("reasoning_content"):
            thought = {"type": "reasoning", "reasoning": message["reasoning_content"]}
            message_out["content"] = [thought, *([{"type": "text", "text": content}] if content else [])]
        if calls:
            message_out["tool_calls"] = [_call(call) for call in calls]
        if message["role"] == "tool":
            message_out["tool_call_id"] = message.get("tool_call_id")
            if message.get("is_error"):
                message_out["error"] = {"type": "unknown", "message": content}
        yield message_out


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    text = call["function"]["arguments"]
    arguments, malformed = decode_arguments(text)
    fields = {"id": call["id"], "function": call["function"]["name"], "type": "function"}
    if malformed or not isinstance(arguments, Mapping):
        return {**fields, "arguments": {}, "parse_error": text}
    return {**fields, "arguments": arguments}


def _score(result: CriterionResult) -> dict[str, Any]:
    value = _GRADES[result.outcome] if result.score is None else result.score
    return {"value": value, "answer": result.value, "explanation": why(result)}


def _usage(usage: Usage) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if usage.input_tokens is not None:
        # Inspect counts what came from a cache, or went into it, beside the input; here it is a part of it.
        apart = (usage.cached_tokens or 0) + (usage.cache_write_tokens or 0)
        fields["input_tokens"] = max(0, usage.input_tokens - apart)
    if usage.output_tokens is not None:
        fields["output_tokens"] = usage.output_tokens
    if usage.total_tokens is not None:
        fields["total_tokens"] = usage.total_tokens
    if usage.cached_tokens is not None:
        fields["input_tokens_cache_read"] = usage.cached_tokens
    if usage.cache_write_tokens is not None:
        fields["input_tokens_cache_write"] = usage.cache_write_tokens
    if usage.reasoning_tokens is not None:
        fields["reasoning_tokens"] = usage.reasoning_tokens
    return fields


EXPORTER = Exporter(
    name="inspect",
    title="Inspect log",
    about="an Inspect log (JSON), for `inspect view`",
    suffix=".inspect.json",
    pieces=_pieces,
    losses=LOSSES,
    rank=36,
)
