"""`agenteval debug` in a real terminal: breakpoints, the post-mortem, and recorded answers."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

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
    process = subprocess.Popen(
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


def test_what_can_not_be_debugged_says_so(folder: Path) -> None:
    code, shown = terminal(folder, "debug", "web", "--trust")
    assert (code, "of the kind http" in shown) == (2, True)
    code, shown = terminal(folder, "debug", "stop#4x", "--trust")
    assert (code, "write TEST or TEST#N" in shown) == (2, True)
    code, shown = terminal(folder, "debug", "program", "--trust")
    assert (code, "got Hello you" in shown) == (0, True)
    refused = subprocess.run(
        [sys.executable, "-m", "agenteval_tui", "debug", "stop", "--trust"],
        cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
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
    done = subprocess.run(
        [sys.executable, "-m", "agenteval_tui", "run", "--test", "asks", "--trust", "--json", "r.json"],
        cwd=folder,
        env=environment(folder, **keys),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
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
    done = subprocess.run(
        [sys.executable, "-m", "agenteval_tui", "run", "--test", "stop", "--trust"],
        cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "agenteval debug" in done.stdout + done.stderr
