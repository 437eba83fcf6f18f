"""The text that a value begins with, and where in it the cursor goes on writing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from agenteval_tui.uxon.schema import ArrayType, MapType, ObjectType, Property, ScalarType, Type, UnionType
from agenteval_tui.uxon.strings import quote

_DEEPEST = 4  # objects inside each other that are written at once


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Text to put in, and the offset in it where the cursor goes."""

    text: str
    cursor: int

    def between(self, before: str, after: str) -> Skeleton:
        """The same inside of other text."""
        return Skeleton(before + self.text + after, len(before) + self.cursor)


def done(text: str) -> Skeleton:
    """Text with nothing more to write in it."""
    return Skeleton(text, len(text))


def of_value(value: Any) -> Skeleton:
    """A JSON value as it is; the cursor is in its first empty string, list or object, else behind it.

    What JSON has no word for (infinity, a value that holds itself) is written as a string.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return done(quote(type(value).__name__ if isinstance(value, (dict, list)) else str(value)))
    places = [at + 1 for hole in ('""', "[]", "{}") if (at := text.find(hole)) >= 0]
    return Skeleton(text, min(places, default=len(text)))


def of_type(kind: Type, default: Any = None, depth: int = 0) -> Skeleton:
    """The least that is a value of that type, in valid JSON; with the cursor where the person decides."""
    if isinstance(kind, UnionType):
        return of_type(kind.options[0], default, depth)
    if isinstance(kind, ArrayType):
        return Skeleton("[]", 1) if depth >= _DEEPEST else of_type(kind.item, None, depth + 1).between("[", "]")
    if isinstance(kind, MapType):
        return Skeleton("{}", 1)
    if isinstance(kind, ObjectType):
        return of_object(kind, depth)
    if kind.kind == "boolean":
        return done("false" if default is True else "true")  # who writes it down wants the other one
    if kind.kind in ("integer", "number"):
        return done(_number(kind, default))
    return done("null") if kind.kind == "null" else Skeleton('""', 1)


def of_object(kind: ObjectType, depth: int = 0) -> Skeleton:
    """An object with what it needs: the name of its variant first."""
    needed = [prop for prop in kind.properties if prop.required]
    if kind.variants is not None:
        return Skeleton('""', 1).between(f"{{{quote(kind.variants.discriminator)}: ", "}")
    if not needed or depth >= _DEEPEST:
        return Skeleton("{}", 1)
    parts = [of_member(prop, depth + 1) for prop in needed]
    rest = "".join(f", {part.text}" for part in parts[1:])
    return parts[0].between("{", rest + "}")


def of_member(prop: Property, depth: int = 0) -> Skeleton:
    """A property with the beginning of its value."""
    return of_type(prop.type, prop.default, depth).between(f"{quote(prop.name)}: ", "")


def _number(kind: ScalarType, default: Any) -> str:
    if isinstance(default, (int, float)) and not isinstance(default, bool):
        return json.dumps(default)
    value: float = 1
    if kind.minimum is not None:
        value = max(value, kind.minimum)
    if kind.maximum is not None:
        value = min(value, kind.maximum)
    return str(int(value)) if value == int(value) else json.dumps(value)
