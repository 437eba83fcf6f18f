"""A recording is one output, however often it is graded: the newest grading counts."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from agenteval_tui.analysis.agreement import judge_figures
from agenteval_tui.analysis.causes import filter_scope
from agenteval_tui.analysis.labels import give_label
from agenteval_tui.analysis.regrade import CriteriaSource, regrade, save_verdicts
from agenteval_tui.analysis.repetitions import repetitions
from agenteval_tui.analysis.review_queue import queue
from agenteval_tui.analysis.trend_alerts import watch
from agenteval_tui.analysis.trends import TrendQuery, trend
from agenteval_tui.analysis.variance import ledger
from agenteval_tui.core.ids import new_id, now_ms
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history import trends as rows
from agenteval_tui.history.delete_runs import remove_runs, runs_of
from agenteval_tui.history.labels import Label
from agenteval_tui.history.maintenance import check
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.recordings import mark_superseded
from agenteval_tui.history.records import ExecutionRecord, ExecutionRow, PlannedRun, RunEnded, RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, Transcript, Usage

NOW = now_ms()


def says(word: str) -> CriterionSpec:
    return CriterionSpec("says", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": word}]})


def record(store: Store, number: int, *, started_ms: int | None = NOW - 1_000, cost: float = 0.5) -> ExecutionRow:
    """An execution of one test, `number` repetitions: every third output is "good", the others "bad"."""
    execution, runs = new_id(), []
    for place in range(number):
        planned = PlannedRun(new_id(), execution, place, "/s", "S", "t", "t", repetition=place + 1, agent="bot")
        said = Message("assistant", f"{'good' if place % 3 == 0 else 'bad'} {place}")
        transcript = Transcript(messages=(said,), final_output=said.content, usage=Usage(10, 1, cost=cost))
        runs.append((planned, RunEnded(planned.id, "needs_review", None, started_ms, 5.0, 1, transcript)))
    store.import_runs(ExecutionRecord(execution, "recorded", "run", "s", ("/s",), started_ms=NOW - 2_000), runs)
    return store.execution(execution)


def grade(store: Store, execution: ExecutionRow, word: str) -> ExecutionRow:
    rules = CriteriaSource((says(word),), None)
    graded = list(regrade(store, store.runs_of_execution(execution.id), lambda row: rules))
    return store.execution(save_verdicts(store, execution, graded, "again"))


def figures(store: Store) -> tuple[int, int, int, int]:
    """(n, passed) of trends, of which nothing may differ elsewhere; n of flaky; runs of the history."""
    found = trend(store, TrendQuery(since_ms=NOW - 10_000, until_ms=NOW + 10_000))
    overall = found.series[0].overall
    (entry,) = ledger(store, TrendQuery(since_ms=NOW - 10_000, until_ms=NOW + 10_000), NOW).tests
    assert (entry.n, entry.passed) == (overall.n, overall.passed)
    alert = watch(store, TrendQuery(since_ms=NOW - 10_000, until_ms=NOW + 10_000), 0.5, NOW).alerts[0]
    assert (alert.n, alert.passed) == (overall.n, overall.passed)
    summary = store.test_summaries("/s")["t"]
    counts = store.counts()
    assert summary.total == counts.runs
    picked = rows.SelectedRuns(NOW - 10_000, NOW + 10_000)
    assert sum(sum(one[:4]) for one in store.read(lambda c: rows.scores(c, picked)).values()) == overall.n
    assert len(filter_scope(store, RunFilter()).runs) == counts.runs
    return overall.n, overall.passed, entry.n, counts.runs


@pytest.mark.parametrize("words", [["good"], ["good", "bad"], ["good"] * 5, ["good", "bad", "o", "a", "d"]])
def test_the_newest_grading_of_each_recording_counts(store: Store, words: list[str]) -> None:
    recorded = record(store, 30)
    paid = store.counts()
    for number, word in enumerate(words):
        execution = grade(store, recorded, word)
        if number % 2:
            recorded = execution  # a grading of a grading
    passed = {"good": 10, "bad": 20, "o": 10, "a": 20, "d": 30}[words[-1]]
    assert figures(store) == (30, passed, 30, 30)
    assert store.counts().cost == pytest.approx(paid.cost)
    assert store.counts().input_tokens == paid.input_tokens
    assert not check(store.path).wrong
    named = store.executions(20)
    assert {one.runs for one in named} == {30}, "each execution shows its own runs"
    assert len(filter_scope(store, RunFilter(execution_id=named[-1].id)).runs) == 30


def test_what_was_graded_again_only_in_part(store: Store) -> None:
    recorded = grade(store, record(store, 30), "good")
    some = store.runs_of_execution(recorded.id)[:3]
    rules = CriteriaSource((says("bad"),), None)
    save_verdicts(store, recorded, list(regrade(store, some, lambda row: rules)), "some")
    assert figures(store) == (30, 9 + 2, 30, 30)


def test_a_grading_that_goes_gives_its_place_back(store: Store) -> None:
    recorded = record(store, 30)
    first = grade(store, recorded, "good")
    second = grade(store, recorded, "bad")
    for gone, passed in ((second, 10), (recorded, 10)):
        ids = store.read(lambda c, gone=gone: runs_of(c, [gone.rowid]))  # type: ignore[misc]
        remove_runs(store, ids, executions=[gone.rowid])
        assert figures(store) == (30, passed, 30, 30)
    third = grade(store, first, "bad")
    assert figures(store) == (30, 20, 30, 30)
    assert {run.recorded for run in store.runs_of_execution(third.id)} == {
        run.recorded for run in store.runs_of_execution(first.id)
    }
    assert not check(store.path).wrong


@pytest.mark.parametrize("here", ["recorded", "graded"])
def test_histories_that_are_merged(store: Store, tmp_path: Path, here: str) -> None:
    with Store.open(tmp_path / "other.db") as other:
        recorded = record(other, 12)
        if here == "recorded":
            merge_history(store, tmp_path / "other.db")
        grade(other, recorded, "good")
        grade(other, recorded, "bad")
    if here == "recorded":
        grade(store, store.execution(recorded.id), "good")
    for _ in range(2):
        merge_history(store, tmp_path / "other.db")
        newest = 4 if here == "recorded" else 8
        n, passed, *more = figures(store)
        assert (n, more) == (12, [12, 12])
        assert passed in (4, 8)
        if here == "graded":
            assert passed == newest
    assert not check(store.path).wrong


def test_recordings_without_a_time_stay_where_they_were_brought_in(store: Store) -> None:
    graded = grade(store, record(store, 3, started_ms=None), "good")
    assert {run.started_ms for run in store.runs_of_execution(graded.id)} == {NOW - 2_000}


def test_what_people_said_of_an_output_is_said_of_its_newest_grading(store: Store) -> None:
    recorded = grade(store, record(store, 6), "good")
    good = store.runs_of_execution(recorded.id)[0]
    give_label(store, Label(good.id, criterion="says", passed=True, who="kim"))
    grade(store, recorded, "bad")
    (one,) = judge_figures(store, store.run_rows(store.run_ids(RunFilter())))
    assert (one.judged, one.labelled, one.agreement.n, one.agreement.only_person) == (1, 1, 1, 1)
    named = judge_figures(store, store.runs_of_execution(recorded.id))[0]
    assert (named.labelled, named.agreement.both_yes) == (1, 1)


def test_a_recording_is_looked_at_once(store: Store) -> None:
    recorded = record(store, 6)
    assert len(queue(store)) == 6
    graded = grade(store, recorded, "good")
    assert not queue(store)
    first, again = store.runs_of_execution(recorded.id)[0], store.runs_of_execution(graded.id)[0]
    assert first.superseded
    assert not again.superseded
    assert len(store.runs_of_test("/s", "t", 100)) == 6
    assert {len(repetitions(store, run, everywhere=every)) for run in (first, again) for every in (True, False)} == {6}


@pytest.mark.parametrize(
    ("gradings", "counts"),
    [
        # (when its execution started, how the run ended) of each grading, in the order of their rows
        ([(10, "passed"), (20, "failed")], 1),
        ([(20, "passed"), (10, "failed")], 0),  # an older execution that came in later, with another history
        ([(10, "passed"), (10, "failed")], 1),  # at the same time: the one that came last
        ([(10, "passed"), (20, "running")], 0),  # what has not ended replaces nothing
        ([(10, "passed"), (20, "cancelled")], 0),
        ([(10, "error"), (20, "needs_review")], 1),
        ([(30, "passed"), (20, "failed"), (25, "failed")], 0),
    ],
)
def test_which_grading_of_a_recording_is_the_newest(store: Store, gradings: list[tuple[int, str]], counts: int) -> None:
    recorded = record(store, 1)
    (name,) = [run.id for run in store.runs_of_execution(recorded.id)]
    made = [grade(store, recorded, "good") for _ in gradings]
    store.label(name, 1).result()  # behind all that was written
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE executions SET started_ms = 1 WHERE id = ?", (recorded.rowid,))
        for execution, (started_ms, status) in zip(made, gradings, strict=True):
            connection.execute("UPDATE executions SET started_ms = ? WHERE id = ?", (started_ms, execution.rowid))
            connection.execute("UPDATE runs SET status = ? WHERE execution = ?", (status, execution.rowid))
        mark_superseded(connection, [name])
        rows = connection.execute("SELECT execution, superseded FROM runs ORDER BY id").fetchall()
    connection.close()
    ended = {
        made[number].rowid for number, (_, status) in enumerate(gradings) if status not in ("running", "cancelled")
    }
    left = {execution for execution, old in rows if not old}
    assert left & ended == {made[counts].rowid}
    assert recorded.rowid not in left
