"""Runs of the samples that a person labelled: what the history of the demo begins with, so that criteria can be
suggested at once. The runs are recordings of the bundled agent; the labels are kept as any that a person gives."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.core.atomic_write import locked
from agenteval_tui.core.ids import new_id, now_ms
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.sentences import verdict_sentence
from agenteval_tui.history.connections import make_private_folder
from agenteval_tui.history.labels import AddLabels, Label
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import Specs, spec_to_dict
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.model import Suite
from agenteval_tui.transcripts.codec import from_json

SUITE = Path("support.suite.yaml")
FILE = Path("recorded", "labelled-runs.jsonl")
"""Made by `python -m agenteval_tui.extensions.demo.shop.record`."""


def label_samples(db: Path, samples: Path) -> None:
    """Create a history with the labelled runs of the samples in this folder. Does nothing if the history exists, or if
    a person changed the suite or the file so that they no longer fit together. Of programs that start in the same
    moment, one creates it, and the others wait for that. Raises HistoryError."""
    if db.exists():
        return
    make_private_folder(db.parent)
    with locked(db.parent, needed=False):
        if not db.exists():
            _create(db, samples / FILE, samples / SUITE)


def _create(db: Path, file: Path, suite: Path) -> None:
    if not file.is_file() or not suite.is_file():
        return
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    loaded = load_suite(suite)
    if loaded.suite is None or not any(test.id == lines[0]["test"] for test in loaded.suite.tests):
        return
    runs = list(_runs(lines, loaded.suite, str(suite.resolve())))
    record = ExecutionRecord(
        id=runs[0][0].execution_id,
        title="runs that a person labelled",
        kind="import",
        source=str(file),
        suite_keys=(runs[0][0].suite_key,),
        started_ms=now_ms(),
        options={"format": "demo-rules"},
    )
    labels = [
        Label(planned.id, None, "", label["comment"], label["who"], passed=label["passed"])
        for (planned, _), line in zip(runs, lines, strict=True)
        if (label := line.get("label")) is not None
    ]
    with Store.open(db) as store:
        store.import_runs(record, iter(runs))
        store.write(AddLabels(labels)).result()


def _runs(lines: list[Mapping[str, Any]], suite: Suite, key: str) -> Iterator[tuple[PlannedRun, RunEnded]]:
    """The runs of the lines, graded by the suite's present criteria."""
    execution, specs_of = new_id(), Specs()
    tests = {test.id: test for test in suite.tests}
    for position, line in enumerate(lines):
        test, transcript = tests[line["test"]], from_json(line["transcript"])
        specs = specs_of.of(test.criteria)
        verdict = grade(transcript, specs, test.variables)
        planned = PlannedRun(
            id=new_id(),
            execution_id=execution,
            position=position,
            suite_key=key,
            suite_name=suite.name,
            test_id=test.id,
            test_name=test.name,
            repetition=line["repetition"],
            agent=line["agent"],
            prompt=test.prompt or "",
            tags=(*suite.tags, *test.tags),
            variables=test.variables,
            criteria=tuple(spec.hash for spec in specs),
            specs=tuple(map(spec_to_dict, specs)),
        )
        ended = RunEnded(
            planned.id,
            status=str(verdict.outcome),
            score=verdict.score,
            started_ms=now_ms(),
            duration_ms=transcript.timing.total_ms,
            attempts=1,
            transcript=transcript,
            results=verdict.results,
            warnings=verdict.warnings,
            why=verdict_sentence(verdict),
        )
        yield planned, ended
