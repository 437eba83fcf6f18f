"""`report` writes what `run` would have written; `open` finds the place that an address names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.cli.commands.open_app import _found, _shared
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.start import AppStart
from agenteval_tui.core.errors import AgentevalError


@pytest.fixture
def executed(cli: Any, suite: Path) -> dict[str, Any]:
    done = cli("run", suite, "--json", "-")
    document: dict[str, Any] = json.loads(done.out)
    return document


def test_the_reports_of_a_stored_execution_are_those_of_its_run(
    cli: Any, executed: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "again.json"
    assert cli("report", "--json", file, "--html", tmp_path / "a.html", "--junit", tmp_path / "a.xml").code == 0
    assert json.loads(file.read_text()) == executed
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "a.xml").read_text().startswith("<?xml")
    printed = cli("report")
    assert printed.code == 0
    assert "## Evaluation report: Orders" in printed.out
    assert cli("report", "no-such-execution").code == 2


def test_an_address_is_a_run_one_of_its_criteria_or_an_execution(cli: Any, executed: dict[str, Any]) -> None:
    run = json.loads(cli("history", "--runs", "--json").out)[0]["run"]
    start = _found(Invocation(lambda start: 0), f"{run[-8:]}/Names a whale")
    assert (start.screen, start.target, start.criterion) == ("inspect", run, "Names a whale")
    assert _found(Invocation(lambda start: 0), "last") == AppStart(screen="history", target=executed["execution"])
    with pytest.raises(AgentevalError, match="there is no"):
        _found(Invocation(lambda start: 0), "0123456789/x")
    refused = cli("open", run)
    assert refused.code == 2
    assert f"agenteval show {run}" in refused.err


def test_a_shared_page_opens_again_and_says_what_it_is(
    cli: Any, executed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wrote = cli("share", "last", "runs.html")
    assert (wrote.code, wrote.err) == (0, "")
    assert wrote.out.startswith("runs.html: 2 runs with transcripts and evidence, ")
    assert cli("share", "last", "runs.html").code == 2  # it exists
    assert cli("share", "last", "runs.html", "--force").code == 0
    assert cli("share", "bad").code == 0
    (one,) = set(tmp_path.glob("*.html")) - {tmp_path / "runs.html"}
    opened = _shared(Invocation(lambda start: 0), one)
    assert (opened.screen, json.loads(cli("show", opened.target, "--json").out)["test"]) == ("inspect", "bad")
    several = _shared(Invocation(lambda start: 0), tmp_path / "runs.html")
    assert several.screen == "history"
    shown = json.loads(cli("show", several.target, "--json").out)
    assert [run["outcome"] for run in shown["runs"]] == [run["outcome"] for run in executed["runs"]]
    small = cli("share", "last", "small.html", "--max-mb", "0.001")
    assert (small.code, small.err.count("no run fits")) == (2, 1)
    reported = cli("report", "--html", "r.html", "--json", "-")
    assert reported.err == "r.html: HTML report of 2 runs\n"
    assert cli("open", "r.html").code == 2
