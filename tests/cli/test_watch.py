"""`agenteval run --watch`: on a terminal with its keys, in a pipe as lines of JSON, for scripts, and from Python."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import npm_mcp
import prestarted
import pytest
from jsonschema import Draft202012Validator
from scripted import Answer, Request
from terminal import Terminal
from threaded import serving

import agenteval_tui as agenteval
from agenteval_tui.formats.documents.registry import schema
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.store import Store

AGENT = """
import json, os, urllib.request
def ask(text):
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(address, body, headers)) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]
def answer(prompt):
    return ask("Say: " + prompt).lower()
"""
SUITE = """
name: Echo
agent: echo
agents:
  echo: {kind: python, callable: "agent:answer", capture: model}
tests:
  - id: loud
    prompt: HELLO
    repeat: 2
    criteria:
      - {name: Is loud, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: HELLO}]}}
"""


def model(request: Request) -> Answer:
    """A model that repeats what it is told to say."""
    message = {"role": "assistant", "content": request.json["messages"][-1]["content"].partition(": ")[2]}
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return Answer(body=json.dumps({"model": "gpt-4o", "choices": choices, "usage": usage}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    project = tmp_path / "project"
    project.mkdir()
    (project / "echo.suite.yaml").write_text(SUITE)
    (project / "agent.py").write_text(AGENT)
    monkeypatch.chdir(project)
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key-of-the-user-0001")
    with serving(model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield project


def edit(folder: Path, before: str, after: str) -> None:
    text = (folder / "agent.py").read_text()
    assert before in text
    (folder / "agent.py").write_text(text.replace(before, after))


def test_once_tells_the_change_and_ends(cli: Callable[..., Any], folder: Path) -> None:
    first = cli("run", "--watch", "--once", "--trust")
    assert first.code == 0, first.err
    assert "1 test has no recorded run: run first" in first.out
    assert "with the code as it is: 2 unchanged; 0 requests" in first.out
    edit(folder, ".lower()", "")
    passing = cli("run", "--watch", "--once", "--trust")
    assert passing.code == 0
    assert "2 of 2 failures pass now" in passing.out
    assert "passes now      loud × 2" in passing.out
    assert cli("run", "--trust").code == 0
    edit(folder, "return ask", "return 'no ' and ask")
    edit(folder, '("Say: " + prompt)', '("Say: " + prompt).lower()')
    failing = cli("run", "--watch", "--once", "--trust")
    assert failing.code == 1
    assert "2 runs fail now" in failing.out
    assert 'Is loud: "HELLO" is not in the text' in failing.out


def test_tools_that_no_recording_can_answer_for_are_named(cli: Callable[..., Any], folder: Path) -> None:
    program = f"{{kind: command, command: [{sys.executable}, agent.py], input: text, answer: printed}}"
    python = '{kind: python, callable: "agent:answer", capture: model}'
    (folder / "echo.suite.yaml").write_text(SUITE.replace(python, program))
    (folder / "agent.py").write_text(f"{AGENT}\nprint(answer(input()))\n")
    cli("run", "--trust")
    check = ("run", "--watch", "--once", "--trust")
    first, *_ = cli(*check, "--recorded-tools", "--json", "-").out.splitlines()
    assert json.loads(first)["real_tools"] == ["echo"]
    first, *_ = cli(*check, "--json", "-").out.splitlines()
    assert not json.loads(first)["real_tools"]
    assert "The recordings of echo have no calls of MCP servers" in cli(*check, "--recorded-tools").out


def test_tools_of_a_function_that_run_although_their_results_are_recorded_are_named(
    cli: Callable[..., Any], folder: Path
) -> None:
    call = {"type": "tool_call", "id": "1", "name": "send_mail", "arguments": {"to": "a@example.com"}}
    result = {"type": "tool_result", "id": "1", "result": "sent"}
    (folder / "agent.py").write_text(f"def answer(prompt):\n    yield {call}\n    yield {result}\n    yield prompt\n")
    cli("run", "--trust")
    said = cli("run", "--watch", "--once", "--recorded-tools", "--trust").out
    assert "Tools do not: their results come from the recordings." in said
    assert "2 unchanged" in said
    assert "ran for real, because no equal call is recorded: send_mail" in said
    assert "send_mail" not in cli("run", "--watch", "--once", "--trust").out


def test_events_are_lines_of_json(cli: Callable[..., Any], folder: Path) -> None:
    cli("run", "--trust")
    edit(folder, "Say: ", "Shout: ")
    result = cli("run", "--watch", "--once", "--json", "-", "--trust")
    assert result.code == 0
    events = [json.loads(line) for line in result.out.splitlines()]
    for event in events:
        Draft202012Validator(schema("watch")).validate(event)
    assert [event["event"] for event in events] == ["watching", "saved", "run", "run", "change"]
    change = events[-1]["change"]
    assert (change["needs_model"], change["requests"], change["error"]) == (2, 0, "")
    assert change["runs"][0]["request"] == 1
    assert "Shout" in change["runs"][0]["reason"]
    assert change["needed_cost"] == pytest.approx(2 * (10 * 2.5 + 10 * 10) / 1e6)
    live = cli("run", "--watch", "--watch-live", "--max-cost", "1", "--once", "--json", "-", "--trust")
    change = json.loads(live.out.splitlines()[-1])["change"]
    assert (change["needs_model"], change["requests"], change["unchanged"]) == (0, 2, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--once",), "--once is for --watch only"),
        (("--watch-live",), "--watch-live is for --watch only"),
        (("--recorded-tools",), "--recorded-tools is for --watch only"),
        (("--watch", "--watch-live"), "--watch-live may ask models after each save"),
        (("--watch", "--plan"), "--watch and --plan can't be used together"),
        (("--watch", "--detach"), "--watch and --detach can't be used together"),
        (("--watch", "--junit", "x.xml"), "--watch and --junit x.xml can't be used together"),
        (("--watch", "--failed"), "--watch and --failed can't be used together"),
        (("--watch", "-"), "a suite on standard input can't be watched"),
        (("--resume", "last", "--watch"), "--watch can't be given"),
    ],
)
def test_options_that_do_not_go_together(
    cli: Callable[..., Any], folder: Path, options: tuple[str, ...], words: str
) -> None:
    result = cli("run", *options)
    assert result.code == 2
    assert words in result.err


def test_a_suite_without_programs_has_nothing_to_watch(cli: Callable[..., Any], folder: Path) -> None:
    (folder / "echo.suite.yaml").write_text(SUITE.replace("kind: python, callable", "kind: demo, version: v1} #"))
    result = cli("run", "--watch", "--once")
    assert result.code == 2
    assert "there is nothing to watch" in result.err


def test_from_python(folder: Path, tmp_path: Path) -> None:
    db = tmp_path / "history.db"
    agenteval.run(folder, trust=True, db=db)
    same = agenteval.check_change(folder, trust=True, db=db)
    assert same
    assert (same.passes, same.fails, same.needs_model, same.error) == (0, 0, 0, "")
    edit(folder, ".lower()", "")
    change = agenteval.check_change(folder, trust=True, db=db)
    assert (change.passes, len(change.runs("passes"))) == (2, 2)
    assert change.runs("passes")[0].output == "HELLO"
    assert "2 of 2 failures pass now" in str(change)
    edit(folder, "def answer(prompt):", "def answer(prompt)")
    broken = agenteval.check_change(folder, trust=True, db=db)
    assert not broken
    assert "SyntaxError" in broken.error
    with pytest.raises(agenteval.AgentevalError, match="no test has a recorded run"):
        agenteval.check_change(folder, trust=True, db=tmp_path / "other.db")
    with pytest.raises(agenteval.AgentevalError, match="needs your trust"):
        agenteval.check_change(folder, db=db)


@pytest.mark.e2e
def test_the_keys_of_a_watch(cli: Callable[..., Any], folder: Path) -> None:
    """Edit, see what needs the model, let it ask, run the changed tests for real, and quit."""
    cli("run", "--trust")
    arguments = [sys.executable, "-m", "agenteval_tui", "run", "--watch", "--trust"]
    with Terminal(arguments, columns=120, rows=40, env=dict(os.environ)) as it:
        it.wait_for(lambda terminal: b"2 unchanged" in terminal.written, what="the first check")
        edit(folder, "Say: ", "Now say: ")
        it.wait_for(lambda terminal: b"$ ask the model for 2 runs" in terminal.written, what="the key $")
        os.write(it.fd, b"$")
        it.wait_for(lambda terminal: b"2 requests" in terminal.written, what="the model's answers")
        edit(folder, ".lower()", "")
        it.wait_for(lambda terminal: terminal.written.count(b"2 need the model") >= 2, what="the second save")
        os.write(it.fd, b"R")
        it.wait_for(lambda terminal: b"0 failed" in terminal.written, what="the runs for real")
        os.write(it.fd, b"q")
        it.wait_for_end()
        assert it.exit_code() == 0
    with Store.open(Path(os.environ["AGENTEVAL_DATA_DIR"]) / "history.db") as store:
        assert len(store.execution_ids(RunFilter(counted=True))) == 2


def test_ctrl_c_ends_a_watch_and_nothing_is_left(cli: Callable[..., Any], folder: Path) -> None:
    cli("run", "--trust")
    arguments = [sys.executable, "-m", "agenteval_tui", "run", "--watch", "--trust", "--json", "-"]
    watch = prestarted.popen(arguments, stdout=subprocess.PIPE, text=True)
    assert watch.stdout is not None
    lines: list[dict[str, Any]] = []
    for line in watch.stdout:
        lines.append(json.loads(line))
        if lines[-1]["event"] == "change":
            watch.send_signal(2)
    assert watch.wait(60) == 0
    assert lines[-1]["event"] == "change"


@pytest.mark.skipif(sys.platform != "linux", reason="what a process waits in is read from /proc")
def test_a_watch_on_a_terminal_that_takes_nothing_can_be_ended(cli: Callable[..., Any], folder: Path) -> None:
    cli("run", "--trust")
    arguments = [sys.executable, "-m", "agenteval_tui", "run", "--watch", "--trust"]
    with Terminal(arguments, columns=120, rows=40, env=dict(os.environ)) as it:
        it.wait_for(lambda terminal: b"q quit" in terminal.written, what="the first check")
        os.write(it.fd, STOP_OUTPUT)
        edit(folder, "Say: ", "Now say: ")
        it.wait_for(lambda terminal: waits_in(terminal.pid) == "wait_woken", what="a write that waits")
        os.kill(it.pid, signal.SIGTERM)
        it.wait_for_end()
        assert it.exit_code() == 0


STOP_OUTPUT = b"\x13"
"""Ctrl-S."""


def waits_in(pid: int) -> str:
    """The function of the system that the main thread of a process waits in; of a terminal it is `wait_woken`."""
    return Path(f"/proc/{pid}/wchan").read_text()


def test_runs_of_a_watch_that_the_app_steers_let_its_keys_go_first(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("import os\ndef answer(prompt):\n    return f'HELLO {os.nice(0)}'\n")
    (tmp_path / "echo.suite.yaml").write_text(SUITE.replace(", capture: model", ""))
    db = tmp_path / "h.db"
    agenteval.run(tmp_path, db=db, trust=True)
    command = [sys.executable, "-m", "agenteval_tui", "--db", str(db), "run", "--watch", "--once", "--steer"]
    with prestarted.popen(
        [*command, "--json", "-", "--trust", str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as watch:
        assert watch.stdout is not None
        events = [json.loads(line) for line in watch.stdout]
    runs = [event["change"]["after"] for event in events if event["event"] == "run"]
    with Store.open(db) as store:
        assert [store.transcript(run).final_output for run in runs] == [f"HELLO {os.nice(0) + 5}"] * 2


def test_a_command_that_comes_twice_at_once_runs_the_changed_tests_once(folder: Path, tmp_path: Path) -> None:
    db = tmp_path / "h.db"
    agenteval.run(folder, db=db, trust=True)
    command = [sys.executable, "-m", "agenteval_tui", "--db", str(db), "run", "--watch", "--steer", "--json", "-"]
    with prestarted.popen(
        [*command, "--trust", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as watch:
        assert watch.stdout is not None
        assert watch.stdin is not None
        changes = (line for line in watch.stdout if json.loads(line)["event"] == "change")
        next(changes)
        edit(folder, ".lower()", "")
        next(changes)
        watch.stdin.write("real\nreal\n")
        watch.stdin.flush()
        next(changes)
        watch.stdin.write("stop\n")
        watch.stdin.flush()
        assert watch.wait(60) == 0
    with Store.open(db) as store:
        assert len(store.execution_ids(RunFilter(counted=True))) == 2


ASKS_TOOLS = """
import json, os, subprocess, sys
from agent import ask
def answer(prompt):
    with open("mcp.json") as file:
        server = json.load(file)["mcpServers"]["everything"]
    # As the client of MCP's package, which takes a second to import, it passes on little of its environment.
    env = {"PATH": os.environ["PATH"], **server["env"]}
    started = [server["command"], *server["args"]]
    with subprocess.Popen(started, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        def tell(**message):
            print(json.dumps({"jsonrpc": "2.0", **message}), file=process.stdin, flush=True)
        def answer_to(number, method, **params):
            tell(id=number, method=method, params=params)
            return next(line["result"] for line in map(json.loads, process.stdout) if line.get("id") == number)
        client = {"name": "tools", "version": "1"}
        answer_to(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        tell(method="notifications/initialized")
        total = answer_to(2, "tools/call", name="get-sum", arguments={"a": 2, "b": 3})
        process.stdin.close()
    return ask(f"Say: {prompt} {total['content'][0]['text']}")
"""


@pytest.mark.parametrize(("kind", "capture"), [("python", "model"), ("command", "model"), ("command", "auto")])
def test_the_reference_server_of_mcp_is_answered_for_and_a_save_of_its_configuration_is_one(
    folder: Path, installed: Path, kind: str, capture: str
) -> None:
    try:
        words = [*npm_mcp.server("mcp-server-everything"), "stdio"]
    except npm_mcp.NotAvailable as reason:
        pytest.skip(str(reason))
    (folder / "tools.py").write_text(ASKS_TOOLS + "if __name__ == '__main__':\n    print(answer(sys.stdin.read()))\n")
    starts = ["sh", "-c", f"echo started >> {folder.parent / 'starts'}; exec {shlex.join(words)}"]
    shim = ["record", "--mcp", "--server", "everything", "--", *starts]
    forked = {prestarted.WHERE: os.environ[prestarted.WHERE]}
    server = {"command": str(installed / "agenteval"), "args": shim, "env": forked}
    configuration = folder / "mcp.json"
    configuration.write_text(json.dumps({"mcpServers": {"everything": server}}))
    agent = {
        "python": '{kind: python, callable: "tools:answer", capture: model}',
        "command": f"{{kind: command, command: [{sys.executable}, tools.py], input: text, capture: model}}",
    }[kind]
    (folder / "echo.suite.yaml").write_text(
        SUITE.replace('{kind: python, callable: "agent:answer", capture: model}', agent)
        .replace("capture: model", f"capture: {capture}")
        .replace("repeat: 2", "timeout: 100")
        .replace("contains: HELLO", "contains: is 5")
    )
    db = folder.parent / "h.db"
    assert agenteval.run(folder, db=db, trust=True).passed
    assert (folder.parent / "starts").read_text() == "started\n"
    command = [sys.executable, "-m", "agenteval_tui", "--db", str(db), "run", "--watch", "--recorded-tools"]
    with prestarted.popen([*command, "--json", "-", "--trust", str(folder)], stdout=subprocess.PIPE) as watch:
        assert watch.stdout is not None
        changes = (
            event["change"] for event in map(json.loads, iter(watch.stdout.readline, b"")) if event["event"] == "change"
        )
        assert next(changes)["unchanged"] == 1
        configuration.write_text(json.dumps({"mcpServers": {"everything": server, "other": server}}))
        saved = next(changes)
        assert (saved["files"], saved["unchanged"]) == ([str(configuration)], 1)
        (folder / "tools.py").write_text((folder / "tools.py").read_text().replace('"b": 3', '"b": 4'))
        asked = next(changes)
        assert (asked["needs_model"], asked["requests"]) == (1, 0)
        assert "recorded 3, now 4" in asked["runs"][0]["reason"]
        watch.send_signal(signal.SIGTERM)
    assert (folder.parent / "starts").read_text() == "started\n"
