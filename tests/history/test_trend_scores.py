"""Scores of criteria are counted by SQLite and Python together: just as one by one, whatever their names and scores."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.history import trends as rows
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Transcript

NAMES = ("says", "7 says", "12", 'a "quoted"\nname', "späť\x1f1", "99says")
SCORES = (None, 0.0, 1.0, 0.1 + 0.2, 0.95, 1 / 3)


@pytest.mark.parametrize("scores", [SCORES[:3], SCORES[3:], SCORES])
def test_scores_are_counted_as_one_by_one(tmp_path: Path, scores: tuple[float | None, ...]) -> None:
    draw = random.Random(1)
    runs, wanted = [], {}
    for number in range(400):
        test = f"t{number % 12}"
        listed = []
        for name in draw.sample(NAMES, 4):
            one = CriterionResult(name, draw.choice(list(Outcome)), draw.choice(scores), criterion_hash=f"h{name}")
            listed.append(one)
            if one.outcome is Outcome.SKIPPED:
                continue
            counts = wanted.setdefault((test, name), [0] * 14 + [0.0])
            counts[("passed", "failed", "error", "needs_review").index(one.outcome)] += 1
            if one.score is not None:
                counts[4 + min(int(one.score * 10 + 1e-9), 9)] += 1
                counts[14] += one.score
        run = PlannedRun(f"R{number:04}", "E", number, "/s", "S", test, test, agent="bot", prompt="hi")
        began = None if number % 5 == 0 else 1_000 + number  # every fifth stands at the time of its execution
        runs.append((run, RunEnded(run.id, "passed", None, began, 5.0, 1, Transcript(), tuple(listed))))
    with Store.open(tmp_path / "history.db") as store:
        store.import_runs(ExecutionRecord("E", "t", "run", "s", ("/s",), started_ms=1_000), iter(runs))
        tests = {one.row: one.test_id for one in store.read(rows.tests_known)}
        found = store.read(lambda connection: rows.scores(connection, rows.SelectedRuns(0, 10_000)))
    assert {(tests[test], name): counts[:14] for (test, name), counts in found.items()} == {
        criterion: counts[:14] for criterion, counts in wanted.items()
    }
    for (test, name), counts in found.items():
        assert counts[14] == pytest.approx(wanted[tests[test], name][14], rel=1e-12)
