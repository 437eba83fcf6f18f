"""JSON values: read from a text, what is in them, other texts and numbers, and how deep they may be nested."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

DEEPEST = 200
"""Levels of lists and objects in one another, in everything that is read from elsewhere: the same for every version of
Python, whose decoders go 1,000 to 10,000 levels deep."""


def parsed_json(text: str | bytes) -> Any:
    """The value of a JSON text; None for a text that is no JSON, or that nests deeper than Python reads."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class ConstantError(ValueError):
    """NaN or Infinity: Python reads them, JSON has no word for them."""


def refuse_constant(name: str) -> NoReturn:
    """What `json` calls for NaN and Infinity, to be given as `parse_constant`. Raises `ConstantError`."""
    raise ConstantError(name)


def json_text(value: object) -> str:
    """A value as a text: a text as it is, None as "", everything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """The object that a JSON text is; None for any other text."""
    value = parsed_json(text)
    return value if isinstance(value, dict) else None


def with_leaves(value: object, change: Callable[[Any], object]) -> object:
    """A copy of a value with `change` made to everything in it that is neither an object nor a list. Keys stay as they
    are, and tuples become lists."""
    if isinstance(value, Mapping):
        return {key: with_leaves(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_leaves(item, change) for item in value]
    return change(value)


def with_texts(value: object, change: Callable[[str], object]) -> Any:
    """The same, with `change` made to texts only."""
    return with_leaves(value, lambda leaf: change(leaf) if isinstance(leaf, str) else leaf)


def texts_in(value: object, depth: int = 0) -> Iterator[str]:
    """All texts in a value, without the names of its properties; none that are nested deeper than `DEEPEST`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple) and depth < DEEPEST:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(item, depth + 1)


def value_at(value: Any, path: Iterable[str | int]) -> Any:
    """What a path of keys and numbers leads to. Raises LookupError, TypeError where it leads nowhere."""
    for step in path:
        value = value[step]
    return value


def is_too_deep(value: object) -> bool:
    """Whether a value of JSON is nested deeper than `DEEPEST`."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True
