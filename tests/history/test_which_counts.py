"""Which of two counts, and what does not count: labels, baselines, what was taken back, what was imported."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest
from history_made import SUITE, ended, planned, record
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import DEEPEST
from agenteval_tui.grading.causes import Cause
from agenteval_tui.history import (
    baselines,
    import_validation,
    maintenance,
    quarantines,
    task_specs,
    tombstones,
    trends,
    triage,
)
from agenteval_tui.history.backup import copy_history
from agenteval_tui.history.blobs import search_document
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.labels import AddLabel, Label, label_of, sole_criterion
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.pruning import Pruning, prunable
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.store import Store
from agenteval_tui.history.trends import SelectedRuns, TimeBucket
from agenteval_tui.history.writer import Operation
from agenteval_tui.transcripts.model import Message, Transcript

RUN = "EXECUTION-1-RUN-00000"
SIGNATURE = Cause("failed", "one", "TextResponse", "TextMatch", "contains").signature


def fill(store: Store, *statuses: str, execution: str = "EXECUTION-1", **more: object) -> None:
    """An execution of runs that ended so, all of one test."""
    runs = [planned(3 * n, execution) for n in range(len(statuses))]
    runs = [replace(one, position=n) for n, one in enumerate(runs)]
    store.begin_execution(record(execution), runs)
    for run, status in zip(runs, statuses, strict=True):
        store.run_ended(replace(ended(0, execution), run_id=run.id, status=status, **more))  # type: ignore[arg-type]
    store.end_execution(execution, "finished").result()


# Labels


def label(store: Store, one: Label) -> Future[object]:
    return store.write(AddLabel(one))


def test_the_label_that_was_given_last_counts_also_where_the_clock_went_back(store: Store) -> None:
    fill(store, "passed")
    late = 4_000_000_000_000  # this machine's clock says an earlier time
    label(store, Label(RUN, 1, at_ms=late, who="far ahead")).result()
    label(store, Label(RUN, 5, who="now")).result()
    label(store, Label(RUN, 3, at_ms=late, who="the same millisecond")).result()
    listed = store.labels([RUN])
    assert [one.who for one in listed] == ["far ahead", "now", "the same millisecond"]
    assert [one.at_ms for one in listed] == [late] * 3
    assert label_of(listed, "polite", "polite") == listed[-1]


@pytest.mark.parametrize(
    ("label", "good"),
    [
        (Label("r", 3), False),
        (Label("r", 4), True),
        (Label("r", 5, passed=False), False),
        (Label("r", 1, passed=True), True),
    ],
)
def test_a_verdict_counts_before_a_rating_and_four_is_good(label: Label, good: bool) -> None:
    assert label.good is good


@pytest.mark.parametrize("rating", [0, 6, True, -1])
def test_a_rating_is_one_to_five(store: Store, rating: int) -> None:
    fill(store, "passed")
    for known in (1, 5):
        label(store, Label(RUN, known)).result()
    with pytest.raises(HistoryError, match="from 1 to 5"):
        label(store, Label(RUN, rating)).result()


def test_a_label_of_the_run_is_of_the_only_criterion_that_decides() -> None:
    assert sole_criterion([("a", "warning"), ("b", "error"), ("c", "warning")]) == "b"
    assert sole_criterion([("a", "error"), ("b", "error")]) == ""
    assert sole_criterion([("a", "warning")]) == ""
    whole, own = Label("r", 1), Label("r", 5, "b")
    assert label_of([own, whole], "b", "b") is own
    assert label_of([whole], "b", "b") is whole
    assert label_of([whole], "b", "") is None
    assert label_of([whole], "", "") is None


# Baselines


def test_runs_that_wait_for_a_person_can_be_a_baseline(store: Store) -> None:
    fill(store, "needs_review")
    assert baselines.set_baseline(store, "EXECUTION-1").tests == ((SUITE, "test-0"),)
    baselines.clear_baselines(store)
    assert baselines.set_baseline_run(store, RUN).tests == ((SUITE, "test-0"),)


@pytest.mark.parametrize("status", ["error", "cancelled", "skipped"])
def test_a_run_that_says_nothing_of_the_test_is_no_baseline(store: Store, status: str) -> None:
    fill(store, status, "passed")
    with pytest.raises(AgentevalError, match="can't be a baseline"):
        baselines.set_baseline_run(store, RUN)
    fill(store, status, execution="EXECUTION-2")
    with pytest.raises(AgentevalError, match="none of its runs"):
        baselines.set_baseline(store, "EXECUTION-2")


def test_of_a_process_that_died_behind_its_last_run_everything_is_there(store: Store) -> None:
    """What was planned has ended, and nobody could say so. An import that broke off has not: nobody knows its rest."""
    for execution, left, kind, said in (
        ("WHOLE", 0, "run", ""),
        ("PART", 1, "run", r"did not finish \(interrupted\)"),
        ("IMPORT", 0, "import", r"did not finish \(interrupted\)"),
    ):
        store.begin_execution(record(execution, kind=kind), [planned(n, execution) for n in range(2)])
        for number in range(2 - left):
            store.run_ended(ended(number, execution)).result()
        store.write(Doing(lambda c, one=execution: c.execute("UPDATE executions SET owner = '' WHERE uid = ?", (one,))))
        store.write(Doing(lambda c: c.execute("UPDATE executions SET status = 'running'"))).result()
        if said:
            with pytest.raises(AgentevalError, match=said):
                baselines.set_baseline(store, execution)
        else:
            assert len(baselines.set_baseline(store, execution).tests) == 2


# What was taken back


@pytest.mark.parametrize(("set_ms", "stays"), [(99, False), (100, False), (101, True)])
def test_a_baseline_goes_that_was_set_until_it_was_taken_back(store: Store, set_ms: int, stays: bool) -> None:
    fill(store, "passed")
    baselines.set_baseline(store, "EXECUTION-1", at_ms=set_ms)

    def take(connection: sqlite3.Connection) -> list[str]:
        return list(tombstones.baseline_names(connection).values())

    (name,) = store.read(take)
    assert store.write(Doing(lambda c: tombstones.remove_baseline(c, name, 100))).result() == int(not stays)
    assert len(baselines.baselines(store)) == int(stays)


class Doing(Operation):
    """An operation that does this in the store's transaction."""

    what: Callable[[sqlite3.Connection], object]

    def apply(self, connection: sqlite3.Connection, totals: object) -> object:
        """Do it."""
        return self.what(connection)


def test_the_last_time_something_was_taken_back_counts(store: Store) -> None:
    def twice(connection: sqlite3.Connection) -> list[int | None]:
        said = []
        for at_ms in (5, 9, 7):
            tombstones.add_tombstone(connection, "triage", "s", at_ms)
            said.append(tombstones.tombstone_time(connection, "triage", "s"))
        return [*said, tombstones.tombstone_time(connection, "label", "s")]

    assert store.write(Doing(twice)).result() == [5, 9, 9, None]


def test_a_label_is_taken_back_by_all_that_names_it(store: Store) -> None:
    fill(store, "passed")
    for who, at_ms, criterion in (("ada", 5, "polite"), ("ada", 6, "polite"), ("bob", 5, "polite"), ("ada", 5, "")):
        label(store, Label(RUN, 1, criterion, who=who, at_ms=at_ms)).result()
    digest = store.labels([RUN])[0].criterion_hash
    name = tombstones.name_of_label(RUN, digest, "ada", 5, "polite")
    assert store.write(Doing(lambda c: list(tombstones.remove_labels(c, name)))).result() == [RUN]
    left = {(one.who, one.at_ms, one.criterion) for one in store.labels([RUN])}
    assert left == {("ada", 6, "polite"), ("bob", 5, "polite"), ("ada", 5, "")}
    for broken in ("", "[]", "[1, 2, 3, 4]", json.dumps([RUN, digest, "ada", True]), json.dumps([RUN, "", "b", 5, 6])):
        assert store.write(Doing(lambda c, one=broken: list(tombstones.remove_labels(c, one)))).result() == []


@pytest.mark.parametrize(("there_ms", "comes"), [(99, False), (100, False), (101, True)])
@pytest.mark.parametrize("here", ["decided", "taken back"])
def test_of_two_decisions_the_newer_counts_and_of_two_at_once_that_of_here(
    store: Store, tmp_path: Path, there_ms: int, comes: bool, here: str
) -> None:
    with Store.open(tmp_path / "there.db") as there:
        triage.decide(there, triage.Decision(SIGNATURE, "ignore", at_ms=there_ms))
    if here == "decided":
        triage.decide(store, triage.Decision(SIGNATURE, "fix", at_ms=100))
    else:
        store.write(Doing(lambda c: tombstones.add_tombstone(c, "triage", SIGNATURE, 100))).result()
    merge_history(store, tmp_path / "there.db")
    known = [one.decision for one in triage.decisions(store)]
    assert known == (["ignore"] if comes else ["fix"] if here == "decided" else [])


def test_a_tests_baseline_here_stays(store: Store, tmp_path: Path) -> None:
    fill(store, "passed")
    baselines.set_baseline(store, "EXECUTION-1", at_ms=1)
    copy_history(store.path, tmp_path / "there.db")
    with Store.open(tmp_path / "there.db") as there:
        fill(there, "passed", execution="EXECUTION-2")
        baselines.set_baseline(there, "EXECUTION-2", at_ms=9)
    assert "1 baselines: these tests have a different one here" in merge_history(store, tmp_path / "there.db").left_out
    assert [one.execution_id for one in baselines.baselines(store)] == ["EXECUTION-1"]


def test_a_quarantine_that_ended_earlier_there_ends_here(store: Store, tmp_path: Path) -> None:
    fill(store, "passed")
    for test, until in (("test-0", 500), ("test-1", 100)):
        quarantines.put(store, Quarantine(SUITE, test, until, at_ms=5)).result()
    copy_history(store.path, tmp_path / "there.db")
    with Store.open(tmp_path / "there.db") as there:
        there.write(Doing(lambda c: c.execute("UPDATE quarantines SET until_ms = 300"))).result()
    merge_history(store, tmp_path / "there.db")
    assert {one.test_id: one.until_ms for one in quarantines.listed(store)} == {"test-0": 300, "test-1": 100}


# What was imported


def test_packed_data_has_the_hash_that_it_says() -> None:
    text = b'{"task": 1}'
    digest = hashlib.sha256(text).digest()[:16]
    assert import_validation.is_packed(zlib.compress(text))
    assert import_validation.is_packed(zlib.compress(text), digest)
    assert not import_validation.is_packed(zlib.compress(text), bytes(16))
    assert not import_validation.is_packed(zlib.compress(text), b"")
    assert not import_validation.is_packed(zlib.compress(b"{no json"))


def test_a_task_under_another_ones_hash_does_not_come_in(store: Store, tmp_path: Path) -> None:
    """It would be found where the task of that hash is looked for: a run here would be resumed with their task."""
    path = tmp_path / "there.db"
    with Store.open(path) as there:
        there.begin_execution(record("THERE"), [planned(0, "THERE", task={"of": "them"})])
        there.run_ended(ended(0, "THERE"))
        there.end_execution("THERE", "finished").result()
        there.write(Doing(lambda c: c.execute("UPDATE tasks SET hash = x'00112233445566778899aabbccddeeff'"))).result()
    merge_history(store, path)
    assert store.read(lambda c: c.execute("SELECT count(*) FROM tasks").fetchone()[0]) == 0
    assert store.tasks_of("THERE") == {}


def test_each_run_has_its_own_task_the_first_too(store: Store) -> None:
    store.begin_execution(record(), [planned(n, task={"of": n}) for n in range(3)]).result()
    runs = [f"EXECUTION-1-RUN-0000{n}" for n in range(3)]
    assert [store.read(lambda c, run=run: task_specs.task_of(c, run)) for run in runs] == [{"of": n} for n in range(3)]
    for number in (-1, 3):
        store.write(Doing(lambda c, number=number: c.execute("UPDATE runs SET task_number = ?", (number,)))).result()
        assert store.read(lambda c: task_specs.task_of(c, runs[0])) is None


@pytest.mark.parametrize(("depth", "fits"), [(DEEPEST, True), (DEEPEST + 1, False)])
def test_values_are_so_deep_and_no_deeper(depth: int, fits: bool) -> None:
    text = "[" * depth + "]" * depth
    assert (import_validation._read(text) is not None) is fits


# Places of time


def began(
    store: Store, *times: int | None, execution: str = "EXECUTION-1", status: str = "passed", **more: object
) -> None:
    """An execution of runs that began then."""
    runs = [replace(planned(3 * n, execution), position=n) for n in range(len(times))]
    store.begin_execution(record(execution), runs)
    for run, at in zip(runs, times, strict=True):
        one = replace(ended(0, execution), run_id=run.id, started_ms=at or 0, status=status, **more)  # type: ignore[arg-type]
        store.run_ended(one)
    store.end_execution(execution, "finished").result()


def counts(store: Store, since: int, until: int, **more: object) -> list[int]:
    picked, place = SelectedRuns(since, until, **more), TimeBucket(0, since, until)  # type: ignore[arg-type]
    found = store.read(lambda c: trends.tallies(c, picked, [place]))
    return [sum(getattr(one, name) for one in found) for name in ("passed", "failed", "errors", "review")]


def test_a_piece_of_time_has_its_first_millisecond_and_not_its_last(store: Store) -> None:
    began(store, 999, 1_000, 1_500, 1_999, 2_000)
    assert counts(store, 1_000, 2_000) == [3, 0, 0, 0]
    assert counts(store, 1_000, 1_000) == [0, 0, 0, 0]
    assert counts(store, 2_000, 2_001) == [1, 0, 0, 0]
    assert store.read(lambda c: trends.extent(c, SelectedRuns(1_000, 2_000))) == (1_000, 1_999)
    assert store.read(lambda c: trends.extent(c, SelectedRuns(3_000, 9_000))) is None
    assert len(store.read(lambda c: trends.picked_runs(c, SelectedRuns(1_000, 2_000)))) == 3


def test_runs_without_a_time_stand_at_the_first_millisecond_of_their_execution(store: Store) -> None:
    fill(store, "passed", started_ms=0)
    store.write(Doing(lambda c: c.execute("UPDATE runs SET started_ms = NULL"))).result()  # its execution: at 1,000
    assert counts(store, 1_000, 1_001) == [1, 0, 0, 0]
    assert counts(store, 0, 1_000) == [0, 0, 0, 0]
    assert counts(store, 1_001, 2_000) == [0, 0, 0, 0]
    assert store.read(lambda c: trends.extent(c, SelectedRuns(1_000, 1_001))) == (1_000, 1_000)
    assert store.read(lambda c: trends.extent(c, SelectedRuns(0, 1_000))) is None


def test_what_did_not_end_is_in_no_trend_and_an_answer_that_was_known_took_no_time(store: Store) -> None:
    for number, status in enumerate(("passed", "failed", "error", "needs_review", "cancelled", "skipped")):
        began(store, 1_000, execution=f"E{number}", status=status)
    assert counts(store, 0, 9_000) == [1, 1, 1, 1]
    began(store, 1_000, execution="CACHED", cached=True)
    everything, place = SelectedRuns(0, 9_000), TimeBucket(0, 0, 9_000)
    measured = {
        name: sum(
            len(values) for *_, values in store.read(lambda c, n=name: trends.measurements(c, everything, [place], n))
        )
        for name in ("latency", "tokens", "cost", "steps", "score")
    }
    assert counts(store, 0, 9_000) == [2, 1, 1, 1]
    assert measured == {"latency": 4, "tokens": 4, "cost": 4, "steps": 5, "score": 5}


def test_runs_count_as_they_are_said_to_have_ended_now(store: Store) -> None:
    """Graded again: what a grading does not name, or leaves without a verdict, is left out."""
    began(store, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, status="failed")
    picked, place = SelectedRuns(0, 9_000), TimeBucket(7, 0, 9_000)
    newest = store.read(lambda c: trends.picked_runs(c, picked))
    assert newest == sorted(newest, reverse=True)
    now = dict(zip(newest, ("passed", "failed", "error", "needs_review", "skipped"), strict=False))
    (found,) = store.read(lambda c: trends.tallies_of(c, picked, [place], now))
    assert (found.at, found.passed, found.failed, found.errors, found.review) == (7, 1, 1, 1, 1)
    assert store.read(lambda c: trends.tallies_of(c, picked, [place], {})) == []


def test_of_tags_all_count_and_of_agents_any(store: Store) -> None:
    kinds = (("a", ("x",)), ("b", ("x", "y")), ("c", ("y",)), ("d", ()))
    runs = [replace(planned(n), agent=agent, tags=tags) for n, (agent, tags) in enumerate(kinds)]
    store.begin_execution(record(), runs)
    for number in range(len(kinds)):
        store.run_ended(replace(ended(number), started_ms=1_000))
    store.end_execution("EXECUTION-1", "finished").result()
    assert counts(store, 0, 9_000, tags=("x", "y")) == [1, 0, 0, 0]
    assert counts(store, 0, 9_000, tags=("y",)) == [2, 0, 0, 0]
    assert counts(store, 0, 9_000, agents=("a", "c")) == [2, 0, 0, 0]
    assert counts(store, 0, 9_000, agents=("a", "c"), tags=("y",)) == [1, 0, 0, 0]
    assert counts(store, 0, 9_000, tests=()) == [0, 0, 0, 0]


def test_two_suites_of_one_name_are_two(store: Store) -> None:
    runs = [replace(planned(n), test_id="t", suite_key=f"/{n}/s.suite.yaml", suite_name="Same") for n in range(2)]
    store.begin_execution(record(), runs)
    for number in range(2):
        store.run_ended(replace(ended(number, passed=number == 0), started_ms=1_000))
    store.end_execution("EXECUTION-1", "finished").result()
    known = store.read(trends.tests_known)
    assert [(one.suite_key, one.suite, one.test_id) for one in known] == [
        ("/0/s.suite.yaml", "Same", "t"),
        ("/1/s.suite.yaml", "Same", "t"),
    ]
    first, second = (counts(store, 0, 9_000, tests=(one.row,)) for one in known)
    assert (first, second) == ([1, 0, 0, 0], [0, 1, 0, 0])
    assert counts(store, 0, 9_000, but=(known[0].row,)) == [0, 1, 0, 0]


def test_a_setting_was_seen_when_its_last_run_began(store: Store) -> None:
    began(store, 3_000, 5_000, 4_000)
    fill(store, "passed", execution="UNDATED", started_ms=0)
    store.write(Doing(lambda c: c.execute("UPDATE runs SET started_ms = NULL WHERE started_ms = 0"))).result()
    assert max(store.read(lambda c: trends.settings_seen(c, SelectedRuns(0, 9_000))).values()) == 5_000
    assert max(store.read(lambda c: trends.settings_seen(c, SelectedRuns(0, 4_500))).values()) == 4_000
    assert max(store.read(lambda c: trends.settings_seen(c, SelectedRuns(0, 2_000))).values()) == 1_000


# Pruning


def test_pruning_takes_what_began_before_and_leaves_the_newest(store: Store) -> None:
    began(store, 999, 1_000, 1_001)

    def going(**wanted: int) -> int:
        return len(prunable(store, Pruning(**wanted)).runs)

    assert [going(before_ms=at) for at in (999, 1_000, 1_001, 1_002)] == [0, 1, 2, 3]
    assert [going(keep=number) for number in (1, 2, 3)] == [2, 1, 0]
    assert going(before_ms=1_002, keep=2) == 1, "both must hold"


# Checking


def test_so_many_problems_of_a_kind_are_listed_and_no_more(store: Store, path: Path) -> None:
    count = maintenance._MOST + 3
    store.begin_execution(record(), [planned(n) for n in range(count)])
    for number in range(count):
        store.run_ended(ended(number, answer=f"answer {number}"))
    store.end_execution("EXECUTION-1", "finished").result()
    store.write(Doing(lambda c: c.execute("UPDATE transcripts SET data = x'0011'"))).result()
    assert len(maintenance.check(path, deep=True).damage) == maintenance._MOST
    store.write(Doing(lambda c: c.execute("DELETE FROM transcripts WHERE id > ?", (maintenance._MOST - 1,)))).result()
    assert len(maintenance.check(path, deep=True).damage) == maintenance._MOST - 1


# Searching


def test_an_answer_is_indexed_once() -> None:
    said = Transcript((Message("user", "q"), Message("assistant", "one"), Message("assistant", "")), final_output="one")
    assert search_document(said)[1].count("one") == 1
    assert search_document(replace(said, final_output="two"))[1].split() == ["one", "two"]
    assert search_document(replace(said, messages=(), final_output=""))[1] == ""
