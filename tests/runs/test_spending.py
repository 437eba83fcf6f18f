"""`max_cost` against the true bill: what servers would charge by their prices, kept by the servers themselves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer, stream_of

Execute = Callable[..., Any]
PRICE = {"input": 1000.0, "output": 5000.0, "cached": 100.0, "cache_write": 1250.0, "cache_write_1h": 2000.0}
CHEAP = {"input": 100.0, "output": 500.0, "cached": 10.0}
GREETS = {"name": "Greets", "prototype_class": "TextResponse", "config_uxon": {"metrics": [
    {"type": "TextMatch", "contains": "hello"}]}}  # fmt: skip


class Bill:
    """What was charged, request by request, in US dollars: plain arithmetic on what the server says it counted."""

    def __init__(self) -> None:
        self.charged: list[float] = []

    @property
    def total(self) -> float:
        return sum(self.charged)

    def charge(self, price: dict[str, float], **tokens: int) -> None:
        self.charged.append(sum(price.get(kind, price["input"]) * count for kind, count in tokens.items()) / 1e6)


class Provider:
    """A server of one of three dialects. Every fourth request writes the prompt into the cache, the others read it."""

    def __init__(self, bill: Bill, dialect: str, price: dict[str, float], hold: int = 30) -> None:
        self.bill, self.dialect, self.price, self.hold, self.asked = bill, dialect, price, hold, 0

    async def __call__(self, request: Request) -> Answer:
        number = self.asked
        self.asked += 1
        for _ in range(self.hold):  # others come in the meantime
            await asyncio.sleep(0)
        read, written = (0, 900) if number % 4 == 0 else (900, 0)
        if self.dialect == "anthropic":
            self.bill.charge(self.price, input=100, cached=read, cache_write=written, output=50)
            usage = {
                "input_tokens": 100,
                "cache_read_input_tokens": read,
                "cache_creation_input_tokens": written,
                "output_tokens": 50,
            }
            block = {"type": "text", "text": "hello"}
            return Answer(
                body=json.dumps({"model": "m", "content": [block], "stop_reason": "end_turn", "usage": usage})
            )
        if self.dialect == "gemini":
            self.bill.charge(self.price, input=1000 - read, cached=read, output=20 + 30)
            usage = {
                "promptTokenCount": 1000,
                "cachedContentTokenCount": read,
                "candidatesTokenCount": 20,
                "thoughtsTokenCount": 30,
                "totalTokenCount": 1050,
            }
            candidate = {"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP"}
            return Answer(body=json.dumps({"modelVersion": "m", "candidates": [candidate], "usageMetadata": usage}))
        self.bill.charge(self.price, input=1000 - read, cached=read, output=50)
        usage = {
            "prompt_tokens": 1000,
            "completion_tokens": 20,  # as xAI counts: the total tells that the reasoning is beside it
            "total_tokens": 1050,
            "prompt_tokens_details": {"cached_tokens": read},
            "completion_tokens_details": {"reasoning_tokens": 30},
        }
        choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
        return Answer(body=json.dumps({"model": "m", "choices": [choice], "usage": usage}))


def suite(**agents: dict[str, Any]) -> str:
    tests = [{"id": name, "prompt": "Say hello", "agent": name, "criteria": [GREETS]} for name in agents]
    return json.dumps({"name": "Paid", "agent": next(iter(agents)), "agents": agents, "tests": tests})


@pytest.mark.sweep
@pytest.mark.parametrize("limit", [0.05, 0.5, 1.0, 2.4, 7.0])
@pytest.mark.parametrize("concurrency", [1, 8])
async def test_the_bill_is_never_over_the_limit_by_more_than_one_request(
    execution: Execute, limit: float, concurrency: int
) -> None:
    bill = Bill()
    providers = {
        "openai": Provider(bill, "openai", CHEAP, hold=5),
        "anthropic": Provider(bill, "anthropic", PRICE),
        "gemini": Provider(bill, "gemini", PRICE, hold=60),
    }
    async with (
        ScriptedServer(providers["openai"]) as chat,
        ScriptedServer(providers["anthropic"]) as messages,
        ScriptedServer(providers["gemini"]) as contents,
    ):
        key = {"api_key_env": "KEY", "stream": False}
        agents: dict[str, dict[str, Any]] = {
            "openai": {"kind": "openai", "base_url": chat.url, "model": "m", "price": CHEAP, "stream": False},
            "anthropic": {"kind": "anthropic", "base_url": messages.url, "model": "m", "price": PRICE, **key},
            "gemini": {"kind": "gemini", "base_url": contents.url, "model": "m", "price": PRICE, **key},
        }
        one = execution(
            suite(**agents), env={"KEY": "x"}, repeat=12, concurrency=concurrency, max_cost=limit, trust=True
        )
        ended = await one.run()
    one.store.flush()
    row = one.store.execution("last")
    assert row.errors == 0
    assert row.cost == pytest.approx(bill.total), "what is shown is what is charged"
    assert bill.total <= limit + max(bill.charged)
    if ended.status == "finished":
        assert len(bill.charged) == 36
    else:
        assert ended.message.startswith("the limit of $")
        assert bill.total >= limit - 2 * max(bill.charged), "the limit is used"


@pytest.mark.parametrize(("limit", "requests"), [(0.25, 3), (0.3, 3), (0.31, 4)])
async def test_a_run_that_asks_again_and_again_stops_at_the_limit(
    execution: Execute, limit: float, requests: int
) -> None:
    bill = Bill()

    def answer(request: Request) -> Answer:
        bill.charge(CHEAP, input=1000)
        number = len(bill.charged)
        call = {"index": 0, "id": f"c{number}", "type": "function", "function": {"name": "time", "arguments": "{}"}}
        usage = {"prompt_tokens": 1000, "completion_tokens": 0, "total_tokens": 1000}
        piece = {
            "model": "m",
            "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}],
        }
        return stream_of(piece, {"model": "m", "choices": [], "usage": usage})

    async with ScriptedServer(answer) as server:
        agent = {
            "kind": "openai",
            "base_url": server.url,
            "model": "m",
            "price": CHEAP,
            "tools": [{"name": "time", "sample_response": "noon"}],
        }
        one = execution(suite(bot=agent), max_cost=limit)
        ended = await one.run()
    assert len(bill.charged) == requests
    assert ended.status == "stopped"
    assert ended.message == f"the limit of ${limit:.2f} was reached after 1 of 1 run"
    assert one.statuses() == {"bot#1": "cancelled"}
    transcript = one.store.transcript(one.engine.plan.runs[0].ref.run)
    assert transcript.error is not None
    assert transcript.error.message == f"the run was cancelled: the limit of ${limit:.2f} was reached"
    assert transcript.usage.cost == pytest.approx(bill.total)


async def test_a_server_that_counts_no_tokens_can_not_be_limited(execution: Execute) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
    halves: list[dict[str, Any]] = [{}, {"usage": {"prompt_tokens": 10}}, {"usage": {"completion_tokens": -1}}]
    for usage in halves:
        body = json.dumps({"model": "m", "choices": [choice], **usage})
        async with ScriptedServer(lambda request, body=body: Answer(body=body)) as server:  # type: ignore[misc]
            agent = {"kind": "openai", "base_url": server.url, "model": "m", "price": CHEAP, "stream": False}
            one = execution(suite(bot=agent), repeat=40, concurrency=4, max_cost=1.0)
            ended = await one.run()
        assert ended.status == "stopped"
        assert ended.message.startswith("the limit on cost can't be kept, so no more runs started after 1 of 40 runs")
        assert len(server.requests) == 1


class Growing:
    """Of each three requests, the last costs more than any before: its answer is longer, up to `max_tokens`."""

    def __init__(self, bill: Bill, calls: bool, most: int) -> None:
        self.bill, self.calls, self.most, self.asked = bill, calls, most, 0

    async def __call__(self, request: Request) -> Answer:
        number = self.asked
        self.asked += 1
        for _ in range(20 + 7 * (number % 5)):
            await asyncio.sleep(0)
        written = min(self.most, 40 * (number + 1) if number % 3 == 2 else 10)
        asked = 10 + len(request.body) // 5
        self.bill.charge(CHEAP, input=asked, output=written)
        usage = {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written}
        message: dict[str, Any] = {"role": "assistant", "content": "hello"}
        again = self.calls and sum(one["role"] == "tool" for one in json.loads(request.body)["messages"]) < 2
        if again:
            function = {"name": "time", "arguments": "{}"}
            message["tool_calls"] = [{"id": f"c{number}", "type": "function", "function": function}]
        reason = "tool_calls" if again else "stop"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return Answer(body=json.dumps({"model": "m", "choices": [choice], "usage": usage}))


@pytest.mark.sweep
@pytest.mark.parametrize("limit", [0.5, 1.5, 4.0, 9.0])
@pytest.mark.parametrize("calls", [False, True])
async def test_requests_that_each_cost_more_than_any_before_are_held_back(
    execution: Execute, calls: bool, limit: float
) -> None:
    bill = Bill()
    async with ScriptedServer(Growing(bill, calls, most=2000)) as server:
        agent = {
            "kind": "openai",
            "base_url": server.url,
            "model": "m",
            "price": CHEAP,
            "stream": False,
            "max_tokens": 2000,
            "tools": [{"name": "time", "sample_response": "noon"}],
        }
        one = execution(suite(bot=agent), repeat=60, concurrency=8, max_cost=limit)
        ended = await one.run()
    assert bill.total <= limit + max(bill.charged)
    assert bill.total >= limit - 2 * max(bill.charged), "the limit is used"
    assert ended.status == "stopped"
