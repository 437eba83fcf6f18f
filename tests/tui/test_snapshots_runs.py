"""What Run, its sheets and Agents look like, at 80x24 and 140x45: pictures that were looked at."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pictures import LARGE, SIZES, SMALL, Pictures, pictures, resized
from shop import app_on, settle, until
from test_snapshots import NOON, an_execution, cursor_to
from test_snapshots import recorded as recorded
from test_snapshots import still as still
from textual.pilot import Pilot
from textual.widgets import Input

from agenteval_tui.agents.base import CheckReport, CheckStep
from agenteval_tui.agents.permission import TrustRequirement
from agenteval_tui.core import directories
from agenteval_tui.runs import agent_factory, events
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.tui.presenters.run_rows import Expected
from agenteval_tui.tui.presenters.trust_lines import TrustQuestion
from agenteval_tui.tui.screens import agents_controller
from agenteval_tui.tui.screens.agents import AgentsScreen
from agenteval_tui.tui.screens.executions import ExecutionsScreen
from agenteval_tui.tui.screens.run.screen import RunScreen
from agenteval_tui.tui.screens.trust import TrustScreen
from agenteval_tui.tui.widgets.transcript_view import TranscriptView

__all__ = ["pictures"]  # a fixture

pytestmark = pytest.mark.xdist_group("snapshots")

REFUSED = "the server at http://127.0.0.1:8000 refused the connection"
AGENTS = """\
agents:
  mine/gpt:
    kind: openai
    description: The assistant of the shop, as the customers get it.
    model: gpt-test
    base_url: https://api.example.com/v1
    api_key_env: SHOP_TEST_KEY
    max_tokens: 400
    headers: {X-Team: quality}
  mine/program: {kind: command, command: [python, agent.py, --fast], concurrency: 2}
"""


def a_busy_execution() -> ExecutionView:
    """As `an_execution`, with variations, rows, retries, cached and skipped runs, a slow server, judges, limits."""
    view = an_execution()
    planned = view.planned
    assert planned is not None
    extra = tuple(
        events.RunRef(f"x{place}-{number}", "refund-policy", "Refunds", variation, row, number, "shop/support")
        for place, (variation, row) in enumerate([("A: small-model", 1), ("B: large-model", 1), ("B: large-model", 2)])
        for number in range(1, 41 if place == 0 else 6)
    )
    fresh = ExecutionView()
    fresh.apply(replace(planned, runs=(*planned.runs, *extra), max_cost=1.0))
    for state in [run.copy() for run in view.runs.values() if run.status != "queued"]:
        fresh.apply(events.RunShown(0, state))
    fix = "start it, or change `base_url`"
    stream: list[events.Event] = []
    for number, ref in enumerate(extra[:30]):
        outcome = "error" if number in (4, 5) else "failed" if number % 7 == 3 else "passed"
        cached = number in (8, 9)
        stream.append(events.RunStarted(0, ref.run, 1, NOON + 110_000))
        if number in (2, 5):
            stream.append(events.AttemptFailed(0, ref.run, 1, "429: too many requests", 2.0, "rate_limit", "wait"))
            stream.append(events.RunStarted(0, ref.run, 2, NOON + 111_000))
        error = REFUSED if outcome == "error" else ""
        stream.append(events.AgentFinished(0, ref.run, 900.0, error, fix if error else "", cached))
        stream.append(events.Graded(0, ref.run, outcome, None, (), 900.0))
    for ref in extra[30:34]:
        stream.append(events.Graded(0, ref.run, "skipped", None, (), 0.0))
    stream.append(events.RunStarted(0, extra[34].run, 1, NOON + 118_000))
    stream.append(events.AttemptFailed(0, extra[34].run, 1, "the stream broke off", 3.0, "connection", "wait"))
    flying = next(one.ref.run for one in view.in_flight() if one.parts)
    stream.append(events.TurnStarted(0, flying, 2, "And when will the refund arrive?"))
    stream.append(events.TextStreamed(0, flying, "Within five days of"))
    stream.append(events.Throttled(0, "shop/support", 4, 8, 12.0))
    stream.append(
        events.Progress(0, 65, 22, 3, 27, 7, 3, 0, 0, 3.2, 42.0, 21_840, 4611, 0.0812, 4, False, 4, 3200, 0.0061)
    )
    for event in stream:
        fresh.apply(event)
    return fresh


EXPECTED = Expected(180.0, 60_000, 0.21)


async def show(pilot: Pilot[int], view: ExecutionView) -> RunScreen:
    """The Run screen with this execution."""
    await pilot.press("3")
    await settle(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, RunScreen)
    screen.show_view(view, EXPECTED)
    await settle(pilot)
    return screen


async def test_a_busy_run_and_its_end(pictures: Pictures, recorded: tuple[Path, Path]) -> None:
    async with pictures.of(app_on(*recorded), LARGE) as pilot:
        screen = await show(pilot, a_busy_execution())
        for size in (LARGE, SMALL):
            await pictures.take("test_busy_run[{size}]", size)
            await pilot.press("exclamation_mark")
            await settle(pilot)
            await pictures.take("test_errors_of_a_run[{size}]", size)
            await pilot.press("escape")
            await settle(pilot)
        await resized(pilot, LARGE)
        view = a_busy_execution()
        for run in view.in_flight():
            view.apply(events.Graded(0, run.ref.run, "cancelled", None, (), 10.0))
        view.apply(events.Ended(0, "stopped", "the limit of $1.00 was reached"))
        screen.show_view(view, EXPECTED)
        await settle(pilot)
        await pilot.press("j", "j", "j", "l", "l", "l", "l")
        await pictures.take("test_run_that_was_stopped[{size}]", LARGE, SMALL, (200, 60))


async def test_sheets_before_a_run(
    pictures: Pictures, recorded: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from agenteval_tui.runs.plan.options import PlanOptions
    from agenteval_tui.tui.screens.plan import ResumeScreen

    monkeypatch.setattr("agenteval_tui.tui.screens.executions.now_ms", lambda: NOON + 120_000)
    monkeypatch.setattr("agenteval_tui.tui.screens.trust.kind_of", lambda root: "repository")
    live = [
        Live("01M8029MCF6CGVEKSBGJT430F" + end, 1, "", title, NOON) for end, title in (("K", "smoke"), ("L", "all"))
    ]
    what = (
        "command: python agent.py --fast",
        "tool refund: ./refund.sh {amount}",
        "python function checks:tone",
        "sends SHOP_KEY to shop.example.com",
    )
    asked = [TrustQuestion(TrustRequirement(Path("/home/kim/shop"), what), "this repository is not trusted yet")]
    async with pictures.of(app_on(*recorded)) as pilot:
        pilot.app.push_screen(ExecutionsScreen(live, live[0].execution))
        await pictures.take("test_several_executions", SMALL)
        await pilot.press("escape")
        await settle(pilot)
        pilot.app.push_screen(ResumeScreen(PlanOptions(max_cost=1.0)))
        await pictures.take("test_resuming", SMALL)
        await pilot.press("escape")
        await settle(pilot)
        for size in SIZES:
            await resized(pilot, size)
            pilot.app.push_screen(TrustScreen(asked, "Running this"))
            await pictures.take("test_trust[{size}]", size)
            await pilot.press("escape")
            await settle(pilot)
        cursor_to(pilot, "customers-austria")
        await settle(pilot)
        for size, wrong in product(SIZES, (False, True)):
            await resized(pilot, size)
            await pilot.press("P")
            await settle(pilot)
            pilot.app.screen.query_one("#field-repeat", Input).value = "x" if wrong else "12"
            if not wrong:
                await pilot.press("down", "down", "down", "down", "down", "down", "2", "5")
            await settle(pilot)
            await pictures.take(f"test_planning[{'wrong' if wrong else 'right'}-{{size}}]", size)
            await pilot.press("escape")
            await settle(pilot)


async def agents(pilot: Pilot[int]) -> AgentsScreen:
    """The Agents screen, with the cursor on the first agent."""
    await pilot.press("8")
    await settle(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, AgentsScreen)
    return screen


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents of one's own, of which one is well."""
    monkeypatch.delenv("SHOP_TEST_KEY", raising=False)
    directories.config_dir().mkdir(parents=True, exist_ok=True)
    (directories.config_dir() / "agents.yaml").write_text(AGENTS)
    steps = (
        CheckStep("reachable", True, "", 41.0),
        CheckStep("key", False, "401: the key is not accepted", 120.0),
        CheckStep("model", None, "not asked: the key is not accepted"),
    )

    async def check(one: agent_factory.Configured, _permission: object, **_: Any) -> CheckReport:
        if one.kind == "openai":
            fix = "set SHOP_TEST_KEY to a key of this server"
            return CheckReport(False, "the key is not accepted", 161.0, fix, steps)
        return CheckReport(True, "it answers", 12.0, steps=(CheckStep("reachable", True, "", 12.0),))

    monkeypatch.setattr(agents_controller, "check_configured", check)


async def test_agents(pictures: Pictures, recorded: tuple[Path, Path], mine: None) -> None:
    async with pictures.of(app_on(*recorded), LARGE) as pilot:
        screen = await agents(pilot)
        await pilot.press("r")
        await until(pilot, lambda: any(screen.controller.reports.values()))
        await pictures.take("test_agents[{size}]", LARGE, SMALL, (200, 60))


async def talk(pilot: Pilot[int]) -> None:
    """A short conversation with the agent of the suite."""
    screen = await agents(pilot)
    await pilot.press("G", "enter")
    prompt = screen.query_one("#prompt", Input)
    prompt.value = "Where is my order #W1042?"
    await pilot.press("enter")
    await settle(pilot)
    shown = screen.controller.shown
    assert shown is not None
    turns = shown.turns
    await until(pilot, lambda: bool(turns) and turns[-1].took_ms is not None)
    # What was measured is no part of the picture.
    turns[-1] = replace(turns[-1], took_ms=1400.0, first_token_ms=210.0)
    whole = shown.transcript
    shown._before = replace(whole, tool_calls=tuple(replace(one, duration_ms=12.0) for one in whole.tool_calls))
    screen.query_one("#chat", TranscriptView).show_transcript(shown.transcript)
    screen._show_status()
    await settle(pilot)


async def test_a_conversation_and_a_test_of_it(pictures: Pictures, chatty: tuple[Path, Path]) -> None:
    async with pictures.of(app_on(*chatty)) as pilot:
        await talk(pilot)
        await pictures.take("test_a_conversation[{size}]")
        await pilot.press("escape")
        for size in SIZES:
            await resized(pilot, size)
            await pilot.press("m")
            await settle(pilot)
            await pictures.take("test_making_a_test[{size}]", size)
            await pilot.press("escape")
            await settle(pilot)


@pytest.fixture
def chatty(tmp_path: Path) -> tuple[Path, Path]:
    """A suite whose agent is the bundled one, without its pace."""
    (tmp_path / "shop.suite.yaml").write_text(
        "name: Shop\nagent: shop/sql\nagents:\n"
        '  shop/sql: {kind: demo, version: v1, pace: 0, description: "demo-rules v1"}\n'
        "tests:\n  - id: one\n    prompt: Which products do we have?\n    criteria:\n"
        "      - {name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: Length, min: 1}]}}\n"
    )
    return tmp_path, tmp_path / "history.db"
