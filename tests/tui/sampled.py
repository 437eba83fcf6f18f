"""The sample suites and a history in which they ran once, for the tests of the work screens; and ways to a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from shop import as_they_were, copy_history, settle, until
from textual.pilot import Pilot

from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.virtual_list import VirtualList


@pytest.fixture(scope="module")
def samples(samples_ran: tuple[Path, Path]) -> Iterator[tuple[Path, Path]]:
    """(folder with the sample suites, history in which they ran once)."""
    yield from as_they_were(*samples_ran)


@pytest.fixture
def fresh(samples: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """The same suites, and a copy of the history that a test may change."""
    suites, db = samples
    mine = tmp_path / "history.db"
    copy_history(db, tmp_path)
    return suites, mine


async def go_to(pilot: Pilot[int], name: str) -> None:
    """Put the cursor of the Suites screen on a test."""
    view = pilot.app.screen.query_one("#tree", VirtualList)
    source = view.source
    for index in range(source.count()):
        if source.key(index).endswith("\x1f" + name):
            view.cursor = index
    await settle(pilot)


async def open_editor(pilot: Pilot[int], name: str = "kunden-deutschland") -> ConfigEditor:
    """Inspect on this test, in the editor; from the Suites screen."""
    await go_to(pilot, name)
    await pilot.press("e")
    await settle(pilot)
    editor = pilot.app.screen.query_one("#config", ConfigEditor)
    await until(pilot, lambda: editor.has_focus)
    return editor
