"""Two sides compared: what counts as a change, how runs are paired, which test is used, and sides by their names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from compared import AFTER, BEFORE, NEW, NOON, OLD, Planned, answered, keep, renamed, text, two_executions
from msgspec.structs import replace
from scientific import scipy

from agenteval_tui.analysis.comparison import compare, compare_runs, metric_changes
from agenteval_tui.analysis.comparison_model import Comparison, Side
from agenteval_tui.analysis.comparison_sides import Sides, sides_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.baselines import set_baseline, set_baseline_run
from agenteval_tui.history.comparison_queries import ComparedRun
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.views.comparison import (
    counts_text,
    notes,
    overall_in_short,
    overall_text,
    overall_view,
    power_text,
    rate_text,
    short_power_text,
    significance_text,
)
from agenteval_tui.views.terminal import plain_text

# One process of the tests is enough to load SciPy in, which it does when it is first asked for something.
pytestmark = pytest.mark.xdist_group("scipy")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "h.db") as opened:
        yield opened


def compared(store: Store, **sides: object) -> Comparison:
    return compare(store, *sides_of(store, Sides(**sides)))  # type: ignore[arg-type]


def made(test: str, status: str, number: int = 0, *, side: str = "A", **more: object) -> ComparedRun:
    """A run that was never stored."""
    run = ComparedRun(
        number, f"{side}{test}{number}", side, 1, "/s", "S", test, test, "", 0, 1, "x", status,
        {"passed": 1.0, "failed": 0.0}.get(status), 100.0, 10, 5, 0.1, False, None, 1,
    )  # fmt: skip
    return replace(run, **more)  # type: ignore[arg-type]


def side(runs: list[ComparedRun], kind: str = "execution") -> Side:
    return Side(kind=kind, name="s", reference="ref", runs=tuple(runs))


def of(outcomes: list[tuple[str, str]]) -> Comparison:
    """Each pair is a test that ran once on both sides."""
    left = [made(f"t{n}", was, n) for n, (was, _) in enumerate(outcomes)]
    right = [made(f"t{n}", now, n + 1_000, side="B") for n, (_, now) in enumerate(outcomes)]
    return compare_runs(side(left), side(right), {}, {})


def test_every_kind_of_change_regressions_first(store: Store) -> None:
    two_executions(store)
    found = compared(store, a=OLD, b=NEW)
    assert [(one.state, one.test) for one in found.tests] == [
        ("worse", "greeting"), ("worse", "both-ways"), ("worse", "refund-policy"),
        ("better", "customers-germany"), ("score", "keywords"), ("undecided", "broken"), ("added", "fresh"),
        ("removed", "gone"), ("same", "top-products"),
    ]  # fmt: skip
    assert counts_text(found).startswith(
        "3 tests worse, 1 test better, 1 other score, 1 test without a verdict on one side"
    )
    by_name = {one.test: one for one in found.tests}
    refund = by_name["refund-policy"]
    assert refund.was is not None
    assert refund.now is not None
    assert (refund.was.passed, refund.was.n, refund.now.passed, refund.now.n) == (5, 5, 2, 5)
    assert refund.difference == pytest.approx(-0.6)
    assert refund.p_value == pytest.approx(scipy.stats.fisher_exact([[5, 0], [2, 3]]).pvalue)
    # The first, third and fifth repetition failed: their own counterparts are the pairs.
    assert [pair[1][-1] for pair in refund.pairs] == ["1", "3", "5"]
    assert all(one[-1] == other[-1] for one, other in refund.pairs)
    germany = by_name["customers-germany"].criteria[0]
    assert germany.edited
    assert germany.state == "better"
    assert by_name["broken"].now is not None
    assert by_name["broken"].now.errors == 1, "an error is no verdict, and no regression"
    assert by_name["keywords"].score == pytest.approx(1 / 3)
    assert by_name["keywords"].difference == 0
    metrics = metric_changes(store, refund)
    assert [(one.type, one.was and one.was.passed, one.now and one.now.passed) for one in metrics["looks it up"]] == [
        ("ToolCheck", 5, 2)
    ]
    one = found.overall
    assert one.test == "sign-flip", "repetitions: each case counts once"
    assert one.n == 6
    assert one.rate is not None
    assert one.rate.difference == pytest.approx((-1 - 1 - 0.6 + 0.6 + 0 + 0) / 6)
    assert one.left_out == 3
    assert one.latency_ms is not None
    assert one.latency_ms.difference == pytest.approx(200)


@pytest.mark.parametrize("cases", [1, 2, 3, 4])
def test_of_fewer_than_five_cases_a_line_says_too_few_and_no_interval_is_given(cases: int) -> None:
    """Neither of the rate nor of score, time, tokens and cost, on every door that shows a comparison."""
    left = [made(f"t{n}", "passed", n, duration_ms=10.0 * n, cost=0.1 * n, input_tokens=n) for n in range(cases)]
    right = [made(f"t{n}", "failed", n + 100, side="B", duration_ms=20.0 * n * n, cost=0.3) for n in range(cases)]
    found = compare_runs(side(left), side(right), {}, {})
    one = found.overall
    for measure in (one.rate, one.score, one.latency_ms, one.tokens, one.cost):
        assert measure is not None
        assert measure.interval is None
    assert one.few
    assert not one.one_case
    for door in (
        overall_text(one), short_power_text(one), plain_text(overall_view(one)),
        plain_text((overall_in_short(found),)),
    ):  # fmt: skip
        assert "too few" in door
        assert "interval" not in door
        assert "…" not in door
        assert "p =" not in door
    assert of([("passed", "failed")] * 5).overall.rate.interval is not None  # type: ignore[union-attr]


def test_the_repetitions_of_a_single_case_are_compared_and_speak_of_it_alone() -> None:
    def repeated(side_: str, passed: int) -> list[ComparedRun]:
        return [made("t", "passed" if n < passed else "failed", n, side=side_, repetition=n) for n in range(10)]

    found = compare_runs(side(repeated("A", 9)), side(repeated("B", 2)), {}, {})
    one = found.overall
    assert (one.test, one.n, one.one_case, one.few) == ("fisher", 10, True, False)
    assert one.p_value == pytest.approx(scipy.stats.fisher_exact([[9, 1], [2, 8]]).pvalue)
    assert one.rate is not None
    assert one.rate.interval == pytest.approx((-0.8652, -0.2658), abs=1e-4)  # Newcombe's
    assert rate_text(one) == "90 % to 20 %, -70 points (95 % interval -86.5 to -26.6, for this case alone)"
    assert significance_text(one) == "Fisher's exact test on 10 repetitions of one case: p = 0.0055"
    assert power_text(one).startswith("10 repetitions of one case detect a drop of ")
    assert "this case alone" in plain_text((overall_in_short(found),))
    assert one.score is not None
    assert one.score.interval is None
    twice = compare_runs(side(repeated("A", 9)[:2]), side(repeated("B", 0)[:2]), {}, {}).overall
    assert twice.few
    assert "2 repetitions of one case: too few" in overall_text(twice)


def test_single_runs_are_pairs_for_mcnemars_test_and_the_power_is_said() -> None:
    found = of([("passed", "failed")] * 6 + [("failed", "passed")] + [("passed", "passed")] * 13)
    one = found.overall
    assert (one.test, one.n) == ("mcnemar", 20)
    assert one.p_value == pytest.approx(scipy.stats.binomtest(1, 7).pvalue)
    assert rate_text(one).startswith("95 % to 70 %, -25 points (95 % interval ")
    assert significance_text(one) == "McNemar's exact test on 20 pairs: p = 0.12"
    assert power_text(one).startswith("20 pairs detect a drop of ")
    assert "too few to show a smaller drop" in power_text(one)
    # Rounded down it would be the drop that the sample is said to be too small for.
    assert "a drop of 6 points or more" in power_text(replace(one, detectable=0.0504))
    assert short_power_text(replace(one, detectable=0.0504)) == "20 pairs: too few to show a drop under 6 points"
    few = of([("passed", "failed")] * 3).overall
    assert power_text(few) == "3 cases are too few to show how sure this is"
    assert few.p_value == 0.25
    clear = of([("passed", "failed")] * 12 + [("passed", "passed")] * 8).overall
    assert clear.p_value is not None
    assert clear.p_value < 0.001
    assert "too few" not in power_text(clear)


def test_without_a_row_in_common_fishers_test_compares_the_rows_of_the_test() -> None:
    left = [made("t", "passed", n, row=n + 1) for n in range(9)]
    right = [made("t", "passed" if n < 3 else "failed", n + 100, side="B", row=n + 50) for n in range(8)]
    found = compare_runs(side(left), side(right), {}, {})
    one = found.overall
    assert (one.test, one.n, one.left_out) == ("fisher", 8, 17)
    assert one.p_value == pytest.approx(scipy.stats.fisher_exact([[9, 0], [3, 5]]).pvalue)
    assert one.rate is not None
    assert one.rate.interval is not None
    assert one.rate.interval[0] < one.rate.difference < one.rate.interval[1] < 0
    found.check_in_common()


def test_tests_that_only_one_side_has_give_no_figure() -> None:
    left = [made("a", "passed", n, repetition=n) for n in range(9)]
    right = [made("b", "passed" if n < 3 else "failed", n + 100, side="B", repetition=n) for n in range(8)]
    found = compare_runs(side(left), side(right), {}, {})
    assert (found.overall.rate, found.overall.p_value, found.overall.left_out) == (None, None, 2)
    assert {one.state for one in found.tests} == {"added", "removed"}
    with pytest.raises(AgentevalError, match="there is nothing to compare"):
        found.check_in_common()


def test_rows_of_a_dataset_are_cases_and_variations_are_told_apart_where_both_sides_have_them() -> None:
    rows = [("passed", "failed")] * 7 + [("passed", "passed")] * 3
    left = [made("t", was, n, row=n + 1) for n, (was, _) in enumerate(rows)]
    right = [made("t", now, n + 100, side="B", row=n + 1) for n, (_, now) in enumerate(rows)]
    only = made("t", "failed", 999, side="B", row=99)
    (test,) = compare_runs(side(left), side([*right, only]), {}, {}).tests
    assert (test.cases, test.was and test.was.n, test.now and test.now.n) == (10, 10, 11), (
        "row 99 is counted, not paired"
    )
    assert test.p_value == pytest.approx(scipy.stats.binomtest(0, 7).pvalue)
    big = [replace(run, variation="big") for run in left]
    assert [one.label for one in compare_runs(side([*left, *big]), side(right), {}, {}).tests] == ["t", "t [big]"]
    # Of two variations against each other nothing but the name differs.
    found = compare_runs(
        side(left, "variation"), side([replace(run, variation="big") for run in right], "variation"), {}, {}
    )
    assert not found.by_variation
    assert [(one.label, one.state) for one in found.tests] == [("t", "worse")]
    assert "variations are merged" in notes(found)[0]


def test_a_suite_that_lies_elsewhere_now_is_the_same_by_its_name() -> None:
    left = [made("t", "passed", 1, suite_key="/old/s.yaml")]
    right = [made("t", "failed", 2, side="B", suite_key="/new/s.yaml")]
    found = compare_runs(side(left), side(right), {}, {})
    assert [one.state for one in found.tests] == ["worse"]
    assert notes(found) == ["suite S: /old/s.yaml is compared with /new/s.yaml"]


ASKED = {1: ("hi", "{}"), 2: ("hi", '{"a": 1}'), 3: ("ho", '{"a": 1}'), 4: ("", "{}"), 5: ("", "{}"), 6: ("ha", "{}")}


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        # "KEY test plan": the same plan, prompt or variables say that a test was asked the same
        (["tau:a t 1"], ["tau:b t 1"], {"tau:a": "tau:b"}),
        (["tau:a t 1"], ["tau:b t 2"], {"tau:a": "tau:b"}),
        (["tau:a t 2"], ["tau:b t 3"], {"tau:a": "tau:b"}),
        (["tau:a t 1", "tau:a u 6"], ["tau:b t 3", "tau:b u 6"], {"tau:a": "tau:b"}),
        # a name that both have would be no import of a second file
        (["tau:a t 1"], ["tau:a t 6"], {}),
        (["tau:a t 1"], ["tau:b u 1"], {}),
        # other formats number their tests as well
        (["tau:a t 1"], ["otel:b t 2"], {"tau:a": "otel:b"}),
        (["tau:a t 1"], ["otel:b t 6"], {}),
        (["tau:a t 4"], ["otel:b t 5"], {}),
        (["tau:a t 1"], ["tau:b t 6"], {"tau:a": "tau:b?"}),
        (["tau:a t 4"], ["tau:b t 5"], {"tau:a": "tau:b?"}),
        # of several the surest, and none where two are as sure
        (["tau:a t 1"], ["tau:b t 6", "tau:c t 2"], {"tau:a": "tau:c"}),
        (["tau:a t 1"], ["otel:b t 1", "tau:c t 2"], {"tau:a": "tau:c"}),
        (["tau:a t 1"], ["tau:b t 1", "tau:c t 2"], {}),
        (["tau:a t 1", "tau:b t 1"], ["tau:c t 1"], {}),
        (["tau:a t 1", "tau:b u 6"], ["tau:c t 1", "tau:d u 6"], {"tau:a": "tau:c", "tau:b": "tau:d"}),
        (["tau:a t 1", "tau:b u 6"], ["tau:a t 1", "tau:d u 6"], {"tau:b": "tau:d"}),
        (["tau:a t 1"], ["/suites/s.yaml t 1"], {}),
    ],
)
def test_imports_of_other_files_are_paired_by_their_tests(
    was: list[str], now: list[str], expected: dict[str, str]
) -> None:
    def read(lines: list[str], name: str) -> Side:
        runs = []
        for number, line in enumerate(lines):
            key, test, plan = line.split()
            key = key if key.startswith("/") else f"import:{key}"
            runs.append(made(test, "passed", number, side=name, suite_key=key, suite_name=key, plan=int(plan)))
        return side(runs)

    found = compare_runs(read(was, "A"), read(now, "B"), {}, {}, questions=ASKED)
    made_pairs = {
        one.was.removeprefix("import:"): one.now.removeprefix("import:") + "?" * (not one.asked_alike)
        for one in found.paired
    }
    assert made_pairs == expected
    assert len(notes(found)) == len(expected)


def test_criteria_that_came_went_and_were_renamed(store: Store) -> None:
    keep(store, OLD, [Planned("t", [answered("yes")], [text("yes", name="one"), text("y", name="old")])])
    keep(
        store,
        NEW,
        [Planned("t", [answered("yes")], [renamed(text("yes"), "uno"), text("e", name="new")])],
        at_ms=NOON + 9,
    )
    (test,) = compared(store, a=OLD, b=NEW).tests
    assert test.state == "criteria"
    assert [(one.name, one.state, one.was_name) for one in test.criteria] == [
        ("new", "added", ""), ("old", "removed", ""), ("uno", "same", "one"),
    ]  # fmt: skip


def test_differences_of_scores_up_to_a_thousandth_are_none() -> None:
    for score, state in ((0.5010, "same"), (0.5012, "score")):
        left, right = made("t", "passed", 1, score=0.5), made("t", "passed", 2, side="B", score=score)
        (test,) = compare_runs(side([left]), side([right]), {}, {}).tests
        assert test.state == state


def test_sides_by_name_and_what_is_said_where_there_are_none(store: Store) -> None:
    keep(store, OLD, BEFORE)
    with pytest.raises(AgentevalError, match=r"no test of execution .* has a baseline"):
        compared(store)
    with pytest.raises(AgentevalError, match="both sides have the same runs"):
        compared(store, a=OLD)
    other = [replace(one, agent="shop/small") for one in BEFORE]
    keep(store, NEW, [*AFTER, *(replace(one, variation="small") for one in other)], at_ms=NOON + 1)
    found = compared(store)
    assert (found.a.kind, found.a.reference, found.b.reference) == ("execution", OLD, NEW), "the one before"
    with pytest.raises(AgentevalError, match=r"no test of execution \S+ has a baseline \("):
        compared(store, a="baseline")
    set_baseline(store, OLD)
    found = compared(store)
    assert (found.a.kind, found.b.reference, found.a.executions) == ("baseline", NEW, (OLD,))
    set_baseline_run(store, "OLD-refund-policy-0-2")
    (refund,) = [one for one in compared(store).tests if one.test == "refund-policy" and not one.variation]
    assert (refund.was and refund.was.n, refund.now and refund.now.n) == (1, 5)
    two = compared(store, agents=("shop/support", "shop/small"))
    assert (two.a.kind, two.a.name, two.b.name) == ("agent", "shop/support", "shop/small")
    assert two.counts()["worse"] == 1, "of the first agent's tests the second one does customers-germany worse"
    assert compared(store, variations=("default", "small")).counts() == two.counts()
    assert {run.agent for run in compared(store, a=OLD, agents=("shop/support",)).b.runs} == {"shop/support"}
    with pytest.raises(AgentevalError, match=r"no run with agent 'none' in smoke") as wrong:
        compared(store, a=OLD, agents=("none",))
    assert wrong.value.fix == "there is shop/support"
    with pytest.raises(AgentevalError, match="only two agents"):
        compared(store, agents=("a", "b", "c"))
    with pytest.raises(AgentevalError, match="there is no execution 'nowhere'"):
        compared(store, a="nowhere")
    assert compared(store, a="OLD-refund-policy-0-1", b="NEW-refund-policy-0-1").counts() == {"worse": 1}


def test_very_many_cases_give_what_drawing_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    from agenteval_tui.analysis import comparison

    cases = [("passed" if n % 2 else "failed", "passed" if n % 3 else "failed") for n in range(90)]
    left = [made(f"t{n}", was, 10 * n + r, repetition=r) for n, (was, _) in enumerate(cases) for r in (1, 2)]
    right = [made(f"t{n}", now, 10 * n + r, side="B", repetition=r) for n, (_, now) in enumerate(cases) for r in (1, 2)]
    drawn = compare_runs(side(left), side(right), {}, {}).overall
    monkeypatch.setattr(comparison, "_MANY", 5)
    normal = compare_runs(side(left), side(right), {}, {}).overall
    assert normal.p_value == pytest.approx(drawn.p_value, abs=0.02)
    assert normal.rate is not None
    assert drawn.rate is not None
    assert normal.rate.interval == pytest.approx(drawn.rate.interval, abs=0.02)


def test_a_test_that_waits_was_not_judged_by_other_criteria(store: Store) -> None:
    tests = [Planned(name, [answered("ten")], [text("ten")]) for name in ("fast", "slow")]
    keep(store, OLD, tests)
    keep(store, NEW, tests, at_ms=NOON + 1, title="again")
    store.resume_execution(NEW, again=["NEW-slow-0-1"]).result()
    found = compared(store, a=OLD, b=NEW)
    assert notes(found) == ["1 of 2 runs of again has not ended"]
    assert found.not_comparable == []
    assert [(one.test, one.state) for one in found.tests] == [("slow", "undecided"), ("fast", "same")]


def test_an_edited_row_is_told_though_another_suite_has_the_same_name(store: Store) -> None:
    for execution, country in ((OLD, "Germany"), (NEW, "Austria")):
        runs = []
        for number, (suite, where) in enumerate((("/a/s.yaml", country), ("/b/s.yaml", "Italy"))):
            planned = PlannedRun(
                f"{execution[:-4]}{number:04}", execution, number, suite, "s", "rows", "Rows", row=1, row_key="id:1",
                agent="x", variables={"country": where},
            )  # fmt: skip
            runs.append((planned, RunEnded(planned.id, "passed", 1.0, NOON, 1.0, 1, answered("hi"), ())))
        store.import_runs(ExecutionRecord(execution, "t", "run", "p", ("/a/s.yaml", "/b/s.yaml"), NOON), iter(runs))
    changes = {test.suite_key: [row.content for row in test.rows] for test in compared(store, a=OLD, b=NEW).tests}
    assert changes == {"/a/s.yaml": [("country",)], "/b/s.yaml": [()]}
