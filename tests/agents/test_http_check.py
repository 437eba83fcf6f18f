"""Checks of agents behind a network: what can't be had is said step by step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dialects import CHAT, HTTP, MODELS, Call, Dialect, Text
from scripted import Answer, Request, ScriptedServer

from agenteval_tui.agents.base import CheckReport
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.registry import make_agent

ALLOWED = permission_for((), everything=True)


KEY = "sk-very-secret-0123456789"
LIST = Answer(body='{"data": [{"id": "m"}, {"id": "other"}]}')
PING = Call("p", "ping", ['{"text": "hello"}'])

models = pytest.mark.parametrize("dialect", MODELS, ids=[one.name for one in MODELS])


def server_of(
    dialect: Dialect,
    *,
    models: Answer = LIST,
    answer: Answer | Callable[[dict[str, Any]], Answer] | None = None,
    called: Answer | None = None,
) -> Callable[[Request], Answer]:
    """A server that has a list of models, answers, and calls a tool."""

    def handler(request: Request) -> Answer:
        if request.method == "GET":
            return models
        if request.json.get("tools"):
            return called or dialect.stream(PING)
        if callable(answer):
            return answer(request.json)
        return answer or dialect.stream(Text(["o", "k"]))

    return handler


async def check(
    dialect: Dialect, handler: Any, folder: Path, *, thorough: bool = True, **options: Any
) -> tuple[CheckReport, list[Request]]:
    async with ScriptedServer(handler) as server:
        agent = make_agent(
            "a",
            dialect.config(server.url, api_key_env="MY_KEY", **options),
            base_dir=folder,
            env={"MY_KEY": KEY},
            permission=ALLOWED,
        )
        report = await agent.check(thorough)
        await agent.close()
    assert KEY not in repr(report)
    return report, server.requests


def steps(report: CheckReport) -> dict[str, bool | None]:
    return {step.name: step.ok for step in report.steps}


@models
async def test_all_is_well(dialect: Dialect, tmp_path: Path) -> None:
    report, requests = await check(dialect, server_of(dialect), tmp_path, tools=[{"name": "f"}])
    assert report.ok, report
    assert steps(report) == dict.fromkeys(("reachable", "key", "model", "streams", "tools"), True)
    assert "MY_KEY" in report.steps[1].message
    assert "; the first after" in report.steps[3].message
    assert len(requests) == 3


@models
async def test_a_quick_check_costs_nothing_where_there_is_a_list(dialect: Dialect, tmp_path: Path) -> None:
    report, requests = await check(dialect, server_of(dialect), tmp_path, thorough=False)
    assert report.ok
    assert steps(report) == {"reachable": True, "key": True, "model": True}
    assert [request.method for request in requests] == ["GET"]


@models
async def test_a_server_that_sends_answers_whole_can_be_used(dialect: Dialect, tmp_path: Path) -> None:
    report, _ = await check(dialect, server_of(dialect, answer=dialect.whole("ok")), tmp_path)
    assert report.ok
    assert steps(report)["streams"] is False
    assert "sent its answer in one piece" in report.message


@models
async def test_a_server_that_refuses_to_stream(dialect: Dialect, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        return Answer(400, '{"error": {"message": "no streams"}}') if body.get("stream") else dialect.whole("ok")

    report, _ = await check(dialect, server_of(dialect, answer=answer), tmp_path, stream=False)
    assert report.ok
    assert steps(report)["streams"] is False
    streaming, _ = await check(dialect, server_of(dialect, answer=answer), tmp_path)
    assert not streaming.ok
    assert "no streams" in str(streaming)


@models
@pytest.mark.parametrize(
    ("called", "said"),
    [
        (Answer(400, '{"error": {"message": "tools are not supported"}}'), "tools are not supported"),
        (None, "answered in words"),
        ([Call("p", "pong")], "called the tool 'pong'"),
        ([Call("p", "ping", ["{not"])], "not a JSON object"),
    ],
)
async def test_a_server_that_calls_no_tools(dialect: Dialect, tmp_path: Path, called: Any, said: str) -> None:
    answer = called if isinstance(called, Answer) else dialect.stream(*(called or [Text(["hello"])]))
    without, _ = await check(dialect, server_of(dialect, called=answer), tmp_path)
    assert without.ok  # it has no tools
    assert steps(without)["tools"] is False
    assert said in without.steps[-1].message
    needed, _ = await check(dialect, server_of(dialect, called=answer), tmp_path, tools=[{"name": "f"}])
    assert not needed.ok


@models
async def test_a_refused_key(dialect: Dialect, tmp_path: Path) -> None:
    for thorough in (True, False):
        report, _ = await check(dialect, lambda _: Answer(401, "{}"), tmp_path, thorough=thorough)
        assert not report.ok
        assert "MY_KEY" in report.fix
        assert (steps(report)["reachable"], steps(report)["key"]) == (True, False)
        assert {ok for name, ok in steps(report).items() if name not in ("reachable", "key")} == {None}


@models
async def test_a_model_that_is_not_there(dialect: Dialect, tmp_path: Path) -> None:
    missing = Answer(404, '{"error": {"message": "no such model"}}')
    report, _ = await check(
        dialect, server_of(dialect, models=Answer(body='{"data": [{"id": "other"}]}'), answer=missing), tmp_path
    )
    assert (report.ok, report.fix) == (False, "models: other")
    assert "has no model 'm'" in report.message
    assert steps(report)["model"] is False


@models
async def test_nobody_is_there(dialect: Dialect, tmp_path: Path) -> None:
    agent = make_agent("a", dialect.config("http://127.0.0.1:1/v1"), base_dir=tmp_path, env={}, permission=ALLOWED)
    report = await agent.check(thorough=True)
    await agent.close()
    assert not report.ok
    assert steps(report) == {"reachable": False, "key": None, "model": None, "streams": None, "tools": None}
    assert "nothing listens there" in report.message


async def test_ollama_lists_its_models_with_a_tag(tmp_path: Path) -> None:
    listed = Answer(body='{"data": [{"id": "m:latest"}]}')
    report, requests = await check(CHAT, server_of(CHAT, models=listed), tmp_path, thorough=False)
    assert report.ok
    assert len(requests) == 1


async def test_azure_gets_its_header_and_its_version(tmp_path: Path) -> None:
    report, requests = await check(
        CHAT, server_of(CHAT), tmp_path, api_key_header="api-key", query={"api-version": "2024-10-21"}
    )
    assert report.ok
    assert requests[1].path == "/v1/chat/completions?api-version=2024-10-21"
    assert requests[1].headers["api-key"] == KEY
    assert "authorization" not in requests[1].headers


async def test_an_endpoint(tmp_path: Path) -> None:
    def handler(request: Request) -> Answer:
        return Answer(405, "") if request.method == "OPTIONS" else HTTP.stream(Text(["a", "b"]))

    quick, requests = await check(HTTP, handler, tmp_path, thorough=False)
    assert quick.ok
    assert [request.method for request in requests] == ["OPTIONS"]
    report, requests = await check(HTTP, handler, tmp_path)
    assert report.ok
    assert steps(report) == {"reachable": True, "key": True, "model": None, "streams": True, "tools": None}
    assert json.loads(requests[0].body) == {"prompt": "ping"}
    refused, _ = await check(HTTP, lambda _: Answer(403, "{}"), tmp_path)
    assert (refused.ok, steps(refused)["key"]) == (False, False)
