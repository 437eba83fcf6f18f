"""Limits, plans, samples, A/B, early stopping and costs, from the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.analysis.statistics import wilson
from agenteval_tui.cli.exit_codes import exit_code, read_seconds
from agenteval_tui.cli.run_options import runs_apart
from agenteval_tui.core.errors import AgentevalError


@pytest.mark.parametrize(
    ("counts", "gate", "status", "expected"),
    [
        ({"passed": 3}, None, "stopped", 1),
        ({"passed": 3, "error": 1}, None, "stopped", 1),
        ({"passed": 3}, 0.5, "stopped", 1),
        ({"passed": 3}, None, "cancelled", 130),
        ({"passed": 3, "skipped": 7}, None, "finished", 0),
        ({"passed": 3, "skipped": 7}, 1.0, "finished", 0),
    ],
)
def test_exit_codes_of_executions_that_did_not_do_all(
    counts: dict[str, int], gate: float | None, status: str, expected: int
) -> None:
    assert exit_code(counts, 1.0, gate, status=status) == expected


def test_times_as_people_write_them() -> None:
    given = ("90", "90s", " 15m ", "1.5H", "0.5")
    assert [read_seconds(one, "") for one in given] == [90.0, 90.0, 900.0, 5400.0, 0.5]
    for wrong in ("", "0", "-1", "m", "1d", "inf", "1m30"):
        with pytest.raises(AgentevalError):
            read_seconds(wrong, "--max-time")


def test_a_limit_stops_with_1_and_resume_goes_on(cli: Any, suite: Path) -> None:
    run = ("run", suite, "--test", "good", "--repeat", "6", "--concurrency", "1")
    stopped = cli(*run, "--max-tokens", "50")
    assert stopped.code == 1
    assert "stopped: the limit of 50 tokens was reached" in stopped.out
    assert "not run" in stopped.out
    assert "agenteval resume" in stopped.out
    document = cli("show", "--json").json("results")
    assert document["status"] == "stopped"
    passed = document["summary"]["passed"]
    assert 0 < passed < 6
    refused = cli("resume")  # its limit is still reached
    assert refused.code == 2
    assert "--max-tokens" in refused.err
    done = cli("resume", "--max-tokens", "100000")
    assert done.code == 0, done.err
    assert f"{6 - passed} of 6 runs are missing" in done.out
    assert "6 passed of 6 runs" in done.out


def test_a_plan_says_what_is_known_and_runs_nothing(cli: Any, suite: Path) -> None:
    unknown = cli("run", suite, "--repeat", "3", "--plan")
    assert unknown.code == 0
    assert "6 runs of 2 tests" in unknown.out
    assert "nothing like it has run before" in unknown.out
    assert cli("history").out.startswith("nothing has run yet")
    cli("run", suite, "--repeat", "3")
    plan = cli("run", suite, "--repeat", "3", "--plan", "--json", "-", "--max-tokens", "10").json("plan")
    assert (plan["runs"], plan["tests"], plan["parts"][0]["agent"]) == (6, 2, "shop")
    assert plan["estimate"]["seconds"]["basis"] == 6
    assert plan["over"] == ["tokens"]
    words = cli("run", suite, "--repeat", "3", "--plan", "--max-tokens", "10").out
    assert "from 6 earlier runs" in words
    assert "likely to stop" in words


def test_two_agents_are_compared_and_one_is_only_recommended_for_a_reason(cli: Any, suite: Path) -> None:
    text = suite.read_text("utf-8").replace("  shop: {", "  other: {kind: demo, version: v2}\n  shop: {")
    suite.write_text(text, "utf-8")
    done = cli("run", suite, "--ab", "shop", "other", "--repeat", "2")
    assert done.code == 1  # a test fails under both
    assert re.search(r"^A shop: 50 %, 2 of 4 runs", done.out, re.M)
    assert re.search(r"^B other: 50 %, 2 of 4 runs", done.out, re.M)
    assert "No difference is shown" in done.out
    assert "recommended" not in done.out
    found = cli("stats", "--ab", "--json").json("ab")
    assert (found["a"]["name"], found["b"]["name"], found["recommended"]) == ("shop", "other", "")
    assert "No difference is shown" in cli("stats", "--ab").out
    cli("run", suite, "--test", "good")
    assert cli("stats", "--ab").code == 2
    cli("run", suite, "--ab", "shop", "other", "--test", "good")
    compared = cli("compare", "--json").json("compare")
    assert (compared["a"]["name"], compared["b"]["name"]) == ("A: shop", "B: other")
    cli("run", suite, "--test", "good")
    # A baseline has one agent: two of them together are not measured against it.
    assert cli("baseline", "set", "last").code == 0
    assert "against the baseline" in cli("run", suite, "--test", "good").out
    assert "against the baseline" not in cli("run", suite, "--test", "good", "--ab", "shop", "other").out


def test_a_sample_is_drawn_by_the_seed(cli: Any, suite: Path) -> None:
    def drawn(seed: int) -> list[str]:
        document = cli("run", suite, "--sample", "1", "--seed", seed, "--json", "-").json("results")
        return [run["test"] for run in document["runs"]]

    first = drawn(0)
    assert len(first) == 1
    assert drawn(0) == first
    assert any(drawn(seed) != first for seed in range(1, 20))


def test_early_stopping_is_said_and_can_be_left_out(cli: Any, suite: Path) -> None:
    suite.write_text(
        suite.read_text("utf-8").replace("tags: [smoke]", "tags: [smoke]\n    stop: {threshold: 0.8}"), "utf-8"
    )
    run = ("run", suite, "--test", "good", "--repeat", "30")
    stopped = cli(*run)
    assert stopped.code == 0
    saved = re.search(r"early stop: (\d+) runs saved", stopped.out)
    assert saved is not None
    (test,) = cli("stats", "--json").json("stats")["tests"]
    assert (test["stopped_early"], test["interval"][1]) == (True, 1.0)
    assert 0.8 < test["interval"][0] < 0.85 < wilson(test["passed"], test["n"])[0], "wider than Wilson's"
    assert "1 test stopped early: the interval is that of the confidence sequence" in cli("stats").out
    assert f"{saved.group(1)} not needed of 30 runs" in stopped.out
    assert "30 passed of 30 runs" in cli(*run, "--no-early-stop").out


def test_costs_by_test_and_agent(cli: Any, suite: Path) -> None:
    cli("run", suite, "--repeat", "2")
    costs = cli("stats", "--costs", "--json").json("costs")
    assert [(one["test"], one["agents"]["count"]) for one in costs["by_test"]] == [("good", 2), ("bad", 2)]
    (agent,) = costs["by_agent"]
    assert agent["agent"] == "shop"
    assert agent["tokens"] == costs["tokens"] == sum(one["agents"]["tokens"] for one in costs["by_test"]) > 0
    words = cli("stats", "--last", "--costs").out
    assert "agent shop" in words
    assert f"{costs['tokens']:,}" in words
    shown = cli("show").out
    assert f"shop: {agent['input_tokens']:,} + {agent['output_tokens']:,} tokens" in shown


class _Out:
    def __init__(self, is_terminal: bool) -> None:
        self.is_terminal = is_terminal


@pytest.mark.parametrize(
    ("terminal", "ci", "detach", "apart"),
    [(True, "", False, True), (True, "false", False, True), (True, "1", False, False), (False, "", False, False),
     (False, "1", True, True)],
)  # fmt: skip
def test_who_gets_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, ci: str, detach: bool, apart: bool
) -> None:
    from agenteval_tui.cli.invocation import Invocation

    monkeypatch.setenv("CI", ci)
    invocation = Invocation(lambda start: 0)
    invocation.out = _Out(terminal)  # type: ignore[assignment]
    assert runs_apart(invocation, detach=detach) is apart
