"""Regular expressions as JSON Schema means them: ECMA-262 with Unicode classes, run by the `regex` package.

Differs from Python's: `\\d`, `\\w` and `\\b` are ASCII, `$` is the very end, `\\p{L}` is a letter, and Python's own
syntax (`(?P<name>...)`, `\\A`, possessive quantifiers) is a mistake. Source: ECMA-262, section 22.2.1, with the flag u.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

_WORD = "0-9A-Z_a-z"
_SPACE = "\\t-\\r \\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
_CLASSES = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": f"[{_WORD}]",
    "W": f"[^{_WORD}]",
    "s": f"[{_SPACE}]",
    "S": f"[^{_SPACE}]",
}
_BOUNDARY = f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"
_NO_BOUNDARY = f"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))"
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_SYNTAX = frozenset("^$\\.*+?()[]{}|/-")
_ANY = "[^\\n\\r\\u2028\\u2029]"
_GROUPS = (":", "=", "!", "<=", "<!")


@lru_cache(maxsize=512)
def compile_ecma(pattern: str) -> regex.Pattern[str]:
    """The compiled pattern; its `search` takes a `timeout`. Raises ValueError with what is wrong."""
    import regex

    try:
        return regex.compile(_Reader(pattern).read(), regex.VERSION1)
    except (regex.error, RecursionError, OverflowError, MemoryError) as problem:
        raise ValueError(f"{problem}") from None


class _Reader:
    """Reads a pattern from left to right and rewrites it in the syntax of `regex` (version 1)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._out: list[str] = []

    def read(self) -> str:
        quantifiable = False
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "\\":
                quantifiable = self._escape()
            elif char == "[":
                self._class()
                quantifiable = True
            elif char == "(":
                self._group()
                quantifiable = False
            elif char in "*+?" or (char == "{" and self._counts()):
                if not quantifiable:
                    raise ValueError(f"there is nothing to repeat at position {self._at}")
                self._quantifier()
                quantifiable = False
            else:
                quantifiable = char not in "^$|"
                self._out.append(self._plain(char))
                self._at += 1
        return "".join(self._out)

    @staticmethod
    def _plain(char: str) -> str:
        if char in ".^$|)":
            return {".": _ANY, "^": "\\A", "$": "\\Z"}.get(char, char)
        return _literal(char)

    def _counts(self) -> int:
        """How long the `{2,3}` here is; 0: it is not one, and the brace is literal."""
        end = self._text.find("}", self._at)
        inside = self._text[self._at + 1 : end] if end > 0 else ""
        first, comma, second = inside.partition(",")
        numbers = first.isascii() and first.isdigit() and (not second or (second.isascii() and second.isdigit()))
        return len(inside) + 2 if inside and numbers and (comma or not second) else 0

    def _quantifier(self) -> None:
        length = self._counts() if self._text[self._at] == "{" else 1
        self._out.append(self._text[self._at : self._at + length])
        self._at += length
        following = self._text[self._at : self._at + 1]
        if following == "?":
            self._out.append("?")
            self._at += 1

    def _group(self) -> None:
        if self._text[self._at + 1 : self._at + 2] != "?":
            self._out.append("(")
            self._at += 1
            return
        rest = self._text[self._at + 2 :]
        for mark in _GROUPS:
            if rest.startswith(mark):
                self._out.append(f"(?{mark}")
                self._at += 2 + len(mark)
                return
        name = rest[1 : rest.find(">")] if rest.startswith("<") and ">" in rest else ""
        if not name.isidentifier():
            raise ValueError(f"`(?{rest[:1]}` at position {self._at} is not known in JSON Schema's patterns")
        self._out.append(f"(?P<{name}>")
        self._at += 4 + len(name)

    def _escape(self) -> bool:
        """What a backslash begins outside of a class. Whether it may be repeated."""
        char = self._text[self._at + 1 : self._at + 2]
        if char in ("b", "B"):
            self._out.append(_BOUNDARY if char == "b" else _NO_BOUNDARY)
            self._at += 2
            return False
        if char == "k":
            end = self._text.find(">", self._at)
            name = self._text[self._at + 3 : end] if self._text[self._at + 2 : self._at + 3] == "<" else ""
            if not name.isidentifier():
                raise ValueError(f"`\\k` at position {self._at} names no group")
            self._out.append(f"(?P={name})")
            self._at = end + 1
            return True
        if char.isascii() and char.isdigit() and char != "0":
            end = self._at + 1
            while self._text[end : end + 1].isascii() and self._text[end : end + 1].isdigit():
                end += 1
            # In a group of its own: a digit that follows is not part of the number.
            self._out.append(f"(?:\\{self._text[self._at + 1 : end]})")
            self._at = end
            return True
        written, _ = self._character()
        self._out.append(written)
        return True

    def _character(self) -> tuple[str, str]:
        """A class or a character that begins with a backslash, rewritten; and the character, "" for a class."""
        start, text = self._at, self._text
        char = text[start + 1 : start + 2]
        self._at += 2
        if char in _CLASSES:
            return _CLASSES[char], ""
        if char in ("p", "P"):
            end = text.find("}", start)
            name = text[start + 3 : end] if text[start + 2 : start + 3] == "{" else ""
            if not name:
                raise ValueError(f"`\\{char}` at position {start} needs a property in braces, such as \\p{{L}}")
            self._at = end + 1
            return f"\\{char}{{{name}}}", ""
        code = self._code(char, start)
        return _literal(code), code

    def _code(self, char: str, start: int) -> str:
        text = self._text
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "0" and not text[start + 2 : start + 3].isdigit():
            return "\0"
        letter = text[start + 2 : start + 3]
        if char == "c" and letter.isascii() and letter.isalpha():
            self._at += 1
            return chr(ord(letter) % 32)
        if char == "x":
            return self._hex(start, start + 2, 2)
        if char == "u" and letter == "{":
            end = text.find("}", start)
            digits = text[start + 3 : end]
            self._at = end + 1
            if end < 0 or not _is_hex(digits) or int(digits, 16) > 0x10FFFF:
                raise ValueError(f"`\\u{{` at position {start} is not a character")
            return chr(int(digits, 16))
        if char == "u":
            # With the flag u, two escapes that are halves of a pair are one character.
            character = self._hex(start, start + 2, 4)
            if "\ud800" <= character <= "\udbff" and text.startswith("\\u", self._at):
                low = text[self._at + 2 : self._at + 6]
                if len(low) == 4 and _is_hex(low) and 0xDC00 <= int(low, 16) <= 0xDFFF:
                    self._at += 6
                    return chr(0x10000 + ((ord(character) - 0xD800) << 10) + int(low, 16) - 0xDC00)
            return character
        if char in _SYNTAX:
            return char
        if not char or (char.isascii() and char.isalnum()):
            raise ValueError(f"`\\{char}` at position {start} is not known in JSON Schema's patterns")
        return char

    def _hex(self, start: int, at: int, length: int) -> str:
        digits = self._text[at : at + length]
        if len(digits) != length or not _is_hex(digits):
            raise ValueError(f"`{self._text[start : at + length]}` at position {start} is not a character")
        self._at = at + length
        return chr(int(digits, 16))

    def _class(self) -> None:
        start = self._at
        self._at += 1
        negated = self._text.startswith("^", self._at)
        self._at += negated
        items: list[tuple[str, str]] = []  # written anew, and the character ("" for a class)
        while True:
            if self._at >= len(self._text):
                raise ValueError(f"the `[` at position {start} is not closed")
            char = self._text[self._at]
            if char == "]":
                self._at += 1
                break
            item = self._class_item()
            if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                if self._at >= len(self._text):
                    raise ValueError(f"the `[` at position {start} is not closed")
                last = self._class_item()
                if not item[1] or not last[1] or item[1] > last[1]:
                    raise ValueError(f"the range that ends at position {self._at} is none")
                items.append((f"{item[0]}-{last[0]}", ""))
            else:
                items.append(item)
        inside = "".join(written for written, _ in items)
        # In ECMA `[]` matches nothing and `[^]` everything; `regex` takes neither.
        if not items:
            self._out.append("[\\s\\S]" if negated else "(?!)")
        else:
            self._out.append(f"[{'^' if negated else ''}{inside}]")

    def _class_item(self) -> tuple[str, str]:
        char = self._text[self._at]
        if char != "\\":
            self._at += 1
            return _literal(char), char
        if self._text.startswith("\\b", self._at):
            self._at += 2
            return _literal("\b"), "\b"
        return self._character()


def _literal(char: str) -> str:
    """A literal character, inside a class and outside."""
    if char.isascii() and char.isalnum():
        return char
    # By its number: `regex` (version 1) has more syntax than ECMA, such as `--` and `&&` between sets.
    return f"\\U{ord(char):08x}"


def _is_hex(digits: str) -> bool:
    return bool(digits) and all(digit in "0123456789abcdefABCDEF" for digit in digits)
