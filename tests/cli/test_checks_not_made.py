"""A criterion in error that does not decide is shown and counted; with a threshold it makes the run an error."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

SUITE = """\
name: Orders
agent: shop
agents:
  shop: {kind: demo, version: v1, pace: 0}
tests:
  - id: order
    prompt: "Where is my order #W1042?"
    #threshold
    criteria:
      - name: Names the order
        severity: SEVERITY
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: W1042}]}
      - name: Is cheap
        severity: warning
        weight: 9
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: Judge, criteria: "Is it cheap?"}]}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "orders.suite.yaml"
    path.write_text(SUITE.replace("SEVERITY", "error"), "utf-8")
    return path


def test_they_are_said_wherever_the_outcome_is_shown(cli, suite: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / f"report.{name}" for name in ("md", "html", "csv", "json")}
    ran = cli(
        "run", suite, "--md", files["md"], "--html", files["html"], "--csv", files["csv"], "--json", files["json"]
    )
    said = "1 check could not run"
    assert ran.code == 0
    assert said in ran.out
    assert said in cli("show").out
    (run,) = cli("history", "--runs", "--json").json("history-runs")
    assert said in run["why"]
    assert said in cli("history", "--runs").out
    for verb in ("show", "why"):
        assert said in cli(verb, run["run"]).out
        assert cli(verb, run["run"], "--json").json("run" if verb == "show" else "why")["checks_not_made"] == 1
    assert said in cli("why", run["run"], "--markdown").out
    for name in ("md", "html"):
        text = files[name].read_text("utf-8")
        assert said in text
        assert "Checks that could not run" in text
    (row,) = csv.DictReader(io.StringIO(files["csv"].read_text("utf-8")))
    assert said in row["why"]
    document = json.loads(files["json"].read_text("utf-8"))
    assert json.dumps(document).count('"checks_not_made": 1') == 1
    transcript = tmp_path / "t.json"
    transcript.write_text('[{"role": "assistant", "content": "W1042"}]', "utf-8")
    criteria = tmp_path / "c.yaml"
    criteria.write_text(
        "- {prototype_class: TextResponse, severity: info, config_uxon: {metrics: [{type: Cost, max: 1}]}}\n", "utf-8"
    )
    assert said in cli("grade", "--criteria", criteria, "--transcript", transcript).out


def test_what_a_builder_reads_says_them_too(cli, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    said, junit = "1 check could not run: Is cheap: ", tmp_path / "junit.xml"
    ran = cli("run", suite, "--junit", junit)
    assert ran.code == 0
    (line,) = (one for one in ran.out.splitlines() if one.startswith("✓"))
    assert line.endswith("  1 check could not run")
    (warning,) = (one for one in ran.err.splitlines() if one.startswith("::warning"))
    assert "orders.suite.yaml,line=6,title=" in warning
    assert f"::passed, but {said}" in warning
    (case,) = ElementTree.parse(junit).iter("testcase")
    assert not case.findall("failure") + case.findall("skipped")
    assert (case.findtext("system-out") or "").startswith(f"checks_not_made: {said}")
    # A failed run says it beside its failure.
    suite.write_text(suite.read_text("utf-8").replace("contains: W1042", "contains: W9999"), "utf-8")
    failed = cli("run", suite, "--junit", junit)
    (error,) = (one for one in failed.err.splitlines() if one.startswith("::error"))
    assert "; 1 check could not run in runs with a verdict%0A" in error
    assert "::warning" not in failed.err
    (case,) = ElementTree.parse(junit).iter("testcase")
    assert case.findall("failure")
    assert "checks_not_made: " in (case.findtext("system-out") or "")


def test_figures_and_comparisons_say_them(cli, suite: Path) -> None:
    cli("run", suite, "--repeat", "2")
    stats = cli("stats", "--json").json("stats")
    assert stats["overall"]["checks_not_made"] == 2
    assert stats["tests"][0]["checks_not_made"] == 2
    assert "2 checks could not run in runs with a verdict" in cli("stats").out
    suite.write_text(suite.read_text("utf-8").replace("weight: 9", "weight: 8"), "utf-8")
    cli("run", suite)
    (one, other) = (note for note in cli("compare", "--json").json("compare")["notes"] if "could not run" in note)
    assert one.startswith("2 checks could not run in runs with a verdict of ")
    assert other.startswith("1 check could not run in runs with a verdict of ")
    assert one in cli("compare").out


@pytest.mark.parametrize("severity", ["error", "warning"])
def test_with_a_threshold_the_run_is_in_error(cli, suite: Path, severity: str) -> None:
    text = SUITE.replace("SEVERITY", severity).replace("#threshold", "pass_threshold: 0.75")
    suite.write_text(text, "utf-8")
    ran = cli("run", suite)
    assert ran.code == 3
    assert "Is cheap" in ran.out


def test_validate_knows_that_a_threshold_can_fail(cli, suite: Path) -> None:
    text = SUITE.replace("SEVERITY", "warning")
    suite.write_text(text, "utf-8")
    assert "can't fail" in cli("validate", suite).out
    for threshold in ("pass_threshold: 0.75", "pass_threshold: 0"):
        suite.write_text(text.replace("#threshold", threshold), "utf-8")
        assert ("can't fail" in cli("validate", suite).out) is threshold.endswith(" 0")
    suite.write_text(text.replace("tests:", "defaults: {pass_threshold: 0.5}\ntests:"), "utf-8")
    assert "can't fail" not in cli("validate", suite).out
