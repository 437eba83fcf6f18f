"""Folders of the program are its user's alone, whatever the umask; what others could write is not trusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core import directories, private_files
from agenteval_tui.core.private_files import make_private
from agenteval_tui.runs import client
from agenteval_tui.runs.live_registry import live_dir
from agenteval_tui.suites.trust import Trust
from agenteval_tui.tui.draft_store import Drafts


@pytest.fixture(autouse=True, params=[0o000, 0o022, 0o077, 0o777])
def umask(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    base = tmp_path / "base"
    base.mkdir(mode=0o700)
    for name in ("CONFIG", "DATA", "RUNTIME", "CACHE"):
        monkeypatch.setenv(f"AGENTEVAL_{name}_DIR", str(base / name.lower() / "deep" / "er"))
    before = os.umask(request.param)
    yield
    os.umask(before)


def open_places(top: Path) -> list[str]:
    found = []
    for path in (top, *top.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if not path.is_symlink() and mode & 0o077:
            found.append(f"{path} {mode:o}")
    return found


def test_every_folder_and_file_is_private(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "suites").mkdir(mode=0o700)
    Trust.load().trust(tmp_path / "suites")
    live_dir()
    client._log_file()
    Drafts().keep("k", "s", "t", "p", {})
    private_files.log_error(ValueError("x"), "testing", directories.data_dir())
    assert cli("history").code == 0
    assert cli("import", Path(__file__).parents[2] / "tests" / "nothing").code == 2
    assert open_places(tmp_path / "base") == []
    assert Trust.load().is_trusted(tmp_path / "suites")


def test_folders_that_are_open_are_closed(tmp_path: Path) -> None:
    folder = tmp_path / "base" / "open"
    folder.mkdir()
    folder.chmod(0o777)
    make_private(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("place", ["folder", "file", "group"])
def test_a_list_of_trusted_folders_that_others_may_write_counts_for_nothing(tmp_path: Path, place: str) -> None:
    suites = tmp_path / "base" / "suites"
    suites.mkdir(mode=0o700)
    suites.chmod(0o700)
    Trust.load().trust(suites)
    file = directories.data_dir() / "trust.json"
    changed = file if place == "file" else file.parent
    changed.chmod(0o770 if place == "group" else 0o777)
    trust = Trust.load()
    assert not trust.is_trusted(suites)
    assert f"other users may write to {changed}" in trust.why_not(suites)
    trust.trust(suites)  # the user says so anew: from now on nobody else can
    assert Trust.load().is_trusted(suites)
    assert open_places(directories.data_dir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_list_of_another_user_counts_for_nothing(tmp_path: Path) -> None:
    suites = tmp_path / "base" / "suites"
    suites.mkdir()
    suites.chmod(0o700)
    Trust.load().trust(suites)
    os.chown(directories.data_dir() / "trust.json", 12345, 12345)
    assert "belongs to another user" in Trust.load().why_not(suites)
