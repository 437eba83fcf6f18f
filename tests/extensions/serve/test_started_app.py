"""The app that `agenteval serve` starts imports nothing from the folder that somebody happens to be in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agenteval_tui.extensions.serve.command import app_command


def test_nothing_of_the_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "planted"
    (folder / "agenteval_tui").mkdir(parents=True)
    for name in ("agenteval_tui/__init__.py", "agenteval_tui/__main__.py", "json.py", "click.py", "sitecustomize.py"):
        (folder / name).write_text(f"open({str(tmp_path / 'was_here')!r}, 'w')\n")
    monkeypatch.chdir(folder)
    command = app_command((), None).removeprefix("exec ") + " --version"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert "agenteval" in done.stdout
    assert not (tmp_path / "was_here").exists()
