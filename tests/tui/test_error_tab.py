"""The tab `error` of Inspect: why the agent did not finish, frame by frame."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from shop import app_on, settle, text_of, until

from agenteval_tui.tui.external_programs import ExternalPrograms
from agenteval_tui.tui.screens.inspect.screen import InspectScreen

SUITE = """
name: shop
agents:
  broken: {kind: python, callable: "broken_shop:answer"}
agent: broken
tests:
  - id: order
    prompt: "W1"
    criteria:
      - name: Says it
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "a"}]}'
"""
MODULE = """
import json

def load(order_id):
    return json.loads("{" + order_id)

def answer(prompt):
    print("looking for", prompt)
    try:
        return load(prompt)
    except ValueError as error:
        raise RuntimeError("no order") from error
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: Any, installed: Path) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("broken")
    (folder / "shop.suite.yaml").write_text(SUITE)
    (folder / "broken_shop.py").write_text(MODULE)
    command = [installed / "agenteval", "run", "shop.suite.yaml", "--trust", "--db", "h.db"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "RuntimeError: no order" in done.stdout, done.stderr
    return folder, folder / "h.db"


async def opened(pilot: Any) -> InspectScreen:
    await settle(pilot)
    await pilot.press("4")
    await until(pilot, lambda: isinstance(pilot.app.screen, InspectScreen))
    screen = pilot.app.screen
    assert isinstance(screen, InspectScreen)
    await until(pilot, lambda: screen.controller.bench is not None)
    await settle(pilot)
    return screen


async def test_small_the_evidence_shows_the_reason_and_the_frames(recorded: Any) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        shown = text_of(app)
        assert "RuntimeError: no order" in shown
        assert "broken_shop.py:12 in answer" in shown
        assert "raise RuntimeError" in shown
        assert "caused by json.decoder.JSONDecodeError" in shown


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_stepping_folding_and_the_editor(recorded: Any, size: tuple[int, int], monkeypatch: Any) -> None:
    lines: list[tuple[str, int]] = []
    monkeypatch.setattr(ExternalPrograms, "open_editor", lambda self, path, line: lines.append((path.name, line)))
    app = app_on(*recorded)
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot)
        await pilot.press("exclamation_mark")
        await settle(pilot)
        assert screen.view == screen.pane == "error"
        assert "frames of packages: json" in text_of(app)
        await pilot.press("o", "n", "o", "n", "o", "n", "o", "p", "o")
        await settle(pilot)
        assert lines == [
            ("broken_shop.py", 12), ("broken_shop.py", 5), ("broken_shop.py", 10), ("broken_shop.py", 10),
            ("broken_shop.py", 5),
        ]  # fmt: skip
        await pilot.press("f")
        await settle(pilot)
        assert "json/decoder.py" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert screen.view == "transcript"
        await pilot.press("alt+o")
        await settle(pilot)
        assert screen.view == "output"
        assert "looking for W1" in text_of(app)


async def test_what_a_metric_raises_is_a_frame_to_step_to(tmp_path: Path, installed: Path) -> None:
    judged = SUITE.replace('"TextMatch", "contains": "a"', '"Python", "function": "broken_shop:judge"')
    (tmp_path / "shop.suite.yaml").write_text(judged)
    (tmp_path / "broken_shop.py").write_text(
        "def answer(prompt): return 'yes'\ndef judge(value):\n    print('so')\n    return {}[value]\n"
    )
    command = [installed / "agenteval", "run", "shop.suite.yaml", "--trust", "--db", "h.db"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    app = app_on(tmp_path, tmp_path / "h.db")
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot)
        assert "broken_shop.py:4 in judge" in text_of(app)  # in the evidence
        await pilot.press("exclamation_mark")
        await settle(pilot)
        assert screen.pane == "error"
        assert "raised by the function broken_shop:judge, for the criterion Says it" in text_of(app)
        assert screen.error.frame is not None
        assert (screen.error.frame.line, screen.error.frame.function) == (4, "judge")
