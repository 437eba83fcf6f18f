"""Taking an execution up again, clocks that jump, and many agents that stream at once."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from greeting_suites import ONE, STOP

from agenteval_tui.agents.base import AgentEvent, AgentRequest, Done, TextDelta, UsageReported
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import AgentFinished, Command, Event, Graded, Planned, Progress
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.resume import resume_plan
from agenteval_tui.transcripts.model import Usage

Execute = Callable[..., Any]


async def costly(request: AgentRequest) -> AsyncIterator[AgentEvent]:
    yield UsageReported(Usage(10, 5, cost=0.1))
    yield TextDelta("hello")
    yield Done()


def resumed(one: Any, **options: Any) -> tuple[Engine, list[Event], ExecutionView]:
    plan = resume_plan(one.store, one.engine.plan.execution_id, PlanOptions(**options)).plan
    events: list[Event] = []
    view = ExecutionView()

    def emit(event: Event) -> None:
        events.append(event)
        view.apply(event)

    return Engine(plan, one.store, emit, env={}, retry_base_s=0.001), events, view


async def test_what_is_missing_is_run_and_all_is_shown(execution: Execute, scripts: Any) -> None:
    scripts.script = costly
    one = execution(ONE, repeat=20, max_cost=1.0, concurrency=2)
    assert (await one.run()).status == "stopped"
    assert len(scripts.requests) == 10
    engine, events, view = resumed(one, max_cost=1.5)
    ended = await engine.run()
    assert (ended.status, ended.message) == ("stopped", "the limit of $1.50 was reached after 15 of 20 runs")
    assert len(scripts.requests) == 15
    assert isinstance(events[0], Planned)
    assert [ref.run for ref in events[0].runs] == [run.ref.run for run in one.engine.plan.runs]
    assert (view.total, view.done, view.count("passed"), view.count("queued")) == (20, 15, 15, 5)
    earlier = view.runs[one.engine.plan.runs[0].ref.run]
    assert (earlier.status, earlier.score, earlier.input_tokens, earlier.cost) == ("passed", 1.0, 10, 0.1)
    last = [event for event in events if isinstance(event, Progress)][-1]
    assert (last.total, last.passed, last.queued, last.input_tokens) == (20, 15, 5, 150)
    assert last.cost == pytest.approx(1.5)
    engine, events, view = resumed(one, max_cost=100.0)
    assert (await engine.run()).status == "finished"
    row = one.store.execution("last")
    assert (row.status, row.passed, row.runs, len(scripts.requests)) == ("finished", 20, 20, 20)
    assert row.cost == pytest.approx(2.0)


async def test_repetitions_that_ended_before_count_for_an_early_stop(execution: Execute, scripts: Any) -> None:
    scripts.script = costly
    one = execution(STOP, repeat=40, max_cost=0.9, concurrency=2)
    await one.run()
    assert len(scripts.requests) == 9
    engine, _, view = resumed(one, max_cost=100.0)
    await engine.run()
    assert len(scripts.requests) == 24
    assert (view.count("passed"), view.count("skipped")) == (24, 16)
    assert "after 24 of 40 runs" in one.store.run(one.engine.plan.runs[-1].ref.run).why


async def test_a_cancelled_execution_goes_on_where_it_was(execution: Execute, scripts: Any) -> None:
    gate = asyncio.Event()

    async def gated(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        if request.repetition > 2:
            await gate.wait()
        yield TextDelta("hello")
        yield Done()

    scripts.script = gated
    one = execution(ONE, repeat=6, concurrency=2)
    task = asyncio.create_task(one.run())
    await one.until(lambda: one.view.count("passed") == 2 and scripts.running == 2)
    one.engine.command(Command("cancel"))
    assert (await task).status == "cancelled"
    gate.set()
    engine, events, view = resumed(one)
    assert (await engine.run()).status == "finished"
    assert [request.repetition for request in scripts.requests[-4:]] == [3, 4, 5, 6]
    assert view.count("passed") == 6
    told = [event.run for event in events if isinstance(event, Graded)]
    assert sorted(told) == sorted(view.runs)
    assert len(set(told)) == len(told) == len([event for event in events if isinstance(event, AgentFinished)])


async def test_a_clock_that_jumps_harms_nothing(
    execution: Execute, scripts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    jumps = itertools.cycle((0, -86_400 * 10**9, 3_600 * 10**9, -(10**9)))
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + next(jumps))
    monkeypatch.setattr(time, "time", lambda: real() / 1e9 + next(jumps) / 1e9)

    async def slow(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        await asyncio.sleep(0.12)
        yield TextDelta("hello")
        yield Done()

    scripts.script = slow
    one = execution(ONE, repeat=6, concurrency=3, timeout=20, max_seconds=3600)
    assert (await one.run()).status == "finished"
    assert set(one.statuses().values()) == {"passed"}
    ids = [run.ref.run for run in one.engine.plan.runs]
    assert ids == sorted(ids)
    for event in one.of(Progress):
        assert event.rate >= 0
        assert event.eta_s is None or 0 <= event.eta_s < 60
    assert all(0 <= event.duration_ms < 20_000 for event in one.of(Graded))
    attached = ExecutionView()
    attached.apply(one.view.snapshot())
    assert attached.count("passed") == 6


async def test_many_agents_stream_at_once(execution: Execute, scripts: Any) -> None:
    async def streams(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        for _ in range(5):
            yield TextDelta("hello ")
            await asyncio.sleep(0.01)
        yield Done()

    scripts.script = streams
    one = execution(ONE, repeat=500, concurrency=500)
    assert (await one.run()).status == "finished"
    assert scripts.most == 500
    assert set(one.statuses().values()) == {"passed"}
    assert all(run.text in ("", "hello " * 5) for run in one.view.runs.values())
