"""An agent in a project whose files are called as modules of Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

SUITE = """\
name: Names
agent: bot
agents:
  bot: {kind: python, callable: "app/bot.py:answer"}
tests:
  - id: says
    prompt: hello
    criteria:
      - name: Says
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, equals: mine}]}
"""


@pytest.mark.parametrize("name", ["random", "logging", "uuid"])
@pytest.mark.parametrize("reads", [False, True])
def test_a_file_called_as_a_module_of_python_is_the_projects_alone(tmp_path: Path, name: str, reads: bool) -> None:
    app = tmp_path / "app"
    app.mkdir()
    (tmp_path / "names.suite.yaml").write_text(SUITE)
    (app / f"{name}.py").write_text("MINE = 'mine'\n")
    read = f"import {name}\ndef answer(prompt): return {name}.MINE\n"
    (app / "bot.py").write_text(read if reads else "def answer(prompt): return 'mine'\n")
    run = subprocess.run(
        [sys.executable, "-m", "agenteval_tui", "run", "names.suite.yaml", "--trust"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
