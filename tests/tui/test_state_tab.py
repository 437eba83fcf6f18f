"""The tab `state` of Inspect: before above after, or beside it; for runs that have a state."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from shop import app_on, settle, text_of, until

from agenteval_tui.tui.screens.inspect.panes import EvidencePane
from agenteval_tui.tui.screens.inspect.screen import InspectScreen

SUITE = """
name: shop
agents:
  shop: {kind: python, callable: "state_shop:answer"}
agent: shop
tests:
  - id: order
    prompt: Cancel W1
    state:
      order: {file: order.txt}
      page: {file: missing.html}
    criteria:
      - name: It is cancelled
        prototype_class: State
        config_uxon: {probe: order, metrics: [{type: TextMatch, equals: Cancelled}]}
"""
MODULE = """
import pathlib
def answer(prompt):
    pathlib.Path("order.txt").write_text("cancelled")
    return "Done."
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: Any, installed: Path) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("state")
    (folder / "shop.suite.yaml").write_text(SUITE)
    (folder / "state_shop.py").write_text(MODULE)
    (folder / "order.txt").write_text("pending")
    command = [installed / "agenteval", "run", "shop.suite.yaml", "--trust", "--db", "h.db"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "would match ignoring case" in done.stdout, done.stderr
    return folder, folder / "h.db"


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_the_tab_shows_before_and_after(recorded: Any, size: tuple[int, int]) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(pilot.app.screen, InspectScreen))
        screen: Any = pilot.app.screen
        await until(pilot, lambda: screen.controller.bench is not None)
        await settle(pilot)
        await pilot.press("alt+e")
        await settle(pilot)
        assert screen.view == "state"
        shown = text_of(app)
        assert "[state]" in shown
        assert "- pending" in shown
        assert "+ cancelled" in shown
        assert "not read: there is no file missing.html" in shown
        await pilot.press("escape")
        await settle(pilot)
        assert screen.view == "transcript"


async def test_evidence_of_a_state_leads_to_the_tab(recorded: Any) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(pilot.app.screen, InspectScreen))
        screen: Any = pilot.app.screen
        await until(pilot, lambda: screen.controller.looked_at is not None)
        await settle(pilot)
        assert screen.view == "transcript"
        screen.post_message(EvidencePane.Chosen(screen.controller.looked_at.metrics[0].evidence[0]))
        await until(pilot, lambda: screen.view == "state")
        await pilot.press("escape")
        await settle(pilot)
        await pilot.press("full_stop")
        await until(pilot, lambda: screen.view == "state")
