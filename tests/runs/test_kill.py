"""`kill -9` at random points: what ended is neither lost nor repeated, and `resume` finishes the rest."""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec import to_builtins

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "servers"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from scripted import Answer, Request  # type: ignore[import-not-found]
from threaded import serving  # type: ignore[import-not-found]

from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.client import live_executions
from agenteval_tui.runs.live_registry import ExecutionRequest
from agenteval_tui.runs.plan.options import PlanOptions
from tests.sweeps import SEED, share

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("kill")]

MOST_OF_ONE = 9
TESTS = 40
ANSWER_S = 0.01
FORKS = Path(__file__).with_name("execution_forks.py")


@dataclass
class Asked:
    """A real server that counts how often each test was answered."""

    url: str
    answered: Counter[str] = field(default_factory=Counter)


@pytest.fixture
def asked() -> Iterator[Asked]:
    made = Asked("")

    async def answer(request: Request) -> Answer:
        prompt = request.json["messages"][-1]["content"]
        await asyncio.sleep(ANSWER_S)
        made.answered[prompt] += 1
        message = {"role": "assistant", "content": f"hello, {prompt}"}
        body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": "m"}
        return Answer(body=json.dumps(body), content_type="application/json")

    with serving(answer) as server:
        made.url = server.url
        yield made


class Child:
    """A process that is not ours to wait for."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)

    def ends_within(self, seconds: float) -> bool:
        """Whether it ends in this time."""
        return bool(select.select([self._descriptor], [], [], seconds)[0])

    def kill(self) -> None:
        """-9"""
        signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        assert self.ends_within(60)

    def close(self) -> None:
        os.close(self._descriptor)


class Forks:
    """The program that forks executions."""

    def __init__(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        self._program = subprocess.Popen(
            [sys.executable, str(FORKS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": root},
        )

    def start(self, request: ExecutionRequest, folder: Path) -> Child:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        variables = {key: value for key, value in os.environ.items() if key.startswith("AGENTEVAL_")}
        places = {"answer": str(folder / "answer"), "log": str(folder / "log")}
        job = {"request": to_builtins(request), "environment": variables, **places}
        self._program.stdin.write(json.dumps(job) + "\n")
        self._program.stdin.flush()
        return Child(int(self._program.stdout.readline()))

    def close(self) -> None:
        self._program.communicate(timeout=250)


@pytest.fixture
def forks() -> Iterator[Forks]:
    made = Forks()
    yield made
    made.close()


def write_suite(folder: Path, url: str) -> Path:
    lines = [
        "name: Counted",
        "agent: counted",
        f"agents: {{counted: {{kind: openai, base_url: '{url}', model: m, stream: false}}}}",
        "defaults: {concurrency: 4}",
        "tests:",
    ]
    for number in range(TESTS):
        check = {"metrics": [{"type": "TextMatch", "contains": f"case {number}"}]}
        criterion = {"name": "Answers", "prototype_class": "TextResponse", "config_uxon": check}
        lines.append(f"  - {{id: test-{number}, prompt: 'case {number}', criteria: {json.dumps([criterion])}}}")
    path = folder / "counted.suite.yaml"
    path.write_text("\n".join(lines))
    return path


class Victim:
    """An execution that is killed and taken up again until it is done, and what is known of it."""

    def __init__(self, folder: Path, suite: Path, asked: Asked) -> None:
        self.db = folder / "history.db"
        self.execution = ""
        self.ended: dict[str, tuple[RunRow, int]] = {}
        """By run: as it was first seen ended, and how often its test had been asked by then."""
        self._folder = folder
        self._suite = suite
        self._asked = asked

    def start(self, forks: Forks) -> Child:
        """A process that begins it, or goes on with it."""
        request = ExecutionRequest((str(self._suite),), db=str(self.db), config_dir=str(self._folder / "config"))
        if self.execution:
            request = ExecutionRequest((), PlanOptions(), request.db, request.config_dir, self.execution)
        return forks.start(request, self._folder)

    def look(self, known: set[str]) -> str:
        """Check what the history has after a death; gives the execution's status ("": not begun)."""
        with Store.open(self.db) as store:
            assert store.notices == ()
            fresh = [row.id for row in store.executions() if row.id not in known]
            assert fresh in ([], [self.execution]) or not self.execution
            if not fresh:
                return ""
            (self.execution,) = fresh
            rows = {row.id: row for row in store.runs_of_execution(self.execution)}
            assert len(rows) == TESTS
            assert {row.status for row in rows.values()} <= {"passed", "queued"}
            for run, (before, times) in self.ended.items():
                assert rows[run] == before, "what had ended is not as it was"
                assert self._asked.answered[prompt_of(before)] == times, "what had ended was asked again"
            for run, row in rows.items():
                if row.status == "passed" and run not in self.ended:
                    assert f"hello, {prompt_of(row)}" == store.transcript(run).final_output
                    assert store.results(run)
                    self.ended[run] = (row, self._asked.answered[prompt_of(row)])
            execution = store.execution(self.execution)
            assert execution.passed == len(self.ended)
            return execution.status


def prompt_of(row: RunRow) -> str:
    return row.test_id.replace("test-", "case ")


@pytest.mark.timeout(600)  # half a minute, on a machine that does nothing else
def test_kills_lose_and_repeat_nothing(tmp_path: Path, asked: Asked, forks: Forks) -> None:
    most = len(share(range(50)))
    rng = random.Random(SEED)
    suite = write_suite(tmp_path, asked.url)
    known: set[str] = set()
    kills = resumed = early = again = 0
    took = 0.0

    def go(victim: Victim, seconds: float | None, *, from_first: bool = False) -> str:
        """Let it run for so long (None: to its end), from its first answer or its start; gives its status."""
        nonlocal kills
        child = victim.start(forks)
        answers = asked.answered.total()
        try:
            while from_first and asked.answered.total() == answers and not child.ends_within(0.002):
                pass
            if not child.ends_within(60 if seconds is None else seconds):
                assert seconds is not None, "it does not end"
                child.kill()
                kills += 1
        finally:
            child.close()
        return victim.look(known)

    for _ in range(2):  # how long one takes here and now; the first one waits for the program that forks
        began = time.monotonic()
        whole = Victim(tmp_path, suite, asked)
        assert go(whole, None) == "finished", (tmp_path / "log").read_text()
        known.add(whole.execution)
        took = time.monotonic() - began

    while kills < most:
        victim = Victim(tmp_path, suite, asked)
        asked.answered.clear()
        before = kills
        status = ""
        while status != "finished":
            last = kills - before >= MOST_OF_ONE or kills >= most
            # Half of them while it certainly does something, however busy the machine is.
            half = rng.random() < 0.5
            status = go(victim, None if last else rng.uniform(0, took / 2 if half else took), from_first=half)
            assert status in ("", "interrupted", "finished"), (status, (tmp_path / "log").read_text())
            assert not last or status == "finished", (tmp_path / "log").read_text()
            early += not status
            resumed += status == "interrupted"
        assert len(victim.ended) == TESTS
        again += sum(asked.answered.values()) - TESTS
        known.add(victim.execution)
    # A run whose answer was under way at a kill is asked again (four at once), or whose end was on its way to the disk
    # (their places are taken again meanwhile: four more; many, where a disk is slow for a moment); nothing else is, and
    # nothing that had ended.
    assert again <= 8 * kills
    assert resumed > most // 4, (resumed, early)
    assert live_executions() == []
    with sqlite3.connect(tmp_path / "history.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    print(f"{kills} kills, {resumed} resumed, {early} before it had begun, one takes {took:.2f} s")
