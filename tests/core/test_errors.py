"""How a problem is said."""

from __future__ import annotations

from msgspec import to_builtins

from agenteval_tui.core.errors import AgentevalError, Fix, Problem, TextEdit, line_and_column


def test_an_error_reads_as_one_sentence_with_place_and_remedy() -> None:
    error = AgentevalError("the port is taken", where="127.0.0.1:80", fix="choose another with --port")
    assert str(error) == "127.0.0.1:80: the port is taken (choose another with --port)"


def test_a_fix_applies_all_its_edits() -> None:
    assert Fix("wrap", (TextEdit(1, 1, "["), TextEdit(4, 4, "]"))).apply("x'a'y") == "x['a']y"


def test_lines_and_columns_count_from_one() -> None:
    text = "ab\nüö\n"
    assert line_and_column(text, 0) == (1, 1)
    assert line_and_column(text, 4) == (2, 2)
    assert line_and_column(text, 99) == (3, 1)


def test_a_problem_says_file_line_and_column() -> None:
    problem = Problem("a.suite.yaml", 3, 7, 3, 9, "error", "unknown-key", "no such key", "did you mean `name`?")
    assert str(problem) == "a.suite.yaml:3:7: error: no such key (did you mean `name`?)"
    assert to_builtins(problem)["end_column"] == 9
