"""`agenteval fork`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.suites.load import load_suite

SUITE = """
name: Shop
agent: shop
agents:
  shop: {kind: demo, pace: 0}
  model: {kind: openai, base_url: "http://127.0.0.1:9/v1", model: m, system: be kind, price: {input: 1, output: 1}}
  played: {kind: replay, transcripts: {order: [{role: user, content: hi}, {role: assistant, content: ho}]}}
tests:
  - id: order  # the first
    name: Where it is
    prompt: "Where is my order #W1042?"
    criteria:
      - name: Asks for the right order
        prototype_class: ToolResponse
        config_uxon: |
          {"metrics": [{"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"order_id": "#W1042"}}]}]}
"""
RIGHT = 'arguments={"order_id": "#W1042"}'
SWEEP = """
- {label: right, arguments: {order_id: "#W1042"}}
- {label: fails, at: 3, tool_error: nobody answers}
"""


@pytest.fixture
def suite(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "shop.suite.yaml"
    path.write_text(SUITE, "utf-8")
    assert cli("run", path).code == 1
    return path


def test_from_a_failure_to_a_pass(cli: Any, suite: Path, tmp_path: Path) -> None:
    price = cli("fork", "order", "--at", 2, "--set", RIGHT, "--price")
    assert price.out.startswith("5 continuations, about 5 requests")
    asked = cli("fork", "order", "--at", 3, "--set", RIGHT, "-n", 2)
    assert asked.code == 0
    assert asked.out.count("✓ passed") == 2
    assert 'step 2: arguments {"order_id":"#W' in cli("fork", "order").out
    (tmp_path / "sweep.yaml").write_text(SWEEP, "utf-8")
    shown = cli("fork", "order", "--at", 2, "--sweep", "sweep.yaml", "-n", 3, "--json").json("fork")
    right, fails = shown["branches"]
    assert (shown["asked"], shown["pass_rate"]["passed"], shown["status"]) == (4, 0, "failed")
    assert [one["known"] for one in right["continuations"]] == [True, True, False]
    assert (right["label"], right["step"], right["edits"][0]["value"]) == ("right", 2, {"order_id": "#W1042"})
    assert (right["pass_rate"]["passed"], right["pass_rate"]["decided"], right["pass_rate"]["low"]) == (3, 3, None)
    assert (fails["edits"][0]["change"], fails["edits"][0]["step"], fails["pass_rate"]["rate"]) == (
        "tool_error",
        3,
        0.0,
    )
    assert fails["continuations"][0]["failed"] == ["Asks for the right order"]
    stored = cli("fork", "order", "--json").json("fork")
    assert [len(one["continuations"]) for one in stored["branches"]] == [3, 3]
    assert stored["execution"] == ""
    known = cli("fork", "order", "--at", 2, "--set", RIGHT, "-n", 1, "--price")
    assert "all these continuations are already stored" in known.out

    # What `last` and the rest mean is as before.
    assert [one["kind"] for one in cli("history", "--json").json("history")] == ["fork", "fork", "run"]
    assert json.loads(cli("show", "--json").out)["kind"] == "run"
    continued = cli("history", "kind:fork", "--runs", "--json").json("history-runs")
    assert len(continued) == 6
    one = json.loads(cli("show", continued[0]["run"], "--json").out)
    assert one["fork_of"]["run"] == shown["run"]
    assert "continues run" in cli("show", continued[0]["run"]).out

    # Exported and imported again they are forks, too.
    for name in ("openai", "otel"):
        target = tmp_path / f"{name}.out"
        assert cli("export", shown["execution"], target, "--format", name).code == 0
        assert cli("import", target).code == 0
        back = json.loads(cli("history", "--json").out)[0]
        assert back["kind"] == "fork"
        runs = json.loads(cli("show", back["execution"], "--json").out)["runs"]
        assert {one["fork_of"]["run"] for one in runs} == {shown["run"]}
    assert json.loads(cli("show", "--json").out)["kind"] == "run"


def test_a_fork_is_kept_as_a_test(cli: Any, suite: Path) -> None:
    kept = cli("fork", "order", "--at", 2, "--set", RIGHT, "-n", 1, "--save-test", "found")
    assert "saved as test found" in kept.err
    assert suite.read_text("utf-8").startswith(SUITE.rstrip("\n"))
    loaded = load_suite(suite)
    assert loaded.suite is not None
    assert [test.id for test in loaded.suite.tests] == ["order", "found"]
    assert cli("run", suite, "--test", "found").code == 0
    again = cli("fork", "order", "--at", 2, "--set", RIGHT, "-n", 1, "--save-test", "found")
    assert again.code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--at", 99), "this run has no step 99"),
        (("--at", 1, "--set", "tool_result=x"), "has no result of a tool"),
        (("--at", 2, "--set", "text"), "--set takes NAME=VALUE"),
        (("--at", 2, "--set", "color=red"), "NAME is one of"),
        (("--at", 2, "--set", "arguments={"), "these arguments are not JSON (write an object"),
        (("--at", 2, "--set", "text=@nothing.txt"), "there is no such file"),
        (("--set", "text=x"), "no step was given"),
        (("--at", 2, "--insert", "hello"), "ROLE=TEXT"),
        (("--at", 2, "--sweep", "shop.suite.yaml"), "a sweep is a list"),
        (("--system", "hi", "-n", 1, "--save-system"), "has no system prompt in its configuration"),
        (("--at", 2, "--set", "text=x", "--save-system"), "did not change the system prompt"),
        (("--at", 2, "--sweep", "sweep.yaml", "--save-test", "new"), "only one branch can be saved as a test"),
    ],
)
def test_what_can_not_be_is_said_in_a_sentence(cli: Any, suite: Path, words: tuple[object, ...], said: str) -> None:
    suite.with_name("sweep.yaml").write_text(SWEEP, "utf-8")
    refused = cli("fork", "order", *words)
    assert refused.code == 2
    assert said in refused.err
    assert len(cli("history", "--json").json("history")) == 1, "nothing was asked"


@pytest.mark.parametrize(
    "words",
    [
        ("--at", 2, "--set", "text=a \udcff"),
        ("--at", 3, "--set", "tool_result=\udcff"),
        ("--system", "a \udcff"),
        ("--at", 2, "--set", 'arguments={"a": "\\ud83d", "b": NaN}'),
    ],
)
def test_words_that_are_not_utf_8_are_asked_and_known_again(cli: Any, suite: Path, words: tuple[object, ...]) -> None:
    asked = cli("fork", "order", *words, "-n", 1, "--json").json("fork")
    assert asked["asked"] == 1
    again = cli("fork", "order", *words, "-n", 1, "--json").json("fork")
    assert again["asked"] == 0
    assert again["branches"][0]["edits"] == asked["branches"][0]["edits"]
    assert again["branches"][0]["edits"]


def test_a_sweep_that_is_not_yaml_is_said_with_its_place(cli: Any, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text("- {at: 2, text: x}\n- {at: 3, tool_result: [}\n", "utf-8")
    refused = cli("fork", "order", "--sweep", "sweep.yaml")
    assert refused.code == 2
    assert "sweep.yaml:2" in refused.err


def test_another_agent_continues(cli: Any, suite: Path) -> None:
    assert cli("run", suite, "--agent", "played").code in (0, 1)
    refused = cli("fork", "order", "--at", 1, "-n", 1)
    assert refused.code == 2
    assert "let an agent that answers continue it: `agenteval fork RUN --agent NAME`" in refused.err
    done = cli("fork", "order", "--at", 1, "-n", 2, "--agent", "shop", "--json").json("fork")
    (branch,) = done["branches"]
    assert (branch["label"], len(branch["continuations"])) == ("agent shop", 2)
    run = cli("show", branch["continuations"][0]["run"], "--json").json("run")
    assert (run["agent"], run["tool_calls"][0]["name"] if run["tool_calls"] else "") == ("shop", "")
    # Its answers are answers to a question of its own, and are not asked for again.
    assert "already stored" in cli("fork", "order", "--at", 1, "-n", 2, "--agent", "shop", "--price").out
    unknown = cli("fork", "order", "--at", 1, "--agent", "shopp")
    assert (unknown.code, 'there is no agent "shopp"' in unknown.err, "shop" in unknown.err) == (2, True, True)


def test_an_agent_continues_what_was_imported(cli: Any, suite: Path, tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "W1"}'}}
    messages = [
        {"role": "user", "content": "Where is my order #W1042?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": '{"status": "lost"}'},
        {"role": "assistant", "content": "It is lost."},
    ]
    (tmp_path / "heard.json").write_text(json.dumps({"messages": messages}), "utf-8")
    assert cli("import", "heard.json").code == 0
    run = cli("history", "--runs", "--json").json("history-runs")[0]["run"]
    assert "this run was imported" in cli("fork", run, "--at", 3).err
    done = cli("fork", run, "--at", 3, "-n", 1, "--agent", "shop", "--yes", "--json")
    assert "the run has no criteria" in done.err
    made = done.json("fork")["branches"][0]["continuations"][0]["run"]
    told = cli("show", made, "--json").json("run")
    assert (told["agent"], told["outcome"]) == ("shop", "passed")
    assert told["final_output"] not in ("", "It is lost.")
    assert 'there is no agent "nobody"' in cli("fork", run, "--at", 3, "--agent", "nobody").err


def test_a_tool_that_is_gone_is_said(cli: Any, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Oracle, "gone_tools", lambda self, conversation: (("get_order",), ("fly", "walk")))
    done = cli("fork", "order", "--at", 2, "--set", RIGHT, "-n", 1, "--json")
    assert done.code == 0
    assert "the agent called get_order in this run, but has fly and walk now" in done.err


def test_who_is_asked_and_what_it_costs(cli: Any, suite: Path) -> None:
    assert cli("run", suite, "--agent", "played").code in (0, 1)
    refused = cli("fork", "order", "--at", 1)
    assert (
        "agent 'played' of kind replay: this agent can't continue a conversation: it repeats recordings" in refused.err
    )
    assert "let an agent that answers continue it" in refused.err
    assert cli("run", suite, "--agent", "model").code == 3
    dear = cli("fork", "order", "--at", 1)
    assert dear.code == 2
    assert "--max-cost USD" in dear.err
    broken = cli("fork", "order", "--system", "be brief", "-n", 1, "--max-cost", 1, "--save-system")
    assert broken.code == 3
    assert "✗" not in broken.out
    assert "system: be brief" in suite.read_text("utf-8")
    assert suite.read_text("utf-8") == SUITE.replace("system: be kind", "system: be brief")


def test_from_python(cli: Any, suite: Path) -> None:
    import agenteval_tui

    forks = agenteval_tui.fork("order", at=3, arguments={"order_id": "#W1042"}, n=2)
    (branch,) = forks.branches
    assert (branch.passed, branch.decided, forks.cost) == (2, 2, 0.0)
    assert branch.interval is None  # two are too few
    assert [run.passed for run in branch.runs] == [True, True]
    assert "2/2" in str(forks)
    assert forks.run.test == "order"
    swept = agenteval_tui.fork(forks.run, sweep=[{"at": 3, "tool_error": "down", "label": "down"}], n=1)
    assert [one.name for one in swept.branches] == ["down"]


def test_continuations_that_all_end_in_an_error_are_no_success(cli: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    agent = '{kind: python, callable: "asker.py:ask"}'
    (tmp_path / "asker.py").write_text("def ask(prompt): return 'It is on its way.'\n", "utf-8")
    (tmp_path / "shop.suite.yaml").write_text(SUITE.replace("{kind: demo, pace: 0}", agent), "utf-8")
    cli("run", "shop.suite.yaml", "--trust")
    forked = cli("fork", "order", "--at", 2, "--insert", "user=And when?", "-n", 1, "--trust", "--yes")
    assert (forked.code, "takes only the prompt" in forked.out) == (3, True)
