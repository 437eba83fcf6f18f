"""Edits that add or remove a property and leave the rest of the text, comments too, as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agenteval_tui.core.errors import Fix, TextEdit
from agenteval_tui.uxon.strings import quote
from agenteval_tui.uxon.tree import Member, Node

_NEXT_COMMA = re.compile(r"[\s\ufeff]*,[ \t]*(?:\r?\n[ \t]*)?")
_BEYOND_COMMENTS = re.compile(r"(?:[\s\ufeff]+|//[^\n\r]*|/\*(?:[^*]|\*(?!/))*\*/)*(?=,)")
_INDENT = re.compile(r"[ \t]*\Z")


def remove_member(text: str, start: int, members: Sequence[Member], index: int, title: str = "remove it") -> Fix | None:
    """Take a property out of the object that begins at `start`, with the one comma that goes with it.

    None for the root whose braces are missing: they come first.
    """
    if text[start] != "{":
        return None
    return remove_entry(text, members, index, title)


def remove_entry(text: str, entries: Sequence[Member | Node], index: int, title: str) -> Fix:
    """Take one of the properties of an object, or of the entries of a list, out with the one comma that goes with it.

    That is the comma behind it, also beyond a comment; of the last one the comma before it, which would be one too
    many.
    """
    entry = entries[index]
    if match := _NEXT_COMMA.match(text, entry.end):
        return Fix(title, (TextEdit(entry.start, match.end(), ""),))
    own = TextEdit(entry.start, entry.end, "")
    if match := _BEYOND_COMMENTS.match(text, entry.end):
        return Fix(title, (own, TextEdit(match.end(), match.end() + 1, "")))
    if index and (match := _BEYOND_COMMENTS.match(text, entries[index - 1].end)):
        if not text[match.end() + 1 : entry.start].strip():
            return Fix(title, (TextEdit(match.end(), entry.end, ""),))
        return Fix(title, (TextEdit(match.end(), match.end() + 1, ""), own))
    return Fix(title, (own,))


def insert_member(text: str, node: Node, key: str, value: str, title: str) -> Fix:
    """Put a property first into an object, on a line of its own if the others have theirs. `value` is config text."""
    new = f"{quote(key)}: {value}"
    if not node.members:
        return Fix(title, (TextEdit(node.start + 1, node.start + 1, new),))
    start = node.members[0].start
    return Fix(title, (TextEdit(start, start, f"{new},{gap_before(text, start, node.start)}"),))


def gap_before(text: str, start: int, opening: int) -> str:
    """What separates an entry from the one before it: a line end and the indent, if it begins a line; else a space."""
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    indent = _INDENT.search(text, line_start, start)
    alone = indent is not None and indent.start() == line_start > opening
    return "\n" + text[line_start:start] if alone else " "
