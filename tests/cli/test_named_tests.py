"""`FILE::TEST` wherever a suite is taken."""

from __future__ import annotations

from pathlib import Path

import pytest


def ran(cli) -> list[tuple[str, str]]:
    runs = cli("show", "last", "--json").json("results")["runs"]
    return [(run["suite"], run["test"]) for run in runs]


@pytest.fixture
def other(suite: Path) -> Path:
    path = suite.with_name("other.suite.yaml")
    path.write_text(suite.read_text("utf-8").replace("name: ", "name: Other ", 1), "utf-8")
    return path


def test_only_that_test_runs(cli, suite: Path) -> None:
    assert cli("run", f"{suite}::GOOD").code == 0
    assert [test for _, test in ran(cli)] == ["good"]


def test_tests_of_one_file_and_all_of_another(cli, suite: Path, other: Path) -> None:
    assert cli("run", f"{other}::good", suite).code == 1
    assert sorted(ran(cli)) == sorted([(ran_in(other), "good"), (ran_in(suite), "good"), (ran_in(suite), "bad")])


def test_a_file_that_is_named_whole_too_runs_whole(cli, suite: Path) -> None:
    assert cli("run", f"{suite}::good", suite.parent).code == 1
    assert [test for _, test in ran(cli)] == ["good", "bad"]


def ran_in(path: Path) -> str:
    return next(line.removeprefix("name: ") for line in path.read_text("utf-8").splitlines() if line.startswith("name"))


@pytest.mark.parametrize("verb", ["run", "validate"])
def test_a_test_that_the_file_does_not_have_is_said_with_the_nearest(cli, suite: Path, verb: str) -> None:
    result = cli(verb, f"{suite}::goodd")
    assert result.code == 2
    assert f"{suite}: there is no test 'goodd' (did you mean {suite}::good?)" in result.err
    assert "its tests: good, bad" in cli(verb, f"{suite}::xyz").err


def test_what_is_not_a_file_or_names_tests_twice(cli, suite: Path) -> None:
    assert "is a folder, and a test is in a file" in cli("run", f"{suite.parent}::good").err
    assert "both name tests" in cli("run", f"{suite}::good", "--test", "bad").err
    assert "there is no such file" in cli("run", f"{suite.parent}/none.suite.yaml::good").err
    assert "both name tests" in cli("flaky", f"{suite}::good", "--test", "bad").err


def test_only_the_problems_of_that_test_matter(cli, suite: Path) -> None:
    text = suite.read_text("utf-8")
    suite.write_text(text.replace("  - id: bad", "  - id: bad\n    wrong_key: 1"), "utf-8")
    assert cli("validate", f"{suite}::good").code == 0
    assert cli("validate", f"{suite}::bad").code == 2
    assert cli("run", f"{suite}::good").code == 0
    assert cli("run", f"{suite}::bad").code == 2
    assert cli("run", "--test", f"{suite}::bad", suite).code == 2


@pytest.mark.parametrize("verb", ["flaky", "trends", "causes"])
def test_what_is_said_of_stored_runs_is_about_that_test(cli, suite: Path, verb: str) -> None:
    cli("run", suite, "--repeat", "2")
    whole, one = cli(verb, suite), cli(verb, f"{suite}::bad")
    assert whole.code == one.code == 0
    assert cli(verb, suite, "--test", "bad").out == one.out
