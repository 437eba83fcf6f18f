"""Putting a new config_uxon into a suite's text, so that nothing else changes.

Proposals are made in the order of how little they change; each is applied, read again and compared with what is
meant: the same tree everywhere but at this value. The first that holds is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from agenteval_tui.core.errors import TextEdit, apply_edits
from agenteval_tui.core.json_values import refuse_constant
from agenteval_tui.suites.config_source import block_indent, body_start
from agenteval_tui.suites.yaml import write
from agenteval_tui.suites.yaml.edit import ValueEdits, column_of, content_end, line_end, line_start, same
from agenteval_tui.suites.yaml.tree import (
    Alias,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    flawless,
    is_null,
    plain_data,
    resolve,
)


def splice(text: str, root: Node, node: Node, new_text: str) -> str | None:
    """`text` with `new_text` as the config at `node` of its tree `root`; None when no way to write it holds.

    Text that is pretty JSON of the YAML value in the file changes nothing. A config written as YAML stays YAML as long
    as `new_text` is plain JSON: only the values that differ are replaced. Otherwise it becomes a text: in the style
    that it had, or as a literal block where it has several lines. The result's value equals `new_text` exactly.
    """
    ways = _Ways(text, root, node)
    # A value that serves several places can't be changed for one of them alone.
    if ways.uses != 1 or ways.key is None:
        return None
    new_text = new_text.replace("\r\n", "\n").replace("\r", "\n")
    real = resolve(node)
    if not isinstance(real, ScalarNode):
        value = _as_json(new_text)
        if value is not None:
            return _first(text, root, node, ways.for_value(value), value)
    elif real.text == new_text and not is_null(real):
        return text
    return _first(text, root, node, ways.for_text(new_text), new_text)


def _first(text: str, root: Node, node: Node, ways: Iterator[list[TextEdit]], expected: object) -> str | None:
    # Of the tree before: whatever a way changes elsewhere, in an alias or a comment that became text, is seen by it.
    meant = fingerprint(root, node)
    for edits in ways:
        result = apply_edits(text, edits)
        if _holds(result, meant, expected):
            return result
    return None


def _holds(result: str, meant: list[Any], expected: object) -> bool:
    root = flawless(result)
    if root is None:
        return False
    matches: list[Node] = []
    if not _matches(meant, root, matches) or len(matches) != 1:
        return False
    value = resolve(matches[0])
    if isinstance(expected, str):
        return isinstance(value, ScalarNode) and value.text == expected and not is_null(value)
    return not isinstance(value, ScalarNode) and same(plain_data(value), expected)


_HOLE = object()


def fingerprint(root: Node, hole: Node) -> list[Any]:
    """The content of a tree except at `hole`: nested tuples, with `_HOLE` in its place."""
    return [_print_of(root, hole)]


def _print_of(node: Node, hole: Node) -> object:
    if node is hole:
        return _HOLE
    real = resolve(node)
    if isinstance(real, ScalarNode):
        return (real.plain, real.text)
    if isinstance(real, SequenceNode):
        return ("list", [_print_of(item, hole) for item in real.items])
    return ("object", [(key.plain, key.text, _print_of(value, hole)) for key, value in real.pairs.items()])


def _matches(meant: list[Any], root: Node, nodes: list[Node]) -> bool:
    return _fits(meant[0], root, nodes)


def _fits(meant: Any, node: Node, nodes: list[Node]) -> bool:
    if meant is _HOLE:
        nodes.append(node)
        return True
    real = resolve(node)
    if isinstance(real, ScalarNode):
        return bool(meant == (real.plain, real.text))
    kind, parts = meant
    if isinstance(real, SequenceNode):
        return (
            kind == "list"
            and len(parts) == len(real.items)
            and all(_fits(part, item, nodes) for part, item in zip(parts, real.items, strict=True))
        )
    return (
        kind == "object"
        and len(parts) == len(real.pairs)
        and all(
            plain == key.plain and name == key.text and _fits(part, value, nodes)
            for (plain, name, part), (key, value) in zip(parts, real.pairs.items(), strict=True)
        )
    )


def _as_json(text: str) -> dict[str, Any] | None:
    """The value of a text that is plain JSON (an object, no key twice, only finite numbers); None otherwise."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(pairs)
        if len(mapping) != len(pairs):
            raise ValueError("a key appears twice")
        return mapping

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class _Ways:
    """The ways to write a new value at `node`: each a list of edits."""

    def __init__(self, text: str, root: Node, node: Node) -> None:
        self.text = text
        self.node = node
        self.key: ScalarNode | None = None
        self.in_flow = False
        self.uses = 0  # how many places of the suite this value serves (more than one through aliases and merges)
        self._find(root, False)
        line = text[line_start(text, node.start) : text.find("\n", node.start) + 1]
        # The line of the value decides: a file may have both line ends. Without one on it, the first line does.
        first = text.find("\n")
        crlf = line.endswith("\r\n") if line else text[max(first - 1, 0) : first + 1] == "\r\n"
        self.eol = "\r\n" if crlf else "\n"

    def _find(self, here: Node, in_flow: bool) -> None:
        if here is self.node:
            self.uses += 1
            return
        real = resolve(here)
        if isinstance(real, SequenceNode):
            for item in real.items:
                self._find(item, in_flow or real.flow)
        elif isinstance(real, MappingNode):
            for key, value in real.pairs.items():
                if value is self.node:
                    self.key, self.in_flow = key, in_flow or real.flow
                self._find(value, in_flow or real.flow)

    def for_value(self, value: dict[str, Any]) -> Iterator[list[TextEdit]]:
        """A JSON object where YAML stands: only what differs; else all of it on one line; else as a text."""
        yield ValueEdits(self.text, self.eol).change(self.node, value, in_flow=self.in_flow)
        yield [self._whole(write.flow(value, bare_keys=True))]
        yield [self._behind_key(write.flow(value, bare_keys=True))]
        yield [self._behind_key(write.flow(value))]

    def for_text(self, new: str) -> Iterator[list[TextEdit]]:
        """A text, in the style of the present value if that can hold it."""
        real = resolve(self.node)
        aliased = isinstance(self.node, Alias)
        quoted = write.double_quoted(new)
        stays_quoted = isinstance(real, ScalarNode) and real.style == '"' and ("\n" in real.text or "\n" not in new)
        in_line = isinstance(real, ScalarNode) and not aliased and real.style not in ("|", ">")
        # A text of several lines is a block for people, unless it was in quotes with several lines before.
        if in_line and isinstance(real, ScalarNode) and ("\n" not in new or stays_quoted):
            yield [self._whole(write.scalar(new, real))]
        if not self.in_flow and (block := self._block(new)) is not None:
            yield [block]
        yield [self._whole(quoted)]
        yield [self._behind_key(quoted)]

    def _whole(self, written: str) -> TextEdit:
        start, end = body_start(self.node, self.text), content_end(self.node, self.text)
        if start == end or self.text[start - 1 : start] == ":":
            written = " " + written  # nothing stood there: `config_uxon:`
        return TextEdit(start, end, written)

    def _behind_key(self, written: str) -> TextEdit:
        """In place of a value that begins on a line below its key."""
        start = self._colon()
        return TextEdit(start, max(content_end(self.node, self.text), start), " " + written)

    def _colon(self) -> int:
        assert self.key is not None
        return self.text.find(":", self.key.end) + 1

    def _block(self, new: str) -> TextEdit | None:
        assert self.key is not None
        parent = column_of(self.text, self.key.start)
        start, end = body_start(self.node, self.text), content_end(self.node, self.text)
        real = resolve(self.node)
        indent = parent + 2
        if isinstance(real, ScalarNode) and real.style in ("|", ">") and not isinstance(self.node, Alias):
            # As it was indented: the lines that stay are not changed.
            indent = block_indent(real, self.text)
            indent = indent if indent > parent else parent + 2
            header = re.compile(r"[|>][0-9+-]*").match(self.text, start)
            rest = self.text[header.end() : line_end(self.text, start)] if header else ""
        elif "\n" in self.text[self.key.end : start]:
            start = self._colon()
            rest = self.text[start : line_end(self.text, start)]
        else:
            rest = self.text[end : line_end(self.text, end)]
            end += len(rest)
        rest = rest.rstrip()
        # Anything but a comment would become part of the block's head.
        if rest.strip() and not rest.lstrip().startswith("#"):
            return None
        literal = write.literal(new, indent=indent, parent=parent, eol=self.eol, header_rest=rest)
        if literal is None:
            return None
        block, owns_blank_lines = literal
        # A block that ends with empty lines takes those of the file behind it into its value.
        if owns_blank_lines:
            end = max(self._blank_lines_end(end), end)
        elif new.endswith("\n") and end >= len(self.text):
            block += self.eol
        if self.text[start - 1 : start] == ":":
            block = " " + block
        return TextEdit(start, end, block)

    def _blank_lines_end(self, end: int) -> int:
        match = re.compile(r"\r?\n(?:[ \t]*\r?\n)*").match(self.text, end)
        return match.end() if match else end
