"""What decides, what counts and what does not, in figures and sentences about stored runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from compared import NEW, NICE, NOON, OLD, POLITE, YES, Planned, answered, keep, text, two_executions
from msgspec.structs import replace

from agenteval_tui.analysis import review_queue
from agenteval_tui.analysis.agreement import _once_each, judge_figures
from agenteval_tui.analysis.attribution import PAIRS, Attribution, Reason, _most_frequent, attribute, attribute_pair
from agenteval_tui.analysis.comparison import paired_suites, row_changes
from agenteval_tui.analysis.quarantine_gate import gating
from agenteval_tui.analysis.regrade import rules_of_suites
from agenteval_tui.analysis.regression_gate import BaselineResult, GateOptions, compare_to_baseline
from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.analysis.trend_alerts import _alert, _state
from agenteval_tui.analysis.trend_scores import Scores, criterion_labels
from agenteval_tui.analysis.trends import TrendQuery, figures, groups_of, select_runs
from agenteval_tui.analysis.triage import Recurrence, open_reason
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.baselines import set_baseline
from agenteval_tui.history.quarantines import ActiveQuarantines, Quarantine
from agenteval_tui.history.records import tokens_in_all
from agenteval_tui.history.store import Store
from agenteval_tui.history.trends import Tally, TestName
from agenteval_tui.history.triage import Context, Decision
from agenteval_tui.views.attribution import reason_text
from agenteval_tui.views.baseline import missed_gates


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "h.db") as opened:
        yield opened


# Who changed it


def warning(*texts: str, name: str = "tone") -> CriterionSpec:
    return replace(text(*texts, name=name), severity="warning")


def who(store: Store, test: str) -> tuple[str, str]:
    flip = attribute_pair(store, f"OLD-{test}-0-1", f"NEW-{test}-0-1")
    return flip.test.who, reason_text(flip.test.reason)


def test_warnings_do_not_decide_who_changed_it(store: Store) -> None:
    keep(store, OLD, [
        Planned("agent", [answered("Paris")], [text("Paris"), warning("r")]),
        Planned("criterion", [answered("Paris x")], [text("Paris"), warning("x")]),
        Planned("new", [answered("Paris")], [text("Paris")]),
        Planned("gone", [answered("Rome")], [text("Paris"), warning("x")]),
    ])  # fmt: skip
    keep(store, NEW, [
        # The warning fails by its new version, the criterion that decides by the output.
        Planned("agent", [answered("Rome")], [text("Paris"), warning("z")]),
        # And the reverse: the same output, but for the warning's letter.
        Planned("criterion", [answered("Paris y")], [text("Berlin"), warning("x")]),
        Planned("new", [answered("Rome")], [text("Paris"), warning("z", name="new warning")]),
        Planned("gone", [answered("Paris")], [text("Paris")]),
    ], at_ms=NOON + 5)  # fmt: skip
    assert who(store, "agent") == ("agent", "the criterion is the same, the output changed")
    assert who(store, "criterion")[0] == "criterion"
    assert who(store, "new")[0] == "agent"
    assert who(store, "gone")[0] == "agent"


def test_a_warning_that_came_or_went_is_no_reason(store: Store) -> None:
    """Nothing that decides changed its own verdict: then what came, went or counts otherwise did it."""
    old, new = text("Paris"), text("Berlin", name="second")
    keep(store, OLD, [
        Planned("came", [answered("Paris")], [old]),
        Planned("went", [answered("Paris")], [old, new, warning("z")]),
        Planned("weighs", [answered("Paris")], [old, replace(new, severity="warning")]),
    ])  # fmt: skip
    keep(store, NEW, [
        Planned("came", [answered("Paris")], [warning("z"), old, new]),
        Planned("went", [answered("Paris")], [old]),
        Planned("weighs", [answered("Paris")], [old, new]),
    ], at_ms=NOON + 5)  # fmt: skip
    assert who(store, "came") == ("criterion", "criterion 'second' is new and fails")
    assert who(store, "went") == ("criterion", "criterion 'second', which failed, was removed")
    assert who(store, "weighs") == (
        "criterion",
        "the severity of 'second' (warning to error) changed: with that, the old output also fails; without it, the new"
        " output passed",
    )


def test_of_pairs_that_say_different_things_the_most_frequent_counts_and_of_equals_the_first() -> None:
    agent, criterion, noise = (
        Attribution(one, Reason("criterion_came", {"criterion": one})) for one in ("agent", "criterion", "judge noise")
    )
    assert _most_frequent([agent, agent]) == agent
    assert _most_frequent([agent, criterion, criterion]).who == "criterion"
    assert _most_frequent([noise, agent]).who == "judge noise"
    said = reason_text(_most_frequent([agent, criterion, criterion, noise]).reason)
    assert said == "criterion 'criterion' is new and fails (2 of 4 pairs of runs; agent in 1, judge noise in 1)"


def test_the_first_pairs_are_looked_at_and_no_more(store: Store) -> None:
    two_executions(store)
    pair = ("OLD-both-ways-0-1", "NEW-both-ways-0-1")
    found = attribute(store, [pair] * (PAIRS + 3))
    assert found is not None
    assert len(found.flips) == PAIRS
    found = attribute(store, [("gone", "gone"), pair], most=2)
    assert found is not None, "one that can't be read takes no other down"
    assert len(found.flips) == 1
    assert attribute(store, [("gone", "gone"), pair], most=1) is None


# Two suites of one name


def test_two_suites_of_one_name_are_two_groups() -> None:
    known = [TestName(1, "/a/s.yaml", "Same", "t", "T"), TestName(2, "/b/s.yaml", "Same", "t", "T")]
    for group, keys in (("suite", {"/a/s.yaml", "/b/s.yaml"}), ("test", {"/a/s.yaml::t", "/b/s.yaml::t"})):
        names = groups_of(None, group, known, {1, 2})  # type: ignore[arg-type]
        assert {key for one in (1, 2) for key, _ in names(one)} == keys
    # A test of that name in one suite alone needs no suite beside it.
    names = groups_of(None, "test", known, {1})  # type: ignore[arg-type]
    assert names(1) == [("/a/s.yaml::t", "t")]


def test_criteria_of_two_suites_of_one_name_say_where_they_are() -> None:
    def scores(key: str, suite: str, test: str = "t") -> Scores:
        return Scores(TestName(1, key, suite, test, "T"), "c", [0] * 15)

    assert criterion_labels([scores("/a", "Same")]) == ["t / c"]
    assert criterion_labels([scores("/a", "Same"), scores("/b", "Other")]) == ["t / c (Same)", "t / c (Other)"]
    several = [scores("/a", "Same"), scores("/b", "Same"), scores("/c", "Other"), scores("/a", "Same", "u")]
    assert criterion_labels(several) == ["t / c (/a)", "t / c (/b)", "t / c (Other)", "u / c"]


def test_a_suite_that_moved_is_known_by_its_name_only_where_one_has_it() -> None:
    def side(**suites: str) -> Any:
        return SimpleNamespace(runs=[SimpleNamespace(suite_key=key, suite_name=name) for key, name in suites.items()])

    def moved(was: Any, now: Any) -> dict[str, str]:
        return {one.was: one.now for one in paired_suites(was, now)}

    assert moved(side(a="S"), side(b="S")) == {"a": "b"}
    assert moved(side(a="S"), side(a="S", b="S")) == {}, "it is there where it was"
    assert moved(side(a="S"), side(b="S", c="S")) == {}, "two may be it"
    assert moved(side(a="S", b="S"), side(c="S")) == {}, "it may be either"
    assert moved(side(a="S"), side(b="T")) == {}


def test_results_that_differ_from_their_labels_are_those_of_the_execution_that_was_asked_for(store: Store) -> None:
    for execution, at in ((OLD, NOON), (NEW, NOON + 5)):
        keep(store, execution, [Planned("t", [NICE, NICE], [text("You"), text("nowhere", name="other")])], at_ms=at)
        first, second = store.runs_of_execution(execution)
        store.label(first.id, passed=False, criterion="answer").result()
        store.label(second.id, passed=True, criterion="other").result()
        store.label(second.id, passed=True, criterion="answer").result()  # as it was graded

    def found(**wanted: Any) -> set[str]:
        return {item.address for item in review_queue.queue(store, review_queue.ReviewFilter(**wanted))}

    def due(execution: str) -> set[str]:
        first, second = store.runs_of_execution(execution)
        return {f"{first.id}/1", f"{second.id}/2"}

    assert found() == set()
    assert found(disagreements=True) == due(OLD) | due(NEW)
    assert found(disagreements=True, execution_id=OLD) == due(OLD)
    assert found(disagreements=True, execution_id=NEW) == due(NEW)


def test_the_last_repetition_says_what_was_edited_in_a_row() -> None:
    def run(plan: int) -> Any:
        return SimpleNamespace(plan=plan, row=1, row_key="id:a", id="r", status="passed")

    variables: dict[int, dict[str, Any]] = {1: {"x": 1, "y": 1}, 2: {"x": 2, "z": 1}, 3: {"x": 1, "y": 1}}

    def edited(was: list[int], now: list[int]) -> tuple[str, ...]:
        sides = {"a": [run(one) for one in was]} if was else {}, {"a": [run(one) for one in now]} if now else {}
        (row,) = row_changes(*sides, {"a": (None, None)}, variables)  # type: ignore[arg-type]
        return row.content

    assert edited([1, 1], [1, 2]) == edited([2, 1], [2]) == edited([1], [3, 2, 1, 2]) == ("x", "z", "y")
    assert edited([1, 2], [1]) == ("x", "y", "z")
    assert edited([2, 1], [2, 1]) == edited([2, 1], [1]) == edited([1], [3]) == (), "nothing that differs at the end"
    assert edited([1], [9]) == edited([9], [1]) == edited([], [1]) == edited([1], []) == (), "not known"


def test_a_wanted_suite_is_its_name_or_its_place(store: Store) -> None:
    keep(store, OLD, [Planned("t", [NICE], [text("x")])], suite="/a/s.yaml")
    keep(store, NEW, [Planned("t", [NICE], [text("x")])], suite="/b/s.yaml", at_ms=NOON + 5)

    def tests(*suites: str) -> int:
        wanted = TrendQuery(None, NOON + 9, suites=suites)
        picked = store.read(lambda c: select_runs(c, wanted))
        return -1 if picked.tests is None else len(picked.tests)

    assert tests() == -1
    assert tests("support") == 2


# Figures


def test_errors_count_where_they_are_asked_for_and_what_waits_never() -> None:
    one = Tally(0, None, 1, "", 0, 2, 1, 3, 5)
    other = Tally(0, None, 2, "", 0, 0, 0, 4, 1)
    for listed in ([one], [one, one._replace(at=1, passed=0, failed=0, errors=0, review=0)], [one, other]):
        assert (figures(listed).n, figures(listed).rate) == (3, pytest.approx(2 / 3))
    assert (figures([one], count_errors=True).n, figures([one], count_errors=True).rate) == (6, pytest.approx(1 / 3))
    both = figures([one, other], count_errors=True)
    assert (both.n, both.rate, both.runs) == (10, pytest.approx(1 / 6), 16)
    assert (figures([other]).rate, figures([]).rate) == (None, None)


@pytest.mark.parametrize(("rate", "state"), [(0.5, "ok"), (0.5 - 1e-13, "ok"), (0.49, "alert"), (None, "errors")])
def test_an_alert_is_below_its_threshold(rate: float | None, state: str) -> None:
    made = replace(figures([Tally(0, None, 1, "", 0, 0, 0, 2, 0)]), rate=rate)
    assert _state(made, 0.5) == state
    assert _state(figures([]), 0.5) == "empty"


def test_an_alert_is_by_chance_where_its_threshold_lies_in_the_interval() -> None:
    found = replace(figures([]), rate=0.4, interval=(0.2, 0.6))
    for below, by_chance in ((0.19, False), (0.2, True), (0.6, True), (0.61, False)):
        assert _alert(found, key="", name="", below=below, state="alert").by_chance is by_chance
        assert not _alert(found, key="", name="", below=below, state="ok").by_chance


@pytest.mark.parametrize(
    ("given", "said"), [((5, None), None), ((None, 7), None), ((5, 7), 12.0), ((None, None), None)]
)
def test_one_side_of_the_tokens_is_not_the_whole(given: tuple[int | None, int | None], said: float | None) -> None:
    assert tokens_in_all(*given) == said


@pytest.mark.parametrize(
    ("suites", "runs", "expected"),
    [
        # its own suite, and nobody else's
        (["/a A t", "/b B T u"], ["/a A t", "/b B t", "/a A T"], ["/a", "/b", "/a"]),
        (["/a A t", "/b B u"], ["/a A u", "/a A x", "/b B t"], [None, None, None]),
        (["/a A t"], ["/a A t", "/b B t"], ["/a", None]),
        (["/a A t"], ["/b A t", "/a A t"], [None, "/a"]),
        # one that was moved or copied has the name
        (["/new A t"], ["/a A t", "/b B t"], ["/new", None]),
        (["/new a t", "/other C t"], ["/a A t"], ["/new"]),
        (["/new A t", "/newer A t"], ["/a A t"], [None]),
        (["/new A t", "/newer B t"], ["/a A t", "/b B t"], ["/new", "/newer"]),
        (["/b B t", "/new A t"], ["/a A t", "/b B t"], ["/new", "/b"]),
        # another one is for all, unless there are several
        (["/c C t"], ["/a A t", "/b B t", "import:x:f X t"], ["/c", "/c", "/c"]),
        (["/c C t", "/d D u"], ["import:x:f X t", "import:x:f X u"], ["/c", "/d"]),
        (["/c C t", "/d D t"], ["/a A t"], [None]),
        (["/a A t", "/c C t"], ["/a A t", "import:x:f X t"], ["/a", "/c"]),
        (["/c - t"], ["/a A t"], [None]),
    ],
)
def test_whose_rules_a_run_is_graded_by(suites: list[str], runs: list[str], expected: list[str | None]) -> None:
    def loaded(text: str) -> Any:
        key, name, *tests = text.split()
        listed = [SimpleNamespace(id=one, criteria=(), pass_threshold=None, variables={"of": key}) for one in tests]
        suite = SimpleNamespace(name=name, tests=listed, defaults=SimpleNamespace(pass_threshold=0.5))
        return SimpleNamespace(key=key, suite=None if name == "-" else suite)

    def row(text: str) -> Any:
        key, name, test = text.split()
        return SimpleNamespace(suite_key=key, suite_name=name, test_id=test)

    rows = [row(one) for one in runs]
    find = rules_of_suites([loaded(one) for one in suites], rows)
    found = [find(one) for one in rows]
    assert [one and one.variables and one.variables["of"] for one in found] == expected


def test_a_skipped_repetition_of_an_import_was_not_stopped_early(store: Store) -> None:
    keep(store, OLD, [Planned("t", [NICE, NICE], [text("You")])])
    rows = list(store.runs_of_execution(OLD))
    rows[1] = replace(rows[1], status="skipped")
    assert execution_stats(rows).tests[0].stopped_early
    assert not execution_stats(rows, imported=True).tests[0].stopped_early


# Gates


def put(store: Store, test: str, criterion: str = "") -> ActiveQuarantines:
    one = Quarantine("/s", test, NOON + 10**9, criterion, at_ms=NOON - 1)
    return ActiveQuarantines({one.key: one})


def test_a_quarantined_criterion_counts_for_nothing_and_the_others_as_ever(store: Store) -> None:
    good, bad = text("You"), text("never", name="flaky")
    keep(store, OLD, [
        Planned("only", [NICE], [good, bad]),
        Planned("both", [NICE], [text("nowhere"), bad]),
        Planned("down", [answered("", error="refused")], [good, bad]),
        Planned("free", [NICE], [bad]),
    ])  # fmt: skip
    rows = {one.test_id: one for one in store.runs_of_execution(OLD)}
    for test, status, not_passed in (("only", "passed", 1), ("both", "failed", 0), ("down", "error", 0)):
        found = gating(store, [rows[test]], put(store, test, "flaky"))
        assert [one.status for one in found.runs] == [status], test
        assert [(one.runs, one.not_passed) for one in found.left_out] == [(1, not_passed)], test
    # A quarantine of the whole test takes its runs out; another test's runs gate.
    found = gating(store, rows.values(), put(store, "only"))
    assert [one.test_id for one in found.runs] == ["both", "down", "free"]
    assert [(one.runs, one.not_passed) for one in found.left_out] == [(1, 1)]
    whole = put(store, "only")
    both = ActiveQuarantines({**whole.by_key, **put(store, "only", "flaky").by_key})
    assert [one.quarantine.criterion for one in gating(store, [rows["only"]], both).left_out] == [""]


def test_a_quarantine_excuses_what_did_not_pass_and_only_that(store: Store) -> None:
    asked = CriterionSpec("asked", "TextResponse", {"metrics": [{"type": "Human", "question": "Kind?"}]})
    broken = CriterionSpec("broken", "TextResponse", {"metrics": [{"type": "Nothing"}]})
    good, bad = text("You"), text("never", name="flaky")
    keep(store, OLD, [
        Planned("passed", [NICE], [good]),
        Planned("failed", [NICE], [good, bad]),
        Planned("waits", [NICE], [good, asked]),
        Planned("error", [NICE], [good, broken]),
        Planned("down", [answered("", error="refused")], [good]),
        Planned("both", [NICE], [text("nowhere"), bad]),
        Planned("asks", [NICE], [bad, asked]),
    ])  # fmt: skip
    rows = {one.test_id: one for one in store.runs_of_execution(OLD)}
    rows |= {status: replace(rows["passed"], test_id=status, status=status) for status in ("skipped", "cancelled")}

    def excused(test: str, criterion: str = "") -> bool:
        return rows[test].id in gating(store, [rows[test]], put(store, test, criterion)).excused

    whole = {test: excused(test) for test in rows}
    assert whole == {
        "passed": False, "failed": True, "waits": True, "error": True, "down": True, "both": True,
        "asks": True, "skipped": False, "cancelled": False,
    }  # fmt: skip
    # The quarantine of a criterion excuses a run that passes without it: whatever that criterion said.
    assert excused("failed", "flaky")
    assert excused("waits", "asked")
    assert excused("error", "broken")
    assert not excused("failed", "asked"), "another criterion failed"
    assert not excused("asks", "flaky"), "without it, the run still waits for a person"
    assert not excused("down", "flaky"), "an agent that failed is what it is"
    assert not excused("passed", "flaky")
    found = gating(store, [rows["both"]], put(store, "both", "flaky"))
    assert found.excused == frozenset()
    assert "flaky" not in found.whys[rows["both"].id], "why it still gates does not name what is in quarantine"
    assert "nowhere" in found.whys[rows["both"].id]


def test_a_drop_of_what_is_allowed_is_allowed(store: Store) -> None:
    keep(store, OLD, [Planned("t", [NICE] * 4, [text("You")]), Planned("u", [NICE], [text("You")])])
    keep(store, NEW, [
        Planned("t", [NICE] * 4, [text("You")]), Planned("u", [answered("")], [text("You")]),
    ], at_ms=NOON + 5)  # fmt: skip
    set_baseline(store, OLD)
    found = compare_to_baseline(store, store.execution(NEW))
    assert isinstance(found, BaselineResult)
    assert missed_gates(found, GateOptions(max_drop=0.5)) == []
    assert len(missed_gates(found, GateOptions(max_drop=0.49))) == 1
    assert missed_gates(found, GateOptions()) == []
    assert [
        bool(one) for one in (GateOptions(), GateOptions(True), GateOptions(max_drop=0.0), GateOptions(True, 0.1))
    ] == [
        False,
        True,
        True,
        True,
    ]
    assert len(missed_gates(found, GateOptions(no_regressions=True))) == 1


# Decisions


NOTHING_LATER = Recurrence()


def why(decision: str = "ignore", later: Recurrence = NOTHING_LATER, now: int = 99, **more: Any) -> str:
    context = more.pop("context", Context(("v1",), (("/s/x.yaml", "t"),), 2, 20))
    group = SimpleNamespace(trend="known", cause=SimpleNamespace(criterion="c"), tests=(("/s/x.yaml", "t"),))
    return open_reason(group, Decision("s", decision, context=context, **more), later, ActiveQuarantines({}), now)  # type: ignore[arg-type]


def test_a_decision_is_open_again_at_its_date() -> None:
    assert [why(until_ms=at) for at in (100, 99, 98)] == ["", "its date has passed", "its date has passed"]
    assert why() == ""


def test_a_suite_that_moved_is_no_other_test() -> None:
    assert why(later=Recurrence(tests=(("/elsewhere/x.yaml", "t"),))) == ""
    assert why(later=Recurrence(tests=(("/s/y.yaml", "t"),))) == "it is in t too"
    assert why(later=Recurrence(tests=(("/s/y.yaml", "t"), ("/s/y.yaml", "u")))) == "it is in t and 1 more too"


def test_what_opens_a_decision_again_depends_on_it() -> None:
    changed, grown = Recurrence(versions=("v2",)), Recurrence(failed=9, runs=20)
    said = {one: (bool(why(one, changed)), bool(why(one, grown))) for one in ("accept", "fix", "label", "ignore")}
    assert said == {"accept": (True, True), "fix": (True, False), "label": (True, False), "ignore": (True, True)}
    assert why(later=Recurrence(versions=("v1",))) == ""
    assert why(later=changed, context=Context((), (("/s/x.yaml", "t"),), 2, 20)) == "", (
        "an agent's error has no version"
    )
    assert why(later=Recurrence(failed=2, runs=20)) == ""
    assert why(later=Recurrence(failed=3, runs=20)) == "", "by chance"
    # The weightier reason is said.
    assert why(later=Recurrence(("v2",), (("/s/y.yaml", "u"),), 9, 20), until_ms=1) == "its date has passed"
    assert why(later=Recurrence(("v2",), (("/s/y.yaml", "u"),), 9, 20)) == "the criterion was changed"


# Labels beside judges


def test_of_a_recording_that_was_graded_twice_the_newest_counts() -> None:
    old, new, other = (
        SimpleNamespace(id=name, recorded=of, superseded=gone, fork_of="")
        for name, of, gone in (("old", "r", True), ("new", "r", False), ("other", "s", True))
    )
    fork = SimpleNamespace(id="fork", recorded="f", superseded=False, fork_of="r")
    for listed in ([fork, old, new, other], [new, old, other, fork]):
        assert [one.id for one in _once_each(listed)] == ["new", "other"]  # type: ignore[arg-type]
    assert [one.id for one in _once_each([old, replace_id(old, "older")])] == ["old"]  # type: ignore[arg-type]


def replace_id(row: Any, name: str) -> Any:
    return SimpleNamespace(**{**vars(row), "id": name})


def test_what_differs_is_listed_and_what_agrees_is_not(store: Store) -> None:
    keep(store, OLD, [Planned("t", [NICE, NICE], [POLITE], [YES, YES])])
    rows = list(store.runs_of_execution(OLD))
    store.label(rows[0].id, passed=True, criterion="polite").result()
    store.label(rows[1].id, passed=False, criterion="polite").result()
    (one,) = judge_figures(store, rows)
    assert one.differ == [f"{rows[1].id}/1"]
    assert (one.agreement.n, one.agreement.both_yes, one.agreement.only_judge) == (2, 1, 1)


def test_the_label_of_a_criterion_counts_before_that_of_the_run_and_the_last_of_several(store: Store) -> None:
    keep(store, OLD, [Planned("t", [NICE], [POLITE], [YES])])
    rows = list(store.runs_of_execution(OLD))

    def said() -> tuple[int, int, int]:
        (one,) = judge_figures(store, rows)
        return one.labelled, one.agreement.both_yes, one.agreement.only_judge

    assert said() == (0, 0, 0)
    store.label(rows[0].id, passed=False).result()
    assert said() == (1, 0, 1)
    store.label(rows[0].id, passed=True, criterion="polite").result()
    store.label(rows[0].id, passed=False).result()  # later, and of the run as a whole
    assert said() == (1, 1, 0)
    store.label(rows[0].id, passed=False, criterion="polite").result()
    assert said() == (1, 0, 1)
