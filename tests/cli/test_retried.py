"""A run that was retried says what happened to its earlier attempts, also when it passed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

AGENT = """\
import json, pathlib, sys
sys.stdin.read()
tried = pathlib.Path("tried")
if tried.exists():
    print("well")
else:
    tried.touch()
    print(json.dumps({"type": "error", "message": "db locked", "kind": "server", "retry": True}))
"""
SUITE = """\
name: Retried
agent: mine
agents:
  mine: {kind: command, command: [PYTHON, agent.py]}
tests:
  - id: once
    prompt: Hello
    criteria:
      - name: Answers
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: well}]}
"""


def test_what_failed_before_stands_above_the_transcript(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    suite, db = tmp_path / "retried.suite.yaml", tmp_path / "h.db"
    suite.write_text(SUITE.replace("PYTHON", sys.executable))
    assert cli("run", suite, "--db", db, "--trust").code == 0
    for options in ([], ["--transcript"]):
        (line,) = [line for line in cli("show", "once", "--db", db, *options).out.splitlines() if "attempt" in line]
        assert line.startswith("attempt 1 failed after ")
        assert line.endswith(": db locked")
