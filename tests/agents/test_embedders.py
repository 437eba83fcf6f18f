"""Embedders: a server's `/embeddings` over real HTTP, somebody else's server, those that need no server."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aimock import Aimock, NotAvailable
from scripted import Answer, Request, ScriptedServer

from agenteval_tui.agents.base import Embedding, Failed
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.registry import make_embedder
from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import EMBEDDERS, LOCAL_EMBEDDERS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.remote_requests import RemoteRequest
from agenteval_tui.runs.judge_resolution import Respondents


async def embed(config: Mapping[str, Any], text: str = "hello", **env: str) -> Embedding | Failed:
    made = make_embedder("vectors", config, base_dir=Path(), env=env, permission=permission_for((), everything=True))
    try:
        return await made.embed(text)
    finally:
        await made.close()


def openai(server: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "openai", "base_url": server.url, "model": "embed-1", **more}


async def test_a_server_is_asked_as_openai_is() -> None:
    body = '{"model": "embed-1-v2", "data": [{"embedding": [0.5, -1]}], "usage": {"prompt_tokens": 3}}'
    async with ScriptedServer(lambda request: Answer(body=body)) as server:
        got = await embed(openai(server, api_key_env="KEY"), "two words", KEY="secret-key")
    assert isinstance(got, Embedding)
    assert (got.vector, got.model, got.usage.input_tokens) == ((0.5, -1.0), "embed-1-v2", 3)
    (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.json == {"model": "embed-1", "input": "two words"}
    assert request.headers["authorization"] == "Bearer secret-key"


@pytest.mark.parametrize(
    ("answer", "kind", "retry"),
    [
        (Answer(404, '{"error": {"message": "no such model"}}'), "bad_request", False),
        (Answer(401, '{"error": "bad key secret-key"}'), "auth", False),
        (Answer(429, "{}", headers={"retry-after": "7"}), "rate_limit", True),
        (Answer(500, "oops"), "server", True),
        (Answer(200, "no json"), "protocol", False),
        (Answer(200, '{"data": []}'), "protocol", False),
        (Answer(200, '{"data": [{"embedding": "AAAA"}]}'), "protocol", False),
        (Answer(200, '{"data": [{"embedding": [1, 2', cut=True), "connection", True),
        (Answer(200, b'{"data": "' + b"x" * 2_000_000 + b'"}'), "protocol", False),
    ],
)
async def test_what_a_server_does_wrong_is_a_failure_in_words(answer: Answer, kind: str, retry: bool) -> None:
    async with ScriptedServer(lambda request: answer) as server:
        got = await embed(openai(server, api_key_env="KEY", max_reply_mb=1.0), KEY="secret-key")
    assert isinstance(got, Failed)
    assert (got.error.kind, got.retry) == (kind, retry), got
    assert "secret-key" not in got.error.message


async def test_a_server_that_says_nothing_is_a_timeout() -> None:
    import asyncio

    async def stall(request: Request) -> Answer:
        await asyncio.sleep(30)
        return Answer()

    async with ScriptedServer(stall) as server:
        got = await embed(openai(server, timeouts={"first_token": 0.05}))
    assert isinstance(got, Failed)
    assert got.error.kind == "timeout"


async def test_nobody_there_and_no_key() -> None:
    async with ScriptedServer(lambda request: Answer()) as server:
        config = openai(server)
    got = await embed(config)
    assert isinstance(got, Failed)
    assert got.error.kind == "connection"
    got = await embed({**config, "api_key_env": "NOT_SET"})
    assert isinstance(got, Failed)
    assert "NOT_SET" in got.error.message


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    fixtures = [{"match": {"inputText": "kettle"}, "response": {"embedding": [0.6, 0.8, 0.0]}}]
    try:
        with Aimock(fixtures, tmp_path_factory.mktemp("aimock")) as running:
            yield running
    except NotAvailable as why:
        pytest.skip(f"aimock can't be had: {why}")


async def test_somebody_elses_server(aimock: Aimock) -> None:
    got = await embed(openai(aimock, model="text-embedding-3-small"), "a kettle")
    assert isinstance(got, Embedding), got
    assert got.vector == pytest.approx((0.6, 0.8, 0.0))


def test_kinds_that_give_no_embeddings_are_refused() -> None:
    for config, said in (
        ({"kind": "demo"}, "give no embeddings"),
        ({}, "needs a `kind`"),
        ({"kind": "opnai"}, "openai"),
    ):
        with pytest.raises(AgentevalError, match=said):
            make_embedder("vectors", config, base_dir=Path(), env={})


def test_a_plug_in_that_is_no_embedder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "no_embedder", SimpleNamespace(Thing=lambda setup: object()))
    monkeypatch.setitem(entry_points.own(EMBEDDERS), "thing", "no_embedder:Thing")
    with pytest.raises(AgentevalError, match="not an embedder"):
        make_embedder("vectors", {"kind": "thing"}, base_dir=Path(), env={})


@pytest.mark.parametrize(("missing", "kind"), [("", "thing"), ("numpy", "")])
def test_where_none_is_named_the_first_local_one_that_is_complete_is_taken(
    monkeypatch: pytest.MonkeyPatch, missing: str, kind: str
) -> None:
    other = SimpleNamespace(missing=lambda: "vectors", install="pip install vectors")
    thing = SimpleNamespace(missing=lambda: missing, install="pip install thing")
    monkeypatch.setitem(sys.modules, "local_embedder", SimpleNamespace(Other=other, Thing=thing))
    kinds = {"other": "local_embedder:Other", "thing": "local_embedder:Thing"}
    monkeypatch.setitem(entry_points._own(), LOCAL_EMBEDDERS, kinds)
    asked = RemoteRequest("embed", "", {})
    if kind:
        assert Respondents().asked(asked, "").config == {"kind": kind}
        return
    with pytest.raises(AgentevalError, match="no embedder is configured") as refused:
        Respondents().asked(asked, "")
    assert "install the local model (pip install vectors; or pip install thing)" in refused.value.fix


def test_where_there_is_no_local_one_none_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(entry_points._own(), LOCAL_EMBEDDERS, {})
    with pytest.raises(AgentevalError, match="no embedder is configured") as refused:
        Respondents().asked(RemoteRequest("embed", "", {}), "")
    assert "install" not in refused.value.fix
