"""Datasets: files of rows, each a run of its test; the columns are the test's variables.

.csv and .jsonl are read as streams: a file of any size needs no more memory than its longest row, and a hash a row.
"""

from __future__ import annotations

import contextlib
import csv
import json
import re
import stat
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.delimited_text import (
    DELIMITERS,
    HEAD,
    TextForm,
    encoding_or_none,
    is_header,
    table_form,
    text_form,
)
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.json_values import DEEPEST, ConstantError, is_too_deep, json_text
from agenteval_tui.core.numbers import count
from agenteval_tui.suites.dataset_folders import shards_of
from agenteval_tui.suites.files import decode_utf8, read_bytes
from agenteval_tui.suites.json_rows import STRICT_DECODER, json_rows
from agenteval_tui.suites.model import Dataset, Test
from agenteval_tui.suites.row_keys import RowKeys, key_or_raise
from agenteval_tui.suites.table_files import KINDS as TABLES
from agenteval_tui.suites.table_files import table_rows
from agenteval_tui.suites.yaml.line_index import LineIndex
from agenteval_tui.suites.yaml.tree import MappingNode, Node, SequenceNode, compose, is_null, plain_data, resolve

KINDS = {
    **{".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"},
    **{".yaml": "yaml", ".yml": "yaml"},
    **TABLES,
}
_NO_INPUTS = frozenset(
    (
        "outputs",
        "reference_outputs",
        "metadata",
        "expected_value",
        "id",
        "name",
        "split",
        "dataset_id",
        "created_at",
        "modified_at",
        "source_run_id",
        "attachments",
    )
)
"""The fields of a row of LangSmith that aren't inputs."""
PROMPT_COLUMNS = ("input", "prompt", "question", "query", "user_input")
EXPECTED_COLUMNS = (
    *("expected", "expected_value", "expected_response", "expected_output", "answer"),
    *("expected_answer", "expected_result", "erwartete_antwort", "erwarteter_wert", "erwartet"),
)
EXPECTED = "expected_value"
"""The variable that the expected value of a row is in, whatever its column is called."""
# Outputs of the course's (and LangSmith's) rows, and the answer of OpenAI's, have more names.
_OUTPUTS = (*EXPECTED_COLUMNS, "output", "response", "text")
_ROLES = frozenset(("system", "developer", "user", "assistant", "tool"))
MAX_LINE = 16 * 1024 * 1024  # characters; also of a field with line ends in it
# What `surrogateescape` makes of bytes that are not UTF-8.
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
# One cell at a time, to say where a column's name is. (`csv` does not tell.)
_CELLS = {
    mark: re.compile(rf'("(?:[^"]|"")*"|[^{re.escape(mark)}\r\n]*)({re.escape(mark)}|\r?\n|\r|\Z)')
    for mark in DELIMITERS
}


class DatasetRow(Struct, frozen=True):
    """One row. `number` counts rows from 1, `line` is where it begins in the file, 1-based.

    `variables`: the columns by name; `expected_value` holds the row's expected value, if it has one. `key` is what the
    row is, wherever it stands (`row_keys`); "" where only its variables were read.
    """

    number: int
    line: int
    variables: dict[str, Any]
    key: str = ""


def read_rows(dataset: Dataset, base_dir: Path, *, trusted: bool = False) -> Iterator[DatasetRow]:
    """The rows of `dataset.file` (relative to `base_dir`), up to `dataset.limit`; what follows is not read.

    Raises `AgentevalError`: at once when the file can't be read, has no known ending, or is outside of `base_dir` and
    the folder is not `trusted`; at its place for a row that is wrong (`dataset_check.check_dataset` gives them all).
    """
    path = dataset_path(dataset, base_dir, trusted=trusted)
    return _right_rows(path, dataset)


def variable_names(test: Test | None, base_dir: Path) -> tuple[str, ...]:
    """The names that a test's texts can have as `{{name}}`: its variables, and those of its dataset's first row. What
    can't be read has none."""
    if test is None:
        return ()
    row: dict[str, Any] = {}
    if test.dataset is not None:
        with contextlib.suppress(AgentevalError, OSError):
            row = next((dict(entry.variables) for entry in read_rows(test.dataset, base_dir)), {})
    return tuple(dict.fromkeys((*test.variables, *row)))


def _right_rows(path: Path, dataset: Dataset) -> Iterator[DatasetRow]:
    # Of all rows from the first on: two that say the same are told apart by their order.
    keys = RowKeys(dataset.row_id)
    for entry in rows_and_problems(path, dataset.limit, split=dataset.split, encoding=dataset.encoding):
        if isinstance(entry, Problem):
            raise AgentevalError(entry.message, where=entry.where, fix=entry.fix or "")
        yield replace(entry, key=key_or_raise(keys, entry.variables, str(path), entry.line))


def dataset_path(dataset: Dataset, base_dir: Path, *, trusted: bool = False) -> Path:
    """Where the dataset is. Raises `AgentevalError` when it is not a readable file or a folder of shards, or is outside
    `base_dir` (links count, also those of shards) and not `trusted`.
    """
    file = dataset.file
    path = base_dir / file
    where = str(path)
    try:
        if not trusted:
            _keep_inside(path, file, base_dir)
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            for shard in shards_of(path, dataset.split):
                if not trusted:
                    _keep_inside(shard, file, base_dir)
            return path
    except FileNotFoundError:
        raise AgentevalError("there is no such dataset", where=where, fix="check `file` of the dataset") from None
    except PermissionError:
        raise AgentevalError("no permission to read this dataset", where=where, fix="check permissions") from None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links; a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise AgentevalError(f"this dataset can't be read: {reason}", where=repr(where)[1:-1]) from None
    if not stat.S_ISREG(status.st_mode):
        raise AgentevalError("this is not a regular file", where=where, fix="give a dataset file")
    if dataset.split is not None:
        raise AgentevalError(
            "only a dataset that is a folder has splits", where=where, fix="remove `split`, or name the folder"
        )
    kind = kind_of(path)
    if dataset.encoding is not None:
        if kind not in ("csv", "jsonl"):
            raise AgentevalError(
                "only a .csv, .tsv or .jsonl dataset has an encoding", where=where, fix="remove `encoding`"
            )
        if encoding_or_none(dataset.encoding) is None:
            raise AgentevalError(
                f"there is no encoding {dataset.encoding[:40]!r}", where=where, fix="write `encoding: windows-1252`"
            )
    return path


def _keep_inside(path: Path, file: str, base_dir: Path) -> None:
    if not path.resolve().is_relative_to(base_dir.resolve()):
        raise AgentevalError(
            f"the dataset {file} is outside the suite's folder",
            where=str(base_dir),
            fix="copy it beside the suite, or trust this folder",
        )


def dataset_files(dataset: Dataset, base_dir: Path) -> list[Path]:
    """What reading the dataset would read: its file, or its folder and the shards there, as far as that can be told."""
    path = base_dir / dataset.file
    try:
        return [path, *shards_of(path, dataset.split)] if path.is_dir() else [path]
    except (AgentevalError, OSError, ValueError):
        return [path]


def kind_of(path: Path) -> str:
    """The kind of a dataset (a value of `KINDS`), by the file's name. Raises `AgentevalError` for any other ending."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise AgentevalError(
            "a dataset is a .csv, .tsv, .json, .jsonl, .yaml, .xlsx, .parquet or .arrow file",
            where=str(path),
            fix="rename or convert it",
        )
    return kind


def rows_and_problems(
    path: Path,
    limit: int | None = None,
    lines: list[LineReader] | None = None,
    *,
    split: str | None = None,
    encoding: str | None = None,
) -> Iterator[DatasetRow | Problem]:
    """Every row up to `limit` and every problem, in the order of the file. A wrong row counts as a row.

    `lines` gets the reader of a .csv or .jsonl file, for those who want to know how far it is. `split`: of a folder,
    the part that is read. `encoding`: what a file is written in that has no byte order mark; None: UTF-8. Raises
    `AgentevalError` when the file can't be read.
    """
    number = 0
    wrong_on = 0
    for entry in _found(path, lines, split, encoding):
        if isinstance(entry, Problem):
            # Two complaints about one row are one row.
            if entry.code != "empty" and entry.line != wrong_on:
                number += 1
                wrong_on = entry.line
            if limit is not None and number > limit:
                return
            yield entry
            continue
        number += 1
        if limit is not None and number > limit:
            return
        yield DatasetRow(number, *entry)
        if number == limit:
            return


def _found(
    path: Path, out: list[LineReader] | None, split: str | None, encoding: str | None
) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    shards = shards_of(path, split) if path.is_dir() else [path]
    kind = kind_of(shards[0])
    if kind == "yaml":
        yield from _yaml_rows(path)
        return
    if kind == "json" or kind in TABLES.values():
        for entry in json_rows(path) if kind == "json" else table_rows(path, kind, shards):
            yield entry if isinstance(entry, Problem) else (entry[0], variables_of(entry[1]))
        return

    try:
        # The beginning tells the encoding and the delimiter; then the file is read as a stream.
        with path.open("rb") as file:
            form = form_of(path, file.read(HEAD), encoding)
        with path.open(encoding=form.reading, errors="surrogateescape", newline="") as stream:
            lines = LineReader(stream, path, form)
            if out is not None:
                out.append(lines)
            if kind == "csv":
                yield from _csv_rows(lines)
            else:
                yield from _jsonl_rows(lines)
    except OSError as error:
        raise AgentevalError(f"this dataset can't be read: {error.strerror or error}", where=str(path)) from None


def form_of(path: Path, head: bytes, encoding: str | None) -> TextForm:
    """How a .csv, .tsv or .jsonl file is written that begins with `head`; an empty one is written as its name says."""
    if kind_of(path) == "csv":
        return table_form(head, encoding, usual="\t" if path.suffix.lower() == ".tsv" else ",")
    return text_form(head, encoding)


# What the columns of a dataset mean: which is the prompt, which the expected value, and other tools' rows


def variables_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that a row gives: its columns, and `expected_value`.

    `{"inputs": {...}, "outputs": {...}}` (the course, LangSmith): the inputs' keys are variables; `outputs`, `metadata`
    and other fields stay objects, for `{{outputs.tool_used}}`. `{"input": [messages], "ideal": ...}` (OpenAI evals):
    `ideal` is the expected value. `{"item": {...}}` (OpenAI's stored evals): the item's keys.
    """
    inputs, outputs = data.get("inputs"), data.get("outputs")
    if isinstance(inputs, dict) and (outputs is None or isinstance(outputs, dict)):
        variables = {key: value for key, value in data.items() if key != "inputs" and value is not None}
        variables.update(inputs)
        if EXPECTED not in variables and outputs:
            # A single output is the expected value, whatever it is called.
            expected = _first(outputs, _OUTPUTS)
            if expected is None and len(outputs) == 1:
                expected = next(iter(outputs.values()))
            if expected is not None:
                variables[EXPECTED] = expected
        return variables
    item = data.get("item")
    if isinstance(item, dict) and data.keys() <= {"item", "sample"}:
        return _with_expected(dict(item))
    variables = _with_expected(dict(data))
    if EXPECTED not in variables and "ideal" in data and _is_messages(data.get("input")):
        ideal = data["ideal"]
        variables[EXPECTED] = ideal[0] if isinstance(ideal, list) and len(ideal) == 1 else ideal
    return variables


def _with_expected(variables: dict[str, Any]) -> dict[str, Any]:
    """`variables` itself, with `expected_value` put in from the first column that has an expected value.

    An empty cell is not an expected value.
    """
    if EXPECTED not in variables:
        # A column that has such a name letter by letter stands before one that has it but for case and blanks.
        for name in EXPECTED_COLUMNS:
            value = variables.get(name)
            if value is not None and value != "":
                variables[EXPECTED] = value
                break
        else:
            expected = _first(variables, EXPECTED_COLUMNS)
            if expected is not None:
                variables[EXPECTED] = expected
    return variables


def prompt_of(variables: Mapping[str, Any]) -> str | None:
    """The prompt that a row's variables hold: the first of `PROMPT_COLUMNS` that is not empty; of a row of LangSmith
    without one, its inputs.

    Numbers and objects become JSON. None when there is none, or when it is a list of chat messages: ask `messages_of`
    first.
    """
    value = _first(variables, PROMPT_COLUMNS)
    if value is None and "messages" not in variables:
        value = _inputs_as_text(variables)
    if value is None or _is_messages(value):
        return None
    return json_text(value)


def _inputs_as_text(variables: Mapping[str, Any]) -> str | None:
    """The one input of a row of LangSmith, or a line for each; None for other rows."""
    inputs = {key: value for key, value in variables.items() if key not in _NO_INPUTS and _says_something(value)}
    of_langsmith = isinstance(variables.get("outputs"), dict)
    if not inputs or not (of_langsmith or (len(inputs) == 1 and isinstance(variables.get("metadata"), dict))):
        return None
    texts = {key: json_text(value) for key, value in inputs.items()}
    return next(iter(texts.values())) if len(texts) == 1 else "\n".join(f"{key}: {text}" for key, text in texts.items())


def messages_of(variables: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The conversation that a row begins with: the first of `PROMPT_COLUMNS` and `messages` that is not empty, if it
    is a list of OpenAI chat messages; else None.
    """
    value = _first(variables, (*PROMPT_COLUMNS, "messages"))
    return [dict(message) for message in value] if _is_messages(value) else None


def has_prompt(variables: Mapping[str, Any]) -> bool:
    """Whether a row says what the agent is asked."""
    for name in PROMPT_COLUMNS:  # the quick way, for many rows
        value = variables.get(name)
        if isinstance(value, str) and value and not value.isspace():
            return True
    return prompt_of(variables) is not None or messages_of(variables) is not None


def _first(variables: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first name that has one that is not empty; then the same ignoring case, and with spaces for `_`.
    None: there is none."""
    for name in names:
        value = variables.get(name)
        if _says_something(value):
            return value
    folded: dict[str, Any] = {}
    for key, value in variables.items():
        other = folded_name(key)
        if other != key and other in names and _says_something(value):
            folded.setdefault(other, value)
    return next((folded[name] for name in names if name in folded), None)


@lru_cache(maxsize=4096)
def folded_name(column: str) -> str:
    """The name of a column as it is compared: "Expected Output" is `expected_output`."""
    return column.strip().casefold().replace(" ", "_")


def _says_something(value: object) -> bool:
    if isinstance(value, str):
        return bool(value) and not value.isspace()
    return not (value is None or value == [] or value == {})


def _is_messages(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(message, dict) and message.get("role") in _ROLES and "content" in message for message in value
        )
    )


# The lines of a dataset file, one after another in bounded memory, with what is wrong in their characters


class LineTooLongError(Exception):
    """A line is longer than may be held; the problem is among the `Lines`' problems."""


class LineReader:
    """An iterator of lines with their line ends. `number` is the line that came last, 1-based; 0 before the first.

    `form` says how the file is written. Bytes that are not text in its encoding, and NUL characters, go to `problems`,
    with the line as it is otherwise; whoever reads takes them from there. Raises `LineTooLongError`, and
    `AgentevalError` for bytes that can't even be held as text.
    """

    def __init__(self, stream: TextIO, path: Path, form: TextForm) -> None:
        self._stream = stream
        self.form = form
        self._file = str(path)
        self.number = 0
        self.header = 1  # the line where the header of a .csv begins
        self.characters = 0
        self.last = ""
        self.problems: list[Problem] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            line = self._stream.readline(MAX_LINE + 1)
        except UnicodeDecodeError as error:
            raise AgentevalError(
                f"this file is not {self.form.encoding_name}: {error.reason}",
                where=f"{self._file}:{self.number + 1}:1",
                fix="save it as UTF-8",
            ) from None
        if not line:
            raise StopIteration
        self.number += 1
        self.characters += len(line)
        self.last = line
        if len(line) > MAX_LINE:
            self.report("too-large", 1, 1, f"this line is longer than {MAX_LINE:,} characters", "split it into rows")
            raise LineTooLongError
        if not line.isascii() and (wrong := _NOT_UTF8.search(line)) is not None:
            at = wrong.start() + 1
            byte = ord(wrong.group()) - 0xDC00
            name = self.form.encoding_name
            fix = "save the file as UTF-8"
            if name == "UTF-8":
                fix += ", or say what it is: `encoding: windows-1252` in the dataset"
            self.report("encoding", at, at + 1, f"the byte 0x{byte:02x} is not {name}", fix)
        if "\0" in line:
            at = line.index("\0") + 1
            self.report("bad-character", at, at + 1, "a dataset cannot contain a NUL character", "remove it")
        return line

    def report(
        self, code: str, column: int, end_column: int, message: str, fix: str | None, line: int | None = None
    ) -> None:
        """Note a problem on `line` (the last one if None)."""
        at = self.number if line is None else line
        self.problems.append(Problem.at(self._file, (at, column), code, message, fix, end=(at, end_column)))

    def taken(self) -> list[Problem]:
        """The problems since the last time this was asked."""
        problems, self.problems = self.problems, []
        return problems


def _text_end(line: str) -> int:
    """The 1-based column behind the text of a line, without its line end."""
    return len(line.rstrip("\r\n")) + 1


# Rows of a .csv file


def _csv_rows(lines: LineReader) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    """(line, variables) of every right row, and a problem for each that is not.

    Separated by what `lines.form` says, quoted by `"`. The first row is the header; lines that begin with `#`, blank
    lines and Excel's `sep=;` before it are skipped, as blank lines are between rows.
    """
    if csv.field_size_limit() < MAX_LINE:
        # The limit is one for the whole process, so it is only raised.
        csv.field_size_limit(MAX_LINE)
    # Strict, as otherwise text behind a closing quote, or a quote never closed, would become part of a cell.
    reader = csv.reader(_from_header(lines), delimiter=lines.form.delimiter, strict=True)
    header: list[str] | None = None
    try:
        header = next(reader)
    except StopIteration:
        lines.report("empty", 1, 1, "this dataset is empty", "start with a line of column names", line=1)
    except (csv.Error, LineTooLongError) as error:
        _report(error, lines, lines.header)
    names = _names(header, lines) if header is not None else None
    yield from lines.taken()
    if names is None:
        return
    width = len(names)
    while True:
        start = lines.number + 1
        try:
            row = next(reader)
        except (StopIteration, LineTooLongError):
            break
        except csv.Error as error:
            _report(error, lines, start)
            yield from lines.taken()
            continue
        if len(row) != width:
            if not row:
                continue  # a blank line
            _wrong_length(row, names, lines, start)
        elif width > 1 and not any(row):
            continue  # a line that Excel leaves where cells were emptied
        if lines.problems:
            yield from lines.taken()
            continue
        variables: dict[str, Any] = dict(zip(names, row, strict=True))
        for at, cell in enumerate(row):
            if "{" in cell or "[" in cell:
                variables[names[at]] = _decoded_cell(cell)
        yield start, variables_of(variables)
    yield from lines.taken()


def _decoded_cell(cell: str) -> object:
    """The object or list that a cell holds as JSON; every other cell is its text."""
    text = cell.strip()
    if not ((text.startswith("{") and text.endswith("}")) or (text.startswith("[") and text.endswith("]"))):
        return cell
    try:
        return _decoded(text)
    except (ValueError, RecursionError):
        return cell


def _decoded(text: str) -> object:
    """The JSON value of a text. Raises ValueError, and RecursionError where it is nested too deep."""
    value = STRICT_DECODER.decode(text)
    # With fewer brackets it can't be too deep.
    if text.count("[") + text.count("{") > DEEPEST and is_too_deep(value):
        raise RecursionError
    return value


def _from_header(lines: LineReader) -> Iterator[str]:
    for line in lines:
        if is_header(line):
            lines.header = lines.number
            yield line
            break
    yield from lines


def _report(error: BaseException, lines: LineReader, start: int) -> None:
    if isinstance(error, LineTooLongError):
        return  # said where it was found
    reason = str(error)
    if "field larger" in reason or "unexpected end" in reason:
        message, fix = "a quote is opened in this row and never closed", 'close it; write a quote inside a text as ""'
        lines.report("syntax", 1, 2, message, fix, line=start)
        return
    where = f" (the row begins on line {start})" if start != lines.number else ""
    if "expected after" in reason:
        at = _behind_quote(lines.last, lines.form.delimiter, inside=start != lines.number)
        message = f"text follows a closing quote{where}"
        lines.report("syntax", at, _text_end(lines.last), message, 'write a quote inside a quoted text as ""')
        return
    lines.report("syntax", 1, _text_end(lines.last), f"this line is not CSV{where}: {reason}", "check its quotes")


def _behind_quote(line: str, delimiter: str, *, inside: bool) -> int:
    """The 1-based column of the text after a closed quote, where a delimiter should be. `inside`: the line begins
    within a quoted text.
    """
    at = 0
    if inside and (rest := re.match(r'(?:[^"]|"")*"', line)) is not None:
        at = rest.end()
        if line[at : at + 1] != delimiter:
            return at + 1
        at += 1
    while at < len(line):
        cell = _CELLS[delimiter].match(line, at)
        if cell is not None and cell.group(1).endswith('"') == line.startswith('"', at):
            at = max(cell.end(), at + 1)
            continue
        quoted = re.compile(r'"(?:[^"]|"")*"').match(line, at)
        return quoted.end() + 1 if quoted is not None else at + 1
    return 1


def _names(header: list[str], lines: LineReader) -> list[str] | None:
    """The names of the columns; None, with the problems said, when they are not right."""
    names = [name.strip() for name in header]
    start = lines.header
    if lines.problems:
        return None
    places = [match.span(1) for match in _CELLS[lines.form.delimiter].finditer(lines.last)]
    columns: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        begin, end = places[number - 1] if number <= len(places) else (0, 0)
        if not name:
            fix = "name it, or remove it from every row"
            lines.report("missing-required", begin + 1, end + 1, f"column {number} has no name", fix, line=start)
        elif name in columns:
            message = f'the column "{name}" appears twice: in column {columns[name]} and in column {number}'
            lines.report("duplicate", begin + 1, end + 1, message, "rename or remove one of the two", line=start)
        columns.setdefault(name, number)
    return None if lines.problems else names


def _wrong_length(row: list[str], names: list[str], lines: LineReader, start: int) -> None:
    cells = count(len(row), "cell")
    if len(row) > len(names):
        fix = f"quote the text that contains {DELIMITERS[lines.form.delimiter]}, or remove the extra cells"
    else:
        fix = f'"{names[len(row)]}" is the first column without a cell: add the cells, empty ones with a comma'
    message = f"this row has {cells}, and the header {len(names):,}"
    end = _text_end(lines.last) if start == lines.number else 2
    lines.report("wrong-length", 1, end, message, fix, line=start)


# Rows of .jsonl and .yaml files


def _jsonl_rows(lines: LineReader) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    """(line, variables) of every line that holds a JSON object, and a problem for each that does not."""
    any_row = False
    while True:
        try:
            line = next(lines)
        except (StopIteration, LineTooLongError):
            break
        if not line.strip(" \t\r\n"):
            continue
        any_row = True
        data = None if lines.problems else _object(line, lines)
        if lines.problems or data is None:
            yield from lines.taken()
            continue
        yield lines.number, variables_of(data)
    if not any_row and not lines.problems:
        lines.report("empty", 1, 1, "this dataset is empty", "write one JSON object per line", line=1)
    yield from lines.taken()


def _object(line: str, lines: LineReader) -> dict[str, Any] | None:
    end = _text_end(line)
    begin = len(line) - len(line.lstrip()) + 1
    try:
        data = _decoded(line)
    except json.JSONDecodeError as error:
        column = min(error.pos + 1, end)
        if lines.number == 1 and line.strip() in ("[", "{"):
            message = "this is one JSON value over several lines"
            fix = "name the file .json, or write each object on one line, without a list around them"
            lines.report("syntax", begin, end, message, fix)
        else:
            reason = error.msg[:1].lower() + error.msg[1:]
            lines.report(
                "syntax", column, column + 1, f"this line is not JSON: {reason}", "write one JSON object per line"
            )
        return None
    except ConstantError as error:
        at = max(line.find(str(error)), 0) + 1
        lines.report("syntax", at, at + len(str(error)), f"{error} is not JSON", "write null, or a text")
        return None
    except (ValueError, RecursionError):
        lines.report("too-deep", begin, end, "this line is nested too deeply, or has a huge number", "make it smaller")
        return None
    if not isinstance(data, dict):
        kind = "a list" if isinstance(data, list) else "no object"
        lines.report("wrong-type", begin, end, f"this line is {kind}; a row is a JSON object", 'write {"input": ...}')
        return None
    # Only an escape brings half a character into a line that could be read.
    if "\\u" in line and not _whole(data):
        message = "a text here has half a character (a lone surrogate)"
        lines.report("bad-character", begin, end, message, "write the character itself")
        return None
    return data


def _whole(data: object) -> bool:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _yaml_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    """(line, variables) of the objects of a YAML list (or of `rows:`), and what is wrong. The file is read at once."""

    text = decode_utf8(read_bytes(path), path)
    places = LineIndex(text)

    problem = partial(places.problem, path)
    problems: list[Problem] = []
    root, whole = compose(text, lambda *details: problems.append(problem(*details)))
    if not whole or problems:
        yield from problems
        return
    top: Node | None = None if root is None or is_null(root) else root
    if (
        top is not None
        and isinstance(real := resolve(top), MappingNode)
        and [key.text for key in real.pairs] == ["rows"]
    ):
        top = real.get("rows")
    listed = resolve(top) if top is not None else None
    if listed is None or (isinstance(listed, SequenceNode) and not listed.items):
        yield problem("empty", 0, 0, "this dataset is empty", "start every row with `- `")
        return
    if not isinstance(listed, SequenceNode):
        message = "a dataset must be a list of objects"
        yield problem("wrong-type", listed.start, listed.start + 1, message, "start every row with `- `")
        return
    for item in listed.items:
        if isinstance(resolve(item), MappingNode):
            yield places.line_and_column(item.start)[0], variables_of(plain_data(item))
        else:
            message = "a row of a dataset is an object"
            yield problem("wrong-type", item.start, max(item.end, item.start), message, "write `- input: ...`")
