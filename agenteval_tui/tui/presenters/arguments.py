"""A tool call's arguments as text to read: one line a value, nested values indented; what is where is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from agenteval_tui.tui.presenters.block_layout import Fold, Range


class Body(Struct):
    """Text to show with its styles. `places`: where the value of each argument path ("a.b") is in the text.
    `folds`: nested values, in order, none in another."""

    text: str
    styles: list[Range] = field(default_factory=list)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    folds: list[Fold] = field(default_factory=list)


def call_body(name: str, arguments: Any) -> Body:
    """A tool's name, and below it its arguments: `table = "customers"`, nested values as indented JSON."""
    writer = Writer()
    writer.add(name, "bold")
    if isinstance(arguments, Mapping):
        for key, value in arguments.items():
            writer.add("\n", "")
            start = writer.size
            writer.add(str(key), "json-key")
            writer.add(" = ", "dim")
            writer.value(value, "", str(key))
            writer.body.places[str(key)] = (start, writer.size)
    elif isinstance(arguments, str):
        if arguments:
            writer.add("\n" + arguments, "")
    elif arguments is not None:
        writer.add("\n", "")
        writer.value(arguments, "", "")
    return writer.done()


_JSON = re.compile(
    r'(?P<string>"(?:[^"\\\n]|\\.)*")(?P<key>\s*:)?|(?P<number>-?\d[\d.eE+-]*)|(?P<word>true|false|null)'
)


def json_body(value: Any) -> Body:
    """A value as indented JSON with the colours of JSON."""
    return Body(json.dumps(value, ensure_ascii=False, indent=2))


def json_styles(text: str, start: int, end: int) -> list[Range]:
    """The colours of the JSON text between `start` and `end` (which should begin at a line)."""
    ranges: list[Range] = []
    for match in _JSON.finditer(text, start, end):
        if match["string"] is not None:
            token = "json-key" if match["key"] else "json-string"
            ranges.append(Range(match.start("string"), match.end("string"), token))
        elif match["number"] is not None:
            ranges.append(Range(match.start(), match.end(), "json-number"))
        else:
            ranges.append(Range(match.start(), match.end(), "json-literal"))
    return ranges


_DEEPEST = 60  # levels of nesting that are shown: more is an attack or an accident


class Writer:
    """Collects text with styles; knows how far it is. `done` gives all of it."""

    def __init__(self) -> None:
        self.body = Body("")
        self.size = 0
        self._parts: list[str] = []

    def add(self, text: str, style: str) -> None:
        """More text."""
        self._parts.append(text)
        if style:
            self.body.styles.append(Range(self.size, self.size + len(text), style))
        self.size += len(text)

    def compact(self, value: Any) -> None:
        """A value as JSON on one line."""
        text = json.dumps(value, ensure_ascii=False)
        start = self.size
        self.add(text, "")
        self.body.styles += [
            Range(start + part.start, start + part.end, part.style) for part in json_styles(text, 0, len(text))
        ]

    def value(self, value: Any, indent: str, path: str) -> None:
        """A value as JSON, nested ones indented below `indent`; its place is known by `path`."""
        start = self.size
        if len(indent) > 2 * _DEEPEST:
            self.add("…", "dim")
        elif isinstance(value, Mapping) and value:
            self._nested([(str(key), item) for key, item in value.items()], "{", "}", indent, path)
        elif isinstance(value, list | tuple) and value:
            self._nested([(None, item) for item in value], "[", "]", indent, path)
        elif isinstance(value, str):
            self.add(_string(value, indent), "json-string")
        elif isinstance(value, bool) or value is None:
            self.add(json.dumps(value), "json-literal")
        elif isinstance(value, int | float):
            self.add(json.dumps(value), "json-number")
        else:
            self.add(json.dumps(value, ensure_ascii=False, default=str), "")
        if path:
            self.body.places.setdefault(path, (start, self.size))

    def _nested(self, items: list[tuple[str | None, Any]], opening: str, closing: str, indent: str, path: str) -> None:
        inner = indent + "  "
        self.add(opening, "dim")
        for number, (key, item) in enumerate(items):
            self.add(("\n" if number == 0 else ",\n") + inner, "dim")
            start = self.size
            below = f"{path}.{number if key is None else key}" if path else str(number if key is None else key)
            if key is not None:
                self.add(json.dumps(key, ensure_ascii=False), "json-key")
                self.add(": ", "dim")
            self.value(item, inner, below)
            if key is not None:
                self.body.places[below] = (start, self.size)
        self.add("\n" + indent + closing, "dim")

    def done(self) -> Body:
        """The text, with what is known of it."""
        self.body.text = "".join(self._parts)
        return self.body


def _string(value: str, indent: str) -> str:
    """A string as JSON; one with several lines is shown with its lines."""
    if "\n" in value.rstrip("\n"):
        return '"' + value.replace("\n", "\n" + indent + "  ") + '"'
    return json.dumps(value, ensure_ascii=False)
