"""An execution on a disk that fills up: the true cause, once, what is kept, and that it can be taken up again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from terminal import Terminal

pytestmark = pytest.mark.e2e

SUITE = """
name: big
agents:
  big:
    kind: command
    command: [od, -An, -v, -tx1, -N40000, /dev/urandom]
    output: text
agent: big
tests:
  - id: good
    prompt: hello
    repeat: 40
    criteria:
      - {name: any, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: a}]}}
"""


@pytest.mark.sweep
@pytest.mark.parametrize("on_a_terminal", [False, True])
def test_a_full_disk_is_the_cause_once_and_the_rest_is_resumed(
    small_disk: Path, tmp_path: Path, installed: Path, on_a_terminal: bool
) -> None:
    subprocess.run(["mount", "-o", "remount,size=1m", str(small_disk)], check=True)
    suite = tmp_path / "big.suite.yaml"
    suite.write_text(SUITE, "utf-8")
    history = ["--db", str(small_disk / "h.db")]
    run = [*history, "run", str(suite), "--trust", "--concurrency", "2"]
    agenteval = str(installed / "agenteval")
    if on_a_terminal:
        with Terminal([sys.executable, "-m", "agenteval_tui", *run], columns=400) as terminal:
            terminal.wait_for_end()
            said = terminal.text
            code = terminal.exit_code()
    else:
        done = subprocess.run([agenteval, *run], capture_output=True, text=True, timeout=250, stdin=subprocess.DEVNULL)
        code, said = done.returncode, done.stdout + done.stderr
    assert code == 3
    assert said.count("the disk is full") == 1
    assert "process died" not in said
    assert "ended and" in said
    assert "agenteval resume" in said
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    words = [agenteval, *history, "resume", "last", "--trust"]
    again = subprocess.run(words, capture_output=True, text=True, timeout=250, stdin=subprocess.DEVNULL)
    assert again.returncode == 0, again.stderr
    assert "40 passed of 40 runs" in again.stdout
