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
    member = members[index]
    if match := _NEXT_COMMA.match(text, member.end):
        return Fix(title, (TextEdit(member.start, match.end(), ""),))
    own = TextEdit(member.start, member.end, "")
    if match := _BEYOND_COMMENTS.match(text, member.end):
        return Fix(title, (own, TextEdit(match.end(), match.end() + 1, "")))
    if index and (match := _BEYOND_COMMENTS.match(text, members[index - 1].end)):
        if not text[match.end() + 1 : member.start].strip():
            return Fix(title, (TextEdit(match.end(), member.end, ""),))
        return Fix(title, (TextEdit(match.end(), match.end() + 1, ""), own))
    return Fix(title, (own,))


def insert_member(text: str, node: Node, key: str, value: str, title: str) -> Fix:
    """Put a property first into an object, on a line of its own if the others have theirs. `value` is config text."""
    new = f"{quote(key)}: {value}"
    if not node.members:
        return Fix(title, (TextEdit(node.start + 1, node.start + 1, new),))
    start = node.members[0].start
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    indent = _INDENT.search(text, line_start, start)
    alone = indent is not None and indent.start() == line_start > node.start
    gap = ("\n" + text[line_start:start]) if alone else " "
    return Fix(title, (TextEdit(start, start, f"{new},{gap}"),))
