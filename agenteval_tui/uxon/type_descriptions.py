"""What a type expects, in words, and whether a value has the right shape for it."""

from __future__ import annotations

from agenteval_tui.core.phrasing import listed
from agenteval_tui.uxon.schema import ArrayType, MapType, ObjectType, ScalarType, Type, UnionType
from agenteval_tui.uxon.strings import quote
from agenteval_tui.uxon.tree import Node

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
