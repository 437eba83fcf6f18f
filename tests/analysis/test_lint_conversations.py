"""Templates and calls in the messages that a test begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.analysis.lint import check_suites
from agenteval_tui.core.errors import Problem

SUITE = """\
name: S
agent: shop
agents:
  shop: {kind: demo}
tests:
  - id: one
    variables: {city: Rome}
    messages:
      - {role: user, content: "In {{city}}?"}
      - role: assistant
        tool_calls:
          - {id: c1, type: function, function: {name: weather, arguments: '{"city": "{{city}}"}'}}
          - {id: c2, function: {name: time, arguments: {zones: ["{{city}}", 3]}}}
      - {role: tool, tool_call_id: c1, content: "sun in {{city}}"}
      - {role: tool, tool_call_id: c2, content: noon}
    turns: ["and {{city}}?"]
    criteria:
      - {name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: x}]}}
"""


def problems_of(tmp_path: Path, text: str) -> list[Problem]:
    path = tmp_path / "s.suite.yaml"
    path.write_text(text, "utf-8")
    return check_suites([path])[1]


def test_nothing_wrong(tmp_path: Path) -> None:
    assert problems_of(tmp_path, SUITE) == []


@pytest.mark.parametrize(
    ("old", "line"),
    [("In {{city", 9), ('"city": "{{city', 12), ('zones: ["{{city', 13), ("sun in {{city", 14), ("and {{city", 16)],
)
def test_an_unknown_variable_anywhere_is_found_at_its_place(tmp_path: Path, old: str, line: int) -> None:
    text = SUITE.replace(old, old.replace("{{city", "{{town"))
    (problem,) = problems_of(tmp_path, text)
    assert (problem.code, problem.line, problem.severity) == ("unknown-variable", line, "error")
    assert text.splitlines()[line - 1][problem.column - 1 :].startswith("town")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("      - {role: tool, tool_call_id: c2, content: noon}\n", "", "the call of time (c2) in"),
        ("tool_call_id: c2", "tool_call_id: c1", "the call of time (c2)"),
        ("name: time, ", "", "message 2 has a tool call without a name"),
    ],
)  # fmt: skip
def test_calls_need_results_and_names(tmp_path: Path, old: str, new: str, said: str) -> None:
    (problem,) = problems_of(tmp_path, SUITE.replace(old, new))
    assert (problem.code, problem.line, problem.column) == ("conversation", 8, 5)
    assert said in problem.message
    assert problem.fix


def test_variables_of_rows_count_in_arguments_too(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("city\nRome\n")
    text = SUITE.replace("variables: {city: Rome}", "dataset: {file: rows.csv}")
    assert problems_of(tmp_path, text) == []
    (tmp_path / "rows.csv").write_text("town\nRome\n")
    found = problems_of(tmp_path, text)
    assert {problem.code for problem in found if problem.file.endswith("suite.yaml")} == {"unknown-variable"}


def test_early_stopping_with_an_error_rate_that_decides_nothing(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, SUITE.replace("    turns:", "    stop: {alpha: 0.5}\n    turns:"))
    assert (problem.line, problem.severity) == (16, "error")
    assert "0.5" in problem.message
