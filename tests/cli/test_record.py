"""`agenteval record`: a program behind the proxy, recorded, graded, and replayed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer
from threaded import serving

from agenteval_tui.agents.recording.matching import PATTERNS
from agenteval_tui.cli.commands.record import VOLATILE
from agenteval_tui.core import directories
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.model import ForkOrigin, read_origin

# An agent with no package at all: it starts in a tenth of the time of one with a client.
PROGRAM = """\
import json, os, sys, time, urllib.request, urllib.error
def ask(messages):
    body = {"model": "m", "messages": messages, "user": str(time.time())}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    try:
        return json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        sys.exit(json.load(error)["error"]["message"])
said = [{"role": "system", "content": "now: %s" % time.time_ns()}, {"role": "user", "content": sys.argv[1]}]
while True:
    said.append(ask(said))
    for call in said[-1].get("tool_calls") or ():
        said.append({"role": "tool", "tool_call_id": call["id"], "content": "shipped"})
    if said[-1]["role"] == "assistant":
        break
print("the answer:", said[-1]["content"])
"""
SUITE = """\
name: Orders
agent: none
agents:
  none: {kind: command, command: ["false"]}
tests:
  - id: status
    prompt: "Where is my order #W1?"
    criteria:
      - name: Looks it up
        prototype_class: ToolResponse
        config_uxon: {metrics: [{type: ToolCheck, tools: [{name: get_order, arguments: {order: W1}}]}]}
      - name: Names the order
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: W1}]}
  - id: whale
    prompt: "Where is my order #W1?"
    criteria:
      - name: Names a whale
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: whale}]}
  - id: rows
    prompt: "{{q}}"
    dataset: {file: rows.csv}
    criteria:
      - name: Names a whale
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: whale}]}
"""
ROOT = Path(__file__).resolve().parents[2]
KEY = "planted-key-of-the-user-0001"


def answer(request: Request) -> Answer:
    """A model that looks the order up first."""
    said = request.json["messages"]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    message: dict[str, Any] = {"role": "assistant", "content": f"Order W1 is {said[-1]['content']}."}
    if said[-1]["role"] == "user":
        function = {"name": "get_order", "arguments": '{"order": "W1"}'}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        }
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return Answer(body=json.dumps({"model": "gpt-4o", "choices": [choice], "usage": usage}))


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ScriptedServer]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(PROGRAM, "utf-8")
    (tmp_path / "orders.suite.yaml").write_text(SUITE, "utf-8")
    (tmp_path / "rows.csv").write_text("q\na\nb\n", "utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def agent(question: str = "Where is my order #W1?") -> tuple[str, ...]:
    return ("--", sys.executable, "-I", "-S", "agent.py", question)


def test_a_program_is_recorded_graded_and_replayed_without_a_server(
    cli: Any, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = cli("record", "--json", "--suite", "orders.suite.yaml", "--test", "status", "--cassette", "c.jsonl",
               "--calibrate", *agent())  # fmt: skip
    found = done.json("record")
    assert (done.code, found["outcome"], found["requests"], found["live"]) == (0, "passed", 2, 2)
    assert found["cost"] == pytest.approx(2 * (1000 * 2.5 + 100 * 10) / 1e6)
    assert found["volatile"] == [{"at": "messages[*].content", "like": "number"}] or found["volatile"][0]["like"] in (
        "hex", "number",
    )  # fmt: skip
    assert len(model.requests) == 2  # the second time nobody was asked
    history = directories.history_file(None)
    with Store.open_to_look(history) as store:
        row, transcript = store.run(found["run"]), store.transcript(found["run"])
    assert [one.role for one in transcript.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert transcript.final_output == "Order W1 is shipped."
    assert (row.test_id, row.agent.endswith("agent.py Where is my order #W1?")) == ("status", True)
    kept = (tmp_path / "c.jsonl").read_bytes() + history.read_bytes()
    assert KEY.encode() not in kept

    model.requests.clear()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # nothing is there
    again = cli(
        "record", "--test", "status", "--suite", "orders.suite.yaml", "--cassette", "c.jsonl", "--replay", *agent()
    )
    assert again.code == 0
    assert "2 answered from the cassette" in again.out
    assert model.requests == []

    missed = cli("record", "--cassette", "c.jsonl", "--replay", *agent("Where is order 2?"))
    assert missed.code == 3
    assert "nearest is request 1, which differs: messages[1].content" in missed.out
    assert 'recorded "Where is my order #W1?", now "Where is order 2?"' in missed.out


def test_live_after_a_miss_adds_to_the_cassette(cli: Any, model: Any) -> None:
    assert cli("record", "--cassette", "c.jsonl", "--calibrate", *agent()).code == 0
    model.requests.clear()
    done = cli("record", "--cassette", "c.jsonl", "--replay", "--live-after-miss", *agent("And another one?"))
    assert done.code == 0
    assert len(model.requests) == 2
    again = cli("record", "--cassette", "c.jsonl", "--replay", *agent("And another one?"))
    assert (again.code, len(model.requests)) == (0, 2)


def test_what_was_paid_for_is_kept_when_the_recording_is_killed(cli: Any, model: Any, tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    # As kill -9 in the middle: agenteval, its child's parent, is gone before it writes anything.
    kept = "open('c.jsonl.partial').read().count(chr(10)) == 2"
    kill = f"while not {kept}: time.sleep(0.01)\n    os.kill(os.getppid(), 9); sys.exit()"
    program.write_text(PROGRAM.replace("    for call in", f"    {kill}\n    for call in"), "utf-8")
    words = [sys.executable, "-m", "agenteval_tui", "record", "--cassette", "c.jsonl"]
    killed = subprocess.run([*words, *agent()], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "c.jsonl").exists()
    assert KEY not in (tmp_path / "c.jsonl.partial").read_text("utf-8")
    assert len(model.requests) == 1
    program.write_text(PROGRAM.replace("time.time_ns()", "0"), "utf-8")
    left = tmp_path / "c.jsonl.partial"
    left.write_text(re.sub(r"now: \d+", "now: 0", left.read_text("utf-8")), "utf-8")
    done = cli("record", "--cassette", "c.jsonl", *agent())
    assert (done.code, len(model.requests)) == (0, 2)
    assert "continuing a recording that was cut off after 1 answer" in done.err
    assert not left.exists()
    assert cli("record", "--cassette", "c.jsonl", "--replay", *agent()).code == 0
    assert len(model.requests) == 2


def test_a_new_test_is_made_of_it_and_grades_the_next_one(cli: Any, model: Any, tmp_path: Path) -> None:
    done = cli("record", "--new", *agent())
    assert done.code == 0
    assert "new test where-is-my-order-w1 in recorded.suite.yaml" in done.out
    assert cli("validate", "recorded.suite.yaml").code == 0
    again = cli("record", "--suite", "recorded.suite.yaml", "--test", "where-is-my-order-w1", *agent())
    assert again.code == 0
    assert "1 passed of 1 run" in again.out
    # One more in the same file.
    assert "where-is-my-order-w1-2" in cli("record", "--new", "--suite", "recorded.suite.yaml", *agent()).out


def test_how_it_ended_is_the_exit_code(cli: Any, model: Any) -> None:
    assert cli("record", "--suite", "orders.suite.yaml", "--test", "whale", *agent()).code == 1
    assert cli("record", "--", sys.executable, "-c", "raise SystemExit(4)").code == 3
    silent = cli("record", "--", sys.executable, "-I", "-S", "-c", "pass")
    assert silent.code == 0
    assert "no request was seen: it does not read OPENAI_BASE_URL" in silent.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--replay", *agent()), 2, "--replay needs --cassette FILE"),
        (("--pace", "1", *agent()), 2, "--pace goes with --replay"),
        (("--new", "--test", "x", *agent()), 2, "give --test for a test that is there"),
        (("--calibrate", "--replay", "--cassette", "c", *agent()), 2, "--calibrate goes with a new recording"),
        (("--volatile", "date", *agent()), 2, "--volatile goes with --replay"),
        (("--cassette", "none.jsonl", "--replay", *agent()), 2, "there is no such cassette"),
        (("--upstream", "openai", *agent()), 2, "write NAME=URL"),
        (("--upstream", "nobody=http://x", *agent()), 2, "there is no provider 'nobody'"),
        (("--upstream", "openai=ftp://x", *agent()), 2, "is not the address of a server"),
        (("--suite", "orders.suite.yaml", "--test", "rows", *agent()), 2, "a recording is one run, and these are 2"),
        (("--suite", "orders.suite.yaml", "--test", "nothing", *agent()), 2, "nothing"),
        (("--", "no-such-program-anywhere"), 2, "there is no program 'no-such-program-anywhere' in PATH"),
        ((), 2, "PROGRAM"),
    ],
)
def test_wrong_use_is_said_in_one_sentence(cli: Any, model: Any, arguments: Any, code: int, words: str) -> None:
    done = cli("record", *arguments)
    assert done.code == code
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_run_is_replayed_up_to_the_change_and_goes_live_from_there(cli: Any, model: Any, tmp_path: Path) -> None:
    first = cli("record", "--json", "--calibrate", "--suite", "orders.suite.yaml", "--test", "status", *agent()).json(
        "record"
    )
    model.requests.clear()
    same = cli("replay", first["run"], *agent())
    assert (same.code, model.requests) == (0, [])
    assert "nothing changed: every request was answered from the recording" in same.out

    program = tmp_path / "agent.py"
    program.write_text(PROGRAM.replace('"shipped"', '"lost"'), "utf-8")
    done = cli("replay", "--json", first["run"], *agent()).json("record")
    assert len(model.requests) == 1  # the first answer came from the recording
    assert (done["outcome"], done["requests"], done["live"], done["fork_of"], done["step"]) == (
        "passed", 2, 1, first["run"], 2
    )  # fmt: skip
    with Store.open_to_look(directories.history_file(None)) as store:
        row = store.run(done["run"])
        assert [one.id for one in store.forks_of(first["run"])][-1] == done["run"]
        assert store.transcript(row.id).final_output == "Order W1 is lost."
        assert read_origin(row.fork_of, row.fork) == ForkOrigin(first["run"], 2, purpose="tape")
        assert store.execution(row.execution_id).kind == "fork"
        assert len(store.tape(row.id)) == 3
        assert row.cost == pytest.approx((1000 * 2.5 + 100 * 10) / 1e6)  # what came from the recording costs nothing
    told = cli("replay", first["run"], *agent())
    assert "request 2 is another one: live from there" in told.out
    assert 'messages[3].content: recorded "shipped", now "lost"' in told.out
    assert "it was passed, and is passed now" in told.out
    # A replay can be replayed; and the run is what it was.
    assert cli("replay", done["run"], *agent()).code == 0
    assert "shipped" in cli("show", first["run"], "--transcript").out


def test_a_run_of_an_agent_that_is_captured_is_replayed(cli: Any, model: Any, tmp_path: Path) -> None:
    words = json.dumps([sys.executable, "-I", "-S", "agent.py", "Where is my order #W1?"])
    suite = SUITE.replace('{kind: command, command: ["false"]}', f"{{kind: command, command: {words}, capture: model}}")
    (tmp_path / "captured.suite.yaml").write_text(suite, "utf-8")
    ran = cli("run", "captured.suite.yaml", "--test", "status", "--trust", "--json", "-").json("results")
    (run,) = ran["runs"]
    assert run["outcome"] == "passed"
    assert [one["name"] for one in run["tool_calls"]] == ["get_order"]
    assert run["usage"]["cost"] == pytest.approx(0.007)
    (tmp_path / "agent.py").write_text(PROGRAM.replace('"shipped"', '"lost"'), "utf-8")
    done = cli("replay", "--json", "--volatile", "number", "--volatile", "hex", "status", *agent()).json("record")
    assert (done["outcome"], done["live"], done["step"]) == ("passed", 1, 2)


def test_a_recording_without_a_test_is_replayed_too(cli: Any, model: Any) -> None:
    first = cli("record", "--json", *agent()).json("record")
    model.requests.clear()
    done = cli("replay", "--json", "--volatile", "number", "--volatile", "hex", first["run"], *agent()).json("record")
    assert (model.requests, done["live"], done["outcome"]) == ([], 0, "skipped")
    changed = cli("replay", first["run"], *agent())
    assert "request 1 is another one: live from there" in changed.out
    assert len(model.requests) == 2


def test_a_run_without_a_recording_is_not_replayed(cli: Any, model: Any, suite: Path) -> None:
    cli("run", suite, "--test", "good")
    done = cli("replay", "good", *agent())
    assert done.code == 2
    assert "was not kept" in done.err
    assert "agenteval record" in done.err


def test_the_help_names_what_can_vary() -> None:
    assert set(VOLATILE) == set(PATTERNS)
