"""A parsed config text: its values, and where each one is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.strings import source_offset
from agenteval_tui.uxon.tokens import Token

NodeKind = Literal["object", "array", "string", "number", "literal", "missing"]
Path = tuple[str | int, ...]


class Node(Struct, eq=False):
    """A value at the characters `start`..`end` of the text. To be read, not written (not frozen: there are many).

    `value` is plain Python: comments and what is commented out are not in it. `missing` stands where a value should be
    (value None, an empty range). A string with `items` is one that Power UI exported as a list of lines.
    `commented` marks a list item that Power UI's comment keys switch off.
    """

    kind: NodeKind
    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()
    commented: bool = False

    def member(self, key: str) -> Member | None:
        """The member of that name that counts: the last one that is not commented out."""
        for member in reversed(self.members):
            if member.key == key and not member.commented:
                return member
        return None


class Member(Struct, eq=False):
    """A property of an object, from the start of its name to the end of its value. To be read, not written.

    `key_start`..`key_end` holds the quotes, if there are any. `commented` marks comments and what they switch off.
    """

    key: str
    key_start: int
    key_end: int
    value: Node
    start: int
    end: int
    commented: bool = False


class Document(Struct, frozen=True, dict=True):
    """A config text with everything that reading it gave. `value` is what the text means as far as it can be read.

    `root` is None when there is nothing but white space and comments; `value` is then an empty dict.
    """

    text: str
    tokens: Sequence[Token]
    root: Node | None
    value: Any
    diagnostics: tuple[Diagnostic, ...]

    @property
    def broken(self) -> bool:
        """Whether the text has an error that no reader of strict JSON with comments would forgive."""
        return any(d.severity == "error" for d in self.diagnostics)

    @cached_property
    def _token_starts(self) -> list[int]:
        return [token.start for token in self.tokens]

    def token_at(self, offset: int) -> Token | None:
        """The token that holds the character at `offset`, or that ends there."""
        index = bisect_right(self._token_starts, offset) - 1
        for candidate in (index, index - 1):
            if candidate >= 0 and self.tokens[candidate].start <= offset <= self.tokens[candidate].end:
                return self.tokens[candidate]
        return None

    def _way_to(self, offset: int) -> Iterator[tuple[str | int | None, Node]]:
        node = self.root
        step: str | int | None = None
        if node is None or not node.start <= offset <= node.end:
            return
        while node is not None:
            yield step, node
            if not node.start <= offset <= node.end:
                return  # the offset is on the name of this value
            step, node = _child_at(node, offset)

    def node_at(self, offset: int) -> Node | None:
        """The innermost value around `offset`; a property name belongs to its value. None outside of the root."""
        deepest = None
        for _, node in self._way_to(offset):
            deepest = node
        return deepest

    def path_at(self, offset: int) -> Path:
        """Names and list indexes that lead to the value around `offset`; on a property name, to that property."""
        path: list[str | int] = []
        for step, _ in self._way_to(offset):
            if step is not None:
                path.append(step)
        return tuple(path)

    def node(self, path: Sequence[str | int]) -> Node | None:
        """The value at `path`, None when there is none. Commented items of a list count as items here."""
        node = self.root
        for step in path:
            if node is None:
                return None
            if isinstance(step, str):
                member = node.member(step) or next((m for m in reversed(node.members) if m.key == step), None)
                node = member.value if member else None
            else:
                node = node.items[step] if 0 <= step < len(node.items) else None
        return node

    def string_offset(self, node: Node, index: int) -> int:
        """Where character `index` of a string's value is in the text (escapes are counted as what they mean)."""
        if node.kind != "string":
            return node.start
        if not node.items:
            if self.text[node.start : node.start + 1] not in ('"', "'"):
                return min(node.start + index, node.end)
            return source_offset(self.text, node.start, node.end, index)
        gap = len(delimiter_of(str(node.items[0].value)))
        for line in node.items[1:]:
            length = len(str(line.value))
            if index <= length:
                return self.string_offset(line, index)
            index -= length + gap
        return node.end


def _child_at(node: Node, offset: int) -> tuple[str | int | None, Node | None]:
    if node.kind == "object":
        for member in node.members:
            if member.start <= offset <= member.end:
                return member.key, member.value
    for index, item in enumerate(node.items):
        if item.start <= offset <= item.end:
            return index, item
    return None, None


MULTILINE = "// Multiline text delimited by"


def delimiter_of(first_line: str) -> str:
    """What joins the lines of an exported text: given in backticks after MULTILINE; a line feed if absent."""
    mark = first_line[len(MULTILINE) :].strip(" ")
    if mark.startswith("`"):
        mark = mark.strip("`")
    return {"": "\n", "\\n": "\n", "\\r\\n": "\r\n", "\\r": "\r"}.get(mark, mark)
