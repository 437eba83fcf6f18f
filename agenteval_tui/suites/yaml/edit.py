"""Edits of a YAML text that change the fewest characters: values, keys of an object, and items of a list.

Everything here only proposes, those edits first that change least. Whoever applies one reads the result again and
compares (`splice`, `editing.TreeEdit`), so a proposal that turns out to be wrong costs nothing but the next one.

Items of a list are moved, copied and removed with their comments. A comment directly above an item, no deeper than its
dash, belongs to it; a deeper one below it belongs to the item before. A comment that stands apart (after an empty line)
belongs to no item and stays where it is, as do the empty lines between items.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError, TextEdit, apply_edits
from agenteval_tui.suites.config_source import body_start
from agenteval_tui.suites.yaml import write
from agenteval_tui.suites.yaml.tree import (
    Alias,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    compose,
    plain_data,
    resolve,
)
from agenteval_tui.suites.yaml.write import block_pair

Span = tuple[int, int]


def same(left: object, right: object) -> bool:
    """Whether two JSON values are the same, 1, 1.0 and true apart. The order of keys does not matter."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


def line_start(text: str, offset: int) -> int:
    """The beginning of the line of `offset`."""
    return text.rfind("\n", 0, offset) + 1


def column_of(text: str, offset: int) -> int:
    """The column of `offset`, from 0."""
    return offset - line_start(text, offset)


def line_end(text: str, offset: int) -> int:
    """The end of the line of `offset`, before its "\\n" or "\\r\\n"."""
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    return end - 1 if end > offset and text[end - 1] == "\r" else end


def content_end(node: Node, text: str) -> int:
    """Where a value's own text ends: before the line end of a block, and what follows it."""
    if isinstance(node, Alias):
        return node.end
    if isinstance(node, ScalarNode):
        return _block_end(node, text) if node.style in ("|", ">") else node.end
    if node.flow:
        return node.end
    children = _children(node)
    return content_end(children[-1], text) if children else node.end


def _block_end(node: ScalarNode, text: str) -> int:
    start = body_start(node, text)
    end = line_end(text, start)
    stop = min(node.end, len(text))
    lines = node.text.rstrip("\n").count("\n") + 1 if node.text.strip("\n") else 0
    # A literal has a line in the file for each of its value; a folded one has not, and ends with its last word.
    if node.style == "|":
        for _ in range(lines):
            following = text.find("\n", end)
            if following < 0:
                break
            end = line_end(text, following + 1)
        return min(end, stop)
    written = text[start:stop].rstrip()
    return start + len(written)


class ValueEdits:
    """The edits that make a value of a YAML text another JSON value, touching only what differs."""

    def __init__(self, text: str, eol: str) -> None:
        self.text = text
        self.eol = eol
        self.edits: list[TextEdit] = []

    def change(self, node: Node, value: object, *, in_flow: bool) -> list[TextEdit]:
        """The edits (none when the value is the same already)."""
        self._change(node, value, in_flow)
        return self.edits

    def _change(self, node: Node, value: object, in_flow: bool) -> None:
        real = resolve(node)
        if same(plain_data(real), value):
            return
        # An alias is replaced as a whole: its parts are also those of the anchor.
        if not isinstance(node, Alias):
            if (
                isinstance(real, MappingNode)
                and isinstance(value, dict)
                and value
                and self._mapping(real, value, in_flow)
            ):
                return
            if isinstance(real, SequenceNode) and isinstance(value, list) and value and real.items:
                self._sequence(real, value, in_flow)
                return
        self._replace(node, value)

    def _replace(self, node: Node, value: object) -> None:
        real = resolve(node)
        start, end = body_start(node, self.text), content_end(node, self.text)
        if isinstance(real, ScalarNode) and not isinstance(node, Alias):
            written = write.flow(value) if isinstance(value, dict | list) else write.scalar(value, real)
            if start == end and self.text[start - 1 : start] == ":":
                written = " " + written  # nothing stood there: `key:`
        else:
            bare = isinstance(real, MappingNode) and any(key.plain for key in real.pairs)
            written = write.flow(value, bare_keys=bare)
        self.edits.append(TextEdit(start, end, written))

    def _mapping(self, node: MappingNode, value: dict[str, Any], in_flow: bool) -> bool:
        pairs = own_pairs(node)
        # A key that `<<` brought is not written here, and where no key stays there is no place for the new ones.
        if len(pairs) != len(node.pairs) or not any(key.text in value for key, _ in pairs):
            return False
        inside = in_flow or node.flow
        keeps = [key.text in value for key, _ in pairs]
        for (key, old), keep in zip(pairs, keeps, strict=True):
            if keep:
                self._change(old, value[key.text], inside)
        spans = [(key.start, content_end(old, self.text)) for key, old in pairs]
        self._remove(spans, keeps, node.flow)
        keys = {key.text for key, _ in pairs}
        bare = pairs[0][0].plain
        added = [
            f"{write.key_text(key, bare=bare)}: {write.flow(item, bare_keys=bare)}"
            for key, item in value.items()
            if key not in keys
        ]
        last = max(index for index, keep in enumerate(keeps) if keep)
        self._append(added, spans[last][1], pairs[0][0].start, node.flow)
        return True

    def _sequence(self, node: SequenceNode, value: list[Any], in_flow: bool) -> None:
        old = [plain_data(item) for item in node.items]
        # Equal items at both ends are not touched, so what is written around them stays.
        head = 0
        while head < min(len(old), len(value)) and same(old[head], value[head]):
            head += 1
        tail = 0
        while tail < min(len(old), len(value)) - head and same(old[-1 - tail], value[-1 - tail]):
            tail += 1
        replaced = min(len(old), len(value)) - head - tail
        for index in range(head, head + replaced):
            self._change(node.items[index], value[index], in_flow or node.flow)
        spans = [(item.start, content_end(item, self.text)) for item in node.items]
        # The dash is not part of an item's node, and goes with it.
        if not node.flow:
            spans = [(self.text.rfind("-", 0, start), end) for start, end in spans]
        keeps = [index < head + replaced or index >= len(old) - tail for index in range(len(old))]
        self._remove(spans, keeps, node.flow)
        fresh = value[head + replaced : len(value) - tail]
        if fresh:
            bare = any(
                isinstance(mapping := resolve(item), MappingNode) and any(key.plain for key in list(mapping.pairs)[:1])
                for item in node.items
            )
            written = [("" if node.flow else "- ") + write.flow(item, bare_keys=bare) for item in fresh]
            if head + replaced:
                self._append(written, spans[head + replaced - 1][1], spans[0][0], node.flow)
            else:
                self._prepend(written, spans[0][0], node.flow)

    def _remove(self, spans: list[tuple[int, int]], keeps: list[bool], flow: bool) -> None:
        """Take out the entries that are not kept, with the comma or the lines that they had."""
        first = keeps.index(True)
        for index, keep in enumerate(keeps):
            if keep:
                continue
            if index < first:
                # No entry that stays is before it, so there is no end of one to cut from.
                start, end = spans[index][0], spans[index + 1][0]
            elif flow:
                start, end = spans[index - 1][1], spans[index][1]
            else:
                start = line_end(self.text, spans[index - 1][1])
                end = line_end(self.text, spans[index][1])
            self.edits.append(TextEdit(start, end, ""))

    def _append(self, written: list[str], after: int, first_start: int, flow: bool) -> None:
        if not written:
            return
        if flow:
            self.edits.append(TextEdit(after, after, "".join(f", {text}" for text in written)))
            return
        column = column_of(self.text, first_start)
        at = line_end(self.text, after)
        self.edits.append(TextEdit(at, at, "".join(f"{self.eol}{' ' * column}{text}" for text in written)))

    def _prepend(self, written: list[str], before: int, flow: bool) -> None:
        column = column_of(self.text, before)
        between = ", " if flow else f"{self.eol}{' ' * column}"
        self.edits.append(TextEdit(before, before, "".join(text + between for text in written)))


# Setting, adding and taking out one key of an object in a YAML text: proposals, those that change least first


class YamlFragment(Struct, frozen=True):
    """A value as a person wrote it, as YAML, with its comments: it is put in as it is, only indented."""

    text: str

    @property
    def node(self) -> Node | None:
        """Its tree; None for nothing. Raises `AgentevalError` (with line and column in the text) when it is wrong."""
        complaints: list[tuple[int, str, str | None]] = []
        # In the file a line follows it: a block at its end has the line end that it would have there.
        text = self.text if self.text.endswith("\n") else self.text + "\n"
        root, _ = compose(text, lambda code, start, end, message, fix: complaints.append((start, message, fix)))
        if complaints:
            start, message, fix = complaints[0]
            line = self.text.count("\n", 0, start) + 1
            column = column_of(self.text, start) + 1
            raise AgentevalError(message, where=f"line {line}, column {column}", fix=fix or "")
        return root

    @property
    def value(self) -> object:
        """What it says, as plain data; None for nothing. Raises `AgentevalError` as `node` does."""
        root = self.node
        return None if root is None else plain_data(root)


def plain_value(value: object) -> object:
    """A value to be written, as plain data."""
    return value.value if isinstance(value, YamlFragment) else value


def yaml_text(node: Node, text: str) -> str:
    """A value as it is in the file, from the first column on, with "\\n" as line ends, for a `YamlFragment`."""
    real = resolve(node)
    start, end = body_start(node, text), content_end(node, text)
    if isinstance(node, Alias):
        return text[start:end]
    line = line_start(text, start)
    if isinstance(real, ScalarNode) or real.flow or text[line:start].strip():
        # The columns of the first line count from the value on: the others are moved by as much.
        body = text[start:end].replace("\r\n", "\n")
        column = start - line
        return re.sub(rf"\n {{0,{column}}}", "\n", body) if "\n" in body else body
    column = start - line
    while line > 0 and text[line_start(text, line - 1) : line].lstrip().startswith("#"):
        line = line_start(text, line - 1)  # comments between the key and its value
    body = text[line:end].replace("\r\n", "\n")
    return "\n".join(line[min(column, len(line) - len(line.lstrip(" "))) :] for line in body.split("\n"))


def own_pairs(owner: MappingNode) -> list[tuple[ScalarNode, Node]]:
    """The pairs that are written in the object itself, not those that `<<` brought."""
    return [(key, value) for key, value in owner.pairs.items() if owner.start <= key.start <= owner.end]


def _children(node: SequenceNode | MappingNode) -> list[Node]:
    """What is written in a list or an object itself."""
    return node.items if isinstance(node, SequenceNode) else [value for _, value in own_pairs(node)]


def replace_value(text: str, key: ScalarNode, node: Node, value: object, eol: str, *, in_flow: bool) -> Iterator[str]:
    """The text with a different value (not plain text: `splice` does those) for an existing key."""
    colon = text.find(":", key.end) + 1
    end = max(content_end(node, text), colon)
    column = column_of(text, key.start)
    if isinstance(value, YamlFragment):
        if not in_flow:
            real = resolve(node)
            start = colon
            rest = text[colon : line_end(text, colon)]
            if not isinstance(real, ScalarNode) and not real.flow and rest.lstrip().startswith("#"):
                start = colon + len(rest)  # a comment behind the key stays there
            yield apply_edits(text, [TextEdit(start, end, _raw(value.text, column, eol))])
        value = value.value
    yield apply_edits(text, ValueEdits(text, eol).change(node, value, in_flow=in_flow))
    if not in_flow and isinstance(value, dict | list):
        yield apply_edits(text, [TextEdit(colon, end, block_pair("", value, column, eol).partition(":")[2])])
    yield apply_edits(text, [TextEdit(colon, end, " " + write.flow(value, bare_keys=True))])


def add_key(
    text: str, owner: MappingNode, key: str, value: object, order: Sequence[str], eol: str, *, in_flow: bool
) -> Iterator[str]:
    """The text with a key more, where `order` (of all keys) has it."""
    pairs = own_pairs(owner)
    if not pairs:
        return
    rank = {name: place for place, name in enumerate(order)}
    mine = rank.get(key, len(order))
    before = [place for place, (scalar_node, _) in enumerate(pairs) if rank.get(scalar_node.text, len(order)) < mine]
    if in_flow or owner.flow:
        written = f"{key}: {write.flow(plain_value(value), bare_keys=True)}"
        if before:
            at = content_end(pairs[before[-1]][1], text)
            yield apply_edits(text, [TextEdit(at, at, ", " + written)])
        else:
            at = pairs[0][0].start
            yield apply_edits(text, [TextEdit(at, at, written + ", ")])
        return
    first = pairs[0][0].start
    column = column_of(text, first)
    if isinstance(value, YamlFragment):
        pair = f"{key}:{_raw(value.text, column, eol)}"
    else:
        pair = block_pair(key, value, column, eol)
    indent = " " * column
    if not before:
        yield apply_edits(text, [TextEdit(first, first, pair + eol + indent)])
    # The nearest place first; a key before that may end in a text that takes in what follows it.
    for place in reversed(before):
        at = line_end(text, content_end(pairs[place][1], text))
        yield apply_edits(text, [TextEdit(at, at, eol + indent + pair)])
        if place + 1 < len(pairs):
            # A text that owns the blank lines behind it ends where the next key begins.
            at = line_start(text, pairs[place + 1][0].start)
            yield apply_edits(text, [TextEdit(at, at, indent + pair + eol)])
    end = min(owner.end, len(text))
    lead = "" if text[:end].endswith("\n") or not end else eol
    at = line_start(text, end) if not lead else end
    yield apply_edits(text, [TextEdit(at, at, lead + indent + pair + eol)])


def remove_key(text: str, owner: MappingNode, key: str) -> Iterator[str]:
    """The text without a key; comments above it stay."""
    pairs = own_pairs(owner)
    place = next((place for place, (key_node, _) in enumerate(pairs) if key_node.text == key), None)
    # An object without its only key would be null.
    if place is None or len(pairs) == 1:
        return
    key_node, node = pairs[place]
    end = content_end(node, text)
    if end < key_node.end:
        end = text.find(":", key_node.end) + 1
    if owner.flow:
        if place:
            yield apply_edits(text, [TextEdit(content_end(pairs[place - 1][1], text), end, "")])
        else:
            yield apply_edits(text, [TextEdit(key_node.start, pairs[1][0].start, "")])
        return
    line = line_start(text, key_node.start)
    behind = line_end(text, end)
    following = text.find("\n", behind)
    if text[line : key_node.start].strip():  # the first of an item: "- id: ..."
        if "#" not in text[behind : pairs[place + 1][0].start]:
            yield apply_edits(text, [TextEdit(key_node.start, pairs[place + 1][0].start, "")])
        yield apply_edits(text, [TextEdit(key_node.start, behind, "")])
        return
    if following >= 0:
        yield apply_edits(text, [TextEdit(line, following + 1, "")])
    else:
        # The last line has no line end of its own: the one above it goes.
        cut = line - 2 if text[:line].endswith("\r\n") else max(line - 1, 0)
        yield apply_edits(text, [TextEdit(cut, behind, "")])


def _raw(written: str, column: int, eol: str) -> str:
    """The text after a key's colon: a person's YAML, indented below the key, or on its line where it is short."""
    lines = written.replace("\r\n", "\n").rstrip().split("\n")
    node = YamlFragment(written).node
    real = resolve(node) if node is not None else None
    on_line = real is None or isinstance(real, ScalarNode) or real.flow
    if on_line and not lines[0].lstrip().startswith("#"):
        rest = [(" " * (column + 2) + line if line.strip() else "") for line in lines[1:]]
        return " " + eol.join([lines[0].lstrip(), *rest])
    return eol + eol.join(" " * (column + 2) + line if line.strip() else "" for line in lines)


# The items of a YAML list as pieces of text: moving, copying and removing them with the comments that are theirs


def item_column(text: str, listed: SequenceNode) -> int:
    """The column of a block list's dashes."""
    return column_of(text, text.rfind("-", 0, listed.items[0].start))


def spans(text: str, listed: SequenceNode) -> list[Span] | None:
    """Where each item is in the text, with its comments; None when they can't be told apart (`- - a`)."""
    if listed.flow:
        return [(item.start, content_end(item, text)) for item in listed.items]
    places: list[Span] = []
    before = 0
    for item in listed.items:
        dash = text.rfind("-", 0, item.start)
        start = line_start(text, dash)
        if text[start:dash].strip(" ") or start < before:
            return None
        column = dash - start
        while start and (above := line_start(text, start - 1)) >= before and 0 <= _comment(text, above) <= column:
            start = above
        end = line_end(text, _whole_end(item, text))
        while (below := text.find("\n", end)) >= 0 and _comment(text, below + 1) > column:
            end = line_end(text, below + 1)
        places.append((start, end))
        before = end
    return places


def _comment(text: str, start: int) -> int:
    """The column of a line's comment, if the line is nothing else; -1 otherwise."""
    line = text[start : line_end(text, start)]
    bare = line.lstrip(" ")
    return len(line) - len(bare) if bare.startswith("#") else -1


def _whole_end(node: Node, text: str) -> int:
    """Where an item ends; a block that keeps the empty lines behind it ends behind them."""
    end = content_end(node, text)
    last = node
    while not isinstance(last, Alias) and not isinstance(last, ScalarNode) and not last.flow:
        children = _children(last)
        if not children:
            break
        last = children[-1]
    if isinstance(last, ScalarNode) and last.style in ("|", ">") and last.text.endswith("\n\n"):
        return max(end, len(text[: last.end].rstrip(" ").removesuffix("\n").removesuffix("\r")))
    return end


def reorder_items(text: str, listed: SequenceNode, order: Sequence[int]) -> Iterator[str]:
    """The text with its items in a different order; the text between them stays between them."""
    where = spans(text, listed)
    if where is None:
        return
    parts = [text[: where[0][0]]]
    for place, index in enumerate(order):
        start, end = where[index]
        behind = where[place + 1][0] if place + 1 < len(where) else len(text)
        parts += [text[start:end], text[where[place][1] : behind]]
    yield "".join(parts)


def remove_items(text: str, listed: SequenceNode, index: int) -> Iterator[str]:
    """The text without an item (there are others); comments that belong to no item stay."""
    where = spans(text, listed)
    if where is None:
        return
    # With what is between it and a neighbour, unless a comment stands there that belongs to none of them.
    start, end = where[index]
    behind = text[end : where[index + 1][0]] if index + 1 < len(where) else None
    before = text[where[index - 1][1] : start] if index else None
    if behind is not None and "#" not in behind:
        yield apply_edits(text, [TextEdit(start, where[index + 1][0], "")])
    if before is not None and "#" not in before:
        yield apply_edits(text, [TextEdit(where[index - 1][1], end, "")])
    if not listed.flow:
        following = text.find("\n", end)
        yield apply_edits(text, [TextEdit(start, len(text) if following < 0 else following + 1, "")])


def insert_item(text: str, listed: SequenceNode, at: int, item: str, eol: str, *, apart: bool) -> Iterator[str]:
    """The text with `item` (as it is written there: a block item from its line's start) as number `at`.

    Items of a block list are as far apart as the existing ones; `apart`: used if there is only one.
    """
    where = spans(text, listed)
    if where is None:
        return
    if listed.flow:
        gap = ", "
    else:
        between = text[where[0][1] : where[1][0]] if len(where) > 1 else "\n\n" if apart else "\n"
        gap = eol * 2 if between.replace("\r", "").replace(" ", "").startswith("\n\n") else eol
    if at <= 0:
        yield apply_edits(text, [TextEdit(where[0][0], where[0][0], item + gap)])
        return
    end = where[min(at, len(where)) - 1][1]
    yield apply_edits(text, [TextEdit(end, end, gap + item)])
    if at >= len(where) and not listed.flow:
        # A text that owns the blank lines behind it can only be followed at the very end.
        yield (text if text.endswith("\n") else text + eol) + item + eol


def begin_list(text: str, top: MappingNode, key: str, item: Mapping[str, Any], eol: str) -> Iterator[str]:
    """The text with a list of one item at a key of the whole document that is not there, or empty."""
    node, name = top.get(key), top.key(key)
    if node is None or name is None:
        lead = text if not text or text.endswith("\n") else text + eol
        yield f"{lead}{eol}{key}:{eol}{write.block_item(item, column=2, eol=eol)}{eol}"
    elif not isinstance(node, Alias):
        colon = text.find(":", name.end) + 1
        end = max(content_end(node, text), colon)
        behind = line_end(text, end)
        written = write.block_item(item, column=column_of(text, name.start) + 2, eol=eol)
        # A comment behind the key stays on its line.
        yield text[:colon] + text[end:behind] + eol + written + text[behind:]


def has_anchor(node: Node, text: str) -> bool:
    """Whether something in here has a name that aliases use: a copy of it would take the name away."""
    if isinstance(node, Alias):
        return False
    if "&" in text[node.start : body_start(node, text)]:
        return True
    real = resolve(node)
    return not isinstance(real, ScalarNode) and any(has_anchor(child, text) for child in _children(real))
