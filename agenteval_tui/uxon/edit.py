"""Edits of a config text by the path of a value: what is not edited, comments too, stays as it is written.

Paths count as `Document.value` does: what is commented out is not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from agenteval_tui.core.common_prefix import common_end, common_start
from agenteval_tui.core.errors import Fix, TextEdit
from agenteval_tui.uxon.member_edits import gap_before, insert_member, remove_entry, remove_member
from agenteval_tui.uxon.serialize import to_text
from agenteval_tui.uxon.strings import quote
from agenteval_tui.uxon.tree import Document, Member, Node

Path = tuple[str | int, ...]

_ALONE = re.compile(r"[ \t]*,?[ \t]*(?:\r?\n|\Z)")
_WIDTH = 80


def node_of(document: Document, path: Sequence[str | int]) -> Node | None:
    """The value at `path`; None when there is none."""
    node = document.root
    for step in path:
        if node is None:
            return None
        if isinstance(step, int):
            items = [item for item in node.items if not item.commented] if node.kind == "array" else []
            node = items[step] if 0 <= step < len(items) else None
        else:
            member = node.member(step)
            node = member.value if member is not None else None
    return node


def set_value(document: Document, path: Path, value: object) -> Fix | None:
    """Write another value at `path`. A property that is not there yet is put behind the others of its object."""
    node = node_of(document, path)
    if node is not None:
        return Fix("", (TextEdit(node.start, node.end, _laid_out(document.text, node.start, value)),))
    owner = node_of(document, path[:-1])
    if owner is None or owner.kind != "object" or not path or isinstance(path[-1], int):
        return None
    return _insert(document.text, owner, path[-1], value)


def remove(document: Document, path: Path) -> Fix | None:
    """Take the property or list entry at `path` out, with the comma that goes with it."""
    owner = node_of(document, path[:-1])
    if owner is None or not path:
        return None
    last = path[-1]
    if isinstance(last, str):
        for index, member in enumerate(owner.members):
            if member is owner.member(last):
                return remove_member(document.text, owner.start, owner.members, index)
        return None
    live = [item for item in owner.items if not item.commented]
    if owner.kind != "array" or not 0 <= last < len(live):
        return None
    index = next(number for number, item in enumerate(owner.items) if item is live[last])
    return remove_entry(document.text, owner.items, index, "")


def rename(document: Document, path: Path, name: str) -> Fix | None:
    """Give the property at `path` another name."""
    owner = node_of(document, path[:-1])
    member = owner.member(str(path[-1])) if owner is not None and path else None
    if member is None:
        return None
    return Fix("", (TextEdit(member.key_start, member.key_end, quote(name)),))


def append(document: Document, path: Path, value: object) -> Fix | None:
    """Put a value at the end of the list at `path`."""
    node = node_of(document, path)
    if node is None or node.kind != "array":
        return None
    text = document.text
    if not node.items:
        inside = node.start + 1
        return Fix("", (TextEdit(inside, inside, _laid_out(text, node.start, value)),))
    last = node.items[-1]
    return Fix(
        "",
        (
            TextEdit(
                last.end, last.end, "," + gap_before(text, last.start, node.start) + _laid_out(text, last.start, value)
            ),
        ),
    )


def edits_between(old: str, new: str) -> tuple[TextEdit, ...]:
    """The edits that turn `old` into `new`: line by line, and in each piece only the characters that differ."""
    if old == new:
        return ()
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts, starts_new = _starts(before), _starts(after)
    edits: list[TextEdit] = []
    # Without `autojunk`, which takes frequent lines, such as a lone `}`, for noise in longer texts.
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "replace" and a1 - a0 == b1 - b0:
            for line, new_line in zip(range(a0, a1), after[b0:b1], strict=True):
                edits.append(_trimmed(old, starts[line], starts[line + 1], new_line))
        elif tag != "equal":
            edits.append(_trimmed(old, starts[a0], starts[a1], new[starts_new[b0] : starts_new[b1]]))
    return tuple(edit for edit in edits if edit.text or edit.start < edit.end)


def _trimmed(old: str, start: int, end: int, text: str) -> TextEdit:
    piece = old[start:end]
    same = common_start(piece, text)
    tail = common_end(piece, text, same)
    return TextEdit(start + same, end - tail, text[same : len(text) - tail])


def _starts(lines: Sequence[str]) -> list[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def _insert(text: str, owner: Node, key: str, value: object) -> Fix:
    # Behind the last that counts: what stands behind a `/*` key would be switched off.
    live = [member for member in owner.members if not member.commented]
    if not live:
        return insert_member(text, owner, key, _laid_out(text, owner.start, value), "")
    after: Member = live[-1]
    gap = gap_before(text, after.start, owner.start)
    if "\n" in gap and not _ALONE.match(text, after.end):
        gap = " "  # a comment follows it: the new property joins it on its line
    return Fix("", (TextEdit(after.end, after.end, f",{gap}{quote(key)}: {_laid_out(text, after.start, value)}"),))


def _laid_out(text: str, start: int, value: object) -> str:
    """`value` as text; further lines of it are indented like the line that it begins on."""
    written = json.dumps(value, ensure_ascii=False, default=str)
    if len(written) <= _WIDTH or "\n" not in (long := to_text(value)):
        return written
    written = long
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return written.replace("\n", "\n" + line[: len(line) - len(line.lstrip(" \t"))])
