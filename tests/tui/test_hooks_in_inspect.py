"""What hooks and services printed, and how they failed, in Inspect."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from shop import app_on, settle, text_of, until

from agenteval_tui.tui.screens.inspect.screen import InspectScreen

SUITE = """
name: shop
agents:
  bot: {kind: demo}
agent: bot
services:
  queue: {command: [sh, -c, "echo queue listens; exec sleep 60"], ready: {log: listens}}
tests:
  - id: order
    prompt: Where is W1?
    before: [[sh, -c, "echo making the order; echo no stock >&2; exit 4"]]
    after: [[sh, -c, "echo removing the order"]]
    criteria:
      - name: Says it
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "a"}]}'
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: Any, installed: Path) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("hooks")
    (folder / "shop.suite.yaml").write_text(SUITE)
    command = [installed / "agenteval", "run", "shop.suite.yaml", "--trust", "--db", "h.db"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "ended with exit code 4: no stock" in done.stdout, done.stderr
    return folder, folder / "h.db"


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_a_failing_hook_is_shown_with_its_output(recorded: Any, size: tuple[int, int]) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(pilot.app.screen, InspectScreen))
        screen = pilot.app.screen
        assert isinstance(screen, InspectScreen)
        await until(pilot, lambda: screen.controller.bench is not None)
        await settle(pilot)
        shown = " ".join(text_of(app).split())
        assert "code 4: no stock" in shown
        await pilot.press("alt+o")
        await settle(pilot)
        shown = text_of(app)
        assert "before sh -c" in shown
        assert "making the order" in shown
        assert "no stock" in shown
        assert "removing the order" in shown
        assert "service queue" in shown
        assert "queue listens" in shown
