"""A history file that somebody else made: nothing in it acts, and what can't be there does not come in."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from history_made import ended, planned, record

from agenteval_tui.history import import_validation, schema
from agenteval_tui.history.backup import copy_history
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.merge import MERGED, merge_history
from agenteval_tui.history.store import Store


@pytest.fixture
def crafted(tmp_path: Path) -> Callable[..., Path]:
    """A history of one execution, with these statements done to it."""
    whole = tmp_path / "whole.db"
    with Store.open(whole) as made:
        made.begin_execution(record("THERE", setup={"setup": 1}), [planned(n, "THERE", task={"of": n}) for n in (0, 1)])
        for number in (0, 1):
            made.run_ended(ended(number, "THERE", answer=f"answer {number}"))
        made.end_execution("THERE", "finished").result()

    def craft(*statements: str | tuple[str, tuple[object, ...]], name: str = "crafted.db") -> Path:
        path = tmp_path / name
        copy_history(whole, path, force=True)
        with sqlite3.connect(path, isolation_level=None) as direct:
            direct.execute("PRAGMA writable_schema = ON")
            for one in statements:
                direct.execute(*((one, ()) if isinstance(one, str) else one))
        direct.close()
        return path

    return craft


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        # The name of a column would be part of a statement here.
        (["ALTER TABLE suites ADD COLUMN \"key) SELECT 'x', 'y' --\" TEXT"], "table suites has other columns"),
        (["ALTER TABLE runs RENAME TO r", "CREATE VIEW runs AS SELECT * FROM r"], "has a view, 'runs'"),
        (
            ["CREATE VIEW more AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n"],
            "has a view",
        ),
        (
            ["CREATE TRIGGER acts AFTER UPDATE ON executions BEGIN DELETE FROM runs; END"],
            "has a trigger, 'acts'",
        ),
        (["DROP TABLE labels"], "has no table labels"),
        (['CREATE TABLE "runs WHERE 0 UNION SELECT 1 FROM runs --" (a)'], "it has a table 'runs WHERE 0"),
        (["DROP TABLE search", "CREATE VIRTUAL TABLE search USING fts5 (prompt, answer, tools)"], "table .?search"),
        (["DROP TABLE tasks", "CREATE TABLE tasks (id INTEGER PRIMARY KEY, hash BLOB NOT NULL, data AS (1))"],
         "tasks"),
        (["UPDATE executions SET started_ms = 'soon'"], r"executions\.started_ms"),
        (["UPDATE executions SET started_ms = 9e18"], r"executions\.started_ms"),
        (["UPDATE executions SET uid = '../../x'"], r"executions\.uid"),
        (["UPDATE executions SET uid = '\"; rm -rf ~; \"'"], r"executions\.uid"),
        (["UPDATE runs SET uid = CAST(uid AS BLOB)"], r"runs\.uid"),
        (["UPDATE runs SET status = '<script>'"], r"runs\.status"),
        (["UPDATE runs SET duration_ms = 9e999"], r"runs\.duration_ms"),
        (["UPDATE runs SET why = x'ff'"], r"runs\.why"),
        (["UPDATE executions SET options = '[]'"], r"executions\.options"),
        (["UPDATE executions SET suite_keys = '[1]'"], r"executions\.suite_keys"),
        (["UPDATE plans SET tags = 'no JSON'"], r"plans\.tags"),
        (["UPDATE plans SET variables = '" + '{"a":' * 5000 + "1" + "}" * 5000 + "'"], r"plans\.variables"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_of_ours_is_refused_before_anything_comes(
    store: Store, crafted: Callable[..., Path], statements: list[str], said: str
) -> None:
    path = crafted(*statements)
    with pytest.raises(HistoryError, match=said) as refused:
        merge_history(store, path)
    assert str(path) in str(refused.value)
    assert store.read(lambda c: c.execute("SELECT count(*) FROM suites").fetchone()[0]) == 0


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff",
        zlib.compress(b"[" + b" " * 3_000_000),
        zlib.compress(zlib.compress(b"[" + b" " * 3_000_000)),
        b"[" * 100_000,
        b'[1,[[7,8]],[],[null,null,[]],[null,null,null,null,null],"","","",null]',
        b'[1,[["user","x"]],[["c",5,{},"r","ok",null,null,1,false]],[null,null,[]],[null,null,null,null,null],"","","",null]',
        b'[1,[["user","x","",[9],null,null,null]],[],[null,null,[]],[null,null,null,null,null],"","","",null]',
        b'[1,[["user","x"]],[],[null,Infinity,[]],[null,null,null,null,null],"","","",null]',
    ],
    ids=["bytes", "large", "twice", "deep", "numbers", "name", "nowhere", "infinite"],
)
def test_a_transcript_that_is_none_costs_itself(
    store: Store, crafted: Callable[..., Path], data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_validation, "LARGEST_VALUE", 1_000_000)
    path = crafted(
        ("UPDATE transcripts SET data = ? WHERE id = 1", (data,)),
        ("UPDATE evidence SET data = ? WHERE run = 1", (data,)),
    )
    done = merge_history(store, path)
    assert (done.runs, len(done.left_out)) == (2, 1)
    assert store.results("THERE-RUN-00000") == ()
    with pytest.raises(HistoryError, match="can't be read"):
        store.transcript("THERE-RUN-00000")
    assert store.transcript("THERE-RUN-00001").final_output == "answer 1"


def test_no_content_is_taken_for_another_one(store: Store, crafted: Callable[..., Path]) -> None:
    """What lies under a hash is what it is the hash of: else a run here would be shown with their answer."""
    with Store.open(crafted(name="look.db")) as look:
        hashes = look.read(lambda c: [row[0] for row in c.execute("SELECT hash FROM transcripts ORDER BY id")])
    path = crafted(
        "UPDATE transcripts SET hash = x'00' WHERE id = 1",
        ("UPDATE transcripts SET hash = ? WHERE id = 2", (hashes[0],)),
        "UPDATE plans SET prompt = 'theirs'",
    )
    merge_history(store, path)
    store.begin_execution(record("HERE"), [planned(0, "HERE")])
    store.run_ended(ended(0, "HERE", answer="answer 0")).result()
    store.end_execution("HERE", "finished").result()
    assert store.transcript("HERE-RUN-00000").final_output == "answer 0"
    assert store.run("HERE-RUN-00000").prompt_head == "Where is my order?"


def test_where_it_was_run_nothing_is_sent(store: Store, crafted: Callable[..., Path]) -> None:
    options = json.dumps({"executor": "dask", "scheduler": "tcp://elsewhere:8786", "max_cost": 2.0})
    merge_history(store, crafted(("UPDATE executions SET options = ?", (options,))))
    assert store.execution("THERE").options == {"max_cost": 2.0, MERGED: True}


def test_a_whole_file_of_any_version_comes_in(
    store: Store, tmp_path: Path, crafted: Callable[..., Path], next_version: Callable[[], None]
) -> None:
    there = crafted()
    store.close()
    next_version()
    for version in range(1, schema.newest() + 1):
        old = tmp_path / f"v{version}.db"
        connection = sqlite3.connect(old, isolation_level=None)
        schema.migrate(connection, upto=version)
        connection.close()
        with Store.open(store.path) as again:
            merge_history(again, old)
    with Store.open(store.path) as again:
        assert merge_history(again, there).runs == 2
