"""The example plug-in, built and installed into a folder of its own, then used by the program as anybody's would be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "examples" / "agenteval-example-plugin"
SUITE = PLUGIN / "parrot.suite.yaml"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the plug-in is installed. Built without a network: hatchling is among the tools for development."""
    folder = tmp_path_factory.mktemp("plugin")
    source = folder / "source"
    import shutil

    shutil.copytree(PLUGIN, source)  # building must not write beside the example
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*command, "--disable-pip-version-check", "--target", str(folder / "site"), str(source)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


def agenteval(*arguments: object, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(str(one) for one in (site, ROOT) if one is not None)
    return subprocess.run(
        [sys.executable, "-m", "agenteval_tui", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=250,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )


def test_all_four_are_found_and_used(installed: Path) -> None:
    checked = agenteval("validate", SUITE, "--json", site=installed)
    assert [one for one in json.loads(checked.stdout) if one["severity"] == "error"] == [], checked.stdout
    ran = agenteval("run", SUITE, "--json", "-", site=installed)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (run,) = json.loads(ran.stdout)["runs"]
    assert run["final_output"] == "Hello, please say this again. Thank you!"
    outcomes = {one["criterion"]: one["outcome"] for one in run["criteria"]}
    assert outcomes == {"Is courteous": "passed", "Looked into the mirror": "passed", "Says about the same": "passed"}
    courteous, _, similar = (one["metrics"][0] for one in run["criteria"])
    assert [(span["start"], span["end"]) for span in courteous["evidence"][0]["spans"]] == [(7, 13), (30, 35)]
    assert any("nothing of meanings" in one["reason"] for one in similar["evidence"])


def test_without_it_the_suite_is_refused_in_words() -> None:
    checked = agenteval("validate", SUITE)
    assert checked.returncode == 2
    for name in ("Courtesy", "LastToolResult", "parrot"):
        assert name in checked.stdout + checked.stderr


def test_its_options_and_properties_are_checked(installed: Path, tmp_path: Path) -> None:
    wrong = SUITE.read_text().replace("ending:", "endng:").replace("at_least: 2", "at_least: two")
    (tmp_path / "wrong.suite.yaml").write_text(wrong)
    checked = agenteval("validate", tmp_path, "--json", site=installed)
    assert checked.returncode == 2
    said = " ".join(f"{one['code']} {one['message']} {one['fix']}" for one in json.loads(checked.stdout))
    assert "ending" in said
    assert "at_least" in said
