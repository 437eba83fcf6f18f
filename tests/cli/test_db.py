"""`agenteval db`: what it prints, asks and refuses; that it does what it says is tested in tests/history."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.cli.main import main

DAY = 86_400_000
SUITE = """\
name: Orders
agent: shop
agents:
  shop: {kind: demo, version: v1, pace: 0}
tests:
  - id: good
    prompt: "Where is my order #W1042?"
    criteria:
      - {name: a, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: W1042}]}}
  - id: bad
    prompt: "Where is my order #W1042?"
    criteria:
      - {name: b, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: whale}]}}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A suite, and a history of it with two executions, one of them of long ago."""
    folder = tmp_path_factory.mktemp("made")
    suite, path = folder / "orders" / "orders.suite.yaml", folder / "history.db"
    suite.parent.mkdir()
    suite.write_text(SUITE, "utf-8")
    for _ in range(2):
        assert main(["--db", str(path), "run", str(suite)], launch_app=lambda start: 0) == 1
    with sqlite3.connect(path) as direct:
        direct.execute("UPDATE executions SET started_ms = 1 WHERE id = 1")
        direct.execute("UPDATE runs SET started_ms = 1 WHERE execution = 1")
    direct.close()
    return suite, path.read_bytes()


@pytest.fixture
def db(made: tuple[Path, bytes], tmp_path: Path) -> Path:
    path = tmp_path / "mine" / "history.db"
    path.parent.mkdir()
    path.write_bytes(made[1])
    return path


def test_what_it_is_and_whether_it_is_whole(cli: Any, db: Path) -> None:
    Path(f"{db}.version-3-20260101-120000").write_bytes(b"old")
    said = cli("--db", db, "db")
    assert said.code == 0
    assert "whole" in said.out
    assert "2 executions, 4 runs of 2 tests; 0 labels" in said.out
    assert "kept beside it" in said.out
    data = cli("--db", db, "db", "--json").json("db")
    assert (data["counts"]["runs"], data["problems"], data["network"]) == (4, [], False)
    assert sum(one["bytes"] for one in data["space"]) <= data["size"] + data["log_size"]
    assert cli("--db", db, "db", "check", "--deep", "--json").json("db-check")["wrong"] == []
    with sqlite3.connect(db) as direct:
        direct.execute("UPDATE executions SET passed = 7")
    direct.close()
    wrong = cli("--db", db, "db", "check")
    assert (wrong.code, "db check --fix" in wrong.out) == (3, True)
    fixed = cli("--db", db, "db", "check", "--fix")
    assert (fixed.code, "repaired" in fixed.out) == (0, True)
    assert "the history is whole" in fixed.out
    assert cli("--db", db.with_name("gone.db"), "db").code == 2


def test_pruning_says_first_and_asks(cli: Any, db: Path) -> None:
    looked = cli("--db", db, "db", "prune", "--older-than", "90d", "--dry-run")
    assert looked.code == 0
    assert looked.out.startswith("2 of 4 runs and 1 of 2 executions would be removed, about ")
    refused = cli("--db", db, "db", "prune", "--older-than", "90d")
    assert (refused.code, "--yes, or --dry-run" in refused.err) == (2, True)
    # The terminal is not what prevents it with --json.
    as_json = cli("--db", db, "db", "prune", "--older-than", "90d", "--json")
    assert (as_json.code, "--json asks nothing (--yes, or --dry-run" in as_json.err) == (2, True)
    assert cli("--db", db, "db", "prune").code == 2
    newest = cli("--db", db, "history", "--runs", "--json").json("history-runs")
    old = next(one["run"] for one in newest if one["started"] < "1971")
    assert cli("--db", db, "label", old, "4").code == 0
    done = cli("--db", db, "db", "prune", "--older-than", "90d", "--yes", "--json").json("db-prune")
    assert (done["runs"], done["kept"], done["removed"]["runs"]) == (1, {"labelled": 1}, 1)
    again = cli("--db", db, "db", "prune", "--older-than", "90d", "--yes")
    assert again.out.startswith("0 of 3 runs and 0 of 2 executions would be removed (all projects)\n")
    assert "stays: 1 run, labelled" in again.out
    assert cli("--db", db, "db", "vacuum").code == 0


def test_to_another_machine_and_back(cli: Any, db: Path, made: tuple[Path, bytes], tmp_path: Path) -> None:
    suite = made[0]
    copy = tmp_path / "copy.db"
    assert cli("--db", db, "db", "export", copy).code == 0
    assert cli("--db", db, "db", "export", copy).code == 2
    mine = tmp_path / "new.db"
    (done,) = cli("--db", mine, "db", "import", copy, "--json").json("db-import")
    assert (done["executions"], done["runs"]) == (2, 4)
    assert "4 runs already known" in cli("--db", mine, "db", "import", copy).out
    # The project is somewhere else there.
    there = tmp_path / "project"
    there.mkdir()
    shutil.copy(suite, there)
    assert cli("--db", mine, "run", there).code == 1
    moved = cli("--db", mine, "db", "move", suite.parent, there)
    assert "1 suite moved" in moved.out
    assert "2 tests had runs under both paths" in moved.out
    assert cli("--db", mine, "db", "move", "/nowhere", there).code == 2
    assert cli("--db", mine, "db", "check").code == 0


def test_saving_what_can_be_read(cli: Any, db: Path) -> None:
    whole = db.with_name("whole.db")
    cli("--db", db, "db", "export", whole)  # all of it in the one file
    db = db.with_name("damaged.db")
    db.write_bytes(whole.read_bytes()[:4096] + b"\xff" * 4096 + whole.read_bytes()[8192:])  # where suites are
    kept = db.read_bytes()
    assert cli("--db", db, "db", "check").code == 3
    saved = cli("db", "salvage", db)
    assert saved.code == 0
    assert db.read_bytes() == kept
    new = Path(f"{db}.salvaged.db")
    assert "1 execution, " in saved.out or "2 executions, " in saved.out
    assert cli("--db", new, "db", "check").code == 0
    assert cli("--db", db.with_name("mine.db"), "db", "import", new).code == 0
    assert cli("db", "salvage", db).code == 2, "nothing is written over"
    nothing = db.with_name("nothing.db")
    nothing.touch()
    assert "the file is empty" in cli("--db", nothing, "db", "check").err
    assert cli("db", "salvage", nothing).code == 3
    assert not Path(f"{nothing}.salvaged.db").exists()
    assert cli("db", "salvage", db.with_name("gone.db")).code == 2


def test_what_is_lost_is_listed_and_the_rest_is_sound(cli: Any, db: Path) -> None:
    with sqlite3.connect(db) as direct:
        direct.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        direct.execute("UPDATE evidence SET data = x'0011' WHERE run = 1")
        direct.execute("INSERT INTO labels (run, rating, at_ms) VALUES (77, 5, 1)")
    direct.close()
    for verb in (("db",), ("db", "check")):
        said = cli("--db", db, *verb)
        assert (said.code, "1 label names a run not in the history" in said.out) == (3, True)
        assert "whole" not in said.out
    assert cli("--db", db, "db", "--json").json("db")["wrong"] == ["1 label names a run not in the history"]
    new = db.with_name("new.db")
    saved = cli("db", "salvage", db, "--to", new)
    assert "lost 1 run's evidence" in saved.out
    assert "lost 1 label" in saved.out
    checked = cli("--db", new, "db", "check", "--deep")
    assert checked.code == 0
    assert "the evidence of 1 run is lost" in checked.out
    assert "sound, except for what is lost" in checked.out
    assert cli("--db", new, "db", "check", "--json").json("db-check")["lost_evidence"] == 1


def test_other_tables_are_said_and_salvaged(cli: Any, db: Path) -> None:
    with sqlite3.connect(db) as direct:
        direct.execute("ALTER TABLE labels DROP COLUMN passed")
        direct.execute("DROP INDEX plans_by_tags")
    direct.close()
    said = cli("--db", db, "db", "check")
    assert said.code == 3
    assert "table labels has another definition" in said.out
    assert "index plans_by_tags is missing" in said.out
    assert "agenteval db salvage" in said.out
    shown = cli("--db", db, "db")
    assert (shown.code, "whole" in shown.out) == (3, False)
    for verb in (("db", "check", "--fix"), ("history",)):
        refused = cli("--db", db, *verb)
        assert (refused.code, "agenteval db salvage" in refused.err + refused.out) == (3, True)
        assert "Traceback" not in refused.err
    new = db.with_name("new.db")
    assert cli("db", "salvage", db, "--to", new).code == 0
    assert cli("--db", new, "db", "check").code == 0


def test_doctor_says_once_what_to_do(tmp_path: Path, cli: Any) -> None:
    path = tmp_path / "h.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY)")
    said = cli("doctor", "--db", path).out
    where = said.index("✗ history")
    assert said[where:].count("--db") == 1, said


@pytest.mark.parametrize("folder", [".", "", "..", "/"])
def test_a_folder_is_not_salvaged(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.chdir(tmp_path)
    refused = cli("db", "salvage", folder)
    assert (refused.code, "this is not a history file" in refused.err) == (2, True)
    assert list(tmp_path.rglob("*.salvaged.db")) == []
