"""Runs as OpenAI chat messages, with what those have no place for beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agenteval_tui.formats.agenteval_run import KEY, error_fields
from agenteval_tui.formats.exporters.exporter import (
    ATTACHED,
    LABELS,
    Exporter,
    StoredRun,
    about,
    beside_of,
    chat_messages,
    json_line,
)
from agenteval_tui.transcripts.model import last_answer

LOSSES = (LABELS, ATTACHED)


def _pieces(runs: Iterable[StoredRun]) -> Iterator[str]:
    for run in runs:
        transcript = run.transcript
        line: dict[str, Any] = {**about(run), "messages": chat_messages(transcript)}
        for key, value in (("model", transcript.model), ("finish_reason", transcript.finish_reason)):
            if value:
                line[key] = value
        # Nearly always it is the last answer: then an import finds it there.
        if transcript.final_output != last_answer(transcript.messages):
            line["final_output"] = transcript.final_output
        usage = transcript.usage
        if usage.input_tokens is not None or usage.output_tokens is not None:
            line["usage"] = {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "total_tokens": usage.total_tokens,
                "prompt_tokens_details": {
                    "cached_tokens": usage.cached_tokens,
                    "cache_write_tokens": usage.cache_write_tokens,
                },
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
                "cost": usage.cost,
            }
        if transcript.error is not None:
            line["error"] = error_fields(transcript.error)
        line |= {"outcome": run.row.status, KEY: beside_of(run, LOSSES)}
        yield json_line(line) + "\n"


EXPORTER = Exporter(
    name="openai",
    title="OpenAI chat messages",
    about="OpenAI chat messages, one conversation per line (JSONL)",
    suffix=".messages.jsonl",
    pieces=_pieces,
    losses=LOSSES,
    rank=10,
)
