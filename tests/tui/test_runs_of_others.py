"""What another process writes into the history is shown by the list that is open, whatever way it came."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from compared import BEFORE, NEW, OLD, keep, two_executions, write_suite
from shop import app_on, settle, text_of, until

from agenteval_tui.history.store import Store
from agenteval_tui.tui.live_executions import LiveExecutions
from agenteval_tui.tui.screens.select_dialog import SelectScreen

pytestmark = pytest.mark.xdist_group("screens")

SUITE = """\
name: Elsewhere
agent: shop
agents:
  shop: {kind: demo, version: v1, pace: 0}
tests:
  - id: elsewhere
    prompt: "Where is my order #W1042?"
    criteria:
      - {name: order, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: W1042}]}}
"""


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Path]:
    suite = write_suite(tmp_path / "suites")
    with Store.open(tmp_path / "history.db") as store:
        two_executions(store, str(suite))
    return suite.parent, tmp_path / "history.db"


async def run_elsewhere(installed: Path, folder: Path, db: Path, *words: str) -> None:
    """Another process, whose running executions the app can't see: only what it writes into the history."""
    (folder / "elsewhere.suite.yaml").write_text(SUITE)
    done = await asyncio.to_thread(
        subprocess.run,
        [installed / "agenteval", *(words or ("run", "elsewhere.suite.yaml")), "--db", str(db)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "AGENTEVAL_RUNTIME_DIR": str(db.parent / "other")},
    )
    assert done.returncode in (0, 1), done.stderr


async def test_the_history_lists_what_another_process_runs_and_what_one_imports(
    recorded: tuple[Path, Path], installed: Path
) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await until(pilot, lambda: "2 executions" in text_of(app))
        await run_elsewhere(installed, *recorded)
        await until(pilot, lambda: "3 executions" in text_of(app) and "Elsewhere" in text_of(app))
        with Store.open(recorded[1].with_name("other.db")) as store:
            keep(store, "01KB2000000000000000NEWEST", BEFORE[2:3], suite="/s", title="brought in")
        await run_elsewhere(installed, recorded[0], recorded[1], "db", "import", str(recorded[1].with_name("other.db")))
        await until(pilot, lambda: "4 executions" in text_of(app))


@pytest.mark.parametrize("sheet", [False, True])
async def test_compare_offers_it(recorded: tuple[Path, Path], installed: Path, sheet: bool) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("6")
        await settle(pilot)
        if not sheet:
            await run_elsewhere(installed, *recorded)
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, SelectScreen))
        if sheet:
            assert "Elsewhere" not in text_of(app)
            await run_elsewhere(installed, *recorded)
        await until(pilot, lambda: "Elsewhere" in text_of(app))


async def test_a_list_below_a_sheet_is_told_when_the_sheet_is_gone(recorded: tuple[Path, Path]) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await until(pilot, lambda: "2 executions" in text_of(app))
        app.push_screen(SelectScreen("Which?", [("a", "one", "")]))
        await settle(pilot)
        with Store.open(recorded[1]) as store:
            keep(store, "01KB2000000000000000NEWEST", BEFORE[2:3], suite="/s", title="meanwhile")
        app._look_at_history()
        await settle(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "3 executions" in text_of(app))


def test_only_runs_count(recorded: tuple[Path, Path]) -> None:
    session = app_on(*recorded).session
    live = LiveExecutions(session, None, None)  # type: ignore[arg-type]
    assert not live.runs_have_changed()
    assert not live.runs_have_changed()
    with Store.open(recorded[1]) as store:
        run = store.runs_of_execution(store.execution(OLD).id)[0].id
        store.label(run, 1).result()
        assert not live.runs_have_changed()
        keep(store, "01KB2000000000000000NEWEST", BEFORE[2:3], suite="/s")
        assert live.runs_have_changed()
        assert not live.runs_have_changed()
        store.resume_execution(NEW).result()
        assert live.runs_have_changed()
    session.store.close()
