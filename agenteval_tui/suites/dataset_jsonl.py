"""Rows of .jsonl and .yaml files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from agenteval_tui.suites.dataset_lines import Lines, LineTooLongError, text_end
from agenteval_tui.suites.dataset_shapes import variables_of
from agenteval_tui.text.problems import Problem


def jsonl_rows(lines: Lines) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
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
        lines.report("empty", 1, 1, "this dataset is empty", "write one JSON object a line", line=1)
    yield from lines.taken()


class _ConstantError(ValueError):
    """NaN and Infinity: Python reads them, JSON has no word for them."""


def _no_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _object(line: str, lines: Lines) -> dict[str, Any] | None:
    end = text_end(line)
    begin = len(line) - len(line.lstrip()) + 1
    try:
        data = _DECODER.decode(line)
    except json.JSONDecodeError as error:
        column = min(error.pos + 1, end)
        if lines.number == 1 and line.strip() in ("[", "{"):
            message = "this is one JSON value over several lines"
            lines.report("syntax", begin, end, message, "write each object on one line, without a list around them")
        else:
            said = error.msg[:1].lower() + error.msg[1:]
            lines.report("syntax", column, column + 1, f"this line is no JSON: {said}", "write one JSON object a line")
        return None
    except _ConstantError as error:
        at = max(line.find(str(error)), 0) + 1
        lines.report("syntax", at, at + len(str(error)), f"{error} is no JSON", "write null, or a text")
        return None
    except (ValueError, RecursionError):
        lines.report("too-deep", begin, end, "this line is nested too deep, or holds a huge number", "make it smaller")
        return None
    if not isinstance(data, dict):
        kind = "a list" if isinstance(data, list) else "no object"
        lines.report("wrong-type", begin, end, f"this line is {kind}; a row is a JSON object", 'write {"input": ...}')
        return None
    if "\\u" in line and not _whole(data):
        message = "a text here holds half a character (a lone surrogate)"
        lines.report("bad-character", begin, end, message, "write the character itself")
        return None
    return data


def _whole(data: Any) -> bool:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def yaml_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    """(line, variables) of the objects of a YAML list (or of `rows:`), and what is wrong. The file is read at once."""
    from agenteval_tui.suites.files import decode_utf8, read_bytes
    from agenteval_tui.suites.places import LineIndex
    from agenteval_tui.suites.yaml_tree import Mapping, Node, Sequence, compose, is_null, plain_data, resolve

    text = decode_utf8(read_bytes(path), path)
    places = LineIndex(text)

    def problem(code: str, start: int, end: int, message: str, fix: str | None) -> Problem:
        line, column = places.line_and_column(start)
        end_line, end_column = places.line_and_column(max(end, start))
        return Problem(str(path), line, column, end_line, end_column, "error", code, message, fix)

    said: list[Problem] = []
    root, whole = compose(text, lambda *one: said.append(problem(*one)))
    if not whole or said:
        yield from said
        return
    top: Node | None = None if root is None or is_null(root) else root
    if (
        top is not None
        and isinstance(real := resolve(top), Mapping)
        and [key.text for key, _ in real.pairs] == ["rows"]
    ):
        top = real.get("rows")
    listed = resolve(top) if top is not None else None
    if listed is None or (isinstance(listed, Sequence) and not listed.items):
        yield problem("empty", 0, 0, "this dataset is empty", "begin every row with `- `")
        return
    if not isinstance(listed, Sequence):
        message = "a dataset must be a list of objects"
        yield problem("wrong-type", listed.start, listed.start + 1, message, "begin every row with `- `")
        return
    for item in listed.items:
        if isinstance(resolve(item), Mapping):
            yield places.line_and_column(item.start)[0], variables_of(plain_data(item))
        else:
            message = "a row of a dataset is an object"
            yield problem("wrong-type", item.start, max(item.end, item.start), message, "write `- input: ...`")
