"""A new execution against its baseline: what regressed, what fell by chance, and what is in quarantine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from compared import NEW, NOON, OLD, Planned, answered, keep, text, two_executions
from msgspec.structs import replace

from agenteval_tui.analysis.regression_gate import (
    BaselineResult,
    GateOptions,
    compare_to_baseline,
    with_cached_comparison,
)
from agenteval_tui.history.baselines import set_baseline
from agenteval_tui.history.quarantines import Quarantine, end, put
from agenteval_tui.history.store import Store
from agenteval_tui.views.baseline import against_view, gate_certainty, missed_gates
from agenteval_tui.views.terminal import plain_text

YES, NO = answered("yes"), answered("no")
RIGHT = text("yes")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "h.db") as opened:
        yield opened


def against(store: Store) -> BaselineResult:
    found = compare_to_baseline(store, store.execution("last"))
    assert found is not None
    return found


def test_a_test_that_always_passed_regresses_and_a_flaky_one_beyond_chance_only(store: Store) -> None:
    keep(store, OLD, [
        Planned("always", [YES] * 5, [RIGHT]),
        Planned("sometimes", [YES] * 5, [RIGHT]),
        Planned("flaky", [YES] * 4 + [NO], [RIGHT]),
        Planned("collapsed", [YES] * 9 + [NO], [RIGHT]),
        Planned("never", [NO] * 3, [RIGHT]),
        Planned("better", [NO] * 3, [RIGHT]),
    ])  # fmt: skip
    keep(store, NEW, [
        Planned("always", [NO] * 5, [RIGHT]),
        Planned("sometimes", [YES] * 4 + [NO], [RIGHT]),
        Planned("flaky", [YES] * 3 + [NO] * 2, [RIGHT]),
        Planned("collapsed", [YES] + [NO] * 9, [RIGHT]),
        Planned("never", [NO] * 3, [RIGHT]),
        Planned("better", [YES] * 3, [RIGHT]),
        Planned("unknown", [NO], [RIGHT]),
    ], at_ms=NOON + 1)  # fmt: skip
    assert compare_to_baseline(store, store.execution(NEW)) is None, "there is no baseline yet"
    set_baseline(store, OLD)
    found = against(store)
    assert {test.test for test in found.regressed} == {"always", "collapsed"}
    assert [test.test for test in found.by_chance] == ["flaky", "sometimes"]
    assert found.without_baseline == 1
    said, fell = missed_gates(found, GateOptions(no_regressions=True))
    assert said == ("--no-regressions: 2 tests regressed (always: 5/5, now 0/5, collapsed: 9/10, now 1/10 (p < 0.001))")
    assert fell.startswith("--no-regressions: all tests together fell")
    # 1, 1, .8, .9, 0, 0 were 61.7 %; now 0, .8, .6, .1, 0, 1 are 41.7 %.
    assert missed_gates(found, GateOptions(max_drop=0.21)) == []
    (said,) = missed_gates(found, GateOptions(max_drop=0.19))
    assert said == "--max-drop 19 %: the pass rate fell from 61.7 % to 41.7 % (-20 points)"
    certainty = gate_certainty(found, GateOptions(max_drop=0.05))
    assert "sign-flip test on 6 cases" in certainty
    assert certainty.endswith("this sample is too small to detect a drop of 5 %")
    assert not GateOptions()
    # An execution that is its own baseline, or older than it, is compared with nothing.
    set_baseline(store, NEW)
    assert compare_to_baseline(store, store.execution(NEW)) is None
    assert compare_to_baseline(store, store.execution(OLD)) is None


def test_what_is_known_is_not_computed_again(store: Store) -> None:
    keep(store, OLD, [Planned("always", [YES] * 5, [RIGHT])])
    set_baseline(store, OLD, who="ada")
    keep(store, NEW, [Planned("always", [YES] * 5, [RIGHT])])
    new = store.execution(NEW)
    with with_cached_comparison(NEW, None):
        assert compare_to_baseline(store, new) is None
    assert compare_to_baseline(store, new) is not None


def test_errors_are_no_regressions(store: Store) -> None:
    two_executions(store)
    set_baseline(store, OLD)
    found = against(store)
    assert "broken" not in {one.test for one in found.regressed}
    (notice,) = [notice for notice in found.notices if notice.code == "no_verdict"]
    assert (notice.test, notice.cause, notice.missing) == ("broken", "errors", False)


def test_a_test_whose_criteria_are_all_in_quarantine_does_not_count_as_passed(store: Store) -> None:
    from agenteval_tui.core.ids import now_ms

    held = [f"q{number}" for number in range(9)]
    keep(store, OLD, [Planned(test, [YES], [RIGHT]) for test in (*held, "t")])
    keep(store, NEW, [Planned(test, [NO], [RIGHT]) for test in (*held, "t")], at_ms=NOON + 1)
    set_baseline(store, OLD)
    for test in held:
        put(store, Quarantine("/s", test, now_ms() + 86_400_000, criterion=RIGHT.name)).result()
    found = against(store)
    assert {one.test for one in found.regressed} == {"t"}
    assert found.drop == 1.0, "of the one test that gates"
    assert missed_gates(found, GateOptions(max_drop=0.5)) != []


def test_a_fall_is_not_rounded_to_the_limit_that_it_exceeds(store: Store) -> None:
    keep(store, OLD, [Planned("t", [YES] * 3, [RIGHT])])
    keep(store, NEW, [Planned("t", [YES, YES, NO], [RIGHT])], at_ms=NOON + 1)
    set_baseline(store, OLD)
    (missed,) = missed_gates(against(store), GateOptions(max_drop=0.333))
    assert missed == "--max-drop 33.3 %: the pass rate fell from 100 % to 66.7 % (-33.33 points)"


def test_tests_that_fell_in_quarantine_are_counted_where_not_all_are_named(store: Store) -> None:
    from agenteval_tui.core.ids import now_ms

    tests = [f"q{number}" for number in range(13)]
    keep(store, OLD, [Planned(test, [YES], [RIGHT]) for test in (*tests, "t")])
    keep(store, NEW, [Planned(test, [NO], [RIGHT]) for test in (*tests, "t")], at_ms=NOON + 1)
    set_baseline(store, OLD)
    for test in tests:
        put(store, Quarantine("/s", test, now_ms() + 86_400_000, reason="slow")).result()
    shown = plain_text(against_view(against(store)))
    assert shown.count("~ fell, in quarantine: ") == 10
    assert "~ and 3 more fell, in quarantine" in shown


def test_what_is_in_quarantine_is_shown_and_does_not_gate(store: Store) -> None:
    both = [RIGHT, text("y", name="wobbly")]
    keep(store, OLD, [Planned("t", [YES] * 2, [RIGHT]), Planned("u", [answered("yes y")] * 2, both)])
    only_wobbly = replace(both[1], config={"metrics": [{"type": "TextMatch", "contains": "zzz"}]})
    keep(store, NEW, [Planned("t", [NO] * 2, [RIGHT]), Planned("u", [YES] * 2, [RIGHT, only_wobbly])], at_ms=NOON + 1)
    set_baseline(store, OLD)
    assert {one.test for one in against(store).regressed} == {"t", "u"}
    day = 86_400_000
    from agenteval_tui.core.ids import now_ms

    put(store, Quarantine("/s", "t", now_ms() + day, reason="flaky since May")).result()
    put(store, Quarantine("/s", "u", now_ms() + day, criterion="wobbly")).result()
    found = against(store)
    assert found.regressed == ()
    assert missed_gates(found, GateOptions(True, 0.0)) == []
    shown = {one.test: one for one in found.shown.in_state("worse")}
    assert shown["t"].quarantine == "flaky since May"
    assert not shown["u"].quarantine, "only a criterion of it is"
    assert found.gating.counts() == {"criteria": 1}, "without the criterion u passes as before"
    end(store, "/s", "t").result()
    end(store, "/s", "u", "wobbly").result()
    assert len(against(store).regressed) == 2, "a quarantine ends"
