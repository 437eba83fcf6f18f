"""The Watch screen: what a save of the agent's code changed, as rows and words; and the whole way with a real agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import to_builtins
from msgspec.structs import replace
from pictures import Pictures, pictures
from shop import app_on, settle, text_of, until

import agenteval_tui as agenteval
from agenteval_tui.runs.change.model import (
    Checked,
    Ignored,
    NotBuilt,
    RunChange,
    RunChecked,
    Saved,
    WatchEvent,
    Watching,
    code_change,
)
from agenteval_tui.suites.trust import Trust
from agenteval_tui.tui.code_watch import WatchRequest, watched_tests
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.watch import WatchScreen
from agenteval_tui.tui.screens.watch_controller import MessageDifference, WatchController

__all__ = ["pictures"]  # a fixture

WATCHING = Watching(recorded=6, failing=2, missing=0, not_programs=0, projects=("/shop",))
RUN = RunChange(
    effect="passes",
    suite="Shop",
    test="cancel",
    test_name="cancel",
    variation="",
    row_key="",
    repetition=1,
    agent="bot",
    before="01M8KE6ARJZ2BYME2TJW84J7YS",
    status_before="failed",
    after="01M8KE6ARJZ2BYME2TJW84J7ZZ",
    status="passed",
    reason="",
    criterion="",
    request=None,
    cost=None,
    step=4,
)
FAILS = replace(
    RUN,
    effect="fails",
    test="refund",
    before="01M8KE6ARJZ2BYME2TJW84J7YT",
    status_before="passed",
    status="failed",
    criterion="Says the amount",
    reason='"42.00" is not in the text',
)
NEEDS = replace(
    RUN,
    effect="needs_model",
    test="status",
    before="01M8KE6ARJZ2BYME2TJW84J7YV",
    status_before="passed",
    status="error",
    reason='messages[4].content: recorded "shipped", now "\x1b[31msent"',
    request=3,
    cost=0.0105,
    step=None,
)
SAME = replace(RUN, effect="unchanged", test="hello", before="01M8KE6ARJZ2BYME2TJW84J7YW", status_before="passed")
CHANGE = code_change(("/shop/agent.py",), (RUN, FAILS, NEEDS, SAME), duration_ms=412.0, answers=9, execution="x")
EVENTS: tuple[WatchEvent, ...] = (WATCHING, Saved(files=("/shop/agent.py",), runs=4), Checked(change=CHANGE))


def controller(*events: WatchEvent) -> WatchController:
    made = WatchController(WatchRequest((Path("/shop/shop.suite.yaml"),), (), "Shop"))
    for event in events:
        made.take(event)
    return made


def test_the_list_is_put_together_once_for_each_state() -> None:
    it = controller(*EVENTS)
    rows = it.rows()
    assert it.rows() is rows
    it.everything = True
    assert it.rows().count() == rows.count() + 1
    it.everything = False
    it.take(Saved(files=("/shop/agent.py",), runs=4))
    it.take(RunChecked(change=replace(FAILS, effect="passes")))
    assert [run.effect for run in it.rows().runs] == ["passes", "passes", "needs_model"]
    it.take(Checked(change=code_change((), (SAME,), duration_ms=1.0)))
    assert it.rows().count() == 0


def lines(made: WatchController) -> str:
    return "\n".join("".join(text for text, _ in line) for line in made.lines(120))


def rows(made: WatchController) -> list[str]:
    source = made.rows()
    return ["".join(text for text, _ in source.line(n, 140, focused=False)) for n in range(source.count())]


def test_what_changed_is_listed_and_said() -> None:
    made = controller(*EVENTS)
    assert "saved agent.py: 1 of 1 failure passes now, 1 run fails now, 1 unchanged, 1 needs the model" in lines(made)
    assert "0 requests, 0.4 s" in lines(made)
    first, second, third = rows(made)
    assert first.startswith("passes now")
    assert "cancel#1" in first
    assert "fails now" in second
    assert 'Says the amount: "42.00" is not in the text' in second
    assert "from request 3 on, about $0.0105" in third
    assert "\x1b" not in third
    made.everything = True
    assert len(rows(made)) == 4


def test_while_runs_are_made_those_that_have_ended_stand_in_place_of_what_they_were() -> None:
    made = controller(*EVENTS, Saved(files=("/shop/agent.py",), runs=4))
    assert "running 0 of 4 runs" in lines(made)
    assert len(rows(made)) == 3
    made.take(RunChecked(change=replace(RUN, effect="unchanged", status="failed")))
    assert len(rows(made)) == 2
    assert "running 1 of 4 runs" in lines(made)


def test_a_broken_import_is_a_line_and_the_last_state_stays() -> None:
    broken = code_change(
        ("/shop/agent.py",), (), duration_ms=3.0, error="SyntaxError (agent.py, line 3)", fix="correct it"
    )
    made = controller(*EVENTS, Saved(files=("/shop/agent.py",), runs=4), Checked(change=broken))
    assert "SyntaxError (agent.py, line 3)" in lines(made)
    assert len(rows(made)) == 3
    made.take(Checked(change=CHANGE))
    assert "SyntaxError" not in lines(made)


def test_what_is_not_watched_any_more_is_said() -> None:
    assert "/shop/out.json is left alone" in lines(controller(WATCHING, Ignored(file="/shop/out.json")))


def test_a_source_that_is_not_built_yet_is_said_until_it_is() -> None:
    made = controller(WATCHING, NotBuilt(files=("/shop/src/a.ts",), folder="/shop/dist"))
    assert "saved src/a.ts: dist was built before that" in lines(made)
    made.take(Saved(files=("/shop/dist/a.js",), runs=1))
    assert "was built before that" not in lines(made)


def test_tools_that_ran_for_real_are_named() -> None:
    acted = replace(CHANGE, real_tools=("send_mail", "pay"))
    assert "ran for real, because no equal call is recorded: send_mail, pay" in lines(
        controller(WATCHING, Checked(change=acted))
    )
    assert "ran for real" not in lines(controller(*EVENTS))
    unrecorded = replace(WATCHING, real_tools=("bot",))
    assert "The recordings of bot have no calls of MCP servers" in lines(controller(unrecorded, *EVENTS[1:]))


def test_nothing_changed_says_what_to_do() -> None:
    same = code_change((), (SAME,), duration_ms=3.0)
    made = controller(WATCHING, Checked(change=same))
    assert made.rows().count() == 0
    words = "\n".join("".join(text for text, _ in line) for line in made.empty())
    assert "Save a file of the agent" in words
    assert "their tools" in words
    made.request = replace(made.request, recorded_tools=True)
    words = "\n".join("".join(text for text, _ in line) for line in made.empty())
    assert "Tools do not: their results come from the recordings." in words


async def test_the_screen(pictures: Pictures, tmp_path: Path) -> None:
    app = app_on(tmp_path, tmp_path / "h.db")
    async with pictures.of(app) as pilot:
        app.navigation.go("watch")
        await settle(pilot)
        assert isinstance(app.screen, WatchScreen)
        app.screen.controller = controller(*EVENTS)
        different = MessageDifference(4, 'tool: {"status": "open"}', 'tool: {"status": "cancelled"}')
        app.screen.controller.take_difference(RUN, different)
        app.screen._show()  # the process is another test's
        await pictures.take("watch[{size}]")


async def test_the_chosen_run_is_the_one_that_is_shown_though_others_have_ended_since(tmp_path: Path) -> None:
    app = app_on(tmp_path, tmp_path / "h.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        app.navigation.go("watch")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, WatchScreen)
        screen.controller = controller(*EVENTS, Saved(files=("/shop/agent.py",), runs=4))
        screen._show()
        await pilot.press("down")
        await settle(pilot)
        assert "cancel, run 1  fails now" in text_of(app)
        screen.controller.take(RunChecked(change=replace(RUN, effect="unchanged")))
        screen._detail()
        await settle(pilot)
        assert "cancel, run 1  fails now" in text_of(app)


AGENT = "def answer(prompt):\n    return prompt.lower()\n"
SUITE = """
name: Echo
agent: echo
agents: {echo: {kind: python, callable: "agent:answer"}}
tests:
  - id: loud
    prompt: HELLO
    criteria:
      - {name: Is loud, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: HELLO}]}}
"""


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, Path]:
    folder, db = tmp_path / "project", tmp_path / "h.db"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    (folder / "echo.suite.yaml").write_text(SUITE)
    Trust.load().trust(folder)
    agenteval.run(folder, db=db)
    return folder, db


async def test_a_save_shows_what_changed_and_both_runs(project: tuple[Path, Path]) -> None:
    folder, db = project
    app = app_on(folder, db)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("W")
        await until(pilot, lambda: isinstance(app.screen, WatchScreen) and "1 unchanged" in text_of(app))
        (folder / "agent.py").write_text(AGENT.replace(".lower()", ""))
        await until(pilot, lambda: "1 of 1 failure passes now" in text_of(app))
        assert "passes now" in text_of(app)
        await until(pilot, lambda: "recorded   assistant: hello" in text_of(app))
        assert "now        assistant: HELLO" in text_of(app)
        await pilot.press("F")
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen) and "hello" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, WatchScreen))
        await pilot.press("R")
        await until(pilot, lambda: "1 recorded run, 0 failed" in text_of(app))
        await pilot.press("t")
        await until(pilot, lambda: "with recorded tools" in text_of(app) and "1 unchanged" in text_of(app))
        await pilot.press("t")
        await until(pilot, lambda: "with recorded tools" not in text_of(app) and "1 unchanged" in text_of(app))
        await pilot.press("S")
        await until(pilot, lambda: "This is not watched any more." in text_of(app))


async def test_what_can_not_be_watched_says_why(project: tuple[Path, Path]) -> None:
    folder, db = project
    suite = folder / "echo.suite.yaml"
    suite.write_text(SUITE.replace('{kind: python, callable: "agent:answer"}', "{kind: demo, version: v1}"))
    app = app_on(folder, db)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("W")
        await until(pilot, lambda: "there is nothing to watch" in text_of(app))
        await settle(pilot)
        assert text_of(app).count("there is nothing to watch") == 1
        assert "Nothing is watched." in text_of(app)


def test_runs_without_a_file_of_their_suite_are_not_watched(project: tuple[Path, Path]) -> None:
    folder, db = project
    runs = [run.row for run in agenteval.History(db, all_projects=True).runs()]
    request = watched_tests(runs)
    assert request is not None
    assert request.title == "loud"
    (folder / "echo.suite.yaml").unlink()
    assert watched_tests(runs) is None
    assert json.dumps(to_builtins(EVENTS))
