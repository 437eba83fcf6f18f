"""Servers that take only so many at once, and attempts that are kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from greeting_suites import ONE

from agenteval_tui.agents.base import AgentEvent, AgentRequest, Done, Failed, TextDelta, UsageReported
from agenteval_tui.runs import throttle
from agenteval_tui.runs.events import AttemptFailed, Command, Progress, Throttled
from agenteval_tui.transcripts.model import RunError, Usage

Execute = Callable[..., Any]

BUSY = RunError("rate_limit", "429: slow down", "lower `concurrency`, or wait")


def server(takes: int, first: int = 1, seconds: float = 0.004, **failed: Any) -> Any:
    """A server that takes only so many at once, and refuses the others. It begins when the `first` ones have come."""
    busy = came = 0
    begins = asyncio.Event()

    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal busy, came
        came += 1
        if came >= first:
            begins.set()
        await begins.wait()
        if busy >= takes:
            await asyncio.sleep(0.001)
            yield Failed(BUSY, retry=True, **failed)
            return
        busy += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            busy -= 1  # before the answer is out: nobody says when a generator that is left is closed
        yield TextDelta("hello")
        yield Done()

    return script


@pytest.mark.parametrize("takes", [1, 3])
async def test_a_server_that_takes_only_so_many_is_worked_through(execution: Execute, scripts: Any, takes: int) -> None:
    scripts.script = server(takes, first=16, retry_after_s=0.002)
    one = execution(ONE, repeat=60, concurrency=16)
    await one.run()
    assert set(one.statuses().values()) == {"passed"}
    throttled = one.of(Throttled)
    assert (throttled[0].agent, throttled[0].limit, throttled[0].wanted) == ("bot", 8, 16)
    assert throttled[0].wait_s > 0
    # Far fewer refusals than without a limit, where each of 16 would ask again and again.
    assert len(scripts.requests) < 60 * 4
    refused = one.of(AttemptFailed)
    assert {(event.kind, event.fix) for event in refused} == {(BUSY.kind, BUSY.fix)}
    row = max(one.store.runs_of_execution(one.engine.plan.execution_id), key=lambda row: row.attempts)
    kept = one.store.failed_attempts(row.id)
    assert [attempt.number for attempt in kept] == list(range(1, row.attempts))
    assert {attempt.message for attempt in kept} == {"429: slow down"}


async def test_the_limit_rises_again_when_the_server_has_time(execution: Execute, scripts: Any) -> None:
    left = 8

    async def busy_at_first(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal left
        await asyncio.sleep(0.001)
        if left:
            left -= 1
            yield Failed(BUSY, retry=True, retry_after_s=0.001)
            return
        yield TextDelta("hello")
        yield Done()

    scripts.script = busy_at_first
    one = execution(ONE, repeat=60, concurrency=8)
    await one.run()
    limits = [event.limit for event in one.of(Throttled)]
    assert limits[0] == 4
    assert limits[-1] == 8
    assert one.view.throttled == {}
    assert set(one.statuses().values()) == {"passed"}


async def test_waiting_in_line_counts_neither_as_attempt_nor_as_time(execution: Execute, scripts: Any) -> None:
    left = 6

    async def refuses(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal left
        if left:
            left -= 1
            yield Failed(BUSY, retry=True, retry_after_s=0.4)
            return
        yield TextDelta("hello")
        yield Done()

    scripts.script = refuses
    one = execution(ONE, timeout=2.0)  # less than the waits together, and much more than the attempts
    await one.run()
    row = one.store.runs_of_execution(one.engine.plan.execution_id)[0]
    assert (row.status, row.attempts) == ("passed", 7)
    assert row.duration_ms < 2000


@pytest.mark.parametrize("config", ["", ", max_attempts: 1"])
async def test_a_server_that_refuses_everybody_ends_in_errors(execution: Execute, scripts: Any, config: str) -> None:
    scripts.script = server(0)
    one = execution(ONE.replace("kind: scripted", f"kind: scripted{config}"), repeat=3)
    await one.run()
    assert set(one.statuses().values()) == {"error"}
    row = one.store.runs_of_execution(one.engine.plan.execution_id)[0]
    assert (row.error_kind, row.error_message) == ("rate_limit", "429: slow down")
    if config:
        assert len(scripts.requests) == 3


async def test_a_used_up_quota_is_not_waited_for(execution: Execute, scripts: Any) -> None:
    scripts.script = server(0, retry_after_s=throttle.LONGEST_WAIT_S + 1)
    one = execution(ONE)
    await one.run()
    row = one.store.runs_of_execution(one.engine.plan.execution_id)[0]
    assert (row.status, row.error_message) == ("error", "429: slow down; it asks to wait 601 s (10 min)")


async def test_a_busy_server_holds_up_nobody_elses_runs(execution: Execute, scripts: Any) -> None:
    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        if request.config.get("busy"):
            yield Failed(BUSY, retry=True, retry_after_s=500.0)
            return
        yield TextDelta("hello")
        yield Done()

    scripts.script = script
    text = ONE.replace("  bot: {kind: scripted}", "  bot: {kind: scripted, busy: true}\n  free: {kind: scripted}")
    second = text.split("tests:\n")[1].replace("id: hello", "id: other\n    agent: free")
    one = execution(text + second, repeat=10, concurrency=4)
    task = asyncio.create_task(one.run())
    await one.until(lambda: one.view.count("passed") == 10)
    assert one.view.throttled["bot"].wait_s > 400
    await one.until(lambda: one.of(Progress))
    last = one.of(Progress)[-1]
    assert (last.total, last.queued + last.running) == (20, 10)
    assert last.running == len(one.view.in_flight()) > 0  # what was refused has begun
    parked = next(run for run in one.view.in_flight())
    assert parked.retry_in_s > 400
    one.engine.command(Command("cancel", parked.ref.run))
    await one.until(lambda: one.view.runs[parked.ref.run].status == "cancelled")
    assert len(one.store.failed_attempts(parked.ref.run)) == 1
    one.engine.command(Command("cancel"))
    assert (await task).status == "cancelled"
    assert sorted(one.statuses().values()) == ["cancelled"] * 10 + ["passed"] * 10


async def test_a_limit_is_reached_also_while_runs_wait_in_line(execution: Execute, scripts: Any) -> None:
    scripts.script = server(0, retry_after_s=500.0)
    one = execution(ONE, repeat=3, max_seconds=0.3)
    assert (await one.run()).status == "stopped"
    assert set(one.statuses().values()) == {"queued"}
    assert (one.view.count("queued"), one.view.in_flight(), one.of(Progress)[-1].queued) == (3, [], 3)


async def test_what_failed_attempts_used_is_kept_with_them(execution: Execute, scripts: Any) -> None:
    left = 2

    async def breaks(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal left
        yield TextDelta("hel")
        yield UsageReported(Usage(100, 5, cost=0.25))
        if left:
            left -= 1
            yield Failed(RunError("connection", "the stream broke off"), retry=True)
            return
        yield TextDelta("lo")
        yield Done()

    scripts.script = breaks
    one = execution(ONE)
    await one.run()
    run = one.engine.plan.runs[0].ref.run
    kept = one.store.failed_attempts(run)
    assert [(a.number, a.kind, a.input_tokens, a.output_tokens, a.cost) for a in kept] == [
        (1, "connection", 100, 5, 0.25), (2, "connection", 100, 5, 0.25)]  # fmt: skip
    assert all(attempt.at_ms and attempt.duration_ms >= 0 for attempt in kept)
    assert (one.store.run(run).attempts, one.store.transcript(run).final_output) == (3, "hello")
    assert (
        one.of(Progress)[-1].cost
        == sum(row.cost or 0.0 for row in one.store.costs(one.engine.plan.execution_id))
        == 0.75
    )


@pytest.mark.parametrize("early", ["limit", "cancel"])
async def test_attempts_of_runs_that_still_stand_in_line_are_kept(execution: Execute, scripts: Any, early: str) -> None:
    async def counts_and_refuses(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield UsageReported(Usage(10, 5, cost=0.25))
        yield Failed(BUSY, retry=True, retry_after_s=30.0)

    scripts.script = counts_and_refuses
    limits = {"max_seconds": 0.3} if early == "limit" else {}
    one = execution(ONE, concurrency=1, **limits)
    running = asyncio.ensure_future(one.run())
    await one.until(lambda: one.of(AttemptFailed))
    if early == "cancel":
        one.engine.command(Command("cancel"))
    ended = await running
    assert ended.status == ("stopped" if early == "limit" else "cancelled")
    run = one.engine.plan.runs[0].ref.run
    kept = one.store.failed_attempts(run)
    assert [(attempt.kind, attempt.cost) for attempt in kept] == [("rate_limit", 0.25)]
    assert one.statuses() == {"hello#1": "queued" if early == "limit" else "cancelled"}
    row = one.store.execution("last")
    (paid,) = one.store.costs(row.id)
    assert (row.cost, row.input_tokens) == (paid.cost, paid.input_tokens) == (0.25, 10)
    assert one.of(Progress)[-1].cost == 0.25


def poisonous(poison: set[int], last: int) -> Any:
    """A server that has time, and refuses some requests whenever they come. Those after the `last` one
    it answers and refuses when all that it refuses have come, also where a busy machine begins one run long after the
    other: others are answered after each of them asked."""
    missing = set(poison)
    all_came = asyncio.Event()

    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        missing.discard(request.repetition)
        if not missing:
            all_came.set()
        if request.repetition > last:
            await all_came.wait()
        await asyncio.sleep(0.02)
        if request.repetition in poison:
            yield Failed(BUSY, retry=True)
            return
        yield TextDelta("hello")
        yield Done()

    return script


@pytest.mark.sweep
@pytest.mark.parametrize("poison", [{1}, {200}, {50, 100, 150}, {1, 2, 3}, {198, 199, 200}])
async def test_runs_that_are_always_refused_hold_up_nobody(execution: Execute, scripts: Any, poison: set[int]) -> None:
    scripts.script = poisonous(poison, last=190)
    one = execution(ONE, repeat=200, concurrency=16)
    await one.run()
    rows = one.store.runs_of_execution(one.engine.plan.execution_id)
    assert {row.repetition for row in rows if row.status == "error"} == poison
    assert sum(row.status == "passed" for row in rows) == 200 - len(poison)
    broken = next(row for row in rows if row.status == "error")
    assert broken.error_kind == "rate_limit"
    assert re.search("refused [34] times", broken.error_message)
    assert "other runs were answered" in broken.error_message
    assert "concurrency" not in one.store.transcript(broken.id).error.fix
    assert len(scripts.requests) <= 200 + 6 * len(poison), "each refused run asks a few times at most"


async def test_refused_runs_wait_at_the_end_of_the_line(execution: Execute, scripts: Any) -> None:
    """The first run is refused once: all others are asked before it is asked again."""
    refused = False

    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal refused
        if request.repetition == 1 and not refused:
            refused = True
            yield Failed(BUSY, retry=True, retry_after_s=0.001)
            return
        yield TextDelta("hello")
        yield Done()

    scripts.script = script
    one = execution(ONE, repeat=12, concurrency=1)
    await one.run()
    assert [request.repetition for request in scripts.requests] == [1, *range(2, 13), 1]
    assert set(one.statuses().values()) == {"passed"}
