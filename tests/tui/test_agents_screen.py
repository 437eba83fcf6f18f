"""The Agents screen, driven by keys; trust, planning and resuming with real processes."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from shop import app_on, press_at_once, settle, text_of, until
from textual.widgets import Input

from agenteval_tui.agents.permission import TrustRequirement
from agenteval_tui.history.store import Store
from agenteval_tui.runs import client, events
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.trust import Trust
from agenteval_tui.tui import reading_time
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.command_providers import listed_places
from agenteval_tui.tui.screens.agents import AgentsScreen
from agenteval_tui.tui.screens.agents_controller import AgentRows
from agenteval_tui.tui.screens.history.screen import HistoryScreen
from agenteval_tui.tui.screens.new_test import MakeTestScreen
from agenteval_tui.tui.screens.plan import PlanScreen, ResumeScreen
from agenteval_tui.tui.screens.run import controller
from agenteval_tui.tui.screens.run.controller import ALL, Watching
from agenteval_tui.tui.screens.run.screen import RunScreen
from agenteval_tui.tui.screens.suites.screen import SuitesScreen
from agenteval_tui.tui.screens.trust import TrustScreen
from agenteval_tui.tui.styled_text import plain
from agenteval_tui.tui.widgets.form import Form

pytestmark = pytest.mark.xdist_group("screens")


@pytest.fixture(autouse=True)
def answers_count_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question about trust needs no time to be read."""
    monkeypatch.setattr(reading_time, "READ_S", 0.0)


SUITE = """\
# what stands here stays
name: Own
agent: {agent}
agents:
  shop: {{kind: demo, pace: {pace}}}
  program: {{kind: command, command: [python3, agent.py], description: "a program"}}
tests:
  - id: order
    prompt: "Where is my order #W1042?"
    repeat: {repeat}
    criteria:
      - {{name: says, prototype_class: TextResponse, config_uxon: {{metrics: [{{type: TextMatch, contains: W1042}}]}}}}
"""
PROGRAM = 'import sys; sys.stdin.read(); open("ran", "a").write("x"); print("Order W1042 is on its way.")\n'


def suite_at(folder: Path, *, agent: str = "shop", pace: float = 0, repeat: int = 1) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text(PROGRAM)
    path = folder / "own.suite.yaml"
    path.write_text(SUITE.format(agent=agent, pace=pace, repeat=repeat))
    return path


async def test_a_conversation_streams_and_becomes_a_test(tmp_path: Path) -> None:
    path = suite_at(tmp_path / "suites")
    before = path.read_text()
    db = tmp_path / "history.db"
    app = app_on(path.parent, db)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("8")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, AgentsScreen)
        assert "own.suite.yaml:5, suite Own" in text_of(app)
        await pilot.press("a")
        assert "There is no conversation yet" in " ".join(note.message for note in app._notifications)
        await pilot.press("m")
        assert "Ask the agent something first" in " ".join(note.message for note in app._notifications)
        # At every size whom a message goes to is in sight, and one key is enough to type it.
        for size in ((80, 24), (140, 45)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert re.search(r"to \S+   write a message; press enter to send it", text_of(app))
        await pilot.press("tab", *"When?")
        assert screen.query_one("#prompt", Input).value == "When?"
        for number, words in enumerate(("Where is my order #W1042?", "And #W1017?"), 1):
            screen.query_one("#prompt", Input).value = words
            await pilot.press("enter")
            await settle(pilot)
            await until(pilot, lambda n=number: f"{n} turn" in text_of(app) and "✓" in text_of(app))  # type: ignore[misc]
        assert "get_order" in text_of(app)
        assert "tokens" in text_of(app)
        assert not Store.open(db).executions(), "nothing is stored"
        assert "^s make a test" in text_of(app)
        await pilot.press("ctrl+s")  # where m is a letter
        await settle(pilot)
        assert isinstance(app.screen, MakeTestScreen)
        suites = app.screen._suites
        app.screen._suites = []
        app.screen.query_one(Form).offer("suite", [("", "there is no suite")])
        await pilot.press("enter")
        await settle(pilot)
        assert "press a on Suites to make one" in text_of(app)
        app.screen._suites = suites
        app.screen.query_one(Form).offer("suite", [(suites[0].key, "Own")])
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, SuitesScreen)
        assert "where-is-my-order-w1042" in text_of(app)
    after = path.read_text()
    assert after.startswith(before.rstrip("\n"))
    loaded = load_suite(path)
    assert loaded.ok, loaded.problems
    assert loaded.suite is not None
    assert loaded.suite.tests[1].turns == ["Where is my order #W1042?", "And #W1017?"]


async def test_an_answer_is_cancelled_and_a_check_is_shown(tmp_path: Path) -> None:
    app = app_on(suite_at(tmp_path / "suites", pace=300).parent, tmp_path / "history.db")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("8")
        await settle(pilot)
        await pilot.press("r")
        await settle(pilot)
        assert "✓ reachable" in text_of(app) or "✓" in text_of(app)
        await pilot.press("enter", *"hello", "enter")
        await until(pilot, lambda: "answering" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "cancelled" in text_of(app))
        # What is said covers nothing that is typed.
        app.say("Of this the line with the prompt stays free.")
        await until(pilot, lambda: "stays free" in text_of(app))
        assert not app.screen.query_one("ToastRack").region.overlaps(app.screen.query_one("#prompt").region)
        await pilot.press("escape", "slash", *"nothing-like-it")
        await settle(pilot)
        assert "No agent matches" in text_of(app)


def test_agents_of_one_name_say_which_suite_is_theirs(tmp_path: Path) -> None:
    path = suite_at(tmp_path / "suites")
    other = path.read_text().replace("Own", "Other")
    session = Session((path.parent,), tmp_path / "history.db")
    assert "Own" not in plain(AgentRows(session.workspace.agents()[0], {}).line(0, 100, focused=False))
    path.with_name("other.suite.yaml").write_text(other)
    rows = AgentRows(session.workspace.agents()[0], {})
    shown = [plain(rows.line(index, 100, focused=False)) for index in range(rows.count())]
    assert {line.split()[1] for line in shown if "Other" in line} == {
        line.split()[1] for line in shown if "Own" in line
    }
    narrow = [plain(rows.line(index, 34, focused=False)) for index in range(rows.count())]
    assert [line.split()[1] for line in narrow] == [line.split()[1] for line in shown], "the name is never cut for it"


async def test_what_can_not_be_read_hides_no_other_suite_and_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "of the environment")
    keyed = tmp_path / "suites" / "b"
    path = suite_at(tmp_path / "suites" / "c")
    keyed.mkdir()
    keyed.joinpath("keyed.suite.yaml").write_text(
        "name: Keyed\nagents: {model: {kind: openai, model: m, api_key_env: SHOP_KEY}}\ntests: []\n"
    )
    keyed.joinpath(".env").write_bytes(b"OTHER=\xff\n")
    path.with_name("a.suite.yaml").write_bytes(b"name: \xff\n")
    session = Session((tmp_path / "suites",), tmp_path / "history.db")
    assert {one.name for one in session.workspace.agents()[0]} == {"shop", "program", "model"}
    assert {one.name for one in listed_places(session)} >= {"Own", "order order"}
    app = app_on(tmp_path / "suites", tmp_path / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("8")
        await until(pilot, lambda: "kind openai" in text_of(app) or "openai" in text_of(app))
        shown = " ".join(text_of(app).split())
        assert "this file is not UTF-8: the byte 0xff can't be read" in shown
        assert "this file is not UTF-8" in shown.replace("this file is not UTF-8: the byte", "")
        screen = app.screen
        assert isinstance(screen, AgentsScreen)
        assert [one.keys for one in screen.controller.agent_candidates.about.values() if one.keys] == [
            (("SHOP_KEY", True),)
        ]


async def test_a_program_of_an_untrusted_folder_asks_first(tmp_path: Path) -> None:
    folder = suite_at(tmp_path / "suites", agent="program").parent
    app = app_on(folder, tmp_path / "history.db")
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("8")
        await settle(pilot)
        await pilot.press("j", "r")
        await settle(pilot)
        assert isinstance(app.screen, TrustScreen)
        assert "python3 agent.py" in text_of(app)
        await pilot.press("escape")
        await pilot.press("1")
        await settle(pilot)
        await pilot.press("R")
        await settle(pilot)
        assert isinstance(app.screen, TrustScreen)
        assert "not trusted yet" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, SuitesScreen)
        assert not (folder / "ran").exists()
        await pilot.press("R")
        await settle(pilot)
        await pilot.press("t")
        await settle(pilot)
        # It is quick: the Run screen, or the history when it was over before anybody came.
        await until(pilot, lambda: isinstance(app.screen, RunScreen | HistoryScreen))
        await until(pilot, lambda: (folder / "ran").exists())
        assert [one.folder for one in Trust.load().listed()] == [str(folder)]


async def test_a_letter_that_was_meant_for_the_list_trusts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question comes by itself, in the middle of what somebody types."""
    folder = suite_at(tmp_path / "suites", agent="program").parent
    app = app_on(folder, tmp_path / "history.db")
    started: list[bool] = []
    monkeypatch.setattr("agenteval_tui.tui.workspace.start", lambda request: started.append(request.options.trust))
    monkeypatch.setattr(app.navigation, "watch_live", lambda live, expected=None, *, show=True: None)
    monkeypatch.setattr(app._launcher, "_started", lambda live: None)
    monkeypatch.setattr(reading_time, "READ_S", 600.0)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("R")
        await settle(pilot)
        assert isinstance(app.screen, TrustScreen)
        press_at_once(pilot, "t", "o")
        await settle(pilot)
        assert isinstance(app.screen, TrustScreen)
        assert not started
        assert not Trust.load().listed()
        monkeypatch.setattr(reading_time, "READ_S", 0.0)
        await pilot.press("o")
        await settle(pilot)
        assert started == [True]


@pytest.mark.parametrize("answer", ["o", "t"])
async def test_an_answer_about_trust_is_for_what_was_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    path = suite_at(tmp_path / "suites", agent="program")
    app = app_on(path.parent, tmp_path / "history.db")
    started: list[bool] = []
    monkeypatch.setattr("agenteval_tui.tui.workspace.start", lambda request: started.append(request.options.trust))
    monkeypatch.setattr(app.navigation, "watch_live", lambda live, expected=None, *, show=True: None)
    monkeypatch.setattr(app._launcher, "_started", lambda live: None)
    why_not, threads = app.session.workspace.why_not, list[object]()

    def reason(need: TrustRequirement) -> str:
        threads.append(threading.current_thread())
        return why_not(need)

    monkeypatch.setattr(app.session.workspace, "why_not", reason)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("R")
        await settle(pilot)
        assert "python3 agent.py" in text_of(app)
        assert threading.main_thread() not in threads, "it reads the whole folder"
        # Somebody else changes what would run while the person reads.
        path.write_text(path.read_text().replace("agent.py]", "other.py]"))
        await pilot.press(answer)
        await settle(pilot)
        assert isinstance(app.screen, TrustScreen)
        assert "python3 other.py" in text_of(app)
        assert not started
        assert not Trust.load().listed()
        await pilot.press(answer)
        await settle(pilot)
        assert started == [answer == "o"]
        assert len(Trust.load().listed()) == (answer == "t")


async def test_a_run_is_planned_cancelled_and_resumed(tmp_path: Path) -> None:
    path = suite_at(tmp_path / "suites", pace=0.8)  # so slow that it can be cancelled on any machine
    db = tmp_path / "history.db"
    app = app_on(path.parent, db)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("j", "P")
        await settle(pilot)
        assert isinstance(app.screen, PlanScreen)
        await pilot.press(*"zz")
        assert "a whole number" in text_of(app)
        await pilot.press("backspace", "backspace", *"10")
        app.screen.query_one("#field-concurrency", Input).value = "1"
        app.screen.query_one("#field-max_cost", Input).value = "5"
        await settle(pilot)
        assert "10 runs of 1 test" in text_of(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and "of 10" in text_of(app))
        await until(pilot, lambda: "of $5.00" in text_of(app))
        await pilot.press("S", "S")
        await until(pilot, lambda: "R to resume" in text_of(app))
        await pilot.press("R")
        await settle(pilot)
        assert isinstance(app.screen, ResumeScreen)
        app.screen.query_one("#field-concurrency", Input).value = "10"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and "10 of 10" in text_of(app))
        await until(pilot, lambda: "finished" in text_of(app))
    store = Store.open(db)
    try:
        assert len(store.executions()) == 1
        assert {run.status for run in store.runs_of_execution(store.execution("last").id)} == {"passed"}
    finally:
        store.close()


async def test_who_waits_for_nothing_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_on(suite_at(tmp_path / "suites").parent, tmp_path / "history.db")
    shown: list[object] = []
    display = app._display

    def counted(*given: Any) -> None:
        shown.append(given)
        display(*given)

    monkeypatch.setattr(app, "_display", counted)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for key in ("3", "8"):
            await pilot.press(key)
            await settle(pilot)
            await pilot.pause(0.3)
            shown.clear()
            # Longer than any timer of ours; what is counted is what would be written.
            await asyncio.sleep(0.6)
            assert not shown


async def test_one_of_several_executions_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = [Live(f"EXECUTION-{number}", 1, str(tmp_path / "none"), f"title {number}", 0) for number in (1, 2)]
    monkeypatch.setattr(client, "live_executions", lambda: list(live))
    app = app_on(suite_at(tmp_path / "suites").parent, tmp_path / "history.db")
    watched: list[str] = []
    monkeypatch.setattr(app.navigation, "watch_live", lambda one, expected=None: watched.append(one.execution))
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        await pilot.press("alt+w")
        await settle(pilot)
        assert "2 executions running" in text_of(app)
        await pilot.press("j", "enter")
        await settle(pilot)
        assert watched == ["EXECUTION-2"]
        live.pop()
        await pilot.press("alt+w")
        await settle(pilot)
        assert watched == ["EXECUTION-2", "EXECUTION-1"]


async def test_a_flood_of_events_leaves_the_keyboard_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = events.Planned(1, "x", "title", (events.RunRef("r", "t", "T", "", 0, 1, "a"),), 8, 0)

    class Flood:
        """An attachment whose events are all there, and no end."""

        async def __aiter__(self) -> AsyncIterator[events.Event]:
            yield planned
            yield events.RunStarted(2, "r", 1, 0)
            yield events.Throttled(3, "a", 2, 4, 60.0)
            for number in range(20_000):
                yield events.TextStreamed(number + 4, "r", "x")

        async def close(self) -> None:
            return

    async def attach(live: Live) -> Any:
        return Flood()

    monkeypatch.setattr(controller, "attach", attach)
    changed: list[str] = []
    watching = Watching(Live("x", 1, "", "", 0), changed.append)
    turns, slow = 0, 0
    task = asyncio.create_task(watching.run())
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
        slow = max(slow, len(watching.slowed()))
    await task
    assert turns > 3
    assert slow == 1
    assert watching.lost
    assert watching.over
    assert changed[0] == ALL
    assert changed[-1] == ""
    assert changed.count("r") == 20_001
