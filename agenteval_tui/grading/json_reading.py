"""Reading an agent's text as JSON: strictly, with the place of a mistake, and places of values inside the text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from agenteval_tui.core.json_values import ConstantError, refuse_constant
from agenteval_tui.grading.coded_error import CodedError
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import Span
from agenteval_tui.grading.sentences import content_phrase, syntax_phrase
from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.tree import Document

LIMIT = 2_000_000
"""Characters that are read as JSON; a longer text cannot be checked."""
_PLACES_LIMIT = 200_000  # places of values are looked for in texts up to this length; they cost more than the reading
_ATTEMPTS = 20
_KEYS = 8
_MOST_WORK = 20_000_000  # characters that are read in vain, looking for objects in a text

SpanMap = Callable[[int, int], tuple[Span, ...]]


class NotJsonError(ValueError):
    """The text is not JSON: why, and the character (0-based) where that shows. `fields`: `empty`, or the `constant`
    that JSON does not have, or `syntax` (Python's own words), `line` and `column`.
    """

    def __init__(self, fields: dict[str, Any], position: int) -> None:
        super().__init__()
        self.fields = fields
        self.position = position

    def __str__(self) -> str:
        return syntax_phrase(self.fields)


class UnreadableJsonError(CodedError):
    """The text cannot be read, whether it is JSON or not: too long, too deep, numbers that are too large."""


def read_json(text: str) -> object:
    """The value of a JSON text, white space around it aside. Raises `NotJsonError`, `UnreadableJsonError`."""
    if len(text) > LIMIT:
        raise UnreadableJsonError(code=Code.TOO_LARGE, what="json", count=len(text), most=LIMIT)
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        raise NotJsonError(_syntax(error, text), min(error.pos, len(text))) from None
    # Python's reader takes NaN and Infinity, which JSON does not have.
    except ConstantError as error:
        raise NotJsonError({"constant": str(error)}, max(text.find(str(error)), 0)) from None
    # Nested too deep for Python, which may be valid JSON: so it can't be said that it is none.
    except RecursionError:
        raise UnreadableJsonError(code=Code.TOO_DEEP, what="json") from None
    except ValueError as error:
        raise UnreadableJsonError(code=Code.UNREADABLE_NUMBER, problem=str(error)) from None


def embedded_json(text: str) -> tuple[int, int] | None:
    """Start and end of the first JSON object or list anywhere in `text`. Bounded work."""
    text = text[:_PLACES_LIMIT]
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    start = -1
    for _ in range(_ATTEMPTS):
        starts = [at for at in (text.find("{", start + 1), text.find("[", start + 1)) if at >= 0]
        if not starts:
            return None
        start = min(starts)
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        return start, end
    return None


def objects_in(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Start, end and value of each JSON object anywhere in `text`, except those inside others. Raises
    `UnreadableJsonError` if too many places look like an object but are not.
    """
    if len(text) > LIMIT:
        raise UnreadableJsonError(code=Code.TOO_LARGE, what="json", count=len(text), most=LIMIT)
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    start, work = text.find("{"), 0
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as problem:
            # Each brace may be read to the end of the text in vain: the sum is bounded, not the number.
            work += max(0, getattr(problem, "pos", len(text)) - start)
            if work > _MOST_WORK:
                raise UnreadableJsonError(code=Code.TOO_LARGE, what="json", count=work, most=_MOST_WORK) from None
            start = text.find("{", start + 1)
            continue
        yield start, end, value
        start = text.find("{", end)


class JsonSource(Struct, frozen=True, dict=True):
    """A JSON text with the way from its characters into the transcript. `base` leads to the value inside of it."""

    text: str
    spans: SpanMap
    base: tuple[str | int, ...] = ()

    @cached_property
    def _document(self) -> Document | None:
        return parse(self.text) if len(self.text) <= _PLACES_LIMIT else None

    def range(self, path: tuple[str | int, ...]) -> tuple[int, int]:
        """Characters of what `path` leads to from the value; of the nearest thing around it where it leads nowhere."""
        steps = (*self.base, *path) if self._document is not None else ()
        # A path that leads nowhere, as to a missing key, shows at the object that should have it.
        while steps and self._document is not None:
            node = self._document.node(steps)
            if node is not None and 0 <= node.start <= node.end <= len(self.text):
                return node.start, node.end
            steps = steps[:-1]
        start, end = len(self.text) - len(self.text.lstrip()), len(self.text.rstrip())
        return (start, end) if start <= end else (0, len(self.text))

    def place(self, path: tuple[str | int, ...]) -> tuple[Span, ...]:
        """Where the target of `path` is in the transcript."""
        return self.spans(*self.range(path))

    def source_of(self, path: tuple[str | int, ...]) -> str:
        """The characters of what `path` leads to."""
        start, end = self.range(path)
        return self.text[start:end]


def compact(value: object, limit: int = LIMIT) -> str:
    """A JSON value as compact JSON. Raises `UnreadableJsonError` when that is longer than `limit` characters."""
    parts: list[str] = []
    length = 0
    encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        # In pieces: an expression may repeat one value a million times, and that must not fill the memory.
        for part in encoder.iterencode(value):
            length += len(part)
            if length > limit:
                raise UnreadableJsonError(code=Code.TOO_LARGE, what="value", most=limit)
            parts.append(part)
    except RecursionError:
        raise UnreadableJsonError(code=Code.TOO_DEEP, what="value") from None
    return "".join(parts)


def content_fields(value: object) -> dict[str, Any]:
    """What there is in a value, as fields of evidence have it: its keys, its number of items."""
    if isinstance(value, Mapping):
        return {"keys": [str(key) for key in value][:_KEYS], "count": len(value)}
    if isinstance(value, list):
        return {"items": len(value)}
    return {"type": "string"} if isinstance(value, str) else {}


def keys_of(value: object) -> str:
    """What there is in a value, in words: its keys, its number of items."""
    return content_phrase(content_fields(value))


def _syntax(error: json.JSONDecodeError, text: str) -> dict[str, Any]:
    if not text.strip():
        return {"empty": True}
    what = error.msg[:1].lower() + error.msg[1:]
    return {"syntax": what, "line": error.lineno, "column": error.colno}
