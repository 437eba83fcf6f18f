"""Limits on cost, tokens and time; early stops; answers of the history; and what costs what."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from greeting_suites import ONE, STOP

from agenteval_tui.agents.base import AgentEvent, AgentRequest, Done, Failed, TextDelta, UsageReported
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs import engine, execution_state
from agenteval_tui.runs.events import AgentFinished, Command, Graded, Planned, Progress
from agenteval_tui.runs.plan.model import Limits
from agenteval_tui.transcripts.model import RunError, Usage

Execute = Callable[..., Any]


def says(text: str = "hello", seconds: float = 0.0, **usage: Any) -> Any:
    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        await asyncio.sleep(seconds)
        if usage:
            yield UsageReported(Usage(**usage))
        yield TextDelta(text)
        yield Done()

    return script


@pytest.mark.parametrize(
    ("options", "ran", "words"),
    [
        ({"max_cost": 1.0}, 10, "the limit of $1.00 was reached after 10 of 40 runs"),
        ({"max_cost": 0.95}, 9, "the limit of $0.95 was reached after 9 of 40 runs"),
        ({"max_tokens": 500}, 10, "the limit of 500 tokens was reached after 10 of 40 runs"),
        ({"limits": Limits(cost=0.0)}, 0, "the limit of $0.00 was reached after 0 of 40 runs"),
    ],
)
async def test_a_limit_stops_cleanly(
    execution: Execute, scripts: Any, options: dict[str, Any], ran: int, words: str
) -> None:
    scripts.script = says(seconds=0.001, input_tokens=40, output_tokens=10, cost=0.1)
    one = execution(ONE, repeat=40, concurrency=8, **options)
    ended = await one.run()
    assert (ended.status, ended.message) == ("stopped", words)
    statuses = list(one.statuses().values())
    assert (statuses.count("passed"), statuses.count("queued")) == (ran, 40 - ran)
    row = one.store.execution("last")
    assert (row.status, row.passed) == ("stopped", ran)
    planned = one.of(Planned)[0]
    limits = options.get("limits", Limits(options.get("max_cost"), options.get("max_tokens")))
    assert (planned.max_cost, planned.max_tokens) == (limits.cost, limits.tokens)
    last = one.of(Progress)[-1]
    assert (last.queued, last.running, last.passed) == (40 - ran, 0, ran)


async def test_a_limit_that_is_not_reached_is_not_spoken_of(execution: Execute, scripts: Any) -> None:
    scripts.script = says(cost=0.1)
    one = execution(ONE, repeat=10, max_cost=1.0, max_seconds=3600)
    ended = await one.run()
    assert (ended.status, ended.message) == ("finished", "")


async def test_time_runs_out_and_what_is_in_flight_ends(
    execution: Execute, scripts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The time counts from the first question: a machine that takes long to get there has not used it up. From there,
    # 500 runs of which two go at once can't all end before it is over.
    asked: list[float] = []

    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        asked.append(time.monotonic())
        await asyncio.sleep(0.01)
        yield TextDelta("hello")
        yield Done()

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() - asked[0] if asked else 0.0)
    for module in (execution_state, engine):
        monkeypatch.setattr(module, "time", clock)
    scripts.script = script
    one = execution(ONE, repeat=500, concurrency=2, max_seconds=0.05)
    ended = await one.run()
    assert ended.status == "stopped"
    assert ended.message.startswith("the limit of 0.05 s was reached after ")
    assert set(one.statuses().values()) == {"passed", "queued"}


async def test_an_agent_of_unknown_cost_is_named(execution: Execute, scripts: Any) -> None:
    scripts.script = says(input_tokens=5)
    one = execution(ONE, max_cost=1.0)
    ended = await one.run()
    assert (ended.status, "did not count bot" in ended.message) == ("finished", True)


async def test_no_run_begins_once_a_cost_is_not_known(execution: Execute, scripts: Any) -> None:
    """Else a limit of 10 cents could cost any sum."""
    scripts.script = says(input_tokens=5)
    one = execution(ONE, repeat=40, concurrency=4, max_cost=0.1)
    ended = await one.run()
    ran = list(one.statuses().values()).count("passed")
    assert ran <= 4
    assert (ended.status, ended.message) == (
        "stopped",
        f"the limit on cost can't be kept, so no more runs started after {ran} of 40 runs; "
        "the limit on cost did not count bot: what its tokens cost is not known",
    )
    scripts.script = says()  # it says nothing of tokens
    assert (await execution(ONE, repeat=40, concurrency=4, max_cost=0.1).run()).status == "finished"


async def test_a_run_whose_requests_are_partly_priced_has_no_known_cost(execution: Execute, scripts: Any) -> None:
    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield UsageReported(Usage(5, 5, cost=0.0125))
        yield UsageReported(Usage(5, 5))
        yield TextDelta("hello")
        yield Done()

    scripts.script = script
    one = execution(ONE, repeat=40, concurrency=1, max_cost=1)
    ended = await one.run()
    assert ended.status == "stopped"
    assert ended.message.startswith("the limit on cost can't be kept, so no more runs started after 1 of 40 runs")
    run = next(row for row in one.store.runs_of_execution(one.store.execution("last").id) if row.status == "passed")
    assert (run.input_tokens, run.cost) == (10, None)
    said = [note.description for note in one.store.transcript(run.id).notes]
    assert said == ["the cost is at least $0.0125: the price of some requests is not known"]


async def test_a_failed_attempt_of_unknown_cost_makes_the_cost_of_the_run_unknown(
    execution: Execute, scripts: Any
) -> None:
    asked = 0

    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal asked
        asked += 1
        yield UsageReported(Usage(5, 5, cost=None if asked == 1 else 0.01))
        if asked == 1:
            yield Failed(RunError("connection", "gone"), retry=True, retry_after_s=0.0)
            return
        yield TextDelta("hello")
        yield Done()

    scripts.script = script
    ended = await execution(ONE, repeat=40, concurrency=1, max_cost=1).run()
    assert (ended.status, "no more runs started after 1 of 40" in ended.message) == ("stopped", True)


def test_a_limit_on_cost_without_a_price_is_refused(execution: Execute) -> None:
    url = "http://127.0.0.1:9/v1"
    text = ONE.replace("{kind: scripted}", f"{{kind: openai, base_url: '{url}', model: nobody-knows-this}}")
    with pytest.raises(AgentevalError, match="nobody-knows-this") as raised:
        execution(text, max_cost=1.0).engine.prepare()
    assert "prices.yaml" in raised.value.fix
    priced = text.replace("nobody-knows-this}", "nobody-knows-this, price: {input: 1, output: 2}}")
    execution(priced, max_cost=1.0).engine.prepare()
    execution(text).engine.prepare()


async def test_tokens_are_priced_by_the_list(execution: Execute, scripts: Any) -> None:
    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("hello")
        yield UsageReported(Usage(1_000_000, 500_000))
        yield Done("stop", "some-model")

    scripts.script = script
    one = execution(ONE.replace("{kind: scripted}", "{kind: scripted, price: {input: 1.0, output: 4.0}}"))
    await one.run()
    run = one.engine.plan.runs[0].ref.run
    assert one.store.transcript(run).usage.cost == 3.0
    assert one.view.runs[run].cost == one.of(Progress)[-1].cost == one.store.execution("last").cost == 3.0


# Early stops


async def test_repetitions_stop_when_the_pass_rate_is_known(execution: Execute, scripts: Any) -> None:
    scripts.script = says(seconds=0.001)
    one = execution(STOP, repeat=50, concurrency=16)
    ended = await one.run()
    statuses = list(one.statuses().values())
    assert (statuses.count("passed"), statuses.count("skipped")) == (24, 26)
    assert scripts.most <= 16
    assert ended.message == "26 of 50 runs were not needed"
    last = one.of(Progress)[-1]
    assert (last.passed, last.skipped, last.queued, last.running) == (24, 26, 0, 0)
    skipped = next(event for event in one.of(Graded) if event.outcome == "skipped")
    row = one.store.run(skipped.run)
    assert row.why.startswith("not needed: the pass rate is above 0.8 after 24 of 50 runs (95 % confidence sequence")
    assert (row.attempts, row.started_ms, one.store.execution("last").skipped) == (0, None, 26)
    assert one.view.failures == []


async def test_failures_decide_as_well_and_errors_do_not(execution: Execute, scripts: Any) -> None:
    asked = 0

    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal asked
        asked += 1
        if asked <= 5:
            yield Failed(RunError("server", "500"))
            return
        yield TextDelta("bye")
        yield Done()

    scripts.script = script
    one = execution(STOP, repeat=30, concurrency=1)
    await one.run()
    statuses = list(one.statuses().values())
    assert (statuses.count("error"), statuses.count("failed"), statuses.count("skipped")) == (5, 3, 22)
    assert "below 0.8 after 3 of 30 runs" in one.store.run(one.engine.plan.runs[-1].ref.run).why


async def test_each_variation_is_decided_by_itself_and_the_rule_may_be_ignored(
    execution: Execute, scripts: Any
) -> None:
    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("bye" if request.config.get("rude") else "hello")
        yield Done()

    scripts.script = script
    varied = STOP.replace("    prompt:", "    variations: [{name: rude, config: {rude: true}}]\n    prompt:")
    one = execution(varied, repeat=30)
    await one.run()
    rows = one.store.runs_of_execution(one.engine.plan.execution_id)
    done = {name: [row.status for row in rows if row.variation == name] for name in ("", "rude")}
    assert (done[""].count("passed"), done["rude"].count("failed")) == (24, 3)
    everything = execution(STOP, repeat=20, early_stop=False)
    await everything.run()
    assert set(everything.statuses().values()) == {"passed"}


async def test_cancelling_a_repetition_lets_another_take_its_place(execution: Execute, scripts: Any) -> None:
    scripts.script = says(seconds=0.002)
    one = execution(STOP, repeat=32, concurrency=2)
    task = asyncio.create_task(one.run())
    await one.until(lambda: one.view.count("running") or one.view.done)
    for run in one.engine.plan.runs[26:]:
        one.engine.command(Command("cancel", run.ref.run))
    await task
    statuses = list(one.statuses().values())
    assert (statuses.count("passed"), statuses.count("cancelled"), statuses.count("skipped")) == (24, 6, 2)


# Answers of the history


async def test_known_answers_are_taken_and_graded_anew(execution: Execute, scripts: Any) -> None:
    scripts.script = says("hello there", input_tokens=10, cost=1.0)
    await execution(ONE, repeat=2).run()
    assert len(scripts.requests) == 2
    stricter = ONE.replace('"contains": "hello"', '"contains": "good morning"')
    again = execution(stricter, repeat=2, cache="all", max_cost=0.5)
    ended = await again.run()
    assert (ended.status, len(scripts.requests)) == ("finished", 2)
    assert set(again.statuses().values()) == {"failed"}
    assert all(event.cached for event in again.of(AgentFinished))
    last = again.of(Progress)[-1]
    assert (last.cost, last.input_tokens) == (None, 0)
    row = again.store.runs_of_execution(again.engine.plan.execution_id)[0]
    assert (row.cached, row.attempts) == (True, 0)
    assert again.store.execution("last").cost is None
    assert (again.view.runs[row.id].cached, again.view.runs[row.id].text) == (True, "hello there")
    first = execution(ONE, repeat=2, cache="first")
    await first.run()
    assert [request.repetition for request in scripts.requests[2:]] == [2]


async def test_another_question_is_asked_and_errors_are_no_answers(execution: Execute, scripts: Any) -> None:
    scripts.script = says()
    await execution(ONE).run()

    async def broken(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield Failed(RunError("server", "500"))

    scripts.script = broken
    changed = {
        "prompt": ONE.replace("Say hello", "Say hello!"),
        "agent": ONE.replace("kind: scripted", "kind: scripted, temperature: 1"),
        "context": ONE.replace("    prompt:", "    context: {input_data: {a: 1}}\n    prompt:"),
        "turns": ONE.replace("prompt: Say hello", "turns: [Say hello, more]"),
    }
    for what, text in changed.items():
        for _ in range(2):
            asked = len(scripts.requests)
            await execution(text, cache="all").run()
            assert len(scripts.requests) == asked + 1, what
    asked = len(scripts.requests)
    same = ONE.replace("kind: scripted", "kind: scripted, concurrency: 3, description: the same, max_attempts: 2")
    await execution(same, cache="all").run()
    assert len(scripts.requests) == asked
    await execution(ONE, cache="all", seed=5).run()
    assert len(scripts.requests) == asked + 1


async def test_an_agent_whose_files_changed_is_another_one(execution: Execute, scripts: Any, tmp_path: Any) -> None:
    scripts.script = says()
    text = ONE.replace("kind: scripted", "kind: scripted, program: [run, helper.py]")
    for content, asked in (("one", 1), ("one", 1), ("two", 2)):
        (tmp_path / "helper.py").write_text(content)
        await execution(text, cache="all").run()
        assert len(scripts.requests) == asked
