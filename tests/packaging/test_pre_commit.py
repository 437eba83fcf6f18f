"""The hook for pre-commit, tried with pre-commit itself: it takes the manifest, and the hook finds a wrong suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

MANIFEST = Path(__file__).resolve().parents[2] / ".pre-commit-hooks.yaml"


def test_the_hook_checks_the_suites_of_a_commit(tmp_path: Path) -> None:
    pytest.importorskip("pre_commit", reason="pre-commit is not installed")
    bin_folder = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(tmp_path / "home"),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=repository, env=environment, capture_output=True, text=True, timeout=250, check=False
        )

    repository = tmp_path / "repo"
    repository.mkdir()
    (hook,) = yaml.safe_load(MANIFEST.read_text("utf-8"))
    # Installed it is already: `language: python` would build it once more, from the network.
    config = {"repos": [{"repo": "local", "hooks": [{**hook, "language": "system"}]}]}
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (repository / "wrong.suite.yaml").write_text("name: Orders\ntests: [{id: a}]\n")
    (repository / "other.yaml").write_text("no: suite\n")
    assert run("git", "init", "-q").returncode == 0
    assert run("git", "add", ".").returncode == 0
    checked = run(sys.executable, "-m", "pre_commit", "validate-manifest", str(MANIFEST))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    refused = run(sys.executable, "-m", "pre_commit", "run", "--all-files")
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "wrong.suite.yaml" in refused.stdout
    assert "other.yaml" not in refused.stdout
