"""What the schema says of the name or value under the cursor."""

from __future__ import annotations

from msgspec import Struct

from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.schema import ArrayType, ObjectType, Property, ScalarType, Type, UnionType, expected, shown
from agenteval_tui.uxon.schema_location import spot_at

_TOKENS = ("key", "string", "number", "literal", "error")


class Hover(Struct, frozen=True):
    """The documentation of the characters `start`..`end`.

    `title` is the property's or variant's name, `type` what is allowed there, in words ("a list of strings"; "" for a
    variant), `default` the default as it is written ("" if there is none), `allowed` the values that are allowed,
    as they are written (empty: not limited), `properties` the names that a variant knows.
    """

    start: int
    end: int
    title: str
    doc: str
    type: str = ""
    required: bool = False
    default: str = ""
    allowed: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """All of it as lines of text."""
        lines = [self.title + (f": {self.type}" if self.type else "") + (" (required)" if self.required else "")]
        lines += [self.doc] if self.doc else []
        lines += [f"default: {self.default}"] if self.default else []
        lines += [f"allowed: {', '.join(self.allowed)}"] if self.allowed else []
        lines += [f"properties: {', '.join(self.properties)}"] if self.properties else []
        return tuple(lines)


def hover(text: str, offset: int, schema: Type) -> Hover | None:
    """What is known of the name or value at `offset`; None where there is none, or nothing is known of it.

    Never raises, whatever the text is. On a value it is the property that the value belongs to; on the name of a
    variant (a metric's type), that variant.
    """
    document = parse(text)
    token = document.token_at(offset)
    if token is None or token.kind not in _TOKENS:
        return None
    spot = spot_at(document, schema, offset)
    if spot is None or spot.property is None:
        return None
    prop = spot.property
    if spot.variants is not None and spot.name is None and isinstance(spot.node.value, str):
        variant = spot.variants.options.get(spot.variants.normalise(spot.node.value))
        if variant is None:
            return _of_property(token.start, token.end, prop)
        names = tuple(prop.name for prop in variant.properties)
        return Hover(token.start, token.end, variant.name, variant.doc, properties=names)
    return _of_property(token.start, token.end, prop)


def _of_property(start: int, end: int, prop: Property) -> Hover:
    default = "" if prop.default is None else shown(prop.default)
    allowed = tuple(shown(value) for value in _allowed(prop.type))
    return Hover(
        start,
        end=end,
        title=prop.name,
        doc=prop.doc,
        type=_in_words(prop.type),
        required=prop.required,
        default=default,
        allowed=allowed,
    )


def _in_words(kind: Type) -> str:
    """As messages say it, with the bounds of numbers."""
    if isinstance(kind, ScalarType) and kind.enum:
        return "a string" if kind.kind == "string" else "one of these values"
    words = expected(kind)
    if isinstance(kind, ScalarType):
        words += f", at least {kind.minimum:g}" if kind.minimum is not None else ""
        words += f", at most {kind.maximum:g}" if kind.maximum is not None else ""
    return words


def _allowed(kind: Type) -> tuple[object, ...]:
    if isinstance(kind, ScalarType):
        return kind.enum
    if isinstance(kind, ArrayType):
        return _allowed(kind.item)
    if isinstance(kind, UnionType):
        return tuple(value for option in kind.options for value in _allowed(option))
    if isinstance(kind, ObjectType) and kind.variants is not None:
        return tuple(kind.variants.options)
    return ()
