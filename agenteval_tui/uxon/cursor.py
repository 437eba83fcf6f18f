"""What is being written at the cursor: the piece that a completion replaces, and what stands around it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from agenteval_tui.uxon.strings import body_range, read_string
from agenteval_tui.uxon.tokens import Token, tokenize

_QUOTES = "\"'`“”„‟"
_WORDS = ("string", "key", "number", "literal", "error")


@dataclass(frozen=True, slots=True)
class Cursor:
    """The characters `start`..`end` are being written; `prefix` is what they mean up to the cursor.

    `before` and `after` are the tokens beside them that are no comments. `quoted` tells whether a quote was typed.
    """

    start: int
    end: int
    prefix: str
    quoted: bool
    before: Token | None
    after: Token | None

    def stands_behind(self, text: str, chars: str) -> bool:
        """Whether the token before is one of these single characters."""
        return self.before is not None and text[self.before.start : self.before.end] in tuple(chars)

    def stands_before(self, text: str, chars: str) -> bool:
        """Whether the token after is one of these single characters."""
        return self.after is not None and text[self.after.start : self.after.end] in tuple(chars)


def cursor_at(text: str, offset: int) -> Cursor | None:
    """What is being written at `offset` (0..len(text)); None in a comment."""
    tokens = tokenize(text)
    index = bisect_right([token.start for token in tokens], offset) - 1
    # A token that begins at the cursor is what follows it; the one before may end right there.
    if index >= 0 and tokens[index].start == offset:
        index -= 1
    token = tokens[index] if index >= 0 and offset <= tokens[index].end else None
    if token is not None and token.kind == "comment" and _inside_comment(text, token, offset):
        return None
    start = end = offset
    prefix, quoted = "", False
    if token is not None and token.kind in _WORDS:
        quoted = text[token.start] in _QUOTES
        closed = quoted and body_range(text, token.start, token.end)[2]
        if not quoted:
            start, end, prefix = token.start, token.end, text[token.start : offset]
        elif not (closed and offset == token.end):
            start = token.start
            prefix = read_string(text, token.start, offset)[0]
            # Where the quote is not closed, the tokenizer's end of the string is a guess: what follows stays.
            end = token.end if closed and _ends_well(text, tokens, index) else offset
    before = next((one for one in reversed(tokens) if one.start < start and one.kind != "comment"), None)
    if end > start and token is not None and end < token.end:
        # Without the piece that is being written, the rest of the text reads otherwise.
        tokens = [Token(one.kind, one.start + end, one.end + end) for one in tokenize(text[end:])]
    after = next((one for one in tokens if one.start >= end and one.kind != "comment"), None)
    return Cursor(start, end, prefix, quoted, before, after)


def _inside_comment(text: str, token: Token, offset: int) -> bool:
    if text.startswith("//", token.start):
        return True
    closed = token.end - token.start >= 4 and text.endswith("*/", token.start, token.end)
    return offset < token.end or not closed


def _ends_well(text: str, tokens: list[Token], index: int) -> bool:
    """Whether what follows a string can follow one; a word right behind it says that its quote opens another one."""
    token = tokens[index]
    return index + 1 >= len(tokens) or tokens[index + 1].start > token.end or tokens[index + 1].kind not in _WORDS
