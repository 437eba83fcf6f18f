"""Two apps and a headless run on one history at the same time, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from terminal import Terminal

from agenteval_tui.history.maintenance import check
from agenteval_tui.history.store import Store

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

AGENTEVAL = str(Path(sys.executable).with_name("agenteval"))
SUITE = """\
name: Orders
agent: shop
agents:
  shop: {kind: demo, version: v1, pace: 0}
tests:
  - id: where-is-it
    prompt: "Where is my order #W1042?"
    repeat: 3
    criteria:
      - {name: Names it, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: W1042}]}}
"""


def app(suite: Path, db: Path) -> Terminal:
    return Terminal([sys.executable, "-m", "agenteval_tui", "--db", str(db), str(suite)], columns=100, rows=24)


def in_history(terminal: Terminal) -> bool:
    return "what it answered" in terminal.text and "3 runs" in terminal.text


def test_each_sees_what_the_others_do(tmp_path: Path) -> None:
    suite, db = tmp_path / "orders.suite.yaml", tmp_path / "history.db"
    suite.write_text(SUITE, "utf-8")
    with app(suite, db) as one, app(suite, db) as other:
        one.wait_for("where-is-it")
        other.wait_for("where-is-it")
        # All three write now: two by themselves, and a run without a terminal.
        headless = subprocess.Popen(
            [AGENTEVAL, "--db", str(db), "run", str(suite), "--json", "-"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        one.send("r")
        other.send("r")
        out, err = headless.communicate(timeout=250)
        assert headless.returncode == 0, err.decode()
        assert b'"finished"' in out
        for terminal in (one, other):
            # It is quick: the Run screen, or the history when it was over before the app came to watch.
            terminal.wait_for(lambda shown: "3 of 3" in shown.text or in_history(shown))
            terminal.send("\x1b" if in_history(terminal) else "5")
            terminal.wait_for("3 executions")
        # What one takes away the other finds gone when it looks again.
        one.send("x")
        one.wait_for("Delete 1 execution with 3 runs?")
        one.send("y")
        one.wait_for("2 executions")
        other.send("\x12")
        other.wait_for("2 executions")
        for terminal in (one, other):
            terminal.send("q")
            terminal.wait_for_end()
    found = check(db, deep=True)
    assert (found.damage, found.wrong) == ((), ())
    with Store.open(db) as store:
        assert [row.passed for row in store.executions()] == [3, 3]
