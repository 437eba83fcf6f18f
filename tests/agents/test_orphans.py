"""A process of ours that is killed leaves nothing: neither programs, nor what those started, nor a copy of keys."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import prestarted
import pytest
from programs import lives, until

from agenteval_tui.agents.recording.mcp_config import remove_abandoned

ROOT = Path(__file__).parents[2]
# It and what it starts note their numbers, and would like to stay.
STUBBORN = """\
trap '' TERM
sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 600; done' &
echo $$ >> pids
while :; do sleep 600; done
"""
START = """\
import asyncio, os, sys
from pathlib import Path
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process.child_process import start

async def main():
    program = await start(["sh", "agent.sh"], cwd=Path.cwd(), env=os.environ,
                          permission=permission_for((), everything=True))
    await program.read()

asyncio.run(main())
"""
SUITE = """\
name: slow
agent: own
agents:
  own: AGENT
tests:
  - id: says
    prompt: hello
    criteria:
      - {name: any, prototype_class: TextResponse, config_uxon: {metrics: [{type: Length, min_chars: 1}]}}
"""
PYTHON_AGENT = """\
import os, subprocess

def main(messages):
    subprocess.run(["sh", "agent.sh"])
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    own = {f"AGENTEVAL_{name}_DIR": str(tmp_path / name.lower()) for name in ("DATA", "CONFIG", "CACHE", "RUNTIME")}
    return {**os.environ, **own, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Path]:
    """The folder of a program; what is left of it is ended after the test."""
    (tmp_path / "agent.sh").write_text(STUBBORN)
    yield tmp_path
    for pid in pids(tmp_path):
        if lives(pid):
            os.kill(pid, signal.SIGKILL)


def pids(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "pids").read_text().split()]
    except FileNotFoundError:
        return []


async def killed_when_both_run(process: prestarted.Prestarted | subprocess.Popen[bytes], folder: Path) -> list[int]:
    def both_run() -> bool:
        assert process.poll() is None, process.communicate()
        return len(pids(folder)) == 2

    await until(both_run, "the start of both programs")
    found = pids(folder)
    assert all(map(lives, found))
    process.kill()
    # Not until the end of what it prints: another process, forked at that moment, may have its pipe.
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    return found


async def test_what_a_killed_process_started_ends(started: Path, environment: dict[str, str]) -> None:
    process = subprocess.Popen([sys.executable, "-c", START], cwd=started, env=environment)
    found = await killed_when_both_run(process, started)
    await until(lambda: not any(map(lives, found)), "the end of both programs")


@pytest.mark.parametrize(
    "agent",
    ["{kind: command, command: sh agent.sh, output: text}", "{kind: python, callable: 'agent:main'}"],
)
async def test_a_killed_execution_leaves_no_program(started: Path, environment: dict[str, str], agent: str) -> None:
    (started / "a.suite.yaml").write_text(SUITE.replace("AGENT", agent))
    (started / "agent.py").write_text(PYTHON_AGENT)
    words = [sys.executable, "-m", "agenteval_tui", "run", "a.suite.yaml", "--trust"]
    process = prestarted.popen(
        words, cwd=started, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    found = await killed_when_both_run(process, started)
    await until(lambda: not any(map(lives, found)), "the end of both programs")


async def test_a_killed_recording_leaves_no_program_and_no_copy(started: Path, environment: dict[str, str]) -> None:
    servers = {"mcpServers": {"shop": {"command": "true", "env": {"TOKEN": "a-secret-of-mine"}}}}
    (started / "mcp.json").write_text(json.dumps(servers))
    words = [
        sys.executable,
        "-m",
        "agenteval_tui",
        "record",
        "--mcp-config",
        "mcp.json",
        "--",
        "sh",
        "agent.sh",
        "mcp.json",
    ]
    process = prestarted.popen(
        words, cwd=started, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    copies = started / "runtime" / "mcp"
    await until(lambda: process.poll() is not None or any(copies.glob("*/mcp.json")), "the copy")
    assert "a-secret-of-mine" in next(copies.glob("*/mcp.json")).read_text()
    found = await killed_when_both_run(process, started)
    await until(lambda: not any(map(lives, found)) and not any(copies.iterdir()), "the end of all")


async def test_a_killed_shim_leaves_no_server(started: Path, environment: dict[str, str]) -> None:
    words = [sys.executable, "-m", "agenteval_tui", "record", "--mcp", "--", "sh", "agent.sh"]
    process = prestarted.popen(words, cwd=started, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "initialize"}\n')
    process.stdin.flush()
    found = await killed_when_both_run(process, started)
    await until(lambda: not any(map(lives, found)), "the end of both programs")


def test_the_next_start_removes_what_nobody_owns(tmp_path: Path) -> None:
    for name in ("dead", "lives", "begins", "begun"):
        (tmp_path / name).mkdir()
    for name in ("dead", "lives"):
        (tmp_path / name / ".lock").touch()
    long_ago = time.time() - 3600
    os.utime(tmp_path / "begun", (long_ago, long_ago))
    with (tmp_path / "lives" / ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_abandoned(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begins", "lives"]
    remove_abandoned(tmp_path / "nowhere")
