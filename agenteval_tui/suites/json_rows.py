"""Rows of a .json dataset: a list of objects, or an object that has such a list. The file is read at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from json.decoder import JSONDecodeError
from pathlib import Path
from typing import Any

from agenteval_tui.core.errors import Problem
from agenteval_tui.core.json_values import DEEPEST, ConstantError, is_too_deep, refuse_constant
from agenteval_tui.suites.files import decode_utf8, read_bytes
from agenteval_tui.suites.yaml.line_index import LineIndex

LISTS = ("rows", "examples", "goldens", "test_cases", "testCases", "cases", "data", "items", "samples")
"""Under which keys an object has its rows: ours, LangSmith's, DeepEval's and those of others."""
_FIX = 'write a list of objects: [{"input": ...}]'


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    """(line, object) of each row, and what is wrong. Raises `AgentevalError` when the file can't be read."""
    text = decode_utf8(read_bytes(path), path)
    places = LineIndex(text)

    def problem(code: str, at: int, message: str, fix: str = _FIX) -> Problem:
        line, column = places.line_and_column(at)
        return Problem.at(path, (line, column), code, message, fix, end=(line, column + 1))

    if not text.strip():
        yield problem("empty", 0, "this dataset is empty")
        return
    try:
        STRICT_DECODER.decode(text)
        begin = _list_in(text)
        if begin is None:
            keys = ", ".join(LISTS[:4])
            yield problem(
                "wrong-type", _skip(text, 0), f"this dataset must be a list of objects, or have one as {keys}"
            )
            return
        rows = list(_items(text, begin))
    except JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        yield problem("syntax", error.pos, f"this file is not JSON: {reason}", "check the JSON here")
        return
    except ConstantError as error:
        yield problem("syntax", max(text.find(str(error)), 0), f"{error} is not JSON", "write null, or a text")
        return
    except (ValueError, RecursionError):
        yield problem("too-deep", 0, "this file is nested too deeply, or has a huge number", "make it smaller")
        return
    if not rows:
        yield problem("empty", begin, "this dataset is empty")
    for start, row in rows:
        if not isinstance(row, dict):
            yield problem("wrong-type", start, "a row of a dataset is an object", 'write {"input": ...}')
        elif text.count("[") + text.count("{") > DEEPEST and is_too_deep(row):
            yield problem("too-deep", start, "this row is nested too deeply", "make it smaller")
        else:
            yield places.line_and_column(start)[0], row


STRICT_DECODER = json.JSONDecoder(parse_constant=refuse_constant)


def _skip(text: str, at: int, more: str = "") -> int:
    """The next place that holds neither white space nor one of `more`."""
    while at < len(text) and text[at] in " \t\r\n" + more:
        at += 1
    return at


def _list_in(text: str) -> int | None:
    """Where the list of rows begins in a valid document; None where there is none."""
    at = _skip(text, 0, "\ufeff")
    if text[at] == "[":
        return at
    if text[at] != "{":
        return None
    positions: dict[str, int] = {}
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = STRICT_DECODER.raw_decode(text, at)
        at = _skip(text, at, ":")
        if text[at] == "[":
            positions[key] = at
        _, at = STRICT_DECODER.raw_decode(text, at)
        at = _skip(text, at, ",")
    return next((positions[name] for name in LISTS if name in positions), None)


def _items(text: str, begin: int) -> Iterator[tuple[int, Any]]:
    """The place and the value of each item of a list."""
    at = _skip(text, begin + 1)
    while text[at] != "]":
        start = at
        value, at = STRICT_DECODER.raw_decode(text, at)
        yield start, value
        at = _skip(text, at, ",")
