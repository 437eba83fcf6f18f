"""A history of before criteria went by their names is brought up to date. `data/make_history_5.py` made it."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agenteval_tui.analysis.labels import give_label
from agenteval_tui.analysis.review_queue import queue
from agenteval_tui.history import quarantines
from agenteval_tui.history.labels import Label, TakeBackLabel, label_of
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.store import Store

OLD = gzip.decompress((Path(__file__).parent / "data" / "history-5.db.gz").read_bytes())
SUITE = "/suites/old.suite.yaml"
SAME = ("same", "same (2)", "same (3)'", "same (3)", "criterion 5")


@pytest.fixture
def store(old: Path) -> Iterator[Store]:
    with Store.open(old) as store:
        yield store


def test_criteria_of_one_name_are_told_apart(store: Store, old: Path) -> None:
    assert tuple(one.criterion for one in store.results("OLD-twin-0")) == SAME
    assert [one.criterion for one in store.results("OLD-greet-0")] == ["tone", "facts", "says hi"]
    with closing(sqlite3.connect(old)) as connection:
        rows = connection.execute(
            "SELECT c.name FROM criterion_results c JOIN runs r ON r.id = c.run WHERE r.uid = ? ORDER BY c.position",
            ("OLD-twin-1",),
        ).fetchall()
    assert tuple(row[0] for row in rows) == SAME


def test_a_label_stays_with_its_criterion_where_that_is_clear(store: Store) -> None:
    by_comment = {one.comment: one for one in store.labels()}
    assert (by_comment["it does"].criterion, by_comment["good"].criterion) == ("says hi", "tone")
    assert by_comment["the run"].whole
    assert "a slip" not in by_comment


def test_a_label_of_several_criteria_is_shown_and_is_no_verdict(store: Store) -> None:
    (unknown,) = [one for one in store.labels(["OLD-greet-0"]) if one.unknown]
    assert (unknown.comment, unknown.criterion, unknown.whole) == ("which one?", "", False)
    for criterion in ("tone", "facts", "says hi"):
        found = label_of(store.labels(["OLD-greet-0"]), criterion, criterion)
        assert found is None or found.comment == "it does"
    waiting = {(one.run_id, one.criterion) for one in queue(store)}
    assert {("OLD-greet-0", "tone"), ("OLD-greet-0", "facts")} <= waiting
    assert give_label(store, Label("OLD-greet-0", criterion="tone", passed=True, who="kim")).status == "needs_review"
    assert give_label(store, Label("OLD-greet-0", criterion="facts", passed=False, who="kim")).status == "failed"
    outcomes = {one.criterion: str(one.outcome) for one in store.results("OLD-greet-0")}
    assert outcomes == {"tone": "passed", "facts": "failed", "says hi": "passed"}


def test_a_quarantine_of_a_name_holds_for_each_that_had_it(store: Store) -> None:
    held = quarantines.active(store)
    assert held.criteria_of(SUITE, "twin") == {"same", "same (2)", "same (3)'"}
    assert {one.reason for one in held} == {"odd"}


def test_what_was_taken_back_does_not_come_again(old: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "new.db") as store:
        merge_history(store, old)
        assert sorted(one.comment for one in store.labels()) == ["good", "it does", "the run", "which one?"]
        assert tuple(one.criterion for one in store.results("OLD-twin-0")) == SAME
        assert merge_history(store, old).labels == 0
        number = next(one.id for one in store.labels() if one.comment == "it does")
        store.write(TakeBackLabel(number)).result()
        merge_history(store, old)
        assert "it does" not in {one.comment for one in store.labels()}
