"""The History screen at size and in use: pages that come in, filters, marks, baselines, deleting, pruning, files."""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from shop import app_on, settle, text_of, until
from textual.widgets import Input

from agenteval_tui.history import baselines
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.tui.screens.baseline_dialogs import not_all_passed
from agenteval_tui.tui.screens.compare.screen import CompareScreen
from agenteval_tui.tui.screens.history.screen import HistoryScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.run.screen import RunScreen
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.views.execution import took_ms

SUITE = "/suites/orders.suite.yaml"
RUNS = 600  # several pages


def execution(store: Store, name: str, number: int, at: int, agent: str = "shop") -> None:
    """An execution of two tests; every third run failed."""
    record = ExecutionRecord(name, f"title of {name}", "run", "orders", (SUITE,), at)
    runs = []
    for one in range(number):
        planned = PlannedRun(
            *(f"{name}-{one:05}", name, one, SUITE, "Orders", f"test-{one % 2}", "Test"),
            agent=agent,
            repetition=one // 2 + 1,
            prompt="Where is it?",
            tags=("smoke",) if one % 2 else (),
        )
        answer = f"answer {one} of {name}"
        done = Transcript((Message("user", "Where is it?"), Message("assistant", answer)), final_output=answer)
        failed = one % 3 == 0
        why = "the word is missing" if failed else ""
        runs.append(
            (planned, RunEnded(planned.id, "failed" if failed else "passed", 1.0, at, 5.0, 1, done, (), 0, why))
        )
    store.import_runs(record, runs)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("history") / "history.db"
    with Store.open(path) as store:
        execution(store, "OLD", 4, 86_400_000)
        execution(store, "BIG", RUNS, 1_790_000_000_000, "robot")
        execution(store, "NEW", 6, 1_795_000_000_000)
    return path.read_bytes()


@pytest.fixture
def db(filled: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "history.db"
    path.write_bytes(filled)
    return path


@pytest.mark.sweep
@pytest.mark.parametrize("width", [80, 100, 140])
async def test_executions_of_several_agents_name_them(db: Path, tmp_path: Path, width: int) -> None:
    app = app_on(tmp_path, db)
    async with app.run_test(size=(width, 24)) as pilot:
        await pilot.press("5")
        await settle(pilot)
        shown = text_of(app)
        assert "robot" in shown
        assert "title of BIG" in shown


async def typed(pilot: Any, text: str) -> str:
    """What the screen shows for this search."""
    await pilot.press("slash")
    pilot.app.screen.query_one("#search", Input).value = text  # a key a letter would take seconds
    await settle(pilot)
    shown = text_of(pilot.app)
    await pilot.press("escape")
    await settle(pilot)
    return shown


async def test_lists_of_any_length_are_read_as_they_are_looked_at(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: set[str] = set()
    was = Store.read

    def noted(self: Store, query: Any) -> Any:
        readers.add(threading.current_thread().name)
        return was(self, query)

    monkeypatch.setattr(Store, "read", noted)
    app = app_on(tmp_path, db)
    async with app.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        assert isinstance(app.screen, HistoryScreen)
        assert "3 executions" in text_of(app)
        # The heading stands over its figures at every height, also after the terminal's size changed.
        for height in (4, 30):
            await pilot.resize_terminal(120, height)
            await settle(pilot)
            lines = [line.rstrip() for line in text_of(app).splitlines()]
            at = next(number for number, line in enumerate(lines) if " rate" in line)
            heading, row = lines[at : at + 2]
            assert heading.index(" rate") + len(" rate") == row.index("%") + 1
        # Another list begins at its beginning; what another screen led to is left to that screen.
        await pilot.press("j", "j", "enter")
        await settle(pilot)
        assert ("of OLD" in text_of(app), app.screen.query_one("#list", VirtualList).cursor) == (True, 0)
        await pilot.press("1")
        await settle(pilot)
        app.show_execution("NEW")
        await settle(pilot)
        assert "6 runs" in text_of(app), "and not what was open here before"
        assert "duration" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert not isinstance(app.screen, HistoryScreen)
        await pilot.press("5")
        await settle(pilot)
        assert "3 executions" in text_of(app)
        await pilot.press("tab")
        await settle(pilot)
        assert f"{RUNS + 10} runs" in text_of(app)
        await pilot.press("G")
        assert "answer" in text_of(app) or "…" in text_of(app)
        await until(pilot, lambda: "answer 2 of OLD" in text_of(app))
        view = app.screen.query_one("#list", VirtualList)
        for _ in range(8):
            await pilot.press("pageup")
        await until(pilot, lambda: "of BIG" in text_of(app) and "  …" not in text_of(app))
        at = view.cursor_key
        await pilot.press("enter")
        await settle(pilot)
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await pilot.press("5")
        await settle(pilot)
        assert view.cursor_key == at
        await pilot.press("escape")
        await settle(pilot)
        assert "of NEW" in await typed(pilot, "agent:shop")
        assert "1 execution" in await typed(pilot, "before:1971-01-01")
        assert "Nothing fits" in await typed(pilot, "test:nowhere")
        assert "no outcome is called" in await typed(pilot, "outcome:nice")
        shown = await typed(pilot, "answer 7 agent:rob")
        assert "answer 7 of BIG" in shown
        assert "of NEW" not in shown
        await pilot.press("tab")
        await settle(pilot)
        assert "5 runs" in await typed(pilot, "tag:smoke agent:shop")
        assert "4 runs" in await typed(pilot, "outcome:fail agent:shop")
    # The screen asks in threads: what paints and takes keys never waits for the disk.
    assert readers
    assert threading.main_thread().name not in readers


async def test_what_is_marked_is_compared_kept_deleted_and_written(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = app_on(tmp_path, db)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        await pilot.press("space", "space")
        assert "2 marked" in text_of(app)
        await pilot.press("c")
        await settle(pilot)
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        await pilot.press("5")
        await settle(pilot)
        await pilot.press("U", "g", "b")
        await settle(pilot)
        assert "becomes the baseline of its 2 tests" in " ".join(text_of(app).split())
        await pilot.press("y")
        await settle(pilot)
        await until(pilot, lambda: "⌂" in text_of(app))
        assert [one.execution_id for one in baselines.baselines(app.session.store)] == ["NEW", "NEW"]
        await pilot.press("x")
        await settle(pilot)
        assert "Delete 1 execution with 6 runs?" in text_of(app)
        assert "are a baseline, which is cleared too: 6" in text_of(app)
        await pilot.press("escape", "B")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        await until(pilot, lambda: not baselines.baselines(app.session.store))
        row = replace(app.session.store.execution("NEW"), started_ms=1, finished_ms=5_001)
        assert [took_ms(replace(row, kind=kind)) for kind in ("run", "import")] == [5000, None]
        # Two runs, step by step.
        await pilot.press("enter")
        await settle(pilot)
        await pilot.press("space", "j", "space", "c")
        await settle(pilot)
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await pilot.press("5")
        await settle(pilot)
        # One run: its execution's changes, at its test.
        await pilot.press("U", "g", "j", "c")
        await settle(pilot)
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        rows = app.screen.query_one("#changes", VirtualList)
        await until(pilot, lambda: "\x1ftest-1\x1f" in (rows.cursor_key or ""))
        await pilot.press("5")
        await settle(pilot)
        await pilot.press("g", "space", "j", "space", "x")
        await settle(pilot)
        assert "Delete 2 runs?" in text_of(app)
        await pilot.press("y")
        await settle(pilot)
        await until(pilot, lambda: "4 runs" in text_of(app))
        await pilot.press("escape")
        await settle(pilot)
        # Written to a file.
        await pilot.press("X")
        await settle(pilot)
        await pilot.press("tab", "enter")
        await settle(pilot)
        (written,) = tmp_path.glob("runs-*.jsonl")
        assert len(written.read_text("utf-8").splitlines()) == 4
        # And one brought in.
        (tmp_path / "talk.json").write_text(
            json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]), "utf-8"
        )
        await pilot.press("i")
        await settle(pilot)
        await pilot.press("t", "a", "tab")
        await until(pilot, lambda: "openai" in text_of(app))
        assert app.screen.query_one("#field-path", Input).value == "talk.json"
        await pilot.press("enter")
        await until(pilot, lambda: "enter open the runs" in text_of(app))
        assert "1 run read, 1 added" in text_of(app)
        # Then its runs are a key away, and the list behind them is at it.
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, HistoryScreen) and "conversation-1" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "4 executions" in text_of(app))
        view = app.screen.query_one("#list", VirtualList)
        assert (view.cursor, "talk.json (openai)" in text_of(app)) == (0, True)
        # What is old goes.
        app.screen.action_prune()
        await until(pilot, lambda: "would be removed" in text_of(app))
        app.screen.query_one("#field-age", Input).value = "50y"
        app.screen.query_one("#field-keep", Input).value = "1"
        await until(pilot, lambda: "4 of 609 runs and 1 of 4 executions would be removed" in text_of(app))
        await settle(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "remove them for good" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, HistoryScreen))
    with sqlite3.connect(db) as direct:
        assert direct.execute("SELECT count(*) FROM runs").fetchone()[0] == 605
        assert direct.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    direct.close()


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_what_was_searched_for_is_searched_in_the_run_that_is_opened(db: Path, size: tuple[int, int]) -> None:
    app = app_on(db.parent, db)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        await pilot.press("slash")
        app.screen.query_one("#search", Input).value = "test:test-0 answer"
        await settle(pilot)
        await pilot.press("enter", "enter")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        assert screen.transcript.term == "answer"
        assert screen.query_one("#find", Input).value == "answer"
        assert "1 of 1" in text_of(app), "the first hit is in view"
        await pilot.press("escape")
        await settle(pilot)
        assert screen.transcript.term == ""


def test_an_execution_with_failures_is_no_baseline_without_a_word(db: Path) -> None:
    with Store.open(db) as store:
        row = store.execution("NEW")
    assert not_all_passed(row) == ("2 of 6 runs did not pass. Later executions would be compared with these results.")
    # What nobody has judged yet, or was never run, is no success either: as for `run --set-baseline`.
    assert not_all_passed(replace(row, failed=0, needs_review=2)).startswith("2 of 6 runs did not pass.")
    assert not_all_passed(replace(row, failed=0, cancelled=1)).startswith("2 of 6 runs did not pass.")
    assert not_all_passed(replace(row, failed=0, passed=4, skipped=2)) == ""
    assert not_all_passed(replace(row, failed=0, passed=6)) == ""


async def test_keys_that_have_nothing_to_act_on_say_so(tmp_path: Path) -> None:
    app = app_on(tmp_path, tmp_path / "empty.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.go("history")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, HistoryScreen)
        for action in (screen.action_delete, screen.action_export, screen.action_causes):
            action()
        assert [(one.text, one.times) for one in app.notices.all()] == [("There is nothing to choose yet.", 3)]
        app.go("run")
        await settle(pilot)
        assert isinstance(app.screen, RunScreen)
        app.screen.action_compare()
        app.screen.action_causes()
        app.screen.action_inspect()
        said = [(one.text, one.times) for one in app.notices.all()][:2]
        assert said == [("There is no run to open yet.", 1), ("You are not watching an execution.", 2)]
