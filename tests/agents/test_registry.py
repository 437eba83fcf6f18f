"""Kinds of agent by name, and how wrong options are said."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.agents.base import Agent
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process.options import CommandOptions
from agenteval_tui.agents.registry import is_model, kinds, make_agent, option_problems
from agenteval_tui.core import entry_points
from agenteval_tui.core.errors import AgentevalError


@pytest.mark.parametrize(
    "config",
    [
        {"kind": "replay", "file": "recorded.jsonl"},
        {"kind": "demo", "version": "v2"},
        {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m"},
    ],
)
def test_each_built_in_kind_is_an_agent(config: dict[str, object], tmp_path: Path) -> None:
    assert config["kind"] in kinds()
    assert isinstance(make_agent("a", config, base_dir=tmp_path, env={}), Agent)
    assert option_problems("a", config) == []


def test_an_unknown_kind_is_said_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError) as caught:
        make_agent("shop", {"kind": "replya"}, base_dir=tmp_path, env={})
    assert str(caught.value).startswith("agent 'shop': there is no kind of agent 'replya' (did you mean 'replay'?")


def test_a_missing_kind_is_said(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match="an agent needs a `kind`"):
        make_agent("shop", {}, base_dir=tmp_path, env={})


def test_all_wrong_options_are_said_at_once(tmp_path: Path) -> None:
    config = {"kind": "replay", "fiel": "x", "pace": "fast", "file": "a.json"}
    with pytest.raises(AgentevalError) as caught:
        make_agent("old", config, base_dir=tmp_path, env={})
    said = str(caught.value)
    assert "unknown option `fiel`, did you mean `file`?" in said
    assert "option `pace` must be number, not 'fast'" in said
    assert dict(option_problems("old", config)).keys() == {"fiel", "pace"}


def test_models_on_a_server_are_known_from_their_options() -> None:
    models = {kind for kind in kinds() if is_model(kind)}
    assert models >= {"anthropic", "gemini", "openai"}
    assert not models & {"command", "demo", "http", "python", "replay"}
    assert not is_model("no such kind")
    assert not is_model(None)


def test_a_capture_of_a_plug_in_is_taken_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "watching.py").write_text(
        "class Watched:\n"
        "    def __init__(self, inner, setup, options):\n"
        "        self.inner, self.how = inner, options.capture\n"
        "    async def run(self, request): ...\n"
        "    async def check(self, thorough=False): ...\n"
        "    async def close(self): ...\n"
    )
    info = tmp_path / "watching-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: watching\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agenteval.captures]\nebpf = watching:Watched\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry_points._plugins.cache_clear()
    try:
        config = {"kind": "command", "command": ["true"], "capture": "ebpf"}
        assert option_problems("a", config) == []
        assert option_problems("a", {"kind": "http", "url": "http://x", "capture": "ebpf"}) == []
        agent = make_agent("a", config, base_dir=tmp_path, env={}, permission=permission_for((), everything=True))
        assert (type(agent).__name__, agent.how) == ("Watched", "ebpf")  # type: ignore[attr-defined]
        assert option_problems("a", {**config, "capture": "ebfp"}) == [
            ("capture", "option `capture`: there is no capture 'ebfp' (did you mean 'ebpf'?)")
        ]
        assert option_problems("a", {**config, "capture": "${HOW}"}, as_written=True) == []
        assert "`capture: ebpf` has no `cassette`" in str(option_problems("a", {**config, "cassette": "c"}))
        (names, _) = CommandOptions.model_json_schema()["properties"]["capture"]["anyOf"]
        assert names["enum"] == ["auto", "ebpf", "model", "none", "otel"]
    finally:
        entry_points._plugins.cache_clear()
