"""Fenced code blocks of Markdown, as CommonMark 0.31 (section 4.5) has them.

The closing fence is a line of its own and at least as long as the opening one, so code may hold shorter fences, and
fences within its lines. `extract_code_block` doesn't use this: it is documented as Power UI's pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

# More spaces than CommonMark's three: blocks of lists are indented.
_OPENING = re.compile(r"^[ \t]*(?P<fence>`{3,}(?=[^`\r\n]*\r?$)|~{3,})[ \t]*(?P<info>[^\r\n]*)\r?$", re.MULTILINE)
_CLOSING = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*\r?$", re.MULTILINE)


class FencedBlock(Struct, frozen=True):
    """A block of a text. Characters `start`..`end` with its fences; its code is `inner_start`..`inner_end`, without
    the last line break. `language`: the first word after the opening fence, or ""."""

    start: int
    end: int
    inner_start: int
    inner_end: int
    language: str


def fenced_blocks(text: str) -> Iterator[FencedBlock]:
    """The closed blocks, in order. An opening fence that is never closed opens no block: the answer was cut off, or
    the fence is text. Linear in the text's length."""
    closings = list(_CLOSING.finditer(text))
    # The longest fence of each kind from a line on: an opening that none closes need not be searched for.
    longest = [{"`": 0, "~": 0}]
    for line in reversed(closings):
        fence = line["fence"]
        longest.append({**longest[-1], fence[0]: max(longest[-1][fence[0]], len(fence))})
    longest.reverse()
    at = index = 0
    while (opening := _OPENING.search(text, at)) is not None:
        fence = opening["fence"]
        at = opening.end()
        while index < len(closings) and closings[index].start() < at:
            index += 1
        if longest[index][fence[0]] < len(fence):
            continue
        while closings[index]["fence"][0] != fence[0] or len(closings[index]["fence"]) < len(fence):
            index += 1
        closing = closings[index]
        end = max(closing.start() - 1, at)
        end -= text[end - 1] == "\r" and end > at
        words = opening["info"].split(None, 1)
        inner = min(at + 1, end)
        yield FencedBlock(opening.start("fence"), closing.end("fence"), inner, end, words[0] if words else "")
        at = closing.end()


def whole_block(text: str) -> FencedBlock | None:
    """The block that a text is, from its first to its last character."""
    block = next(fenced_blocks(text), None)
    return block if block is not None and (block.start, block.end) == (0, len(text)) else None
