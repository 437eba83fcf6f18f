"""`agenteval share`: what it writes opens again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.cli.commands.open_app import start_at_page
from agenteval_tui.cli.invocation import Invocation


@pytest.fixture
def executed(cli: Any, suite: Path) -> dict[str, Any]:
    done = cli("run", suite, "--json", "-")
    document: dict[str, Any] = json.loads(done.out)
    return document


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
    opened = start_at_page(Invocation(lambda start: 0), one)
    assert (opened.screen, json.loads(cli("show", opened.target, "--json").out)["test"]) == ("inspect", "bad")
    several = start_at_page(Invocation(lambda start: 0), tmp_path / "runs.html")
    assert several.screen == "history"
    shown = json.loads(cli("show", several.target, "--json").out)
    assert [run["outcome"] for run in shown["runs"]] == [run["outcome"] for run in executed["runs"]]
    small = cli("share", "last", "small.html", "--max-mb", "0.001")
    assert (small.code, small.err.count("no run fits")) == (2, 1)
    reported = cli("report", "--html", "r.html", "--json", "-")
    assert reported.err == "r.html: HTML report of 2 runs\n"
    assert cli("open", "r.html").code == 2
