"""The figures of an execution, against values worked out by hand."""

from __future__ import annotations

import pytest

from agenteval_tui.analysis.statistics import Spread, clustered_interval
from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.confidence_sequence import confidence_sequence


def row(test: str, status: str, repetition: int = 1, **more: object) -> RunRow:
    values: dict[str, object] = {
        "rowid": 1, "id": "r", "execution_id": "e", "position": 0, "suite_key": "/s", "suite_name": "S",
        "test_id": test, "test_name": test.title(), "variation": "", "row": 0, "repetition": repetition,
        "agent": "a", "status": status, "score": None, "started_ms": 0, "duration_ms": 100.0, "attempts": 1,
        "input_tokens": None, "output_tokens": None, "cost": None, "prompt_head": "", "output_head": "", "why": "",
        "error_kind": "", "error_message": "", "variables": {}, **more,
    }  # fmt: skip
    return RunRow(**values)  # type: ignore[arg-type]


def test_by_test_and_overall() -> None:
    rows = [row("a", "passed"), row("a", "failed", 2), row("b", "passed"), row("b", "passed", 2), row("b", "error", 3)]
    stats = execution_stats(rows)
    a, b = stats.tests
    assert (a.id, a.n, a.passed, a.errors, a.pass_rate, a.flaky) == ("a", 2, 1, 0, 0.5, True)
    assert a.pass_at_k == {"1": 0.5, "2": 1.0}
    assert a.pass_hat_k == {"1": 0.5, "2": 0.0}
    assert (b.n, b.passed, b.errors, b.pass_rate, b.flaky) == (2, 2, 1, 1.0, False)
    overall = stats.overall
    assert (overall.tests, overall.n, overall.passed, overall.errors) == (2, 4, 3, 1)
    assert overall.pass_rate == 0.75
    assert overall.pass_hat_k == {"1": 0.75, "2": 0.5}
    assert overall.standard_error == pytest.approx(0.25)


def test_the_mean_is_over_tests_not_over_runs() -> None:
    rows = [row("a", "passed", n) for n in range(9)] + [row("b", "failed")]
    assert execution_stats(rows).overall.pass_rate == 0.5


def test_errors_count_when_asked_for() -> None:
    rows = [row("a", "passed"), row("a", "error", 2)]
    assert execution_stats(rows).tests[0].pass_rate == 1.0
    counted = execution_stats(rows, count_errors=True).tests[0]
    assert (counted.n, counted.errors, counted.pass_rate) == (2, 1, 0.5)


def test_nothing_decided_has_no_rate() -> None:
    stats = execution_stats([row("a", "error"), row("a", "cancelled", 2), row("b", "needs_review")])
    assert [test.pass_rate for test in stats.tests] == [None, None]
    assert [test.undecided for test in stats.tests] == [1, 1]
    assert stats.overall.pass_rate is None
    assert stats.overall.interval is None
    assert stats.overall.pass_at_k == {}
    assert execution_stats([]).tests == ()


def test_tests_with_fewer_runs_are_left_out_of_a_larger_k_and_that_is_said() -> None:
    rows = [row("a", "passed", n) for n in range(3)] + [row("b", "failed", n) for n in range(2)]
    overall = execution_stats(rows).overall
    assert overall.pass_hat_k == {"1": 0.5, "2": 0.5, "3": 1.0}
    assert overall.tests_at_k == {"1": 2, "2": 2, "3": 1}


def test_variations_and_rows_are_tests_of_their_own() -> None:
    rows = [
        row("a", "passed"),
        row("a", "failed", variation="mini"),
        row("d", "passed", row=1),
        row("d", "failed", row=2),
    ]
    assert [test.id for test in execution_stats(rows).tests] == ["a", "a [mini]", "d#1", "d#2"]
    two = [row("a", "passed"), row("a", "failed", suite_key="/x/other.suite.yaml")]
    assert len({test.id for test in execution_stats(two).tests}) == 2


def test_latency_tokens_and_cost() -> None:
    rows = [row("a", "passed", duration_ms=float(ms), input_tokens=ms, output_tokens=1) for ms in (100, 200, 300)]
    test = execution_stats(rows).tests[0]
    assert test.latency_ms == Spread(200.0, pytest.approx(290.0))
    assert test.tokens.p50 == 201.0
    assert test.cost == Spread(None, None)


def test_latency_tokens_cost_and_steps_are_medians_and_95_percent_points() -> None:
    rows = [
        row("a", "passed", n, id=f"r{n}", duration_ms=float(n), input_tokens=10 * n, output_tokens=n, cost=n / 100)
        for n in range(1, 22)
    ]
    rows.append(row("b", "error", id="unmeasured", duration_ms=None))
    stats = execution_stats(rows, steps={f"r{n}": n % 3 for n in range(1, 22)})
    for figures in (stats.tests[0], stats.overall):
        assert figures.latency_ms == Spread(11.0, 20.0)
        assert figures.tokens == Spread(121.0, 220.0)
        assert figures.cost == Spread(pytest.approx(0.11), pytest.approx(0.2))
        assert figures.steps == Spread(1.0, 2.0)
    assert stats.tests[1].steps == Spread(None, None)
    assert execution_stats(rows).overall.steps == Spread(None, None)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["/x/s.yaml", "/x/other.yaml"], ["s.yaml: a", "other.yaml: a"]),
        (["/x/s.yaml", "/y/s.yaml"], ["x/s.yaml: a", "y/s.yaml: a"]),
        (["/p/x/s.yaml", "/q/x/s.yaml", "/q/t.yaml"], ["p/x/s.yaml: a", "q/x/s.yaml: a", "t.yaml: a"]),
        (["/x/s.yaml", "/y/x/s.yaml"], ["/x/s.yaml: a", "y/x/s.yaml: a"]),
        (["/s.yaml", "/x/s.yaml"], ["/s.yaml: a", "x/s.yaml: a"]),
        (["import:tau:r.json", "import:inspect:r.json"], ["import:tau:r.json: a", "import:inspect:r.json: a"]),
        (["s.yaml", "x/s.yaml"], ["s.yaml: a", "x/s.yaml: a"]),
    ],
)
def test_tests_of_one_id_are_told_apart_by_their_suites_folders(keys: list[str], expected: list[str]) -> None:
    stats = execution_stats([row("a", "passed", suite_key=key) for key in keys])
    assert [one.id for one in stats.tests] == expected


def test_ids_that_look_like_rows_and_variations_stay_apart() -> None:
    rows = [
        row("a", "passed", row=1), row("a#1", "passed"), row("b", "passed", variation="v"), row("b [v]", "failed"),
        row("b [v] (2)", "failed"),
    ]  # fmt: skip
    assert [one.id for one in execution_stats(rows).tests] == [
        "a#1", "a#1 (2)", "b [v]", "b [v] (3)", "b [v] (2)"
    ]  # fmt: skip


def test_a_single_test_that_stopped_early_has_one_interval() -> None:
    rows = [row("a", "passed", n) for n in range(1, 7)] + [row("a", "skipped", n) for n in range(7, 11)]
    stats = execution_stats(rows)
    assert stats.tests[0].stopped_early
    assert stats.overall.interval == stats.tests[0].interval == confidence_sequence(6, 6)


def test_equal_tests_have_no_standard_error_and_an_interval_with_a_width() -> None:
    overall = execution_stats([row(name, "passed" if n < 7 else "failed", n) for name in "abc" for n in range(10)])
    assert overall.overall.standard_error == 0
    assert overall.overall.interval is None  # three tests are too few for one
    assert all(test.interval is not None for test in overall.tests)
    of_five = execution_stats([row(name, "passed" if n < 7 else "failed", n) for name in "abcde" for n in range(10)])
    assert of_five.overall.interval == clustered_interval([(7, 10)] * 5)


@pytest.mark.parametrize(
    ("tests", "repetitions", "shown"), [(1, 4, False), (1, 5, True), (2, 50, False), (4, 1, False), (5, 1, True)]
)
def test_fewer_than_five_cases_or_repetitions_of_one_have_no_interval(
    tests: int, repetitions: int, shown: bool
) -> None:
    rows = [row(f"t{number}", "passed", n) for number in range(tests) for n in range(repetitions)]
    assert (execution_stats(rows).overall.interval is not None) is shown
