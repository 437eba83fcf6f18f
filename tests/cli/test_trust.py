"""Programs of a suite's folder: asked about once on a terminal, refused elsewhere, trusted as the folder is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from terminal import Terminal

from agenteval_tui.runs.client import live_executions
from agenteval_tui.suites.trust import Trust


@pytest.fixture
def program(cli: Any, tmp_path: Path) -> Path:
    """A suite whose agent is a program."""
    assert cli("init", tmp_path / "evals", "--agent-kind", "command").code == 0
    return tmp_path / "evals" / "first.suite.yaml"


def test_where_nobody_can_be_asked_it_is_an_error_with_a_remedy(cli: Any, program: Path) -> None:
    for more in ((), ("--detach",)):
        refused = cli("run", program, *more)
        assert refused.code == 2
        assert "agent.py" in refused.err
        assert "--trust" in refused.err
    assert live_executions() == []
    assert cli("history").out.startswith("nothing has run yet")
    plan = cli("run", program, "--plan")
    assert plan.code == 0  # to look at it runs nothing
    assert "not trusted" in plan.out
    assert "agent.py" in plan.out
    assert cli("run", program, "--trust").code == 0
    assert cli("run", program).code == 2  # that was for once


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@x.test")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def test_a_trusted_repository_is_never_asked_about_again(
    cli: Any, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = program.parent
    for words in (("init", "-b", "main"), ("add", "."), ("commit", "-m", "first")):
        git(tmp_path, *words)
    assert "no repository is trusted" in cli("trust", "--list").out
    assert cli("run", program).code == 2
    monkeypatch.chdir(folder)
    assert f"trusted {tmp_path.resolve()}" in cli("trust").out
    assert cli("run", program).code == 0
    (row,) = cli("trust", "--list", "--json").json("trust")["repositories"]
    assert (row["folder"], row["sends"]) == (str(tmp_path.resolve()), [])
    # An edited agent, another test, another program, a tool, data.
    agent = folder / "agent.py"
    agent.write_text(agent.read_text() + "\n# edited\n", "utf-8")
    program.write_text(program.read_text() + "\n# edited\n", "utf-8")
    agent.with_name("other_agent.py").write_text(agent.read_text(), "utf-8")
    (folder / "second.suite.yaml").write_text(program.read_text().replace("agent.py", "other_agent.py"), "utf-8")
    (folder / "data").mkdir()
    (folder / "data" / "rows.csv").write_text("a\n1\n")
    assert cli("run", folder).code == 0
    # What a pull brings.
    git(tmp_path, "checkout", "-b", "theirs")
    (folder / "pulled.py").write_text(agent.read_text(), "utf-8")
    agent.write_text(agent.read_text() + "\n# theirs\n", "utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "theirs")
    git(tmp_path, "checkout", "main")
    git(tmp_path, "pull", ".", "theirs")
    assert "# theirs" in agent.read_text()
    assert cli("run", folder).code == 0
    # Moved folders, another worktree.
    monkeypatch.chdir(tmp_path)
    folder.rename(tmp_path / "moved")
    assert cli("run", tmp_path / "moved").code == 0
    git(tmp_path, "worktree", "add", str(tmp_path / "tree"), "theirs")
    assert cli("run", tmp_path / "tree" / "evals").code == 0
    assert [entry.folder for entry in Trust.load().listed()] == [str(tmp_path.resolve())]
    assert cli("trust", "--revoke", tmp_path / "moved").code == 0
    assert cli("trust", "--revoke", tmp_path).code == 2
    assert cli("run", tmp_path / "moved").code == 2


def test_a_repository_that_is_gone_is_said(cli: Any, program: Path) -> None:
    folder = program.parent
    assert cli("trust", folder).code == 0
    folder.rename(folder.with_name("gone"))
    assert "no longer there" in cli("trust", "--list").out
    (check,) = [one for one in cli("doctor", "--json").json("doctor")["checks"] if one["name"] == "trust"]
    assert (check["state"], "1 no longer there" in check["message"]) == ("warning", True)
    assert f"agenteval trust --revoke {folder.resolve()}" in check["fix"]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("answer", "code", "trusted"), [("\r", 2, False), ("n\r", 2, False), ("o\r", 0, False), ("t\r", 0, True)]
)
def test_on_a_terminal_it_is_asked_once(program: Path, answer: str, code: int, trusted: bool) -> None:
    argv = [sys.executable, "-m", "agenteval_tui", "run", str(program)]
    with Terminal(argv, env={"CI": ""}) as terminal:
        terminal.wait_for("or no?")
        assert "agent.py" in terminal.text
        assert live_executions() == []
        terminal.send(answer)
        terminal.wait_for_end()
        assert terminal.exit_code() == code, terminal.text
    assert Trust.load().is_trusted(program.parent) is trusted


@pytest.mark.parametrize(
    ("path", "words"),
    [("/", "this is the root of the file system, not a project"),
     ("/dev/null", "this is not a folder"),
     ("/proc/self/status", "this is a folder of the operating system, not a project")],
)  # fmt: skip
def test_what_is_not_a_project_is_not_trusted(cli: Any, path: str, words: str) -> None:
    done = cli("trust", path)
    assert (done.code, words in done.err) == (2, True)
    assert cli("trust", "--list", "--json").json("trust")["repositories"] == []
