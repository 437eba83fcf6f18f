"""What an execution says of its tests, below the list of executions."""

from __future__ import annotations

from array import array
from typing import Any, cast

from msgspec.structs import replace

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.tui.presenters.history_rows import MOST_RUNS, UNLIKE, ExecutionRows, outcomes_of_tests, test_lines
from agenteval_tui.tui.screens.history.controller import EXECUTIONS_KEPT, HistoryController
from agenteval_tui.tui.styled_text import plain, width_of

MISS = Evidence(
    "contains", False, expected="5000", found="5.000", code=Code.MISSING,
    fields={"side": "contains", "near": {"is": "form", "text": "5.000", "line": 4, "steps": ["separators"]}},
)  # fmt: skip


def run(test: str, status: str, suite: str = "s", cost: float | None = None) -> RunRow:
    empty: dict[str, Any] = dict.fromkeys(RunRow.__struct_fields__, "")
    empty |= {"input_tokens": None, "output_tokens": None}  # not measured
    given = {"id": test, "test_id": test, "status": status, "suite_key": suite, "suite_name": suite, "cost": cost}
    return RunRow(**cast("dict[str, Any]", {**empty, **given}))


def results_of(_run: str) -> list[CriterionResult]:
    metric = MetricResult("m", "TextMatch", Outcome.FAILED, 0.0, evidence=(MISS,))
    return [CriterionResult("says the \x1b[31m sum", Outcome.FAILED, 0.0, metrics=(metric,))]


def test_what_fails_most_comes_first_with_its_reason_and_cost() -> None:
    runs = [run("fine", "passed"), run("half", "passed", cost=0.5), run("half", "failed", cost=0.25)]
    runs += [run("bad", "failed"), run("down", "error"), run("twice", "passed"), run("twice", "passed", "other")]
    tests = outcomes_of_tests(runs, results_of)
    assert [one.name for one in tests] == ["bad", "half", "down", "fine", "twice · s", "twice · other"]
    lines = [plain(line).rstrip() for line in test_lines(tests, 120, 9)]
    assert lines[0].endswith('0/1  says the ␛[31m sum  expected "5000"  got "5.000"')
    assert lines[1].split()[:4] == ["~", "half", "✓✗", "1/2"]
    assert lines[1].endswith("$0.75")
    assert lines[3].split() == ["✓", "fine", "✓", "1/1"]
    narrow = test_lines(tests, 60, 3)
    assert plain(narrow[0]).rstrip().endswith('expected "5000"  got "5.000"'), "what decides stays"
    least = [plain(test_lines(tests, width, 3)[0]).rstrip() for width in range(40, 60)]
    assert any(line.endswith(f'"5000"{UNLIKE}"5.000"') for line in least), "the values take less room than words"
    assert plain(narrow[2]).strip() == "… 4 more tests"
    many = outcomes_of_tests([run("t", "failed")] * 500, results_of)
    for width in (20, 40, 80, 200):
        assert all(width_of(line) <= width for line in test_lines([*tests, *many], width, 20))


def test_the_list_gives_its_tests_the_room_below_it() -> None:
    empty: dict[str, Any] = dict.fromkeys(ExecutionRow.__struct_fields__, 0)
    row = ExecutionRow(
        **cast(
            "dict[str, Any]",
            {
                **empty,
                "id": "E",
                "status": "finished",
                "runs": 2,
                "cost": 0.75,
                "name": "",
                "note": "",
                "meta": {},
                "commits": (),
            },
        )
    )
    controller = HistoryController()
    assert controller.rows_beside_tests(40) == 0, "nothing is listed yet"
    controller.rows = ExecutionRows(array("q", [0, 1]))
    assert controller.rows_beside_tests(40) == 2
    assert controller.rows_beside_tests(9) == 0
    assert controller.execution_at(5) is None
    tests = outcomes_of_tests([run("a", "passed")], results_of)
    assert controller.tests_of(row) is None
    assert controller.take_tests(row, tests)
    assert not controller.take_tests(row, tests), "it is shown already"
    assert controller.tests_of(row) == tests
    assert controller.tests_heading() == ("tests", "1 test · 0 tokens · $0.75")
    assert controller.tests_of(replace(row, status="running")) is None, "more runs may have ended"
    partial = replace(row, id="F", status="running", runs=1)
    assert controller.take_tests(partial, tests[:0])
    assert controller.tests_of(replace(partial, status="finished")) is None, "it ended with more than was read"
    assert controller.tests_of(replace(row, runs=3)) is None, "it was resumed meanwhile"
    controller.take_tests(row, tests)
    controller.take_tests(replace(row, runs=MOST_RUNS + 1), [])
    assert plain(controller.test_lines(80, 10)[0]).strip() == "2,001 runs: press enter to list them."
    for number in range(EXECUTIONS_KEPT + 5):
        controller.take_tests(replace(row, id=str(number)), tests)
    assert controller.tests_of(row) is None
