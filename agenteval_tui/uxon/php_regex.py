"""Regular expressions as people write them: bare, or as PHP wants them (`/pattern/flags`, any PCRE delimiter)."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from agenteval_tui.uxon.pcre_syntax import regex_syntax

if TYPE_CHECKING:
    import regex
    from regex import Match

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
