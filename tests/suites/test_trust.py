"""Which repositories are trusted: once, by path, with everything that is and will be in them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites import trust as module
from agenteval_tui.suites.trust import Sending, Trust, code_runs_here, repository_of

KEY = Sending("OPENAI_API_KEY", "evil.test")


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@x.test", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def repository(folder: Path) -> Path:
    (folder / "evals").mkdir(parents=True)
    (folder / "evals" / "agent.py").write_text("print(1)\n")
    git(folder, "init", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")
    return folder


def test_a_repository_is_trusted_as_a_whole_whatever_changes(tmp_path: Path) -> None:
    top = repository(tmp_path / "shop")
    other = tmp_path / "other"
    git(tmp_path, "clone", str(top), str(other))
    assert Trust.load().why_not(top / "evals") == "this repository is not trusted yet"
    Trust.load().trust(top / "evals")
    assert [entry.folder for entry in Trust.load().listed()] == [str(top)]
    (other / "evals" / "agent.py").write_text("print(2)\n")
    git(other, "commit", "-am", "second")
    git(top, "pull", str(other), "main")
    assert (top / "evals" / "agent.py").read_text() == "print(2)\n"
    (top / "evals").rename(top / "tests")
    (top / "more").mkdir()
    for folder in (top, top / "tests", top / "more", top / "not there"):
        assert Trust.load().is_trusted(folder)
    assert not Trust.load().is_trusted(other), "a clone is another repository"


def test_worktrees_share_the_trust_and_cannot_be_invented(tmp_path: Path) -> None:
    top, tree = repository(tmp_path / "shop"), tmp_path / "tree"
    git(top, "worktree", "add", str(tree))
    Trust.load().trust(tree / "evals")
    assert [entry.folder for entry in Trust.load().listed()] == [str(top)]
    assert Trust.load().is_trusted(tree)
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    for pointer in (f"gitdir: {top}/.git/worktrees/tree", f"gitdir: {top}/.git", "gitdir: ../shop/.git/worktrees/tree"):
        (stranger / ".git").write_text(pointer + "\n")
        assert repository_of(stranger) == stranger
        assert not Trust.load().is_trusted(stranger)
    (stranger / ".git").unlink()
    (stranger / ".git").symlink_to(top / ".git")
    assert not Trust.load().is_trusted(stranger)


def test_worktrees_of_a_bare_repository_share_theirs(tmp_path: Path) -> None:
    bare, trees = tmp_path / "bare.git", [tmp_path / "a", tmp_path / "b"]
    git(tmp_path, "clone", "--bare", str(repository(tmp_path / "shop")), str(bare))
    for tree in trees:
        git(bare, "worktree", "add", str(tree))
    Trust.load().trust(trees[0])
    assert [Trust.load().is_trusted(tree) for tree in trees] == [True, True]
    assert repository_of(trees[1]) == bare


def test_a_submodule_and_a_repository_within_are_their_own(tmp_path: Path) -> None:
    top = repository(tmp_path / "shop")
    git(top, "submodule", "add", str(repository(tmp_path / "library")), "library")
    nested = repository(top / "vendor" / "copied")
    Trust.load().trust(top)
    assert Trust.load().is_trusted(top / "vendor")
    for inner in (top / "library", top / "library" / "evals", nested):
        assert not Trust.load().is_trusted(inner)
    Trust.load().trust(nested)
    assert Trust.load().is_trusted(nested / "evals")


def test_links_lead_to_where_the_folder_is(tmp_path: Path) -> None:
    top = repository(tmp_path / "shop")
    (tmp_path / "alias").symlink_to(top)
    (tmp_path / "elsewhere").mkdir()
    (top / "out").symlink_to(tmp_path / "elsewhere")
    Trust.load().trust(tmp_path / "alias" / "evals")
    assert Trust.load().is_trusted(top)
    assert not Trust.load().is_trusted(top / "out")


def test_without_git_it_is_the_project_or_the_folder(tmp_path: Path) -> None:
    (tmp_path / "plain" / "sub").mkdir(parents=True)
    Trust.load().trust(tmp_path / "plain")
    assert Trust.load().is_trusted(tmp_path / "plain" / "sub"), "what is in a trusted folder is trusted"
    assert Trust.load().why_not(tmp_path) == "this folder is not trusted yet"
    inner = repository(tmp_path / "plain" / "cloned")
    assert not Trust.load().is_trusted(inner), "but for a repository"
    project = tmp_path / "project"
    (project / "evals").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    Trust.load().trust(project / "evals")
    assert Trust.load().is_trusted(project / "src")


def test_a_place_is_known_by_its_path(tmp_path: Path) -> None:
    top = repository(tmp_path / "shop")
    Trust.load().trust(top)
    top.rename(tmp_path / "moved")
    assert not Trust.load().is_trusted(tmp_path / "moved")
    repository(top)
    assert Trust.load().is_trusted(top), "as in editors: another repository at the same path"


@pytest.mark.parametrize("place", ["root", "home", "above home", "shared"])
def test_what_holds_more_than_a_project_is_never_trusted_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    home, shared = tmp_path / "people" / "me", tmp_path / "shared"
    home.mkdir(parents=True)
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv("HOME", str(home))
    folder = {"root": Path("/"), "home": home, "above home": home.parent, "shared": shared}[place]
    if place != "root":
        (folder / ".git").mkdir()
        (folder / "pyproject.toml").touch()
        (folder / "sub").mkdir()
        assert repository_of(folder / "sub") == folder / "sub"
    with pytest.raises(AgentevalError, match="can't be trusted as a whole"):
        Trust.load().trust(folder)
    assert Trust.load().listed() == []


def test_a_secret_is_agreed_for_an_address(tmp_path: Path) -> None:
    Trust.load().trust(tmp_path, [KEY])
    trust = Trust.load()
    assert trust.why_not(tmp_path, [KEY]) == ""
    others = [Sending("OPENAI_API_KEY", "other.test"), Sending("OTHER", "evil.test")]
    assert trust.new_sends(tmp_path, [KEY, *others]) == tuple(others)
    assert trust.why_not(tmp_path, [KEY, *others]) == "this folder is trusted, but not to send this there"
    trust.trust(tmp_path, others)
    assert Trust.load().new_sends(tmp_path, [KEY, *others]) == ()
    (tmp_path / "another").mkdir()
    repository(tmp_path / "another" / "repository")
    assert Trust.load().new_sends(tmp_path / "another" / "repository", [KEY]) == (KEY,)


def test_what_is_revoked_is_asked_about_again(tmp_path: Path) -> None:
    top = repository(tmp_path / "shop")
    trust = Trust.load()
    trust.trust(top, [KEY])
    assert Trust.load().revoke(top / "evals") == str(top)
    assert Trust.load().revoke(top) == ""
    assert Trust.load().listed() == []
    assert trust.revoke(top) == "", "what this one knew is old"


def test_code_that_runs_here_anyway_is_trusted_here_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RUN_HERE", set())
    top = repository(tmp_path / "shop")
    code_runs_here(top / "evals")
    assert Trust.load().is_trusted(top)
    assert Trust.load().new_sends(top, [KEY]) == (KEY,)
    assert not Trust.load().is_trusted(tmp_path)
    assert Trust.load().listed() == []


def test_the_file_is_private_and_written_in_one_step(tmp_path: Path) -> None:
    Trust.load().trust(tmp_path)
    file = directories.data_dir() / "trust.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(os.listdir(file.parent)) == ["trust.json", "trust.lock"]


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"version": 3, "repositories": [5]}', '{"version": 3, "repositories": [{"folder": 5}]}', "\x00",
     "[" * 100_000],
)  # fmt: skip
def test_a_damaged_list_trusts_nobody_and_says_so(tmp_path: Path, text: str) -> None:
    Trust.load().trust(tmp_path)
    (directories.data_dir() / "trust.json").write_text(text)
    trust = Trust.load()
    assert not trust.is_trusted(tmp_path)
    assert "none is trusted" in trust.why_not(tmp_path)
    trust.trust(tmp_path)
    assert Trust.load().is_trusted(tmp_path)
    assert trust.problem == Trust.load().problem == ""


def test_a_list_of_hashes_is_passed_over(tmp_path: Path) -> None:
    directories.data_dir().mkdir(parents=True, mode=0o700, exist_ok=True)
    old = {"version": 2, "folders": [{"folder": str(tmp_path), "when": "2026-01-01", "files": {"a": "b"}}]}
    (directories.data_dir() / "trust.json").write_text(json.dumps(old))
    (directories.data_dir() / "trust.json").chmod(0o600)
    assert (Trust.load().problem, Trust.load().is_trusted(tmp_path)) == ("", False)


def test_two_at_once_lose_nothing(tmp_path: Path) -> None:
    folders = [tmp_path / f"f{number}" for number in range(12)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda folder: Trust.load().trust(folder), folders))
    assert [entry.folder for entry in Trust.load().listed()] == sorted(map(str, folders))


def test_a_place_that_can_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENTEVAL_DATA_DIR", str(tmp_path / "file" / "data"))
    with pytest.raises(AgentevalError, match="can't be saved"):
        Trust.load().trust(tmp_path)
