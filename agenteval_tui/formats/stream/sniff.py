"""The beginning of a foreign file: enough to tell its format, however large it is."""

from __future__ import annotations

import re
from typing import IO, Any

from msgspec import Struct

from agenteval_tui.formats.stream.json_reader import JsonReader
from agenteval_tui.formats.stream.json_stream import (
    BrokenElement,
    JsonElement,
    UnreadableFile,
    read_values,
    wide_encoding,
)
from agenteval_tui.formats.stream.source import Source

LOOKED_AT = 8_000_000
"""Bytes of a file that are looked at to tell its format."""
LOOKED_AT_MOST = 256_000_000
"""Bytes that are looked at when that was not enough: something large comes before the part that tells the format."""

_VALUES = 8
_TRIED = 20  # broken values at the start of a file that do not yet make it unreadable
_YAML_HEAD = 1 << 18
_YAML_KEY = re.compile(r"""^(["']?)([A-Za-z_][\w-]*)\1[ \t]*:(?=\s|$)""", re.MULTILINE)


class Head(Struct, frozen=True):
    """What a file begins with.

    `values`: its first values; of a list its first elements, of an object itself. A part of an object that is too
    large to be looked at is an empty list or object. `yaml`: the keys of a YAML document, if it is not JSON.
    `broken`: what could not be read before the first value.
    """

    zip: bool = False
    values: tuple[Any, ...] = ()
    yaml: frozenset[str] = frozenset()
    broken: BrokenElement | None = None


def sniff(source: Source, most: int = LOOKED_AT) -> Head:
    """The head of a file, of which at most `most` bytes are looked at. Nothing in it is an error."""
    with source.open() as file:
        begin = file.read(_YAML_HEAD)
    if begin.startswith(b"PK\x03\x04") or begin.startswith(b"PK\x05\x06"):
        return Head(zip=True)
    values: list[Any] = []
    try:
        _gather(JsonReader(_Bounded(source.open(), most)), values)  # type: ignore[arg-type]
    except UnreadableFile:
        pass
    if values:
        return Head(values=tuple(values))
    # Not JSON, or broken: as YAML its keys may tell, without reading what may be no YAML at all.
    text = begin.decode(wide_encoding(begin) or "utf-8-sig", "replace")
    keys = frozenset(match.group(2) for match in _YAML_KEY.finditer(text)) if not text.lstrip().startswith("{") else ()
    broken: BrokenElement | None = None
    for number, element in enumerate(read_values(_Bounded(source.open(), LOOKED_AT))):  # type: ignore[arg-type]
        if isinstance(element, JsonElement):
            return Head(values=(element.value,), yaml=frozenset(keys))
        broken = broken or element
        if number >= _TRIED:
            break
    return Head(yaml=frozenset(keys), broken=broken)


def _gather(reader: JsonReader, values: list[Any]) -> None:
    kind = reader.kind()
    if kind == "list":
        for _ in reader.elements():
            _outline(reader, values)
            if len(values) >= _VALUES:
                return
    elif kind:
        _outline(reader, values)


def _outline(reader: JsonReader, values: list[Any]) -> None:
    """Add the value that begins here, without what in it is too large."""
    kind = reader.kind()
    if kind != "object":
        fits, value = reader.small()
        # Its kind may be enough to tell the format by.
        values.append(value if fits else [] if kind == "list" else "")
        return
    outline: dict[str, Any] = {}
    for key in reader.members():
        # An object that can't be read to its end is told by the keys it has.
        if not outline:
            values.append(outline)
        # Before it is read: where the file ends in it, its key and its kind are known.
        outline[key] = {"object": {}, "list": []}.get(reader.kind())
        fits, value = reader.small()
        if fits:
            outline[key] = value
    if not outline:
        values.append(outline)


class _Bounded:
    """The first `most` bytes of a file."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self._left = most

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data
