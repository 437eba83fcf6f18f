"""Runs as agenteval's own transcripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agenteval_tui.formats.agenteval_run import KEY, ending_fields
from agenteval_tui.formats.exporters.exporter import (
    ATTACHED,
    LABELS,
    Exporter,
    StoredRun,
    about,
    json_line,
    not_kept,
    of_execution,
)
from agenteval_tui.grading.codec import result_to_json
from agenteval_tui.transcripts.codec import to_json

LOSSES = (LABELS, ATTACHED)


def _pieces(runs: Iterable[StoredRun]) -> Iterator[str]:
    for run in runs:
        results = [result_to_json(result) for result in run.results]
        more: dict[str, Any] = {
            "outcome": run.row.status,
            **({"results": results} if results else {}),
            KEY: {**ending_fields(run.row), **of_execution(run), **not_kept(run, LOSSES)},
        }
        yield json_line({**to_json(run.transcript), **about(run), **more}) + "\n"


EXPORTER = Exporter(
    name="agenteval",
    title="transcript as JSON",
    about="agenteval's own transcripts, one per line (JSONL)",
    suffix=".jsonl",
    pieces=_pieces,
    losses=LOSSES,
    rank=20,
)
