"""The types of a config: what may stand where, with the words that help a person to write it.

Plain data. Whoever knows the prototype classes and metrics builds it; this package only reads it. Also what a type
expects, in words, and whether a value has the right shape for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from agenteval_tui.core.phrasing import listed
from agenteval_tui.uxon.strings import quote
from agenteval_tui.uxon.tree import Node

ScalarKind = Literal["string", "integer", "number", "boolean", "null", "any", "regex"]


class ScalarType(Struct, frozen=True):
    """One plain value. Types are exact: 5 is not a string, "5" is not an integer, true is not a number.

    `regex` is a string that holds a regular expression (bare, or as PHP writes it; see php_regex). `enum` lists the
    only strings or numbers allowed; `minimum` and `maximum` bound numbers, inclusive. `any` accepts every value.
    """

    kind: ScalarKind
    enum: tuple[Any, ...] = ()
    minimum: float | None = None
    maximum: float | None = None


class ArrayType(Struct, frozen=True):
    """A list of values of one type."""

    item: Type


class MapType(Struct, frozen=True):
    """An object with free names and values of one type (the arguments of a tool)."""

    value: Type


class UnionType(Struct, frozen=True):
    """A value of any of these types. Put the one that people usually mean first."""

    options: tuple[Type, ...]


class Property(Struct, frozen=True):
    """A property of an object. `aliases` are other names that are accepted silently. `facts` says which seen names fit
    here, at any depth below: one of `uxon.name_source`' names, or "". `examples` are values worth offering here: for
    the property, an item of its list, or a value of its map.
    """

    name: str
    type: Type
    required: bool = False
    doc: str = ""
    default: Any = None
    aliases: tuple[str, ...] = ()
    facts: str = ""
    examples: tuple[Any, ...] = ()


def _as_it_is(name: str) -> str:
    return name


class Variants(Struct, frozen=True):
    """An object whose other properties depend on the string in its property `discriminator`.

    `options` holds the variants by their short name; `normalise` brings what people write ("axenox.GenAI.TextMatch")
    to that name.
    """

    options: Mapping[str, ObjectType]
    discriminator: str = "type"
    normalise: Callable[[str], str] = _as_it_is
    noun: str = "metric"


class ObjectType(Struct, frozen=True, dict=True):
    """An object with these properties, and those of its variant. `extra` allows any other property as well."""

    name: str
    doc: str = ""
    properties: tuple[Property, ...] = ()
    variants: Variants | None = None
    extra: bool = False

    @cached_property
    def _by_name(self) -> dict[str, Property]:
        by_name: dict[str, Property] = {}
        for prop in self.properties:
            for name in (prop.name, *prop.aliases):
                by_name.setdefault(name, prop)
        return by_name

    def property(self, name: str) -> Property | None:
        """The property of that name or alias, without those of variants."""
        return self._by_name.get(name)


Type = ScalarType | ArrayType | MapType | UnionType | ObjectType


_SINGULAR = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "any": "any value",
    "regex": "a regular expression in a string",
}
_PLURAL = {
    "string": "strings",
    "integer": "whole numbers",
    "number": "numbers",
    "boolean": "true or false values",
    "null": "nulls",
    "any": "values",
    "regex": "regular expressions",
}


def expected(kind: Type) -> str:
    """`a list of strings`, `true or false`, `an object`, ..."""
    if isinstance(kind, ScalarType):
        if kind.enum:
            return "one of " + listed([shown(value) for value in kind.enum], 12, "or")
        return _SINGULAR[kind.kind]
    if isinstance(kind, ArrayType):
        item = kind.item
        if isinstance(item, ScalarType):
            return "a list of " + _PLURAL[item.kind]
        return "a list of objects" if isinstance(item, (ObjectType, MapType)) else "a list"
    if isinstance(kind, UnionType):
        words: list[str] = []
        for option in kind.options:
            if expected(option) not in words:
                words.append(expected(option))
        return " or ".join(words)
    return "an object"


def found(node: Node) -> str:
    """What a value is: `a string`, `a list`, `true`, ..."""
    if node.kind == "literal":
        return {True: "true", False: "false", None: "null"}[node.value]
    if node.kind == "number":
        return "a whole number" if isinstance(node.value, int) else str(node.value)
    return {"array": "a list", "object": "an object", "string": "a string"}.get(node.kind, "nothing")


def shown(value: object) -> str:
    """A plain value as it is written, cut where it is long."""
    if isinstance(value, str):
        text = quote(value)
        return text if len(text) <= 60 else text[:58] + '…"'
    if value is None or isinstance(value, bool):
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


def fits(node: Node, kind: Type) -> bool:
    """Whether the value is of that kind at all; what is inside of lists and objects is not looked at."""
    if isinstance(kind, ScalarType):
        return _scalar_fits(node, kind)
    if isinstance(kind, ArrayType):
        return node.kind == "array"
    if isinstance(kind, UnionType):
        return any(fits(node, option) for option in kind.options)
    return node.kind == "object"


def _scalar_fits(node: Node, kind: ScalarType) -> bool:
    if kind.kind == "any" or node.kind == "missing":
        return True
    if kind.kind in ("string", "regex"):
        return node.kind == "string"
    if kind.kind == "integer":
        return node.kind == "number" and isinstance(node.value, int)
    if kind.kind == "number":
        return node.kind == "number"
    if kind.kind == "boolean":
        return node.kind == "literal" and node.value is not None
    return node.kind == "literal" and node.value is None
