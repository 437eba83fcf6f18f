"""The engine with real protocol servers: turns, refusals, streams that break off, prices, secrets."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer, stream_of

from agenteval_tui.agents.base import AgentEvent, AgentRequest, Done, Failed, ReasoningDelta, TextDelta
from agenteval_tui.runs.events import Progress, Throttled, encode
from agenteval_tui.transcripts.model import RunError

Execute = Callable[..., Any]
KEY = "sk-t0p-secret-0123456789"
GREETS = {"type": "TextMatch", "contains": "hello"}


def suite(agent: dict[str, Any], *metrics: dict[str, Any], judge: dict[str, Any] | None = None, **test: Any) -> str:
    """A suite with one test. JSON is YAML."""
    config = {"metrics": list(metrics) or [GREETS]}
    criterion = {"name": "Greets", "prototype_class": "TextResponse", "config_uxon": config}
    agents = {"bot": agent, **({"judge": judge} if judge else {})}
    one = {"id": "hello", "criteria": [criterion], **({} if test.get("turns") else {"prompt": "Say hello"}), **test}
    return json.dumps({"name": "Served", "agent": "bot", "agents": agents, "tests": [one]})


def at(server: ScriptedServer, **more: Any) -> dict[str, Any]:
    return {"kind": "openai", "base_url": server.url, "model": "m-1", **more}


def piece(text: str = "", finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {"content": text} if text else {}
    return {"model": "m-1", "choices": [{"index": 0, "delta": {**delta, **more}, "finish_reason": finish}]}


def said(text: str) -> Answer:
    usage = {"model": "m-1", "choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}}
    return stream_of(piece(text), piece(finish="stop"), usage)


async def test_a_conversation_with_tools_over_the_wire(execution: Execute) -> None:
    def answer(request: Request) -> Answer:
        messages = request.json["messages"]
        if messages[-1]["role"] == "tool":
            return said(f"hello, {messages[-1]['content']}")
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "time", "arguments": "{}"}}
        return stream_of(piece(tool_calls=[call]), piece(finish="tool_calls"))

    async with ScriptedServer(answer) as server:
        tools = [{"name": "time", "sample_response": "noon"}]
        one = execution(suite(at(server, system="be nice", tools=tools), turns=["first", "second"]))
        await one.run()
    assert one.statuses() == {"hello#1": "passed"}
    last = server.requests[-1].json["messages"]
    assert [message["role"] for message in last] == [
        "system", "user", "assistant", "tool", "assistant", "user", "assistant", "tool"]  # fmt: skip
    ids = [message["tool_call_id"] for message in last if message["role"] == "tool"]
    assert len(set(ids)) == 2
    transcript = one.store.transcript(one.engine.plan.runs[0].ref.run)
    assert [message.role for message in transcript.messages] == [*(one["role"] for one in last), "assistant"]
    assert [call.result for call in transcript.tool_calls] == ["noon", "noon"]


async def test_input_data_is_told_once(execution: Execute) -> None:
    async with ScriptedServer(lambda request: said("hello")) as server:
        one = execution(suite(at(server), turns=["first", "second"], context={"input_data": {"order": 7}}))
        await one.run()
    users = [message["content"] for message in server.requests[-1].json["messages"] if message["role"] == "user"]
    assert users == ['first\n\n{"order": 7}', "second"]
    transcript = one.store.transcript(one.engine.plan.runs[0].ref.run)
    assert [message.content for message in transcript.messages if message.role == "user"] == users


async def test_a_server_that_takes_two_at_once_serves_everybody(execution: Execute) -> None:
    busy = most = 0

    async def answer(request: Request) -> Answer:
        nonlocal busy, most
        if busy >= 2:
            return Answer(429, '{"error": {"message": "slow down"}}', headers={"retry-after-ms": "5"})
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0.01)
        busy -= 1
        return said("hello")

    async with ScriptedServer(answer) as server:
        one = execution(suite(at(server)), repeat=24, concurrency=8)
        await one.run()
    assert set(one.statuses().values()) == {"passed"}
    assert most == 2
    assert one.of(Throttled)[0].limit < 8


@pytest.mark.parametrize("poison", [{1, 2, 3}, {62, 63, 64}])
async def test_requests_that_a_slow_server_always_refuses_ask_a_few_times_and_together(
    execution: Execute, poison: set[int]
) -> None:
    """It takes as long to refuse as to answer, and asks to wait longer than that. What it costs is how often it is
    asked behind the last answer, one after another; asking together costs as much as one. The server refuses in
    rounds: all that came since the first one of a round. A round is long, so that a busy machine does not split it."""
    asked: Counter[int] = Counter()
    rounds: list[asyncio.Task[None]] = []  # since the last answer

    async def answer(request: Request) -> Answer:
        row = int(request.json["messages"][-1]["content"])
        asked[row] += 1
        if row not in poison:
            await asyncio.sleep(0.06)
            rounds.clear()
            return said("hello")
        if not rounds or rounds[-1].done():
            rounds.append(asyncio.create_task(asyncio.sleep(0.3)))
        await rounds[-1]
        return Answer(429, '{"error": {"message": "slow down"}}', headers={"retry-after": "0.1"})

    async with ScriptedServer(answer) as server:
        told = json.loads(suite(at(server)))
        told["tests"] = [{**told["tests"][0], "id": f"row-{row}", "prompt": str(row)} for row in range(1, 65)]
        one = execution(json.dumps(told), concurrency=16)
        await one.run()
    assert Counter(one.statuses().values()) == {"passed": 64 - len(poison), "error": len(poison)}
    assert {row: times for row, times in asked.items() if times != 1} == dict.fromkeys(poison, 3)
    assert len(rounds) <= 3, "one after another they would be six"


async def test_a_stream_that_breaks_off_is_tried_again_from_its_start(execution: Execute) -> None:
    first = True

    def answer(request: Request) -> Answer:
        nonlocal first
        if first:
            first = False
            broken = stream_of(piece("hello from the first"), done=False)
            return Answer(body=broken.body, content_type=broken.content_type, cut=True)
        return said("hello")

    async with ScriptedServer(answer) as server:
        one = execution(suite(at(server)))
        await one.run()
    run = one.engine.plan.runs[0].ref.run
    assert (one.statuses(), one.store.run(run).attempts) == ({"hello#1": "passed"}, 2)
    assert one.store.transcript(run).final_output == one.view.runs[run].text == "hello"
    assert [attempt.number for attempt in one.store.failed_attempts(run)] == [1]


async def test_what_agents_and_judges_cost_counts_towards_the_limit(execution: Execute) -> None:
    def judged(request: Request) -> Answer:
        reply = {"message": {"role": "assistant", "content": '{"score": 1}'}, "finish_reason": "stop", "index": 0}
        return Answer(body=json.dumps({"model": "j-1", "choices": [reply],
                                       "usage": {"prompt_tokens": 2000, "completion_tokens": 0}}))  # fmt: skip

    price = {"input": 100.0, "output": 0.0}  # a run of the agent costs $0.10, a reply of the judge $0.20
    asked = 0

    def answer(request: Request) -> Answer:
        nonlocal asked
        asked += 1
        return said(f"hello {asked}")  # answers that differ: each is judged

    async with ScriptedServer(answer) as server, ScriptedServer(judged) as judges:
        judge = at(judges, price=price, stream=False)
        text = suite(at(server, price=price), {"type": "Judge", "criteria": "Is it a greeting?"}, judge=judge)
        one = execution(text, repeat=10, concurrency=2, max_cost=1.0)
        ended = await one.run()
    assert (ended.status, ended.message) == ("stopped", "the limit of $1.00 was reached after 3 of 10 runs")
    last = one.of(Progress)[-1]
    assert last.cost == pytest.approx(0.3)
    assert (last.judged_tokens, last.judged_cost) == (6000, pytest.approx(0.6))


@pytest.mark.parametrize("fails", [False, True])
async def test_a_key_reaches_neither_watchers_nor_the_history(execution: Execute, scripts: Any, fails: bool) -> None:
    async def tells(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        key = request.config["headers"]["x-api-key"]
        yield ReasoningDelta(f"they gave me {key}")
        yield TextDelta(f"hello {key[:9]}")
        await asyncio.sleep(0.06)  # the text goes out in between
        yield TextDelta(f"{key[9:]} and more")
        if fails:
            yield Failed(RunError("server", f"key {key} is wrong", f"replace {key}"), retry=True)
            return
        yield Done("stop", key)

    scripts.script = tells
    one = execution(suite({"kind": "scripted", "headers": {"x-api-key": "${MY_KEY}"}}), env={"MY_KEY": KEY}, trust=True)
    await one.run()
    assert one.statuses() == {"hello#1": "error" if fails else "passed"}
    assert one.view.runs[one.engine.plan.runs[0].ref.run].text == "hello *** and more"
    assert not any(KEY in encode(event) for event in one.events)
    one.store.flush()
    run = one.engine.plan.runs[0].ref.run
    assert KEY not in str(one.store.transcript(run))
    assert KEY not in str(one.store.failed_attempts(run))
    assert KEY not in str(one.store.run(run))
    assert KEY not in str(one.store.results(run))


async def test_the_shop_lasts_for_all_turns_of_a_run(execution: Execute) -> None:
    broken: list[str] = []

    def answer(request: Request) -> Answer:
        messages = request.json["messages"]
        if messages[-1]["role"] == "tool":
            if len(messages) > 4 and not broken:
                broken.append("once")
                return Answer(500, "out of order")  # a new attempt begins with a new shop
            return said("hello")
        given = json.dumps({"email": "ana@example.org", "amount": 5})
        call = {
            "index": 0,
            "id": "call_1",
            "type": "function",
            "function": {"name": "issue_voucher", "arguments": given},
        }
        return stream_of(piece(tool_calls=[call]), piece(finish="tool_calls"))

    async with ScriptedServer(answer) as server:
        agent = at(server, tools="builtin:demo-shop")
        one = execution(suite(agent, turns=["first", "second"]), repeat=2)
        await one.run()
    assert broken
    assert one.statuses() == {"hello#1": "passed", "hello#2": "passed"}
    for run in one.engine.plan.runs:
        vouchers = [json.loads(call.result)["voucher"] for call in one.store.transcript(run.ref.run).tool_calls]
        assert [voucher[-1] for voucher in vouchers] == ["1", "2"], "the second in the same shop"
    (prepared,) = one.engine.state.agents.values()
    assert prepared.agent._host._kept == {}


async def test_an_agent_is_told_when_a_run_is_over(
    execution: Execute, scripts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    over: list[str] = []

    def release(self: Any, run: str) -> None:
        over.append(run)
        raise RuntimeError("that does not matter")

    kind = sys.modules["scripted_agent"].Scripted
    monkeypatch.setattr(kind, "release", release, raising=False)
    one = execution(suite({"kind": "scripted"}, turns=["first", "second"], variables={"who": "Ana"}), repeat=2)
    await one.run()
    assert sorted(over) == sorted(run.ref.run for run in one.engine.plan.runs)
    assert one.statuses() == {"hello#1": "passed", "hello#2": "passed"}
    assert [request.variables for request in scripts.requests] == [{"who": "Ana"}] * 4
