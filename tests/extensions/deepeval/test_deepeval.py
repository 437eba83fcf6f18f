"""DeepEval's test runs. The file is one that DeepEval 4.3 itself wrote."""

from __future__ import annotations

import json
from pathlib import Path

from agenteval_tui.formats.import_file import import_file
from agenteval_tui.history.store import Store

REAL = Path(__file__).resolve().parents[3] / "docs" / "coming-from" / "files" / "deepeval-test-run.json"


def test_each_test_case_is_a_run_with_its_calls_and_the_metrics_verdicts(store: Store) -> None:
    report = import_file(REAL, store)
    assert (report.format, report.added, report.skipped) == ("deepeval", 2, ())
    order, window = sorted(store.runs_of_execution(report.execution_id), key=lambda run: run.test_id)
    assert (order.test_id, order.status, window.status) == ("order-status", "passed", "failed")
    transcript = store.transcript(order.id)
    assert [message.role for message in transcript.messages] == ["user", "assistant", "tool", "assistant"]
    (call,) = transcript.tool_calls
    assert (call.name, call.arguments, json.loads(call.result or "")) == (
        "get_order", {"order_id": "W1042"}, {"status": "on its way"},
    )  # fmt: skip
    said = {one.criterion: one.outcome for one in store.results(window.id)}
    assert said["deepeval Contains expected"] == "failed"
    assert said["Expected answer"] == "failed", "it says in which way the run is wrong"
    # What it did call differs from what was expected in one argument only.
    derived = {one.criterion: one.outcome for one in store.results(order.id)}
    assert derived["Expected tools"] == "failed"


def test_a_conversation_is_a_run_and_a_broken_metric_is_an_error(store: Store, tmp_path: Path) -> None:
    turns = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": "Here.", "toolsCalled": [{"name": "look", "output": "there"}]},
    ]
    broken = [{"name": "Judge", "error": "no key"}]
    case = {"name": "talk", "turns": turns, "expectedOutcome": "found", "metricsData": broken}
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"conversationalTestCases": [case, {"nothing": 1}], "testPassed": 0}), "utf-8")
    report = import_file(path, store)
    assert report.added == 1
    assert len(report.skipped) == 1
    (run,) = store.runs_of_execution(report.execution_id)
    assert store.transcript(run.id).final_output == "Here."
    assert run.variables["expected_value"] == "found"
    (said,) = store.results(run.id)
    assert said.outcome == "error"
