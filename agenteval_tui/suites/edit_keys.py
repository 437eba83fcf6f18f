"""Setting, adding and taking out one key of an object in a YAML text: proposals, those that change least first.

Whoever takes one reads the result again and compares (`edit_tree`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval_tui.suites import write_scalar
from agenteval_tui.suites.source import body_start
from agenteval_tui.suites.write_block import block_pair
from agenteval_tui.suites.yaml_edit import Edit, ValueEdits, apply, content_end, line_end
from agenteval_tui.suites.yaml_tree import Alias, Mapping, Node, Scalar, compose, plain_data, resolve
from agenteval_tui.text.problems import AgentevalError


@dataclass(frozen=True, slots=True)
class YamlText:
    """A value as a person wrote it, as YAML, with its comments: it is put in as it is, only indented."""

    text: str

    @property
    def node(self) -> Node | None:
        """Its tree; None for nothing. Raises `AgentevalError` (with line and column in the text) when it is wrong."""
        said: list[tuple[int, str, str | None]] = []
        # In the file a line follows it: a block at its end has the line end that it would have there.
        text = self.text if self.text.endswith("\n") else self.text + "\n"
        root, _ = compose(text, lambda code, start, end, message, fix: said.append((start, message, fix)))
        if said:
            start, message, fix = said[0]
            line = self.text.count("\n", 0, start) + 1
            column = start - (self.text.rfind("\n", 0, start) + 1) + 1
            raise AgentevalError(message, where=f"line {line}, column {column}", mend=fix or "")
        return root

    @property
    def value(self) -> Any:
        """What it says, as plain data; None for nothing. Raises `AgentevalError` as `node` does."""
        root = self.node
        return None if root is None else plain_data(root)


def plain_value(value: Any) -> Any:
    """A value to be written, as plain data."""
    return value.value if isinstance(value, YamlText) else value


def yaml_text(node: Node, text: str) -> str:
    """A value as it stands in the file, from the first column on, with "\\n" as line ends; as `YamlText` takes it."""
    real = resolve(node)
    start, end = body_start(node, text), content_end(node, text)
    if isinstance(node, Alias):
        return text[start:end]
    line = text.rfind("\n", 0, start) + 1
    if isinstance(real, Scalar) or real.flow or text[line:start].strip():
        # The columns of the first line count from the value on: the others are moved by as much.
        body = text[start:end].replace("\r\n", "\n")
        column = start - line
        return re.sub(rf"\n {{0,{column}}}", "\n", body) if "\n" in body else body
    column = start - line
    while line > 0 and text[text.rfind("\n", 0, line - 1) + 1 : line].lstrip().startswith("#"):
        line = text.rfind("\n", 0, line - 1) + 1  # comments between the key and its value
    body = text[line:end].replace("\r\n", "\n")
    return "\n".join(one[min(column, len(one) - len(one.lstrip(" "))) :] for one in body.split("\n"))


def own_pairs(owner: Mapping) -> list[tuple[Scalar, Node]]:
    """The pairs that are written in the object itself, not those that `<<` brought."""
    return [(key, value) for key, value in owner.pairs if owner.start <= key.start <= owner.end]


def changed(text: str, key: Scalar, node: Node, value: Any, eol: str, *, in_flow: bool) -> Iterator[str]:
    """The text with another value (no plain text: those are `splice`'s) behind a key that is there."""
    colon = text.find(":", key.end) + 1
    end = max(content_end(node, text), colon)
    column = key.start - (text.rfind("\n", 0, key.start) + 1)
    if isinstance(value, YamlText):
        if not in_flow:
            real = resolve(node)
            start = colon
            rest = text[colon : line_end(text, colon)]
            if not isinstance(real, Scalar) and not real.flow and rest.lstrip().startswith("#"):
                start = colon + len(rest)  # a comment behind the key stays there
            yield apply(text, [Edit(start, end, _raw(value.text, column, eol))])
        value = value.value
    yield apply(text, ValueEdits(text, eol).change(node, value, in_flow=in_flow))
    if not in_flow and isinstance(value, dict | list):
        yield apply(text, [Edit(colon, end, block_pair("", value, column, eol).partition(":")[2])])
    yield apply(text, [Edit(colon, end, " " + write_scalar.flow(value, bare_keys=True))])


def added(
    text: str, owner: Mapping, key: str, value: Any, order: Sequence[str], eol: str, *, in_flow: bool
) -> Iterator[str]:
    """The text with a key more, where `order` (of all keys) has it."""
    pairs = own_pairs(owner)
    if not pairs:
        return
    rank = {name: place for place, name in enumerate(order)}
    mine = rank.get(key, len(order))
    before = [place for place, (one, _) in enumerate(pairs) if rank.get(one.text, len(order)) < mine]
    if in_flow or owner.flow:
        written = f"{key}: {write_scalar.flow(plain_value(value), bare_keys=True)}"
        if before:
            at = content_end(pairs[before[-1]][1], text)
            yield apply(text, [Edit(at, at, ", " + written)])
        else:
            at = pairs[0][0].start
            yield apply(text, [Edit(at, at, written + ", ")])
        return
    first = pairs[0][0].start
    column = first - (text.rfind("\n", 0, first) + 1)
    if isinstance(value, YamlText):
        pair = f"{key}:{_raw(value.text, column, eol)}"
    else:
        pair = block_pair(key, value, column, eol)
    indent = " " * column
    if not before:
        yield apply(text, [Edit(first, first, pair + eol + indent)])
    for place in reversed(before):
        at = line_end(text, content_end(pairs[place][1], text))
        yield apply(text, [Edit(at, at, eol + indent + pair)])
        if place + 1 < len(pairs):
            # A text that owns the blank lines behind it ends where the next key begins.
            at = text.rfind("\n", 0, pairs[place + 1][0].start) + 1
            yield apply(text, [Edit(at, at, indent + pair + eol)])
    end = min(owner.end, len(text))
    lead = "" if text[:end].endswith("\n") or not end else eol
    at = text.rfind("\n", 0, end) + 1 if not lead else end
    yield apply(text, [Edit(at, at, lead + indent + pair + eol)])


def taken_out(text: str, owner: Mapping, key: str) -> Iterator[str]:
    """The text without a key; comments above it stay."""
    pairs = own_pairs(owner)
    place = next((place for place, (one, _) in enumerate(pairs) if one.text == key), None)
    if place is None or len(pairs) == 1:
        return
    one, node = pairs[place]
    end = content_end(node, text)
    if end < one.end:
        end = text.find(":", one.end) + 1
    if owner.flow:
        if place:
            yield apply(text, [Edit(content_end(pairs[place - 1][1], text), end, "")])
        else:
            yield apply(text, [Edit(one.start, pairs[1][0].start, "")])
        return
    line = text.rfind("\n", 0, one.start) + 1
    behind = line_end(text, end)
    following = text.find("\n", behind)
    if text[line : one.start].strip():  # the first of an item: "- id: ..."
        if "#" not in text[behind : pairs[place + 1][0].start]:
            yield apply(text, [Edit(one.start, pairs[place + 1][0].start, "")])
        yield apply(text, [Edit(one.start, behind, "")])
        return
    if following >= 0:
        yield apply(text, [Edit(line, following + 1, "")])
    else:
        cut = line - 2 if text[:line].endswith("\r\n") else max(line - 1, 0)
        yield apply(text, [Edit(cut, behind, "")])


def _raw(written: str, column: int, eol: str) -> str:
    """What stands behind a key's colon: a person's YAML, indented below the key, or on its line where it is short."""
    lines = written.replace("\r\n", "\n").rstrip().split("\n")
    node = YamlText(written).node
    real = resolve(node) if node is not None else None
    on_line = real is None or isinstance(real, Scalar) or real.flow
    if on_line and not lines[0].lstrip().startswith("#"):
        rest = [(" " * (column + 2) + line if line.strip() else "") for line in lines[1:]]
        return " " + eol.join([lines[0].lstrip(), *rest])
    return eol + eol.join(" " * (column + 2) + line if line.strip() else "" for line in lines)
