"""docs/ci.md: its workflow is one, and its commands do what they are for, against the sample suites."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval_tui.core import directories

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "ci.md").read_text("utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
WORKFLOW: dict[Any, Any] = yaml.safe_load(BLOCKS[0])
STEPS = WORKFLOW["jobs"]["evals"]["steps"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the sample suites in `evals/`, as a builder has it."""
    # Those whose agent answers at once: a job has other things to do than to wait for one that plays its pauses.
    samples = directories.bundled("sample_suites")
    shutil.copytree(samples, tmp_path / "repo" / "evals", ignore=shutil.ignore_patterns("tabellen*", "support*"))
    return tmp_path / "repo"


@pytest.fixture(autouse=True)
def first_on_path(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(installed), prepend=os.pathsep)


def run(command: str, checkout: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A step, as GitHub's runner starts it: `bash -e`, no terminal, the job's environment."""
    environment = {
        **os.environ,
        "CI": "true",
        "AGENTEVAL_DB": str(checkout / ".agenteval" / "history.db"),
        **more,
    }
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command], cwd=checkout, env=environment, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=250, check=False,
    )  # fmt: skip


def step(name: str) -> str:
    (found,) = [one["run"] for one in STEPS if one.get("name") == name]
    return str(found)


def test_the_workflow_is_pinned_and_may_only_read() -> None:
    used = [one["uses"] for one in STEPS if "uses" in one]
    assert {name.partition("@")[0] for name in used} == {
        "actions/checkout", "actions/setup-python", "actions/cache", "actions/upload-artifact",
    }  # fmt: skip
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name) for name in used)
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert WORKFLOW[True]["pull_request"] is None  # `on`, as YAML 1.1 reads it
    cached = next(one for one in STEPS if one.get("uses", "").startswith("actions/cache"))["with"]["path"]
    assert f"/{cached}/" in WORKFLOW["jobs"]["evals"]["env"]["AGENTEVAL_DB"]


@pytest.mark.e2e
def test_its_commands_run_one_after_the_other_and_again(checkout: Path, tmp_path: Path) -> None:
    page = tmp_path / "summary.md"
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(page), "GITHUB_WORKSPACE": str(checkout)}
    commands = [one["run"] for one in STEPS if "run" in one and not one["run"].startswith("pip install")]
    assert len(commands) == 4
    for command in commands:
        done = run(command, checkout, **github)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        if "--junit" in command:
            told = done.stderr.splitlines()
            assert "\x1b" not in done.stdout
    annotations = [re.match(r"::error file=(evals/[\w./-]+),line=(\d+),title=", line) for line in told]
    placed = [one for one in annotations if one is not None]
    assert len(placed) >= len(told) - 1
    file, line = placed[0].groups()
    assert (checkout / file).read_text("utf-8").splitlines()[int(line) - 1].lstrip().startswith("- id:")
    assert "## Evaluation report" in page.read_text("utf-8")
    document = json.loads((checkout / "reports" / "results.json").read_text("utf-8"))
    root = ElementTree.parse(checkout / "reports" / "junit.xml").getroot()
    assert int(root.attrib["failures"]) == document["summary"]["failed"] > 0
    assert document["summary"]["error"] == 0
    # The job again, on the same folder: its own reports are overwritten, whatever else is there is not.
    assert run(step("Run them"), checkout, **github).returncode == 0
    (checkout / "reports" / "junit.xml").write_text("<testsuites><mine/></testsuites>")
    refused = run(step("Run them"), checkout, **github)
    assert refused.returncode == 2
    assert "--force" in refused.stderr


@pytest.mark.e2e
def test_what_is_to_be_done_after_errors_of_agents(checkout: Path) -> None:
    (command,) = [one["run"] for one in yaml.safe_load(BLOCKS[1])]
    # Only a failure of the tests: the code stays 1, and nothing is resumed.
    shutil.rmtree(checkout / "evals")
    (checkout / "evals").mkdir()
    suite = (
        "name: A\nagent: mine\nagents:\n  mine: {kind: demo, version: v2}\ntests:\n  - id: a\n    prompt: hi\n"
        "    criteria:\n      - name: c\n        prototype_class: TextResponse\n"
        "        config_uxon: {metrics: [{type: TextMatch, contains: a white whale}]}\n"
    )
    (checkout / "evals" / "a.suite.yaml").write_text(suite, "utf-8")
    done = run(command, checkout)
    assert done.returncode == 1
    assert "are missing" not in done.stdout
    # Only errors of agents: they are run again, and still fail, now with the code of the second try.
    gone = "{kind: openai, base_url: 'http://127.0.0.1:9/v1', model: m, max_attempts: 1}"
    (checkout / "evals" / "a.suite.yaml").write_text(suite.replace("{kind: demo, version: v2}", gone), "utf-8")
    done = run(command, checkout)
    assert done.returncode == 3, done.stderr
    assert "1 of 1 runs are missing" in done.stdout


def test_the_other_blocks_are_yaml_and_name_verbs_that_there_are() -> None:
    from agenteval_tui.cli.verbs import VERBS

    for block in BLOCKS:
        assert yaml.safe_load(block)
    for verb in re.findall(r"agenteval (\w[\w-]*) (?=evals|last|-)", PAGE):
        assert verb in VERBS
