"""Runs on a real Dask cluster of several processes, of which some die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.extensions.dask import executor as dask_executor
from agenteval_tui.history.store import Store
from agenteval_tui.runs.client import start
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import AttemptFailed, Command, Ended, Event, Graded, Planned, TextStreamed
from agenteval_tui.runs.live_registry import ExecutionRequest
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import load_suite
from tests.extensions.dask.dask_processes import begin

# Dask itself is loaded by the one process of the tests that runs these.
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("dask"),
    pytest.mark.skipif(find_spec("distributed") is None, reason="the extra `dask` is not installed"),
]

ROOT = Path(__file__).resolve().parents[3]
SECRET = "worker-secret-4711-abcdefgh"

AGENT = """
import json, os, sys, time
asked = json.load(sys.stdin)
def say(**event):
    print(json.dumps(event), flush=True)
with open("starts.log", "a") as file:
    file.write(json.dumps([asked["repetition"], os.getpid(), os.getppid()]) + "\\n")
say(type="text", text="before ")
if asked["repetition"] > 1:
    while not os.path.exists("go"):
        time.sleep(0.02)
say(type="text", text="after " + os.environ.get("WORKER_TOKEN", ""))
say(type="done")
"""

SUITE = """
name: Programs
agent: slow
agents:
  slow: {kind: command, command: [PYTHON, agent.py], env: {WORKER_TOKEN: "${WORKER_TOKEN}"}}
defaults: {timeout: 60}
tests:
  - id: waits
    name: Waits for a file
    prompt: Go
    repeat: REPEAT
    criteria:
      - name: Comes to the end
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: after}]}
"""


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until `condition` holds."""
    end = time.monotonic() + 250
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether there is such a process, which is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it ended before, or while it was read
        return False


@dataclass
class Cluster:
    """A scheduler and its workers, as processes of their own."""

    folder: Path
    processes: list[BaseProcess] = field(default_factory=list)
    address: str = ""

    def begin(self, workers: int) -> None:
        file = self.folder / "scheduler.json"
        self._spawn("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        until(lambda: file.exists() and file.read_text().rstrip().endswith("}"), "the scheduler")
        self.address = json.loads(file.read_text())["address"]
        for _ in range(workers):
            self.worker(wait=False)
        for number in range(1, workers + 1):
            self._registered(number)

    def worker(self, *, wait: bool = True) -> BaseProcess:
        made = self._spawn("dask_worker", self.address, "--no-nanny", "--nthreads", "1")
        if wait:
            self._registered(len(self.processes) - 1)
        return made

    def end(self) -> None:
        for one in self.processes:
            one.kill()
        for one in self.processes:
            one.join()

    def _registered(self, number: int) -> None:
        log = self.folder / f"{number}.log"
        until(lambda: b"Registered to" in log.read_bytes(), f"worker {number}: {log.read_text()[-500:]}")

    def _spawn(self, program: str, *arguments: str) -> BaseProcess:
        log = self.folder / f"{len(self.processes)}.log"
        log.touch()
        env = {**os.environ, "PYTHONPATH": str(ROOT), "WORKER_TOKEN": SECRET}
        made = begin(program, "--no-dashboard", *arguments, log=log, env=env)
        self.processes.append(made)
        return made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.begin(2)
        yield made
    finally:
        made.end()


@dataclass
class Job:
    """A suite whose agent waits for a file, and what is known of its programs."""

    folder: Path
    store: Store
    address: str

    def suite(self, repeat: int) -> Path:
        (self.folder / "agent.py").write_text(AGENT)
        path = self.folder / "programs.suite.yaml"
        path.write_text(SUITE.replace("PYTHON", sys.executable).replace("REPEAT", str(repeat)))
        return path

    def starts(self) -> list[tuple[int, int, int]]:
        """Repetition, process and its parent (the worker), in order."""
        log = self.folder / "starts.log"
        return [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []

    def go(self) -> None:
        """Let the programs end."""
        (self.folder / "go").touch()

    def engine(self, repeat: int, address: str = "", **options: object) -> tuple[Engine, list[Event]]:
        asked = PlanOptions(trust=True, executor="dask", scheduler=address or self.address, **options)  # type: ignore[arg-type]
        plan = make_plan([load_suite(self.suite(repeat))], asked, user_agents={})
        events: list[Event] = []
        return Engine(plan, self.store, events.append, retry_base_s=0.001), events


@pytest.fixture
def job(tmp_path: Path, store: Store, cluster: Cluster) -> Job:
    return Job(tmp_path, store, cluster.address)


def marks(dask_scheduler: Any) -> int:
    """How many marks of begun tasks the scheduler holds."""
    return len(dask_scheduler.extensions["events"]._events)


async def eventually(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(250):
        while not condition():
            await asyncio.sleep(0.02)


async def test_the_runs_of_a_worker_that_is_killed_go_to_others(job: Job, cluster: Cluster) -> None:
    victim = cluster.worker()
    engine, events = job.engine(repeat=8)
    running = asyncio.create_task(engine.run())
    # Repetition 1 ends at once: three more wait for the file, each on a worker of its own, and have said a word.
    await eventually(lambda: len(job.starts()) == 4)
    await eventually(lambda: len({one.run for one in events if isinstance(one, TextStreamed)}) == 4)
    assert next(one for one in events if isinstance(one, Planned)).concurrency == 3  # the workers' threads
    assert victim.pid in {parent for repetition, _, parent in job.starts() if repetition > 1}
    victim.kill()
    await eventually(lambda: any(isinstance(one, AttemptFailed) for one in events))
    job.go()
    ended = await asyncio.wait_for(running, 250)

    assert ended.status == "finished"
    from distributed import Client

    async with Client(job.address, asynchronous=True) as client:  # type: ignore[no-untyped-call]
        assert await client.run_on_scheduler(marks) == 0
    assert Counter(one.run for one in events if isinstance(one, Graded)).most_common(1)[0][1] == 1
    job.store.flush()
    rows = job.store.runs_of_execution(engine.plan.execution_id)
    assert [row.status for row in rows] == ["passed"] * 8
    # The agent's key is the worker's own: this process does not have it, and the history neither.
    assert {job.store.transcript(row.id).final_output for row in rows} == {"before after ***"}
    lost = [one for row in rows for one in job.store.failed_attempts(row.id)]
    assert [one.kind for one in lost] == ["worker_lost"]
    assert sorted(row.attempts for row in rows) == [1] * 7 + [2]
    starts = Counter(repetition for repetition, _, _ in job.starts())
    assert sorted(starts.values()) == [1] * 7 + [2]  # the scheduler has begun nothing again by itself
    workers = {one.pid for one in cluster.processes[1:]}
    assert {parent for _, _, parent in job.starts()} == workers


async def test_cancelling_ends_the_programs_on_the_workers(job: Job) -> None:
    engine, _ = job.engine(repeat=6)
    running = asyncio.create_task(engine.run())
    await eventually(lambda: len(job.starts()) == 3)
    engine.command(Command("cancel"))
    ended = await asyncio.wait_for(running, 250)
    assert ended.status == "cancelled"
    await eventually(lambda: not any(alive(pid) for _, pid, _ in job.starts()))
    assert len(job.starts()) == 3


async def test_a_time_out_ends_the_program_on_the_worker(job: Job) -> None:
    engine, _ = job.engine(repeat=2, timeout=1.0)
    await asyncio.wait_for(engine.run(), 250)
    job.store.flush()
    rows = job.store.runs_of_execution(engine.plan.execution_id)
    assert [(row.status, row.error_kind) for row in rows] == [("passed", ""), ("error", "timeout")]
    await eventually(lambda: not any(alive(pid) for _, pid, _ in job.starts()))


def test_an_execution_that_was_killed_is_resumed_on_the_cluster(job: Job, cluster: Cluster, tmp_path: Path) -> None:
    db, config = tmp_path / "own.db", tmp_path / "config"
    options = PlanOptions(trust=True, executor="dask", scheduler=job.address)
    first = start(ExecutionRequest((str(job.suite(5)),), options, str(db), str(config)))

    def statuses(execution: str) -> list[str]:
        with Store.open_to_look(db) as store:
            return [row.status for row in store.runs_of_execution(execution)]

    until(lambda: "passed" in statuses(first.execution) and len(job.starts()) == 3, "the first runs")
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: not any(alive(pid) for _, pid, _ in job.starts()), "the end of the programs on the workers")
    job.go()
    until(lambda: not alive(first.pid), "the end of the process")
    # It goes on where it was: on the cluster, though nobody says so again.
    request = ExecutionRequest((), PlanOptions(trust=True), str(db), str(config), resume=first.execution)
    assert start(request).execution == first.execution
    until(lambda: statuses(first.execution) == ["passed"] * 5, "the rest")
    assert Counter(repetition for repetition, _, _ in job.starts())[1] == 1  # what had ended was not run again
    assert {parent for _, _, parent in job.starts()} <= {one.pid for one in cluster.processes[1:]}


@pytest.mark.sweep
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_scheduler_that_goes_away_ends_the_execution(
    how: signal.Signals, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "CONNECT_S", 2.0)
    folder = tmp_path / "own"
    folder.mkdir()
    own = Cluster(folder)
    try:
        own.begin(1)
        engine, _ = job.engine(repeat=4, address=own.address)
        running = asyncio.create_task(engine.run())
        await eventually(lambda: len(job.starts()) == 2)
        scheduler = own.processes[0].pid
        assert scheduler is not None
        os.kill(scheduler, how)
        ended: Ended = await asyncio.wait_for(running, 250)
        assert (ended.status, ended.message) == ("failed", f"the scheduler {own.address} is gone")
        job.store.flush()
        rows = job.store.runs_of_execution(engine.plan.execution_id)
        assert [row.status for row in rows] == ["passed", "error", "queued", "queued"]
        assert rows[1].error_kind == "cluster"
        await eventually(lambda: not any(alive(pid) for _, pid, _ in job.starts()))
    finally:
        own.end()


async def test_another_version_on_a_worker_is_said_before_anything_runs(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "__version__", "9.9.9")
    engine, events = job.engine(repeat=2)
    with pytest.raises(InfrastructureError, match=r"worker tcp://\S+ has agenteval \S+, and this is 9\.9\.9") as raised:
        await engine.run()
    assert raised.value.fix == "install agenteval 9.9.9 on all workers"
    assert events == []
    assert job.store.executions(limit=5) == []


async def test_a_scheduler_that_is_not_there(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "CONNECT_S", 0.3)
    for address in ("tcp://127.0.0.1:1", "nonsense"):
        engine, _ = job.engine(repeat=2, address=address)
        with pytest.raises(InfrastructureError, match="the scheduler can't be reached") as raised:
            await engine.run()
        assert raised.value.where == address


def test_a_key_that_is_written_down_is_not_sent(job: Job) -> None:
    path = job.suite(1)
    path.write_text(path.read_text().replace("${WORKER_TOKEN}", "sk-1234567890abcdefgh"))
    options = PlanOptions(trust=True, executor="dask", scheduler=job.address)
    plan = make_plan([load_suite(path)], options, user_agents={})
    with pytest.raises(AgentevalError, match="no key is ever sent to a cluster") as raised:
        Engine(plan, job.store, lambda event: None).prepare()
    assert raised.value.where == "env.WORKER_TOKEN of agent 'slow'"


def test_without_the_extra(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = job.engine(repeat=1)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(AgentevalError, match="needs the extra `dask`") as raised:
        engine.prepare()
    assert raised.value.fix == "pip install 'agenteval-tui[dask]'"
