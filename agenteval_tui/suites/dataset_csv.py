"""Rows of a .csv file."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from agenteval_tui.suites.dataset_lines import MAX_LINE, Lines, LineTooLongError, text_end
from agenteval_tui.suites.dataset_shapes import with_expected
from agenteval_tui.text.problems import Problem

# One cell at a time, to say where a column's name stands. (`csv` does not tell.)
_CELL = re.compile(r'("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n|\r|\Z)')


def csv_rows(lines: Lines) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    """(line, variables) of every right row, and a problem for each that is not.

    Comma-separated, quoted by `"`. The first row is the header; lines that begin with `#` and blank lines before it
    are skipped, as blank lines are between rows.
    """
    if csv.field_size_limit() < MAX_LINE:
        csv.field_size_limit(MAX_LINE)
    reader = csv.reader(_from_header(lines), strict=True)
    header: list[str] | None = None
    try:
        header = next(reader)
    except StopIteration:
        lines.report("empty", 1, 1, "this dataset is empty", "begin with a line of column names", line=1)
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
        if lines.problems:
            yield from lines.taken()
            continue
        variables: dict[str, Any] = dict(zip(names, row, strict=True))
        for at, cell in enumerate(row):
            if "{" in cell or "[" in cell:
                variables[names[at]] = decoded_cell(cell)
        yield start, with_expected(variables)
    yield from lines.taken()


def decoded_cell(cell: str) -> Any:
    """The object or list that a cell holds as JSON; every other cell is the text that stands there."""
    text = cell.strip()
    if not ((text.startswith("{") and text.endswith("}")) or (text.startswith("[") and text.endswith("]"))):
        return cell
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return cell


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _from_header(lines: Lines) -> Iterator[str]:
    for line in lines:
        if not line.startswith("#") and not line.isspace():
            lines.header = lines.number
            yield line
            break
    yield from lines


def _report(error: BaseException, lines: Lines, start: int) -> None:
    if isinstance(error, LineTooLongError):
        return  # said where it was found
    said = str(error)
    if "field larger" in said or "unexpected end" in said:
        message, fix = "a quote is opened in this row and never closed", 'close it; a quote inside a text is written ""'
        lines.report("syntax", 1, 2, message, fix, line=start)
        return
    where = f" (the row begins on line {start})" if start != lines.number else ""
    if "expected after" in said:
        at = _behind_quote(lines.last, inside=start != lines.number)
        message = f"text stands behind a closed quote{where}"
        lines.report("syntax", at, text_end(lines.last), message, 'a quote inside a quoted text is written ""')
        return
    lines.report("syntax", 1, text_end(lines.last), f"this line is no CSV{where}: {said}", "check its quotes")


def _behind_quote(line: str, *, inside: bool) -> int:
    """The 1-based column of what stands behind a closed quote, where a comma should. `inside`: the line begins
    within a quoted text.
    """
    at = 0
    if inside and (rest := re.match(r'(?:[^"]|"")*"', line)) is not None:
        at = rest.end()
        if line[at : at + 1] != ",":
            return at + 1
        at += 1
    while at < len(line):
        cell = _CELL.match(line, at)
        if cell is not None and cell.group(1).endswith('"') == line.startswith('"', at):
            at = max(cell.end(), at + 1)
            continue
        quoted = re.compile(r'"(?:[^"]|"")*"').match(line, at)
        return quoted.end() + 1 if quoted is not None else at + 1
    return 1


def _names(header: list[str], lines: Lines) -> list[str] | None:
    """The names of the columns; None, with the problems said, when they are not right."""
    names = [name.strip() for name in header]
    start = lines.header
    if lines.problems:
        return None
    if len(names) == 1 and (mark := next((one for one in ";\t|" if one in names[0]), None)) is not None:
        said = {";": "a semicolon", "\t": "a tab", "|": "a bar"}[mark]
        at = lines.last.find(mark) + 1
        message = f"the columns are separated by {said}, not by a comma"
        lines.report("wrong-value", at, at + 1, message, "export it as CSV with commas", line=start)
        return None
    places = [match.span(1) for match in _CELL.finditer(lines.last)]
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        begin, end = places[number - 1] if number <= len(places) else (0, 0)
        if not name:
            fix = "name it, or remove it from every row"
            lines.report("missing-required", begin + 1, end + 1, f"column {number} has no name", fix, line=start)
        elif name in seen:
            message = f'the column "{name}" is there twice: column {seen[name]} and column {number}'
            lines.report("duplicate", begin + 1, end + 1, message, "rename or remove one of the two", line=start)
        seen.setdefault(name, number)
    return None if lines.problems else names


def _wrong_length(row: list[str], names: list[str], lines: Lines, start: int) -> None:
    cells = f"{len(row):,} cell{'' if len(row) == 1 else 's'}"
    if len(row) > len(names):
        fix = "quote the text that holds a comma, or remove what is too much"
    else:
        fix = f'"{names[len(row)]}" is the first column without a cell: add the cells, empty ones with a comma'
    message = f"this row has {cells}, and the header {len(names):,}"
    end = text_end(lines.last) if start == lines.number else 2
    lines.report("wrong-length", 1, end, message, fix, line=start)
