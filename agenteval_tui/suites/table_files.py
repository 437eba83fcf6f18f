"""Datasets that are not text: .xlsx, .parquet, and .arrow as Hugging Face's datasets are on disk (extra `data`).

pyarrow, and not DuckDB, which is smaller: it reads Arrow's files as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.core.errors import AgentevalError, Problem

KINDS = {".xlsx": "xlsx", ".parquet": "parquet", ".arrow": "arrow"}
_EXTRA = "pip install 'agenteval-tui[data]'"
_ROWS = 1_000
"""Of a file of columns, this many rows are in memory at once."""

Row = tuple[int, dict[str, Any]]


def table_rows(path: Path, kind: str, shards: Sequence[Path] = ()) -> Iterator[Row | Problem]:
    """(number of the row in the file, its columns) of every row, and a problem for a header or a row that is wrong.

    `shards`: the files of a dataset that is the folder `path`; rows are numbered through all.
    Raises `AgentevalError`: the extra is missing, or the file is none of its kind.
    """
    try:
        yield from _xlsx_rows(path) if kind == "xlsx" else _arrow_rows(path, kind, shards or (path,))
    except ModuleNotFoundError as missing:
        raise AgentevalError(
            f"a .{kind} dataset needs the extra `data`", where=str(path), fix=f"{_EXTRA}, or save it as .csv or .jsonl"
        ) from missing
    except OSError as error:
        raise AgentevalError(f"this dataset can't be read: {error.strerror or error}", where=str(path)) from None


def _xlsx_rows(path: Path) -> Iterator[Row | Problem]:
    """The first sheet: its first row that is not empty is the header. Values are those that Excel calculated."""
    from zipfile import BadZipFile

    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        # Read only, openpyxl gives the rows as a stream, as large as the sheet may be.
        book = load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, InvalidFileException, KeyError, ValueError, SyntaxError) as error:
        raise AgentevalError(
            f"this is not an .xlsx file: {error}", where=str(path), fix="save it again as .xlsx, or as .csv"
        ) from None
    try:
        sheet = book.worksheets[0] if book.worksheets else None
        names: list[str] | None = None
        for number, cells in enumerate(sheet.iter_rows(values_only=True) if sheet is not None else (), 1):
            values = list(cells)
            # Cells behind the last value may have a format, and come as None.
            while values and values[-1] is None:
                values.pop()
            if not values:
                continue
            if names is None:
                names = [str(_plain(value) if value is not None else "").strip() for value in values]
                wrong = list(_wrong_header(path, number, names))
                yield from wrong
                if wrong:
                    return
            elif len(values) > len(names):
                message = f"this row has {len(values)} cells, and the header {len(names)}"
                yield _problem(path, number, "wrong-length", message, "name the columns, or clear these cells")
            else:
                values += [None] * (len(names) - len(values))
                yield (
                    number,
                    {name: "" if value is None else _plain(value) for name, value in zip(names, values, strict=True)},
                )
        if names is None:
            yield _problem(path, 1, "empty", "this dataset is empty", "start with a row of column names")
    finally:
        book.close()


def _arrow_rows(path: Path, kind: str, files: Sequence[Path]) -> Iterator[Row | Problem]:
    import pyarrow

    number = 0
    for file in files:
        try:
            for batch in _parquet_batches(file) if kind == "parquet" else _arrow_batches(file):
                for row in batch.to_pylist():
                    number += 1
                    # The columns are those of all rows: the first tells whether they are named.
                    if number == 1:
                        wrong = list(_wrong_header(file, 1, list(row)))
                        yield from wrong
                        if wrong:
                            return
                    yield number, {name: _plain(value) for name, value in row.items() if value is not None}
        except (pyarrow.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the file system's, and not about what is in it
            reason = " ".join(str(error).split())[:200]
            raise AgentevalError(
                f"this is not {'an' if kind == 'arrow' else 'a'} .{kind} file: {reason}",
                where=str(file),
                fix="write it again",
            ) from None
    if number == 0:
        yield _problem(path, 1, "empty", "this dataset is empty", "add rows")


def _parquet_batches(path: Path) -> Iterator[Any]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        yield from file.iter_batches(batch_size=_ROWS)


def _arrow_batches(path: Path) -> Iterator[Any]:
    """Hugging Face writes Arrow's streams; other programs its files, which begin with a mark."""
    from pyarrow import ipc

    with path.open("rb") as opened:
        whole = opened.read(6) == b"ARROW1"
        opened.seek(0)
        if whole:
            with ipc.open_file(opened) as file:
                for number in range(file.num_record_batches):
                    yield file.get_batch(number)
        else:
            with ipc.open_stream(opened) as stream:
                yield from stream


def _wrong_header(path: Path, line: int, names: Sequence[str]) -> Iterator[Problem]:
    for number, name in enumerate(names, 1):
        if not name:
            fix = "name it, or clear it in every row"
            yield _problem(path, line, "missing-required", f"column {number} has no name", fix, column=number)
        elif name in names[: number - 1]:
            message = f'the column "{name}" appears twice: in column {names.index(name) + 1} and in column {number}'
            yield _problem(path, line, "duplicate", message, "rename or remove one of the two", column=number)


def _problem(path: Path, line: int, code: str, message: str, fix: str, *, column: int = 1) -> Problem:
    return Problem.at(path, (line, column), code, message, fix, end=(line, column + 1))


def _plain(value: Any) -> object:
    """A value as JSON has it: times as ISO texts, exact decimals as numbers, bytes by their size."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        # Beyond that, not every whole number has a float of its own.
        whole = value.is_integer() and abs(value) < 2**53
        return int(value) if whole else value if value == value and abs(value) != float("inf") else str(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__name__ == "Decimal":  # its module would be imported by every `validate`
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return f"[{len(value):,} bytes]"
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value)
