"""The tree of suites is there before they have been checked; what is wrong with them comes to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from shop import app_on, settle, text_of, until
from textual.pilot import Pilot
from textual.widgets import Input

from agenteval_tui.analysis.overview import Overview
from agenteval_tui.core.errors import Problem
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.suites.screen import SuitesScreen
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workspace import Workspace

pytestmark = pytest.mark.xdist_group("screens")

TEST = (
    "  - id: test-{0}\n    prompt: hi\n    criteria:\n"
    "      - {{name: c, prototype_class: TextResponse, config_uxon: '{1}'}}\n"
)
GOOD = '{"metrics": [{"type": "TextMatch", "contains": "a"}]}'
BAD = '{"metrics": [{"type": "TextMach"}]}'


def write(folder: Path, name: str, *configs: str) -> Path:
    path = folder / f"{name}.suite.yaml"
    tests = "".join(TEST.format(number, config) for number, config in enumerate(configs))
    path.write_text(f"name: {name}\nagent: shop\nagents: {{shop: {{kind: demo}}}}\ntests:\n{tests}", encoding="utf-8")
    return path


class Gate:
    """Keeps checking from beginning until it is opened; counts how often it was asked for and has ended."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked = self.ended = 0


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made, real = Gate(), Workspace.problems

    def later(workspace: Workspace, overview: Overview) -> Mapping[str, tuple[Problem, ...]]:
        made.asked += 1
        made.open.wait(250)
        found = real(workspace, overview)
        made.ended += 1
        return found

    monkeypatch.setattr(Workspace, "problems", later)
    yield made
    made.open.set()


def tree_of(app: AgentevalApp) -> VirtualList:
    return app.screen.query_one("#tree", VirtualList)


async def checked(pilot: Pilot[int], app: AgentevalApp) -> None:
    """Wait until all problems are shown."""

    def known() -> bool:
        screen = app.screen
        assert isinstance(screen, SuitesScreen)
        return screen.controller.tree is not None and screen.controller.tree.overview.checked

    await until(pilot, known)
    await settle(pilot)


async def test_the_tree_is_there_and_can_be_used_before_problems_are_known(tmp_path: Path, gate: Gate) -> None:
    write(tmp_path, "broken", BAD, *[GOOD] * 60)
    write(tmp_path, "good", *[GOOD] * 60)
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "test-0" in text_of(app))
        assert "checking …" in "\n".join(text_of(app).split("\n")[:2])
        await pilot.press("g")
        # Nothing is known of the suite under the cursor yet.
        await until(pilot, lambda: "Problems  checking …" in text_of(app))
        assert "1 problem" not in text_of(app)
        # It is moved in, folded and filtered, as ever.
        await pilot.press("slash", *"test-4")
        await pilot.press("enter", *"jjj")
        tree = tree_of(app)
        key, place, focused = tree.cursor_key, tree.scroll_offset, app.focused
        assert key is not None
        gate.open.set()
        await checked(pilot, app)
        shown = text_of(app)
        assert "checking" not in shown
        assert "1 problem" in shown
        assert (tree.cursor_key, tree.scroll_offset, app.focused) == (key, place, focused)
        assert app.screen.query_one("#filter", Input).value == "test-4"
        await pilot.press("escape", "g", "g")
        await settle(pilot)
        assert "TextMach" in text_of(app)
        await pilot.press("G", "left")
        await settle(pilot)
        assert "Problems" not in text_of(app), "the good suite has none, and that is known"


async def test_the_list_does_not_move_when_problems_come(tmp_path: Path, gate: Gate) -> None:
    for name in "abc":
        write(tmp_path, name, *[BAD] * 40)
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(100, 24)) as pilot:
        await until(pilot, lambda: "test-0" in text_of(app))
        await pilot.press(*["pagedown"] * 2, *"jjj")
        await pilot.press("slash")  # somebody types when it comes
        tree = tree_of(app)
        await pilot.pause()
        before = (tree.cursor, tree.scroll_offset, [tree._source.key(n) for n in range(tree._count)])  # type: ignore[union-attr]
        gate.open.set()
        await checked(pilot, app)
        assert (tree.cursor, tree.scroll_offset, [tree._source.key(n) for n in range(tree._count)]) == before  # type: ignore[union-attr]
        assert isinstance(app.focused, Input)
        await pilot.press("escape", "g", "g")
        await settle(pilot)
        assert "40 problems" in text_of(app)


async def test_what_was_found_when_the_file_was_read_is_shown_at_once(tmp_path: Path, gate: Gate) -> None:
    (tmp_path / "odd.suite.yaml").write_text("name: Odd\ntests:\n  - id: a\n    promt: hi\n", encoding="utf-8")
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "4:5 error" in text_of(app))
        assert "checking …" in text_of(app)
        gate.open.set()
        await checked(pilot, app)
        assert "4:5 error" in text_of(app)


async def test_a_file_that_is_edited_while_it_is_checked_gets_its_own_problems(tmp_path: Path, gate: Gate) -> None:
    path = write(tmp_path, "edited", BAD, GOOD)
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "test-1" in text_of(app) and gate.asked == 1)
        write(tmp_path, "edited", GOOD, GOOD, GOOD)
        screen = app.screen
        assert isinstance(screen, SuitesScreen)
        screen.reload()
        await until(pilot, lambda: "test-2" in text_of(app))
        assert "checking …" in text_of(app)
        gate.open.set()
        await checked(pilot, app)
        await until(pilot, lambda: gate.ended >= 2)
        await settle(pilot)
        assert "problem" not in text_of(app).lower(), "those of the file as it was are not shown"
        # The other way round: it was good, and is not any more. What was said is not said of the new file.
        gate.open.clear()
        path.write_text(path.read_text("utf-8").replace("TextMatch", "TextMach", 1), encoding="utf-8")
        await until(pilot, lambda: "checking …" in text_of(app))
        gate.open.set()
        await checked(pilot, app)
        assert "1 problem" in text_of(app)
        await until(pilot, lambda: any("1 problem in it" in one.text for one in app.notices.all()))


async def test_a_file_that_did_not_change_keeps_its_problems_while_it_is_checked_again(
    tmp_path: Path, gate: Gate
) -> None:
    write(tmp_path, "same", BAD)
    gate.open.set()
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await checked(pilot, app)
        assert "1 problem" in text_of(app)
        gate.open.clear()
        screen = app.screen
        assert isinstance(screen, SuitesScreen)
        seen = screen.controller.tree
        screen.reload()
        await until(pilot, lambda: screen.controller.tree is not seen)
        assert "1 problem" in text_of(app)
        assert "checking" not in text_of(app)
        # What is wrong can change with no change of the file: here the agents of the user.
        gate.open.set()
        await settle(pilot)
        assert "1 problem" in text_of(app)


async def test_leaving_does_not_wait_for_the_check(tmp_path: Path) -> None:
    """A big suite is checked for seconds: the app's end ends that, at the next test."""
    write(tmp_path, "big", *[GOOD] * 3)
    session = Session([tmp_path], tmp_path / "history.db")
    seen = session.overview()
    assert not seen.checked
    (key,) = session.workspace.problems(seen)
    from agenteval_tui.analysis.lint import check_loaded

    loaded = [one.loaded for one in seen.suites]
    asked = 0

    def until_the_second() -> bool:
        nonlocal asked
        asked += 1
        return asked < 2

    assert check_loaded(loaded, until_the_second) == {}
    assert list(check_loaded(loaded)) == [key]
    session.close()
