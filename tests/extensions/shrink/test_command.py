"""`agenteval shrink`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import agenteval_tui
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.suites.load import load_suite
from tests.cli.test_fork import SUITE

LONG = "Hello! I have a question about a parcel. Where is my order #W1042? I hope that you can help me. Thank you!"


@pytest.fixture
def suite(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "shop.suite.yaml"
    path.write_text(SUITE.replace("Where is my order #W1042?", LONG), "utf-8")
    assert cli("run", path).code == 1
    return path


def test_the_small_case_is_found_kept_and_not_paid_for_twice(cli: Any, suite: Path, tmp_path: Path) -> None:
    assert "about 24 to 180 continuations" in cli("shrink", "order", "--price").out
    first = cli("shrink", "order", "--json").json("shrink")
    (message,) = first["messages"]
    assert (first["ending"], first["minimal"], message["role"]) == ("shrunk", True, "user")
    assert "order" in message["content"]
    assert len(message["content"]) < len(LONG) / 3
    assert first["asked"] == first["continuations"] > 10
    again = cli("shrink", "order", "--save-test", "order-small")
    assert again.code == 0
    assert "are enough: “Asks for the right order” fails for the same cause in 5 of 5 continuations" in again.out
    assert "saved as test order-small" in again.err
    assert cli("shrink", "order", "--json").json("shrink")["asked"] == 0, "all of it is known"
    made = load_suite(suite).suite.tests[-1]
    assert (made.id, made.messages[0].content) == ("order-small", message["content"])
    assert "The smallest input found that fails as run" in made.description
    assert cli("run", suite, "--test", "order-small").code == 1, "it fails as the run did"


def test_it_runs_without_agenteval(cli: Any, suite: Path, tmp_path: Path) -> None:
    text = cli("shrink", "order", "--export", "python").out
    program = tmp_path / "p.py"
    program.write_text(text.replace("with urllib", "print(json.dumps(BODY))\nraise SystemExit\nwith urllib"), "utf-8")
    made = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert json.loads(made.stdout)["messages"][0]["role"] == "user"
    shell = cli("shrink", "order", "--export", "curl").out
    assert shell.startswith("# start `agenteval demo-server --port 8137`\ncurl -sS http://127.0.0.1:8137/v1/")
    assert subprocess.run(["sh", "-n"], input=shell, text=True, check=False).returncode == 0


REVIEWS = """
name: Shop
agent: shop
agents:
  shop: {kind: demo, pace: 0}
tests:
  - id: kettle
    prompt: What do customers say about the Aurora Kettle?
    criteria:
      - name: Gives nothing away
        prototype_class: ToolResponse
        config_uxon: '{"metrics": [{"type": "ToolCheck", "forbidden_tools": ["issue_voucher"]}]}'
"""


def test_tools_are_taken_out_and_left_out_by_hand(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "shop.suite.yaml"
    path.write_text(REVIEWS, "utf-8")
    cli("run", path)
    small = cli("shrink", "kettle", "--json", "--save-test", "small").json("shrink")
    names = ["search_products", "get_reviews", "issue_voucher"]
    assert [one["function"]["name"] for one in small["tools"]] == names
    assert ("describe_table" in small["without_tools"], small["minimal"]) == (True, True)
    shown = cli("shrink", "kettle").out
    assert "3 of its 11 tools are left." in shown
    assert " tool       issue_voucher" in shown
    exported = cli("shrink", "kettle", "--export", "curl").out
    assert '"without_tools": [\n    "describe_table"' in exported
    context = load_suite(path).suite.tests[-1].context
    assert context.without_tools == small["without_tools"]
    assert context.changed_tools["issue_voucher"].description == ""
    assert cli("run", path, "--test", "small").code == 1, "it fails as the run did"
    kept = cli("shrink", "kettle", "--keep-tools", "--json").json("shrink")
    assert (len(kept["tools"]), kept["without_tools"]) == (11, [])

    asked = cli("fork", "kettle", "--without-tool", "issue_voucher", "-n", 2, "--json").json("fork")
    (branch,) = asked["branches"]
    assert branch["edits"] == [{"change": "tools", "value": {"without_tools": ["issue_voucher"]}}]
    assert branch["pass_rate"]["passed"] == 2
    made = cli("fork", "kettle").out
    assert "without the tool issue_voucher" in made
    sweep = tmp_path / "tools.yaml"
    sweep.write_text("- {without_tools: [query]}\n- {without_tools: [issue_voucher], label: safe}\n", "utf-8")
    two = cli("fork", "kettle", "--sweep", sweep, "-n", 1, "--json").json("fork")
    assert [one["pass_rate"]["passed"] for one in two["branches"]] == [0, 1]
    (one,) = agenteval_tui.fork("kettle", without_tools=["issue_voucher"], n=1).branches
    assert (one.passed, one.name) == (1, "without the tool issue_voucher")
    assert [each["function"]["name"] for each in agenteval_tui.shrink("kettle").tools] == names
    typo = cli("fork", "kettle", "--without-tool", "issue_vouchers")
    assert "`without_tools` names 'issue_vouchers', and the agent has no such tool" in typo.err


def test_a_limit_stops_it_and_the_next_time_it_continues(
    cli: Any, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    ask = Oracle.ask

    def limited(oracle: Oracle, *given: Any, **named: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked > 4:
            oracle.stop()
        return ask(oracle, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Oracle, "ask", limited)
        stopped = cli("shrink", "order")
    assert stopped.code == 1
    assert "Stopped: it was stopped" in stopped.out
    rest = cli("shrink", "order", "--json").json("shrink")
    assert rest["ending"] == "shrunk"
    assert 0 < rest["asked"] < rest["continuations"], "what was asked before is known"


def test_what_cannot_be_shrunk_is_one_sentence(cli: Any, suite: Path) -> None:
    assert "criteria that failed: Asks for the right order" in cli("shrink", "order", "--criterion", "x").err
    assert "no step 40" in cli("shrink", "order", "--at", 40).err
    assert cli("shrink", "order", "--export", "curl", "--json").code == 2
    fork = cli("fork", "order", "--at", 2, "--set", 'arguments={"order_id": "#W1042"}', "-n", 1, "--json").json("fork")
    passed = fork["branches"][0]["continuations"][0]["run"]
    assert "nothing to shrink: this run is passed" in cli("shrink", passed).err
