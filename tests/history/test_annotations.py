"""Filters that know what people left on runs, and the notes that lists show."""

from __future__ import annotations

import pytest
from history_made import SUITE, ended, planned, record
from msgspec.structs import replace

from agenteval_tui.history import baselines
from agenteval_tui.history.annotations import Note, notes_of_executions, notes_of_runs
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import RunError


@pytest.fixture
def noted(store: Store) -> Store:
    """An execution of six runs: one failed, one in error, one labelled; it is the baseline of test-0."""
    runs = [planned(one, tags=("Smoke", "sql") if one % 2 else (), agent="Shop/One") for one in range(6)]
    store.begin_execution(record(), runs)
    for one in range(6):
        end = ended(one, passed=one != 1)
        if one == 2:
            lost = replace(end.transcript, error=RunError("RateLimited", "later", ""))
            end = replace(end, status="error", transcript=lost)
        store.run_ended(end)
    store.end_execution("EXECUTION-1", "finished").result()
    store.label("EXECUTION-1-RUN-00004", 2).result()
    store.label("EXECUTION-1-RUN-00004", 5, criterion_hash="hash-a").result()
    baselines.set_baseline(store, "EXECUTION-1", tests=[(SUITE, "test-0")])
    return store


@pytest.mark.parametrize(
    ("wanted", "positions"),
    [
        (RunFilter(agent_part="shop"), {0, 1, 2, 3, 4, 5}),
        (RunFilter(agent_part="two"), set()),
        (RunFilter(test_part="TEST-1"), {1, 4}),
        (RunFilter(suite_part="support.suite"), {0, 1, 2, 3, 4, 5}),
        (RunFilter(tags=("smoke",)), {1, 3, 5}),
        (RunFilter(tags=("smoke", "SQL"), test_part="test-1"), {1}),
        (RunFilter(tags=("other",)), set()),
        (RunFilter(since_ms=1_000), {0, 1, 2, 3, 4, 5}),
        (RunFilter(since_ms=1_001), set()),
        (RunFilter(before_ms=1_000), set()),
        (RunFilter(cause_part="ratelim"), {2}),
        (RunFilter(cause_part="textmatch"), {1}),
        (RunFilter(baseline=True), {0, 3}),
        (RunFilter(labelled=True), {4}),
        (RunFilter(text="number 4", labelled=True, outcomes=("passed",)), {4}),
    ],
)
def test_filters(noted: Store, wanted: RunFilter, positions: set[int]) -> None:
    assert {row.position for row in noted.run_rows(noted.run_ids(wanted))} == positions
    assert len(noted.execution_ids(wanted)) == (1 if positions else 0)


def test_notes(noted: Store) -> None:
    numbers = {row.rowid: row.position for row in noted.runs_of_execution("EXECUTION-1")}
    found = noted.read(lambda c: notes_of_runs(c, list(numbers)))
    assert {numbers[run]: note for run, note in found.items()} == {
        0: Note(1),
        3: Note(1),
        4: Note(0, 2, 2, None),
    }
    execution = noted.execution("last").rowid
    assert noted.read(lambda c: notes_of_executions(c, [execution])) == {execution: Note(1, 1)}
    assert noted.read(lambda c: notes_of_executions(c, [99])) == {}
