"""`agenteval init`: what it writes validates and runs, and nothing that is there is touched."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from agenteval_tui.agents.registry import option_problems
from agenteval_tui.cli.commands.init import KINDS, TRUSTED
from agenteval_tui.suites.agents_file import read_agents_file


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_it_writes_is_valid(cli: Any, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "new" / "evals"
    done = cli("init", folder, "--agent-kind", kind)
    assert done.code == 0
    assert "agenteval run " in done.out
    assert cli("validate", folder).out.endswith("no problems\n")
    # Editors find the schema by the first line, offline, and have nothing to say against the suite.
    text = (folder / "first.suite.yaml").read_text("utf-8")
    named = text.partition("\n")[0].removeprefix("# yaml-language-server: $schema=")
    assert (folder / named).read_text("utf-8") == cli("schema", "suite").out
    assert Draft7Validator(json.loads((folder / named).read_text("utf-8"))).is_valid(yaml.safe_load(text))
    agents, problems = read_agents_file(folder / "agents.example.yaml")
    assert problems == ()
    for name, config in agents.items():
        assert [one for one in option_problems(name, config.as_dict()) if "${" not in str(config.as_dict())] == []


@pytest.mark.parametrize("kind", ["demo", *TRUSTED])
def test_what_needs_no_key_runs_at_once(cli: Any, tmp_path: Path, kind: str) -> None:
    assert cli("init", tmp_path / "x", "--agent-kind", kind).code == 0
    suite = tmp_path / "x" / "first.suite.yaml"
    if kind in TRUSTED:
        refused = cli("run", suite)
        assert refused.code == 2
        assert "--trust" in refused.err
    done = cli("run", suite, *(["--trust"] if kind in TRUSTED else []))
    assert done.code == 0, done.out + done.err
    assert "pass rate 100 %" in done.out


@pytest.mark.parametrize("name", ["first.suite.yaml", "agents.example.yaml", "suite.schema.json"])
def test_nothing_is_overwritten_and_nothing_half_written(cli: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(tmp_path / "nowhere")  # also a link to nothing is somebody's
    done = cli("init", tmp_path)
    assert done.code == 2
    assert f"{name} already exists" in done.err
    assert {path.name for path in tmp_path.iterdir() if path.suffix in (".yaml", ".json")} == {name}


def test_a_folder_that_can_not_be(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    done = cli("init", tmp_path / "file" / "below")
    assert done.code == 3
    assert "can't be written" in done.err


BOT = "from pydantic_ai import Agent\ntool_of = 1\nbot = Agent(system_prompt='You sell pans.')\n"
TWO = BOT + "cook = Agent(name='cook')\n"


def test_the_only_agent_of_a_folder_is_taken(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(BOT)
    done = cli("init", tmp_path)
    assert done.code == 0, done.err
    assert [path.name for path in tmp_path.glob("*.suite.yaml")] == ["bot.suite.yaml"]
    assert cli("validate", tmp_path).out.endswith("no problems\n")
    again = cli("init", tmp_path)
    assert again.code == 2
    assert "already exists" in again.err


def test_of_several_one_is_named(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(TWO)
    refused = cli("init", tmp_path)
    assert refused.code == 2
    assert "1 bot and 2 cook" in refused.err
    assert list(tmp_path.glob("*.yaml")) == []
    assert "did you mean cook?" in cli("init", tmp_path, "--agent", "cok").err
    assert "there is no agent '²'" in cli("init", tmp_path, "--agent", "²").err
    assert cli("init", tmp_path, "--agent", "2").code == 0
    assert cli("init", tmp_path, "--agent", "bot").code == 0
    assert {path.name for path in tmp_path.glob("*.yaml")} == {"bot.suite.yaml", "cook.suite.yaml"}


def test_the_list_is_a_document(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(TWO)
    listed = json.loads(cli("init", tmp_path, "--list", "--json").out)
    assert [(agent["number"], agent["name"], agent["sign"], agent["line"]) for agent in listed["agents"]] == [
        (1, "bot", "object", 3),
        (2, "cook", "object", 4),
    ]
    shown = cli("init", tmp_path, "--list").out
    assert "bot.py:3  bot = Agent(…)" in shown
    assert list(tmp_path.glob("*.yaml")) == []
    assert cli("init", tmp_path, "--json").code == 2
    assert cli("init", tmp_path, "--agent-kind", "demo", "--agent", "1").code == 2


@pytest.mark.parametrize(
    ("typed", "written"), [("\n", "bot"), ("x\n2\n", "cook"), ("²\n2\n", "cook"), ("s\n", "first"), ("", None)]
)
def test_a_terminal_is_asked(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, written: str | None
) -> None:
    (tmp_path / "bot.py").write_text(TWO)
    monkeypatch.setattr("agenteval_tui.cli.commands.init.can_ask", lambda invocation: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    done = cli("init", tmp_path)
    assert "2 agents found" in done.err
    assert [path.name for path in tmp_path.glob("*.suite.yaml")] == ([f"{written}.suite.yaml"] if written else [])
    assert done.code == (0 if written else 2)


@pytest.mark.parametrize("typed", ["6\n", "9\npython\n"])
def test_a_folder_without_agents_asks_for_a_kind(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.setattr("agenteval_tui.cli.commands.init.can_ask", lambda invocation: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    done = cli("init", tmp_path)
    assert (done.code, "there is no kind '9'" in done.err) == (0, "9" in typed)
    assert "callable: my_agent:answer" in (tmp_path / "first.suite.yaml").read_text("utf-8")
