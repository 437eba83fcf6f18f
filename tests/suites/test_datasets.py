"""Datasets: rows with their places, all forms, and everything that can be wrong in them."""

from __future__ import annotations

import csv
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.suites.dataset_check import check_dataset
from agenteval_tui.suites.datasets import DatasetRow, has_prompt, messages_of, prompt_of, read_rows, variables_of
from agenteval_tui.suites.model import Dataset


def rows(tmp_path: Path, text: str | bytes, name: str = "d.csv", limit: int | None = None) -> list[DatasetRow]:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_rows(Dataset(file=name, limit=limit), tmp_path))


def problems(tmp_path: Path, text: str | bytes, name: str = "d.csv", limit: int | None = None) -> list[Problem]:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return check_dataset(Dataset(file=name, limit=limit), tmp_path).problems


def said(found: list[Problem]) -> list[tuple[int, int, str]]:
    return [(one.line, one.column, one.message) for one in found]


# .csv


def test_csv_as_people_write_it(tmp_path: Path) -> None:
    text = (
        "\ufeff# a comment, with a comma\r\n\r\n input , expected,tools ,n\r\n"
        'hi,"a ""quoted"" one","{""a"": [1, 2]}",007\r\n'
        '"two\r\nlines",x,"[1, {""b"": null}]",[not json]\r\n'
        "\r\n# no comment here,,{broken,NaN\r\n"
    )
    first, second, third = rows(tmp_path, text)
    assert (first.number, first.line) == (1, 4)
    assert first.variables == {
        "input": "hi",
        "expected": 'a "quoted" one',
        "tools": {"a": [1, 2]},
        "n": "007",
        "expected_value": 'a "quoted" one',
    }
    assert (second.number, second.line) == (2, 5)
    assert second.variables["input"] == "two\r\nlines"
    assert second.variables["tools"] == [1, {"b": None}]
    assert second.variables["n"] == "[not json]"
    assert (third.number, third.line) == (3, 8)
    assert third.variables == {"input": "# no comment here", "expected": "", "tools": "{broken", "n": "NaN"}


def test_what_looks_like_json_and_is_none_stays_text(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, 'a,b,c,d\n[NaN],"{""x"": Infinity}",' + "[" * 3000 + "]" * 3000 + ",true\n")
    assert row.variables == {"a": "[NaN]", "b": '{"x": Infinity}', "c": "[" * 3000 + "]" * 3000, "d": "true"}


def test_how_deep_a_value_may_be_is_the_same_with_every_python(tmp_path: Path) -> None:
    deep, deeper = ("[" * depth + "]" * depth for depth in (199, 201))
    wide = "[" + "{}," * 300 + "{}]"
    (row,) = rows(tmp_path, f'a,b,c\n{deep},{deeper},"{wide}"\n')
    assert [type(value) for value in row.variables.values()] == [list, str, list]


def test_rows_of_the_wrong_length_are_errors_with_their_line_and_the_others_are_counted(tmp_path: Path) -> None:
    text = 'a,b\n1,2\n1\n"x\ny",2,3\n5,6\n'
    found = problems(tmp_path, text)
    assert [(one.line, one.code) for one in found] == [(3, "wrong-length"), (4, "wrong-length")]
    assert "1 cell, and the header 2" in found[0].message
    assert '"b" is the first column without a cell' in (found[0].fix or "")
    with pytest.raises(AgentevalError, match="this row has 1 cell") as caught:
        rows(tmp_path, text)
    assert caught.value.where == f"{tmp_path}/d.csv:3:1"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('"a",b, a\n', (1, 7), 'the column "a" appears twice: in column 1 and in column 3'),
        ('"a",,b\n', (1, 5), "column 2 has no name"),
        ("a,b\n1,2\n,\x00\n", (3, 2), "a NUL character"),
        (b"a,b\n1,2\n\xe4,\xff\n", (3, 1), "the byte 0xe4 is not UTF-8"),
        ('a,b\n1,2\n3,"4\n5,6\n', (3, 1), "a quote is opened in this row and never closed"),
        ('a,b\n1,"2"3\n', (2, 6), "text follows a closing quote"),
        ("", (1, 1), "this dataset is empty"),
        ("# only a comment\n", (1, 1), "this dataset is empty"),
    ],
)
def test_csv_that_is_wrong(tmp_path: Path, text: str | bytes, place: tuple[int, int], message: str) -> None:
    found = problems(tmp_path, text)
    assert len(found) == 1, found
    assert (found[0].line, found[0].column) == place
    assert message in found[0].message
    with pytest.raises(AgentevalError):
        rows(tmp_path, text)


def test_all_problems_come_at_once_and_too_many_are_counted(tmp_path: Path) -> None:
    text = "a,b\n" + "1\n" * 150 + "1,2\n"
    found = problems(tmp_path, text)
    assert len(found) == 101
    assert found[-1].message == "not shown: 50 more problems in this dataset"
    assert check_dataset(Dataset(file="d.csv"), tmp_path).rows == 1


def test_one_column_and_empty_cells(tmp_path: Path) -> None:
    assert [row.variables for row in rows(tmp_path, 'input\nx\n""\n\ny')] == [
        {"input": "x"}, {"input": ""}, {"input": "y"},
    ]  # fmt: skip


def test_after_the_limit_nothing_is_read(tmp_path: Path) -> None:
    text = "a\n1\n2\n\x00\n"
    assert [row.variables["a"] for row in rows(tmp_path, text, limit=2)] == ["1", "2"]
    assert problems(tmp_path, text, limit=2) == []
    assert len(problems(tmp_path, text, limit=3)) == 1
    assert problems(tmp_path, '{"a": 1}\n{\n', "d.jsonl", limit=1) == []
    assert [row.number for row in rows(tmp_path, "- {a: 1}\n- 2\n", "d.yaml", limit=1)] == [1]


def test_old_line_ends_and_big_fields(tmp_path: Path) -> None:
    assert [row.line for row in rows(tmp_path, "a,b\r1,2\r3,4\r")] == [2, 3]
    big = "x" * 1_000_000
    assert rows(tmp_path, f"a,b\n{big},2\n")[0].variables["a"] == big
    assert csv.field_size_limit() >= 1_000_000


# .jsonl


def test_the_courses_rows_work_as_they_are(tmp_path: Path) -> None:
    text = (
        '{"inputs": {"question": "Was ist die Hauptstadt von Frankreich?"}, "outputs": {"answer": "Paris"}}\n\n'
        '{"inputs": {"question": "15 * 7"}, "outputs": {"answer": "105", "tool_used": "calculator"}, "id": "e"}\n'
    )
    one, two = rows(tmp_path, text, "d.jsonl")
    assert prompt_of(one.variables) == "Was ist die Hauptstadt von Frankreich?"
    assert one.variables["expected_value"] == "Paris"
    assert (two.number, two.line) == (2, 3)
    assert two.variables == {
        "question": "15 * 7", "outputs": {"answer": "105", "tool_used": "calculator"}, "id": "e",
        "expected_value": "105",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "prompt"),
    [
        ({"inputs": {"text": "charged twice"}, "outputs": {"label": "billing"}, "id": "1"}, "charged twice"),
        ({"inputs": {"document": "A long one"}, "metadata": {"split": "train"}}, "A long one"),
        ({"inputs": {"a": {"b": 1}}, "outputs": {"c": 2}}, '{"b": 1}'),
        ({"inputs": {"city": "Rome", "days": 3}, "outputs": {"plan": "x"}}, "city: Rome\ndays: 3"),
        ({"inputs": {"text": "x", "question": "y"}, "outputs": {}}, "y"),
        ({"inputs": {}, "outputs": {"label": "billing"}}, None),
        ({"text": "a column", "label": "b"}, None),
        ({"text": "a", "other": "b", "metadata": {"c": 1}}, None),
    ],
)
def test_the_inputs_of_a_row_of_langsmith_are_its_prompt(data: dict[str, Any], prompt: str | None) -> None:
    variables = variables_of(data)
    assert prompt_of(variables) == prompt
    assert has_prompt(variables) == (prompt is not None)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"inputs": {"q": 1}, "outputs": {"output": "x"}}, "x"),
        ({"inputs": {"q": 1}, "outputs": {"verdict": False}}, False),
        ({"inputs": {"q": 1}, "outputs": {"a": 1, "b": 2}}, None),
        ({"inputs": {"q": 1}, "outputs": None}, None),
        ({"inputs": {"expected_value": "own"}, "outputs": {"answer": "x"}}, "own"),
        ({"input": [{"role": "user", "content": "hi"}], "ideal": ["x"]}, "x"),
        ({"input": [{"role": "user", "content": "hi"}], "ideal": ["x", "y"]}, ["x", "y"]),
        ({"input": "x", "ideal": "no list of messages"}, None),
        ({"item": {"input": "x", "answer": 5}}, 5),
        ({"input": "x", "expected": "", "answer": "z"}, "z"),
        ({"input": "x", "Answer": "z"}, "z"),
        ({"input": "x", "expected": 0}, 0),
    ],
)
def test_expected_values(data: dict[str, Any], expected: Any) -> None:
    assert variables_of(data).get("expected_value") == expected


@pytest.mark.parametrize(
    ("variables", "prompt"),
    [
        ({"question": "q", "prompt": "p", "input": "i"}, "i"),
        ({"question": "q", "prompt": "p", "input": " "}, "p"),
        ({"Question": "q"}, "q"),
        ({"input": 15}, "15"),
        ({"input": {"a": "ä"}}, '{"a": "ä"}'),
        ({"input": [{"role": "user", "content": "x"}]}, None),
        ({"text": "x"}, None),
        ({}, None),
    ],
)
def test_prompts(variables: dict[str, Any], prompt: str | None) -> None:
    assert prompt_of(variables) == prompt


def test_conversations() -> None:
    talk = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert messages_of({"input": talk}) == messages_of({"messages": talk}) == talk
    assert messages_of({"input": "x", "messages": talk}) is None
    assert messages_of({"input": [{"role": "robot", "content": ""}]}) is None


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('{"a": 1}\n{"a": }\n', (2, 7), "this line is not JSON: expecting value"),
        ('{"a": NaN}', (1, 7), "NaN is not JSON"),
        ('{"a": ' + "9" * 5000 + "}", (1, 1), "a huge number"),
        ("[\n", (1, 1), "one JSON value over several lines"),
        ('{"a": 1}\n  [1]\n', (2, 3), "this line is a list"),
        ('{"a": "\\ud800"}\n', (1, 1), "half a character"),
        ("[" * 100_000 + "\n", (1, 1), "nested too deep"),
        ("\n\n", (1, 1), "empty"),
        (b'{"a": "\xe4"}\n', (1, 8), "0xe4 is not UTF-8"),
    ],
)
def test_jsonl_that_is_wrong(tmp_path: Path, text: str | bytes, place: tuple[int, int], message: str) -> None:
    (found,) = problems(tmp_path, text, "d.jsonl")
    assert (found.line, found.column) == place
    assert message in found.message


def test_emoji_and_line_separators_are_no_problem(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, '{"input": "\\ud83d\\ude00 \u2028 x"}', "d.ndjson")
    assert row.variables["input"] == "😀 \u2028 x"


# .yaml


def test_yaml(tmp_path: Path) -> None:
    text = "# rows\n- {input: no, expected: 5}\n- inputs: {question: q}\n  outputs: {answer: a}\n"
    one, two = rows(tmp_path, text, "d.yaml")
    assert (one.number, one.line, one.variables) == (1, 2, {"input": "no", "expected": 5, "expected_value": 5})
    assert (two.line, two.variables["expected_value"]) == (3, "a")
    assert rows(tmp_path, "rows:\n  - {input: x}\n", "d.yml")[0].line == 2


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("- {a: 1}\n- x\n- 5\n", [(2, 3), (3, 3)], "a row of a dataset is an object"),
        ("a: 1\n", [(1, 1)], "must be a list of objects"),
        ("- {a: 1\n", [(1, 3)], "not closed"),
        ("", [(1, 1)], "empty"),
        ("[]", [(1, 1)], "empty"),
    ],
)
def test_yaml_that_is_wrong(tmp_path: Path, text: str, place: list[tuple[int, int]], message: str) -> None:
    found = problems(tmp_path, text, "d.yaml")
    assert [(one.line, one.column) for one in found] == place
    assert message in found[0].message


def test_yaml_bombs_are_refused(tmp_path: Path) -> None:
    lines = ["- a0: &a0 {x: 1}"] + [
        f"- a{n}: &a{n} {{{', '.join(f'k{i}: *a{n - 1}' for i in range(10))}}}" for n in range(1, 10)
    ]
    (found,) = problems(tmp_path, "\n".join(lines), "d.yaml")
    assert found.code == "too-large"


# Files


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    (tmp_path / "outside.csv").write_text("a\n1\n")
    (suite / "link.csv").symlink_to(tmp_path / "outside.csv")
    (suite / "loop.csv").symlink_to(suite / "loop.csv")
    (suite / "folder.csv").mkdir()
    (suite / "rows.txt").write_text("[]")
    os.mkfifo(suite / "pipe.csv")
    for file, message in [
        ("absent.csv", "there is no such dataset"),
        ("../outside.csv", "outside the suite's folder"),
        (str(tmp_path / "outside.csv"), "outside the suite's folder"),
        ("link.csv", "outside the suite's folder"),
        ("loop.csv", "can't be read"),
        ("a\0b.csv", "can't be read"),
        ("folder.csv", "this is a folder"),
        ("pipe.csv", "not a regular file"),
        ("rows.txt", "a .csv, .tsv, .json, .jsonl, .yaml, .xlsx, .parquet or .arrow file"),
    ]:
        with pytest.raises(AgentevalError, match=message):
            read_rows(Dataset(file=file), suite)  # at once, not with the first row
        assert message in check_dataset(Dataset(file=file), suite).problems[0].message
    for file in ("link.csv", "../outside.csv", str(tmp_path / "outside.csv")):
        assert [row.variables for row in read_rows(Dataset(file=file), suite, trusted=True)] == [{"a": "1"}]


def test_a_big_file_needs_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    line = json.dumps({"input": "x" * 2_000, "expected": "y"}) + "\n"
    path.write_text(line * 5_000)
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_rows(Dataset(file="big.jsonl"), tmp_path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 5_000
    assert peak < 2_000_000 < path.stat().st_size


def test_what_was_checked_of_a_big_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a\n" + "1\n" * 50)
    check = check_dataset(Dataset(file="d.csv"), tmp_path, max_rows=20)
    assert (check.rows, check.complete, check.ok) == (20, False, True)
    assert [(one.severity, one.message) for one in check.problems] == [
        ("info", "only the first 20 rows of this dataset were checked")
    ]
    assert not check_dataset(Dataset(file="d.csv"), tmp_path, max_characters=10).complete
    assert check_dataset(Dataset(file="d.csv", limit=20), tmp_path, max_rows=21).complete


def test_columns_that_some_rows_lack(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"input": "a", "x": 1}\n{"input": "b"}\n{"input": "c", "y": 1}\n{"z": 1}\n')
    check = check_dataset(Dataset(file="d.jsonl"), tmp_path)
    assert {name: (one.rows, one.missing_line) for name, one in check.columns.items()} == {
        "input": (3, 4), "x": (1, 2), "y": (1, 1), "z": (1, 1),
    }  # fmt: skip
    assert said(check.missing_problems({"x", "input", "unheard"})) == [
        (4, 1, 'this row has no "input", which the prompt asks for'),
        (2, 1, 'this row has no "x", which the prompt asks for (and 2 more rows)'),
    ]
    assert said(check.prompt_problems()) == [(4, 1, "this row has no prompt")]
