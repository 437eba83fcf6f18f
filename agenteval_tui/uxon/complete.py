"""What can be written at the cursor: names, values and variants out of the schema, and facts out of recordings.

The piece at the cursor is replaced by a mark and the text is read again: the parser survives whatever is broken
around it, so the mark is found where the value or name will be.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.errors import Fix, TextEdit
from agenteval_tui.uxon.name_source import ANSWER_TEXT, NO_FACTS, PROBE_NAME, TOOL_ARGUMENTS, TOOL_NAME, Facts
from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.schema import (
    ArrayType,
    MapType,
    ObjectType,
    Property,
    ScalarType,
    Type,
    UnionType,
    expected,
    shown,
)
from agenteval_tui.uxon.schema_location import (
    SchemaLocation,
    discriminator,
    flat,
    member_of,
    objects_of,
    properties_of,
    spot_at,
)
from agenteval_tui.uxon.strings import body_range, quote, read_string
from agenteval_tui.uxon.tokens import Token, tokenize
from agenteval_tui.uxon.tree import Node

MOST_ITEMS = 100
NO_USES: Mapping[str, int] = MappingProxyType({})
Kind = Literal["property", "value", "type", "tool", "argument", "example", "text"]
_MARK = "\ue000completion\ue000"
_QUOTES = "\"'`“”„‟"
_WORDS = ("string", "key", "number", "literal", "error")
_DEEPEST = 4  # objects inside each other that are written at once


class Offer(Struct, frozen=True):
    """One thing that can be written at the cursor. `label` is what a list shows, `kind` where it comes from, `detail`
    the first sentence of its documentation or what type it is. `edits` change the text that it was made for."""

    label: str
    kind: Kind
    detail: str
    edits: tuple[TextEdit, ...]


class Completion(Offer, frozen=True):
    """The same in a config text. `cursor` is the offset in the changed text, `order` the place in the list, best
    first."""

    cursor: int
    order: int

    def apply(self, text: str) -> str:
        """`text` with it written."""
        return Fix(self.label, self.edits).apply(text)


class Skeleton(Struct, frozen=True):
    """Text to put in, and the offset in it where the cursor goes."""

    text: str
    cursor: int

    def between(self, before: str, after: str) -> Skeleton:
        """The same inside of other text."""
        return Skeleton(before + self.text + after, len(before) + self.cursor)


class _Item(NamedTuple):
    label: str  # what the prefix is compared with, too
    kind: Kind
    detail: str
    new: Skeleton


def complete(
    text: str, offset: int, schema: Type, facts: Facts = NO_FACTS, uses: Mapping[str, int] = NO_USES
) -> tuple[Completion, ...]:
    """What can be written at `offset` of `text`, best first; at most MOST_ITEMS. Never raises, whatever the text is.

    An item begins with what is typed already, or holds it somewhere (case does not matter); the first kind comes
    first. Of names and variants of one kind the one that is used more often comes first (`uses`: how often a word
    occurs in existing configs), then the one that begins in the case that was typed. Writing an item into a text that
    could be read gives a text that can be read.
    """
    offset = min(max(offset, 0), len(text))
    cursor = _cursor_at(text, offset)
    if cursor is None:
        return ()
    before, after = text[: cursor.start], text[cursor.end :]
    # A mark stands for what is being written, so the parser tells what may be at this place.
    document = parse(f"{before} {quote(_MARK)} {after}")
    # Behind the blank and the quote: in the mark.
    spot = spot_at(document, schema, cursor.start + 2)
    if spot is None:
        return ()
    if spot.name is not None:
        items = _names(spot, facts) if spot.name.key == _MARK else ()
        renames = cursor.stands_before(text, ":")
        return _written(text, cursor, items, uses, as_name=True, renames=renames)
    # The mark became part of something else, such as a line of an exported text.
    if spot.node.value != _MARK or spot.node.items:
        return ()
    if spot.owner is None and (cursor.before is not None or cursor.after is not None):
        return ()  # beside the config, not in it
    head, opened, name = cursor.prefix.rpartition("{{")
    if opened and "}}" not in name:
        placeholders = _placeholders(text, offset, cursor, head, facts)
        typed = replace(cursor, prefix=f"{head}{{{{{name.strip()}")
        return _written(text, typed, placeholders, uses, as_name=False, in_list=_in_list(spot))
    return _written(text, cursor, _values(spot, facts), uses, as_name=False, in_list=_in_list(spot))


def _placeholders(text: str, offset: int, cursor: Cursor, head: str, facts: Facts) -> Iterator[_Item]:
    """The whole text with each variable, where nothing but the end of the placeholder follows."""
    if text[offset : cursor.end].strip(" }\"'"):
        return
    for name in facts.variables():
        whole = f"{head}{{{{{name}}}}}"
        yield _Item(whole, "example", "a variable of the test", _finished_skeleton(_skeleton_of_value(whole).text))


def _in_list(spot: SchemaLocation) -> bool:
    return spot.owner is not None and spot.owner.kind == "array"


# ---------------------------------------------------------------------- what there is
def _names(spot: SchemaLocation, facts: Facts) -> Iterator[_Item]:
    """The names that the object does not have yet, each with the beginning of its value."""
    node = spot.node
    used_names = {member.key for member in node.members if not member.commented}
    for kind in objects_of(spot.types):
        if isinstance(kind, MapType):
            if spot.property is not None and spot.property.facts == TOOL_ARGUMENTS:
                yield from _arguments(spot, kind, facts, used_names)
            continue
        if kind.variants is not None and kind.variants.discriminator not in used_names:
            prop = discriminator(kind.variants)
            yield _Item(prop.name, "property", prop.doc, _skeleton_of_member(prop))
        for prop in properties_of(node, kind):
            if member_of(node, prop) is None and prop.name not in used_names:
                used_names.add(prop.name)
                yield _Item(prop.name, "property", _first_sentence(prop.doc), _skeleton_of_member(prop))
    if spot.property is not None and any(isinstance(kind, ScalarType) for kind in spot.types):
        # Free values may be objects of a known make ({"$contains": "..."}).
        for example in spot.property.examples:
            if isinstance(example, dict) and len(example) == 1 and not used_names - {_MARK}:
                ((name, value),) = example.items()
                yield _Item(str(name), "example", "", _skeleton_of_value(value).between(f"{quote(str(name))}: ", ""))


def _arguments(spot: SchemaLocation, kind: MapType, facts: Facts, used_names: set[str]) -> Iterator[_Item]:
    tool = spot.tool()
    for name in facts.arguments(tool) if tool else ():
        if name not in used_names:
            observed = facts.values(tool, name)
            detail = f"an argument of {tool}" + (f", as {shown(observed[0])}" if observed else "")
            value = _skeleton_of_value(observed[0]) if observed else _skeleton_of_type(kind.value)
            yield _Item(name, "argument", detail, value.between(f"{quote(name)}: ", ""))


def _values(spot: SchemaLocation, facts: Facts) -> Iterator[_Item]:
    """The values that may stand here."""
    if spot.owner is None:
        yield from _whole(spot)
        return
    siblings = _beside(spot.owner)
    for kind in spot.types:
        yield from _of_type(kind, spot, facts, siblings)


def _of_type(kind: Type, spot: SchemaLocation, facts: Facts, siblings: Sequence[Any]) -> Iterator[_Item]:
    if isinstance(kind, ArrayType):
        # Exact types: where a list is wanted, a value is written as a list of one.
        for option in flat(kind.item):
            for item in _of_type(option, spot, facts, ()):
                yield item._replace(new=item.new.between("[", "]"))
        if not isinstance(kind.item, ObjectType):
            yield _Item("[]", "value", expected(kind), Skeleton("[]", 1))
    elif isinstance(kind, ObjectType):
        yield from _objects(kind)
    elif isinstance(kind, MapType):
        yield _Item("{}", "value", expected(kind), Skeleton("{}", 1))
    elif not isinstance(kind, ScalarType):
        return
    elif spot.variants is not None:
        yield from _variants(spot)
    elif kind.enum:
        for value in kind.enum:
            if value not in siblings:
                yield _Item(_label(value), "value", "", _finished_skeleton(_skeleton_of_value(value).text))
    elif kind.kind == "boolean":
        default = spot.property.default if spot.property is not None else None
        for value in (True, False) if default is not True else (False, True):
            yield _Item(
                shown(value), "value", "the default" if value is default else "", _finished_skeleton(shown(value))
            )
    else:
        yield from _free(kind, spot, facts, siblings)


def _free(kind: ScalarType, spot: SchemaLocation, facts: Facts, siblings: Sequence[Any]) -> Iterator[_Item]:
    """Values out of recordings, then the examples of the schema, then the default."""
    prop = spot.property
    if prop is None:
        return
    textual = kind.kind in ("string", "any")
    candidates: Iterable[Any] = ()
    what: Kind = "example"
    detail = ""
    if prop.facts == TOOL_NAME and textual:
        candidates, what, detail = facts.tools(), "tool", "a tool of the agent"
    elif prop.facts == PROBE_NAME and textual:
        candidates, what, detail = facts.probes(), "example", "a probe of the test"
    elif prop.facts == ANSWER_TEXT and textual:
        candidates, what, detail = facts.texts(), "text", "from an answer"
    elif prop.facts == TOOL_ARGUMENTS and spot.free is not None and (tool := spot.tool()):
        candidates, detail = facts.values(tool, spot.free), f"a value of {spot.free}"
    for value in candidates:
        if value not in siblings:
            yield _Item(_label(value), what, detail, _finished_skeleton(_skeleton_of_value(value).text))
    for value in prop.examples:
        yield _Item(_label(value), "example", "", _skeleton_of_value(value))
    if kind.kind in ("integer", "number") and isinstance(prop.default, (int, float)):
        yield _Item(shown(prop.default), "value", "the default", _finished_skeleton(shown(prop.default)))


def _variants(spot: SchemaLocation) -> Iterator[_Item]:
    """The variants; those first whose properties are there already."""
    variants = spot.variants
    if variants is None or spot.owner is None:
        return
    names = {member.key for member in spot.owner.members if not member.commented} - {variants.discriminator}
    common = {prop.name for kind in spot.holder_types if isinstance(kind, ObjectType) for prop in kind.properties}
    own = names - common
    fitting = sorted(
        variants.options.items(), key=lambda pair: sum(pair[1].property(name) is None for name in own)
    )  # a stable sort: the order of the schema otherwise
    for name, option in fitting:
        yield _Item(name, "type", _first_sentence(option.doc), _finished_skeleton(quote(name)))


def _objects(kind: ObjectType) -> Iterator[_Item]:
    if kind.variants is None:
        yield _Item("{}", "value", _first_sentence(kind.doc), _skeleton_of_object(kind))
        return
    name = quote(kind.variants.discriminator)
    for option, inner in kind.variants.options.items():
        new = _finished_skeleton(f"{{{name}: {quote(option)}").between("", "}")
        yield _Item(option, "type", _first_sentence(inner.doc), new)


def _whole(spot: SchemaLocation) -> Iterator[_Item]:
    """For an empty text: the whole config with its first property."""
    for kind in objects_of(spot.types):
        if isinstance(kind, ObjectType):
            for prop in sorted(kind.properties, key=lambda prop: not isinstance(prop.type, ArrayType)):
                new = _skeleton_of_member(prop).between("{\n  ", "\n}")
                yield _Item(prop.name, "property", _first_sentence(prop.doc), new)


def _beside(owner: Node) -> list[Any]:
    """What the list holds already: nothing is offered twice."""
    return [item.value for item in owner.items if not item.commented] if owner.kind == "array" else []


def _label(value: object) -> str:
    return value if isinstance(value, str) else _skeleton_of_value(value).text


def _first_sentence(doc: str) -> str:
    head, stop, _ = doc.partition(". ")
    return head + "." if stop else doc


# ---------------------------------------------------------------------- how it is written
def _written(
    text: str,
    cursor: Cursor,
    items: Iterable[_Item],
    uses: Mapping[str, int],
    *,
    as_name: bool,
    renames: bool = False,
    in_list: bool = False,
) -> tuple[Completion, ...]:
    """The items that the prefix leaves, as edits; none where nothing can be put in without breaking the text."""
    separate = as_name or in_list
    left_open = cursor.before is None or cursor.stands_behind(text, "{[,")
    if separate and not left_open and cursor.before is not None and cursor.before.kind in ("key", "colon"):
        return ()  # the value before is missing: that comes first
    next_value = cursor.after is not None and not cursor.stands_before(text, "}],:")
    if not separate and next_value and cursor.after is not None and cursor.after.kind != "key":
        return ()  # the value is there already
    if not renames and cursor.stands_before(text, ":"):
        return ()
    comma_before = separate and not left_open and not renames
    comma_after = next_value and not renames
    return tuple(
        _completion(text, cursor, item, order, comma_before=comma_before, comma_after=comma_after, renames=renames)
        for order, item in enumerate(_chosen(items, cursor.prefix, uses))
    )


def _chosen(items: Iterable[_Item], prefix: str, uses: Mapping[str, int]) -> list[_Item]:
    """Those that begin with the prefix, then those that hold it, of each the most used first; each text once."""

    def rank(item: _Item) -> tuple[int, bool]:
        used = uses.get(item.label, 0) if item.kind in ("property", "type") else 0
        return -used, not item.label.startswith(prefix)

    folded_prefix = prefix.casefold()
    begin: dict[str, _Item] = {}
    hold: dict[str, _Item] = {}
    for item in items:
        label = item.label.casefold()
        if label.startswith(folded_prefix):
            begin.setdefault(item.new.text, item)
        elif folded_prefix in label:
            hold.setdefault(item.new.text, item)
    rest = [item for text, item in hold.items() if text not in begin]
    return [*sorted(begin.values(), key=rank), *sorted(rest, key=rank)][:MOST_ITEMS]


def _completion(
    text: str, cursor: Cursor, item: _Item, order: int, *, comma_before: bool, comma_after: bool, renames: bool
) -> Completion:
    new = _finished_skeleton(quote(item.label)) if renames else item.new
    start, end = cursor.start, cursor.end
    if start == end and start and not text[start - 1].isspace() and text[start - 1] not in "{[\ufeff":
        new = new.between(" ", "")
    if comma_after:
        new = Skeleton(new.text + ("," if text[end : end + 1].isspace() else ", "), new.cursor)
    edits: tuple[TextEdit, ...] = (TextEdit(start, end, new.text),)
    at = start + new.cursor
    if comma_before and cursor.before is not None:
        if cursor.before.end == start:
            edits = (TextEdit(start, end, "," + new.text),)
        else:
            edits = (TextEdit(cursor.before.end, cursor.before.end, ","), *edits)
        at += 1
    return Completion(item.label, item.kind, item.detail, edits, at, order)


# What is being written at the cursor: the piece that a completion replaces, and the text around it


class Cursor(Struct, frozen=True):
    """The characters `start`..`end` are being written; `prefix` is what they mean up to the cursor.

    `before` and `after` are the tokens beside them that are not comments.
    """

    start: int
    end: int
    prefix: str
    before: Token | None
    after: Token | None

    def stands_behind(self, text: str, chars: str) -> bool:
        """Whether the token before is one of these single characters."""
        return self.before is not None and text[self.before.start : self.before.end] in tuple(chars)

    def stands_before(self, text: str, chars: str) -> bool:
        """Whether the token after is one of these single characters."""
        return self.after is not None and text[self.after.start : self.after.end] in tuple(chars)


def _cursor_at(text: str, offset: int) -> Cursor | None:
    """What is being written at `offset` (0..len(text)); None in a comment."""
    tokens = tokenize(text)
    index = bisect_right([token.start for token in tokens], offset) - 1
    # A token that begins at the cursor is what follows it; the one before may end right there.
    if index >= 0 and tokens[index].start == offset:
        index -= 1
    token = tokens[index] if index >= 0 and offset <= tokens[index].end else None
    if token is not None and token.kind == "comment" and _inside_comment(text, token, offset):
        return None
    start = end = offset
    prefix = ""
    if token is not None and token.kind in _WORDS:
        quoted = text[token.start] in _QUOTES
        closed = quoted and body_range(text, token.start, token.end)[2]
        if not quoted:
            start, end, prefix = token.start, token.end, text[token.start : offset]
        elif not (closed and offset == token.end):
            start = token.start
            prefix = read_string(text, token.start, offset)[0]
            # Where the quote is not closed, the tokenizer's end of the string is a guess: what follows stays.
            end = token.end if closed and _ends_well(text, tokens, index) else offset
    before = next((token for token in reversed(tokens) if token.start < start and token.kind != "comment"), None)
    if end > start and token is not None and end < token.end:
        # Without the piece that is being written, the rest of the text reads otherwise.
        tokens = [Token(token.kind, token.start + end, token.end + end) for token in tokenize(text[end:])]
    after = next((token for token in tokens if token.start >= end and token.kind != "comment"), None)
    return Cursor(start, end, prefix, before, after)


def _inside_comment(text: str, token: Token, offset: int) -> bool:
    if text.startswith("//", token.start):
        return True
    closed = token.end - token.start >= 4 and text.endswith("*/", token.start, token.end)
    return offset < token.end or not closed


def _ends_well(text: str, tokens: list[Token], index: int) -> bool:
    """Whether what follows a string can follow one; a word right after it means that its quote opens a different
    one."""
    token = tokens[index]
    return index + 1 >= len(tokens) or tokens[index + 1].start > token.end or tokens[index + 1].kind not in _WORDS


def _finished_skeleton(text: str) -> Skeleton:
    """Text with nothing more to write in it."""
    return Skeleton(text, len(text))


def _skeleton_of_value(value: object) -> Skeleton:
    """A JSON value as it is; the cursor is in its first empty string, list or object, else behind it.

    What JSON has no word for (infinity, a value that holds itself) is written as a string.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return _finished_skeleton(quote(type(value).__name__ if isinstance(value, (dict, list)) else str(value)))
    places = [at + 1 for hole in ('""', "[]", "{}") if (at := text.find(hole)) >= 0]
    return Skeleton(text, min(places, default=len(text)))


def _skeleton_of_type(kind: Type, default: object = None, depth: int = 0) -> Skeleton:
    """The least that is a value of that type, in valid JSON; with the cursor where the person decides."""
    if isinstance(kind, UnionType):
        return _skeleton_of_type(kind.options[0], default, depth)
    if isinstance(kind, ArrayType):
        return (
            Skeleton("[]", 1) if depth >= _DEEPEST else _skeleton_of_type(kind.item, None, depth + 1).between("[", "]")
        )
    if isinstance(kind, MapType):
        return Skeleton("{}", 1)
    if isinstance(kind, ObjectType):
        return _skeleton_of_object(kind, depth)
    if kind.kind == "boolean":
        return _finished_skeleton("false" if default is True else "true")  # who writes it down wants the other one
    if kind.kind in ("integer", "number"):
        return _finished_skeleton(_number(kind, default))
    return _finished_skeleton("null") if kind.kind == "null" else Skeleton('""', 1)


def _skeleton_of_object(kind: ObjectType, depth: int = 0) -> Skeleton:
    """An object with what it needs: the name of its variant first."""
    needed = [prop for prop in kind.properties if prop.required]
    if kind.variants is not None:
        return Skeleton('""', 1).between(f"{{{quote(kind.variants.discriminator)}: ", "}")
    if not needed or depth >= _DEEPEST:
        return Skeleton("{}", 1)
    parts = [_skeleton_of_member(prop, depth + 1) for prop in needed]
    rest = "".join(f", {part.text}" for part in parts[1:])
    return parts[0].between("{", rest + "}")


def _skeleton_of_member(prop: Property, depth: int = 0) -> Skeleton:
    """A property with the beginning of its value."""
    return _skeleton_of_type(prop.type, prop.default, depth).between(f"{quote(prop.name)}: ", "")


def _number(kind: ScalarType, default: object) -> str:
    if isinstance(default, (int, float)) and not isinstance(default, bool):
        return json.dumps(default)
    value: float = 1
    if kind.minimum is not None:
        value = max(value, kind.minimum)
    if kind.maximum is not None:
        value = min(value, kind.maximum)
    return str(int(value)) if value == int(value) else json.dumps(value)
