"""ATIF 1.7 and 1.8 with sub-agents: each is a run of its own, and an export puts them together again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.formats.exporters.export import exporters, stored_runs
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.history.store import Store


def agent_step(number: int, text: str, call: str = "", result: str = "", **more: Any) -> dict[str, Any]:
    step: dict[str, Any] = {"step_id": number, "source": "agent", "message": text}
    if call:
        step["tool_calls"] = [{"tool_call_id": f"c{number}", "function_name": call, "arguments": {"q": "x"}}]
        step["observation"] = {"results": [{"source_call_id": f"c{number}", "content": result, **more}]}
    return step


def trajectory(version: str = "ATIF-v1.8") -> dict[str, Any]:
    search = {
        "schema_version": version, "session_id": "s-1", "trajectory_id": "t-search",
        "agent": {"name": "searcher", "version": "2"},
        "steps": [{"step_id": 1, "source": "user", "message": "Find x"},
                  agent_step(2, "", "grep", "found"), agent_step(3, "It is there.")],
        "final_metrics": {"total_prompt_tokens": 40, "total_completion_tokens": 4},
    }  # fmt: skip
    nested = {
        "trajectory_id": "t-nested", "agent": {"name": "helper", "version": "1"},
        "steps": [{"step_id": 1, "source": "user", "message": "Help"}, agent_step(2, "Helped.")],
    }  # fmt: skip
    search["subagent_trajectories"] = [nested]
    return {
        "schema_version": version, "session_id": "s-1", "trajectory_id": "t-main",
        "agent": {"name": "main", "version": "1", "model_name": "m"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Where is x?", "is_copied_context": True,
             "metrics": {"prompt_tokens": 999, "completion_tokens": 999}},
            agent_step(2, "I delegate.", "delegate", "It is there.",
                       subagent_trajectory_ref=[{"trajectory_id": "t-search", "session_id": "s-1"}]),
            {**agent_step(3, "x is there."), "llm_call_count": 1,
             "metrics": {"prompt_tokens": 7, "completion_tokens": 3}},
        ],
        "subagent_trajectories": [search],
    }  # fmt: skip


@pytest.fixture
def imported(tmp_path: Path) -> Callable[[Any], tuple[Store, list[Any], Any]]:
    def read(value: Any) -> tuple[Store, list[Any], Any]:
        path = tmp_path / "t.json"
        path.write_text(json.dumps(value))
        store = Store.open(tmp_path / "h.db")
        report = import_file(path, store)
        store.flush()
        return store, list(store.runs_of_execution(report.execution_id)), report

    return read


@pytest.mark.parametrize("version", ["ATIF-v1.7", "ATIF-v1.8"])
def test_each_sub_agent_is_a_run_of_its_own(imported: Callable[..., Any], version: str) -> None:
    store, runs, report = imported(trajectory(version))
    assert (report.read, report.added, report.skipped) == (3, 3, ())
    assert not any("subagent" in note or "trajectory" in note for note in report.notes), report.notes
    main, search, nested = runs
    assert [run.agent for run in runs] == ["main", "searcher", "helper"]
    assert [call.name for call in store.transcript(main.id).tool_calls] == ["delegate"]
    assert [call.name for call in store.transcript(search.id).tool_calls] == ["grep"]
    assert store.transcript(main.id).final_output == "x is there."
    assert store.transcript(main.id).usage.input_tokens == 7  # what was copied counts where it was asked
    assert search.variables["subagent"] == {"of": main.test_id, "call": "c2"}
    assert nested.variables["subagent"] == {"of": search.test_id, "call": ""}
    assert search.test_name.startswith("searcher: ")


def test_an_export_puts_them_together_again(imported: Callable[..., Any], tmp_path: Path) -> None:
    store, runs, _ = imported(trajectory())
    (line,) = exporters()["atif"].pieces(stored_runs(store, runs))
    made = json.loads(line)
    assert made["schema_version"] == "ATIF-v1.8"
    (search,) = made["subagent_trajectories"]
    assert [child["agent"]["name"] for child in search["subagent_trajectories"]] == ["helper"]
    (result,) = made["steps"][1]["observation"]["results"]
    assert result["subagent_trajectory_ref"] == [{"trajectory_id": search["trajectory_id"]}]
    (tmp_path / "again.jsonl").write_text(line)
    with Store.open(tmp_path / "again.db") as other:
        report = import_file(tmp_path / "again.jsonl", other)
        other.flush()
        again = other.runs_of_execution(report.execution_id)
        assert [run.agent for run in again] == [run.agent for run in runs]
        assert [run.variables["subagent"]["call"] for run in again[1:]] == ["c2", ""]
        for before, after in zip(runs, again, strict=True):
            assert other.transcript(after.id).messages == store.transcript(before.id).messages


def test_a_run_without_sub_agents_is_a_line_of_its_own(imported: Callable[..., Any]) -> None:
    store, runs, _ = imported([trajectory(), {**trajectory(), "session_id": "s-2", "subagent_trajectories": []}])
    lines = list(exporters()["atif"].pieces(stored_runs(store, runs)))
    assert ["subagent_trajectories" in json.loads(line) for line in lines] == [True, False]


def test_a_sub_agent_in_another_file_and_a_broken_one_are_said(imported: Callable[..., Any]) -> None:
    value = trajectory()
    reference = [{"trajectory_path": "other/search.json"}]
    value["steps"][1]["observation"]["results"][0]["subagent_trajectory_ref"] = reference
    value["subagent_trajectories"] = [{"trajectory_id": "t-broken", "agent": {"name": "x"}}]
    _, runs, report = imported(value)
    assert len(runs) == 1
    assert any("other/search.json" in note and "import that file too" in note for note in report.notes)
    assert any("has no steps" in reason for reason, _ in report.skipped)


@pytest.mark.parametrize(("version", "is_newer"), [("ATIF-v1.4", False), ("ATIF-v1.8", False), ("ATIF-v1.10", True)])
def test_a_newer_version_is_read_and_said(imported: Callable[..., Any], version: str, is_newer: bool) -> None:
    _, runs, report = imported(trajectory(version))
    assert len(runs) == 3
    assert any(f"it is of version {version}, newer than" in note for note in report.notes) == is_newer
