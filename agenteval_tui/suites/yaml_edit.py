"""Changing one value in a YAML text by the fewest edits.

Everything here only proposes: whoever applies edits reads the result again and compares (see `splice`). So a
proposal that turns out to be wrong costs nothing but the next one.
"""

from __future__ import annotations

from typing import Any

from agenteval_tui.suites import write_scalar
from agenteval_tui.suites.source import body_start
from agenteval_tui.suites.yaml_tree import Alias, Mapping, Node, Scalar, Sequence, plain_data, resolve
from agenteval_tui.text.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the characters `start`..`end` of a text by `text`."""

    start: int
    end: int
    text: str


def apply(text: str, edits: list[Edit]) -> str:
    """`text` with the edits made; they must not overlap."""
    for edit in sorted(edits, key=lambda one: (one.start, one.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same, 1, 1.0 and true apart. The order of keys does not matter."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


def line_end(text: str, offset: int) -> int:
    """The end of the line of `offset`, before its "\\n" or "\\r\\n"."""
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    return end - 1 if end > offset and text[end - 1] == "\r" else end


def content_end(node: Node, text: str) -> int:
    """Where a value's own text ends: before the line end of a block, and what follows it."""
    if isinstance(node, Alias):
        return node.end
    if isinstance(node, Scalar):
        return _block_end(node, text) if node.style in ("|", ">") else node.end
    if node.flow:
        return node.end
    children = node.items if isinstance(node, Sequence) else [value for _, value in _own_pairs(node)]
    return content_end(children[-1], text) if children else node.end


def _block_end(node: Scalar, text: str) -> int:
    start = body_start(node, text)
    end = line_end(text, start)
    stop = min(node.end, len(text))
    wanted = node.text.rstrip("\n").count("\n") + 1 if node.text.strip("\n") else 0
    if node.style == "|":
        for _ in range(wanted):
            following = text.find("\n", end)
            if following < 0:
                break
            end = line_end(text, following + 1)
        return min(end, stop)
    written = text[start:stop].rstrip()
    return start + len(written)


def _own_pairs(node: Mapping) -> list[tuple[Scalar, Node]]:
    """The pairs that are written here, without those that `<<` brought."""
    return [(key, value) for key, value in node.pairs if node.start <= key.start <= node.end]


class ValueEdits:
    """The edits that make a value of a YAML text another JSON value, touching only what differs."""

    def __init__(self, text: str, eol: str) -> None:
        self.text = text
        self.eol = eol
        self.edits: list[Edit] = []

    def change(self, node: Node, value: Any, *, in_flow: bool) -> list[Edit]:
        """The edits (none when the value is the same already)."""
        self._change(node, value, in_flow)
        return self.edits

    def _change(self, node: Node, value: Any, in_flow: bool) -> None:
        real = resolve(node)
        if same(plain_data(real), value):
            return
        if not isinstance(node, Alias):
            if isinstance(real, Mapping) and isinstance(value, dict) and value and self._mapping(real, value, in_flow):
                return
            if isinstance(real, Sequence) and isinstance(value, list) and value and real.items:
                self._sequence(real, value, in_flow)
                return
        self._replace(node, value)

    def _replace(self, node: Node, value: Any) -> None:
        real = resolve(node)
        start, end = body_start(node, self.text), content_end(node, self.text)
        if isinstance(real, Scalar) and not isinstance(node, Alias):
            written = write_scalar.flow(value) if isinstance(value, dict | list) else write_scalar.scalar(value, real)
            if start == end and self.text[start - 1 : start] == ":":
                written = " " + written  # nothing stood there: `key:`
        else:
            bare = isinstance(real, Mapping) and any(key.plain for key, _ in real.pairs)
            written = write_scalar.flow(value, bare_keys=bare)
        self.edits.append(Edit(start, end, written))

    def _mapping(self, node: Mapping, value: dict[str, Any], in_flow: bool) -> bool:
        pairs = _own_pairs(node)
        if len(pairs) != len(node.pairs) or not any(key.text in value for key, _ in pairs):
            return False
        inside = in_flow or node.flow
        kept = [key.text in value for key, _ in pairs]
        for (key, old), keep in zip(pairs, kept, strict=True):
            if keep:
                self._change(old, value[key.text], inside)
        spans = [(key.start, content_end(old, self.text)) for key, old in pairs]
        self._remove(spans, kept, node.flow)
        known = {key.text for key, _ in pairs}
        bare = pairs[0][0].plain
        added = [
            f"{write_scalar.key_text(key, bare=bare)}: {write_scalar.flow(one, bare_keys=bare)}"
            for key, one in value.items()
            if key not in known
        ]
        last = max(index for index, keep in enumerate(kept) if keep)
        self._append(added, spans[last][1], pairs[0][0].start, node.flow)
        return True

    def _sequence(self, node: Sequence, value: list[Any], in_flow: bool) -> None:
        old = [plain_data(item) for item in node.items]
        head = 0
        while head < min(len(old), len(value)) and same(old[head], value[head]):
            head += 1
        tail = 0
        while tail < min(len(old), len(value)) - head and same(old[-1 - tail], value[-1 - tail]):
            tail += 1
        changed = min(len(old), len(value)) - head - tail
        for index in range(head, head + changed):
            self._change(node.items[index], value[index], in_flow or node.flow)
        spans = [(item.start, content_end(item, self.text)) for item in node.items]
        if not node.flow:
            spans = [(self._dash(start), end) for start, end in spans]
        kept = [index < head + changed or index >= len(old) - tail for index in range(len(old))]
        self._remove(spans, kept, node.flow)
        fresh = value[head + changed : len(value) - tail]
        if fresh:
            bare = any(
                isinstance(one := resolve(item), Mapping) and one.pairs and one.pairs[0][0].plain for item in node.items
            )
            written = [("" if node.flow else "- ") + write_scalar.flow(one, bare_keys=bare) for one in fresh]
            if head + changed:
                self._append(written, spans[head + changed - 1][1], spans[0][0], node.flow)
            else:
                self._prepend(written, spans[0][0], node.flow)

    def _dash(self, start: int) -> int:
        return self.text.rfind("-", 0, start)

    def _remove(self, spans: list[tuple[int, int]], kept: list[bool], flow: bool) -> None:
        """Take out the entries that are not kept, with the comma or the lines that they had."""
        first = kept.index(True)
        for index, keep in enumerate(kept):
            if keep:
                continue
            if index < first:
                start, end = spans[index][0], spans[index + 1][0]
            elif flow:
                start, end = spans[index - 1][1], spans[index][1]
            else:
                start = line_end(self.text, spans[index - 1][1])
                end = line_end(self.text, spans[index][1])
            self.edits.append(Edit(start, end, ""))

    def _append(self, written: list[str], after: int, first_start: int, flow: bool) -> None:
        if not written:
            return
        if flow:
            self.edits.append(Edit(after, after, "".join(f", {one}" for one in written)))
            return
        column = first_start - (self.text.rfind("\n", 0, first_start) + 1)
        at = line_end(self.text, after)
        self.edits.append(Edit(at, at, "".join(f"{self.eol}{' ' * column}{one}" for one in written)))

    def _prepend(self, written: list[str], before: int, flow: bool) -> None:
        column = before - (self.text.rfind("\n", 0, before) + 1)
        between = ", " if flow else f"{self.eol}{' ' * column}"
        self.edits.append(Edit(before, before, "".join(one + between for one in written)))
