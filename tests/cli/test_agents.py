"""`agenteval agents check` against a server: step by step, as words and as JSON, and its exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "servers"))

from dialects import ANTHROPIC, Call, Text
from scripted import Answer, Request
from threaded import serving

from agenteval_tui.core.directories import config_dir


def handler(request: Request) -> Answer:
    if request.method == "GET":
        return Answer(body='{"data": [{"id": "claude"}]}')
    return ANTHROPIC.stream(Call("p", "ping", ['{"text": "x"}']) if request.json.get("tools") else Text(["ok"]))


def configure(**agents: Any) -> None:
    config_dir().mkdir(parents=True, exist_ok=True)
    (config_dir() / "agents.yaml").write_text(json.dumps({"agents": agents}), encoding="utf-8")


def test_a_check_is_thorough_unless_it_shall_be_quick(cli: Any) -> None:
    with serving(handler) as server:
        mine = {"kind": "anthropic", "base_url": server.url, "model": "claude"}
        configure(mine=mine, gone={"kind": "anthropic", "base_url": "http://127.0.0.1:1", "model": "claude"})
        one = cli("agents", "check", "--agent", "mine")
        assert one.code == 0, one.out
        lines = [line.split()[:2] for line in one.out.splitlines()[1:]]
        assert lines == [["✓", name] for name in ("reachable", "key", "model", "streams", "tools")]
        both = cli("agents", "check", "--json")
        assert both.code == 3
        gone, well = sorted(both.json("agents"), key=lambda report: report["ok"])
        assert [step["name"] for step in well["steps"]] == ["reachable", "key", "model", "streams", "tools"]
        assert all(step["ok"] for step in well["steps"])
        assert [step["ok"] for step in gone["steps"]] == [False, None, None, None, None]
        before = len(server.requests)
        quick = cli("agents", "check", "--agent", "mine", "--quick")
        assert quick.code == 0
        assert len(quick.out.splitlines()) == 4
        assert [request.method for request in server.requests[before:]] == ["GET"]


def test_suites_are_named_with_or_without_the_verb(cli: Any, suite: Path) -> None:
    listed = cli("agents", "list", suite)
    assert "shop  demo" in listed.out
    assert cli("agents", suite).out == listed.out
    assert cli("agents", "chek", suite).err == "agenteval: chek: there is no such file or folder (check the path)\n"


def test_a_check_starts_no_program_of_a_folder_that_is_not_trusted(cli: Any, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "a.suite.yaml").write_text(
        "name: theirs\nagents: {theirs: {kind: command, command: [sh, -c, 'touch ran; echo hello']}}\n"
        "tests: [{id: a, agent: theirs, prompt: x, criteria: [{name: c, prototype_class: TextResponse,"
        " config_uxon: {metrics: [{type: TextMatch, contains: hello}]}}]}]\n",
        encoding="utf-8",
    )
    refused = cli("agents", "check", folder, "--agent", "theirs")
    assert refused.code == 3
    assert "touch ran" in refused.out
    assert "--trust" in refused.out
    assert not (folder / "ran").exists()
    assert cli("agents", "check", folder, "--agent", "theirs", "--trust").code == 0
    assert (folder / "ran").exists()
