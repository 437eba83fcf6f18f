"""Copies, other machines' histories, suites that moved; checking, fixing and giving space back."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from history_made import SUITE, ended, planned, record, transcript
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.causes import Cause
from agenteval_tui.history import baselines, quarantines, schema, triage
from agenteval_tui.history.backup import COPIED, copy_history, move_suites
from agenteval_tui.history.delete_runs import remove_runs
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.labels import TakeBackLabel
from agenteval_tui.history.maintenance import check, repair, space, vacuum
from agenteval_tui.history.merge import MergeResult, merge_history
from agenteval_tui.history.rebuild_totals import recount
from agenteval_tui.history.records import FailedAttempt, RunFilter
from agenteval_tui.history.store import Store

TABLES = (
    "executions",
    "runs",
    "transcripts",
    "tool_calls",
    "criterion_results",
    "evidence",
    "plans",
    "tasks",
    "criteria",
)
SIGNATURE = Cause("failed", "one", "TextResponse", "TextMatch", "contains").signature
SEEN = (
    "SELECT e.uid, e.status, e.message, e.runs, e.passed, e.failed, e.cancelled, e.input_tokens, e.cost, r.uid,"
    " r.status, r.score, s.key, t.test_id, t.ended, r.output_head FROM executions e"
    " LEFT JOIN runs r ON r.execution = e.id"
    " LEFT JOIN tests t ON t.id = r.test LEFT JOIN suites s ON s.id = t.suite ORDER BY e.uid, r.uid"
)


def seen(store: Store) -> list[tuple[object, ...]]:
    return store.read(lambda c: c.execute(SEEN).fetchall())


def counted(store: Store) -> dict[str, int]:
    return store.read(lambda c: {t: c.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in TABLES})


def make(
    store: Store, name: str, number: int = 4, *, of: int | None = None, finish: bool = True, at_ms: int = 1_000
) -> None:
    """An execution whose first `of` runs ended."""
    runs = [planned(one, name, task={"of": name}) for one in range(number)]
    store.begin_execution(replace(record(name, setup={"setup": name}), started_ms=at_ms), runs)
    for one in range(number if of is None else of):
        store.run_ended(ended(one, name, passed=one != 1, answer=f"answer of {name} {one}"))
    if finish:
        store.end_execution(name, "finished").result()
    store.flush()


def assert_counts(store: Store) -> None:
    found = check(store.path, deep=True)
    assert (found.damage, found.wrong) == ((), ())
    copy = sqlite3.connect(":memory:")
    with contextlib.closing(sqlite3.connect(store.path)) as source:
        source.backup(copy)
    recount(copy)
    assert copy.execute(SEEN).fetchall() == seen(store)
    copy.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "other.db") as opened:
        yield opened


def test_a_copy_is_one_moment_of_a_history_that_is_written(store: Store, path: Path, tmp_path: Path) -> None:
    make(store, "DONE", 6)
    make(store, "GOES-ON", 300, of=2, finish=False)
    stop = threading.Event()

    def write() -> None:
        for one in range(2, 300):
            store.run_ended(ended(one, "GOES-ON")).result()
            if stop.is_set():
                return

    writer = threading.Thread(target=write)
    writer.start()
    target = tmp_path / "copies" / "moved.db"
    target.parent.mkdir()
    try:
        size = copy_history(path, target)
        again = copy_history(path, target, force=True)
    finally:
        stop.set()
        writer.join()
    assert again >= size > 10_000
    assert [one.name for one in target.parent.iterdir()] == ["moved.db"]
    assert target.stat().st_mode & 0o777 == 0o600
    with Store.open(target) as copy:
        assert copy.notices == ()
        row = copy.execution("GOES-ON")
        assert (row.status, row.message, row.runs) == ("interrupted", COPIED, 300)
        assert {run.status for run in copy.runs_of_execution("GOES-ON")} == {"passed", "failed", "queued"}
        assert copy.execution("DONE").ended == 6
        assert len(copy.run_ids(RunFilter(text="answer of"))) == 8
        assert_counts(copy)
    with pytest.raises(AgentevalError, match="not overwritten"):
        copy_history(path, target)
    with pytest.raises(AgentevalError, match="not overwritten"):
        copy_history(path, path, force=True)
    with pytest.raises(HistoryError, match="can't be written: No such file"):
        copy_history(path, tmp_path / "nowhere" / "moved.db")


def test_another_history_comes_in_and_a_second_time_adds_nothing(store: Store, other: Store) -> None:
    make(store, "HERE", 3, at_ms=2_000)
    make(other, "THERE", 5)
    make(other, "LEFT", 3, of=1, finish=False)
    other.label("THERE-RUN-00001", 2, criterion_hash="hash-b", comment="too short", who="ann").result()
    other.run_ended(ended(1, "LEFT")).result()
    other.keep_attempts("LEFT-RUN-00002", [FailedAttempt(1, "timeout", "late", 5.0, 9, 7, 3, 0.25)]).result()
    baselines.set_baseline(other, "THERE")
    told: list[tuple[int, int]] = []
    done = merge_history(store, other.path, lambda at, of: told.append((at, of)))
    assert (done.executions, done.runs, done.completed, done.labels, done.already) == (2, 8, 0, 1, 0)
    assert told[-1] == (8, 8)
    assert store.transcript("THERE-RUN-00002") == transcript("answer of THERE 2")
    assert store.results("THERE-RUN-00001") == other.results("THERE-RUN-00001")
    assert [one.comment for one in store.labels(["THERE-RUN-00001"])] == ["too short"]
    assert store.tasks_of("LEFT") == other.tasks_of("LEFT")
    assert store.setup_of("LEFT") == {"setup": "LEFT"}
    assert store.execution("LEFT").status == "interrupted"
    assert store.execution("LEFT").cost == other.execution("LEFT").cost == 1.25
    assert len(store.run_ids(RunFilter(text="answer of there"))) == 5
    assert {one.execution_id for one in baselines.baselines(store)} == {"THERE"}
    assert_counts(store)
    # One order everywhere: what came in last is first in lists, and is the last one.
    assert store.execution("last").id == store.execution_rows(store.execution_ids(RunFilter())[:1])[0].id
    before, rows = seen(store), counted(store)
    again = merge_history(store, other.path)
    assert (again.executions, again.runs, again.already) == (0, 0, 5 + 3)
    assert (seen(store), counted(store)) == (before, rows)


def test_what_was_resumed_on_another_machine_comes_back(store: Store, tmp_path: Path) -> None:
    make(store, "TAKEN", 4, of=2, finish=False)
    moved = tmp_path / "moved.db"
    copy_history(store.path, moved)
    store.end_execution("TAKEN", "cancelled").result()
    with Store.open(moved) as there:
        assert there.resume_execution("TAKEN").result() == 2
        for one in (2, 3):
            there.run_ended(ended(one, "TAKEN"))
        there.end_execution("TAKEN", "finished").result()
    done = merge_history(store, moved)
    assert (done.executions, done.runs, done.completed, done.already) == (0, 0, 2, 2)
    row = store.execution("TAKEN")
    assert (row.status, row.runs, row.passed, row.failed, row.cancelled) == ("finished", 4, 3, 1, 0)
    assert_counts(store)
    baselines.set_baseline(store, "TAKEN")
    with Store.open(moved) as there:
        there.delete_execution("TAKEN").result()
        make(there, "LATER", 3)
        baselines.set_baseline(there, "LATER")
    assert merge_history(store, moved).left_out == ("3 baselines: these tests have a different one here",)
    assert {one.execution_id for one in baselines.baselines(store)} == {"TAKEN"}
    # What runs here is not touched by what another machine knows of it.
    make(store, "RUNS", 2, of=0, finish=False)
    copy_history(store.path, moved, force=True)
    assert merge_history(store, moved).left_out == ("execution RUNS: it is running here",)


def test_what_was_taken_back_does_not_come_again(store: Store, tmp_path: Path) -> None:
    make(store, "HERE", 3)
    number = store.label("HERE-RUN-00000", 1, criterion_hash="hash-b", who="ann").result()
    store.label("HERE-RUN-00001", passed=True, who="ann").result()
    for signature in (SIGNATURE, SIGNATURE.replace("one", "other")):
        triage.decide(store, triage.Decision(signature, "ignore"))
    quarantines.put(store, quarantines.Quarantine(SUITE, "test-1", 1 << 45)).result()
    baselines.set_baseline(store, "HERE")
    copied = tmp_path / "copied.db"
    copy_history(store.path, copied)
    # Here: a label and a decision are taken back. There: the other label, the other decision, and the quarantine.
    store.write(TakeBackLabel(number)).result()
    triage.reopen(store, SIGNATURE)
    tests = [(one.suite_key, one.test_id) for one in baselines.baselines(store)]
    assert baselines.clear_baselines(store, tests[:1]) == 1
    with Store.open(copied) as there:
        assert baselines.clear_baselines(there, tests[1:2]) == 1
        (other,) = there.labels(["HERE-RUN-00001"])
        there.write(TakeBackLabel(other.id)).result()
        triage.reopen(there, SIGNATURE.replace("one", "other"))
        quarantines.end(there, SUITE, "test-1").result()
    done = merge_history(store, copied)
    assert (done.labels, done.taken_back, done.relabelled) == (0, 3, ("HERE-RUN-00001",))
    assert store.labels() == []
    assert {(one.suite_key, one.test_id) for one in baselines.baselines(store)} == set(tests[2:])
    assert triage.decisions(store) == []
    assert len(quarantines.active(store)) == 0
    # Said again, it is there again, here and there.
    triage.decide(store, triage.Decision(SIGNATURE, "fix", at_ms=now_ms() + 1))
    store.label("HERE-RUN-00000", 2, who="ann").result()
    baselines.set_baseline(store, "HERE", tests=tests[:1], at_ms=now_ms() + 1)
    with Store.open(copied) as there:
        assert merge_history(there, store.path).labels == 1
        assert [one.decision for one in triage.decisions(there)] == ["fix"]
        assert baselines.baselines_of(there, tests).keys() == {tests[0], *tests[2:]}
        assert merge_history(there, store.path) == MergeResult(already=3)
        # What was said later counts, whichever came into the file first.
        there.label("HERE-RUN-00000", 5, who="kim").result()
        assert [one.rating for one in there.labels(["HERE-RUN-00000"])] == [2, 5]
        merge_history(store, copied)
    assert [one.rating for one in store.labels(["HERE-RUN-00000"])] == [2, 5]


def test_what_can_not_come_in_is_said(store: Store, tmp_path: Path) -> None:
    make(store, "HERE", 1)
    with pytest.raises(AgentevalError, match="the history itself"):
        merge_history(store, store.path)
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be taken for one" * 20)
    for path in (text, tmp_path / "gone.db"):
        with pytest.raises(AgentevalError, match=r"not a history file|no such history file"):
            merge_history(store, path)
    newer = tmp_path / "newer.db"
    copy_history(store.path, newer)
    with sqlite3.connect(newer) as direct:
        direct.execute("PRAGMA user_version = 999")
    direct.close()
    with pytest.raises(HistoryError, match="newer agenteval"):
        merge_history(store, newer)
    assert counted(store)["executions"] == 1


def test_an_older_file_is_brought_up_in_a_copy(path: Path, tmp_path: Path, next_version: Callable[[], None]) -> None:
    old = tmp_path / "old.db"
    connection = sqlite3.connect(old, isolation_level=None)
    schema.migrate(connection)
    connection.close()
    before = old.read_bytes()
    next_version()
    with Store.open(path) as store:
        assert merge_history(store, old).runs == 0
    assert old.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir() if one.name.startswith("old")) == ["old.db"]


def test_suites_that_moved_keep_their_past(store: Store) -> None:
    make(store, "BEFORE", 3)
    new = "/home/ann/project/support.suite.yaml"
    store.begin_execution(record("AFTER"), [planned(0, "AFTER", suite_key=new, test_id="test-0")])
    store.run_ended(ended(0, "AFTER"))
    store.end_execution("AFTER", "finished").result()
    baselines.set_baseline(store, "BEFORE")
    context = triage.Context(tests=((SUITE, "test-0"), ("/other.suite.yaml", "x")), examples=("BEFORE-RUN-00000",))
    triage.decide(store, triage.Decision(SIGNATURE, "quarantine", context=context))
    assert move_suites(store, "/suit", "/home").suites == 0, "a folder, not the beginning of its name"
    done = move_suites(store, "/suites/", "/home/ann/project")
    assert (done.suites, done.merged) == (1, 1)
    assert [row.id for row in store.runs_of_test(new, "test-0")] == ["AFTER-RUN-00000", "BEFORE-RUN-00000"]
    assert store.test_summaries(new)["test-0"].total == 2
    assert store.test_summaries(SUITE) == {}
    assert {one.suite_key for one in baselines.baselines(store)} == {new}
    ((decided,),) = (triage.decisions(store),)
    assert decided.context == replace(context, tests=((new, "test-0"), ("/other.suite.yaml", "x")))
    assert store.execution("BEFORE").suite_keys == (new,)
    assert_counts(store)


def test_what_takes_the_space_and_giving_it_back(store: Store) -> None:
    make(store, "BIG", 400)
    make(store, "SMALL", 5)
    store.flush()
    found = space(store.path)
    assert sum(number for _, number in found.parts) == found.total
    assert {"transcripts", "runs", "search index", "results and evidence"} <= {name for name, _ in found.parts}
    remove_runs(store, [row.rowid for row in store.runs_of_execution("BIG")])
    assert dict(space(store.path).parts)["unused"] > found.total / 3
    done = vacuum(store)
    assert done.after < done.before / 1.5
    assert "unused" not in dict(space(store.path).parts)
    assert store.execution("SMALL").ended == 5
    make(store, "RUNS", 1, of=0, finish=False)
    with pytest.raises(HistoryError, match="an execution is running"):
        vacuum(store)


def test_what_does_not_fit_is_found_and_put_right(store: Store, path: Path) -> None:
    make(store, "ONE", 4)
    with sqlite3.connect(path) as direct:
        direct.execute("UPDATE executions SET passed = 77")
        direct.execute("UPDATE tests SET ended = 9 WHERE id = 1")
        direct.execute("INSERT INTO evidence (run, data) VALUES (999, x'00')")
        direct.execute("INSERT INTO tool_calls VALUES (999, 0, 'x', '{}', 'ok', NULL)")
        direct.execute("UPDATE transcripts SET data = x'0011' WHERE id = 2")
        direct.execute("DELETE FROM transcripts WHERE id = 3")
        direct.execute("DELETE FROM tool_calls WHERE transcript = 3")
    direct.close()
    said = check(path)
    assert said.damage == ()
    assert len(said.wrong) == 5
    assert "1 rows of runs name a row of transcripts" in said.wrong[2]
    assert "totals of 1 executions" in said.wrong[0]
    told = check(path, deep=True).damage
    assert [one.partition(":")[0] for one in told] == ["transcripts 2", "evidence 999"]
    assert "these bytes are not a transcript" in told[0]
    repair(store)
    assert (check(path).wrong, check(path).lost) == ((), 1)
    assert store.execution("ONE").passed == 3
    # A run whose transcript is broken can be removed as well.
    assert remove_runs(store, store.run_ids()).runs == 4
    assert store.counts().runs == 0


def test_damage_is_found(path: Path, tmp_path: Path) -> None:
    with Store.open(path) as store:
        make(store, "ONE", 60)
    broken = tmp_path / "broken.db"
    shutil.copy(path, broken)
    data = bytearray(broken.read_bytes())
    with sqlite3.connect(path) as looked:
        root = looked.execute("SELECT rootpage FROM sqlite_master WHERE name = 'evidence'").fetchone()[0]
    looked.close()
    data[(root - 1) * 4096 : (root - 1) * 4096 + 400] = b"\xff" * 400
    broken.write_bytes(bytes(data))
    assert check(broken).damage
    assert Path(f"{broken}.check").exists(), "the next opening fixes it"
