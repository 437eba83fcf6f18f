"""`gate:` in suites and `--fail-under-test`: exit codes, reports, what else gates, and what is resumed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.directories import history_file
from agenteval_tui.history.store import Store
from agenteval_tui.tui.workspace import read_runs

TEST = """\
  - id: %s
    prompt: Is it?
    repeat: %d
    %s
    criteria:
      - {name: Says yes, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: "yes"}]}}
"""


SAID = '{messages: [{role: user, content: q}, {role: assistant, content: "%s"}]}'
YES, NO = (SAID.replace("%s", said) for said in ("yes", "no"))


def written(folder: Path, *tests: tuple[str, int, str], top: str = "") -> Path:
    """A suite of (test, repeat, further key); `sixty` and `whole` answer rightly three times of five."""
    path = folder / "gates.suite.yaml"
    three_of_five = ", ".join([YES] * 3 + [NO] * 2)
    agent = (
        f"agents:\n  shop:\n    kind: replay\n    beyond: repeat\n    transcripts:\n      sure: {YES}\n"
        f"      sixty: [{three_of_five}]\n      whole: [{three_of_five}]\n"
    )
    path.write_text(f"name: Gates\nagent: shop\n{top}{agent}tests:\n" + "".join(TEST % one for one in tests), "utf-8")
    return path


def test_three_of_five_pass_a_gate_of_sixty_percent_everywhere(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = written(tmp_path, ("sixty", 5, "gate: {pass_rate: 0.6}"), ("sure", 1, "tags: []"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    reports = {kind: tmp_path / f"r.{kind}" for kind in ("junit", "json", "md", "csv", "html")}
    done = cli("run", suite, *(part for kind, file in reports.items() for part in (f"--{kind}", file)))
    assert done.code == 0, done.err
    said = "gate 60 % reached, 3 of 5 runs passed (60 %, 95 % interval 23 % to 88 %); 5 runs are too few to decide"
    assert f"✓ sixty: {said}  (the test's gate)" in done.out
    assert "gates: 1 of 1 reached" in done.out
    # GitHub: notices, and no error.
    assert "::error" not in done.err
    assert "::notice" in done.err
    # JUnit: nothing failed, two are skipped with the reason.
    root = ElementTree.parse(reports["junit"]).getroot()
    assert [root[0].get(name) for name in ("tests", "failures", "errors", "skipped")] == ["6", "0", "0", "2"]
    skipped = root.findall(".//skipped")
    assert {one.get("type") for one in skipped} == {"gate"}
    assert all("gate 60 % reached: 3 of 5" in (one.get("message") or "") for one in skipped)
    (gate,) = json.loads(reports["json"].read_text("utf-8"))["gates"]
    assert gate | {"interval": None} == {
        "suite": "Gates", "test": "sixty", "variation": "", "pass_rate": 0.6, "origin": "test", "outcome": "reached",
        "n": 5, "passed": 3, "rate": 0.6, "interval": None, "errors": 0, "needs_review": 0, "sure": False,
        "needed": None,
    }  # fmt: skip
    for kind in ("md", "html"):
        text = reports[kind].read_text("utf-8")
        assert "gate 60 % reached, flaky" in text
        assert "1 of 1 gate was reached. 1 gate had too few runs to be sure." in text
    assert "gate 60 % reached: 3 of 5" in reports["csv"].read_text("utf-8")
    # Later, from the history: the same, whatever the file says by then.
    suite.write_text(suite.read_text("utf-8").replace("0.6", "0.9"), "utf-8")
    assert said in cli("show").out
    assert cli("show", "--json").json("results")["gates"] == [gate]


def test_a_gate_that_is_missed_fails_and_says_so_first(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    suite = written(tmp_path, ("sixty", 5, "gate: {pass_rate: 0.6}"), ("whole", 5, "tags: []"),
                    top="gate: {pass_rate: 0.8}\n")  # fmt: skip
    junit = tmp_path / "r.xml"
    done = cli("run", suite, "--junit", junit)
    assert done.code == 1
    assert "gates: 1 of 2 reached" in done.out
    lines = [line for line in done.out.splitlines() if "gate " in line]
    assert lines[0].startswith("✗ whole: gate 80 % missed, 3 of 5 runs passed")
    assert lines[0].endswith("too few to decide (at this rate it takes 16)  (the suite's gate)")
    (error,) = [line for line in done.err.splitlines() if line.startswith("::error")]
    assert "title=whole::gate 80 %25 missed: 3 of 5" in error
    root = ElementTree.parse(junit).getroot()
    assert (root.get("failures"), root[0].get("skipped")) == ("2", "2")
    with Store.open(history_file(None)) as store:
        known = read_runs(store, str(suite), "whole")
    assert [(one.outcome, one.needed) for one in known.gates] == [("missed", 16)], "what the Suites screen shows"
    assert "gate: gate 80 % missed" in (root.findtext(".//testcase[@classname='Gates.whole']/system-out") or "")


@pytest.mark.parametrize(
    ("keys", "options", "code"),
    [
        # A test without a gate must pass in every run; the option is a gate for those that have none.
        (("gate: {pass_rate: 0.6}", "tags: []"), [], 1),
        (("gate: {pass_rate: 0.6}", "tags: []"), ["--fail-under-test", "60%"], 0),
        (("gate: {pass_rate: 0.6}", "tags: []"), ["--fail-under-test", "0.8"], 1),
        (("gate: {pass_rate: 0.7}", "tags: []"), ["--fail-under-test", "0.6"], 1),
        # --fail-under is of the whole: both must hold.
        (("gate: {pass_rate: 0.6}", "tags: []"), ["--fail-under", "0.6"], 0),
        (("gate: {pass_rate: 0.6}", "gate: {pass_rate: 0.6}"), ["--fail-under", "0.7"], 1),
        (("gate: {pass_rate: 0.7}", "tags: []"), ["--fail-under", "0.1"], 1),
        # So it is with the gates against a baseline.
        (("gate: {pass_rate: 0.6}", "tags: []"), ["--no-regressions", "--set-baseline"], 0),
        (("gate: {pass_rate: 0.7}", "tags: []"), ["--no-regressions", "--set-baseline"], 1),
    ],
)
def test_gates_of_tests_and_the_other_gates(
    cli: Any, tmp_path: Path, keys: tuple[str, str], options: list[str], code: int
) -> None:
    suite = written(tmp_path, ("sixty", 5, keys[0]), ("whole", 5, keys[1]))
    done = cli("run", suite, *options)
    assert done.code == code, done.out


def test_what_is_in_quarantine_does_not_gate(cli: Any, tmp_path: Path) -> None:
    suite = written(tmp_path, ("sixty", 5, "gate: {pass_rate: 0.8}"), ("sure", 1, "tags: []"))
    assert cli("run", suite).code == 1
    assert cli("quarantine", "add", "sixty", "--until", "30d").code == 0
    done = cli("run", suite)
    assert done.code == 0
    assert "in quarantine, non-gating: sixty" in done.out
    assert "gates:" not in done.out


def test_what_is_resumed_is_measured_as_it_was_begun_with_the_runs_before(cli: Any, suite: Path) -> None:
    before = suite.read_text("utf-8")
    suite.write_text(before.replace("- id: good", "- id: good\n    gate: {pass_rate: 0.6}"), "utf-8")
    begun = cli("run", suite, "--repeat", "3", "--concurrency", "1", "--max-tokens", "50", "--fail-under-test", "0.9")
    assert begun.code == 1
    assert "stopped: the limit" in begun.out
    suite.write_text(before, "utf-8")
    done = cli("resume", "last", "--max-tokens", "100000")
    assert done.code == 1
    assert "✓ good: gate 60 % reached, 3 of 3 runs passed" in done.out
    assert "✗ bad: gate 90 % missed, 0 of 3 runs passed" in done.out
    # What is given anew holds for those that have no gate of their own.
    again = cli("run", suite, "--repeat", "3", "--concurrency", "1", "--max-tokens", "50", "--fail-under-test", "0.9")
    assert again.code == 1
    done = cli("resume", "last", "--max-tokens", "100000", "--fail-under-test", "0")
    assert done.code == 0
    assert "bad: gate 0 % reached" in cli("show").out


def test_a_rate_that_is_none_is_wrong_use(cli: Any, tmp_path: Path) -> None:
    done = cli("run", written(tmp_path, ("sure", 1, "tags: []")), "--fail-under-test", "eight")
    assert (done.code, done.err) == (
        2,
        "agenteval: --fail-under-test: 'eight' is not a number from 0 to 1 (write 0.8 or 80%)\n",
    )
