"""Reports as files: what may be overwritten, what a builder is told, and what never reaches it as a command."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from terminal import Terminal

from agenteval_tui.cli.output import Output

# Each kind of report, and what looks a little like one.
KINDS = {
    "json": '{"version": 2, "mine": true}',
    "junit": "<testsuites/>",
    "csv": "execution,mine\n",
    "md": "# Report\n",
    "html": "<!doctype html>",
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_earlier_report_is_overwritten_and_nothing_else(cli: Any, suite: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"report.{kind}"
    path.touch()  # an empty file is nobody's
    option = f"--{kind}"
    assert cli("run", suite, "--test", "good", option, path).code == 0
    first = path.read_text("utf-8")
    assert cli("run", suite, "--test", "good", option, path).code == 0
    assert path.read_text("utf-8") != first  # another execution
    foreign = KINDS[kind]
    path.write_text(foreign, "utf-8")
    refused = cli("run", suite, "--test", "good", option, path)
    assert refused.code == 2
    assert "--force" in refused.err
    assert refused.out == ""  # nothing ran
    assert path.read_text("utf-8") == foreign
    assert cli("run", suite, "--test", "good", option, path, "--force").code == 0
    assert path.read_text("utf-8") != foreign


def test_links_stay_links_and_modes_stay_modes(cli: Any, suite: Path, tmp_path: Path) -> None:
    real = tmp_path / "real.md"
    real.touch(0o600)
    link = tmp_path / "link.md"
    link.symlink_to(real)
    assert cli("run", suite, "--test", "good", "--md", link).code == 0
    assert link.is_symlink()
    assert "Evaluation report" in real.read_text("utf-8")
    assert real.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_pipe_is_written_into(cli: Any, suite: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert cli("run", suite, "--test", "good", "--json", pipe).code == 0
        assert json.loads(os.read(reader, 1 << 20))["summary"]["passed"] == 1
    finally:
        os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.e2e
def test_on_a_terminal_it_is_asked_before_anything_runs(suite: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("mine")
    argv = [sys.executable, "-m", "agenteval_tui", "run", str(suite), "--test", "good", "--json", str(path)]
    with Terminal(argv, env={"CI": ""}) as terminal:
        terminal.wait_for("Overwrite it?")
        terminal.send("what\r")  # no answer: asked again
        terminal.wait_for(lambda t: t.text.count("Overwrite it?") == 2)
        terminal.send("\r")  # the default is no
        terminal.wait_for_end()
        assert "nothing ran" in terminal.text
    assert path.read_text() == "mine"
    with Terminal(argv, env={"CI": ""}) as terminal:
        terminal.wait_for("Overwrite it?")
        terminal.send("y\r")
        terminal.wait_for_end()
    assert json.loads(path.read_text("utf-8"))["summary"]["passed"] == 1


def test_github_is_told_places_and_reasons(
    cli: Any, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "summary.md"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    result = cli("run", suite, "--json", "-")
    assert result.code == 1
    result.json("results")  # stdout is still one document
    (line,) = result.err.splitlines()
    place = suite.read_text("utf-8").splitlines().index("  - id: bad") + 1
    assert line.startswith(f"::error file=orders.suite.yaml,line={place},title=Says what it never says::failed: ")
    assert page.read_text("utf-8").startswith("before\n<!-- agenteval report")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "page.md"))
    again = cli("run", suite)
    assert again.code == 1  # it fails nothing
    assert "the job's summary can't be written" in again.err
    assert cli("show", "last").out.count("::") == 0


@pytest.mark.parametrize("text", ["::add-mask::x", "   ::stop-commands::x", "a\n::error::x", "a ##[add-mask]x"])
def test_what_an_agent_says_is_no_command_of_the_builder(text: str) -> None:
    stream = io.StringIO()
    Output(stream, {"GITHUB_ACTIONS": "true"}).line("", text)
    for line in stream.getvalue().splitlines():
        assert not line.strip().startswith("::")
        assert "##[" not in line
    plain = io.StringIO()
    Output(plain, {}).line("", text)
    assert plain.getvalue() == text + "\n"


def test_runs_go_into_a_pipe_as_reports_do(cli: Any, suite: Path, tmp_path: Path) -> None:
    assert cli("run", suite).code in (0, 1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for words in (("export", "last", pipe), ("share", "last", pipe)):
        reads = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert cli(*words).code == 0
            assert os.read(reads, 20)
        finally:
            os.close(reads)
    assert pipe.is_fifo()
