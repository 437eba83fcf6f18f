"""Things to store, for the tests of this folder."""

from __future__ import annotations

from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome, Span
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript, Usage

SUITE = "/suites/support.suite.yaml"


def record(execution: str = "EXECUTION-1", **more: object) -> ExecutionRecord:
    values: dict[str, object] = {"title": "smoke", "kind": "run", "source": "support", "suite_keys": (SUITE,)}
    return ExecutionRecord(execution, started_ms=1_000, **{**values, **more})  # type: ignore[arg-type]


def planned(position: int, execution: str = "EXECUTION-1", **more: object) -> PlannedRun:
    values: dict[str, object] = {
        "suite_key": SUITE,
        "suite_name": "Support",
        "test_id": f"test-{position % 3}",
        "test_name": f"Test {position % 3}",
        "agent": "demo",
        "prompt": "Where is my order?",
        "criteria": ("hash-a", "hash-b"),
        "specs": ({"name": "polite"}, {"name": "looks it up"}),
    }
    return PlannedRun(f"{execution}-RUN-{position:05}", execution, position, **{**values, **more})  # type: ignore[arg-type]


def transcript(answer: str = "It is on its way.", order: str = "#W42") -> Transcript:
    return Transcript(
        messages=(
            Message("user", "Where is my order?"),
            Message("assistant", "", tool_calls=(0,)),
            Message("tool", "shipped", tool_call=0, tool_call_id="c1"),
            Message("assistant", answer),
        ),
        tool_calls=(ToolCall("c1", "get_order", {"order_id": order}, "shipped", message=1),),
        usage=Usage(100, 20, cost=0.5),
        final_output=answer,
    )


def results(passed: bool = True) -> tuple[CriterionResult, ...]:
    outcome = Outcome.PASSED if passed else Outcome.FAILED
    evidence = Evidence("contains_all[0]", passed, "the word is there", "way", "way", (Span("message", 3, 13, 16),))
    metric = MetricResult("words", "TextMatch", outcome, float(passed), evidence=(evidence,))
    return (
        CriterionResult("polite", Outcome.PASSED, 1.0, criterion_hash="hash-a"),
        CriterionResult("looks it up", outcome, float(passed), criterion_hash="hash-b", metrics=(metric,)),
    )


def ended(position: int, execution: str = "EXECUTION-1", *, passed: bool = True, answer: str = "") -> RunEnded:
    return RunEnded(
        f"{execution}-RUN-{position:05}",
        "passed" if passed else "failed",
        1.0 if passed else 0.5,
        2_000 + position,
        10.0 + position,
        1,
        transcript(answer or f"It is on its way, number {position}."),
        results(passed),
        why="" if passed else "looks it up: the word is missing",
    )
