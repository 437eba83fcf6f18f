"""compare, baseline and criterion on the command line, and the gates of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from compared import OLD, two_executions, write_suite

from agenteval_tui.core import directories
from agenteval_tui.history.store import Store


@pytest.fixture
def compared(tmp_path: Path) -> Path:
    """The suite's file; both executions are in the history."""
    suite = write_suite(tmp_path / "suites")
    with Store.open(directories.history_file(None)) as store:
        two_executions(store, str(suite))
    return suite


def test_compare_and_baselines(cli: Any, compared: Path) -> None:
    before = cli("compare")
    assert (before.code, before.out.startswith("smoke 2025-11-19")) == (0, True), "the execution before"
    refused = cli("compare", "baseline")
    assert refused.code == 2
    assert "agenteval baseline set EXECUTION" in refused.err
    named = cli("compare", OLD[:5])
    assert named.code == 0
    assert "- gone" in named.out
    assert "config changed 2806a9 → f10ce3" in named.out
    assert "no test has a baseline" in cli("baseline").out
    assert "baseline set for 8 tests" in cli("baseline", "set", OLD[:5], "--who", "ada").out
    assert "baseline set for 1 test" in cli("baseline", "set", "OLD-refund-policy-0-2").out
    listed = cli("baseline", "list", "--json").json("baselines")
    assert {one["test"]: one["run"] for one in listed}["refund-policy"] == "OLD-refund-policy-0-2"
    assert {one["who"] for one in listed if not one["run"]} == {"ada"}
    assert cli("baseline", "set", OLD[:5], "--test", "refund-policy").code == 0
    wrong = cli("baseline", "set", OLD[:5], "--test", "refund-polcy")
    assert (wrong.code, "did you mean refund-policy?" in wrong.err) == (2, True)
    out = cli("compare").out
    lines = out.splitlines()
    assert lines[0].startswith("baseline 2025-11-19")
    assert out.index("3 tests worse\n✗ greeting") < out.index("1 test better\n✓ customers-germany")
    assert "changed by: judge noise" in out
    assert "first divergence: step 1: it called search_docs, now it answers at once" in out
    assert "show OLD-refund-policy-0-1 --diff NEW-refund-policy-0-1" in out
    document = cli("compare", "--json").json("compare")
    tests = {one["test"]: one for one in document["tests"]}
    assert tests["customers-germany"]["attribution"]["who"] == "criterion"
    assert tests["refund-policy"]["criteria"][0]["metrics"][0]["now"]["passed"] == 2
    assert document["overall"]["pass_rate"]["difference"] == pytest.approx(-1 / 3)
    quick = cli("compare", "--quick", "--json").json("compare")
    assert {one["attribution"] for one in quick["tests"]} == {None}
    page = cli("compare", "--md").out
    assert "| Metric | Baseline | Now | Change |" in page
    assert "| Pass rate | 90 % | 56.7 % | -33.3 points |" in page
    assert cli("compare", "--md", "--json").code == 2
    # Nobody can be asked here.
    assert "give --yes" in cli("baseline", "clear", "refund-policy").err
    assert "cleared the baseline of 1 test" in cli("baseline", "clear", "refund-policy", "--yes").out
    assert "cleared the baseline of 7 tests" in cli("baseline", "clear", "--all", "--yes").out
    assert cli("baseline", "clear").code == 2


def test_versions_of_a_criterion(cli: Any, compared: Path) -> None:
    listed = cli("criterion", "customers-germany/right").out
    assert "f10ce35e     5 runs  5/5 passed" in listed
    assert "in the file now" in listed
    document = cli("criterion", "customers-germany/1", "--json").json("criterion")
    assert [one["current"] for one in document["versions"]] == [True, False]
    diff = cli("criterion", "customers-germany/1", "--diff", "2", "current").out
    assert '-      {"type": "TextMatch", "contains": "5000"}' in diff
    compared_versions = cli("criterion", "customers-germany/1", "--compare", "2806", "f10c", "--json").json("compare")
    assert compared_versions["overall"]["test"] == "mcnemar", "the same runs under both"
    assert compared_versions["tests"][0]["now"]["passed"] == 10
    before = compared.read_text("utf-8")
    assert cli("criterion", "customers-germany/1", "--restore", "2806").code == 0
    restored = compared.read_text("utf-8")
    assert '"contains": "5000"' in restored
    assert "weight: 2   # matters most" in restored
    assert restored.splitlines()[:16] == before.splitlines()[:16]
    assert "already in the file" in cli("criterion", "customers-germany/1", "--restore", "2806").out
    for reference, said in (
        ("nothing/1", "no test 'nothing'"),
        ("customers-germany", "1 right filter"),
        ("customers-germany/left", "there is no criterion"),
    ):
        wrong = cli("criterion", reference)
        assert wrong.code == 2
        assert said in wrong.err
    assert "its versions are f10ce35e" in cli("criterion", "customers-germany/1", "--restore", "zz").err


def test_gates_against_the_baseline(cli: Any, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = ("run", suite, "--test", "good")
    refused = cli(*good, "--no-regressions")
    assert refused.code == 2
    assert "none of these tests has a baseline" in refused.err
    # The first time there is nothing to regress from, and the baseline is what comes out. A failure sets none.
    refused = cli("run", suite, "--test", "bad", "--set-baseline").out
    assert "it is only set after a success" in refused
    assert "agenteval baseline set last" in refused, "the command that sets it all the same"
    first = cli(*good, "--repeat", "2", "--no-regressions", "--set-baseline")
    assert first.code == 0
    assert "baseline set for 1 test" in first.out
    same = cli(*good, "--max-drop", "0.05", "--no-regressions")
    assert same.code == 0, same.out
    assert "against the baseline" in same.out
    assert "gates reached" in same.out
    assert "1 case is too few to show how sure this is" in same.out
    assert "this sample is too small to detect a drop of 5 %" in same.out
    # A failure that the baseline knows does not gate; a new one does.
    suite.write_text(suite.read_text("utf-8").replace("contains: W1042", "contains: W9999"), "utf-8")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    files = [tmp_path / f"r.{kind}" for kind in ("json", "xml", "md", "html")]
    worse = cli(
        *good, "--no-regressions", "--max-drop", "50%", "--set-baseline", "--baseline", "--json", files[0],
        "--junit", files[1], "--md", files[2], "--html", files[3],
    )  # fmt: skip
    assert worse.code == 1
    assert "✗ regressed: good: 2/2, now 0/1" in worse.out
    assert "gate not reached: --no-regressions: a test regressed" in worse.out
    assert "gate not reached: --max-drop 50 %: the pass rate fell from 100 % to 0 % (-100 points)" in worse.out
    assert "the baseline stays unchanged" in worse.out
    assert "changed by: criterion" in worse.out, "--baseline prints the whole comparison"
    assert "::error" in worse.err
    assert "regressed since the baseline (2/2, now 0/1)" in worse.err
    document = json.loads(files[0].read_text("utf-8"))
    assert document["baseline"]["regressed"] == ["good"]
    assert cli("show", "--json").json("results")["baseline"] == document["baseline"]
    properties = {one.get("name"): one.get("value") for one in ElementTree.parse(files[1]).iter("property")}
    assert properties["baseline.regression"] == "good: 2/2, now 0/1"
    page = files[2].read_text("utf-8")
    assert "| Metric | Baseline | Now | Change |" in page
    assert "| good | 2/2 | 0/1 | criterion |" in page
    assert "Regressed: good: 2/2, now 0/1" in page
    assert "<th>Baseline</th>" in files[3].read_text("utf-8")
    # Without gates the exit code is as ever, and what regressed is said all the same.
    assert "✗ regressed" in cli(*good).out


@pytest.mark.parametrize("option", ["--no-regressions", "--max-drop=0.1", "--set-baseline", "--baseline"])
def test_nothing_of_the_baseline_can_be_detached(cli: Any, suite: Path, option: str) -> None:
    refused = cli("run", suite, "--detach", option)
    assert refused.code == 2
    assert f"for {option.partition('=')[0]}" in refused.err
    assert "attach" in refused.err
