"""An agent is its configuration: what is told apart by it, and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.agents.stored_config import agent_version
from agenteval_tui.analysis.trend_scores import extras
from agenteval_tui.analysis.trends import TrendQuery
from agenteval_tui.analysis.variance import VarianceComponent, VarianceReport, ledger
from agenteval_tui.core.ids import new_id, now_ms
from agenteval_tui.formats.documents.flaky import flaky_document
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.views.trends import break_text

NOW = now_ms()
BASE: dict[str, Any] = {
    "kind": "openai", "model": "m1", "temperature": 0, "system": "Be kind.", "api_key": "${KEY}",
    "base_url": "https://host/v1", "headers": {"Authorization": "Bearer ${KEY}", "X-Team": "a"},
    "tools": [{"name": "t", "mock": {"result": 1}}], "timeouts": {"total": 5},
}  # fmt: skip
ENV = {"KEY": "k-1", "MODEL": "m1"}


@pytest.mark.parametrize(
    ("change", "env"),
    [
        ({"api_key": "${OTHER}"}, {"OTHER": "k-2"}),
        ({"api_key": "written-out"}, {}),
        ({"api_key_env": "KEY"}, {}),
        ({}, {"KEY": "k-2"}),
        ({"headers": {"Authorization": "Bearer other", "X-Team": "a"}}, {}),
        ({"base_url": "https://me:secret@host/v1"}, {}),
        ({"timeouts": {"total": 500}}, {}),
        ({"concurrency": 4, "max_attempts": 9, "price": {"input": 1}}, {}),
        ({"model": "${MODEL}"}, {}),
        ({"model": "${NOPE:-m1}"}, {}),
    ],
)
def test_what_is_no_other_agent(change: dict[str, Any], env: dict[str, str]) -> None:
    assert agent_version({**BASE, **change}, None, {**ENV, **env}) == agent_version(BASE, None, ENV)


@pytest.mark.parametrize(
    ("change", "env"),
    [
        ({"model": "m2"}, {}),
        ({"model": "${MODEL}"}, {"MODEL": "m2"}),
        ({"temperature": 0.5}, {}),
        ({"system": "Be rude."}, {}),
        ({"tools": []}, {}),
        ({"tools": [{"name": "t", "mock": {"result": 2}}]}, {}),
        ({"base_url": "https://other/v1"}, {}),
        ({"headers": {"Authorization": "Bearer ${KEY}", "X-Team": "b"}}, {}),
        ({"max_tokens": 5}, {}),
        ({"kind": "anthropic"}, {}),
    ],
)
def test_what_is_another_agent(change: dict[str, Any], env: dict[str, str]) -> None:
    assert agent_version({**BASE, **change}, None, {**ENV, **env}) != agent_version(BASE, None, ENV)


def test_a_file_of_tools_counts_by_what_it_says(tmp_path: Path) -> None:
    def with_tools(result: int) -> str:
        (tmp_path / "tools.yaml").write_text(f"- {{name: t, description: d, mock: {{result: {result}}}}}\n", "utf-8")
        return agent_version({**BASE, "tools": "tools.yaml"}, tmp_path, ENV)

    assert with_tools(1) == with_tools(1) != with_tools(2)


def entry(store: Store, *executions: tuple[str, str, str, str]) -> VarianceComponent:
    """What the ledger says of a test after executions of (agent's name, version, criterion, outcomes as `++-`)."""
    for number, (agent, version, criterion, outcomes) in enumerate(executions):
        execution, runs = new_id(), []
        for place, sign in enumerate(outcomes):
            outcome = Outcome.PASSED if sign == "+" else Outcome.FAILED
            planned = PlannedRun(
                new_id(), execution, place, "/s", "S", "t", "t", repetition=place + 1, agent=agent,
                agent_version=version, criteria=(criterion,), specs=({"name": criterion},),
            )  # fmt: skip
            result = CriterionResult("good", outcome, 1.0, criterion_hash=criterion)
            ended = RunEnded(
                planned.id, str(outcome), 1.0, NOW + number * 1000 + place, 1.0, 1, Transcript(), (result,)
            )
            runs.append((planned, ended))
        store.import_runs(ExecutionRecord(execution, "t", "run", "s", ("/s",), started_ms=NOW + number * 1000), runs)
    (one,) = ledger(store, TrendQuery(since_ms=None, until_ms=NOW + 1_000_000), NOW).tests
    return one


@pytest.mark.parametrize(
    ("executions", "flaky", "step"),
    [
        ([("bot", "v1", "c", "+++++"), ("bot", "v2", "c", "-----")], False, "regression"),
        ([("bot", "v1", "c", "-----"), ("bot", "v2", "c", "+++++")], False, "improvement"),
        ([("bot", "v1", "c", "+++++"), ("bot", "v1", "c", "-----")], False, "regression"),
        ([("old", "v1", "c", "+++++"), ("new", "v1", "c", "-----")], False, "regression"),
        ([("bot", "v1", "c", "+++++"), ("bot", "v1", "d", "-----")], False, "regression"),
        ([("bot", "v1", "c", "++-++"), ("bot", "v2", "c", "-----")], True, "regression"),
        ([("bot", "v1", "c", "+++"), ("bot", "v2", "c", "---"), ("bot", "v3", "c", "+++")], False, "improvement"),
        ([("bot", "v1", "c", "+++"), ("bot", "v2", "c", "---"), ("bot", "v1", "c", "+++")], False, "improvement"),
        ([("bot", "v1", "c", "+++++"), ("bot", "v2", "c", "+++++")], False, ""),
        ([("bot", "", "c", "+++++"), ("bot", "", "c", "-----")], False, "regression"),
        ([("bot", "", "c", "+++++"), ("bot", "v1", "c", "-----")], False, "regression"),
        ([("one", "", "c", "+++++"), ("two", "", "c", "-----")], False, "regression"),
        ([("bot", "v1", "c", "+"), ("bot", "v1", "d", "-"), ("bot", "v1", "c", "-")], False, "regression"),
    ],
)
def test_a_step_from_one_configuration_to_the_next_is_not_flaky(
    store: Store, executions: list[tuple[str, str, str, str]], flaky: bool, step: str
) -> None:
    found = entry(store, *executions)
    assert (found.flaky, found.step.kind if found.step is not None else "") == (flaky, step)
    assert (found.n, found.passed) == (
        sum(len(one[3]) for one in executions),
        sum(one[3].count("+") for one in executions),
    )
    listed = flaky_document(VarianceReport((found,), {}, 0), [found], []).tests[0].by_configuration
    assert sum(part.n for part in listed) == found.n
    if step:
        assert listed[-1].configuration == (executions[-1][1] or None)


@pytest.mark.parametrize(
    ("versions", "breaks"),
    [
        (["v1", "v1"], []),
        (["v1", "v2"], [("bot", "v1", "v2")]),
        (["v1", "v2", "v2", "v1"], [("bot", "v1", "v2"), ("bot", "v2", "v1")]),
        (["", "v1", "", "v1"], []),
        (["v1", "", "v2"], [("bot", "v1", "v2")]),
    ],
)
def test_a_trend_breaks_where_the_configuration_changed(
    store: Store, versions: list[str], breaks: list[tuple[str, str, str]]
) -> None:
    entry(store, *[("bot", version, "c", "++") for version in versions])
    found = extras(store, TrendQuery(since_ms=None, until_ms=NOW + 1_000_000)).breaks
    assert [(one.agent, one.old, one.new) for one in found] == breaks
    assert all(one.kind == "agent" and "another configuration" in break_text(one) for one in found)


@pytest.mark.parametrize("planned", [True, False], ids=["planned", "a file's own results"])
@pytest.mark.parametrize(
    ("versions", "breaks"),
    [("cc", []), ("cd", [("c", "d")]), ("ccdd", [("c", "d")]), ("cdc", [("c", "d"), ("d", "c")])],
)
def test_a_trend_breaks_where_a_criterion_changed(
    tmp_path: Path, versions: str, breaks: list[tuple[str, str]], planned: bool
) -> None:
    """Also where the plan names no criteria; a test beside it that has one version only has no break."""
    with Store.open(tmp_path / "history.db") as store:
        for number, version in enumerate(versions):
            at, execution, runs = NOW + number * 1000, new_id(), []
            for place, (test, judge) in enumerate([("changing", version), ("steady", "c")]):
                run = PlannedRun(
                    new_id(), execution, place, "/s", "S", test, test, agent="bot", criteria=(judge,),
                    specs=({"name": judge},),
                )  # fmt: skip
                if not planned and number + place:  # both are known after the first
                    run = replace(run, criteria=(), specs=())
                result = CriterionResult("good", Outcome.PASSED, 1.0, criterion_hash=judge)
                ended = RunEnded(run.id, "passed", 1.0, at + place, 1.0, 1, Transcript(), (result,))
                runs.append((run, ended))
            if number == 0:
                extra = PlannedRun(
                    new_id(), execution, 2, "/s", "S", "other", "other", agent="bot", criteria=("d",),
                    specs=({"name": "d"},),
                )  # fmt: skip
                runs.append((extra, RunEnded(extra.id, "passed", 1.0, at + 2, 1.0, 1, Transcript(), ())))
            store.import_runs(ExecutionRecord(execution, "t", "run", "s", ("/s",), started_ms=at), runs)
        found = extras(store, TrendQuery(since_ms=None, until_ms=NOW + 1_000_000)).breaks
        assert [(one.test_id, one.kind, one.old, one.new) for one in found] == [
            ("changing", "changed", old, new) for old, new in breaks
        ]
