"""Runs for the screens' tests: the sample suites run once with the bundled agent, without its pace."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from textual.app import App
from textual.events import Key
from textual.pilot import Pilot

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.core import directories
from agenteval_tui.history.store import Store
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.discover import discover
from agenteval_tui.suites.load import load_suite
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.base_screen import FrameScreen


def copy_samples(folder: Path) -> Path:
    """The sample suites, copied, so that they can be edited, and without pauses between the words."""
    target = folder / "suites"
    target.mkdir(parents=True)
    for path in directories.bundled("sample_suites").glob("*.suite.yaml"):
        shutil.copy(path, target / path.name)
        text = (target / path.name).read_text(encoding="utf-8")
        (target / path.name).write_text(text.replace("kind: demo,", "kind: demo, pace: 0,"), encoding="utf-8")
    return target


def run_samples(suites: Path, db: Path, *, tests: tuple[str, ...] = (), trust: bool = False) -> str:
    """Run them into a history; gives the execution's id."""

    async def work() -> str:
        store = Store.open(db)
        try:
            plan = make_plan(
                [load_suite(path) for path in discover([suites])],
                PlanOptions(tests=tests, title="samples", trust=trust),
                user_agents={},
                store=store,
            )
            await Engine(plan, store, lambda event: None).run()
            return plan.execution_id
        finally:
            store.close()

    return asyncio.run(work())


def copy_history(db: Path, folder: Path) -> Path:
    """A copy in this folder. Of the file alone it would lack what is still beside it, in the log of writes."""
    copy = folder / db.name
    with contextlib.closing(sqlite3.connect(db)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def copy_recorded(folder: Path) -> Path:
    """The recorded suite, copied."""
    return shutil.copytree(directories.bundled("sample_suites") / "recorded", folder / "suites")


def as_they_were(suites: Path, db: Path) -> Iterator[tuple[Path, Path]]:
    """These suites and this history, for the tests of a module; and for those of the next one what it has changed is as
    it was."""
    with contextlib.closing(sqlite3.connect(db)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = {path: path.read_bytes() for path in (*suites.rglob("*"), db) if path.is_file()}
    yield suites, db
    log = db.with_name(f"{db.name}-wal")
    if log.exists() and log.stat().st_size:
        for beside in (log, db.with_name(f"{db.name}-shm")):
            beside.unlink(missing_ok=True)
    for path in suites.rglob("*"):
        if path.is_file() and path not in before:
            path.unlink()
    for path, content in before.items():
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def app_on(suites: Path, db: Path, **options: str) -> AgentevalApp:
    """The app on these suites and this history."""
    return AgentevalApp(AppStart(paths=(suites,), db=db, **options))


ENDLESS = {"files", "watch", "running"}
"""Groups of workers that watch, and never end."""


def is_settled(app: App[Any]) -> bool:
    """Whether the app waits for no answer, and no key waits for the app."""
    if any(worker.is_running and worker.group not in ENDLESS for worker in app.workers):
        return False
    return not isinstance(app, AgentevalApp) or app.input_queue.is_empty


async def settle(pilot: Pilot[int]) -> None:
    """Wait until the screen has what it asked for."""
    app = pilot.app
    for _ in range(3_000):
        await pilot.pause()
        if is_settled(app):
            await pilot.pause(0)  # the widgets get what the last answer sent them, and may ask for more
            if is_settled(app):
                return
        await asyncio.sleep(0.01)
    keys = vars(app.input_queue) if isinstance(app, AgentevalApp) else {}
    running = [worker.group for worker in app.workers if worker.is_running]
    raise AssertionError(f"still waiting for {running}; keys: {keys}")


def press_at_once(pilot: Pilot[int], *keys: str) -> None:
    """Keys that arrive in one piece, as over a slow line: no key waits for what the one before it did."""
    for key in keys:
        pilot.app.post_message(Key(key, key if len(key) == 1 else None))


async def until(pilot: Pilot[int], condition: Callable[[], bool]) -> None:
    """Wait until the condition holds; fails after a generous while. The longer it takes, the less often it is looked
    at: a look is as much work as a key."""
    for number in range(500):
        if condition():
            return
        await pilot.pause(min(0.02 * (1 + number / 25), 0.2))
    raise AssertionError("never came true; the screen:\n" + text_of(pilot.app))  # type: ignore[arg-type]


def text_of(app: AgentevalApp) -> str:
    """What the screen shows, as text."""
    height = app.size.height
    compositor = app.screen._compositor
    return "\n".join("".join(segment.text for segment in strip) for strip in compositor.render_strips()[:height])


def screen_of(app: AgentevalApp) -> FrameScreen:
    """The current work screen."""
    assert isinstance(app.screen, FrameScreen)
    return app.screen
