"""Executions that differ in their agent alone: each screen names it beside the figures."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from shop import app_on, settle, text_of, until
from textual.pilot import Pilot

from agenteval_tui.tui.app import AgentevalApp

SUITE = """
name: Greetings
agent: fine
agents:
  fine: {kind: python, callable: "mine:fine"}
  poor: {kind: python, callable: "mine:poor"}
tests:
  - id: greets
    prompt: Hello
    criteria:
      - name: Says hello
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: hello}]}
"""
MODULE = "def fine(prompt): return 'hello'\ndef poor(prompt): return 'no'\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: Any, installed: Path) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("two")
    (folder / "greetings.suite.yaml").write_text(SUITE)
    (folder / "mine.py").write_text(MODULE)
    for agent in ("fine", "poor"):
        command = ["run", "greetings.suite.yaml", "--agent", agent, "--trust", "--db", "h.db"]
        subprocess.run([installed / "agenteval", *command], cwd=folder, check=False, capture_output=True)
    return folder, folder / "h.db"


async def shown(pilot: Pilot[Any], key: str) -> list[str]:
    await pilot.press(key)
    await settle(pilot)
    return text_of(cast("AgentevalApp", pilot.app)).splitlines()


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_the_agent_stands_beside_the_figures(recorded: tuple[Path, Path], size: tuple[int, int]) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        test = next(row for row in await shown(pilot, "1") if "✗ greets" in row)
        assert "greets  poor" in test
        assert "0/1" in test
        executions = [row for row in await shown(pilot, "5") if ":" in row and "Greetings" in row]
        assert [name for row in executions for name in ("fine", "poor") if name in row] == ["poor", "fine"]
        await pilot.press("6")
        await until(pilot, lambda: "1 test worse" in text_of(app))
        sides = next(row for row in text_of(app).splitlines() if " → " in row and row.startswith(" Greetings"))
        assert " · fine  " in sides
        assert " · poor  " in sides
