"""The pieces of a config text, for the parser and for the editor's colours.

One regular expression and one pass: time grows with the length of the text only, whatever the text is.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

TokenKind = Literal["brace", "bracket", "colon", "comma", "key", "string", "number", "literal", "comment", "error"]


class Token(NamedTuple):
    """The characters `start`..`end` (end exclusive) of a text. A named tuple, because there are many.

    `key` is a property name, quoted or not. `error` is a bare word that is no JSON value; the parser says what it
    could mean. White space (a byte order mark counts as such) is in no token.
    """

    kind: TokenKind
    start: int
    end: int


# Quoted pieces never cross a line: an unclosed quote must not swallow the rest of the text.
_TOKEN = re.compile(
    r"""[\s\ufeff]*(?:
    ("[^"\\\n\r]*(?:\\[^\n\r][^"\\\n\r]*)*")                                      # 1 string
  | ([{}])                                                                        # 2
  | ([\[\]])                                                                      # 3
  | (:)                                                                           # 4
  | (,)                                                                           # 5
  | (-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?=[\s\ufeff,:;"{}\[\]]|/[/*]|\Z))  # 6 number
  | ((?:true|false|null)(?=[\s\ufeff,:;"{}\[\]]|/[/*]|\Z))                             # 7 literal
  | (//[^\n\r]*)                                                                  # 8 line comment
  | (/\*)                                                                         # 9 block comment
  | ('[^'\\\n\r]*(?:\\[^\n\r][^'\\\n\r]*)*' | `[^`\n\r]*` | [“”„‟][^“”„‟"\n\r]*[“”‟])  # 10 other quotes
  | (["'][^\n\r]*)                                                                # 11 an unclosed quote
  | ((?:https?|ftp|file|wss?)://[^\s"',}\]]* | ; | (?:[^\s\ufeff"{}\[\]:,;/]|/(?![/*]))+)  # 12 a bare word
    )""",
    re.VERBOSE,
)
# A string that continues over line ends: its closing quote is the next quote, and what follows it can follow a string.
_OVER_LINES = re.compile(r""""[^"\\]*(?:\\.[^"\\]*)*"(?=[ \t]*(?:[,}\]\n\r]|//|\Z))""", re.DOTALL)
_LONGEST_OVER_LINES = 5000
_REST_OF_LINE = re.compile(r"[^\n\r]*")
_TAIL = " \t]},"
_LONGEST_TAIL = 40
_BARE_KEY = re.compile(r"""["']([\w.~$-]+)[ \t]*(?=:)""")
_PAIRS = {"}": "{", "]": "["}


def tokenize(text: str) -> list[Token]:
    """All tokens of `text` in order. Never raises; every character that is not white space is in exactly one token."""
    tokens: list[Token] = []
    append = tokens.append
    match = _TOKEN.match
    make = tuple.__new__  # half the time of Token(...), and this loop is on the way of every keystroke
    stack: list[str] = []
    name_next = False  # a property name may come: behind { and behind a comma in an object
    previous = -1  # index of the last token that is not a comment
    block_end = text.rfind("*/")  # a comment that begins behind it is not closed
    position = 0
    while token := match(text, position):
        group = token.lastindex
        start = token.start(group or 0)
        position = token.end()
        if group == 1:
            append(make(Token, ("key" if name_next else "string", start, position)))
        elif group == 4:
            if previous >= 0 and tokens[previous].kind in ("string", "number", "literal", "error"):
                append(make(Token, ("colon", start, position)))
                before = tokens[previous]
                tokens[previous] = Token("key", before.start, before.end)
            else:
                append(make(Token, ("colon", start, position)))
            name_next = False
            previous = len(tokens) - 1
            continue
        elif group == 5:
            append(make(Token, ("comma", start, position)))
            name_next = bool(stack) and stack[-1] == "{"
            previous = len(tokens) - 1
            continue
        elif group == 2 or group == 3:
            char = text[start]
            append(make(Token, ("brace" if group == 2 else "bracket", start, position)))
            if char in "{[":
                stack.append(char)
                name_next = char == "{"
            else:
                if stack and stack[-1] == _PAIRS[char]:
                    stack.pop()
                elif _PAIRS[char] in stack[-3:]:  # a closing bracket was forgotten
                    while stack.pop() != _PAIRS[char]:
                        pass
                name_next = False
            previous = len(tokens) - 1
            continue
        elif group == 6:
            append(make(Token, ("number", start, position)))
        elif group == 7:
            append(make(Token, ("literal", start, position)))
        elif group == 8:
            append(make(Token, ("comment", start, position)))
            continue
        elif group == 9:
            if start + 2 <= block_end:
                position = text.index("*/", start + 2) + 2
            else:
                position = _line_end(text, start)
            append(make(Token, ("comment", start, position)))
            continue
        elif group == 10:
            append(make(Token, ("key" if name_next else "string", start, position)))
        elif group == 11 and (whole := _OVER_LINES.match(text, start, start + _LONGEST_OVER_LINES)):
            position = whole.end()
            append(make(Token, ("key" if name_next else "string", start, position)))
        elif group == 11:
            position = _end_of_unclosed(text, start, position, stack, name_next)
            append(make(Token, ("key" if name_next else "string", start, position)))
        else:
            append(make(Token, ("key" if name_next else "error", start, position)))
        name_next = False
        previous = len(tokens) - 1
    return tokens


def _line_end(text: str, start: int) -> int:
    match = _REST_OF_LINE.match(text, start)
    return match.end() if match else len(text)


def _end_of_unclosed(text: str, start: int, end: int, stack: list[str], name_next: bool) -> int:
    """Where an unclosed string was probably meant to end: before `, ] }` at the line's end, or before the colon."""
    if name_next and (key := _BARE_KEY.match(text, start, end)):
        return key.end(1)
    tail_start = start + 1 + len(text[start + 1 : end].rstrip(_TAIL))
    # Brackets belong to the string unless they close what is open here.
    for cut in range(max(tail_start, end - _LONGEST_TAIL), end):
        if _closes(text[cut:end], stack):
            return cut
    return end


def _closes(tail: str, stack: list[str]) -> bool:
    depth = len(stack)
    for char in tail:
        if char in _PAIRS:
            depth -= 1
            if depth < 0 or stack[depth] != _PAIRS[char]:
                return False
    return True
