"""Regular expressions as people write them: bare, or as PHP wants them (`/pattern/flags`, any PCRE delimiter).

The package `regex` matches them, and reads some of PCRE otherwise: it takes `(?:foo){e<=1}` for a fuzzy match, and
doesn't know `\\Q...\\E`, `\\k<name>`, `\\x{1F600}`, `\\cA`, `\\g{-1}` and the flags D, U and n. Source:
pcre2pattern(3), and PHP's page "Possible modifiers in regex patterns".
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    import regex
    from regex import Match

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
_CONTROL_CHARACTER = re.compile(r"c([\x20-\x7e])")
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
        elif (control := _CONTROL_CHARACTER.match(text, start)) is not None:
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


_compiling = threading.Lock()

_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_USUAL = "/#~!@%"  # what people use as delimiters and hardly ever begin a bare pattern with
_FLAGS = "imsxuADSUJnX"


class PatternParts(NamedTuple):
    """A pattern without its delimiters. It begins at character `start` of the text; `delimiter` is "" if it is bare."""

    pattern: str
    flags: str
    start: int
    delimiter: str


class PatternError(Struct, frozen=True):
    """Why a text is not a regular expression: one sentence, and the character (0-based, in the text) that it is about.
    `remove`: deleting `length` characters there fixes it.
    """

    message: str
    position: int
    length: int = 1
    remove: bool = False


class CompiledPattern(Struct, frozen=True):
    """A pattern ready to use. `anchored` (PHP's flag A): match at the beginning only."""

    regex: regex.Pattern[str]
    parts: PatternParts

    def search(self, text: str, *, timeout: float | None = None) -> Match[str] | None:
        """The first match in `text`. Raises TimeoutError after `timeout` seconds."""
        find = self.regex.match if "A" in self.parts.flags else self.regex.search
        return find(text, timeout=timeout)


def split_pattern(text: str) -> PatternParts | PatternError:
    """Take the delimiters and flags off `text`.

    What PHP accepts is read as PHP reads it; anything else is a bare pattern. Only where delimiters are surely meant
    (`/foo/g`) are wrong flags an error. A bare pattern may well begin with a slash (`/orders/[0-9]+`).
    """
    opening = text[:1]
    if not opening or opening.isalnum() or opening.isspace() or opening == "\\" or opening == "\0":
        return PatternParts(text, "", 0, "")
    end = _php_end(text, opening)
    if opening == "[" and end == len(text) - 1:
        return PatternParts(text, "", 0, "")  # PHP would look for the characters of this set one after the other
    if end is not None and set(text[end + 1 :].strip()) <= set(_FLAGS):
        return _checked(text, end, opening)
    if opening in _USUAL:
        # A delimiter inside, without its backslash: PHP refuses it, but there is only one thing it can mean.
        end = text.rfind(opening)
        tail = text[end + 1 :].strip()
        if end > 0 and set(tail) <= set(_FLAGS):
            return _checked(text, end, opening)
        # A few letters behind a closing delimiter are flags, one of which is wrong; more of them are a pattern.
        if end > 1 and len(tail) <= 3 and tail.isalpha() and text[end - 1] != "\\":
            at, wrong = next((i, c) for i, c in enumerate(text[end + 1 :]) if c.isalpha() and c not in _FLAGS)
            return _wrong_flag(wrong, end + 1 + at)
    return PatternParts(text, "", 0, "")


def suspicious_delimiter(parts: PatternParts) -> tuple[str, str] | None:
    """A warning, and a clearer text, where PHP's delimiters are characters that may have been meant as they stand."""
    opening, flags = parts.delimiter, parts.flags
    if opening in _USUAL or opening == "{" or (opening == "(" and not flags):
        return None
    closing = _CLOSING.get(opening, opening)
    right = "/" + parts.pattern.replace("\\/", "/").replace("/", "\\/") + "/" + flags
    words = f"{opening} and {closing}" if closing != opening else f"The two {opening}"
    message = (
        f"{words} are read as delimiters here, as in PHP, and are not part of the pattern: write {right[:60]} to "
        "be clear."
    )
    return message, right


def _php_end(text: str, opening: str) -> int | None:
    closing = _CLOSING.get(opening, opening)
    depth = 1
    position = 1
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 1
        elif char == closing:
            depth -= 1
            if depth == 0:
                return position
        elif char == opening:
            depth += 1
        position += 1
    return None


def _checked(text: str, end: int, opening: str) -> PatternParts:
    return PatternParts(text[1:end], text[end + 1 :].strip(), 1, opening)


def _wrong_flag(flag: str, position: int) -> PatternError:
    hint = "all matches are found anyway, " if flag == "g" else ""
    return PatternError(
        f"The flag {flag} is not known here: {hint}remove it (i, m, s and x are known).", position, 1, True
    )


@lru_cache(maxsize=512)
def compile_pattern(text: str) -> CompiledPattern | PatternError:
    """Compile `text` with the `regex` package. Never raises. Cached: the same text gives the same object."""
    parts = split_pattern(text)
    if isinstance(parts, PatternError):
        return parts
    compiled = _compiled(parts)
    if isinstance(compiled, PatternError) and parts.delimiter and not parts.flags and parts.delimiter not in _USUAL:
        # `(?:a|b)`: PHP takes the brackets for delimiters and refuses the rest; as a bare pattern it is fine.
        bare = _compiled(PatternParts(text, "", 0, ""))
        if isinstance(bare, CompiledPattern):
            return bare
    return compiled


def _compiled(parts: PatternParts) -> CompiledPattern | PatternError:
    import regex

    flags = 0
    for name, flag in {"i": regex.I, "m": regex.M, "s": regex.S, "x": regex.X}.items():
        if name in parts.flags:
            flags |= flag
    syntax = regex_syntax(parts.pattern, parts.flags, is_bare=not parts.delimiter)
    try:
        # Catching warnings changes a setting of the whole process: one thread at a time.
        with _compiling, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return CompiledPattern(regex.compile(syntax.pattern, flags | regex.V0), parts)
    except regex.error as error:
        position = getattr(error, "pos", None)
        place = None if position is None else syntax.origin(position)
        return _explained(parts, str(getattr(error, "msg", error)), place)
    except (RecursionError, OverflowError, MemoryError, ValueError, TypeError, IndexError, KeyError) as error:
        return PatternError(f"This pattern cannot be compiled ({type(error).__name__}): simplify it.", parts.start)


_REMEDIES: tuple[tuple[str, str], ...] = (
    ("missing )", "a group is never closed: add ), or write [(] for the character"),
    ("unbalanced parenthesis", "this ) closes nothing: remove it, or write [)] for the character"),
    ("unterminated character set", "a set is never closed: add ], or write [[] for the character"),
    (
        "nothing to repeat",
        "there is nothing before it to repeat: write [*] or the like for the character",
    ),
    ("multiple repeat", "two repetitions follow each other: remove one"),
    ("bad character range", "the range runs backwards: turn it around, or put the hyphen last"),
    ("bad escape", "nothing may be escaped like that: a backslash itself is written \\\\ in a pattern"),
    ("unknown property", "there is no Unicode property of that name"),
    ("look-behind", "this look-behind is not possible"),
    ("missing >", "the group's name is never closed: add >"),
    ("bad group name", "a group's name has letters, digits and _"),
    ("unknown group", "there is no group of that name or number"),
    ("invalid group reference", "there is no group of that number"),
    ("min repeat greater than max repeat", "the first number must not be greater than the second"),
    ("incomplete escape", "an escape is not complete here"),
    ("unknown extension", "(? starts a special group, but not this one: write [(] for the character"),
)


_CONTROL = (
    "\\c is a control character, and its letter is missing: write \\cA, or \\\\c for a backslash and the letter c"
)


def _is_control(pattern: str, place: int) -> bool:
    """Whether the character that an error is about is part of a \\c without its letter, or follows it."""
    for start in (place - 1, place - 2):
        before = pattern[: max(start, 0)]
        if start >= 0 and pattern.startswith("\\c", start) and (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return True
    return False


def _explained(parts: PatternParts, message: str, position: int | None) -> PatternError:
    place = min(max(position or 0, 0), len(parts.pattern))
    opener = _unclosed(parts.pattern, message)
    if opener is not None:
        place = opener
    elif place >= len(parts.pattern) and place:
        place -= 1
    remedy = next((words for key, words in _REMEDIES if key in message), message)
    if _is_control(parts.pattern, place):
        remedy = _CONTROL
    return PatternError(f"The regular expression is broken at character {place + 1}: {remedy}.", parts.start + place)


def _unclosed(pattern: str, message: str) -> int | None:
    """Where the bracket is that an "end of pattern" error is about: the engine says only where the pattern ends."""
    is_bracket: Callable[[str], Any]
    if "missing )" in message:
        is_bracket = "(".__eq__
    elif "unterminated character set" in message:
        is_bracket = "[".__eq__
    else:
        return None
    stack: list[int] = []
    in_set = -1
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            position += 1
        elif in_set >= 0:
            if char == "]" and position > in_set + 1 + (pattern[in_set + 1 : in_set + 2] == "^"):
                in_set = -1
        elif char == "[":
            in_set = position
        elif char == "(":
            stack.append(position)
        elif char == ")" and stack:
            stack.pop()
        position += 1
    if is_bracket("["):
        return in_set if in_set >= 0 else None
    return stack[-1] if stack else None
