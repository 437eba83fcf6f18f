"""A history for imports, and what every imported transcript must keep."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.formats.import_file import ImportOptions, ImportReport, import_file
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.codec import from_json, to_json
from agenteval_tui.transcripts.model import Transcript


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "h.db") as opened:
        yield opened


def theirs(store: Store, run_id: str) -> tuple[CriterionResult, ...]:
    """The foreign verdicts of a run, without what was derived from its file."""
    return tuple(one for one in store.results(run_id) if not one.derived)


def whole(transcript: Transcript) -> None:
    """The invariants that every screen and metric relies on."""
    assert from_json(json.loads(json.dumps(to_json(transcript)))) == transcript
    for index, message in enumerate(transcript.messages):
        for call in message.tool_calls:
            assert transcript.tool_calls[call].message == index
        if message.tool_call is not None:
            assert message.role == "tool"
            assert transcript.tool_calls[message.tool_call].result == message.content
    made = [call for message in transcript.messages for call in message.tool_calls]
    assert made == list(range(len(transcript.tool_calls)))
    assert all(step.started_ms >= 0 for step in transcript.timing.steps)


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Callable[..., tuple[ImportReport, list[tuple[RunRow, Transcript]]]]:
    """Imports a value (written as JSON), bytes or a file; (the report, the runs with their whole transcripts)."""

    def do(given: Any, name: str = "f.json", **options: Any) -> tuple[ImportReport, list[tuple[RunRow, Transcript]]]:
        path = given if isinstance(given, Path) else tmp_path / name
        if isinstance(given, bytes):
            path.write_bytes(given)
        elif not isinstance(given, Path):
            path.write_text(given if isinstance(given, str) else json.dumps(given), "utf-8")
        report = import_file(path, store, ImportOptions(**options))
        runs = [(row, store.transcript(row.id)) for row in store.runs_of_execution(report.execution_id)]
        for _, transcript in runs:
            whole(transcript)
        return report, runs

    return do
