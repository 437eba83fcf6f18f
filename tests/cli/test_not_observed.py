"""What nobody could see is said first and once, and is an error wherever runs are counted, never a pass or a fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SUITE = """\
name: Unseen
agent: mine
agents:
  mine: {kind: command, command: "echo It is Paris"}
tests:
  - id: a
    prompt: Where?
    criteria: &both
      - name: No refund
        prototype_class: ToolResponse
        config_uxon: {metrics: [{type: ToolCheck, tools: [{name: refund, required: false, max_calls: 0}]}]}
      - name: Names Paris
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: Paris}]}
  - {id: b, prompt: And now?, criteria: *both}
  - {id: c, prompt: Sure?, criteria: *both}
"""
REASON = "its tool calls are not known: it gives only a text (standard output)"
REMEDY = "set `capture: model`"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "unseen.suite.yaml"
    path.write_text(SUITE, "utf-8")
    return path


def test_run_names_it_first_and_explains_it_once(cli: Any, suite: Path) -> None:
    ran = cli("run", suite, "--trust")
    assert ran.code == 3 or ran.code == 1
    lines = ran.out.splitlines()
    summary = lines[lines.index("") + 1 :]
    assert summary[0].startswith(f"not checked in 3 runs: No refund: {REASON}")
    assert REMEDY in summary[0]
    before = lines[: lines.index("")]
    assert sum(REASON in line for line in before) == 1
    assert sum("No refund: not checked  (as before)" in line for line in before) == 2
    assert "Names Paris" not in ran.out


def test_it_is_an_error_wherever_runs_are_counted(cli: Any, suite: Path) -> None:
    cli("run", suite, "--trust")
    cli("run", suite, "--trust")
    stats = cli("stats", "--json").json("stats")
    assert stats["overall"]["n"] == 0
    assert stats["overall"]["errors"] == 3
    assert stats["overall"]["pass_rate"] is None
    assert stats["overall"]["steps"] == {"p50": None, "p95": None}
    causes = cli("causes").out
    assert "No refund: not checked: the agent gives only a text" in causes
    (cause,) = cli("causes", "--json").json("causes")["causes"]
    assert cause["kind"] == "error"
    first, second = (one["execution"] for one in cli("history", "--json").json("history")[:2])
    compared = cli("compare", second, first, "--json").json("compare")
    assert compared["counts"] == {"undecided": 3}
    assert compared["overall"]["pass_rate"] is None


def test_nothing_says_that_it_called_no_tool(cli: Any, suite: Path) -> None:
    cli("run", suite, "--trust")
    (run, *_) = cli("history", "--runs", "--json").json("history-runs")
    shown = cli("show", run["run"], "--transcript").out
    assert "2 messages, tool calls not known" in shown
    assert "0 tool calls" not in shown


def test_the_transcript_of_an_execution_of_one_run_is_that_of_its_run(cli: Any, suite: Path) -> None:
    cli("run", suite, "--trust", "--test", "a")
    (single,) = cli("history", "--json").json("history")
    assert "2 messages, tool calls not known" in cli("show", single["execution"], "--transcript").out
    assert "Where?" in cli("show", "last", "--transcript").out
    cli("run", suite, "--trust")
    three = cli("history", "--json").json("history")[0]["execution"]
    assert "has 3 runs" in cli("show", three, "--transcript").err
