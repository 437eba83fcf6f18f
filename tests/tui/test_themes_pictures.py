"""Suites and Inspect in every theme that ships: pictures that were looked at, out of one start of the app."""

from __future__ import annotations

import shutil
import sqlite3
import time
from pathlib import Path

import pytest
from pictures import SMALL, Pictures, pictures
from shop import app_on, run_samples, settle

from agenteval_tui.core import directories
from agenteval_tui.tui.themes import load_themes
from agenteval_tui.tui.widgets.virtual_list import VirtualList

__all__ = ["pictures"]  # a fixture

pytestmark = pytest.mark.xdist_group("snapshots")

NOON = 1_795_262_400_000  # 2026-11-21 12:00 UTC
SHOWN_FIRST = "dusk"  # its pictures are those of all other tests


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Path]:
    """The recorded suite, and a history in which it ran at noon, a second a run."""
    suites, db = tmp_path / "suites", tmp_path / "history.db"
    shutil.copytree(directories.bundled("sample_suites") / "recorded", suites)
    run_samples(suites, db)
    with sqlite3.connect(db) as connection:
        connection.execute(
            "UPDATE runs SET started_ms = ? + position * 1000, duration_ms = 1000 + position * 10", (NOON,)
        )
    return suites, db


async def test_suites_and_inspect_in_each_theme(
    pictures: Pictures, recorded: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr("agenteval_tui.tui.screens.suites.screen.now_ms", lambda: NOON + 120_000)
    themes, problems = load_themes((directories.bundled("themes"),))
    others = sorted(name for name in themes if name != SHOWN_FIRST)
    assert not problems
    assert len(others) >= 4
    app = app_on(*recorded)
    async with pictures.of(app) as pilot:
        tree = app.screen.query_one("#tree", VirtualList)
        tree.cursor = next(i for i in range(tree.count) if tree.source.key(i).endswith("\x1fcustomers-austria"))
        await pilot.press("f")
        for theme in others:
            app.theme = theme
            await pictures.take(f"suites[{theme}]", SMALL)
        await pilot.press("enter")
        await settle(pilot)
        for theme in others:
            app.theme = theme
            await pictures.take(f"inspect[{theme}]", (140, 45))
