"""A history made by hand: three tests on two agents over thirty days, for trends, flaky tests and quarantines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript, Usage

NOON = 1_795_262_400_000  # 2026-11-21 12:00 UTC
DAY = 86_400_000
DAYS = 30
SHOP = "/suites/shop.suite.yaml"
DESK = "/suites/desk.suite.yaml"
TESTS = (
    (SHOP, "Shop", "orders", ("smoke",)),
    (SHOP, "Shop", "refunds", ()),
    (DESK, "Help desk", "greeting", ("smoke",)),
)
SPECS = tuple(
    spec_to_dict(CriterionSpec(name, "TextResponse", {"metrics": [{"type": "Length", "min_words": words}]}))
    for words, name in enumerate(("polite", "right"), 1)
)


def passes(test: int, day: int, repetition: int) -> bool:
    """`orders` gets better, `refunds` is flaky (2 of 3), `greeting` always passes."""
    return (day * 3 + repetition) % 30 < day + 2 if test == 0 else repetition != 1 if test == 1 else True


def transcript(day: int, number: int, *, error: bool = False) -> Transcript:
    text = "" if error else f"Answer {day}-{number}"
    calls = () if error else tuple(ToolCall(f"c{n}", "look", {"n": n}, "ok", message=0) for n in range(1 + number % 3))
    return Transcript(
        (Message("user", "please"), Message("assistant", text, tool_calls=tuple(range(len(calls))))),
        calls,
        usage=Usage(100 + day, 20 + number, cost=0.001 * (1 + number % 4)),
        final_output=text,
        error=RunError("timeout", "no answer in 30 s", "") if error else None,
    )


def results(passed: bool) -> tuple[CriterionResult, ...]:
    outcome = Outcome.PASSED if passed else Outcome.FAILED
    evidence = Evidence("min_words", passed, "too short", 2, 1)
    metric = MetricResult("length", "Length", outcome, float(passed), evidence=(evidence,))
    return (
        CriterionResult("polite", Outcome.PASSED, 1.0, criterion_hash="hash-polite"),
        CriterionResult("right", outcome, 1.0 if passed else 0.25, criterion_hash="hash-right", metrics=(metric,)),
    )


def execution(day: int) -> tuple[ExecutionRecord, list[tuple[PlannedRun, RunEnded]]]:
    """One a day, at noon: three repetitions of each test; on day 9 the agent of the last test does not answer."""
    uid = f"EXECUTION-{day:02}"
    began = NOON - (DAYS - 1 - day) * DAY
    runs = []
    for number, (test, repetition) in enumerate((t, r) for t in range(len(TESTS)) for r in range(3)):
        key, suite, name, tags = TESTS[test]
        planned = PlannedRun(
            *(f"{uid}-RUN-{number:02}", uid, number, key, suite, name, name.title()),
            repetition=repetition + 1,
            agent="demo" if test < 2 else "desk",
            prompt="please",
            tags=tags,
            criteria=("hash-polite", "hash-right"),
            specs=SPECS,
        )
        error = day == 9 and test == 2
        good = passes(test, day, repetition)
        status = "error" if error else "passed" if good else "failed"
        runs.append(
            (
                planned,
                RunEnded(
                    *(
                        planned.id,
                        status,
                        None if error else float(good),
                        began + number * 1000,
                        500.0 + 40 * day + number,
                        1,
                    ),
                    transcript(day, number, error=error),
                    () if error else results(good),
                ),
            )
        )
    return ExecutionRecord(uid, "nightly", "run", "suites", (SHOP, DESK), began), runs


def filled(path: Path, days: range = range(DAYS)) -> Store:
    """The open history with the executions of these days."""
    store = Store.open(path)
    for day in days:
        record, runs = execution(day)
        store.import_runs(record, iter(runs))
    return store


def undated(runs: list[tuple[PlannedRun, RunEnded]]) -> Iterator[tuple[PlannedRun, RunEnded]]:
    """The same runs, as another tool's file has them: without times."""
    from msgspec.structs import replace

    for planned, ended in runs:
        yield planned, replace(ended, started_ms=None)
