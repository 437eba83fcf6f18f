"""Datasets as .xlsx, .parquet and .arrow: written by the libraries that people write them with.

These are imported where they are needed: it takes a fifth of a second, and every worker imports this file.
"""

from __future__ import annotations

import datetime
import decimal
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.dataset_check import check_dataset
from agenteval_tui.suites.dataset_edit import append_row
from agenteval_tui.suites.datasets import read_rows
from agenteval_tui.suites.model import Dataset

ROWS: list[dict[str, Any]] = [
    {"input": "hi", "expected": "Hello", "n": 7, "tags": ["a", "b"]},
    {"input": "bye", "expected": "Good bye", "n": 8, "tags": []},
]


def sheet(path: Path, rows: list[list[Any]]) -> None:
    from openpyxl import Workbook

    book = Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    book.save(path)


def read(path: Path, limit: int | None = None) -> list[tuple[int, int, dict[str, Any]]]:
    found = read_rows(Dataset(file=path.name, limit=limit), path.parent)
    return [(row.number, row.line, row.variables) for row in found]


def test_a_sheet_is_read_with_its_header(tmp_path: Path) -> None:
    path = tmp_path / "d.xlsx"
    at = datetime.datetime(2026, 1, 2, 3, 4)
    sheet(path, [[], ["input", "expected", "n", "at"], ["hi", "Hello", 7, at], [None], ["bye", None, 1.5]])
    first, second = read(path)
    assert first == (
        1, 3, {"input": "hi", "expected": "Hello", "n": 7, "at": "2026-01-02T03:04:00", "expected_value": "Hello"}
    )  # fmt: skip
    assert second == (2, 5, {"input": "bye", "expected": "", "n": 1.5, "at": ""})
    assert read(path, limit=1) == [first]


def write_arrow(path: Path, table: Any, how: str) -> None:
    from pyarrow import ipc

    make = ipc.new_stream if how == "stream" else ipc.new_file
    with path.open("wb") as file, make(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)


@pytest.mark.parametrize("how", ["parquet", "stream", "file"])
def test_columns_are_read_as_rows(tmp_path: Path, how: str) -> None:
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.Table.from_pylist(ROWS)
    path = tmp_path / ("d.parquet" if how == "parquet" else "d.arrow")
    if how == "parquet":
        parquet.write_table(table, path)
    else:
        write_arrow(path, table, how)
    assert [row for _, _, row in read(path)] == [{**row, "expected_value": row["expected"]} for row in ROWS]


def test_values_that_json_has_no_word_for_are_written_as_one_would(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "d.parquet"
    row = {
        "day": datetime.date(2026, 1, 2),
        "sum": decimal.Decimal("12.50"),
        "blob": b"abc",
        "deep": {"x": [1.0, None]},
        "gone": None,
        "nan": float("nan"),
    }
    parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    ((_, _, found),) = read(path)
    assert found == {"day": "2026-01-02", "sum": 12.5, "blob": "[3 bytes]", "deep": {"x": [1, None]}, "nan": "nan"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "this dataset is empty"),
        ([["a", None, "b"], ["x"]], "column 2 has no name"),
        ([["a", "a"], ["x"]], 'the column "a" appears twice: in column 1 and in column 2'),
        ([["a"], ["x", "y"]], "this row has 2 cells, and the header 1"),
    ],
)
def test_what_is_wrong_in_a_sheet_has_its_place(tmp_path: Path, rows: list[list[Any]], said: str) -> None:
    path = tmp_path / "d.xlsx"
    sheet(path, rows)
    problems = check_dataset(Dataset(file="d.xlsx"), tmp_path).problems
    assert said in [problem.message for problem in problems]


@pytest.mark.parametrize("name", ["d.xlsx", "d.parquet", "d.arrow"])
@pytest.mark.parametrize("data", [b"", b"no such file", b"PK\x03\x04 broken", b"PAR1" + b"\0" * 40 + b"PAR1"])
def test_a_file_that_is_none_of_its_kind_is_refused_in_a_sentence(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(AgentevalError) as error:
        read(path)
    assert error.value.fix
    assert name in error.value.where


@pytest.mark.parametrize(("name", "module"), [("d.xlsx", "openpyxl"), ("d.parquet", "pyarrow")])
def test_without_the_extra_a_sentence_says_what_to_install(
    tmp_path: Path, name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(AgentevalError, match=r"needs the extra `data`") as error:
        read(tmp_path / name)
    assert "pip install 'agenteval-tui[data]'" in error.value.fix


def test_no_row_is_added_to_a_table(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match=r"rows can.t be added to a \.xlsx dataset"):
        append_row(tmp_path / "d.xlsx", {"a": 1})
