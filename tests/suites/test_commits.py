"""The commits that an execution began with: what git says, and that nothing of the repository runs for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from agenteval_tui.suites.commits import Commit, CommitReading, agent_folder, places_of, read_commits

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
_US = ("-c", "user.name=kim", "-c", "user.email=kim@localhost", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ("git", *_US, "-c", "protocol.file.allow=always", *words),
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "a.suite.yaml").write_text("tests: []\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=first")
    return folder


def read(*suites: Path, agents: tuple[Path, ...] = (), limit_s: float = 20.0) -> tuple[Commit, ...]:
    return CommitReading(places_of(map(str, suites), agents), limit_s=limit_s).result(limit_s)


def test_the_commit_the_branch_and_whether_tracked_files_changed(repository: Path) -> None:
    suite = repository / "a.suite.yaml"
    (commit,) = read(suite)
    assert commit.commit == git(repository, "rev-parse", "HEAD")
    assert (commit.branch, commit.dirty, commit.of, commit.repository) == ("main", False, ("suites",), str(repository))
    for number in range(3000):
        (repository / f"{number}.log").touch()
    assert read(suite)[0].dirty is False  # what is not tracked is no change
    suite.write_text("tests: [1]\n")
    assert read(suite)[0].dirty is True


def test_a_suite_that_is_not_in_the_repository_is_a_change(repository: Path) -> None:
    (repository / "new.suite.yaml").write_text("tests: []\n")
    assert read(repository / "a.suite.yaml")[0].dirty is False
    assert read(repository / "a.suite.yaml", repository / "new.suite.yaml")[0].dirty is True


def test_a_detached_head_has_no_branch(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--detach")
    (commit,) = read(repository / "a.suite.yaml")
    assert commit.branch == ""
    assert len(commit.commit) == 40


def test_worktrees_and_submodules_are_repositories_of_their_own(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "--quiet", "--initial-branch=trunk")
    git(outer, "submodule", "--quiet", "add", str(repository), "inner")
    git(outer, "commit", "--quiet", "--message=outer")
    side, inner = read(tmp_path / "side" / "a.suite.yaml", outer / "inner" / "a.suite.yaml", agents=(outer,))[:2]
    assert (side.branch, side.repository) == ("side", str(tmp_path / "side"))
    assert inner.repository == str(outer / "inner")
    assert inner.of == ("suites",)
    (of_agent,) = read(agents=(outer / "src",))
    assert (of_agent.branch, of_agent.of) == ("trunk", ("agents",))


def test_of_one_repository_it_is_said_what_is_in_it(repository: Path) -> None:
    (commit,) = read(repository / "a.suite.yaml", agents=(repository / "agents",))
    assert commit.of == ("suites", "agents")


def test_where_there_is_nothing_to_know_nothing_is_said(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, empty, bare = tmp_path / "plain", tmp_path / "empty", tmp_path / "bare.git"
    for folder in (plain, empty, bare):
        folder.mkdir()
    git(empty, "init", "--quiet")
    git(bare, "init", "--quiet", "--bare")
    (tmp_path / "broken" / ".git").mkdir(parents=True)
    assert read(*(folder / "a.suite.yaml" for folder in (plain, empty, bare, tmp_path / "broken"))) == ()
    assert read(Path("import:langsmith:x.jsonl")) == ()
    monkeypatch.setenv("PATH", str(plain))
    assert read(repository / "a.suite.yaml") == ()


def test_a_git_that_hangs_is_given_up_and_ended(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    slow = tmp_path / "bin" / "git"
    slow.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nexec sleep 300\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    reading = CommitReading(places_of([str(repository / "a.suite.yaml")], ()), limit_s=300)
    pids, late = tmp_path / "pids", time.monotonic() + 60
    while not (pids.exists() and pids.read_text().strip()) and time.monotonic() < late:
        time.sleep(0.01)
    assert not reading.ready
    assert reading.result(0.0) == ()
    reading._thread.join(20)
    assert reading.ready
    for pid in (tmp_path / "pids").read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_nothing_of_the_repository_runs(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    act = tmp_path / "act"
    act.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    act.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(act))
    hook = repository / ".git" / "hooks" / "post-index-change"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    suite = repository / "a.suite.yaml"
    suite.write_text("tests: [2]\n")
    assert read(suite)[0].dirty is True
    assert not ran.exists()
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text("* filter=act\n")
    git(repository, "config", "filter.act.clean", str(act))
    os.utime(suite, (1, 1))  # git has to read the file to know whether it changed
    (commit,) = read(suite)
    assert commit.commit == git(repository, "rev-parse", "HEAD")
    assert commit.dirty is None
    assert not ran.exists()


def test_variables_of_a_hook_name_no_other_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    expected = git(repository, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    (commit,) = read(repository / "a.suite.yaml")
    assert (commit.commit, commit.dirty) == (expected, False)


@pytest.mark.parametrize(
    ("config", "folder"),
    [
        # A script is no file, and too long for a file's name.
        ({"kind": "command", "command": ["sh", "-c", f"printf {'x' * 300} > /dev/null"]}, "."),
        ({"kind": "python", "callable": "src/shop.py:answer"}, "src"),
        ({"kind": "python", "callable": "shop:answer", "path": ["src"]}, "src"),
        ({"kind": "python", "callable": "gone:answer"}, "."),
        ({"kind": "command", "command": ["python", "src/shop.py"]}, "src"),
        ({"kind": "command", "command": "python shop.py", "cwd": "src"}, "src"),
        ({"kind": "command", "command": ["/usr/bin/env", "python", "-m", "shop"]}, "."),
        ({"kind": "http", "url": "http://localhost"}, None),
    ],
)
def test_where_an_agent_s_own_code_lies(tmp_path: Path, config: dict[str, object], folder: str | None) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "shop.py").touch()
    found = agent_folder(config, tmp_path)
    assert found is None if folder is None else found is not None and found.resolve() == (tmp_path / folder).resolve()


def test_what_is_no_commit_is_passed_over() -> None:
    entries = [{"of": ["suites"], "repository": "/r", "commit": "1" * 40}, {"commit": 3}, "x", None]
    assert [commit.commit for commit in read_commits(entries)] == ["1" * 40]
