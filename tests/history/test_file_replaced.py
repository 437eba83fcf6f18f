"""The history file is moved, deleted or replaced while it is open: that is said, and nothing is lost in silence."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from shop import copy_samples

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.open_database import MovedError
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.discover import discover
from agenteval_tui.suites.load import load_suite
from agenteval_tui.tui.analysis_context import Session


def other(path: Path) -> None:
    Store.open(path.with_name("other.db")).close()
    path.with_name("other.db").replace(path)


WAYS: dict[str, Callable[[Path], object]] = {
    "moved": lambda path: path.rename(path.with_name("moved.db")),
    "deleted": Path.unlink,
    "replaced": other,
    "copied over": lambda path: shutil.copy(path, path.with_name("c.db")).replace(path),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_written_once_it_is_another_file(way: str, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = Store.open(path)
    try:
        assert store.in_place
        WAYS[way](path)
        assert not store.in_place
        with pytest.raises(MovedError) as wrong:
            store.write(_Nothing()).result(30)
        assert wrong.value.exit_code == 3
        assert str(path) in str(wrong.value)
    finally:
        store.close()


class _Nothing(Operation):
    def apply(self, connection: object, totals: object) -> None:
        raise AssertionError("it was written")


@pytest.mark.parametrize("way", WAYS)
def test_an_execution_under_which_it_goes_ends_with_that_error(way: str, tmp_path: Path) -> None:
    suites = discover([copy_samples(tmp_path)])
    path = tmp_path / "history.db"
    store = Store.open(path)
    said: list[object] = []

    async def work() -> None:
        options = PlanOptions(tests=("order-status",), title="x")
        plan = make_plan([load_suite(one) for one in suites], options, user_agents={}, store=store)

        def heard(event: object) -> None:
            if not said:
                WAYS[way](path)
            said.append(event)

        await Engine(plan, store, heard).run()

    try:
        try:
            asyncio.run(work())
            told = " ".join(map(str, said))
        except AgentevalError as error:
            told = str(error)
    finally:
        store.close()
    assert "while it was open" in told


@pytest.mark.parametrize("way", [way for way in WAYS if way != "a folder"])
def test_a_session_opens_what_is_there_now_and_says_so(way: str, tmp_path: Path) -> None:
    session = Session((tmp_path,), tmp_path / "history.db")
    before = session.store
    assert session.moved() == ""
    WAYS[way](tmp_path / "history.db")
    said = session.moved()
    assert "replaced" in said if way in ("replaced", "copied over") else "moved or deleted" in said
    assert session.store is not before
    assert session.store.in_place
    assert session.store.executions() == []
    assert session.moved() == "", "once"
    (tmp_path / "history.db").unlink()
    assert session.store.in_place, "whoever asks first gets the new one"
    assert "moved or deleted" in session.moved()
    session.close()


def test_what_cannot_be_opened_is_said_once_and_the_old_one_is_kept(tmp_path: Path) -> None:
    session = Session((tmp_path,), tmp_path / "history.db")
    before = session.store
    WAYS["a folder"](tmp_path / "history.db")
    assert "replaced" in session.moved()
    assert session.moved() == ""
    assert session.store is before
    session.close()
