"""`report` writes what `run` would have written; `open` finds the place that an address names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.cli.commands.open_app import start_at
from agenteval_tui.cli.invocation import Invocation
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
    start = start_at(Invocation(lambda start: 0), f"{run[-8:]}/Names a whale")
    assert (start.screen, start.target, start.criterion) == ("inspect", run, "Names a whale")
    assert start_at(Invocation(lambda start: 0), "last") == AppStart(screen="history", target=executed["execution"])
    with pytest.raises(AgentevalError, match="there is no"):
        start_at(Invocation(lambda start: 0), "0123456789/x")
    refused = cli("open", run)
    assert refused.code == 2
    assert f"agenteval show {run}" in refused.err
