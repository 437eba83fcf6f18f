"""PCRE's syntax in that of the `regex` package, where the two differ.

`regex` takes `(?:foo){e<=1}` for a fuzzy match, and doesn't know `\\Q...\\E`, `\\k<name>`, `\\x{1F600}`, `\\cA`,
`\\g{-1}` and the flags D, U and n. Source: pcre2pattern(3), and PHP's page "Possible modifiers in regex patterns".
"""

from __future__ import annotations

import re

from msgspec import Struct

_COUNTS = re.compile(r"\{(?:\d+(?:,\d*)?|,\d+)\}")
_HEX = re.compile(r"x(?:\{\s*([0-9A-Fa-f]+)\s*\}|([0-9A-Fa-f]{0,2}))")
_OCTAL = re.compile(r"o\{([0-7]+)\}")
_NAMED = re.compile(r"k(?:<(\w+)>|'(\w+)'|\{(\w+)\})")
_GROUP = re.compile(r"g(?:\{(-?\d+|\w+)\}|(-?\d+))")
_CALL = re.compile(r"g(?:<([-+]?\d+|\w+)>|'([-+]?\d+|\w+)')")
_BRACED = re.compile(r"[pPN]\{[^}]*\}")
_POSIX = re.compile(r"\[:\^?\w+:\]")
_QUOTED_NAME = re.compile(r"\(\?'(\w+)'")
# Without the flag u they know ASCII only. Inside of a set: the characters as ranges.
_ASCII = {
    "d": r"0-9",
    "D": r"\x00-/:-\U0010ffff",
    "w": r"0-9A-Z_a-z",
    "W": r"\x00-/:-@\[-\^`{-\U0010ffff",
    "s": r"\t-\r\x20",
    "S": r"\x00-\x08\x0e-\x1f!-\U0010ffff",
}
_CONTROL = re.compile(r"c([\x20-\x7e])")
_W = "[0-9A-Z_a-z]"
_BOUNDARIES = {
    "b": f"(?:(?<={_W})(?!{_W})|(?<!{_W})(?={_W}))",
    "B": f"(?:(?<={_W})(?={_W})|(?<!{_W})(?!{_W}))",
}
_PLAIN = frozenset("\\^$.|?*+()[]{}-#&~ \t\n\r\v\f")


class RegexSyntax(Struct, frozen=True):
    """A pattern for `regex`. `origins`: for each of its characters the one of the PCRE pattern that it comes from."""

    pattern: str
    origins: list[int]

    def origin(self, position: int) -> int:
        """The character of the PCRE pattern that a position of this one is about."""
        if position < len(self.origins):
            return self.origins[position]
        return self.origins[-1] + 1 if self.origins else 0


def regex_syntax(pattern: str, flags: str, *, is_bare: bool) -> RegexSyntax:
    """The pattern as `regex` reads it. What neither of the two knows stays as it is, for `regex` to refuse.

    `is_bare`: it was written without delimiters, so its classes know all scripts.
    """
    return _Reader(pattern, flags, ascii_only=not is_bare and "u" not in flags).read()


class _Reader:
    def __init__(self, text: str, flags: str, *, ascii_only: bool) -> None:
        self._text = text
        self._ascii_only = ascii_only
        self._lazy = "U" in flags
        self._end_only = "D" in flags and "m" not in flags
        self._no_captures = "n" in flags
        self._verbose = "x" in flags
        self._at = 0
        self._groups = 0
        self._out: list[str] = []
        self._origins: list[int] = []

    def read(self) -> RegexSyntax:
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char == "\\":
                self._escape(in_set=False)
            elif char == "[":
                self._set()
            elif char == "(":
                self._opening()
            elif char == "#" and self._verbose:
                end = text.find("\n", self._at)
                self._copy(end if end >= 0 else len(text))
            elif char in "*+?" or char == "{":
                self._quantifier()
            elif char == "$" and self._end_only:
                self._put("\\Z", 1)
            else:
                self._copy(self._at + 1)
        return RegexSyntax("".join(self._out), self._origins)

    def _put(self, written: str, length: int) -> None:
        """`written` in place of the next `length` characters."""
        self._out.append(written)
        self._origins.extend([self._at] * len(written))
        self._at += length

    def _copy(self, end: int) -> None:
        self._out.append(self._text[self._at : end])
        self._origins.extend(range(self._at, end))
        self._at = end

    def _escape(self, *, in_set: bool) -> None:
        text, start = self._text, self._at + 1
        following = text[start : start + 1]
        if following == "Q":
            end = text.find("\\E", start + 1)
            self._literal(start + 1, end if end >= 0 else len(text))
            self._at = end + 2 if end >= 0 else len(text)
        elif following == "E":
            self._at += 2  # one without its \Q means nothing
        elif (code := _HEX.match(text, start)) is not None:
            self._character(int(code[1] or code[2] or "0", 16), code.end())
        elif (code := _OCTAL.match(text, start)) is not None:
            self._character(int(code[1], 8), code.end())
        elif (control := _CONTROL.match(text, start)) is not None:
            self._character(ord(control[1].upper()) ^ 0x40, control.end())
        elif following == "e":
            self._character(0x1B, start + 1)
        elif self._ascii_only and following in _ASCII:
            ranges = _ASCII[following]
            self._put(ranges if in_set else f"[{ranges}]", 2)
        elif in_set:
            self._copy(min(start + 1, len(text)))
        elif (name := _NAMED.match(text, start)) is not None:
            self._put(f"(?P={name[1] or name[2] or name[3]})", name.end() - self._at)
        elif (group := _GROUP.match(text, start)) is not None:
            which = group[1] or group[2]
            # Counted back from here: `regex` knows only the number from the beginning.
            if which.startswith("-"):
                which = str(self._groups + 1 + int(which))
            # In a group of its own: a digit may follow.
            self._put(f"(?:\\{which})" if which.isdigit() else f"(?P={which})", group.end() - self._at)
        elif (call := _CALL.match(text, start)) is not None:
            which = call[1] or call[2]
            if which[0] in "+-":
                which = str(self._groups + int(which) + (which[0] == "-"))
            self._put(f"(?{which})" if which.isdigit() else f"(?&{which})", call.end() - self._at)
        elif self._ascii_only and following in _BOUNDARIES:
            self._put(_BOUNDARIES[following], 2)
        elif following == "z":
            self._put("\\Z", 2)
        elif (braced := _BRACED.match(text, start)) is not None:
            self._copy(braced.end())
        else:
            self._copy(min(start + 1, len(text)))

    def _literal(self, start: int, end: int) -> None:
        for self._at in range(start, end):
            char = self._text[self._at]
            self._put(f"\\{char}" if char in _PLAIN else char, 0)

    def _character(self, code: int, end: int) -> None:
        # Beyond the last character: `regex` says that this escape is wrong.
        self._put(f"\\U{code:08x}" if code <= 0x10FFFF else "\\x{", end - self._at)

    def _set(self) -> None:
        text = self._text
        self._copy(self._at + 1)
        if text.startswith("^", self._at):
            self._copy(self._at + 1)
        # The first one of a set is a character of it.
        if text.startswith("]", self._at):
            self._put("\\]", 1)
        while self._at < len(text):
            if text[self._at] == "\\":
                self._escape(in_set=True)
            elif text[self._at] == "]":
                self._copy(self._at + 1)
                return
            elif (named := _POSIX.match(text, self._at)) is not None:
                self._copy(named.end())
            else:
                self._copy(self._at + 1)

    def _opening(self) -> None:
        text = self._text
        if text.startswith("(?#", self._at):
            end = text.find(")", self._at)
            self._copy(end + 1 if end >= 0 else len(text))
        elif (named := _QUOTED_NAME.match(text, self._at)) is not None:
            self._groups += 1
            self._put(f"(?P<{named[1]}>", named.end() - self._at)
        elif text.startswith("(?", self._at):
            self._groups += re.match(r"\(\?(?:P?<(?![=!]))", text[self._at : self._at + 5]) is not None
            self._copy(self._at + 2)  # the ? repeats nothing
            if text.startswith(("+", "-"), self._at) and text[self._at + 1 : self._at + 2].isdigit():
                self._copy(self._at + 1)
        elif self._no_captures and not text.startswith("(*", self._at):
            self._put("(?:", 1)
        else:
            self._groups += not text.startswith("(*", self._at)
            self._copy(self._at + (2 if text.startswith("(*", self._at) else 1))

    def _quantifier(self) -> None:
        text = self._text
        if text[self._at] == "{":
            counts = _COUNTS.match(text, self._at)
            if counts is None:
                self._put("\\{", 1)  # a brace that counts nothing
                return
            self._copy(counts.end())
        else:
            self._copy(self._at + 1)
        if text.startswith("+", self._at):
            self._copy(self._at + 1)
        elif text.startswith("?", self._at):
            # With the flag U the question mark makes it greedy: the meanings are exchanged.
            if self._lazy:
                self._at += 1
            else:
                self._copy(self._at + 1)
        elif self._lazy:
            self._put("?", 0)
