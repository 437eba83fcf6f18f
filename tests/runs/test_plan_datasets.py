"""A run per row of a dataset."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.events import RunRef
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.transcripts.model import Transcript

SUITE = """
name: Support
agent: bot
agents: {bot: {kind: scripted}, other: {kind: scripted}}
tests:
  - id: rows
    PROMPT
    dataset: {file: rows.csv}
    variables: {tone: kind, country: Spain}
    repeat: 2
    criteria:
      - {name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: hello}]}}
    variations: [{name: warm, repeat: 1, config: {temperature: 1}}]
  - id: plain
    prompt: hi
    criteria:
      - {name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: hello}]}}
"""
ROWS = 'country,question,expected\nFrance,"How, and why?",Paris\n"Italy",Where is {{tone}}?,\nMalta,Who?,Valletta\n'

Load = Callable[..., LoadedSuite]
Planned = Callable[..., Plan]


@pytest.fixture
def planned(suite: Load, tmp_path: Path) -> Planned:
    """Plan the suite above with these rows."""

    def made(prompt: str = "prompt: '{{question}} ({{country}}, {{tone}})'", rows: str = ROWS, **options: Any) -> Plan:
        (tmp_path / "rows.csv").write_text(rows, "utf-8")
        store = options.pop("store", None)
        text = SUITE.replace("PROMPT", prompt)
        return make_plan([suite(text)], PlanOptions(**options), user_agents={}, store=store)

    return made


def short(plan: Plan) -> list[str]:
    return [f"{run.ref.test}{run.ref.row or ''}/{run.ref.variation}#{run.ref.repetition}" for run in plan.runs]


def keep(store: Store, plan: Plan, failed: Callable[[RunRef], bool]) -> None:
    """Store the plan's runs as if they had been run."""
    runs = [
        (
            PlannedRun(
                ref.run, plan.execution_id, number, run.suite_key, "S", ref.test, ref.test_name, ref.variation,
                ref.row, ref.repetition, ref.agent, row_key=ref.row_key,
            ),
            RunEnded(ref.run, "failed" if failed(ref) else "passed", 1.0, 1, 1.0, 1, Transcript()),
        )
        for number, run in enumerate(plan.runs)
        for ref in (run.ref,)
    ]  # fmt: skip
    options = dict(plan.options)
    store.import_runs(ExecutionRecord(plan.execution_id, "t", "run", "s", (), started_ms=1, options=options), runs)


def test_each_row_runs_in_each_configuration(planned: Planned) -> None:
    plan = planned()
    assert short(plan) == [
        "rows1/#1", "rows1/#2", "rows2/#1", "rows2/#2", "rows3/#1", "rows3/#2",
        "rows1/warm#1", "rows2/warm#1", "rows3/warm#1", "plain/#1",
    ]  # fmt: skip
    assert plan.tests == 2
    first, second = plan.runs[0], plan.runs[2]
    assert first.prompt == "How, and why? (France, kind)"
    assert second.prompt == "Where is {{tone}}? (Italy, kind)"  # what a row says is no template
    assert first.variables["country"] == "France"
    assert first.variables["tone"] == "kind"
    assert first.variables["expected_value"] == "Paris"
    assert first.seed == plan.runs[6].seed == 1_736_473_626
    assert len({run.seed for run in plan.runs if not run.ref.variation}) == 7


def test_repetitions_and_variations_share_what_is_alike(planned: Planned) -> None:
    one, two, *_ = runs = planned().runs
    assert one.messages is two.messages is runs[6].messages
    assert one.variables is two.variables is runs[6].variables


def test_a_column_is_the_prompt_where_the_test_has_none(planned: Planned) -> None:
    plan = planned("category: edge_case", repeat=1, variation="default", tests=("rows",))
    assert [run.prompt for run in plan.runs] == ["How, and why?", "Where is {{tone}}?", "Who?"]


def test_a_row_may_be_a_conversation(planned: Planned) -> None:
    rows = 'messages\n"[{""role"": ""user"", ""content"": ""a""}, {""role"": ""assistant"", ""content"": ""b""}, '
    rows += '{""role"": ""user"", ""content"": ""c {{x}}""}]"\n'
    plan = planned("category: edge_case", rows, repeat=1, tests=("rows",))
    assert [(one.role, one.content) for one in plan.runs[0].messages] == [
        ("user", "a"), ("assistant", "b"), ("user", "c {{x}}")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("prompt", "rows", "line", "what"),
    [
        ("prompt: '{{nope}}'", ROWS, 2, 'test \'rows\', row 1: the variable "nope" is not known'),
        ("prompt: '{{capital.name}}'", "capital\n{\"\"}\n", 2, "row 1"),
        ("category: negative", "country\nFrance\n", 2, "neither the test nor this row says what to ask the agent"),
        ("prompt: hi", "country,question\nFrance,a\nItaly\n", 3, "test 'rows': "),
        ("prompt: hi", "country,question\n", None, "rows"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_row_is_said_with_its_line(
    planned: Planned, tmp_path: Path, prompt: str, rows: str, line: int | None, what: str
) -> None:
    with pytest.raises(AgentevalError) as raised:
        planned(prompt, rows)
    assert what in raised.value.what
    assert raised.value.where.startswith(str(tmp_path / "rows.csv"))
    if line is not None:
        assert raised.value.where.removeprefix(str(tmp_path / "rows.csv")).split(":")[1] == str(line)


def test_a_missing_dataset_is_said(suite: Load, tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match="there is no such dataset") as raised:
        make_plan([suite(SUITE.replace("PROMPT", "prompt: x"))], PlanOptions(), user_agents={})
    assert raised.value.where == str(tmp_path / "rows.csv")


def test_a_sample_is_drawn_by_seed(planned: Planned) -> None:
    rows = "question\n" + "".join(f"q{number}\n" for number in range(50))
    options = {"prompt": "category: edge_case", "rows": rows, "variation": "default", "repeat": 1}
    first = planned(sample=10, **options)
    assert len(first.runs) == 10
    drawn = [(run.ref.test, run.ref.row) for run in first.runs]
    assert drawn == sorted(drawn, key=lambda one: (one[0] == "plain", one[1]))
    assert drawn == [(run.ref.test, run.ref.row) for run in planned(sample=10, **options).runs]
    other = [(run.ref.test, run.ref.row) for run in planned(sample=10, seed=1, **options).runs]
    assert drawn != other
    # A larger sample only adds: what was drawn stays.
    more = {(run.ref.test, run.ref.row) for run in planned(sample=20, **options).runs}
    assert set(drawn) < more
    assert len(planned(sample=1000, **options).runs) == 51


def test_a_sample_takes_all_runs_of_a_case(planned: Planned) -> None:
    runs = planned(sample=1, tests=("rows",)).runs
    assert len({run.ref.row for run in runs}) == 1
    assert [(run.ref.variation, run.ref.repetition) for run in runs] == [("", 1), ("", 2), ("warm", 1)]


def test_of_what_failed_only_those_rows_and_variations_run_again(
    planned: Planned, suite: Load, store: Store, tmp_path: Path
) -> None:
    bad = {("rows", "", 2, 2), ("rows", "warm", 3, 1)}
    keep(store, planned(), lambda ref: (ref.test, ref.variation, ref.row, ref.repetition) in bad)
    again = planned(failed_from="last", store=store)
    assert short(again) == ["rows2/#1", "rows2/#2", "rows3/warm#1"]
    assert short(planned(failed_from="last", store=store, variation="warm")) == ["rows3/warm#1"]
    assert short(planned(failed_from="last", store=store, sample=5)) == short(again)
    with pytest.raises(AgentevalError, match="are gone, or not selected"):
        planned(rows="country,question\nFrance,only one left\n", failed_from="last", store=store)


def test_what_failed_in_an_arm_runs_again_in_the_plain_configuration(planned: Planned, store: Store) -> None:
    plan = planned(ab=("bot", "other"), repeat=1)
    keep(store, plan, lambda ref: ref.row == 2 and ref.agent == "other")
    assert short(planned(failed_from="last", store=store, repeat=1)) == ["rows2/#1"]
    again = planned(failed_from="last", store=store, repeat=1, ab=("bot", "other"))
    assert short(again) == ["rows2/B: other#1"]


def test_expected_columns_are_graded_by(suite: Load, execution: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(
        '{"inputs": {"question": "a"}, "outputs": {"answer": "hello"}}\n'
        '{"inputs": {"question": "b"}, "outputs": {"answer": "good bye"}}\n'
    )
    made = execution(
        """
        name: Course
        agent: bot
        agents: {bot: {kind: scripted}}
        tests:
          - id: course
            dataset: {file: rows.jsonl}
            criteria:
              - name: c
                prototype_class: TextResponse
                config_uxon: {metrics: [{type: TextMatch, equals: "{{expected_value}}"}]}
        """
    )
    asyncio.run(made.run())
    made.store.flush()
    rows = made.store.runs_of_execution(made.engine.plan.execution_id)
    assert [(row.row, row.prompt_head, row.status) for row in rows] == [(1, "a", "passed"), (2, "b", "failed")]
