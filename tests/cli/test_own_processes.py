"""Our own processes import nothing from the folder that somebody happens to be in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agenteval_tui.core import directories


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with modules that would be imported in place of ours and the library's."""
    folder = tmp_path / "planted"
    (folder / "agenteval_tui").mkdir(parents=True)
    for name in ("agenteval_tui/__init__.py", "agenteval_tui/__main__.py", "json.py", "click.py", "sitecustomize.py"):
        (folder / name).write_text(f"open({str(tmp_path / 'was_here')!r}, 'w')\n")
    monkeypatch.chdir(folder)
    return tmp_path / "was_here"


@pytest.mark.parametrize("path", [None, "", ".", ":", "planted", "../planted:."])
def test_neither_the_folder_nor_a_relative_pythonpath_is_looked_in(
    planted: Path, path: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path is not None:
        monkeypatch.setenv("PYTHONPATH", path)
    command = directories.own_command("agenteval_tui", "--version")
    done = subprocess.run(command, env=directories.own_environment(), capture_output=True, text=True, check=True)
    assert "agenteval" in done.stdout
    assert not planted.exists()
