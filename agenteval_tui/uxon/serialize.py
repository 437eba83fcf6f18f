"""Write a value as config text."""

from __future__ import annotations

import json
from typing import Any


def to_text(value: object) -> str:
    """`value` (what YAML or JSON can hold) as JSON with two spaces of indentation; `parse` gives it back.

    Lists and objects of plain values that fit on one line stay on it. Keys that are not strings are written as strings;
    values that JSON does not know (dates) as their `str`.
    """
    return _write(value, 0)


_WIDTH = 100
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def _write(value: object, depth: int) -> str:
    if not isinstance(value, (dict, list, tuple)) or not value:
        return _ENCODER.encode(value if value != () else [])
    parts = list(value.values()) if isinstance(value, dict) else list(value)
    if depth and not any(isinstance(part, (dict, list, tuple)) and part for part in parts):
        line = _one_line(value)
        if len(line) + 2 * depth <= _WIDTH:
            return line
    inner = "  " * (depth + 1)
    if isinstance(value, dict):
        lines = [f"{inner}{_key(key)}: {_write(part, depth + 1)}" for key, part in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + "  " * depth + "}"
    lines = [inner + _write(part, depth + 1) for part in value]
    return "[\n" + ",\n".join(lines) + "\n" + "  " * depth + "]"


def _key(key: Any) -> str:
    return _ENCODER.encode(key if isinstance(key, str) else json.dumps(key, default=str))


def _one_line(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {_write(part, 1)}" for key, part in value.items()) + "}"
    return "[" + ", ".join(_write(part, 1) for part in value) + "]"
