"""`agenteval record`: a program behind the proxy, recorded, graded, and replayed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import prestarted
import pytest
from plain_client import POST
from scripted import Answer, Request, ScriptedServer
from threaded import serving

from agenteval_tui.agents.recording.cassette import Volatile
from agenteval_tui.agents.recording.exchange import Answer as Answered
from agenteval_tui.agents.recording.exchange import Exchange, Question
from agenteval_tui.agents.recording.playback import PaidAnswers
from agenteval_tui.api.runs import Run
from agenteval_tui.core import directories
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.model import ForkOrigin, read_origin
from agenteval_tui.runs.recorded_program import program_text
from agenteval_tui.runs.unfinished_recording import UnfinishedRecording

# An agent with no package at all: it starts in a tenth of the time of one with a client.
PROGRAM = (
    POST
    + """\
import sys, time
def ask(messages):
    body = {"model": "m", "messages": messages, "user": str(time.time())}
    status, reply = post("chat/completions", body, authorization="Bearer " + os.environ["OPENAI_API_KEY"])
    if status == 200:
        return reply["choices"][0]["message"]
    sys.exit(reply["error"]["message"])
said = [{"role": "system", "content": "now: %s" % time.time_ns()}, {"role": "user", "content": sys.argv[1]}]
while True:
    said.append(ask(said))
    for call in said[-1].get("tool_calls") or ():
        said.append({"role": "tool", "tool_call_id": call["id"], "content": "shipped"})
    if said[-1]["role"] == "assistant":
        break
print("the answer:", said[-1]["content"])
"""
)
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

    # What the model was asked, and how that changed.
    listed = cli("show", found["run"], "--request", "all")
    assert [line.split("  ")[-1] for line in listed.out.splitlines()] == ["first request", "2 messages added"]
    shown = cli("show", found["run"], "--request", "last", "--json").json("requests")
    assert [one["role"] for one in shown["requests"][0]["messages"]] == ["user", "assistant", "tool"]
    assert (shown["requests"][0]["since"], shown["requests"][0]["changes"][0]["description"]) == (1, "2 messages added")
    assert "shipped" in cli("show", found["run"], "--request", "2").out
    wrong = cli("show", found["run"], "--request", "3")
    assert wrong.code == 2
    assert "takes a number from 1 to 2, `last` or `all`, not '3'" in wrong.err
    assert cli("show", found["run"], "--request", "1", "--transcript").code == 2
    changes = cli("show", found["run"], "--request", "2", "--diff").out
    assert "since request 1\n  2 messages added\n" in changes
    assert '{"type": "function"' not in changes
    for given in (("--request", "2", "--diff", found["run"]), (found["run"], "--diff", "--request", "2")):
        assert cli("show", *given).out == changes
    assert "first request" in cli("show", found["run"], "--request", "all", "--diff").out
    for given in (("--request", "2", "--diff", "RUN"), ("--diff",)):
        assert cli("show", found["run"], *given).code == 2

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


FORGETS = """\
exec(open("agent.py").read().split("said =")[0])
told = [{"role": "user", "content": "My pet is a whale."}, {"role": "tool", "tool_call_id": "x", "content": "noted"}]
ask(told)
asked = [{"role": "user", "content": "order"}, {"role": "tool", "tool_call_id": "y", "content": "shipped"}]
print(ask(asked)["content"])
"""


@pytest.mark.parametrize("graded", [True, False])
def test_a_recording_keeps_the_commit_of_its_program(cli: Any, model: Any, tmp_path: Path, graded: bool) -> None:
    author = ("-c", "user.name=n", "-c", "user.email=n@example.com")
    for words in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    found = cli(
        "record", "--json", *(("--suite", "orders.suite.yaml", "--test", "status") if graded else ()), *agent()
    ).json("record")
    with Store.open_to_look(directories.history_file(None)) as store:
        (commit,) = store.execution(store.run(found["run"]).execution_id).commits
    assert (commit.commit, commit.of) == (head.strip(), ("agents",))


def test_why_says_what_the_model_no_longer_saw(cli: Any, model: Any, tmp_path: Path) -> None:
    (tmp_path / "forgets.py").write_text(FORGETS, "utf-8")
    program = ("--", sys.executable, "-I", "-S", "forgets.py")
    done = cli("record", "--json", "--suite", "orders.suite.yaml", "--test", "whale", *program)
    run = done.json("record")["run"]
    assert done.code == 1
    said = 'in request 2: starts over, without the 2 messages before; "whale" stood there'
    for verb in ("why", "show"):
        assert f"not seen by the model: {said}" in cli(verb, run).out
    blamed = 'from here on the model did not see "whale", which is in step 1'
    assert blamed in cli("blame", run).out
    assert blamed in str(cli("blame", run, "--json").json("blame")["decisive"])
    history = directories.history_file(None)
    with Store.open_to_look(history) as store:
        row = store.run(run)
    assert [len(request.messages) for request in Run(row, history).requests] == [2, 2]
    (lost,) = cli("why", run, "--json").json("why")["lost_from_sight"]
    assert (lost["request"], lost["kind"], lost["needed"]) == (2, "restarted", ["whale"])


def test_what_cost_almost_nothing_is_not_said_to_be_free(cli: Any, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    said = {"model": "gpt-4o", "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}]}
    with serving(lambda _: Answer(body=json.dumps({**said, "usage": usage}))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert "1 request, 0 tool calls, < $0.0001" in cli("record", *agent()).out


PAST = """
import http from 'node:http';
class Own extends http.Agent {}
const headers = { authorization: `Bearer ${process.env.OPENAI_API_KEY}` };
const asked = http.request('MODEL/chat/completions', { method: 'POST', headers, agent: new Own() });
asked.on('response', (response) => response.resume());
asked.end(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_what_a_program_for_node_asked_past_the_proxy_is_said(cli: Any, model: Any, tmp_path: Path) -> None:
    (tmp_path / "past.mjs").write_text(PAST.replace("MODEL", model.url), "utf-8")
    out = cli("record", "--", "node", "past.mjs").out
    assert "asked past the proxy: " + model.url.split("/")[2] in out


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
    killed = prestarted.run([*words, *agent()])
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "c.jsonl").exists()
    assert KEY not in (tmp_path / "c.jsonl.partial").read_text("utf-8")
    assert len(model.requests) == 1
    program.write_text(PROGRAM.replace("time.time_ns()", "0"), "utf-8")
    left = tmp_path / "c.jsonl.partial"
    left.write_text(re.sub(r"now: \d+", "now: 0", left.read_text("utf-8")), "utf-8")
    done = cli("record", "--cassette", "c.jsonl", *agent())
    assert (done.code, len(model.requests)) == (0, 2)
    assert "1 answer kept from a recording that was cut off: not paid for again" in done.err
    assert "nearest" not in done.out
    assert not left.exists()
    assert cli("record", "--cassette", "c.jsonl", "--replay", *agent()).code == 0
    assert len(model.requests) == 2


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Recordings leave behind what they leave after kill -9; where that is."""
    with monkeypatch.context() as patch:
        patch.setattr(UnfinishedRecording, "done", lambda self: None)
        patch.setattr("agenteval_tui.runs.unfinished_recording.owner_name", lambda: "")
        yield directories.data_dir() / "recordings"


def test_a_recording_without_a_cassette_goes_on_after_a_kill(
    cli: Any, model: Any, tmp_path: Path, killed: Path
) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM.replace("time.time_ns()", "0"), "utf-8")
    assert cli("record", *agent()).code == 0
    (left,) = killed.iterdir()
    assert (left.stat().st_mode & 0o077, KEY in left.read_text("utf-8")) == (0, False)
    text = left.read_text("utf-8")
    left.write_text(text[:-200], "utf-8")  # in the middle of a line, too
    done = cli("record", "--suite", "orders.suite.yaml", "--test", "status", *agent())
    assert (done.code, len(model.requests)) == (0, 3)
    assert "1 answer kept from a recording that was cut off: not paid for again" in done.err
    # After a second kill both have something.
    assert cli("record", *agent()).code == 0
    assert len(model.requests) == 3
    other = cli("record", *agent("And another one?"))
    assert (other.code, len(model.requests), other.err.count("known")) == (0, 5, 0)


@pytest.mark.parametrize("more", [(), ("--cassette", "c.jsonl")])
def test_a_recording_that_was_interrupted_goes_on(cli: Any, model: Any, tmp_path: Path, more: tuple[str, ...]) -> None:
    ends = 'said.append(ask(said)); os.path.exists("go") or os.kill(os.getpid(), 2)'
    text = PROGRAM.replace("time.time_ns()", "0").replace("said.append(ask(said))", ends)
    (tmp_path / "agent.py").write_text(text, "utf-8")
    assert cli("record", *more, *agent()).code == 3
    (tmp_path / "go").touch()
    done = cli("record", *more, *agent())
    assert (done.code, len(model.requests)) == (0, 2)
    assert "1 answer kept from a recording that was cut off: not paid for again" in done.err
    assert not list((directories.data_dir() / "recordings").glob("*"))
    assert not (tmp_path / "c.jsonl.partial").exists()
    assert cli("record", *agent()).code == 0
    assert len(model.requests) == 4


@pytest.mark.sweep
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_program_too_and_the_recording_is_stored(
    cli: Any, model: Any, tmp_path: Path, number: int
) -> None:
    hangs = 'said.append(ask(said)); open("pid", "w").write(str(os.getpid())); time.sleep(600)'
    (tmp_path / "agent.py").write_text(PROGRAM.replace("said.append(ask(said))", hangs), "utf-8")
    words = [sys.executable, "-m", "agenteval_tui", "record", *agent()]
    with prestarted.popen(words) as recording:
        pid = tmp_path / "pid"
        while not (pid.exists() and pid.read_text()):
            assert recording.poll() is None
            time.sleep(0.01)
        recording.send_signal(number)
        assert recording.wait(250) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    (run,) = json.loads(cli("history", "--runs", "--json").out)
    assert run["outcome"] == "cancelled"


@pytest.mark.parametrize("graded", [(), ("--suite", "orders.suite.yaml", "--test", "status")])
def test_a_stopped_recording_is_continued_by_its_command_and_not_by_resume(
    cli: Any, model: Any, tmp_path: Path, graded: tuple[str, ...]
) -> None:
    hangs = 'said.append(ask(said)); open("asked", "w"); os.path.exists("go") or time.sleep(600)'
    text = PROGRAM.replace("time.time_ns()", "0").replace("said.append(ask(said))", hangs)
    (tmp_path / "agent.py").write_text(text, "utf-8")
    command = ["record", *graded, *agent()]
    words = [sys.executable, "-m", "agenteval_tui", *command]
    with prestarted.popen(words, stdout=subprocess.PIPE, text=True) as recording:
        while not (tmp_path / "asked").exists():
            assert recording.poll() is None
            time.sleep(0.01)
        recording.send_signal(signal.SIGTERM)
        out, _ = recording.communicate(timeout=250)
    assert "the same command continues it, and does not pay for an answer again" in out
    assert "agenteval resume" not in out
    resumed = cli("resume", "last", "--trust")
    assert resumed.code == 2
    assert "a recording of a program can't be resumed" in resumed.err
    (tmp_path / "go").touch()
    assert cli(*command).code == 0
    assert len(model.requests) == 2


def test_what_a_new_recording_left_is_known_to_one_that_goes_on_with_the_cassette_before_it(
    cli: Any, model: Any, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM.replace("time.time_ns()", "0"), "utf-8")
    assert cli("record", "--cassette", "c.jsonl", *agent()).code == 0
    assert cli("record", "--cassette", "other.jsonl", *agent("And another one?")).code == 0
    (tmp_path / "other.jsonl").rename(tmp_path / "c.jsonl.partial")
    model.requests.clear()
    done = cli("record", "--cassette", "c.jsonl", "--replay", "--live-after-miss", *agent("And another one?"))
    assert "2 answers kept from a recording that was cut off" in done.err
    assert model.requests == []


def test_a_cassette_keeps_what_another_recording_added_meanwhile(cli: Any, model: Any, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM.replace("time.time_ns()", "0"), "utf-8")
    assert cli("record", "--cassette", "c.jsonl", *agent()).code == 0
    assert cli("record", "--cassette", "other.jsonl", *agent("And another one?")).code == 0
    meanwhile = "open('c.jsonl', 'a').writelines(open('other.jsonl').readlines()[1:])"
    (tmp_path / "agent.py").write_text(f"{PROGRAM}\n{meanwhile}".replace("time.time_ns()", "0"), "utf-8")
    more = ("record", "--cassette", "c.jsonl", "--replay", "--live-after-miss", *agent("A third?"))
    assert cli(*more).code == 0
    (tmp_path / "agent.py").write_text(PROGRAM.replace("time.time_ns()", "0"), "utf-8")
    model.requests.clear()
    for question in ("Where is my order #W1?", "And another one?", "A third?"):
        assert cli("record", "--cassette", "c.jsonl", "--replay", *agent(question)).code == 0
    assert model.requests == []


def waiting(
    folder: Path, *more: str, question: str = "Where is my order #W1?"
) -> prestarted.Prestarted | subprocess.Popen[str]:
    """A recording into c.jsonl whose program waits for the file `go` after its first answer; it has that when this
    returns."""
    waits = "said.append(ask(said)); open('asked', 'w').close()\n    while not os.path.exists('go'): time.sleep(0.01)"
    (folder / "slow.py").write_text(
        PROGRAM.replace("time.time_ns()", "0").replace("said.append(ask(said))", waits), "utf-8"
    )
    words = [sys.executable, "-m", "agenteval_tui", "record", "--cassette", "c.jsonl", *more, "--"]
    words += [sys.executable, "-I", "-S", "slow.py", question]
    running = prestarted.popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    kept = [folder / "c.jsonl.partial", folder / "asked"]
    while not all(one.exists() for one in kept) or kept[0].read_text("utf-8").count("POST") < 1:
        assert running.poll() is None
        time.sleep(0.01)
    return running


def test_a_recording_that_is_running_is_not_taken_for_one_that_was_cut_off(
    cli: Any, model: Any, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM.replace("time.time_ns()", "0"), "utf-8")
    running = waiting(tmp_path)
    refused = cli("record", "--cassette", "c.jsonl", *agent())
    assert (refused.code, len(model.requests)) == (2, 1)
    assert "another recording into this cassette is running" in refused.err
    (tmp_path / "go").touch()
    running.communicate()
    assert running.returncode == 0
    assert cli("record", "--cassette", "c.jsonl", "--replay", *agent()).code == 0
    assert len(model.requests) == 2


def test_two_recordings_add_to_a_cassette_at_the_same_time_and_keep_what_each_paid_for(
    cli: Any, model: Any, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM.replace("time.time_ns()", "0"), "utf-8")
    assert cli("record", "--cassette", "c.jsonl", *agent()).code == 0
    model.requests.clear()
    adds = ("--replay", "--live-after-miss")
    running = waiting(tmp_path, *adds, question="And a second?")
    done = cli("record", "--cassette", "c.jsonl", *adds, *agent("And a second?"))
    assert (done.code, len(model.requests)) == (0, 3)
    assert "1 other recording adds to c.jsonl now: its answers are not used yet" in done.err
    assert "cut off" not in done.err
    assert [one.name for one in tmp_path.glob("*.partial*")] == ["c.jsonl.partial"]
    running.kill()
    (tmp_path / "go").touch()  # its program outlives it
    running.communicate()
    # It is one that was cut off now.
    done = cli("record", "--cassette", "c.jsonl", *adds, *agent("And a third?"))
    assert done.code == 0
    assert "other recording" not in done.err
    assert not list(tmp_path.glob("*.partial*"))


@pytest.mark.parametrize("folder", [".", "", "..", "/", "sub"])
def test_a_folder_is_refused_as_a_cassette_before_anything_is_asked(
    cli: Any, model: Any, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "sub").mkdir()
    for more in ((), ("--replay",), ("--replay", "--live-after-miss")):
        refused = cli("record", "--cassette", folder, *more, *agent())
        assert (refused.code, model.requests) == (2, [])
        assert "folder" in refused.err or "directory" in refused.err


def test_a_cassette_in_a_folder_that_is_not_there_is_refused(cli: Any, model: Any, tmp_path: Path) -> None:
    refused = cli("record", "--cassette", "nowhere/c.jsonl", *agent())
    assert (refused.code, "nowhere" in refused.err, model.requests) == (2, True, [])
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_goes_while_the_folder_is_read_costs_no_paid_answer(
    cli: Any, model: Any, tmp_path: Path, killed: Path
) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM.replace("time.time_ns()", "0"), "utf-8")
    assert cli("record", *agent()).code == 0
    (left,) = killed.iterdir()
    for number in range(40):
        (killed / f"{left.name.partition('.')[0]}.{number}.jsonl").symlink_to("gone")
    model.requests.clear()
    assert cli("record", *agent()).code == 0
    assert model.requests == []


def test_an_answer_that_was_paid_for_is_given_once() -> None:
    question = Question("POST", "openai/v1/chat/completions", body={"messages": []})
    asked = [Answered(status, body=body) for status, body in [(429, "wait"), (200, "a"), (200, "b")]]
    paid = PaidAnswers([Exchange(question, one) for one in asked])
    found = [paid.take(question) for _ in range(3)]
    assert [one and one.body for one in found] == ["a", "b", None]
    assert paid.take(Question("POST", "openai/v1/embeddings")) is None


def test_an_answer_that_was_paid_for_is_known_when_the_clock_in_the_prompt_has_moved() -> None:
    now = datetime.now()
    later = now + timedelta(seconds=95)

    def asks(system: str, user: str = "Where is it?", tool: str = "", **more: Any) -> Question:
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": [{"type": "text", "text": user}]},
        ]
        messages += [{"role": "assistant", "content": None}, {"role": "tool", "content": tool}] if tool else []
        return Question("POST", "openai/v1/chat/completions", body={"messages": messages, **more})

    def known(before: Question, after: Question, *volatile: Volatile) -> bool:
        return PaidAnswers([Exchange(before, Answered(200))], volatile).take(after) is not None

    for said in ("It is %Y-%m-%dT%H:%M:%S.%fZ.", "%A, %B %d, %Y, %I:%M %p", "%d.%m.%Y %H:%M", "now: %s"):
        assert known(asks(now.strftime(said)), asks(later.strftime(said))), said
    assert known(asks("", f"at {time.time_ns()}"), asks("", f"at {time.time_ns() + 10**9}"))
    # What a person asks for is another day; what a tool gave is another result; another prompt is another one.
    assert not known(asks("", "the weather of 2031-01-01"), asks("", "the weather of 2031-01-02"))
    assert not known(asks("", tool=f"{now}"), asks("", tool=f"{later}"))
    assert not known(asks(f"{now} Be kind."), asks(f"{later} Be brief."))
    assert not known(asks("", "x 1"), asks("", "x 2"))
    assert known(asks("", "x 1"), asks("", "x 2"), Volatile("messages[*].content[*].text", "number"))
    # An equal request comes first.
    left = PaidAnswers([Exchange(asks(f"{one}"), Answered(200, body=f"{one}")) for one in (now, later)])
    assert [(left.take(asks(f"{later}")) or Answered(0)).body for _ in range(3)] == [f"{later}", f"{now}", None]


def test_a_replay_goes_on_after_a_kill(
    cli: Any, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: Path
) -> None:
    program = tmp_path / "agent.py"
    program.write_text(PROGRAM.replace("time.time_ns()", "0"), "utf-8")
    first = cli("record", "--json", *agent()).json("record")
    program.write_text(program.read_text("utf-8").replace('"shipped"', '"lost"'), "utf-8")
    assert cli("replay", first["run"], *agent()).code == 0
    assert len(model.requests) == 3
    again = cli("replay", "--json", "--max-cost", "1", first["run"], *agent()).json("record")
    assert len(model.requests) == 3
    # It says what it would have said: where it left the recording, and what it cost in all.
    assert (again["requests"], again["live"], again["step"], again["cost"]) == (2, 1, 2, pytest.approx(0.0035))
    assert [one["nearest"] for one in again["misses"]] == [2]


def test_what_a_recording_kept_is_gone_once_its_run_is_stored(cli: Any, model: Any) -> None:
    assert cli("record", *agent()).code == 0
    folder = directories.data_dir() / "recordings"
    assert list(folder.iterdir()) == []
    old = folder / "x.y.jsonl"
    old.write_text("", "utf-8")
    os.utime(old, (0, 0))
    assert cli("record", *agent()).code == 0
    assert not old.exists()


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


def test_a_new_test_and_its_runs_look_at_the_same_answer(cli: Any, model: Any, tmp_path: Path) -> None:
    """The program prints more than its model said."""
    assert cli("record", "--new", *agent()).code == 0
    done = cli("run", "recorded.suite.yaml", "--trust")
    with Store.open_to_look(directories.history_file(None)) as store:
        answers = [
            store.transcript(row.id).final_output
            for one in store.executions()
            for row in store.runs_of_execution(one.id)
        ]
    assert (done.code, answers) == (0, ["Order W1 is shipped."] * 2)


def test_the_command_of_a_run_has_the_prompt_that_its_agent_got(cli: Any, model: Any, tmp_path: Path) -> None:
    words = json.dumps([sys.executable, "-I", "-S", "agent.py", "{{prompt}}"])
    (tmp_path / "asks.suite.yaml").write_text(
        f"name: Asks\nagent: bot\nagents:\n  bot: {{kind: command, command: {words}, capture: model, answer: model}}\n"
        "tests:\n  - {id: a, prompt: 'Is ${HOME} in W1?', criteria: [{name: n, prototype_class: TextResponse, "
        "config_uxon: {metrics: [{type: TextMatch, contains: W1}]}}]}\n",
        "utf-8",
    )
    assert cli("run", "asks.suite.yaml", "--trust").code == 0
    with Store.open_to_look(directories.history_file(None)) as store:
        (execution,) = store.executions()
        (row,) = store.runs_of_execution(execution.id)
        assert program_text(store, row).endswith("agent.py 'Is $${HOME} in W1?'")


def test_a_key_on_the_command_line_is_stored_nowhere(
    cli: Any, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, shaped = f"--key={KEY}", "sk-proj-" + "abcdefghij" * 3
    given = (*agent("Is ${HOME} in W1?"), "--api", KEY, key, shaped)
    for more in ((), ("--suite", "orders.suite.yaml", "--test", "status"), ("--new", "--suite", "new.suite.yaml")):
        assert cli("record", *more, *given).code == 0
    with Store.open_to_look(directories.history_file(None)) as store:
        for one in store.executions():
            (row,) = store.runs_of_execution(one.id)
            assert "agent.py Is ${HOME} in W1? " in row.agent
            assert program_text(store, row).endswith(
                "agent.py 'Is $${HOME} in W1?' --api '${OPENAI_API_KEY}' '--key=${OPENAI_API_KEY}' '***'"
            )
    for path in tmp_path.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert not any(one.encode() in data for one in (KEY, shaped)), path
    # The new test starts the same program, with the key and with the text.
    model.requests.clear()
    cli("run", "new.suite.yaml", "--trust")
    assert "Is ${HOME} in W1?" in str(model.requests[0].json["messages"])


def test_what_was_recorded_is_kept_where_nothing_more_can_be_made_of_it(cli: Any, model: Any, tmp_path: Path) -> None:
    silent = cli("record", "--new", "--", sys.executable, "-c", "pass")
    assert silent.code == 2
    assert "no test was made: the program asked no model" in silent.err
    assert "the recording is stored: agenteval show" in silent.err
    asks = (
        PROGRAM.partition("said = ")[0]
        + """
again = os.path.exists("again")
open("again", "w").close()
for question in ("a", "b")[: 1 + again]:
    ask([{"role": "user", "content": question}])
"""
    )
    (tmp_path / "varies.py").write_text(asks, "utf-8")
    varies = cli("record", "--calibrate", "--cassette", "v.jsonl", "--", sys.executable, "-I", "-S", "varies.py")
    assert varies.code == 2
    assert "the program sent different requests the second time" in varies.err
    assert "the recording is stored: agenteval show" in varies.err
    assert len((tmp_path / "v.jsonl").read_text("utf-8").splitlines()) == 2
    assert len(cli("history", "--json").json("history")) == 2
    assert [one.json["messages"][0]["content"] for one in model.requests] == ["a"], "the second time nobody is asked"


def test_how_it_ended_is_the_exit_code(cli: Any, model: Any) -> None:
    assert cli("record", "--suite", "orders.suite.yaml", "--test", "whale", *agent()).code == 1
    assert cli("record", "--", sys.executable, "-c", "raise SystemExit(4)").code == 3
    silent = cli("record", "--", sys.executable, "-I", "-S", "-c", "pass")
    assert silent.code == 0
    assert "no request arrived: it asked none" in silent.out
    # It does not wait for an answer: nothing answered, and no cassette did.
    told = 'b\'{"type": "request", "server": "shop", "method": "ping"}\''
    hasty = f"import os, urllib.request as u; u.urlopen(os.environ['AGENTEVAL_MCP_RECORDING'], {told})"
    done = cli("record", "--", sys.executable, "-I", "-S", "-c", hasty)
    assert (done.code, "answered from" in done.out) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--replay", *agent()), 2, "--replay needs --cassette FILE"),
        (("--pace", "1", *agent()), 2, "--pace needs --replay"),
        (("--new", "--test", "x", *agent()), 2, "give --test for an existing test"),
        (("--calibrate", "--replay", "--cassette", "c", *agent()), 2, "--calibrate needs a new recording"),
        (("--volatile", "date", *agent()), 2, "--volatile needs --replay"),
        (("--cassette", "none.jsonl", "--replay", *agent()), 2, "there is no such cassette"),
        (("--upstream", "openai", *agent()), 2, "write NAME=URL"),
        (("--upstream", "nobody=http://x", *agent()), 2, "there is no provider 'nobody'"),
        (("--upstream", "openai=ftp://x", *agent()), 2, "is not the address of a server"),
        (("--suite", "orders.suite.yaml", "--test", "rows", *agent()), 2, "a recording is one run, but these are 2"),
        (("--suite", "orders.suite.yaml", "--test", "nothing", *agent()), 2, "nothing"),
        (("--", "no-such-program-anywhere"), 2, "there is no program 'no-such-program-anywhere' in PATH"),
        (("--mcp", "--json", "--", "server"), 2, "--mcp can't be used with --json"),
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
    assert "request 2 is different: live from here on" in told.out
    assert 'messages[3].content: recorded "shipped", now "lost"' in told.out
    assert "the run was passed; now it is passed" in told.out
    # A replay can be replayed; and the run is what it was.
    assert cli("replay", done["run"], *agent()).code == 0
    assert "shipped" in cli("show", first["run"], "--transcript").out


TALKS = """\
exec(open("agent.py").read().split("said =")[0])
told = []
for text in ("shipped", "packed", "lost"):
    told.append({"role": "user", "content": f"Is it {text}?"})
    told.append({"role": "tool", "tool_call_id": "x", "content": text})
    answer = ask(told)
    told.append(answer)
print(answer["content"])
"""


def test_a_replay_names_a_change_in_what_the_model_is_given(cli: Any, model: Any, tmp_path: Path) -> None:
    program = tmp_path / "talks.py"
    program.write_text(TALKS, "utf-8")
    command = ("--", sys.executable, "-I", "-S", "talks.py")
    first = cli("record", "--json", *command).json("record")
    assert first["requests"] == 3
    program.write_text(TALKS.replace("ask(told)", "ask(told[-5:])"), "utf-8")  # as many as it remembers
    told = cli("replay", first["run"], *command)
    assert "request 3 is different: live from here on" in told.out
    assert "the model is given another context: 3 messages dropped" in told.out
    missed = cli("replay", "--json", first["run"], *command).json("record")["misses"][0]
    assert [(one["kind"], one["before"]) for one in missed["context"]] == [("dropped", [0, 1, 2])]
    program.write_text(TALKS.replace('"packed"', '"gone"'), "utf-8")
    other = cli("replay", first["run"], *command)
    assert "request 2 is different" in other.out
    assert "another context" not in other.out


def test_a_replay_that_ends_early_or_asks_nothing_is_not_called_unchanged(cli: Any, model: Any, tmp_path: Path) -> None:
    first = cli("record", "--json", "--calibrate", *agent()).json("record")
    program = tmp_path / "agent.py"
    program.write_text(PROGRAM.replace("    for call in", "    sys.exit()\n    for call in"), "utf-8")
    early = cli("replay", first["run"], *agent())
    assert "it ended after 1 of 2 recorded requests, all answered from the recording" in early.out
    assert "nothing changed" not in early.out
    assert cli("replay", "--json", first["run"], *agent()).json("record")["step"] == 2
    program.write_text("", "utf-8")
    nothing = cli("replay", first["run"], *agent())
    assert "no request arrived" in nothing.out
    assert "nothing changed" not in nothing.out
    assert cli("replay", "--json", first["run"], *agent()).json("record")["step"] == 0


def test_a_replay_of_a_recording_with_an_error_says_which_step_it_left_at(
    cli: Any, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = "    if status == 429:\n        return ask(messages)\n    sys.exit(reply"
    patient = PROGRAM.replace("    sys.exit(reply", tries).replace("time.time_ns()", "0")
    (tmp_path / "agent.py").write_text(patient, "utf-8")
    busy = iter([True])

    def at_first_busy(request: Request) -> Answer:
        return Answer(status=429, body="{}") if next(busy, False) else answer(request)

    with serving(at_first_busy) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        first = cli("record", "--json", *agent()).json("record")
        assert first["requests"] == 3
        (tmp_path / "agent.py").write_text(patient.replace('"shipped"', '"lost"'), "utf-8")
        changed = cli("replay", "--json", first["run"], *agent()).json("record")
    # Told again were the system prompt, the question and the call; the result of the call is another one.
    assert (changed["live"], changed["step"]) == (1, 2)


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
    # A program that reads its task on its standard input reads that of the run.
    asks = 'json.load(sys.stdin)["messages"][-1]["content"]'
    (tmp_path / "agent.py").write_text(PROGRAM.replace("sys.argv[1]", asks).replace("time.time_ns()", "0"), "utf-8")
    run = cli("run", "captured.suite.yaml", "--test", "status", "--trust", "--json", "-").json("results")["runs"][0]
    model.requests.clear()
    words = ("--", sys.executable, "-I", "-S", "agent.py")
    done = cli("replay", "--json", run["id"] if "id" in run else run["run"], *words).json("record")
    assert (done["requests"], done["live"], done["outcome"], model.requests) == (2, 0, "passed", [])


def test_a_replay_runs_where_the_runs_agent_ran_with_its_variables(
    cli: Any, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop" / "code").mkdir(parents=True)
    asks = PROGRAM.replace("sys.argv[1]", 'os.environ["QUESTION"]').replace("time.time_ns()", "0")
    (tmp_path / "shop" / "code" / "shop.py").write_text(asks, "utf-8")
    words = ("--", sys.executable, "-I", "-S", "shop.py")
    agent = json.dumps({"kind": "command", "command": list(words[1:]), "capture": "model", "cwd": "code",
                        "env": {"QUESTION": "Where is my order #W1?"}})  # fmt: skip
    suite = SUITE.replace('{kind: command, command: ["false"]}', agent)
    (tmp_path / "shop" / "captured.suite.yaml").write_text(suite, "utf-8")
    ran = cli("run", "shop", "--test", "status", "--trust", "--json", "-").json("results")["runs"]
    assert ran[0]["outcome"] == "passed"
    model.requests.clear()
    assert cli("replay", "status", *words).code == 3  # the script is not in this folder
    done = cli("replay", "--json", "--as-agent", "--trust", "status", *words).json("record")
    assert (done["requests"], done["live"], done["outcome"], model.requests) == (2, 0, "passed", [])
    # What the suite says of variables and folders is its own word.
    refused = cli("replay", "--as-agent", "status", *words)
    assert (refused.code, model.requests) == (2, [])
    assert "trust" in refused.err
    # A program that nothing grades is replayed where it was recorded.
    monkeypatch.chdir(tmp_path / "shop" / "code")
    monkeypatch.setenv("QUESTION", "Where is my order #W1?")
    first = cli("record", "--json", *words).json("record")
    monkeypatch.chdir(tmp_path)
    model.requests.clear()
    done = cli("replay", "--json", "--as-agent", first["run"], *words).json("record")
    assert (done["requests"], done["live"], model.requests) == (2, 0, [])
    (tmp_path / "shop" / "code").rename(tmp_path / "gone")
    assert "is unknown or gone" in cli("replay", "--as-agent", first["run"], *words).err


def test_the_dotenv_of_a_folder_leads_no_key_away_before_it_is_trusted(
    cli: Any, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cli("record", "--json", *agent()).json("record")
    monkeypatch.delenv("OPENAI_BASE_URL")
    (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={model.url}\nLD_PRELOAD=inj.so\nPYTHONPATH=inj\n", "utf-8")
    model.requests.clear()
    for words in (("record", *agent()), ("replay", first["run"], *agent("Where?")),
                  ("replay", "--as-agent", first["run"], *agent("Where?"))):  # fmt: skip
        refused = cli(*words)
        assert (refused.code, model.requests) == (2, []), words
        assert "OPENAI_BASE_URL" in refused.err
        assert ".env" in refused.err
        # What programs load code through is never taken; that is said once.
        assert refused.err.count("LD_PRELOAD") == 1
    for verb in (("record", "--trust"), ("replay", "--trust", first["run"])):
        assert cli(*verb, *agent("Where?")).code == 0
    assert model.requests
    # What the user's own environment has is the user's word, and wins.
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    assert cli("record", *agent()).code == 0


# A client and a server of MCP with no package at all, too.
MCP_CLIENT = """\
import json, os, subprocess, sys
entry = json.load(open(sys.argv[1]))["mcpServers"]["shop"]
env = {"PATH": os.environ["PATH"], **entry["env"]}
server = subprocess.Popen([entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
def say(number, method, **params):
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(message).encode() + b"\\n"); server.stdin.flush()
    return json.loads(server.stdout.readline())
say(1, "initialize")
import urllib.request
def ask(messages):
    body = json.dumps({"model": "m", "messages": messages}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]
said = [{"role": "user", "content": "Where is my order #W1?"}]
said.append(ask(said))
(call,) = said[-1]["tool_calls"]
found = say(2, "tools/call", name=call["function"]["name"], arguments=json.loads(call["function"]["arguments"]))
said.append({"role": "tool", "tool_call_id": call["id"], "content": found["result"]["content"][0]["text"]})
print(ask(said)["content"])
"""
MCP_SERVER = """\
import json, sys
open("started", "a").write("x")
for line in sys.stdin:
    number = json.loads(line)["id"]
    content = [{"type": "text", "text": "in a warehouse"}]
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": {"content": content}}), flush=True)
"""


def test_mcp_servers_of_a_configuration_are_recorded_with_the_rest_and_replayed(
    cli: Any, model: Any, tmp_path: Path
) -> None:
    (tmp_path / "client.py").write_text(MCP_CLIENT, "utf-8")
    (tmp_path / "server.py").write_text(MCP_SERVER, "utf-8")
    python = [sys.executable, "-I", "-S"]
    env = {"PYTHONPATH": str(ROOT)}
    entry = {"command": python[0], "args": [*python[1:], "server.py"], "env": env}
    servers = {"shop": entry, "away": {"type": "http", "url": "http://127.0.0.1:9/mcp"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8-sig")
    words = ("--mcp-config", "mcp.json", "--", *python, "client.py", "mcp.json")
    done = cli("record", "--json", "--suite", "orders.suite.yaml", "--test", "status", *words).json("record")
    assert (done["outcome"], done["requests"], done["served"]) == ("passed", 2, 1)
    with Store.open_to_look(directories.history_file(None)) as store:
        (call,) = store.transcript(done["run"]).tool_calls
        assert (call.name, call.arguments, call.result) == ("get_order", {"order": "W1"}, "in a warehouse")
    model.requests.clear()
    again = cli("replay", done["run"], *words)
    assert "away is asked over HTTP: only MCP servers over stdio are recorded" in again.err
    assert "1 tool call (1 through MCP servers), 4 answered from the cassette" in again.out
    assert "nothing changed" in again.out
    assert (model.requests, (tmp_path / "started").read_text()) == ([], "x")
    # A recording in which nobody saw the server: it is asked, and that is said.
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    unseen = cli("record", "--json", "--", *python, "client.py", "mcp.json").json("record")
    asked = cli("replay", unseen["run"], *words)
    assert "the model was not asked: only MCP servers that are not in the recording answered" in asked.out
    assert "nothing changed" not in asked.out
    assert "--mcp can't be used with --new" in cli("record", "--mcp", "--new", "--", "x").err


def test_a_recording_without_a_test_is_replayed_too(cli: Any, model: Any) -> None:
    first = cli("record", "--json", *agent()).json("record")
    model.requests.clear()
    done = cli("replay", "--json", "--volatile", "number", "--volatile", "hex", first["run"], *agent()).json("record")
    assert (model.requests, done["live"], done["outcome"]) == ([], 0, "skipped")
    changed = cli("replay", first["run"], *agent())
    assert "request 1 is different: live from here on" in changed.out
    assert len(model.requests) == 2


def test_a_run_without_a_recording_is_not_replayed(cli: Any, model: Any, suite: Path) -> None:
    cli("run", suite, "--test", "good")
    done = cli("replay", "good", *agent())
    assert done.code == 2
    assert "were not stored" in done.err
    assert "agenteval record" in done.err
