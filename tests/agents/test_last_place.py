"""Where the code of a run is when its time is over."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import agenteval_tui as agenteval
from agenteval_tui.agents.base import AgentRequest, Failed
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process.protocol import request_document
from agenteval_tui.agents.process.python_host import start_host
from agenteval_tui.transcripts.model import Message
from tests.agents.conftest import Run

ALLOWED = permission_for((), everything=True)
MODULE = """
import asyncio, concurrent.futures, time

def turn():
    while True: pass

def wait():
    time.sleep(600)

def busy(prompt):
    turn()

def sleeps(prompt):
    wait()

def held(prompt):
    return sum(range(10 ** 12))

async def rest():
    await asyncio.sleep(600)

async def pieces():
    yield 1
    await rest()

async def awaits(prompt):
    await rest()

async def blocks(prompt):
    wait()

async def iterates(prompt):
    async for piece in pieces():
        pass

async def gathers(prompt):
    await asyncio.gather(asyncio.sleep(0), rest())

async def groups(prompt):
    await asyncio.wait([asyncio.ensure_future(rest())])

async def threads(prompt):
    await asyncio.get_running_loop().run_in_executor(None, wait)

def pools(prompt):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return pool.submit(wait).result()

def loops(prompt):
    return asyncio.run(awaits(prompt))
"""


ANSWERS = {
    "name": "Answers",
    "prototype_class": "TextResponse",
    "config_uxon": {"metrics": [{"type": "Length", "min_words": 1}]},
}


@pytest.mark.parametrize(
    ("name", "functions"),
    [
        ("busy", ["busy", "turn"]),
        ("sleeps", ["sleeps", "wait"]),
        ("held", ["held"]),
        ("awaits", ["awaits", "rest"]),
        ("blocks", ["blocks", "wait"]),
        ("iterates", ["iterates", "pieces", "rest"]),
        ("gathers", ["gathers", "rest"]),
        ("groups", ["groups", "rest"]),
        ("threads", ["threads", "wait"]),
        ("pools", ["pools", "wait"]),
        ("loops", ["loops", "awaits", "rest"]),
    ],
)
async def test_a_silent_function_says_where_it_is(
    run_agent: Run, tmp_path: Path, name: str, functions: list[str]
) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    config = {"kind": "python", "callable": f"mine:{name}", "timeouts": {"first_token": 0.3}}
    failed = (await run_agent(config)).events[-1]
    assert isinstance(failed, Failed)
    assert failed.error.traceback is not None
    frames = [frame for frame in failed.error.traceback.exceptions[0].frames if frame.project]
    assert [frame.function for frame in frames] == functions
    assert f"mine:{name} gave no sign for 0.3 s in {functions[-1]} (mine.py, line {frames[-1].line})" in (
        failed.error.message
    )
    assert frames[-1].source == MODULE.splitlines()[frames[-1].line - 1].strip()


@pytest.mark.parametrize("capture", ["auto", "model", "none"])
def test_a_run_whose_time_is_over_says_where_it_was(tmp_path: Path, capture: str) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    suite = {
        "name": "Late",
        "agent": "mine",
        "agents": {"mine": {"kind": "python", "callable": "mine:busy", "capture": capture}},
        "tests": [{"id": "late", "prompt": "x", "timeout": 0.5, "criteria": [ANSWERS]}],
    }
    (tmp_path / "late.suite.yaml").write_text(json.dumps(suite))
    execution = agenteval.run(tmp_path / "late.suite.yaml", trust=True, db=tmp_path / "history.db")
    error = execution.runs[0].transcript.error
    assert error is not None
    assert error.message == "the run did not end within 0.5 s; it was in turn (mine.py, line 5)"
    assert error.fix == "see what takes so long there, or raise `timeout` of the test"
    assert error.traceback is not None
    assert error.traceback.exceptions[0].frames[-1].source == "while True: pass"


PROGRAM = """
import signal, sys, time

def put_away(*_):
    open("put-away", "w").close()
    sys.exit()

def search():
    time.sleep(600)

signal.signal(signal.SIGTERM, put_away)
print("I look", flush=True)
search()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems don't say which signals a process catches")
@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("silence", [sys.executable, "late.py"]),
        ("silence", ["sh", "-c", f"{sys.executable} late.py; true"]),
        ("timeout", [sys.executable, "late.py"]),
    ],
)
def test_a_python_program_whose_time_is_over_says_where_it_was(tmp_path: Path, limit: str, words: list[str]) -> None:
    (tmp_path / "late.py").write_text(PROGRAM)
    timeouts = {"timeouts": {"silence": 1}} if limit == "silence" else {}
    suite = {
        "name": "Late",
        "agent": "late",
        "agents": {"late": {"kind": "command", "command": words, "capture": "auto", **timeouts}},
        "tests": [{"id": "late", "prompt": "x", "criteria": [ANSWERS]} | ({} if timeouts else {"timeout": 3})],
    }
    (tmp_path / "late.suite.yaml").write_text(json.dumps(suite))
    execution = agenteval.run(tmp_path / "late.suite.yaml", trust=True, db=tmp_path / "history.db")
    error = execution.runs[0].transcript.error
    assert error is not None
    assert "in search (late.py, line 9)" in error.message
    assert error.traceback is not None
    assert error.traceback.exceptions[0].frames[-1].source == "time.sleep(600)"
    assert (tmp_path / "put-away").exists()  # it was asked, and ended as any other


@pytest.mark.parametrize("capture", ["auto", "none"])
async def test_a_program_that_can_t_say_where_it_was_is_not_asked(run_agent: Run, capture: str) -> None:
    config = {"kind": "command", "command": ["sleep", "600"], "capture": capture, "timeouts": {"first_token": 0.2}}
    failed = (await run_agent(config)).events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.message, failed.error.traceback) == ("sleep gave no sign for 0.2 s", None)


async def test_an_answer_that_comes_too_late_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def held(prompt):\n    yield 'a'\n    sum(range(10 ** 8))\n    yield 'b'\n")
    document = request_document(AgentRequest((Message("user", "x"),)), {})
    texts, functions = [], list[str]()
    async with await start_host(tmp_path, dict(os.environ), permission=ALLOWED) as host:
        async for answer in host.events("agent", "mine:held", request=document):
            if text := answer.get("event", {}).get("text"):
                texts.append(text)
                # Right after the first piece, the function may not have gone on yet.
                for _ in range(20 if text == "a" else 0):
                    place, _ = await host.place(tmp_path)
                    frames = () if place is None else place.exceptions[0].frames
                    functions = [frame.function for frame in frames if frame.project]
                    if functions:
                        break
    assert texts == ["a", "b"]
    assert functions == ["held"]
