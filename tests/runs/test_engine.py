"""Running a plan: outcomes, limits, retries, cancel and pause, and what is in the store when an event says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentRequest,
    Captured,
    Done,
    Failed,
    ReasoningDelta,
    Recorded,
    Restarted,
    Seen,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.store import Store
from agenteval_tui.runs.events import (
    AgentFinished,
    AttemptFailed,
    Command,
    Ended,
    Event,
    Graded,
    Planned,
    Progress,
    RunStarted,
    TextStreamed,
    ToolArguments,
    ToolFinished,
)
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript, Usage

Execute = Callable[..., Any]

REPEATED = """
name: Greetings
agent: bot
agents:
  bot: {kind: scripted%s}
tests:
  - id: hello
    name: Says hello
    prompt: Say hello
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "hello"}]}'
"""
ONE = REPEATED % ""


def failing(times: int, **failed: Any) -> Any:
    """A script that fails so often before it says hello."""
    left = times

    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal left
        yield TextDelta("par")
        if left > 0:
            left -= 1
            yield Failed(RunError("server", "503 from the server"), **failed)
            return
        yield TextDelta("tly hello")
        yield Done()

    return script


async def forever(request: AgentRequest) -> AsyncIterator[AgentEvent]:
    yield TextDelta("so far")
    await asyncio.Event().wait()


async def test_a_run_passes_and_is_stored_before_it_is_told(execution: Execute, scripts: Any) -> None:
    one = execution(ONE)
    stored: list[str] = []
    emit = one.engine.events.emit

    def look(event: Event) -> None:
        if isinstance(event, Graded):
            stored.append(one.store.run(event.run).status)  # read by another connection: only what is committed
        emit(event)

    one.engine.events.emit = look
    ended = await one.run()
    assert (ended.status, stored) == ("finished", ["passed"])
    assert one.statuses() == {"hello#1": "passed"}
    row = one.store.execution("last")
    assert (row.status, row.runs, row.passed) == ("finished", 1, 1)
    run = one.store.runs_of_execution(row.id)[0]
    assert (run.attempts, run.score, run.output_head) == (1, 1.0, "hello")
    assert one.store.transcript(run.id).final_output == "hello"
    assert [result.criterion for result in one.store.results(run.id)] == ["Greets"]
    assert scripts.closed == 1


async def test_events_are_numbered_and_in_order(execution: Execute) -> None:
    one = execution(ONE, repeat=3)
    await one.run()
    assert [event.seq for event in one.events] == list(range(1, len(one.events) + 1))
    assert type(one.events[0]) is Planned
    assert type(one.events[-1]) is Ended
    run = one.view.runs[one.engine.plan.runs[0].ref.run]
    kinds = [type(event) for event in one.events if getattr(event, "run", "") == run.ref.run]
    assert kinds == [RunStarted, TextStreamed, AgentFinished, Graded]
    assert (run.status, run.text) == ("passed", "hello")
    last = one.of(Progress)[-1]
    assert (last.total, last.queued, last.running, last.passed) == (3, 0, 0, 3)


async def test_the_agent_gets_test_repetition_and_seed(execution: Execute, scripts: Any) -> None:
    one = execution(ONE, repeat=2, concurrency=1)
    await one.run()
    assert [(r.test_id, r.repetition) for r in scripts.requests] == [("hello", 1), ("hello", 2)]
    assert scripts.requests[0].seed == one.engine.plan.runs[0].seed != scripts.requests[1].seed
    assert scripts.requests[0].messages == (Message("user", "Say hello"),)
    assert len(scripts.setups) == 1


async def test_a_failed_criterion_is_told_with_its_reason(execution: Execute, scripts: Any) -> None:
    async def other(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("bye")
        yield Done()

    scripts.script = other
    one = execution(ONE)
    await one.run()
    graded = one.of(Graded)[0]
    assert graded.outcome == "failed"
    assert graded.failed[0][0] == "Greets"
    assert "hello" in graded.failed[0][1]
    assert one.view.failures == [graded.run]
    assert "Greets" in one.store.run(graded.run).why


async def test_an_attempt_that_may_pass_is_made_again(execution: Execute, scripts: Any) -> None:
    scripts.script = failing(2, retry=True)
    one = execution(ONE)
    await one.run()
    assert [event.attempt for event in one.of(RunStarted)] == [1, 2, 3]
    assert [event.message for event in one.of(AttemptFailed)] == ["503 from the server"] * 2
    row = one.store.runs_of_execution(one.engine.plan.execution_id)[0]
    assert (row.status, row.attempts, row.output_head) == ("passed", 3, "partly hello")
    assert one.view.runs[row.id].text == "partly hello"


async def test_the_wait_before_another_attempt_is_no_time_of_the_agents(execution: Execute, scripts: Any) -> None:
    scripts.script = failing(1, retry=True, retry_after_s=0.6)
    one = execution(ONE)
    await one.run()
    row = one.store.runs_of_execution(one.engine.plan.execution_id)[0]
    assert (row.status, row.attempts) == ("passed", 2)
    assert row.duration_ms is not None
    assert row.duration_ms < 600


@pytest.mark.parametrize(("config", "attempts"), [("", 3), (", max_attempts: 5", 5), (", max_attempts: 1", 1)])
async def test_attempts_are_limited(execution: Execute, scripts: Any, config: str, attempts: int) -> None:
    scripts.script = failing(99, retry=True)
    one = execution(REPEATED % config)
    await one.run()
    assert len(scripts.requests) == attempts
    row = one.store.runs_of_execution(one.engine.plan.execution_id)[0]
    assert (row.status, row.attempts, row.error_kind, row.error_message) == (
        "error", attempts, "server", "503 from the server")  # fmt: skip


async def test_what_cannot_pass_is_not_tried_again(execution: Execute, scripts: Any) -> None:
    scripts.script = failing(1, retry=False)
    one = execution(ONE)
    await one.run()
    assert len(scripts.requests) == 1
    assert one.statuses() == {"hello#1": "error"}


async def test_a_server_that_asks_to_wait_is_obeyed(execution: Execute, scripts: Any) -> None:
    scripts.script = failing(1, retry=True, retry_after_s=0.2)
    one = execution(ONE)
    await one.run()
    assert 0.2 <= one.of(AttemptFailed)[0].retry_in_s < 0.3
    assert one.statuses() == {"hello#1": "passed"}


async def test_nobody_waits_longer_than_the_run_may_take(execution: Execute, scripts: Any) -> None:
    scripts.script = failing(1, retry=True, retry_after_s=3600)
    one = execution(ONE, timeout=5)
    await one.run()
    row = one.store.runs_of_execution(one.engine.plan.execution_id)[0]
    assert (row.status, row.attempts) == ("error", 1)
    assert row.error_message == "503 from the server; it asks to wait 3600 s (60 min), longer than the run may take"


async def test_an_agents_failure_keeps_what_there_is_and_is_not_graded(execution: Execute, scripts: Any) -> None:
    async def broken(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("hello and")
        raise RuntimeError("boom")

    scripts.script = broken
    one = execution(ONE)
    await one.run()
    graded = one.of(Graded)[0]
    assert (graded.outcome, graded.score) == ("error", None)
    transcript = one.store.transcript(graded.run)
    assert transcript.final_output == "hello and"
    assert transcript.error == RunError.told("exception", "the agent raised RuntimeError: boom")
    assert [str(result.outcome) for result in one.store.results(graded.run)] == ["skipped"]
    assert one.store.run(graded.run).why == "the agent raised RuntimeError: boom"
    assert "boom" in one.view.runs[graded.run].error


async def test_an_agent_that_just_stops_is_an_error(execution: Execute, scripts: Any) -> None:
    async def silent(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("hello")

    scripts.script = silent
    one = execution(ONE)
    await one.run()
    assert one.of(Graded)[0].outcome == "error"


async def test_a_run_is_timed_out(execution: Execute, scripts: Any) -> None:
    scripts.script = forever
    one = execution(ONE, timeout=0.05)
    ended = await one.run()
    assert ended.status == "finished"
    run = one.of(Graded)[0].run
    transcript = one.store.transcript(run)
    assert (one.store.run(run).status, transcript.final_output) == ("error", "so far")
    assert transcript.error is not None
    assert (transcript.error.kind, transcript.error.message) == ("timeout", "the run did not end within 0.05 s")
    assert scripts.running == 0


@pytest.mark.parametrize("reason", ["timeout", "cancel"])
async def test_an_agent_that_does_not_let_go_holds_nobody_up(execution: Execute, scripts: Any, reason: str) -> None:
    release = asyncio.Event()

    async def stubborn(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("so far")
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        yield TextDelta("too late")

    scripts.script = stubborn
    one = execution(ONE, repeat=2, concurrency=1, timeout=0.05 if reason == "timeout" else 60, grace_s=0.05)
    if reason == "cancel":
        task = asyncio.create_task(one.run())
        await one.until(lambda: one.view.count("running"))
        one.engine.command(Command("cancel"))
        assert (await task).status == "cancelled"
    else:
        assert (await one.run()).status == "finished"
        assert set(one.statuses().values()) == {"error"}
    assert one.store.transcript(one.engine.plan.runs[0].ref.run).final_output == "so far"
    release.set()


async def test_no_more_runs_at_once_than_allowed(execution: Execute, scripts: Any) -> None:
    async def slow(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        await asyncio.sleep(0.002)
        yield TextDelta("hello")
        yield Done()

    scripts.script = slow
    one = execution(ONE, repeat=30, concurrency=4)
    await one.run()
    assert scripts.most == 4
    limited = execution(REPEATED % ", concurrency: 2", repeat=20, concurrency=8)
    scripts.most = 0
    await limited.run()
    assert scripts.most == 2
    assert set(limited.statuses().values()) == {"passed"}


async def test_concurrency_changes_while_it_runs(execution: Execute, scripts: Any) -> None:
    scripts.script = forever
    one = execution(ONE, repeat=9, concurrency=2)
    task = asyncio.create_task(one.run())
    await one.until(lambda: scripts.running == 2)
    one.engine.command(Command("set_concurrency", number=5))
    await one.until(lambda: scripts.running == 5)
    assert one.of(Progress)[-1].concurrency == 5
    one.engine.command(Command("set_concurrency", number=1))
    for flying in [run.ref.run for run in one.view.in_flight()]:
        one.engine.command(Command("cancel", flying))
    await one.until(lambda: one.view.count("cancelled") == 5 and scripts.running == 1)
    one.engine.command(Command("cancel"))
    assert (await task).status == "cancelled"
    assert scripts.most == 5


async def test_pause_lets_run_what_runs_and_begins_nothing(execution: Execute, scripts: Any) -> None:
    gate = asyncio.Event()

    async def gated(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        await gate.wait()
        yield TextDelta("hello")
        yield Done()

    scripts.script = gated
    one = execution(ONE, repeat=4, concurrency=2)
    task = asyncio.create_task(one.run())
    await one.until(lambda: scripts.running == 2)
    one.engine.command(Command("pause"))
    assert one.view.paused
    gate.set()
    await one.until(lambda: one.view.count("passed") == 2)
    await asyncio.sleep(0.05)
    assert len(scripts.requests) == 2
    one.engine.command(Command("resume"))
    assert (await task).status == "finished"
    assert one.view.count("passed") == 4


async def test_cancel_one_in_flight_and_one_that_waits(execution: Execute, scripts: Any) -> None:
    first = True

    async def first_hangs(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal first
        yield TextDelta("hello")
        if first:
            first = False
            await asyncio.Event().wait()
        yield Done()

    scripts.script = first_hangs
    one = execution(ONE, repeat=3, concurrency=1)
    task = asyncio.create_task(one.run())
    await one.until(lambda: one.view.count("running"))
    runs = [run.ref.run for run in one.engine.plan.runs]
    one.engine.command(Command("cancel", runs[2]))
    one.engine.command(Command("cancel", runs[0]))
    one.engine.command(Command("cancel", "no such run"))
    assert (await task).status == "finished"
    assert one.statuses() == {"hello#1": "cancelled", "hello#2": "passed", "hello#3": "cancelled"}
    assert [run.attempts for run in one.store.runs_of_execution("last" and one.engine.plan.execution_id)] == [1, 1, 0]
    assert one.store.transcript(runs[0]).final_output == "hello"


async def test_cancel_everything(execution: Execute, scripts: Any) -> None:
    scripts.script = forever
    one = execution(ONE, repeat=5, concurrency=2)
    task = asyncio.create_task(one.run())
    await one.until(lambda: scripts.running == 2)
    one.engine.command(Command("cancel"))
    ended = await task
    assert ended == one.events[-1]
    assert ended.status == "cancelled"
    assert set(one.statuses().values()) == {"cancelled"}
    assert one.view.count("cancelled") == 5
    row = one.store.execution("last")
    assert (row.status, row.cancelled) == ("cancelled", 5)
    assert scripts.running == 0
    assert scripts.closed == 1


async def test_cancelling_the_task_cancels_the_execution_first(execution: Execute, scripts: Any) -> None:
    scripts.script = forever
    one = execution(ONE, repeat=3, concurrency=2)
    task = asyncio.create_task(one.engine.run())
    await one.until(lambda: scripts.running == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert one.store.execution("last").status == "cancelled"
    assert set(one.statuses().values()) == {"cancelled"}
    assert one.events[-1].status == "cancelled"


async def test_a_cancelled_attempt_is_not_waited_for(execution: Execute, scripts: Any) -> None:
    scripts.script = failing(9, retry=True, retry_after_s=50)
    one = execution(ONE)
    task = asyncio.create_task(one.run())
    await one.until(lambda: one.of(AttemptFailed))
    one.engine.command(Command("cancel"))
    assert (await task).status == "cancelled"


async def test_tools_reasoning_and_usage_are_told_as_they_come(execution: Execute, scripts: Any) -> None:
    async def busy(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield ReasoningDelta("let me ")
        yield ReasoningDelta("see")
        yield TextDelta("I look. ")
        yield ToolCallStarted(0, "id0", "get_order")
        yield ToolArgumentsDelta(0, '{"id": ')
        yield ToolArgumentsDelta(0, "1}")
        yield TurnEnded()
        yield UsageReported(Usage(input_tokens=10, output_tokens=2, cost=0.5))
        yield ToolCallFinished(0, "not found", error=True)
        yield UsageReported(Usage(input_tokens=20, output_tokens=3, cost=0.25))
        yield TextDelta("hello")
        yield Done()

    scripts.script = busy
    one = execution(ONE)
    await one.run()
    run = one.view.runs[one.engine.plan.runs[0].ref.run]
    assert [part.kind for part in run.parts] == ["reasoning", "text", "tool", "text"]
    assert run.parts[0].text == "let me see"
    assert one.of(ToolArguments)[0].text == '{"id": 1}'
    assert one.of(ToolFinished)[0].error
    assert (run.input_tokens, run.output_tokens, run.cost) == (30, 5, 0.75)
    last = one.of(Progress)[-1]
    assert (last.input_tokens, last.output_tokens, last.cost) == (30, 5, 0.75)
    row = one.store.execution("last")
    assert (row.input_tokens, row.output_tokens, row.cost) == (30, 5, 0.75)


async def test_what_an_agent_is_seen_to_do_is_shown_in_place_of_what_it_tells(execution: Execute, scripts: Any) -> None:
    def seen(*answers: str) -> Transcript:
        calls = (ToolCall("a", "look_up", {"id": 1}, "found the-secret", "ok", message=1),)
        made = (Message("user", "Say hello"), Message("assistant", tool_calls=(0,)))
        said = tuple([Message("assistant", text) for text in answers])
        return Transcript((*made, *said), calls, usage=Usage(7, 3))

    shown: list[Any] = []

    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("Starting")
        yield Seen(seen())
        yield ToolCallStarted(0, "a", "look_up")  # it tells of its call, too
        yield TurnEnded()
        shown.append(one.view.runs[request.run].copy())
        yield TextDelta("hello")
        yield Captured(seen("hello"))
        yield Done()

    scripts.script = script
    one = execution(ONE, env={"SOME_KEY": "the-secret"})
    assert (await one.run()).status == "finished"
    (run,) = one.view.runs.values()
    (before,) = shown
    assert [(part.kind, part.name, part.done) for part in before.parts] == [("tool", "look_up", True)]
    assert (before.status, before.input_tokens, before.attempt) == ("running", 7, 1)
    assert [(part.kind, part.text) for part in run.parts] == [("tool", ""), ("text", "hello")]
    assert run.parts[0].arguments == '{"id": 1}'
    assert run.status == "passed"


async def test_failed_attempts_are_counted_in_what_it_costs(execution: Execute, scripts: Any) -> None:
    left = 1

    async def costly(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal left
        yield UsageReported(Usage(input_tokens=100, cost=1.0))
        if left:
            left -= 1
            yield Failed(RunError("server", "503"), retry=True)
            return
        yield TextDelta("hello")
        yield Done()

    scripts.script = costly
    one = execution(ONE)
    await one.run()
    assert (one.of(Progress)[-1].input_tokens, one.of(Progress)[-1].cost) == (200, 2.0)
    assert one.view.runs[one.engine.plan.runs[0].ref.run].input_tokens == 100


async def test_text_is_merged_before_it_goes_out(execution: Execute, scripts: Any) -> None:
    async def chatty(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        for _ in range(20_000):
            yield TextDelta("hello ")
        yield Done()

    scripts.script = chatty
    one = execution(ONE, repeat=2)
    await one.run()
    assert len(one.of(TextStreamed)) < 500
    assert sum(len(event.text) for event in one.of(TextStreamed)) == 2 * 20_000 * 6


async def test_an_agent_that_never_waits_leaves_room_for_others(execution: Execute, scripts: Any) -> None:
    async def endless(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        while True:
            yield ReasoningDelta("")

    scripts.script = endless
    one = execution(ONE, repeat=2, timeout=60)
    task = asyncio.create_task(one.run())
    await one.until(lambda: scripts.running == 2)
    one.engine.command(Command("cancel"))
    assert (await task).status == "cancelled"


async def test_a_recording_is_shown_and_graded(execution: Execute, scripts: Any) -> None:
    recorded = Transcript(
        messages=(Message("user", "hi"), Message("assistant", "hello from the past")),
        final_output="hello from the past",
        usage=Usage(input_tokens=3),
    )

    async def replay(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield Recorded(recorded)
        yield Done()

    scripts.script = replay
    one = execution(ONE)
    await one.run()
    run = one.of(Graded)[0].run
    assert one.view.runs[run].text == "hello from the past"
    assert one.store.transcript(run) == recorded
    assert one.of(Progress)[-1].input_tokens == 3


async def test_a_long_transcript_is_graded_too(execution: Execute, scripts: Any) -> None:
    async def long(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("x" * 300_000 + "hello")
        yield Done()

    scripts.script = long
    one = execution(ONE)
    await one.run()
    assert one.statuses() == {"hello#1": "passed"}


async def test_a_watcher_that_breaks_stops_nothing(execution: Execute, caplog: pytest.LogCaptureFixture) -> None:
    one = execution(ONE, repeat=2)

    def broken(event: Event) -> None:
        raise BrokenPipeError

    one.engine.events.emit = broken
    assert (await one.run()).status == "finished"
    assert set(one.statuses().values()) == {"passed"}
    assert "a watcher broke" in caplog.text


async def test_what_cannot_be_stored_ends_the_execution_with_a_reason(execution: Execute, store: Store) -> None:
    one = execution(ONE, repeat=5_000, concurrency=2)
    task = asyncio.create_task(one.run())
    await one.until(lambda: one.of(Graded))
    store.close()  # as if the disk were gone
    ended = await task
    assert ended.status == "failed"
    assert "closed" in ended.message
    told = {event.run for event in one.of(Graded)}
    with Store.open(store.path) as again:
        kept = {row.id for row in again.runs_of_execution(one.engine.plan.execution_id) if row.status == "passed"}
    assert told <= kept


async def test_an_execution_that_cannot_be_stored_does_not_begin(
    execution: Execute, store: Store, scripts: Any
) -> None:
    one = execution(ONE)
    store.close()
    with pytest.raises(AgentevalError):
        await one.run()
    assert scripts.requests == []
    assert one.events == []


def test_a_wrong_agent_is_found_before_anything_runs(execution: Execute) -> None:
    one = execution(ONE.replace("kind: scripted", "kind: scriptd"))
    with pytest.raises(AgentevalError, match="scriptd"):
        one.engine.prepare()
    unset = execution(ONE.replace("kind: scripted", 'kind: scripted, url: "${NOT_SET}"'))
    with pytest.raises(AgentevalError, match="NOT_SET") as raised:
        unset.engine.prepare()
    assert "bot" in str(raised.value)


async def test_variables_of_the_environment_reach_the_agent_and_not_the_store(execution: Execute, scripts: Any) -> None:
    one = execution(
        ONE.replace("kind: scripted", 'kind: scripted, url: "${URL}"'), env={"URL": "secret-place"}, trust=True
    )
    await one.run()
    assert scripts.setups[0].config["url"] == "secret-place"
    assert scripts.requests[0].config["url"] == "secret-place"
    one.store.flush()
    data = b"".join(path.read_bytes() for path in one.store.path.parent.glob("history.db*"))
    assert b"secret-place" not in data


async def test_commands_that_make_no_sense_change_nothing(execution: Execute) -> None:
    one = execution(ONE)
    for command in (Command("set_concurrency", number=0), Command("explode"), Command("watch", "x")):
        one.engine.command(command)
    assert (await one.run()).status == "finished"


async def test_commands_may_come_before_the_start(execution: Execute, scripts: Any) -> None:
    one = execution(ONE, repeat=3)
    one.engine.prepare()
    second = one.engine.plan.runs[1].ref.run
    for command in (
        Command("pause"), Command("set_concurrency", number=2), Command("cancel", second), Command("resume")
    ):  # fmt: skip
        one.engine.command(command)
    assert (await one.run()).status == "finished"
    assert type(one.events[0]) is Planned
    assert one.statuses() == {"hello#1": "passed", "hello#2": "cancelled", "hello#3": "passed"}
    cancelled = execution(ONE, repeat=3)
    cancelled.engine.prepare()
    cancelled.engine.command(Command("cancel"))
    asked = len(scripts.requests)
    assert (await cancelled.run()).status == "cancelled"
    assert len(scripts.requests) == asked
    assert set(cancelled.statuses().values()) == {"cancelled"}


async def test_an_eta_is_told_once_something_has_ended(execution: Execute, scripts: Any) -> None:
    async def slow(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        await asyncio.sleep(0.3)
        yield TextDelta("hello")
        yield Done()

    scripts.script = slow
    one = execution(ONE, repeat=4, concurrency=1)
    await one.run()
    etas = [(event.passed, event.eta_s) for event in one.of(Progress)]
    assert any(passed and eta for passed, eta in etas)
    assert all(eta is None for passed, eta in etas if not passed)
    assert one.of(Progress)[-1].eta_s == 0


def test_plans_may_be_made_by_hand(execution: Execute) -> None:
    one = execution(ONE)
    assert replace(one.engine.plan, runs=()).tests == 0


async def test_what_is_told_again_is_shown_once(execution: Execute, scripts: Any) -> None:
    async def again(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("hello")
        yield Restarted()
        yield ToolCallStarted(0, "a", "look_up")
        yield ToolCallFinished(0, "found")
        yield TextDelta("hello")
        yield Done()

    scripts.script = again
    one = execution(ONE)
    await one.run()
    run = one.view.runs[one.engine.plan.runs[0].ref.run]
    assert [(part.kind, part.text) for part in run.parts if part.kind == "text"] == [("text", "hello")]
    assert [part.kind for part in run.parts] == ["tool", "text"]


HELLO = """
name: Greetings
agent: bot
agents:
  bot: {kind: scripted}
tests:
  - id: hello
    prompt: Say hello
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "hello"}]}'
"""


async def test_the_last_execution_that_is_replayed_is_not_the_one_that_replays_it(
    execution: Callable[..., Any], scripts: Any
) -> None:
    await execution(HELLO).run()
    replayed = execution(HELLO.replace("{kind: scripted}", "{kind: replay, execution: last}"))
    await replayed.run()
    assert replayed.statuses() == {"hello#1": "passed"}
    assert len(scripts.requests) == 1
