"""`agenteval debug` in a real terminal: breakpoints, the post-mortem, and recorded answers."""

from __future__ import annotations

import json
import os
import pty
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import prestarted
import pytest

MOST_S = 120.0
CRITERION = (
    "criteria: [{name: x, prototype_class: TextResponse, config_uxon: {metrics: [{type: Length, min_words: 1}]}}]"
)
SUITE = f"""
name: d
agents:
  good: {{kind: python, callable: "bot:answer"}}
  bad: {{kind: python, callable: "bot:broken"}}
  asks: {{kind: python, callable: "bot:asks", capture: model}}
  program: {{kind: command, command: [python3, program.py]}}
  web: {{kind: http, url: "http://127.0.0.1:9"}}
tests:
  - {{id: stop, agent: good, prompt: Hello you, repeat: 3, {CRITERION}}}
  - {{id: break, agent: bad, prompt: Hello you, {CRITERION}}}
  - {{id: asks, agent: asks, prompt: Hello you, {CRITERION}}}
  - {{id: program, agent: program, prompt: Hello you, {CRITERION}}}
  - {{id: web, agent: web, prompt: Hello you, {CRITERION}}}
"""
BOT = """
import json, os, urllib.request

def answer(prompt, repetition):
    total = 41
    breakpoint()
    return f"{prompt} {total + 1} in {repetition}"

def broken(prompt):
    order = {"id": 7}
    return order["status"]

def asks(prompt):
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    told = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
    if os.environ.get("STOP_HERE"):
        breakpoint()
    return told
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "d.suite.yaml").write_text(SUITE)
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "program.py").write_text("import json, sys\nprint('got', json.load(sys.stdin)['prompt'])\n")
    return tmp_path


def environment(folder: Path, **more: str) -> dict[str, str]:
    home = {name: str(folder / "home") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHONBREAKPOINT", "AGENTEVAL_"))
    }
    return {**kept, **home, "TERM": "xterm", "NO_COLOR": "1", **more}


def terminal(folder: Path, *arguments: str, typed: Sequence[tuple[str, str]] = (), **more: str) -> tuple[int, str]:
    """Run agenteval in a pseudo-terminal; each line is typed once the text before it stands at the end."""
    leader, follower = pty.openpty()
    process = prestarted.popen(
        [sys.executable, "-m", "agenteval_tui", *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=folder,
        env=environment(folder, **more),
        start_new_session=True,
    )
    os.close(follower)
    shown, since, waiting, ends = b"", 0, list(typed), time.monotonic() + MOST_S
    try:
        while time.monotonic() < ends:
            if select.select([leader], [], [], 1.0)[0]:
                try:
                    data = os.read(leader, 65_536)
                except OSError:
                    break
                if not data:
                    break
                shown += data
            if waiting and shown[since:].rstrip().endswith(waiting[0][0].encode()):
                since = len(shown)
                os.write(leader, waiting.pop(0)[1].encode() + b"\n")
        return process.wait(MOST_S), shown.decode("utf-8", "replace")
    finally:
        process.kill()
        os.close(leader)


def test_a_breakpoint_stops_in_the_terminal(folder: Path) -> None:
    code, shown = terminal(folder, "debug", "stop#3", "--trust", typed=[("(Pdb)", "total = 5"), ("(Pdb)", "c")])
    assert code == 0, shown
    assert "bot.py(7)answer()" in shown
    assert "Hello you 6 in 3" in shown


def test_an_exception_opens_the_post_mortem(folder: Path) -> None:
    code, shown = terminal(folder, "debug", "break", "--trust", typed=[("(Pdb)", "order"), ("(Pdb)", "q")])
    assert code == 1, shown
    assert "KeyError: 'status'" in shown
    assert "{'id': 7}" in shown
    assert "python_debug.py" not in shown
    code, shown = terminal(folder, "debug", "break", "--trust", PYTHONBREAKPOINT="0")
    assert (code, "(Pdb)" in shown) == (1, False)


class Editor:
    """The side of an editor in the Debug Adapter Protocol."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=MOST_S)
        self._stream = self._socket.makefile("rb")
        self._number = 0

    def send(self, command: str, **arguments: Any) -> int:
        self._number += 1
        request = {"seq": self._number, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(request).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return self._number

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        number = self.send(command, **arguments)
        answer = self.wait(lambda message: message.get("request_seq") == number)
        assert answer["success"], answer
        return answer.get("body") or {}

    def event(self, name: str) -> dict[str, Any]:
        return self.wait(lambda message: message.get("event") == name).get("body") or {}

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def wait(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            length = 0
            while (header := self._stream.readline().strip()) or not length:
                assert header, "the program has closed the connection"
                if header.lower().startswith(b"content-length:"):
                    length = int(header.partition(b":")[2])
            message: dict[str, Any] = json.loads(self._stream.read(length))
            if fits(message):
                return message


def test_an_editor_attaches_stops_at_a_breakpoint_and_goes_on(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "agenteval_tui", "debug", "stop#2", "--trust", "--listen", str(port)]
    process = subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        waits = next(line for line in process.stderr if "waiting for an editor" in line)
        assert f"127.0.0.1:{port}" in waits
        editor = Editor(port)
        editor.ask("initialize", adapterID="test")
        attached = editor.send("attach", justMyCode=True)
        editor.event("initialized")
        place = {"path": str(folder / "bot.py")}
        answer = editor.ask("setBreakpoints", source=place, breakpoints=[{"line": 7}])
        assert answer["breakpoints"][0]["verified"]
        editor.send("configurationDone")
        editor.wait(lambda message: message.get("request_seq") == attached)
        stopped = editor.event("stopped")
        frames = editor.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"]
        if frames[0]["line"] == 6:  # at breakpoint() itself
            editor.send("continue", threadId=stopped["threadId"])
            stopped = editor.event("stopped")
            frames = editor.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"]
        assert (frames[0]["name"], frames[0]["line"]) == ("answer", 7)
        editor.ask("setExpression", expression="total", value="5", frameId=frames[0]["id"])
        editor.send("continue", threadId=stopped["threadId"])
        editor.event("terminated")
        editor.close()  # as long as it is there, debugpy keeps standard error open
        shown, errors = process.communicate(timeout=MOST_S)
        assert process.returncode == 0, errors
        assert "Hello you 6 in 2" in shown
        assert "frozen modules" not in errors
    finally:
        process.kill()
        process.wait()


def test_what_can_not_be_debugged_says_so(folder: Path) -> None:
    code, shown = terminal(folder, "debug", "web", "--trust")
    assert (code, "of the kind http" in shown) == (2, True)
    for name in ("stop#4x", "stop#²"):
        code, shown = terminal(folder, "debug", name, "--trust")
        assert (code, "write TEST or TEST#N" in shown) == (2, True)
    code, shown = terminal(folder, "debug", "program", "--trust")
    assert (code, "got Hello you" in shown) == (0, True)
    refused = prestarted.run(
        [sys.executable, "-m", "agenteval_tui", "debug", "stop", "--trust"],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
    )
    assert (refused.returncode, "needs a terminal" in refused.stderr) == (2, True)


class _Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": "From the model."}
        body = json.dumps(
            {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def model() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.server_close()


def test_a_recorded_run_is_debugged_without_its_server(folder: Path, model: ThreadingHTTPServer) -> None:
    address = f"http://127.0.0.1:{model.server_address[1]}/v1"
    keys = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "k"}
    done = prestarted.run(
        [sys.executable, "-m", "agenteval_tui", "run", "--test", "asks", "--trust", "--json", "r.json"],
        cwd=folder,
        env=environment(folder, **keys),
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = json.loads((folder / "r.json").read_text())["runs"][0]["run"]
    model.shutdown()
    model.server_close()
    typed = [("(Pdb)", "told"), ("(Pdb)", "c")]
    code, shown = terminal(folder, "debug", run, "--trust", typed=typed, STOP_HERE="1", **keys)
    assert code == 0, shown
    assert "answers (1 request)" in shown
    assert "'From the model.'" in shown
    code, shown = terminal(folder, "debug", run, "--trust", "--live", typed=[("(Pdb)", "q")], **keys)
    assert code == 1, "its server is gone"


def test_a_normal_run_names_this_command(folder: Path) -> None:
    done = prestarted.run(
        [sys.executable, "-m", "agenteval_tui", "run", "--test", "stop", "--trust"],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
    )
    assert "agenteval debug" in done.stdout + done.stderr
