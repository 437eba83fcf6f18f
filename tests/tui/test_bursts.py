"""Keys that arrive in one piece, as over a slow line: they end where the same keys end one at a time."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sampled import fresh, samples
from shop import app_on, copy_history, press_at_once, screen_of, settle, text_of, until
from textual import events
from textual.widgets import Input

from agenteval_tui.core import directories
from agenteval_tui.runs.estimate import Estimate, Range, ReplyEstimate
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.fork.plan import ForkPrice
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.plan.preview import Preview
from agenteval_tui.tui import input_queue
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.fork import ForkScreen
from agenteval_tui.tui.screens.help import HelpScreen
from agenteval_tui.tui.screens.plan import PlanScreen
from agenteval_tui.tui.screens.suites.screen import SuitesScreen

__all__ = ["fresh", "samples"]  # fixtures

pytestmark = pytest.mark.xdist_group("screens")

_AGO = re.compile(r" *(?:just now|\d+ (?:min|h) ago|\b\d\d:\d\d(?::\d\d)?\b) *")
"""Times, with the space that a longer one takes from its neighbours: a minute may begin between two looks."""


@pytest.fixture(autouse=True)
def answers_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(input_queue, "ANSWER_S", 60.0)


@dataclass
class End:
    """What an app shows after some keys, and what the suites' files say then."""

    keys: str
    screens: list[str]
    focused: str | None
    value: str
    files: dict[str, str]
    shown: list[str]


async def played(samples: tuple[Path, Path], folder: Path, walk: Sequence[str], *, at_once: bool) -> list[End]:
    """Where each of these bursts ends, in one app. Each begins on Suites."""
    here = folder / "project"
    for kept in (here, directories.data_dir()):
        shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(samples[0], here / "suites")
    copy_history(samples[1], here)
    app = app_on(here / "suites", here / "history.db")
    ends = list[End]()
    async with app.run_test(size=(140, 45)) as pilot:
        for keys in walk:
            app.go("suites")
            await settle(pilot)
            assert app.focused is not None
            assert app.focused.id == "tree"
            if at_once:
                press_at_once(pilot, *keys.split())
                await settle(pilot)
            else:
                for key in keys.split():
                    press_at_once(pilot, key)
                    await settle(pilot)
            focused = app.focused
            ends.append(
                End(
                    keys,
                    [type(screen).__name__ for screen in app.screen_stack],
                    focused and focused.id,
                    focused.value if isinstance(focused, Input) else "",
                    {path.name: path.read_text(encoding="utf-8") for path in sorted((here / "suites").iterdir())},
                    [line.rstrip() for line in _AGO.sub("…", text_of(app)).splitlines()],
                )
            )
    return ends


@pytest.mark.sweep
@pytest.mark.parametrize(
    "walk",
    [
        # In each app, no burst but one goes to a screen: keys that it was not made yet for are the hardest.
        pytest.param(["D j u", "4 n n"], id="a copy that is undone, the next failure but one"),
        pytest.param(["4 n L down", "P 3 tab tab escape slash k e t"], id="a label, a sheet and a filter"),
        pytest.param(["c b", "4 greater_than_sign f7 enter"], id="a baseline, the smallest edit of a criterion"),
        pytest.param(["7 tab tab j enter"], id="a flaky test"),
        pytest.param(["9 j n L", "4 L escape escape escape"], id="a label for the second cause, escapes"),
        pytest.param(["0 F right_square_bracket L", "4 asterisk"], id="a label for what is reviewed, a decisive step"),
        pytest.param(["2 enter tab J semicolon s", "4 e n tab"], id="a jump to what has moved, a completion"),
        pytest.param(
            ["ctrl+p h i s t o r y enter x", "4 slash O r d e r enter n"], id="a deletion by the palette, a search"
        ),
        pytest.param(
            ["ctrl+p h e l p enter escape ctrl+p c a u s e s enter j", "5 enter j enter"],
            id="the palette twice, a run of an execution",
        ),
        pytest.param(["z down space escape", "5 slash k e t t l e enter enter"], id="a zoom, a run that is found"),
        pytest.param(["4 alt+w tab down"], id="the evidence of a step"),
    ],
)
async def test_a_burst_ends_where_slow_keys_end(samples: tuple[Path, Path], tmp_path: Path, walk: list[str]) -> None:
    slow = await played(samples, tmp_path, walk, at_once=False)
    assert await played(samples, tmp_path, walk, at_once=True) == slow


async def test_the_next_key_waits_for_an_answer_and_not_for_ever(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(*fresh)
    answer = threading.Event()
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        said: list[bool] = []
        screen_of(app).ask(lambda: answer.wait(60), said.append)
        press_at_once(pilot, "question_mark")
        await pilot.pause()
        assert isinstance(app.screen, SuitesScreen)
        assert not app.input_queue.is_empty
        answer.set()
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert said == [True]
        await pilot.press("escape")
        await settle(pilot)
        # An answer that does not come in time holds no key any longer; what only adds to the screen holds none.
        answer.clear()
        monkeypatch.setattr(input_queue, "ANSWER_S", 0.0)
        screen_of(app).ask(lambda: answer.wait(60), said.append)
        press_at_once(pilot, "question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        press_at_once(pilot, "escape")
        await until(pilot, lambda: isinstance(app.screen, SuitesScreen))
        monkeypatch.setattr(input_queue, "ANSWER_S", 60.0)
        screen_of(app).ask(lambda: answer.wait(60), said.append, group="adds", beside=True)
        press_at_once(pilot, "question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        answer.set()
        await settle(pilot)


async def test_letters_do_not_wait_for_what_the_letter_before_asked_for(fresh: tuple[Path, Path]) -> None:
    app: AgentevalApp = app_on(*fresh)
    answer = threading.Event()
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("slash", "k")
        await settle(pilot)
        screen_of(app).ask(lambda: answer.wait(60), lambda _: None)  # as a list that is searched by what is typed
        press_at_once(pilot, "e", "t")
        app.post_message(events.Paste("tle"))
        await until(pilot, lambda: app.screen.query_one("#filter", Input).value == "kettle")
        press_at_once(pilot, "enter")
        await pilot.pause()
        assert isinstance(app.focused, Input)
        assert not app.input_queue.is_empty
        answer.set()
        await until(pilot, lambda: app.focused is not None and app.focused.id == "tree")


async def test_keys_behind_a_run_that_starts_are_for_what_is_shown(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(*fresh)
    began = threading.Event()
    live = Live("01M82S3DAYEP44WPG1V1E8FTEA", 1, "/nowhere", "shop", 0)

    def start(paths: object, options: object) -> tuple[Live, Estimate]:
        assert began.wait(250)
        return live, Estimate(1, 1, {}, None, None, None, ReplyEstimate(0, None, None, None))

    monkeypatch.setattr(app.session.workspace, "start", start)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        press_at_once(pilot, "R", "j", "j")
        await until(pilot, lambda: app.input_queue.is_empty)
        began.set()
        await settle(pilot)
        press_at_once(pilot, "S")
        await settle(pilot)
        assert isinstance(app.screen, SuitesScreen)
        assert app.navigation.watches(live.execution)


async def test_keys_behind_the_start_of_a_plan_wait_for_its_estimate(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(*fresh)
    started = list[object]()
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        monkeypatch.setattr(app, "start_run", lambda paths, options: started.append(options))
        press_at_once(pilot, "P", "enter", "5", "slash")
        await settle(pilot)
        assert len(started) == 1
        assert screen_of(app).SCOPE == "history"


def costing(estimate: Estimate, dollars: float) -> Estimate:
    """The same, for this price."""
    return replace(estimate, cost=Range(dollars, dollars, dollars, estimate.runs, 0, estimate.runs))


@pytest.mark.parametrize("dollars", [0.0, 3.0])
async def test_a_plan_that_costs_something_starts_when_its_estimate_was_shown(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, dollars: float
) -> None:
    app = app_on(*fresh)
    known, started = threading.Event(), list[object]()
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        work = app.session.workspace
        preview = work.preview

        def slow(*asked: Any) -> Preview:
            assert known.wait(60)
            found = preview(*asked)
            return replace(found, estimate=costing(found.estimate, dollars))

        monkeypatch.setattr(work, "preview", slow)
        monkeypatch.setattr(app, "start_run", lambda paths, options: started.append(options))
        press_at_once(pilot, "P", "3", "enter")
        await until(pilot, lambda: isinstance(app.screen, PlanScreen) and app.input_queue.is_empty)
        assert not started
        known.set()
        await settle(pilot)
        if dollars:
            assert isinstance(app.screen, PlanScreen)
            assert not started
            assert "$3" in text_of(app)
            await pilot.press("enter")
        await until(pilot, lambda: bool(started))


@pytest.mark.parametrize("dollars", [0.0, 3.0])
async def test_a_continuation_that_costs_something_starts_when_its_price_was_shown(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, dollars: float
) -> None:
    app = app_on(*fresh)
    known, started = threading.Event(), list[object]()
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        work = app.session.workspace
        price = work.price_of_fork

        def slow(request: ForkRequest) -> ForkPrice:
            assert known.wait(60)
            found = price(request)
            return replace(found, takes=costing(found.takes, dollars))

        monkeypatch.setattr(work, "price_of_fork", slow)
        monkeypatch.setattr(app, "start_fork", lambda request, then: started.append(request))
        press_at_once(pilot, "F", "x", "ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, ForkScreen) and app.input_queue.is_empty)
        assert not started
        known.set()
        await settle(pilot)
        if dollars:
            assert isinstance(app.screen, ForkScreen)
            assert not started
            assert "$3" in text_of(app)
            await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(started))
