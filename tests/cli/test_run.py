"""`agenteval run`: what it prints, writes, keeps, and ends with."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval_tui.cli.exit_codes import exit_code, read_rate
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.store import Store

ROOT = Path(__file__).resolve().parents[2]
Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("counts", "rate", "gate", "expected"),
    [
        ({"passed": 3}, 1.0, None, 0),
        ({"passed": 3, "failed": 1}, 0.75, None, 1),
        ({"passed": 3, "error": 1}, 1.0, None, 3),
        ({"failed": 1, "error": 1}, 0.0, None, 1),
        ({"needs_review": 1}, None, None, 1),
        ({"passed": 3, "failed": 1}, 0.75, 0.75, 0),
        ({"passed": 3, "failed": 1}, 0.75, 0.8, 1),
        ({"passed": 3, "error": 1}, 1.0, 0.8, 3),
        ({"error": 2}, None, 0.8, 3),
        ({}, None, None, 0),
    ],
)
def test_exit_codes(counts: dict[str, int], rate: float | None, gate: float | None, expected: int) -> None:
    assert exit_code(counts, rate, gate) == expected


def test_rates_as_people_write_them() -> None:
    assert read_rate("0.8") == 0.8
    assert read_rate(" 80% ") == 0.8
    for wrong in ("80", "x", "-0.1", ""):
        with pytest.raises(AgentevalError):
            read_rate(wrong)


def test_a_line_a_test_in_order_and_why_it_failed(cli, suite: Path) -> None:
    result = cli("run", suite)
    assert result.code == 1
    assert result.err == ""
    lines = result.out.splitlines()
    assert lines[0].startswith("✓ good")
    assert lines[1].startswith("✗ bad")
    assert "Names a whale: failed" in result.out
    assert '"white whale" is not in the text' in result.out
    assert "1 passed, 1 failed of 2 runs" in result.out
    assert "pass rate 50 %" in result.out
    assert "\x1b" not in result.out


def test_what_is_chosen_is_run(cli, suite: Path) -> None:
    assert cli("run", suite, "--tag", "smoke").code == 0
    assert cli("run", suite, "--test", "good", "--repeat", "3").out.startswith("✓ good  3/3")
    failed = cli("run", suite)
    assert failed.code == 1
    again = cli("run", suite, "--failed", "--json", "-").json("results")
    assert [run["test"] for run in again["runs"]] == ["bad"]


def test_failed_without_a_past(cli, suite: Path) -> None:
    result = cli("run", suite, "--failed")
    assert result.code == 2
    assert "never run" in result.err


def test_the_gate(cli, suite: Path) -> None:
    assert cli("run", suite, "--fail-under", "0.5").code == 0
    assert cli("run", suite, "--fail-under", "51%").code == 1


def test_json_on_stdout_is_one_document_and_nothing_else(cli, suite: Path) -> None:
    result = cli("run", suite, "--json", "-")
    assert result.code == 1
    assert result.err == ""
    document = result.json("results")
    assert document["summary"] == {
        **document["summary"],
        "tests": 2,
        "runs": 2,
        "passed": 1,
        "failed": 1,
        "error": 0,
    }
    good, bad = document["runs"]
    assert (good["outcome"], bad["outcome"]) == ("passed", "failed")
    assert bad["criteria"][0]["metrics"][0]["evidence"][0]["passed"] is False
    assert "W1042" in good["final_output"]
    assert good["tool_calls"][0]["name"] == "get_order"
    assert document["started"] <= document["finished"]


def test_reports_say_the_same_as_the_history(cli, suite: Path, tmp_path: Path) -> None:
    files = {kind: tmp_path / f"r.{kind}" for kind in ("json", "xml", "csv")}
    done = cli("run", suite, "--json", files["json"], "--junit", files["xml"], "--csv", files["csv"])
    assert done.code == 1
    document = json.loads(files["json"].read_text("utf-8"))
    root = ElementTree.parse(files["xml"]).getroot()
    assert root.attrib["tests"] == "2"
    assert root.attrib["failures"] == "1"
    failure = root.find(".//failure")
    assert failure is not None
    assert "white whale" in (failure.text or "")
    assert "white whale" in failure.attrib["message"]
    rows = list(csv.DictReader(io.StringIO(files["csv"].read_text("utf-8"))))
    assert [row["outcome"] for row in rows] == [run["outcome"] for run in document["runs"]] == ["passed", "failed"]
    assert json.loads(cli("show", "last", "--json").out) == document
    assert oct(files["csv"].stat().st_mode & 0o777) == "0o644"


def test_an_invalid_suite_is_not_run_at_all(cli, suite: Path) -> None:
    suite.write_text(suite.read_text("utf-8").replace('"contains": "white', '"contians": "white'), "utf-8")
    result = cli("run", suite)
    assert result.code == 2
    assert f"{suite}:22:46:" in result.err
    assert "contains" in result.err
    assert result.out == ""
    assert cli("history").out.startswith("nothing has run yet")
    # What is wrong with one test is no matter where another one is named.
    assert cli("run", suite, "--test", "good").code == 0
    assert cli("run", suite, "--test", "bad").code == 2


def test_an_unreachable_agent_is_an_error_with_a_remedy(cli, suite: Path, tmp_path: Path) -> None:
    unreachable = '{kind: openai, base_url: "http://127.0.0.1:9/v1", model: m, max_attempts: 1}'
    text = suite.read_text("utf-8").replace("{kind: demo, version: v1, pace: 0}", unreachable)
    suite.write_text(text, "utf-8")
    result = cli("run", suite, "--test", "good")
    assert result.code == 3
    assert result.out.startswith("! good")
    assert "127.0.0.1:9" in result.out
    assert "base_url" in result.out  # what to do about it
    run = cli("show", "last", "--json").json("results")["runs"][0]
    assert run["error"]["kind"] == "connection"
    for verb in ("show", "why"):
        assert "base_url" in cli(verb, run["run"]).out
    assert "Traceback" not in result.out + result.err


def test_foreign_text_reaches_no_terminal_raw(cli, suite: Path) -> None:
    attack = "\\u001b]52;c;aGk=\\u0007\\u202e white whale"
    suite.write_text(suite.read_text("utf-8").replace("white whale", attack), "utf-8")
    result = cli("run", suite)
    assert result.code == 1
    for char in ("\x1b", "\x07", "\u202e"):
        assert char not in result.out + result.err


@pytest.mark.e2e
def test_ctrl_c_ends_with_130_and_keeps_what_ended(suite: Path, tmp_path: Path) -> None:
    # The second test can't end by itself while a busy machine looks elsewhere.
    text = suite.read_text("utf-8").replace("  shop: {", "  slow: {kind: demo, version: v1, pace: 100}\n  shop: {")
    suite.write_text(text.replace("  - id: bad\n", "  - id: bad\n    agent: slow\n"), "utf-8")
    db = tmp_path / "h.db"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "agenteval_tui",
            "--db",
            str(db),
            "run",
            str(suite),
            "--repeat",
            "400",
            "--concurrency",
            "1",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        ended = 0
        while ended == 0:
            assert process.poll() is None, process.communicate()
            ended = _ended(db)
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=250)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err == ""
    assert "cancelled" in out
    with Store.open(db) as store:
        row = store.execution("last")
        assert row.status == "cancelled"
        assert row.passed >= ended
        assert row.ended == row.runs == 800


def _ended(db: Path) -> int:
    if not db.exists():
        return 0
    try:
        with Store.open(db, read_only=True) as store:
            return store.counts().passed
    except AgentevalError:
        return 0  # being made just now


@pytest.mark.e2e
# What it does without one is checked where the README's commands run.
def test_the_demo_on_a_terminal_opens_the_app(cli, monkeypatch) -> None:
    from agenteval_tui.cli.commands import demo
    from agenteval_tui.core import directories

    monkeypatch.setattr(demo, "on_a_terminal", lambda: True)
    assert cli("demo").code == 0
    (start,) = cli.opened
    assert start.db == directories.demo_history()
    (copies,) = start.paths
    samples = directories.bundled("sample_suites")
    assert copies.is_relative_to(directories.demo_dir())
    assert {one.relative_to(copies) for one in copies.rglob("*") if ".git" not in one.parts} == {
        one.relative_to(samples) for one in samples.rglob("*")
    }


def test_a_mistake_in_each_test_is_not_printed_a_thousand_times(cli, tmp_path: Path) -> None:
    test = "  - id: t{0}\n    prompt: p\n    criteria:\n      - {{name: c, prototype_class: TextResponse, "
    test += "config_uxon: {{metrics: [{{type: TextMatch, contain: a}}]}}}}\n"
    path = tmp_path / "many.suite.yaml"
    path.write_text(
        "name: S\nagents: {a: {kind: demo}}\nagent: a\ntests:\n" + "".join(map(test.format, range(30))), "utf-8"
    )
    result = cli("run", str(path))
    assert result.code == 2
    assert result.err.count("did you mean") == 20
    assert "have 30 errors (fix the problems listed above; `agenteval validate` prints the rest)" in result.err
