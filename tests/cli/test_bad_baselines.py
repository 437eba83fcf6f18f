"""Baselines that are damaged, pruned or of something else: a gate compares what there is, or says what is wrong."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.directories import history_file
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history.quarantines import Quarantine, put
from agenteval_tui.history.store import Store

ANSWER = '{messages: [{role: user, content: q}, {role: assistant, content: "%s"}]}'
TEST = """\
  - id: %s
    prompt: Is it?
    criteria:
      - {name: Says yes, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: "yes"}]}}
"""


def run(cli: Any, folder: Path, *options: str, answers: str = "yes", name: str = "Gates", file: str = "g") -> Any:
    suite = folder / f"{file}.suite.yaml"
    said = "\n".join(f"      {test}: {ANSWER % answers}" for test in "abc")
    agent = f"agents:\n  shop:\n    kind: replay\n    beyond: repeat\n    transcripts:\n{said}\n"
    suite.write_text(f"name: {name}\nagent: shop\n{agent}tests:\n" + "".join(TEST % test for test in "abc"), "utf-8")
    return cli("run", suite, *options)


@pytest.fixture
def before(cli: Any, tmp_path: Path) -> Path:
    """The folder of a suite that passed, three times each test, and is the baseline."""
    assert run(cli, tmp_path, "--repeat", "3", "--set-baseline").code == 0
    return tmp_path


def damage(*statements: str) -> None:
    with sqlite3.connect(history_file()) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


OF_B_AND_C = "test IN (SELECT id FROM tests WHERE test_id IN ('b', 'c'))"
LOST = {
    "the runs of two tests": (f"DELETE FROM runs WHERE {OF_B_AND_C}", "b, c"),
    "all runs": ("DELETE FROM runs", "a, b, c"),
    "the execution": ("DELETE FROM executions", "a, b, c"),
    "it names an execution that never was": (f"UPDATE baselines SET execution = 999 WHERE {OF_B_AND_C}", "b, c"),
    "a single run that is gone": (f"UPDATE baselines SET execution = NULL, run = 999 WHERE {OF_B_AND_C}", "b, c"),
}


@pytest.mark.sweep("gate")
@pytest.mark.parametrize("gate", ["--no-regressions", "--max-drop=0.5", "--no-missing"])
@pytest.mark.parametrize("way", LOST)
def test_a_baseline_whose_runs_are_lost_is_an_error_before_anything_runs(
    cli: Any, before: Path, way: str, gate: str
) -> None:
    statement, names = LOST[way]
    damage(statement)
    done = run(cli, before, gate)
    assert done.code == 2
    assert f"the runs of the baseline of {names} are not in the history" in done.err
    assert "baseline set EXECUTION" in done.err
    # A new baseline heals it.
    assert run(cli, before, "--set-baseline").code == 0
    assert run(cli, before, gate).code == 0
    assert run(cli, before, "--no-regressions", answers="no").code == 1


def test_a_baseline_without_transcripts_and_evidence_still_gates(cli: Any, before: Path) -> None:
    damage("DELETE FROM evidence", "DELETE FROM criterion_results", "UPDATE runs SET transcript = NULL")
    damage("DELETE FROM transcripts")
    assert run(cli, before, "--no-regressions").code == 0
    done = run(cli, before, "--no-regressions", answers="no")
    assert done.code == 1
    assert "3 tests regressed" in done.out


def test_a_baseline_is_never_pruned(cli: Any, before: Path) -> None:
    run(cli, before)
    assert cli("db", "prune", "--keep", "0", "--yes").code == 0
    done = run(cli, before, "--no-regressions", answers="no")
    assert done.code == 1
    assert "a: 3/3, now 0/1" in done.out


def test_a_baseline_that_is_half_imported_compares_its_ended_runs_alone(cli: Any, before: Path) -> None:
    damage("UPDATE runs SET status = 'queued', score = NULL WHERE repetition > 1")
    damage(f"UPDATE runs SET status = 'queued', score = NULL WHERE {OF_B_AND_C}")
    report = before / "r.json"
    done = run(cli, before, "--no-regressions", "--json", str(report), answers="no")
    assert done.code == 1
    against = json.loads(report.read_text("utf-8"))["baseline"]
    noticed = {(one["code"], one["test"], one["cause"]) for one in against["notices"]}
    assert ("no_verdict", "b", "not_in_baseline") in noticed
    assert ("no_verdict", "c", "not_in_baseline") in noticed
    assert "a: 1/1, now 0/1" in done.out, "one of its three runs had ended"


def test_a_baseline_without_a_single_verdict_misses_the_gate(cli: Any, before: Path) -> None:
    damage("UPDATE runs SET status = 'queued', score = NULL")
    done = run(cli, before, "--no-regressions")
    assert done.code == 1
    assert "nothing could be compared" in done.out
    assert "had no verdict in the baseline" in done.out


@pytest.mark.parametrize("how", ["another suite", "another history"])
def test_a_baseline_of_something_else_is_none(cli: Any, before: Path, how: str) -> None:
    other = {"name": "Other", "file": "other"} if how == "another suite" else {}
    options = [] if other else ["--db", str(before / "other.db")]
    done = run(cli, before, "--no-regressions", *options, **other)
    assert done.code == 2
    assert "none of these tests has a baseline" in done.err


def test_a_thousand_quarantines_excuse_their_own_tests_only(cli: Any, before: Path) -> None:
    key, until = str(before / "g.suite.yaml"), now_ms() + 86_400_000
    with Store.open(history_file()) as store:
        tests = ["a", *(f"gone {number}" for number in range(1000))]
        for done in [put(store, Quarantine(key, test, until)) for test in tests]:
            done.result()
    ran = run(cli, before, "--no-regressions", answers="no")
    assert ran.code == 1
    assert "2 tests regressed (b: 3/3, now 0/1, c: 3/3, now 0/1)" in ran.out
    assert [line for line in ran.out.splitlines() if "in quarantine, non-gating" in line] == [
        next(line for line in ran.out.splitlines() if line.startswith("~ in quarantine, non-gating: a "))
    ]
    assert "gone" not in ran.out
