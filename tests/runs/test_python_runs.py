"""Executions of Python agents: what is said once of their start, and what runs are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.process.child_process import GRACE_S

SUITE = """
name: Greetings
agent: bot
agents:
  bot: {kind: python, callable: "mine:f"}
tests:
  - id: hello
    prompt: Say hello
    repeat: 3
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: hello}, {type: Python, function: "mine:g"}]}
"""
MODULE = """
{first}
ran = []
def f(prompt):
    ran.append(1)
    return "hello " * len(ran)
def g(value):
    ran.append(1)
    return len(ran) == 1 and value == "hello "
"""


@pytest.mark.parametrize(
    "first", ["", "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"]
)
async def test_the_start_is_said_once(tmp_path: Path, execution: Callable[..., Any], first: str) -> None:
    (tmp_path / "mine.py").write_text(MODULE.format(first=first))
    made = execution(SUITE, trust=True)
    ended = await made.run()
    assert set(made.statuses().values()) == {"passed"}
    (row,) = made.store.executions(limit=1)
    assert row.startup_ms > 0
    if first:
        assert ended.message.startswith("mine:f: each run imports the modules again")
        assert "leave threads running" in ended.message
    else:
        assert ended.message == ""


@pytest.mark.parametrize(
    "end",
    [
        "threading.Thread(target=threading.Event().wait).start()",
        "atexit.register(threading.Event().wait)",
        "multiprocessing.get_context('fork').Process(target=threading.Event().wait).start()",
    ],
)
async def test_how_long_its_process_takes_to_end_is_not_its_time(
    tmp_path: Path, execution: Callable[..., Any], end: str
) -> None:
    module = f"import atexit, multiprocessing, threading\ndef f(prompt):\n    {end}\n    return 'hello'\n"
    (tmp_path / "mine.py").write_text(module + "def g(value): return True")
    made = execution(SUITE, trust=True)
    await made.run()
    assert set(made.statuses().values()) == {"passed"}
    (row,) = made.store.executions(limit=1)
    for run in made.store.runs_of_execution(row.id):
        assert run.duration_ms is not None
        assert run.duration_ms < GRACE_S * 1000


async def test_what_makes_the_agent_may_print_and_has_its_own_time(
    tmp_path: Path, execution: Callable[..., Any]
) -> None:
    made = "import time\ndef f():\n    print('loading')\n    time.sleep(2)\n    return lambda prompt: 'hello'\n"
    (tmp_path / "mine.py").write_text(made + "def g(value): return True")
    one = execution(SUITE.replace("repeat: 3", "timeout: 1"), trust=True)
    await one.run()
    assert set(one.statuses().values()) == {"passed"}
