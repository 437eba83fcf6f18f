"""What programs asked of models, as the history keeps it beside their runs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from history_made import ended, planned, record
from msgspec.structs import replace

from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.store import Store

RUN = "EXECUTION-1-RUN-00000"
TAPE = [{"request": {"path": "p", "json": {"text": "ä" * 900}}, "answer": {"status": 200}}]


def fill(store: Store) -> None:
    store.begin_execution(record(), [planned(0), planned(1)])
    store.run_ended(replace(ended(0), tape=TAPE))
    store.run_ended(ended(1)).result()
    store.end_execution("EXECUTION-1", "finished").result()


def test_a_tape_stays_with_its_run_also_when_that_is_graded_again_or_taken_over(store: Store, tmp_path: Path) -> None:
    fill(store)
    assert (store.tape(RUN), store.tape("EXECUTION-1-RUN-00001"), store.tape("none")) == (TAPE, [], [])
    store.run_ended(ended(0, passed=False)).result()
    assert store.tape(RUN) == TAPE
    store.run_ended(replace(ended(0), tape=[{"other": 1}])).result()
    assert store.tape(RUN) == [{"other": 1}]
    with Store.open(tmp_path / "other.db") as other:
        merge_history(other, store.path)
        assert other.tape(RUN) == [{"other": 1}]
        assert merge_history(other, store.path).runs == 0
        other.delete_execution("EXECUTION-1").result()
        assert other.read(lambda c: c.execute("SELECT count(*) FROM tapes").fetchone()[0]) == 0


def test_a_tape_that_is_damaged_is_none(store: Store) -> None:
    fill(store)
    with closing(sqlite3.connect(store.path)) as raw, raw:
        raw.execute("UPDATE tapes SET data = x'00'")
    assert store.tape(RUN) == []
