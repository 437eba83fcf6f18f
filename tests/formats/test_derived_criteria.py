"""What a foreign file says was expected becomes criteria that explain its failures and decide nothing."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.analysis.causes import failure_causes
from agenteval_tui.cli.main import main
from agenteval_tui.formats.exporters.export import exporters, stored_runs
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.formats.importers.derived_criteria import (
    criteria_of_actions,
    criteria_of_target,
    criteria_of_tools,
)
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.tool_verbs import changes_something

TAU = Path(__file__).parents[2].parent / "shared" / "data" / "tau_bench" / "gpt-4o-airline-tasks-00-24.json"


def call(name: str, answer: str = "done", **arguments: Any) -> list[dict[str, Any]]:
    made = {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c", "content": answer},
    ]


def tau(*calls: list[dict[str, Any]], reward: float | None = 0.0, actions: Any = None) -> dict[str, Any]:
    traj = [
        {"role": "user", "content": "q"},
        *(m for one in calls for m in one),
        {"role": "assistant", "content": "ok"},
    ]
    return {"task_id": 1, "trial": 0, "reward": reward, "info": {"task": {"actions": actions}}, "traj": traj}


BOOK = [{"name": "get_user", "kwargs": {}}, {"name": "book", "kwargs": {"id": "1", "seats": [2]}}]
EXPECTED, OTHERS = "Expected writing calls", "No other writing calls"

TAU_CASES: list[tuple[str, tuple[Any, ...], Any, dict[str, str], str]] = [
    ("all right", (call("get_user"), call("book", id="1", seats=[2])), BOOK,
     {EXPECTED: "passed", OTHERS: "passed"}, "tau-bench reward"),
    ("readings do not count", (call("search_x"), call("think"), call("book", id="1", seats=[2])), BOOK,
     {EXPECTED: "passed", OTHERS: "passed"}, "tau-bench reward"),
    ("never", (call("get_user"),), BOOK, {EXPECTED: "failed", OTHERS: "passed"}, "book was never called"),
    ("other arguments", (call("book", id="1", seats=[3]),), BOOK,
     {EXPECTED: "failed", OTHERS: "passed"}, "book(seats) was called with other arguments"),
    ("another call", (call("book", id="1", seats=[2]), call("cancel", id="1")), BOOK,
     {EXPECTED: "passed", OTHERS: "failed"}, "cancel was called"),
    ("twice", (call("book", id="1", seats=[2]), call("book", id="1", seats=[2])), BOOK,
     {EXPECTED: "passed", OTHERS: "failed"}, "book"),
    ("an error writes nothing", (call("book", "Error: no", id="9", seats=[2]), call("book", id="1", seats=[2])), BOOK,
     {EXPECTED: "passed", OTHERS: "passed"}, "tau-bench reward"),
    ("nothing to write", (call("cancel", id="1"),), [BOOK[0]], {OTHERS: "failed"}, "cancel was called"),
    ("nothing expected", (call("get_user"),), [], {}, "tau-bench reward"),
    ("not said", (call("cancel", id="1"),), None, {}, "tau-bench reward"),
    ("odd", (call("book", id="1"),), [5, {"name": 3}, {"name": "book", "kwargs": 5}],
     {EXPECTED: "passed", OTHERS: "passed"},
     "tau-bench reward"),
]  # fmt: skip


def derived(store: Store, row: RunRow) -> dict[str, str]:
    return {one.criterion: str(one.outcome) for one in store.results(row.id) if one.derived}


@pytest.mark.parametrize(("calls", "actions", "expected", "cause"), [one[1:] for one in TAU_CASES],
                         ids=[one[0] for one in TAU_CASES])  # fmt: skip
def test_actions_of_tau_bench(
    imported: Callable[..., Any], store: Store, calls: Any, actions: Any, expected: dict[str, str], cause: str
) -> None:
    _, [(row, _)] = imported([tau(*calls, actions=actions)])
    assert derived(store, row) == expected
    assert (row.status, row.score, row.warnings) == ("failed", 0.0, 0)  # as tau-bench says
    assert [cause in one.title for one in failure_causes(store, [row.id])[row.id]] == [True]


@pytest.mark.parametrize(("reward", "status", "score"), [(1.0, "passed", 1.0), (None, "needs_review", None)])
def test_what_is_derived_decides_nothing(
    imported: Callable[..., Any], store: Store, reward: float | None, status: str, score: float | None
) -> None:
    _, [(row, _)] = imported([tau(call("get_user"), reward=reward, actions=BOOK)])
    assert derived(store, row) == {EXPECTED: "failed", OTHERS: "passed"}
    assert (row.status, row.score) == (status, score)
    assert failure_causes(store, [row.id]).get(row.id, []) == []
    results = [one for one in store.results(row.id) if one.derived]
    assert {(one.severity, one.weight, one.source) for one in results} == {("info", 0.0, "")}


def test_the_reason_of_a_run_is_what_tells_most(imported: Callable[..., Any], store: Store) -> None:
    _, [(row, _)] = imported([tau(call("get_user"), actions=BOOK)])
    assert row.why.startswith(f"{EXPECTED}: book(")
    _, [(row, _)] = imported([tau(call("get_user"), actions=[])])
    assert row.why.startswith("tau-bench reward: ")


def test_it_can_be_switched_off(imported: Callable[..., Any], store: Store) -> None:
    _, [(row, _)] = imported([tau(actions=BOOK)], no_derived=True)
    assert derived(store, row) == {}


def test_actions_of_tau2_bench(imported: Callable[..., Any], store: Store) -> None:
    def simulation(number: int, *calls: Any, **info: Any) -> dict[str, Any]:
        said = [{"role": "user", "content": "q"}]
        for name, arguments in calls:
            said.append({"role": "assistant", "content": None,
                         "tool_calls": [{"id": "c", "name": name, "arguments": arguments}]})  # fmt: skip
            said.append({"role": "tool", "id": "c", "content": "ok"})
        said.append({"role": "assistant", "content": "done"})
        return {"id": str(number), "task_id": "t", "trial": number, "messages": said,
                "reward_info": {"reward": 0.0, **info}, "termination_reason": "user_stop"}  # fmt: skip

    actions = [
        {"action_id": "a", "requestor": "assistant", "name": "send", "arguments": {"to": "x", "text": "hello"},
         "compare_args": ["to"]},
        {"action_id": "b", "requestor": "user", "name": "toggle", "arguments": {}},
        {"action_id": "c", "name": "enable", "arguments": {}},
    ]  # fmt: skip
    checks = [{"action": actions[2], "tool_type": "read"}]
    document = {
        "info": {}, "tasks": [{"id": "t", "evaluation_criteria": {"actions": actions}}],
        "simulations": [
            simulation(0, ("send", {"to": "x", "text": "bye"}), ("enable", {})),
            simulation(1, ("send", {"to": "x", "text": "bye"}), action_checks=checks),
            simulation(2, ("send", {"to": "y", "text": "hello"}), ("enable", {})),
        ],
    }  # fmt: skip
    _, runs = imported(document)
    assert [derived(store, row)[EXPECTED] for row, _ in runs] == ["passed", "passed", "failed"]


TARGETS: list[tuple[Any, Any, str, list[str]]] = [
    ("Oslo", None, "It is oslo.", ["passed"]),
    ("Oslo", None, "It is Rome.", ["failed"]),
    (["Oslo", "Kristiania"], None, "KRISTIANIA it is", ["passed"]),
    (["Oslo", "Kristiania"], None, "Rome", ["failed"]),
    (5, None, "5", ["passed"]),
    ("B", ["x", "y"], "Hm, A? ANSWER: B", ["passed"]),
    ("B", ["x", "y"], "B would be nice. ANSWER: (A)", ["failed"]),
    ("Z", ["x", "y"], "ANSWER: Z", []),
    ({"a": 1, "b": 2}, None, '{"b": 2, "a": 1}', ["passed"]),
    ({"a": "{{ b }}", "c": 1}, None, '{"a": "{{ b }}", "c": 1}', ["passed"]),
    ({"answer": "Oslo"}, None, "Oslo", ["passed"]),
    ("", None, "x", []), (None, None, "x", []), (True, None, "x", []), ("a {{ b }}", None, "x", []),
    ("x" * 30_000, None, "x", []),
]  # fmt: skip


@pytest.mark.parametrize(("target", "choices", "answer", "outcomes"), TARGETS)
def test_targets(target: Any, choices: Any, answer: str, outcomes: list[str]) -> None:
    from agenteval_tui.formats.importers.derived_criteria import DerivedGrader

    transcript = Transcript(final_output=answer)
    found = DerivedGrader().results(criteria_of_target(target, choices), transcript, {})
    assert [str(one.outcome) for one in found] == outcomes
    assert all(one.derived for one in found)


def test_targets_of_inspect_pydantic_evals_langsmith_and_assertions_of_promptfoo(
    imported: Callable[..., Any], store: Store
) -> None:
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "Rome"}]
    inspect = {
        "version": 2, "status": "success", "eval": {"task": "t", "model": "m"},
        "samples": [{"id": 1, "epoch": 1, "input": "q", "target": "Oslo", "messages": said,
                     "scores": {"match": {"value": "I"}}}],
    }  # fmt: skip
    cases = {"name": "r", "cases": [{
        "name": "c", "inputs": "q", "metadata": None, "expected_output": "Oslo", "output": "Rome", "metrics": {},
        "attributes": {}, "scores": {}, "labels": {}, "task_duration": 1.0, "total_duration": 1.0,
        "assertions": {"EqualsExpected": {"name": "EqualsExpected", "value": False, "reason": None}},
    }]}  # fmt: skip
    promptfoo = {"evalId": "e", "results": {"prompts": [], "results": [{
        "testIdx": 0, "promptIdx": 0, "vars": {"q": "q"}, "provider": {"id": "p"}, "prompt": {"raw": "q", "label": "q"},
        "response": {"output": "Rome"}, "success": False, "score": 0,
        "testCase": {"assert": [{"type": "icontains", "value": "Oslo"}, {"type": "javascript", "value": "x"}]},
        "gradingResult": {"pass": False, "score": 0, "reason": "no", "componentResults": [
            {"pass": False, "score": 0, "reason": "no", "assertion": {"type": "icontains", "value": "Oslo"}}]},
    }]}}  # fmt: skip
    langsmith = {
        "id": "1", "trace_id": "1", "name": "r", "run_type": "llm", "inputs": {"input": "q"},
        "outputs": {"output": "Rome"}, "reference_outputs": {"answer": "Oslo"},
        "feedback_stats": {"correct": {"avg": 0.0, "n": 1}}, "start_time": "2026-01-01T00:00:00",
    }  # fmt: skip
    for number, (document, name) in enumerate(
        [(inspect, "Expected answer"), (cases, "Expected answer"), (promptfoo, "icontains Oslo"),
         (langsmith, "Expected answer")]
    ):  # fmt: skip
        _, [(row, _)] = imported(document, f"{number}.json")
        assert derived(store, row) == {name: "failed"}, number
        if row.status == "failed":
            assert [one.criterion for one in failure_causes(store, [row.id])[row.id]] == [name]


def test_expectations_that_are_too_many_are_said(imported: Callable[..., Any], store: Store, tmp_path: Path) -> None:
    asserts = [{"type": "icontains", "value": f"Oslo {number}"} for number in range(60)]
    document = {"evalId": "e", "results": {"prompts": [], "results": [{
        "testIdx": 0, "promptIdx": 0, "vars": {"q": "q"}, "provider": {"id": "p"}, "prompt": {"raw": "q", "label": "q"},
        "response": {"output": "Rome"}, "success": False, "score": 0, "testCase": {"assert": asserts},
        "gradingResult": {"pass": False, "score": 0, "reason": "no", "componentResults": []},
    }]}}  # fmt: skip
    (tmp_path / "many.json").write_text(json.dumps(document), "utf-8")
    report = import_file(tmp_path / "many.json", store)
    assert sum("only the first 50 of 60 expectations are checked" in note for note in report.notes) == 1
    (row,) = store.runs_of_execution(report.execution_id)
    assert len(derived(store, row)) == 50


def test_expected_tools() -> None:
    (one,) = criteria_of_tools(["a", {"name": "b", "input_parameters": {"x": 1}}, 5, {"name": ""}])
    assert one["config_uxon"]["metrics"][0]["calls"] == [{"name": "a"}, {"name": "b", "arguments": {"x": 1}}]
    assert criteria_of_tools(None) == ()
    assert criteria_of_actions("x", Transcript(), tool="t") == ()


@pytest.mark.parametrize(
    "name",
    [
        *("get_user", "search_direct_flight", "listItems", "think", "transfer_to_human_agents"),
        *("file_read", "web_search", "WebSearch", "kb-lookup", "memoryGet"),
    ],
)
def test_tools_that_read(name: str) -> None:
    assert not changes_something(name)
    assert changes_something(name, {name: "write"})


@pytest.mark.parametrize(
    "name", ["update_x", "cancel", "getaway", "issue_refund", "", "checkout_cart", "save_search", "SetLookup"]
)
def test_tools_that_write(name: str) -> None:
    assert changes_something(name)
    assert not changes_something(name, {name: "read"})


@pytest.mark.parametrize("name", list(exporters()))
def test_what_is_derived_goes_out_and_comes_back_once(
    imported: Callable[..., Any], store: Store, tmp_path: Path, name: str
) -> None:
    _, [(row, _)] = imported([tau(call("get_user"), actions=BOOK)])
    text = "".join(exporters()[name].pieces(stored_runs(store, [row])))
    (tmp_path / "out.x").write_text(text, "utf-8")
    (back,) = store.runs_of_execution(import_file(tmp_path / "out.x", store).execution_id)
    assert store.results(back.id) == store.results(row.id)
    assert back.status == row.status


def test_why_says_that_it_is_derived(
    imported: Callable[..., Any], store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    imported([tau(call("book", id="1", seats=[3]), actions=BOOK)])
    monkeypatch.setenv("AGENTEVAL_DB", str(tmp_path / "h.db"))
    assert main(["why", "last"], launch_app=lambda _: 0) in (0, 1)
    said = capsys.readouterr().out
    assert "derived from the imported file" in said
    assert re.search(r"seats\[0\] +expected +2", said)
    main(["why", "last", "--json"], launch_app=lambda _: 0)
    shown = json.loads(capsys.readouterr().out)
    assert '"derived": true' in json.dumps(shown)


@pytest.mark.skipif(not TAU.is_file(), reason="the recordings of tau-bench are not here")
def test_the_failures_of_tau_bench_have_many_causes(store: Store) -> None:
    report = import_file(TAU, store)
    rows = store.runs_of_execution(report.execution_id)
    failed = [row for row in rows if row.status == "failed"]
    found = Counter(
        cause.signature for causes in failure_causes(store, [r.id for r in failed]).values() for cause in causes
    )
    assert len(failed) == 69  # as tau-bench gave no reward
    assert len(found) >= 15
    assert max(found.values()) <= len(failed) / 3
    # A run that tau-bench lets pass makes the expected calls, but for one that changed nothing.
    assert sum("failed" in derived(store, row).values() for row in rows if row.status == "passed") <= 1


def test_inspect_shows_what_is_derived_beside_the_foreign_verdict(imported: Callable[..., Any], store: Store) -> None:
    from agenteval_tui.analysis.workbench import Workbench

    _, [(row, _)] = imported([tau(call("book", id="1", seats=[3]), call("cancel"), actions=BOOK)])
    bench = Workbench.open(store, row.id)
    assert [(one.name, one.derived, one.scratch) for one in bench.criteria] == [
        (EXPECTED, True, False), ("scratch", False, True),
    ]  # fmt: skip
    shown = bench.judge_all()
    assert [(one.criterion, one.derived) for one in shown] == [
        (EXPECTED, True), ("scratch", False), ("tau-bench reward", False), (OTHERS, True),
    ]  # fmt: skip
    stored = {one.criterion: one for one in store.results(row.id)}
    assert shown[0].criterion_hash == stored[EXPECTED].criterion_hash
    assert stored[OTHERS].criterion_hash == ""  # it was made for this run: no other run has the same
    assert shown[0].outcome == stored[EXPECTED].outcome == "failed"


def test_a_criterion_of_a_task_is_the_same_in_all_its_runs(imported: Callable[..., Any], store: Store) -> None:
    trials = [
        {**tau(call("book", id=str(number)), call(f"do_{number}"), actions=BOOK), "trial": number} for number in (0, 1)
    ]
    _, runs = imported(trials)
    assert len({row.criteria for row, _ in runs}) == 1
    assert len(runs[0][0].criteria) == 1
