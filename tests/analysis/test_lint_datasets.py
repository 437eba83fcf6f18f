"""Datasets in `validate`: the file, its rows, and what the test asks of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.analysis.lint import check_suites
from agenteval_tui.core.errors import Problem
from agenteval_tui.suites.trust import Trust

SUITE = """\
name: S
agent: shop
agents:
  shop: {kind: demo}
tests:
  - id: one
    PROMPT
    dataset: {file: rows.csv}
    criteria:
      - name: c
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: "CONTAINS"}]}
"""


def problems(tmp_path: Path, rows: str | None, prompt: str = "description: d", contains: str = "x") -> list[Problem]:
    (tmp_path / "s.suite.yaml").write_text(SUITE.replace("PROMPT", prompt).replace("CONTAINS", contains))
    if rows is not None:
        (tmp_path / "rows.csv").write_text(rows)
    return check_suites([tmp_path / "s.suite.yaml"])[1]


def said(found: list[Problem]) -> list[tuple[str, int, int, str]]:
    return [(Path(one.file).name, one.line, one.column, one.message) for one in found]


def test_a_right_dataset(tmp_path: Path) -> None:
    assert problems(tmp_path, "question,country,answer\nq,DE,a\n", contains="{{expected_value}} {{country}}") == []
    assert problems(tmp_path, "a,b\n1,2\n", 'prompt: "{{a}} and {{b}}"') == []


def test_all_wrong_rows_at_their_places_in_the_dataset(tmp_path: Path) -> None:
    found = problems(tmp_path, "input,b\n1\n1,2\n1,2,3\n")
    assert [(Path(one.file).name, one.line, one.code) for one in found] == [
        ("rows.csv", 2, "wrong-length"), ("rows.csv", 4, "wrong-length"),
    ]  # fmt: skip


def test_a_dataset_that_is_not_there_is_said_where_it_is_named(tmp_path: Path) -> None:
    (found,) = said(problems(tmp_path, None))
    assert found[:3] == ("s.suite.yaml", 8, 21)
    assert "there is no such dataset" in found[3]


def test_no_column_serves_as_the_prompt(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "# x\ntext,b\n1,2\n")
    assert found.severity == "error"
    assert said([found]) == [
        ("rows.csv", 1, 1, "the test has no prompt, and no column can be its prompt; the columns are text, b")
    ]
    assert said(problems(tmp_path, "input,b\nx,2\n,3\n")) == [("rows.csv", 3, 1, "this row has no prompt")]


def test_variables_are_looked_for_among_the_columns(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "country,b\n1,2\n", 'prompt: "{{contry}}"')
    assert said([found]) == [("s.suite.yaml", 7, 16, 'the variable "contry" is not known')]
    assert found.fix == "did you mean `country`?"
    (found,) = problems(tmp_path, "input,b\n1,2\n", contains="{{expected_value}}")
    assert (Path(found.file).name, found.line) == ("s.suite.yaml", 12)
    assert "expected_value" in found.message


def test_rows_that_lack_what_is_asked_for(tmp_path: Path) -> None:
    found = problems(tmp_path, "input,expected\nq,a\nr,\n", contains="{{expected_value}}")
    assert said(found) == [("rows.csv", 3, 1, 'this row has no "expected_value", which criterion "c" asks for')]


def test_several_tests_over_one_dataset_say_its_problems_once(tmp_path: Path) -> None:
    text = SUITE.replace("PROMPT", "description: d") + SUITE[SUITE.index("  - id: one") :].replace(
        "one", "two"
    ).replace("PROMPT", "prompt: hi")
    (tmp_path / "s.suite.yaml").write_text(text)
    (tmp_path / "rows.csv").write_text("input,b\n1\n")
    assert len(check_suites([tmp_path / "s.suite.yaml"])[1]) == 1


def test_a_dataset_elsewhere_needs_trust(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.csv").write_text("input\nx\n")
    (suite / "data").symlink_to(tmp_path / "data")
    path = suite / "s.suite.yaml"
    path.write_text(SUITE.replace("PROMPT", "description: d").replace("rows.csv", "data/rows.csv"))
    (found,) = said(check_suites([path])[1])
    assert "outside the suite's folder" in found[3]
    Trust.load().trust(suite)
    assert check_suites([path])[1] == []


def test_files_are_called_as_the_suite_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problems(tmp_path, "input,b\n1\n")
    monkeypatch.chdir(tmp_path)
    assert [one.file for one in check_suites(["s.suite.yaml"])[1]] == ["rows.csv"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "l.suite.yaml").symlink_to(tmp_path / "s.suite.yaml")
    assert [one.line for one in check_suites(["elsewhere/l.suite.yaml"])[1]] == [2]
