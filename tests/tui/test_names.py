"""Names of executions on the screens: shown in History, changed in a sheet; feedback in Inspect."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from failing import make
from pictures import Pictures, pictures
from shop import app_on, settle, text_of

from agenteval_tui.history.execution_names import DescribeExecution, KeepCommits
from agenteval_tui.history.feedback import AddFeedback, Feedback
from agenteval_tui.history.store import Store
from agenteval_tui.suites.commits import Commit

__all__ = ["pictures"]  # a fixture
NOON = 1_764_331_200_000


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTEVAL_SCOPE", "all")
    path = tmp_path / "made.db"
    with Store.open(path) as store:
        make(store, "E1", smoke=["", "text"], started_ms=NOON)
        make(store, "E2", smoke=["", ""], started_ms=NOON + 3_600_000)
        store.write(DescribeExecution("E1", "v2.1", "before the release", {"model": "mini"}))
        commit = Commit(of=("suites", "agents"), repository="/r", commit="1a2b3c4d5e" * 4, branch="main", dirty=True)
        store.write(KeepCommits("E1", [commit])).result()
        store.write(AddFeedback(Feedback("E1-000", "user_satisfaction", 0.8, "quick", "kim", NOON))).result()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE executions SET finished_ms = started_ms + 1500")
    return path


async def test_the_history_shows_names_and_the_sheet_changes_them(tmp_path: Path, db: Path, pictures: Pictures) -> None:
    app = app_on(tmp_path, db)
    async with pictures.of(app) as pilot:
        await pilot.press("5", "down")
        await settle(pilot)
        shown = text_of(app)
        for words in ("v2.1", "commit 1a2b3c4d5 (main, changed)", "model=mini", "before the release"):
            assert words in shown, words
        await pictures.take("test_the_history_shows_names_and_the_sheet_changes_them[{size}]")
        await pilot.press("e")
        await settle(pilot)
        await pictures.take("test_the_history_shows_names_and_the_sheet_changes_them[sheet-{size}]")
        clear = ("end", "ctrl+u")
        await pilot.press(
            *clear, "v", "2", "full_stop", "2", "tab", "tab", *clear, *"model", "equals_sign", "quotation_mark"
        )
        await pilot.press("enter")
        await settle(pilot)
        assert "the metadata can't be read" in text_of(app)
        await pilot.press(*clear, *"model", "equals_sign", *"large", "enter")
        await settle(pilot)
        assert "v2.2" in text_of(app)
    with Store.open(db) as store:
        row = store.execution("v2.2")
    assert (row.id, row.note, dict(row.meta)) == ("E1", "before the release", {"model": "large"})


async def test_feedback_is_in_inspect(tmp_path: Path, db: Path) -> None:
    app = app_on(tmp_path, db, screen="inspect", target="E1-000")
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        assert "user_satisfaction 0.80  kim" in text_of(app)
        assert "quick" in text_of(app)
