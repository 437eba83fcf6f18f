"""Datasets: files of rows, each a run of its test; the columns are the test's variables.

.csv and .jsonl are read as streams: a file of any size needs no more memory than its longest row, and a hash a row.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval_tui.suites.dataset_shapes import messages_of as messages_of
from agenteval_tui.suites.dataset_shapes import prompt_of as prompt_of
from agenteval_tui.suites.row_keys import RowKeys, key_or_raise
from agenteval_tui.text.problems import AgentevalError, Problem

if TYPE_CHECKING:
    from agenteval_tui.suites.dataset_lines import Lines
    from agenteval_tui.suites.model import Dataset

KINDS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".yaml": "yaml", ".yml": "yaml"}


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """One row. `number` counts rows from 1, `line` is where it begins in the file, 1-based.

    `variables`: the columns by name; `expected_value` holds the row's expected value, if it has one. `key` is what the
    row is, wherever it stands (`row_keys`); "" where only its variables were read.
    """

    number: int
    line: int
    variables: dict[str, Any]
    key: str = field(default="", compare=False)


def read_rows(dataset: Dataset, base_dir: Path, *, trusted: bool = False) -> Iterator[DatasetRow]:
    """The rows of `dataset.file` (relative to `base_dir`), up to `dataset.limit`; what follows is not read.

    Raises `AgentevalError`: at once when the file can't be read, has no known ending, or is outside of `base_dir` and
    the folder is not `trusted`; at its place for a row that is wrong (`dataset_check.check_dataset` gives them all).
    """
    path = dataset_path(dataset, base_dir, trusted=trusted)
    return _right_rows(path, dataset)


def _right_rows(path: Path, dataset: Dataset) -> Iterator[DatasetRow]:
    keys = RowKeys(dataset.row_id)
    for found in rows_and_problems(path, dataset.limit):
        if isinstance(found, Problem):
            where = f"{found.file}:{found.line}:{found.column}"
            raise AgentevalError(found.message, where=where, mend=found.fix or "")
        yield replace(found, key=key_or_raise(keys, found.variables, str(path), found.line))


def dataset_path(dataset: Dataset, base_dir: Path, *, trusted: bool = False) -> Path:
    """Where the dataset is. Raises `AgentevalError` when it is no readable file, or outside of `base_dir` (links
    count) and not `trusted`.
    """
    given = dataset.file
    path = base_dir / given
    where = str(path)
    try:
        if not trusted and not path.resolve().is_relative_to(base_dir.resolve()):
            raise AgentevalError(
                f"the dataset {given} is outside of the suite's folder",
                where=str(base_dir),
                mend="copy it beside the suite, or trust this folder",
            )
        found = path.stat()
    except FileNotFoundError:
        raise AgentevalError("there is no such dataset", where=where, mend="check `file` of the dataset") from None
    except PermissionError:
        raise AgentevalError("no permission to read this dataset", where=where, mend="check permissions") from None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links; a NUL in the name
        said = getattr(error, "strerror", None) or str(error)
        raise AgentevalError(f"this dataset can't be read: {said}", where=repr(where)[1:-1]) from None
    if stat.S_ISDIR(found.st_mode):
        raise AgentevalError("this is a folder, not a dataset", where=where, mend="name a file in it")
    if not stat.S_ISREG(found.st_mode):
        raise AgentevalError("this is no regular file", where=where, mend="give a dataset file")
    kind_of(path)
    return path


def kind_of(path: Path) -> str:
    """csv, jsonl or yaml, by the file's name. Raises `AgentevalError` for any other ending."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        mend = (
            "write one object a line and call it .jsonl" if path.suffix.lower() == ".json" else "rename or convert it"
        )
        raise AgentevalError("a dataset is a .csv, .jsonl or .yaml file", where=str(path), mend=mend)
    return kind


def rows_and_problems(
    path: Path, limit: int | None = None, lines: list[Lines] | None = None
) -> Iterator[DatasetRow | Problem]:
    """Every row up to `limit` and every problem, in the order of the file. A wrong row counts as a row.

    `lines` gets the reader of a .csv or .jsonl file, for those who want to know how far it is. Raises `AgentevalError`
    when the file can't be read.
    """
    number = 0
    wrong_on = 0
    for found in _found(path, lines):
        if isinstance(found, Problem):
            # Two complaints about one row are one row.
            if found.code != "empty" and found.line != wrong_on:
                number += 1
                wrong_on = found.line
            if limit is not None and number > limit:
                return
            yield found
            continue
        number += 1
        if limit is not None and number > limit:
            return
        yield DatasetRow(number, *found)
        if number == limit:
            return


def _found(path: Path, out: list[Lines] | None) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    kind = kind_of(path)
    if kind == "yaml":
        from agenteval_tui.suites.dataset_jsonl import yaml_rows

        yield from yaml_rows(path)
        return
    from agenteval_tui.suites.dataset_lines import Lines

    try:
        with path.open("rb") as peek:
            start = peek.read(2)
        if start in (b"\xff\xfe", b"\xfe\xff"):
            raise AgentevalError("this file is UTF-16, not UTF-8", where=f"{path}:1:1", mend="save it as UTF-8")
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
            lines = Lines(stream, path)
            if out is not None:
                out.append(lines)
            if kind == "csv":
                from agenteval_tui.suites.dataset_csv import csv_rows

                yield from csv_rows(lines)
            else:
                from agenteval_tui.suites.dataset_jsonl import jsonl_rows

                yield from jsonl_rows(lines)
    except OSError as error:
        raise AgentevalError(f"this dataset can't be read: {error.strerror or error}", where=str(path)) from None
