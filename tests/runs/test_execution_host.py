"""Whatever runs an execution hosts it: others find it, watch it and steer it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agenteval_tui.agents.base import AgentEvent, AgentRequest, Done, TextDelta
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history import connections
from agenteval_tui.history.store import Store
from agenteval_tui.runs.client import attach, find, live_executions
from agenteval_tui.runs.events import AgentFinished, Command, Ended, Event, HistoryAwaited
from agenteval_tui.runs.execution_host import Host
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import LoadedSuite

if TYPE_CHECKING:
    from tests.runs.conftest import Scripts


@pytest.fixture
def plan(suite: Callable[..., LoadedSuite], scripts: Scripts) -> Plan:
    return make_plan([suite()], PlanOptions(repeat=2), user_agents={})


def blocked(scripts: Scripts) -> asyncio.Event:
    """Let the agent wait until the event is set."""
    gate = asyncio.Event()

    async def answer(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        await gate.wait()
        yield TextDelta("hello")
        yield Done()

    scripts.script = answer
    return gate


async def test_an_execution_in_this_process_is_found_and_steered(plan: Plan, store: Store, scripts: Scripts) -> None:
    blocked(scripts)
    events: list[Event] = []
    found: asyncio.Queue[Live] = asyncio.Queue()
    host = Host(plan, store, events.append, notices=("look",), env={})
    running = asyncio.create_task(host.run(found.put_nowait))
    async with asyncio.timeout(250):
        live = await found.get()
        assert find(plan.execution_id) == live == host.live
        assert (live.execution, live.title, live.notices) == (plan.execution_id, plan.title, ("look",))
        view = ExecutionView()
        attachment = await attach(live)
        await attachment.send(Command("cancel"))
        async for event in attachment:
            view.apply(event)
        ended = await running
    assert ended.status == "cancelled"
    assert type(events[-1]) is Ended
    assert view.count("cancelled") == 2
    assert live_executions() == []
    assert list(Path(live.socket).parent.iterdir()) == []


async def test_without_a_place_for_a_socket_a_command_line_runs_all_the_same(
    plan: Plan, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGENTEVAL_RUNTIME_DIR", str(tmp_path / ("long" * 40)))
    told: list[Any] = []
    host = Host(plan, store, told.append, env={})
    async with asyncio.timeout(250):
        ended = await host.run(lambda live: pytest.fail("nobody can watch it"))
    assert ended.status == "finished"
    assert "AGENTEVAL_RUNTIME_DIR" in host.unwatchable
    assert store.execution("last").passed == 2


async def test_what_nobody_could_watch_is_not_begun_apart(
    plan: Plan, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGENTEVAL_RUNTIME_DIR", str(tmp_path / ("long" * 40)))
    with pytest.raises(AgentevalError, match="AGENTEVAL_RUNTIME_DIR"):
        await Host(plan, store, detached=True, env={}).run()
    assert store.executions() == []


async def test_what_can_not_begin_is_raised_and_never_shown(plan: Plan, store: Store) -> None:
    store.begin_execution(_record(plan), ()).result()  # its id is taken
    with pytest.raises(AgentevalError):
        await Host(plan, store, env={}).run(lambda live: pytest.fail("it did not begin"))
    assert live_executions() == []


def _record(plan: Plan) -> Any:
    from agenteval_tui.history.records import ExecutionRecord

    return ExecutionRecord(plan.execution_id, "other", "run", "", (), 1)


async def test_a_socket_of_a_dead_process_is_replaced(plan: Plan, store: Store, scripts: Scripts) -> None:
    import socket

    from agenteval_tui.runs.live_registry import live_dir, socket_path

    path = socket_path(live_dir(), plan.execution_id)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))  # nobody listens: the process was killed
    gate = blocked(scripts)
    found: asyncio.Queue[Live] = asyncio.Queue()
    running = asyncio.create_task(Host(plan, store, env={}).run(found.put_nowait))
    async with asyncio.timeout(250):
        attachment = await attach(await found.get())
        gate.set()
        view = ExecutionView()
        async for event in attachment:
            view.apply(event)
        await running
    assert view.ended is not None
    assert view.count("passed") == 2


async def test_a_host_that_is_cancelled_ends_its_execution(plan: Plan, store: Store, scripts: Scripts) -> None:
    blocked(scripts)
    found: asyncio.Queue[Live] = asyncio.Queue()
    running = asyncio.create_task(Host(plan, store, env={}).run(found.put_nowait))
    async with asyncio.timeout(250):
        await found.get()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert store.execution("last").status == "cancelled"
    assert live_executions() == []


async def test_watchers_are_told_that_the_history_is_waited_for(
    plan: Plan, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program takes the lock before a run's end is stored, and lets go when the watchers were told."""
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    told: list[str] = []
    view = ExecutionView()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:

        def take(event: Event) -> None:
            view.apply(event)
            if isinstance(event, AgentFinished) and not told and not other.in_transaction:
                other.execute("BEGIN IMMEDIATE")
            if isinstance(event, HistoryAwaited):
                assert view.awaits == event.message
                told.append(event.message)
                other.execute("ROLLBACK")

        async with asyncio.timeout(250):
            ended = await Host(plan, store, take, env={}).run()
    assert ended.status == "finished"
    assert told == [f"waiting for the history file, which another program keeps locked: {store.path}"]
    assert view.awaits == ""
    assert store.execution("last").passed == 2
