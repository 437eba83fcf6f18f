"""Failures by cause, and what was decided about them: hand-made histories, no execution."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from failing import SUITE, at, make, specs_of

from agenteval_tui.analysis.agreement import disagreements
from agenteval_tui.analysis.causes import (
    CauseGroup,
    Causes,
    execution_scope,
    failure_causes,
    filter_scope,
    group_failures,
    newest_scope,
)
from agenteval_tui.analysis.labels import give_labels
from agenteval_tui.analysis.triage import DecisionResult, decide, statuses
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history import quarantines, triage
from agenteval_tui.history.baselines import baselines, set_baseline
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.labels import Label
from agenteval_tui.history.pruning import Pruning, prunable
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.views.causes import causes_text

# What a run of a test did: "" passed; "text" misses a text; "tool" a call; "down" its agent failed.
Made = Callable[..., str]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "made.db") as opened:
        yield opened


@pytest.fixture
def ran(store: Store) -> Made:
    """`ran("E1", smoke=["", "text"], refund=["down"])`: an execution with these runs; gives its id."""
    return partial(make, store)


def group(causes: Causes, part: str) -> CauseGroup:
    return next(one for one in causes.groups if part in one.title)


def test_failures_are_grouped_worst_first_and_compared_with_the_execution_before(store: Store, ran: Made) -> None:
    ran("E1", smoke=["text", ""], refund=["tool"])
    ran("E2", smoke=["text", "text", ""], refund=["text", "down", "down"])
    causes = group_failures(store, execution_scope(store))
    assert causes_text(causes) == "5 failures = 2 causes"
    assert causes.scope.before_words == "the execution before"
    text, down, gone = causes.groups
    assert text.title == 'The filter: "5000" is not in the text'
    assert (text.count, text.share, text.trend, text.before, text.ended) == (3, 0.6, "known", 1, 6)
    assert text.tests == ((SUITE, "smoke"), (SUITE, "refund"))
    assert text.run_ids == ("E2-003", "E2-001", "E2-000")
    assert text.address() == "E2-003/1"
    assert text.since_run == "E1-000"
    assert (down.count, down.trend, down.title) == (2, "new", "the agent failed (timeout): no answer for N s")
    assert down.address() == "E2-005"
    assert (gone.count, gone.trend, gone.before) == (0, "gone", 1)
    assert [one.title for one in failure_causes(store, ["E2-000", "E2-002"])["E2-000"]] == [text.cause.title]
    # One test of it, the newest runs of each test, and everything that has ever run.
    assert causes_text(group_failures(store, execution_scope(store, "E2", ["SMOKE"]))) == "2 failures = 1 cause"
    assert causes_text(group_failures(store, newest_scope(store, [SUITE]))) == causes_text(causes)
    assert causes_text(group_failures(store, newest_scope(store, [SUITE], ["refund"]))) == "3 failures = 2 causes"
    everything = group_failures(store, filter_scope(store, RunFilter()))
    assert causes_text(everything) == "7 failures = 3 causes"
    assert {one.trend for one in everything.groups} == {""}
    assert (
        causes_text(group_failures(store, filter_scope(store, RunFilter(test_id="nobody")))) == "0 failures = 0 causes"
    )


def test_a_baseline_is_what_it_is_compared_with(store: Store, ran: Made) -> None:
    ran("E1", smoke=["text"], refund=["tool"])
    set_baseline(store, "E1", tests=[(SUITE, "smoke")])
    ran("E2", smoke=[""], refund=["tool"])
    ran("E3", smoke=["text"], refund=["down"])
    causes = group_failures(store, execution_scope(store))
    assert causes.scope.before_words == "the baseline, or the execution before"
    assert group(causes, "filter").trend == "known"  # E2 had it not, but the baseline had
    assert group(causes, "timeout").trend == "new"
    assert group(causes, "Looks it up").trend == "gone"


def test_causes_of_older_runs_are_made_out_of_their_evidence_and_kept(store: Store, ran: Made) -> None:
    ran("E1", smoke=["text", "tool", "", "down"])
    fresh = group_failures(store, execution_scope(store))
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE criterion_results SET cause = NULL")
        connection.commit()
        assert group_failures(store, execution_scope(store)).groups == fresh.groups
        store.label("E1-000", 1).result()  # behind what was written before
        kept = connection.execute("SELECT count(*) FROM criterion_results WHERE cause > ''").fetchone()
        assert kept == (3,)  # the agent that failed among them
        connection.execute("UPDATE criterion_results SET cause = NULL")
        connection.execute("UPDATE evidence SET data = x'00'")
        connection.commit()
    connection.close()
    assert group(group_failures(store, execution_scope(store)), "no stored result").count == 2


def decided(store: Store, decision: str, part: str = "filter", **more: object) -> DecisionResult:
    causes = group_failures(store, execution_scope(store))
    return decide(store, group(causes, part), decision, who="kim", **more)  # type: ignore[arg-type]


def open_again(store: Store, part: str = "filter", at_ms: int | None = None) -> str:
    causes = group_failures(store, execution_scope(store))
    return statuses(store, causes, at_ms)[group(causes, part).cause.signature].open_again


def test_a_decision_holds_until_something_changes(store: Store, ran: Made) -> None:
    ran("E1", smoke=["text"] * 2 + [""] * 18, refund=[""])
    at(store, "E1", now_ms() - 60_000)
    done = decided(store, "ignore", note="known")
    assert (done.decision.context.failed, done.decision.context.runs) == (2, 20)
    assert done.decision.context.examples == ("E1-001", "E1-000")
    assert prunable(store, Pruning(keep=0)).kept == {"triage": 2}
    assert open_again(store) == ""
    assert open_again(store, at_ms=now_ms() + 10**12) == ""  # no date was given
    later = now_ms() + 60_000
    for execution, version, tests, why in (
        ("E2", "v1", {"smoke": ["text"] * 3 + [""] * 17}, ""),  # by chance
        ("E3", "v1", {"smoke": ["text"] * 9 + [""] * 11}, "it grew from 2 of 20 runs to 9 of 20"),
        ("E4", "v1", {"smoke": ["text"], "refund": ["text"]}, "it is in refund too"),
        ("E5", "v2", {"smoke": ["text"]}, "the criterion was changed"),
    ):
        ran(execution, version=version, **tests)
        at(store, execution, later)
        assert open_again(store) == why, execution
    # Fixed, and it fails again; what is in quarantine may grow.
    triage.decide(store, triage.Decision(done.decision.signature, "fix", at_ms=now_ms(), context=done.decision.context))
    assert open_again(store) == "the criterion was changed, and it still fails"
    triage.reopen(store, done.decision.signature)
    assert statuses(store, group_failures(store, execution_scope(store))) == {}
    with pytest.raises(AgentevalError, match="nothing was decided"):
        triage.reopen(store, done.decision.signature)


def test_each_decision_does_what_it_says(store: Store, ran: Made) -> None:
    ran("E1", smoke=["text", "text", ""], refund=["tool", "down"])
    assert decided(store, "quarantine", until_ms=now_ms() + 50_000).effect == "The filter of 1 test in quarantine"
    ((held,),) = (tuple(quarantines.active(store)),)
    assert (held.test_id, held.criterion, held.who) == ("smoke", "The filter", "kim")
    assert open_again(store) == ""
    assert open_again(store, at_ms=now_ms() + 60_000) == "its date has passed"
    quarantines.end(store, SUITE, "smoke", "The filter").result()
    assert open_again(store) == "smoke is no longer in quarantine"
    assert decided(store, "quarantine", "timeout").effect == "1 test in quarantine"

    assert decided(store, "accept").effect == "execution E1 is the baseline of 1 test"
    assert [one.test_id for one in baselines(store)] == ["smoke"]

    store.label("E1-001", 5, criterion="The filter").result()
    assert decided(store, "label", note="really wrong").effect == "1 run labelled failed"
    (label,) = store.labels(["E1-000"])
    assert (label.passed, label.criterion_hash, label.comment, label.who) == (
        False, specs_of("v1")[0].hash, "really wrong", "kim",
    )  # fmt: skip
    assert decided(store, "label").effect == "every run already had a label"
    with pytest.raises(HistoryError, match="no run GONE"):
        give_labels(store, [Label("E1-000", 1), Label("GONE", 1)])
    assert len(store.labels()) == 2, "all of them, or none"
    labelled = {store.run(one).rowid for one in ("E1-000", "E1-001")}
    assert set(disagreements(store, store.run_ids())) == labelled, "no judge had a say in the others"

    assert decided(store, "fix", "Looks").effect == "the criterion is to be fixed"
    known = [one.signature for one in triage.decisions(store)]
    assert {one.decision for one in triage.decisions(store)} == {"label", "fix", "quarantine"}
    wanted = triage.decisions(store)[0]
    assert triage.signature_of(known, wanted.id[:6]) == wanted.signature


def test_each_test_gets_the_newest_execution_that_has_the_cause_as_its_baseline(store: Store, ran: Made) -> None:
    ran("E1", smoke=["text"], refund=["text"])
    ran("E2", smoke=["text"])
    made = decide(store, group(group_failures(store, newest_scope(store)), "filter"), "accept")
    assert made.effect == "the newest execution of each is the baseline of 2 tests"
    assert {one.test_id: one.execution_id for one in baselines(store)} == {"smoke": "E2", "refund": "E1"}


def test_runs_whose_agent_failed_are_labelled_as_a_whole(store: Store, ran: Made) -> None:
    ran("E1", smoke=["text", ""], refund=["down"])
    assert decided(store, "label", "timeout").effect == "1 run labelled failed"
    assert decided(store, "label", "timeout").effect == "every run already had a label"
    assert [(one.run_id, one.whole) for one in store.labels()] == [("E1-002", True)]


def test_what_is_refused_is_not_written(store: Store, ran: Made) -> None:
    ran("E1", smoke=["text"], refund=["down"])
    causes = group_failures(store, execution_scope(store))
    with pytest.raises(AgentevalError, match="no run of these tests"):
        decide(store, group(causes, "timeout"), "accept")
    with pytest.raises(AgentevalError, match="not a decision"):
        decide(store, group(causes, "filter"), "shrug")
    with pytest.raises(AgentevalError, match="future"):
        decide(store, group(causes, "filter"), "ignore", until_ms=5)
    with pytest.raises(AgentevalError, match="not the signature"):
        triage.decide(store, triage.Decision("not one", "ignore"))
    ran("E2", smoke=[""])
    with pytest.raises(AgentevalError, match="gone"):
        decide(store, group(group_failures(store, execution_scope(store)), "filter"), "quarantine")
    assert triage.decisions(store) == []
    with pytest.raises(AgentevalError, match="no cause"):
        triage.signature_of(["a"], "")


def test_what_fails_in_a_test_that_never_ran_before_is_not_new(store: Store, ran: Made) -> None:
    ran("E1", smoke=[""])
    ran("E2", smoke=["tool"], fresh=["text"])
    found = group_failures(store, execution_scope(store))
    assert {group.tests[0][1]: group.trend for group in found.groups} == {"smoke": "new", "fresh": ""}
