"""A row of a dataset is what it is, wherever it stands in its file."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.dataset_check import check_dataset
from agenteval_tui.suites.datasets import read_rows
from agenteval_tui.suites.model import Dataset
from agenteval_tui.suites.row_keys import MissingId, RepeatedId, RowKeys, row_label


def keys_of(rows: list[dict[str, Any]], column: str | None = None) -> list[Any]:
    keys = RowKeys(column)
    return [keys.of(row, line) for line, row in enumerate(rows, 2)]


ROWS = [{"input": f"question {n}", "expected": str(n)} for n in range(8)]


@pytest.mark.parametrize(
    "changed",
    [
        ROWS[3:] + ROWS[:3],
        ROWS[::-1],
        [{"input": "new", "expected": "?"}, *ROWS],
        [*ROWS[:4], {"input": "new", "expected": "?"}, *ROWS[4:]],
        [{"expected": row["expected"], "input": row["input"]} for row in ROWS],
        random.Random(1).sample(ROWS, len(ROWS)),
    ],
)
def test_a_row_keeps_its_key_wherever_it_stands(changed: list[dict[str, Any]]) -> None:
    was, now = keys_of(ROWS), dict(zip([row["input"] for row in changed], keys_of(changed), strict=True))
    assert len(set(was)) == len(ROWS)
    assert [now[row["input"]] for row in ROWS] == was


def test_a_row_that_is_edited_is_another_one_unless_it_has_an_id() -> None:
    edited = [{**ROWS[0], "expected": "0.0"}, *ROWS[1:]]
    assert [a == b for a, b in zip(keys_of(ROWS), keys_of(edited), strict=True)] == [False] + [True] * 7
    named = [{"id": n, **row} for n, row in enumerate(ROWS)]
    assert keys_of([{**named[0], "expected": "x"}, *named[1:]]) == keys_of(named)


def test_equal_rows_are_numbered_among_themselves() -> None:
    one, two = ROWS[:2]
    first = keys_of([one, two, one, one])
    assert len(set(first)) == 4
    assert keys_of([two, ROWS[2], one, ROWS[3], one, one]) == [
        first[1], *keys_of([ROWS[2]]), first[0], *keys_of([ROWS[3]]), first[2], first[3]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "column", "key"),
    [
        ({"id": "EU-1", "a": 1}, None, "id:EU-1"),
        ({"id": 7, "a": 1}, None, "id:7"),
        ({"id": " 7 ", "a": 1}, None, "id:7"),
        ({"id": "x", "code": "C"}, "code", "id:C"),
        ({"id": True}, None, "id:true"),
        ({"id": {"b": 1, "a": 2}}, None, 'id:{"a":2,"b":1}'),
    ],
)
def test_an_id_column_says_what_a_row_is(row: dict[str, Any], column: str | None, key: str) -> None:
    assert RowKeys(column).of(row, 2) == key


@pytest.mark.parametrize("value", ["", "  ", None])
def test_a_row_without_an_id(value: str | None) -> None:
    assert str(RowKeys().of({"id": value, "a": 1}, 2)).startswith("content:")
    assert RowKeys("id").of({"id": value, "a": 1}, 2) == MissingId("id")
    keys = RowKeys()
    assert keys.of({"id": "a"}, 2) == "id:a"
    assert keys.of({"id": "a ", "b": 1}, 2) == RepeatedId("a", 2)  # two rows may begin on one line


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 2)), max_size=8), st.randoms())
def test_the_keys_of_any_order_are_the_same(rows: list[tuple[str, int]], rng: random.Random) -> None:
    data = [{"a": a, "b": b} for a, b in rows]
    mixed = data[:]
    rng.shuffle(mixed)
    assert sorted(keys_of(data)) == sorted(keys_of(mixed))
    assert len(set(keys_of(data))) == len(data)


@pytest.mark.parametrize(
    ("file", "text", "row_id", "code", "line"),
    [
        ("d.csv", "id,input\na,x\nb,y\na,z\n", None, "duplicate-id", 4),
        ("d.csv", "code,input\na,x\na,z\n", "code", "duplicate-id", 3),
        ("d.csv", "code,input\na,x\n,z\n", "code", "missing-id", 3),
        ("d.csv", "input\nx\n", "code", "missing-id", 2),
        ("d.jsonl", '{"id": 1, "input": "x"}\n{"id": 1, "input": "y"}\n', None, "duplicate-id", 2),
        ("d.jsonl", '{"id": 1, "input": "x"}\n{"id": "1", "input": "y"}\n', None, "duplicate-id", 2),
        ("d.yaml", "[{id: 1, input: x}, {id: 1, input: y}]\n", None, "duplicate-id", 1),
    ],
)
def test_ids_that_are_wrong_are_errors(
    tmp_path: Path, file: str, text: str, row_id: str | None, code: str, line: int
) -> None:
    (tmp_path / file).write_text(text, "utf-8")
    dataset = Dataset(file=file, row_id=row_id)
    found = check_dataset(dataset, tmp_path)
    assert [(one.code, one.line, one.severity) for one in found.problems] == [(code, line, "error")]
    with pytest.raises(AgentevalError) as raised:
        list(read_rows(dataset, tmp_path))
    assert raised.value.where.endswith(f"{file}:{line}:1")


def test_what_people_call_a_row() -> None:
    assert [row_label(3, "id:EU-1"), row_label(3, "content:ab"), row_label(0, "")] == ["EU-1", "3", ""]
