"""A suite's file with stored runs beside it, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.grade import grade
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_of, spec_to_dict
from agenteval_tui.suites.load import load_suite
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

MakeHistory = Callable[..., tuple[Path, Store]]


@pytest.fixture
def answered() -> Callable[..., Transcript]:
    """`answered("text", ("tool", {...}), ...)`: a transcript with that final answer and those calls before it."""

    def made(text: str, *calls: tuple[str, Any]) -> Transcript:
        tool_calls = tuple(
            ToolCall(f"c{n}", name, arguments, "ok", message=1) for n, (name, arguments) in enumerate(calls)
        )
        messages = (
            Message("user", "please"),
            Message("assistant", "", tool_calls=tuple(range(len(calls)))),
            Message("assistant", text),
        )
        return Transcript(messages, tool_calls, final_output=text)

    return made


@pytest.fixture
def make_history(tmp_path: Path) -> Iterator[MakeHistory]:
    """`make_history(yaml, [(test id, transcript), ...])`: the suite's file, and a store with these graded runs."""
    stores: list[Store] = []

    def made(text: str, runs: Iterable[tuple[str, Transcript]]) -> tuple[Path, Store]:
        path = tmp_path / "made.suite.yaml"
        path.write_text(text, "utf-8")
        loaded = load_suite(path)
        assert loaded.suite is not None, loaded.problems
        tests = {test.id: test for test in loaded.suite.tests}
        store = Store.open(tmp_path / "made.db")
        stores.append(store)

        def stored() -> Iterator[tuple[PlannedRun, RunEnded]]:
            for number, (test_id, transcript) in enumerate(runs):
                test = tests[test_id]
                specs = tuple(map(spec_of, test.criteria))
                verdict = grade(transcript, specs, test.variables)
                planned = PlannedRun(
                    f"EXECUTION-RUN-{number:04}",
                    "EXECUTION",
                    number,
                    loaded.key,
                    "Made",
                    test_id,
                    test.name,
                    agent="demo",
                    prompt=test.prompt or "",
                    variables=test.variables,
                    criteria=tuple(spec.hash for spec in specs),
                    specs=tuple(map(spec_to_dict, specs)),
                )
                yield (
                    planned,
                    RunEnded(planned.id, str(verdict.outcome), verdict.score, 1, 1.0, 1, transcript, verdict.results),
                )

        store.import_runs(
            ExecutionRecord("EXECUTION", "made", "run", "made", (loaded.key,), started_ms=now_ms()), stored()
        )
        return path, store

    yield made
    for store in stores:
        store.close()
