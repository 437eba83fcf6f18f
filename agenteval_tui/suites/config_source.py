"""The text of a `config_uxon` as an editor shows it, and where each of its characters is in the file."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from agenteval_tui.suites.yaml.line_index import LineIndex
from agenteval_tui.suites.yaml.tree import (
    Alias,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    compose,
    plain_data,
    resolve,
    untyped,
)


class _Steps(Struct, frozen=True):
    """Where the characters of a text are in a file."""

    offsets: list[int]  # the text's offsets at which `targets` change; ascending, begins with 0
    targets: list[int]  # the file's offset of each
    stepping: list[bool]  # whether the file's offset grows with the text's until the next entry


class ConfigSource:
    """`text` as an editor shows it. `style`: "literal", "folded", "single", "double", "plain" or "mapping".

    For a mapping the text is pretty JSON made from the YAML. Where its characters stand is found out when somebody
    asks: most configs have no problem that would need a place.
    """

    __slots__ = ("_find", "_steps", "places", "style", "text")

    def __init__(self, text: str, style: str, places: LineIndex, find: Callable[[], _Steps]) -> None:
        self.text = text
        self.style = style
        self.places = places
        self._find = find
        self._steps: _Steps | None = None

    def to_offset(self, offset: int) -> int:
        """The offset in the file's text of an offset in `text`."""
        steps = self._steps
        if steps is None:
            steps = self._steps = self._find()
        # A problem may be behind the last character, as where something is missing.
        offset = min(max(offset, 0), len(self.text))
        index = bisect_right(steps.offsets, offset) - 1
        grown = offset - steps.offsets[index] if steps.stepping[index] else 0
        return steps.targets[index] + grown

    def from_offset(self, offset: int) -> int:
        """The offset in `text` of an offset in the file's text (of a text, not of a mapping): the nearest before it."""
        self.to_offset(0)
        steps = self._steps
        assert steps is not None
        index = max(bisect_right(steps.targets, offset) - 1, 0)
        following = steps.offsets[index + 1] if index + 1 < len(steps.offsets) else len(self.text)
        return min(steps.offsets[index] + max(offset - steps.targets[index], 0), following)

    def to_file(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column, in the file as it is on disk, of an offset in `text`."""
        return self.places.line_and_column(self.to_offset(offset))


_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]*(?:\r?\n[ \t]*)?)+")


def body_start(node: Node, text: str) -> int:
    """Where a value itself begins: behind an anchor or a tag."""
    match = _PROPERTIES.match(text, node.start) if not isinstance(node, Alias) else None
    return match.end() if match else node.start


_STYLES = {"": "plain", "|": "literal", ">": "folded", "'": "single", '"': "double"}


def config_text(written: str) -> str:
    """The text of a config that may be written as a suite's YAML has it: a block mapping becomes JSON, and a key
    `config_uxon` around a config is left out. Any other text is returned as it is.
    """
    if written.lstrip().startswith("{"):
        return written
    problems: list[str] = []
    root, _ = compose(written, lambda code, *_: problems.append(code))
    if root is None or problems or not isinstance(mapping := resolve(root), MappingNode):
        return written
    inner = mapping.get("config_uxon") if len(mapping.pairs) == 1 else None
    return source_of(inner or mapping, written, LineIndex(written)).text


def source_of(node: Node, text: str, places: LineIndex) -> ConfigSource:
    """The source of the value at `node` of the file's `text`."""
    real = resolve(node)
    if isinstance(real, ScalarNode):
        return ConfigSource(real.text, _STYLES[real.style], places, lambda: _steps_of(real, text))
    return ConfigSource(
        json.dumps(plain_data(real), indent=2, ensure_ascii=False), "mapping", places, lambda: _steps_of_mapping(real)
    )


def _steps_of_mapping(node: Node) -> _Steps:
    printer = _Printer()
    printer.write(node, 0)
    return _Steps(printer.offsets, printer.targets, printer.stepping)


def _steps_of(node: ScalarNode, text: str) -> _Steps:
    if node.style == "|" and (by_line := _literal(node, text)) is not None:
        return by_line
    spots = _double_quoted(node, text) if node.style == '"' else _aligned(node, text)
    return _runs(spots)


def _runs(spots: list[int]) -> _Steps:
    """Offsets, one a character (and one for the end), as the points where they don't just count on."""
    offsets = [0]
    targets = [spots[0]]
    for index in range(1, len(spots)):
        if spots[index] != spots[index - 1] + 1:
            offsets.append(index)
            targets.append(spots[index])
    return _Steps(offsets, targets, [True] * len(offsets))


def _literal(node: ScalarNode, text: str) -> _Steps | None:
    """The places of a literal block, line by line: what `_block` finds out character by character.

    None where a line of the value is longer than what is left of the file: it is not as the value says.
    """
    start, end = body_start(node, text), min(node.end, len(text))
    header = _INDICATORS.match(text, start)
    at, indent = (header.end() if header else start), block_indent(node, text)
    offsets: list[int] = []
    targets: list[int] = []
    offset = 0

    def put(target: int) -> None:
        if not offsets or target - targets[-1] != offset - offsets[-1]:
            offsets.append(offset)
            targets.append(target)

    *lines, last = node.text.split("\n")
    for line in lines:
        body = at + _spaces(text, at, end, indent)
        if body + len(line) > end:
            return None
        if line:
            put(body)
        offset += len(line)
        at = _skip_to_newline(text, body + len(line), end)
        put(at)
        offset += 1
        at = _after_newline(text, at, end)
    if last:
        body = at + _spaces(text, at, end, indent)
        if body + len(last) > end:
            return None
        put(body)
        offset += len(last)
        at = body + len(last)
        put(at)
    else:
        put(min(at + _indent_here(text, at, end, indent), end))
    return _Steps(offsets, targets, [True] * len(offsets))


_INDICATORS = re.compile(r"[|>]([0-9+-]*)[^\n]*(?:\n|\Z)")


def _aligned(node: ScalarNode, text: str) -> list[int]:
    """Where each character of a block, plain or single-quoted scalar stands; the last entry is its end."""
    value, end = node.text, min(node.end, len(text))
    at = body_start(node, text)
    if node.style in ("|", ">"):
        header = _INDICATORS.match(text, at)
        at = header.end() if header else at
        return _block(node, text, at, end)
    if node.style == "'":
        at += 1
    spots: list[int] = []
    for char in value:
        if char not in " \n\t":
            while at < end and text[at] != char:
                at += 1
        spots.append(min(at, end))
        if at < end:
            at += 2 if node.style == "'" and text.startswith("''", at) else 1
    spots.append(min(at, end))
    return spots


def _block(node: ScalarNode, text: str, at: int, end: int) -> list[int]:
    indent = block_indent(node, text)
    spots: list[int] = []
    value = node.text
    column_to_skip = indent  # at the start of a line
    for index, char in enumerate(value):
        while column_to_skip and at < end and text[at] == " ":
            at += 1
            column_to_skip -= 1
        column_to_skip = 0
        if char == "\n":
            at = _skip_to_newline(text, at, end)
            spots.append(min(at, end))
            at = _after_newline(text, at, end)
            column_to_skip = indent
        elif char == " " and node.style == ">" and at < end and text[at] in "\r\n":
            spots.append(at)  # a fold: the newline that became a space
            at = _after_newline(text, at, end)
            column_to_skip = indent
        else:
            if at < end and text[at] != char and node.style == ">":
                at = _find_on(text, at, end, char)
            spots.append(min(at, end))
            at += 1
        if node.style == ">" and char == "\n" and index + 1 < len(value) and value[index + 1] != "\n":
            # Folding drops one of several newlines: the text continues after all of them.
            at, column_to_skip = _over_blank_lines(text, at, end, indent)
    spots.append(min(at + _indent_here(text, at, end, column_to_skip), end))
    return spots


def _spaces(text: str, at: int, end: int, most: int) -> int:
    """How many spaces there are from `at` on, up to `most`."""
    count = 0
    while count < most and at + count < end and text[at + count] == " ":
        count += 1
    return count


def _indent_here(text: str, at: int, end: int, width: int) -> int:
    return width if _spaces(text, at, end, width) == width else 0


def _over_blank_lines(text: str, at: int, end: int, indent: int) -> tuple[int, int]:
    while True:
        line_end = text.find("\n", at, end)
        if line_end < 0 or text[at:line_end].strip(" \r"):
            return at, indent
        at = line_end + 1


def _skip_to_newline(text: str, at: int, end: int) -> int:
    while at < end and text[at] in " \t":
        at += 1
    return at


def _after_newline(text: str, at: int, end: int) -> int:
    if text.startswith("\r\n", at):
        return min(at + 2, end)
    return min(at + 1, end)


def _find_on(text: str, at: int, end: int, char: str) -> int:
    position = text.find(char, at, end)
    return position if position >= 0 else at


def block_indent(node: ScalarNode, text: str) -> int:
    """How many spaces the lines of a block scalar's text are indented by in the file."""
    header = _INDICATORS.match(text, body_start(node, text))
    if header is None:
        return 0
    digits = re.sub(r"[+-]", "", header.group(1))
    body = text[header.end() : node.end]
    first = next((line for line in node.text.split("\n") if line.strip(" ")), None)
    if first is not None:
        for line in body.splitlines():
            if line.strip(" "):
                spaces = len(line) - len(line.lstrip(" "))
                return spaces - (len(first) - len(first.lstrip(" ")))
    return (
        int(digits) + _parent_indent(text, body_start(node, text))
        if digits
        else _parent_indent(text, body_start(node, text)) + 2
    )


def _parent_indent(text: str, offset: int) -> int:
    """The column of the key that a value at `offset` belongs to: behind the "- " of its line, if there are any."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    lead = re.match(r"[ ]*(?:-[ ]+)*", line)
    return len(lead.group()) if lead else 0


_WIDTHS = {"x": 2, "u": 4, "U": 8}


_LINE_JOIN = re.compile(r"\\\r?\n[ \t]*")  # an escaped line end, with the next line's indentation: no part of the value


def _double_quoted(node: ScalarNode, text: str) -> list[int]:
    end = min(node.end, len(text)) - 1
    at = body_start(node, text) + 1
    spots: list[int] = []
    for char in node.text:
        while (joined := _LINE_JOIN.match(text, at, end)) is not None:
            at = joined.end()
        if char not in " \t\n":  # behind a fold there may be more white space than the value has
            while at < end and text[at] != char and text[at] in " \t\r\n":
                at += 1
        spots.append(min(at, end))
        at += 2 + _WIDTHS.get(text[at + 1 : at + 2], 0) if text.startswith("\\", at) else 1
    spots.append(min(at, end))
    return spots


class _Printer:
    """Where each part of `json.dumps(value, indent=2, ensure_ascii=False)` of a tree comes from."""

    def __init__(self) -> None:
        self.length = 0
        self.offsets: list[int] = []
        self.targets: list[int] = []
        self.stepping: list[bool] = []

    def write(self, node: Node, depth: int) -> None:
        real = resolve(node)
        place = node.start
        if isinstance(real, ScalarNode):
            self._scalar(real, place)
            return
        opening, closing = "{}" if isinstance(real, MappingNode) else "[]"
        children: list[Any] = list(real.pairs.items()) if isinstance(real, MappingNode) else real.items
        self._put(opening, place)
        for index, child in enumerate(children):
            self._put(("," if index else "") + "\n" + "  " * (depth + 1), place)
            if isinstance(real, MappingNode):
                key, value = child
                self._scalar(ScalarNode(key.text, key.start, key.end, key.style or '"'), key.start, key.style)
                self._put(": ", value.start)
                self.write(value, depth + 1)
            else:
                self.write(child, depth + 1)
        last = max(real.end - 1, real.start) if isinstance(real, MappingNode | SequenceNode) and real.flow else place
        if children:
            self._put("\n" + "  " * depth, last)
        self._put(closing, last)

    def _scalar(self, node: ScalarNode, place: int, file_style: str | None = None) -> None:
        value = untyped(node)
        written = json.dumps(value, ensure_ascii=False)
        style = node.style if file_style is None else file_style
        # Where both write the same characters, offsets count on inside of the value.
        same = written == f'"{value}"' and style in ("", "'", '"') and node.start == place
        if isinstance(value, str) and same and node.end - node.start == len(value) + (2 if style else 0):
            if style:
                self._put(written, place, step=True)
            else:
                self._put('"', place)
                self._put(value, place, step=True)
                self._put('"', node.end)
        else:
            self._put(written, place, step=not isinstance(value, str) and node.start == place)

    def _put(self, text: str, target: int, *, step: bool = False) -> None:
        if text:
            self.offsets.append(self.length)
            self.targets.append(target)
            self.stepping.append(step)
            self.length += len(text)
