"""Programs of a suite's folder: asked about once on a terminal, refused elsewhere, trusted as the folder is."""

from __future__ import annotations

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


def test_a_trusted_folder_is_trusted_as_it_is(cli: Any, program: Path) -> None:
    folder = program.parent
    assert "no folder is trusted" in cli("trust").out
    assert cli("trust", folder).code == 0
    assert cli("run", program).code == 0
    (one,) = cli("trust", "--list", "--json").json("trust")["folders"]
    assert (one["folder"], one["trusted"], one["reason"]) == (str(folder.resolve()), True, "")
    (folder / "agent.py").write_text("print('Rome')\n", "utf-8")
    assert cli("run", program).code == 2
    assert "changed: agent.py" in cli("trust").out
    (check,) = [one for one in cli("doctor", "--json").json("doctor")["checks"] if one["name"] == "trust"]
    assert (check["state"], "1 changed since" in check["message"]) == ("warning", True)
    assert cli("trust", "--forget", folder).code == 0
    assert cli("trust", "--forget", folder).code == 2
    assert "no folder is trusted" in cli("trust").out


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
    assert cli("trust", "--list", "--json").json("trust")["folders"] == []
