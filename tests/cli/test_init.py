"""`agenteval init`: what it writes validates and runs, and nothing that is there is touched."""

from __future__ import annotations

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
