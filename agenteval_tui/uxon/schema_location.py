"""What the schema says of a place in a config: the way from the root to it, with the types on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.uxon.name_source import TOOL_NAME
from agenteval_tui.uxon.schema import (
    ArrayType,
    MapType,
    ObjectType,
    Property,
    ScalarType,
    Type,
    UnionType,
    Variants,
)
from agenteval_tui.uxon.tree import Document, Member, Node

_ANYTHING = ScalarType("any")


class SchemaLocation(Struct, frozen=True):
    """A place in a config, and what is allowed there.

    `node` is the innermost value around it, `types` what that value may be (unions taken apart; empty: unknown).
    On the name of a member, `name` is that member, `node` the object it belongs to, and `types` those of the object.
    `owner` is the object or list that holds `node`, `member` the innermost member on the way. `property` is the
    nearest property that the schema knows at or above the place, `holder` the object that has it. `free` is the name
    in the nearest map on the way (an argument's name). `variants` is set where the value is the name of a variant.
    """

    node: Node
    types: tuple[Type, ...]
    name: Member | None = None
    owner: Node | None = None
    member: Member | None = None
    property: Property | None = None
    holder: Node | None = None
    holder_types: tuple[Type, ...] = ()
    free: str | None = None
    variants: Variants | None = None

    def tool(self) -> str:
        """The name of the tool that stands beside the property; "" if none does."""
        if self.holder is None:
            return ""
        for kind in self.holder_types:
            for prop in properties_of(self.holder, kind) if isinstance(kind, ObjectType) else ():
                if prop.facts == TOOL_NAME and isinstance(prop.type, ScalarType):
                    member = member_of(self.holder, prop)
                    return str(member.value.value) if member and member.value.kind == "string" else ""
        return ""


def spot_at(document: Document, schema: Type, offset: int) -> SchemaLocation | None:
    """The innermost place around `offset`; None outside of the root."""
    node = document.root
    if node is None or not node.start <= offset <= node.end:
        return None
    spot = SchemaLocation(node, flat(schema))
    while True:
        node = spot.node
        if node.kind == "object":
            member = next((member for member in node.members if member.start <= offset <= member.end), None)
            if member is None:
                return spot
            if offset <= member.key_end and not member.value.start <= offset <= member.value.end:
                return replace(_into(spot, member), node=node, types=spot.types, name=member, owner=spot.owner)
            spot = _into(spot, member)
        elif node.kind == "array":
            item = next((item for item in node.items if item.start <= offset <= item.end), None)
            if item is None:
                return spot
            spot = replace(spot, node=item, types=_items_of(spot.types), owner=node, variants=None)
        else:
            return spot
        # Between the name and its value, or where the value is missing.
        if not spot.node.start <= offset <= spot.node.end:
            return spot


def _into(spot: SchemaLocation, member: Member) -> SchemaLocation:
    """The place of a member's value."""
    node = spot.node
    below = replace(spot, node=member.value, owner=node, member=member, variants=None)
    for kind in objects_of(spot.types):
        if isinstance(kind, MapType):
            return replace(below, types=flat(kind.value), free=member.key if spot.free is None else spot.free)
        variants = kind.variants
        if variants is not None and member.key == variants.discriminator:
            prop = discriminator(variants)
            return SchemaLocation(
                member.value,
                types=(prop.type,),
                owner=node,
                member=member,
                property=prop,
                holder=node,
                holder_types=(kind,),
                variants=variants,
            )
        for prop in properties_of(node, kind):
            if member.key == prop.name or member.key in prop.aliases:
                return SchemaLocation(
                    member.value,
                    types=flat(prop.type),
                    owner=node,
                    member=member,
                    property=prop,
                    holder=node,
                    holder_types=(kind,),
                )
    inner = (_ANYTHING,) if any(_anything(kind) for kind in spot.types) else ()
    return replace(below, types=inner)


def flat(kind: Type) -> tuple[Type, ...]:
    """A type with its unions taken apart."""
    if not isinstance(kind, UnionType):
        return (kind,)
    return tuple(inner for option in kind.options for inner in flat(option))


def objects_of(types: Iterable[Type]) -> list[ObjectType | MapType]:
    """The types of an object there; if a list of objects is expected, the type of its items."""
    objects: list[ObjectType | MapType] = []
    for kind in types:
        for candidate in (kind, *(flat(kind.item) if isinstance(kind, ArrayType) else ())):
            if isinstance(candidate, (ObjectType, MapType)):
                objects.append(candidate)
    return objects


def _items_of(types: Sequence[Type]) -> tuple[Type, ...]:
    """The types of the items of a list there."""
    item_types = tuple(item_type for kind in types if isinstance(kind, ArrayType) for item_type in flat(kind.item))
    return item_types or tuple(kind for kind in types if isinstance(kind, (ObjectType, MapType)) or _anything(kind))


def properties_of(node: Node, kind: ObjectType) -> tuple[Property, ...]:
    """The properties that an object can have: those of its type, and of the variant that it says it is."""
    variant = _variant_of(node, kind)
    return (*kind.properties, *(variant.properties if variant else ()))


def _variant_of(node: Node, kind: ObjectType) -> ObjectType | None:
    """The variant that an object says it is; None when it says nothing, or what is not known."""
    if kind.variants is None:
        return None
    member = node.member(kind.variants.discriminator)
    if member is None or not isinstance(member.value.value, str):
        return None
    return kind.variants.options.get(kind.variants.normalise(member.value.value))


def discriminator(variants: Variants) -> Property:
    """The property that names the variant."""
    kind = ScalarType("string", tuple(variants.options))
    return Property(variants.discriminator, kind, True, f"The type of this {variants.noun}.")


def member_of(node: Node, prop: Property) -> Member | None:
    """The member of an object that is that property, under whichever name; None if it is not there."""
    return next((member for name in (prop.name, *prop.aliases) if (member := node.member(name))), None)


def _anything(kind: Type) -> bool:
    return isinstance(kind, ScalarType) and kind.kind == "any"
