"""The user's copies of the sample suites: made once, kept in git, English ones first."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agenteval_tui.core import directories
from agenteval_tui.suites import samples
from agenteval_tui.suites.discover import discover
from agenteval_tui.suites.trust import Trust


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_DATA_DIR", str(tmp_path / "data"))


def git(folder: Path, *words: str) -> str:
    return subprocess.run(("git", *words), cwd=folder, capture_output=True, text=True, check=True).stdout


def test_the_english_suite_is_the_first_and_the_german_one_the_second() -> None:
    found = discover([directories.bundled("sample_suites")])
    assert [path.name for path in found] == [
        "support.suite.yaml", "tabellen.suite.yaml", "conversations.suite.yaml", "orders.suite.yaml",
        "recorded.suite.yaml"]  # fmt: skip


def test_the_copies_are_trusted_until_the_user_revokes_that() -> None:
    folder = samples.copied_samples()
    assert Trust.load().is_trusted(folder / "orders")
    assert not Trust.load().is_trusted(folder.parent)
    Trust.load().revoke(folder)
    assert not Trust.load().is_trusted(samples.copied_samples())


def test_what_is_edited_stays_and_what_is_missing_comes_back() -> None:
    folder = samples.copied_samples()
    edited, deleted = folder / "support.suite.yaml", folder / "tabellen.suite.yaml"
    edited.write_text("mine", "utf-8")
    deleted.unlink()
    assert samples.copied_samples() == folder
    assert edited.read_text("utf-8") == "mine"
    assert deleted.exists()
    assert samples.are_samples(folder)
    assert samples.are_samples(edited)
    assert samples.are_samples(directories.bundled("sample_suites"))
    assert not samples.are_samples(folder.parents[2])


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_says_what_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the user's own git is set to."""
    config = tmp_path / "gitconfig"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "pre-commit").write_text("#!/bin/sh\nexit 1\n", "utf-8")
    (hooks / "pre-commit").chmod(0o755)
    config.write_text(f"[commit]\n\tgpgsign = true\n[core]\n\thooksPath = {hooks}\n", "utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    folder = samples.copied_samples()
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "log", "--format=%s").strip() == "The sample suites, as they came"
    (folder / "support.suite.yaml").write_text("name: mine\n", "utf-8")
    samples.copied_samples()
    assert "+name: mine" in git(folder, "diff")
    assert len(git(folder, "log", "--format=%h").split()) == 1


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_another_repository_that_the_environment_names_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    git(mine, "init", "--quiet")
    (mine / "unsaved.txt").write_text("mine", "utf-8")
    monkeypatch.setenv("GIT_DIR", str(mine / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(mine))
    folder = samples.copied_samples()
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_WORK_TREE")
    assert git(mine, "status", "--porcelain").split() == ["??", "unsaved.txt"]
    assert not list((mine / ".git" / "refs" / "heads").iterdir())
    assert git(folder, "status", "--porcelain") == ""


@pytest.mark.parametrize("git_is", ["missing", "broken"])
def test_without_git_there_are_copies_all_the_same(
    git_is: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    if git_is == "broken":
        (bin_ / "git").write_text("#!/bin/sh\nexit 3\n", "utf-8")
        (bin_ / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_))
    assert (samples.copied_samples() / "support.suite.yaml").exists()
