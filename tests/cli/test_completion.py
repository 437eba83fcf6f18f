"""What shells complete: asked in this process, and by each shell that is here in one start."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.cli import complete
from agenteval_tui.cli.commands.completion import SCRIPTS
from agenteval_tui.cli.complete import answer
from agenteval_tui.core.directories import history_file
from agenteval_tui.core.ids import short_id

ROOT = Path(__file__).resolve().parents[2]


def values(*words: str) -> list[str]:
    """The candidates, without their descriptions, and the last line."""
    *lines, kind = answer(words)
    return [line.partition("\t")[0] for line in lines] + [kind]


@pytest.fixture
def known(cli: Any, suite: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of an execution of `suite`, whose folder is the current one."""
    monkeypatch.chdir(suite.parent)
    assert cli("run").code == 1
    return str(cli("show", "--json").json("results")["execution"])


def test_verbs_options_and_their_values(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(suite.parent)
    assert values("va") == ["validate", ":files"], "a path opens the app"
    assert {"run", "show", "completion"} <= set(values(""))
    assert values("db", "pr") == ["prune", ":none"]
    assert values("run", "--max") == ["--max-cost", "--max-tokens", "--max-time", "--max-drop", ":none"]
    assert values("run", "--failed", "--fail") == ["--fail-under", "--fail-under-test", ":none"], "given once"
    assert values("run", "--tag", "x", "--ta") == ["--tag", ":none"], "may be repeated"
    assert {"--tag", "-q", "--help"} <= set(values("run", "-"))
    assert "-q" not in values("run", "--")
    assert "check" in values("agents", "c")
    assert values("import", "--format", "prom") == ["promptfoo", "promptfoo-config", ":none"]
    assert values("import", "--format=tau2") == ["--format=tau2-bench", ":none"]
    assert values("schema", "sui") == ["suite", ":none"]
    assert values("help", "dem") == ["demo", "demo-server", ":none"]
    assert values("run", "") == [":files"]
    assert values("run", "--junit", "") == [":files"]
    assert values("run", "--", "--t") == [":files"]
    assert values("run", "--repeat", "3", "--concurrency", "") == [":none"], "a number is nobody's to guess"
    assert values("schema", "suite", "") == [":none"]
    assert values("nothing", "of", "this", "") == [":none"]
    assert values() == values("")


def test_names_come_from_the_suites_of_the_folder_before_anything_ran(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(suite.parent)
    assert values("run", "--test", "") == ["good", "bad", ":none"]
    assert values("run", "--tag", "s") == ["smoke", ":none"]
    assert values("run", "--agent", "") == ["shop", ":none"]
    text = suite.read_text("utf-8")
    variations = "variations: [{name: terse, agent: short}]\n    prompt"
    suite.write_text(text.replace("  - id: good\n", "  -\n").replace("prompt", variations, 1), "utf-8")
    assert values("run", "--test", "")[0] == "says-where-it-is", "an id that is made of the name"
    assert values("run", "--variation", "t") == ["terse", ":none"]
    assert values("run", "--ab", "shop", "") == ["shop", "terse", ":none"]
    (tmp_path / "broken.suite.yaml").write_text("tests: [", "utf-8")
    (tmp_path / "odd.suite.yaml").write_text("tests: {id: 3}\nagents: [x]\ntags: 5", "utf-8")
    assert values("run", "--test", "b") == ["bad", ":none"]


def test_ids_come_from_the_history_by_their_short_forms(known: str, tmp_path: Path) -> None:
    short = short_id(known)
    assert values("stats", "") == ["last", short, ":none"]
    assert values("stats", short[:2].lower()) == [short, ":none"]
    assert values("stats", known[:9]) == [known, ":none"], "whole, where that is typed"
    found = values("show", "")
    assert found[:4] == ["last", short, "good", "bad"]
    assert len(found) == 7, "and both runs"
    assert values("compare", "") == ["baseline", "last", short, ":none"]
    assert values("debug", "")[:2] == values("make-test", "")[:2] == ["good", "bad"], "tests and runs, not executions"
    assert "last" not in values("debug", "")
    assert values("attach", "") == [":none"], "nothing runs"
    assert values("causes", "") == ["last", short, ":files"]
    (line, *_) = answer(("stats", short))
    assert "1/2 passed, finished" in line
    assert values("--db", str(tmp_path / "none.db"), "stats", "") == ["last", ":none"]


def test_other_projects_are_left_out_unless_asked_for(
    known: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other" / "deep"
    (other / ".git").mkdir(parents=True)
    monkeypatch.chdir(other)
    monkeypatch.delenv("AGENTEVAL_SCOPE", raising=False)
    assert values("stats", "") == ["last", ":none"]
    assert values("history", "--test", "") == [":none"]
    assert values("stats", "--all-projects", "") == ["last", short_id(known), ":none"]
    monkeypatch.setenv("AGENTEVAL_SCOPE", "all")
    assert values("history", "--test", "") == ["bad", "good", ":none"]


def test_what_a_shell_would_act_on_is_never_offered(known: str, suite: Path) -> None:
    with sqlite3.connect(history_file()) as connection:
        connection.execute("UPDATE tests SET test_id = '$(reboot)' WHERE test_id = 'good'")
        connection.execute("UPDATE executions SET title = ?", ("a\nb\x1b[31m\tc" + "d" * 200,))
    text = suite.read_text("utf-8").replace("id: good", 'id: "a b"').replace("id: bad", 'id: "-x;y"')
    suite.write_text(text, "utf-8")
    assert values("run", "--test", "") == ["bad", ":none"], "of the history"
    (line, _) = answer(("stats", short_id(known)))
    assert line.count("\t") == 1
    assert line.isprintable() or line.replace("\t", "").isprintable()
    assert len(line) < 100


def test_a_history_that_can_not_be_read_gives_nothing(known: str, capsys: pytest.CaptureFixture[str]) -> None:
    for data in (b"not a database" * 100, b""):
        history_file().write_bytes(data)
        assert values("stats", "") == ["last", ":none"]
    history_file().unlink()
    assert values("stats", "") == ["last", ":none"]
    capsys.readouterr()
    assert complete.main(["stats", "\udcff"]) == 0
    assert complete.main([]) == 0


def test_only_the_verb_on_the_line_is_imported_for_it(suite: Path) -> None:
    code = (
        "import sys\nfrom agenteval_tui.__main__ import main\nmain(['__complete', 'validate', ''])\n"
        "main(['__complete', 'v'])\n"
        "verbs = {name.rpartition('.')[2] for name in sys.modules if name.startswith('agenteval_tui.cli.commands.')}\n"
        "print(*sorted(verbs), 'textual' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=suite.parent, timeout=250, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    *_, last = done.stdout.splitlines()
    assert last == "validate False"


def test_the_script_of_each_shell_is_printed(cli: Any) -> None:
    for shell, name in SCRIPTS.items():
        assert cli("completion", shell).out == (ROOT / "completions" / name).read_text("utf-8")
    assert cli("completion", "csh").code == 2


# In real shells. `program` is on PATH as `agenteval`.


@pytest.fixture
def path(tmp_path: Path) -> str:
    program = tmp_path / "bin" / "agenteval"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m agenteval_tui "$@"\n', "utf-8")
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def in_shell(program: str, script: str, path: str, folder: Path) -> str:
    done = subprocess.run([program, *(["--no-config"] if program.endswith("fish") else []), "-c", script],
                          capture_output=True, text=True, cwd=folder, timeout=250, check=False,
                          env={**os.environ, "PATH": path})  # fmt: skip
    assert done.stderr == ""
    return done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash(suite: Path, path: str) -> None:
    script = f"""
    source {ROOT}/completions/agenteval.bash
    for COMP_LINE in 'agenteval vali' 'agenteval run --test ' 'agenteval run --agent=sh' 'agenteval run or'; do
        COMP_POINT=${{#COMP_LINE}}; _agenteval; echo "$COMP_LINE -> ${{COMPREPLY[*]}}"
    done
    complete -p agenteval agenteval-tui
    """
    assert in_shell("bash", script, path, suite.parent).splitlines() == [
        "agenteval vali -> validate", "agenteval run --test  -> good bad", "agenteval run --agent=sh -> shop",
        "agenteval run or -> ", "complete -o bashdefault -o default -F _agenteval agenteval",
        "complete -o bashdefault -o default -F _agenteval agenteval-tui",
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh(suite: Path, path: str) -> None:
    script = f"""
    _describe() {{ print -rl -- "${{(@P)4:-${{(@P)3}}}}" }}
    _files() {{ print files "$@" }}
    compdef() {{ print compdef "$@" }}
    source {ROOT}/completions/_agenteval
    words=(agenteval vali) CURRENT=2; _agenteval
    words=(agenteval run --test '') CURRENT=4; _agenteval
    """
    said = in_shell("zsh", script, path, suite.parent).splitlines()
    assert said[0] == "compdef _agenteval agenteval agenteval-tui"
    assert [line.partition(":")[0] for line in said[1:]] == ["validate", "files", "good", "bad"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish(suite: Path, path: str) -> None:
    script = f"""
    source {ROOT}/completions/agenteval.fish
    complete -C 'agenteval show las'
    complete -C 'agenteval run --test '
    """
    said = in_shell("fish", script, path, suite.parent).splitlines()
    assert [line.partition("\t")[0] for line in said] == ["last", "bad", "good"]
