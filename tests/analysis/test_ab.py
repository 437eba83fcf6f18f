"""Two arms over the same tests and rows."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace
from scientific import scipy

from agenteval_tui.analysis.ab import _recommended, compare_ab, compare_arms
from agenteval_tui.analysis.statistics import PairedCounts, wilson
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import least_points
from agenteval_tui.formats.documents.stats import ab_document
from agenteval_tui.history.records import RunRow
from agenteval_tui.views.ab import ab_view
from agenteval_tui.views.terminal import plain_text

# One process of the tests is enough to load SciPy in, which it does when it is first asked for something.
pytestmark = pytest.mark.xdist_group("scipy")


def run(test: str, arm: str = "A", status: str = "passed", *, row: int = 0, repetition: int = 1, **more: Any) -> RunRow:
    given: dict[str, Any] = {
        "rowid": 1, "id": "R", "execution_id": "E", "position": 0, "suite_key": "/s", "suite_name": "S",
        "test_id": test, "test_name": test.upper(), "variation": f"{arm}: {'big' if arm == 'A' else 'small'}",
        "row": row, "repetition": repetition, "agent": "x", "status": status, "score": 1.0, "started_ms": 1,
        "duration_ms": None, "attempts": 1, "input_tokens": None, "output_tokens": None, "cost": None,
        "prompt_head": "", "output_head": "", "why": "", "error_kind": "", "error_message": "", "variables": {},
    }  # fmt: skip
    return RunRow(**{**given, **more})


def rows(outcomes: Sequence[tuple[str, str]]) -> list[RunRow]:
    """One case each: (status under A, status under B)."""
    return [
        run("t", arm, status, row=number)
        for number, pair in enumerate(outcomes, 1)
        for arm, status in zip("AB", pair, strict=True)
    ]


def many(both: int, only_a: int, only_b: int, neither: int) -> list[RunRow]:
    p, f = "passed", "failed"
    return rows([(p, p)] * both + [(p, f)] * only_a + [(f, p)] * only_b + [(f, f)] * neither)


def test_a_clear_winner_is_recommended() -> None:
    found = compare_ab(many(50, 5, 30, 15))
    assert (found.a.name, found.b.name, found.cases, found.unpaired) == ("big", "small", 100, 0)
    assert (found.a.pass_rate, found.b.pass_rate) == (0.55, 0.8)
    assert found.pairs == PairedCounts(50, 5, 30, 15)
    assert found.difference == pytest.approx(0.25)
    assert found.interval is not None
    assert 0.1 < found.interval[0] < 0.25 < found.interval[1] < 0.4
    assert found.test == "mcnemar"
    assert found.p_value == pytest.approx(scipy.stats.binomtest(5, 35, 0.5).pvalue)
    assert found.recommended == "B"
    assert found.conclusion.startswith("B: small passes 25.0 points more often than A: big (B minus A: 95 % interval +")


def test_the_other_way_round() -> None:
    found = compare_ab(many(50, 30, 5, 15))
    assert found.recommended == "A"
    assert found.conclusion.startswith("A: big passes 25.0 points more often than B: small (B minus A: 95 % interval -")


@pytest.mark.parametrize(
    "runs",
    [
        many(50, 12, 14, 24),
        many(0, 0, 4, 0),  # all four got better: four are not enough
        many(0, 0, 1, 0),
        many(10, 0, 0, 0),
        [run("t", arm, "passed" if arm == "B" else "failed", repetition=n) for n in range(1, 51) for arm in "AB"],
    ],
    ids=["alike", "four", "one", "same", "repetitions of one case"],
)
def test_nothing_is_recommended_where_it_may_be_chance(runs: list[RunRow]) -> None:
    found = compare_ab(runs)
    assert found.recommended == ""
    if found.one_case:
        assert found.conclusion.endswith("This speaks of this case alone: other cases may differ.")
        return
    assert found.interval is None or found.interval[0] <= 0 <= found.interval[1]
    assert found.conclusion.startswith("No difference is shown: ")


@pytest.mark.parametrize("cases", [1, 2, 3, 4])
def test_of_fewer_than_five_cases_a_line_says_too_few_and_no_interval_is_given(cases: int) -> None:
    """Nor of the arms, nor of what was measured."""
    runs = [replace(one, cost=0.1 * number, duration_ms=10.0 * number, input_tokens=number)
            for number, one in enumerate(many(0, 0, cases, 0))]  # fmt: skip
    found = compare_ab(runs)
    assert (found.cases, found.difference, found.interval, found.one_case) == (cases, 1.0, None, False)
    assert (found.a.interval, found.b.interval) == (None, None)
    assert not any(one.interval for one in (found.tokens, found.cost, found.latency_ms) if one is not None)
    said = plain_text(ab_view(found, tests=True))
    assert "too few" in said
    assert "interval" not in said
    assert " to " not in said.replace("too few to", "").replace("A to B", "")
    assert compare_ab(many(0, 0, 5, 0)).interval is not None


def repeated(passed_a: int, passed_b: int, n: int) -> list[RunRow]:
    """One case, repeated under both arms."""
    return [
        run("t", arm, "passed" if number <= passed else "failed", repetition=number)
        for arm, passed in (("A", passed_a), ("B", passed_b))
        for number in range(1, n + 1)
    ]


def test_the_repetitions_of_a_single_case_are_compared_and_speak_of_it_alone() -> None:
    found = compare_ab(repeated(2, 9, 10))
    assert (found.cases, found.one_case, found.test) == (1, True, "fisher")
    assert found.difference == pytest.approx(0.7)
    assert found.p_value == pytest.approx(scipy.stats.fisher_exact([[2, 8], [9, 1]]).pvalue)
    # Newcombe's method 10, from the Wilson intervals of 2 and 9 of 10.
    assert found.interval == pytest.approx((0.2658, 0.8652), abs=1e-4)
    assert found.a.interval == wilson(2, 10)
    assert found.recommended == "", "nothing is known of other cases"
    said = plain_text(ab_view(found))
    assert "B: small passes 70.0 points more often than A: big" in said
    assert "for this case alone, 1 case, 10 and 10 repetitions, Fisher's exact test: p = 0.00" in said
    assert "This speaks of this case alone: other cases may differ." in said
    alike = compare_ab(repeated(6, 7, 10))
    assert alike.conclusion.startswith("No difference is shown: +10.0 points")
    assert alike.conclusion.endswith("This speaks of this case alone: other cases may differ.")
    few = compare_ab(repeated(0, 3, 3))
    assert (few.one_case, few.interval) == (True, None)
    assert "3 repetitions of one case are too few" in few.conclusion
    assert ab_document("E", found).one_case


def test_what_so_many_cases_could_have_shown_is_said() -> None:
    found = compare_ab(many(50, 12, 14, 24))
    assert found.detectable is not None
    assert 0.1 < found.detectable < 0.2
    assert f"this many cases can show {least_points(found.detectable)} or more" in found.conclusion
    assert "can't show any" in compare_ab(many(0, 0, 1, 0)).conclusion


def test_repetitions_are_no_cases_of_their_own() -> None:
    listed = []
    for number in range(1, 21):
        for repetition in range(1, 6):
            listed.append(run("t", "A", "failed" if repetition > 2 else "passed", row=number, repetition=repetition))
            listed.append(run("t", "B", "failed" if repetition > 3 else "passed", row=number, repetition=repetition))
    found = compare_ab(listed)
    assert (found.cases, found.a.n, found.pairs.n, found.test) == (20, 100, 100, "sign-flip")
    assert found.difference == pytest.approx(0.2)
    assert found.p_value is not None
    assert found.p_value < 0.001
    (test,) = found.tests
    assert (test.test, test.name, test.cases, test.n_a, test.passed_a, test.n_b, test.passed_b) == (
        "t", "T", 20, 100, 40, 100, 60
    )  # fmt: skip
    assert test.difference == pytest.approx(0.2)


def test_each_case_weighs_alike() -> None:
    listed = [run("often", arm, "passed", repetition=n) for n in range(1, 10) for arm in "AB"]
    listed += [run("once", "A", "failed"), run("once", "B", "passed")]
    found = compare_ab(listed)
    assert found.difference == 0.5
    assert [(one.test, one.difference) for one in found.tests] == [("often", 0.0), ("once", 1.0)]


def test_errors_are_no_verdicts_unless_asked_for() -> None:
    listed = [*rows([("passed", "error"), ("passed", "passed")]), run("queued", "A"), run("queued", "B", "queued")]
    found = compare_ab(listed)
    assert (found.cases, found.unpaired, found.b.errors, found.b.undecided, found.difference) == (1, 2, 1, 1, 0.0)
    counting = compare_ab(listed, count_errors=True)
    assert (counting.cases, counting.difference) == (2, -0.5)
    assert counting.pairs == PairedCounts(1, 1, 0, 0)


def test_tokens_cost_and_latency() -> None:
    draw = random.Random(1)
    listed = []
    for number in range(40):
        tokens = draw.randrange(100, 200)
        listed.append(run("t", "A", row=number, input_tokens=tokens, output_tokens=10, cost=0.01, duration_ms=1000.0))
        listed.append(run("t", "B", row=number, input_tokens=tokens, output_tokens=40, cost=None, duration_ms=700.0))
    found = compare_ab(listed)
    assert found.tokens is not None
    assert (found.tokens.difference, found.tokens.interval, found.tokens.n) == (30.0, None, 40), (
        "no spread, no interval"
    )
    assert found.latency_ms is not None
    assert found.latency_ms.difference == -300
    assert found.cost is None  # not known of B
    assert (found.a.cost, found.b.cost) == (pytest.approx(0.01), None)


def test_the_same_runs_give_the_same_result() -> None:
    assert compare_ab(many(40, 3, 9, 8)) == compare_ab(many(40, 3, 9, 8))


def test_any_two_lists_of_runs_can_be_compared() -> None:
    a = [run(test, variation="") for test in "abc"]
    b = [run(test, variation="", status="failed") for test in "bcd"]
    found = compare_arms(a, b, names=("before", "after"))
    assert (found.cases, found.unpaired, found.difference) == (2, 2, -1.0)
    assert (
        "A: before"
        in compare_arms(many(50, 5, 30, 15)[::2], many(50, 5, 30, 15)[1::2], names=("before", "x")).conclusion
    )


def test_nothing_in_common() -> None:
    found = compare_arms([run("a")], [run("b", "B")])
    assert (found.cases, found.difference, found.interval, found.p_value, found.recommended) == (
        0,
        None,
        None,
        None,
        "",
    )
    assert found.conclusion.startswith("No conclusion")


def test_an_execution_without_arms_is_refused() -> None:
    with pytest.raises(AgentevalError, match="does not compare two arms"):
        compare_ab([run("a", variation="cold")])
    with pytest.raises(AgentevalError):
        compare_ab([run("a")])


def test_the_result_as_json() -> None:
    data = json.loads(json.dumps(to_builtins(ab_document("E", compare_ab(many(5, 1, 2, 1))))))
    assert data["version"] == 1
    assert data["pairs"] == {"both": 5, "only_a": 1, "only_b": 2, "neither": 1}
    assert len(data["interval"]) == 2
    assert data["tests"][0]["passed_b"] == 7


def test_a_case_is_one_pair_only_if_each_arm_ran_it_once_in_the_same_repetition() -> None:
    once = many(5, 1, 4, 2)
    assert compare_ab(once).test == "mcnemar"
    again = run("t", "B", "passed", row=3, repetition=2)
    assert compare_ab([*once, again]).test == "sign-flip", "one case has two runs under B"
    moved = [replace(one, repetition=2) if one.row == 3 and one.variation.startswith("B") else one for one in once]
    found = compare_ab(moved)
    assert (found.test, found.cases) == ("sign-flip", 12), "the runs of one case are no pair"
    assert found.pairs == PairedCounts(4, 1, 4, 2)
    undecided = replace(again, status="error")
    assert compare_ab([*once, undecided]).test == "mcnemar", "an error is no run that counts"
    assert compare_ab([*once, undecided], count_errors=True).test == "sign-flip"


@pytest.mark.parametrize(
    ("interval", "p_value", "arm"),
    [
        ((0.1, 0.3), 0.01, "B"),
        ((-0.3, -0.1), 0.01, "A"),
        ((0.1, 0.3), 0.05, "B"),
        ((0.1, 0.3), 0.0501, ""),
        ((0.0, 0.3), 0.01, ""),
        ((-0.3, 0.0), 0.01, ""),
        ((-0.1, 0.3), 0.01, ""),
        ((0.1, 0.3), None, ""),
        (None, 0.01, ""),
    ],
)
def test_an_arm_is_recommended_if_its_interval_is_without_0_and_chance_is_unlikely(
    interval: tuple[float, float] | None, p_value: float | None, arm: str
) -> None:
    assert _recommended(interval, p_value) == arm


def test_five_cases_that_all_went_one_way_may_be_chance_and_six_are_not() -> None:
    five, six = compare_ab(many(0, 0, 5, 0)), compare_ab(many(0, 0, 6, 0))
    assert (five.p_value, five.recommended) == (0.0625, "")
    assert (six.p_value, six.recommended) == (0.03125, "B")


@pytest.mark.parametrize("cases", [1, 2, 4, 5])
def test_intervals_begin_at_five_cases(cases: int) -> None:
    """Of each arm, of the difference, and of what was measured; of one measured case not even the difference."""
    listed = [
        run(f"t{case}", arm, "passed" if (case + more) % 2 else "failed", duration_ms=(100 + more) * case)
        for case in range(1, cases + 1)
        for arm, more in (("A", 0), ("B", 1))
    ]
    result = compare_ab(listed)
    assert (result.a.interval is not None, result.b.interval is not None) == (cases >= 5, cases >= 5)
    assert (result.interval is not None) == (cases >= 5)
    assert (result.latency_ms is None) == (cases == 1)
    if result.latency_ms is not None:
        assert result.latency_ms.difference == pytest.approx((cases + 1) / 2)
        assert (result.latency_ms.interval is not None) == (cases >= 5)


@pytest.mark.parametrize(
    ("n_a", "n_b", "alone", "interval"),
    [(1, 9, False, False), (2, 2, True, False), (4, 9, True, False), (5, 9, True, True)],
)
def test_the_arm_with_fewer_repetitions_decides(n_a: int, n_b: int, alone: bool, interval: bool) -> None:
    """A single case: from two repetitions of each arm on they are compared, from five on with an interval."""
    listed = [
        run("t", arm, "passed" if number % 2 else "failed", repetition=number)
        for arm, n in (("A", n_a), ("B", n_b))
        for number in range(1, n + 1)
    ]
    result = compare_ab(listed)
    assert (result.one_case, result.interval is not None) == (alone, interval)


def test_the_difference_of_each_test_is_b_minus_a() -> None:
    listed = [
        run("t", "A", "passed", row=1),
        run("t", "B", "failed", row=1),
        run("t", "A", "passed", row=2),
        run("t", "B", "passed", row=2),
    ]
    (test,) = compare_ab(listed).tests
    assert (test.n_a, test.passed_a, test.n_b, test.passed_b, test.difference) == (2, 2, 2, 1, -0.5)
