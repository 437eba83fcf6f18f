"""What is lost is said by kind and number, what is left is sound, and decisions about lost runs are found."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from history_made import SUITE, ended, planned, record
from test_salvage import overwrite, pages_of

from agenteval_tui.history import baselines, quarantines, triage
from agenteval_tui.history.blobs import pack_transcript
from agenteval_tui.history.maintenance import check, check_health, repair
from agenteval_tui.history.salvage import describe_loss, salvage
from agenteval_tui.history.store import Store
from agenteval_tui.history.triage import Context, Decision
from agenteval_tui.transcripts.model import Transcript

RUNS = 240
SIGNATURE = '["failed","looks it up","","TextMatch","contains_all","","missing"]'


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A history with a label for each run, and a baseline, a quarantine and a decision about some."""
    path = tmp_path_factory.mktemp("whole") / "history.db"
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(n) for n in range(RUNS)])
        for n in range(RUNS):
            store.run_ended(ended(n, passed=n % 4 != 0))
        store.end_execution("EXECUTION-1", "finished").result()
        for n in range(RUNS):
            store.label(run_id(n), n % 5 + 1, comment=f"seen {n}", who="me").result()
        baselines.set_baseline_run(store, run_id(1))
        quarantines.put(store, quarantines.Quarantine(SUITE, "test-2", quarantines.default_until())).result()
        examples = tuple(run_id(n) for n in range(0, RUNS, 40))
        triage.decide(store, Decision(SIGNATURE, "ignore", context=Context(examples=examples)))
    return path.read_bytes()


def run_id(number: int) -> str:
    return f"EXECUTION-1-RUN-{number:05}"


def changed(path: Path, data: bytes, *statements: str) -> None:
    path.write_bytes(data)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def counted(path: Path, statement: str) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchone()[0]


LOOSE = {
    "labels": ("UPDATE labels SET run = run + 100000 WHERE id <= 29", "29 labels name runs not in the history"),
    "a label": ("UPDATE labels SET run = 5000 WHERE id = 3", "1 label names a run not in the history"),
    "a baseline": ("UPDATE baselines SET run = 5000", "1 baseline names a run not in the history"),
    "a baseline of an execution": (
        "UPDATE baselines SET run = NULL, execution = 77",
        "1 baseline names an execution not in the history",
    ),
    "a quarantine": ("UPDATE quarantines SET test = 99", "1 quarantine names a test not in the history"),
    "a decision": (
        f"UPDATE triage SET context = replace(context, '{run_id(40)}', 'GONE')",
        "1 triage decision names runs not in the history",
    ),
}


@pytest.mark.parametrize("loose", sorted(LOOSE))
def test_decisions_about_what_is_not_there_are_found(path: Path, whole: bytes, loose: str) -> None:
    statement, wanted = LOOSE[loose]
    changed(path, whole, statement)
    assert check(path).wrong == (wanted,)
    assert check_health(path).wrong == (wanted,)
    labels = counted(path, "SELECT count(*) FROM labels WHERE run <= 5000")
    with Store.open(path) as store:
        repair(store)
        assert len(triage.decisions(store)) == 1, "a decision stays, without the run that is gone"
    assert (check(path).wrong, check(path).damage) == ((), ())
    assert counted(path, "SELECT count(*) FROM labels") == labels - (loose == "a label")


@pytest.mark.sweep
@pytest.mark.parametrize("table", ["runs", "transcripts", "evidence", "labels", "criterion_results", "tool_calls"])
def test_all_that_is_lost_is_said(path: Path, whole: bytes, tmp_path: Path, table: str) -> None:
    pages = pages_of(whole, table, tmp_path)
    path.write_bytes(overwrite(whole, pages[len(pages) // 2 :][:2]))
    new = tmp_path / "new.db"
    saved = salvage(path, new)
    lost = {loss.table: loss.rows for loss in saved.lost}
    before = path.with_name("before.db")
    before.write_bytes(whole)
    gone = {
        name: counted(before, f"SELECT count(*) FROM {name}") - counted(new, f"SELECT count(*) FROM {name}")
        for name in ("runs", "transcripts", "evidence", "labels", "tool_calls", "criterion_results", "baselines")
    }
    if table == "runs":
        # With a run goes what it had.
        assert 0 < gone["runs"] == gone["evidence"] == gone["labels"]
        assert gone["criterion_results"] == 2 * gone["runs"]
    elif table in ("criterion_results", "tool_calls"):
        assert not any(gone.values()), "they stand in the evidence and in the transcripts too"
    else:
        assert gone[table] > 0
    assert lost == {name: number for name, number in gone.items() if number}
    found = check(new, deep=True)
    assert (found.damage, found.wrong) == ((), ())
    assert found.lost == (gone["transcripts"] if table == "transcripts" else 0)
    assert found.lost_evidence == (gone["evidence"] if table == "evidence" else 0)
    assert check_health(new).wrong == ()
    for loss in saved.lost:
        assert f"{loss.rows:,} " in describe_loss(loss)


def test_the_notice_of_a_rescue_says_what_is_lost(path: Path, whole: bytes, tmp_path: Path) -> None:
    pages = pages_of(whole, "runs", tmp_path)
    path.write_bytes(overwrite(whole, pages[len(pages) // 2 :][:1]))
    with Store.open(path) as store:
        lost = RUNS - store.counts().runs
        (notice,) = store.notices
    assert lost > 0
    assert f"lost: {lost} runs, {lost} runs' evidence, {lost} labels" in notice
    path.write_bytes(overwrite(whole, pages_of(whole, "labels_of_run", tmp_path)))
    with Store.open(path) as store:
        assert "nothing is lost" in store.notices[0]


def test_a_table_without_an_index_that_counts_says_so(path: Path, whole: bytes, tmp_path: Path) -> None:
    path.write_bytes(overwrite(whole, pages_of(whole, "quarantines", tmp_path)))
    saved = salvage(path, tmp_path / "new.db")
    (loss,) = saved.lost
    assert (loss.table, loss.rows, loss.unknown) == ("quarantines", 0, True)
    assert describe_loss(loss) == "an unknown number of quarantines"


@pytest.mark.parametrize("table", ["transcripts", "evidence"])
def test_changed_bytes_are_not_copied(path: Path, whole: bytes, tmp_path: Path, table: str) -> None:
    changed(path, whole, f"UPDATE {table} SET data = substr(data, 1, 20) || x'00' || substr(data, 22) WHERE rowid = 7")
    assert check(path, deep=True).damage
    saved = salvage(path, tmp_path / "new.db")
    assert [(loss.table, loss.rows) for loss in saved.lost if loss.table != "tool_calls"] == [(table, 1)]
    found = check(tmp_path / "new.db", deep=True)
    assert (found.damage, found.wrong, found.lost + found.lost_evidence) == ((), (), 1)


def test_a_transcript_with_another_letter_is_not_what_was_stored(path: Path, whole: bytes, tmp_path: Path) -> None:
    # Short transcripts are not compressed: nothing but the hash knows.
    path.write_bytes(whole)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        content_hash, data = pack_transcript(Transcript(final_output="It is on its way."))
        assert b"on its way" in data
        other = data.replace(b"on its way", b"in its way")
        connection.execute("UPDATE transcripts SET hash = ?, data = ? WHERE id = 7", (content_hash, other))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert check(path, deep=True).damage == ("transcripts 7: its bytes have changed since they were stored",)
    saved = salvage(path, tmp_path / "new.db")
    assert {loss.table: loss.rows for loss in saved.lost} == {"transcripts": 1, "tool_calls": 1}
