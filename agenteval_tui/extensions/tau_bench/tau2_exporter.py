"""Runs as tau2-bench results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from agenteval_tui.core.numbers import iso
from agenteval_tui.extensions.tau_bench.exporter import reward_of
from agenteval_tui.formats.agenteval_run import KEY
from agenteval_tui.formats.exporters.exporter import (
    ATTACHED,
    LABELS,
    Exporter,
    StoredRun,
    chat_messages,
    json_line,
    json_list,
    own,
)
from agenteval_tui.transcripts.call_arguments import decode_arguments

LOSSES = (LABELS, ATTACHED)


def _pieces(runs: Iterable[StoredRun]) -> Iterator[str]:
    rest = iter(runs)
    first = next(rest, None)
    agent = {"agent_info": {"llm": first.row.agent}} if first is not None and first.row.agent else {}
    yield f'{{"info": {json_line(agent)}, "tasks": [], "simulations": '
    yield from json_list(_tau2_simulation(run) for run in chain([] if first is None else [first], rest))
    yield "}\n"


def _tau2_simulation(run: StoredRun) -> dict[str, Any]:
    messages = []
    for message in chat_messages(run.transcript):
        fields = {key: value for key, value in message.items() if key not in ("tool_calls", "tool_call_id", "is_error")}
        if "tool_calls" in message:
            fields["tool_calls"] = [
                {
                    "id": tool_call["id"],
                    "name": tool_call["function"]["name"],
                    "arguments": decode_arguments(tool_call["function"]["arguments"])[0],
                }
                for tool_call in message["tool_calls"]
            ]
        if message["role"] == "tool":
            fields |= {"id": message.get("tool_call_id"), "error": message.get("is_error", False)}
        messages.append(fields)
    transcript = run.transcript
    usage = transcript.usage
    if usage.input_tokens is not None or usage.output_tokens is not None:
        # Of the whole run, where readers add up: in the last of the agent's messages.
        last = next((message for message in reversed(messages) if message["role"] == "assistant"), None)
        if last is not None:
            last["usage"] = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    started = None if run.row.started_ms is None else iso(run.row.started_ms)
    return {
        "id": run.row.id,
        "task_id": run.row.test_id,
        "trial": run.row.repetition - 1,
        "start_time": started,
        "duration": None if transcript.timing.total_ms is None else transcript.timing.total_ms / 1000,
        "termination_reason": "agent_error" if transcript.error is not None else transcript.finish_reason,
        "agent_cost": transcript.usage.cost,
        "info": {**({"variation": run.row.variation} if run.row.variation else {}), KEY: own(run, LOSSES)},
        "reward_info": None if (reward := reward_of(run)) is None else {"reward": reward},
        "messages": messages,
    }


EXPORTER = Exporter(
    name="tau2-bench",
    title="tau2-bench result",
    about="tau2-bench results (one JSON object)",
    suffix=".tau2.json",
    pieces=_pieces,
    losses=LOSSES,
    rank=50,
)
