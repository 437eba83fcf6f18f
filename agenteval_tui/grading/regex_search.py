"""Searching with regular expressions that people wrote (PHP style or bare, see `uxon.php_regex`), with a time limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from agenteval_tui.grading.coded_error import CodedError
from agenteval_tui.grading.codes import Code
from agenteval_tui.uxon import php_regex

if TYPE_CHECKING:
    import regex

TIME_LIMIT = 1.0
"""Seconds that one search may take."""


class PatternError(ValueError):
    """A pattern that cannot be used: why, and the position (characters) in the text as it was written."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class SlowPatternError(CodedError):
    """A search took longer than the time limit."""

    code = Code.SLOW_PATTERN

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern=pattern, seconds=TIME_LIMIT)


class Pattern(Struct, frozen=True):
    """A compiled pattern. `text` is what was written, `body` that without delimiters; `groups` counts its groups."""

    text: str
    body: str
    flags: str
    compiled: regex.Pattern[str]
    groups: int

    def search(self, text: str, nth: int = 1) -> regex.Match[str] | None:
        """The `nth` match in `text` (a match object), or None. Raises `SlowPatternError` after the time limit."""
        matches = self.matches(text, nth)
        return matches[nth - 1] if len(matches) == nth else None

    def matches(self, text: str, at_most: int) -> list[regex.Match[str]]:
        """The first matches in `text`. Raises `SlowPatternError`."""
        try:
            return list(islice(self._matches(text), at_most))
        except TimeoutError:
            raise SlowPatternError(self.text) from None

    def _matches(self, text: str) -> Iterator[regex.Match[str]]:
        # PCRE's flag A (anchored) has no counterpart in `regex`: each match must begin where the one before ended.
        if "A" not in self.flags:
            yield from self.compiled.finditer(text, timeout=TIME_LIMIT)
            return
        position = 0
        while (match := self.compiled.match(text, position, timeout=TIME_LIMIT)) is not None:
            yield match
            # One further after an empty match, or it would be found for ever.
            position = match.end() + (match.end() == match.start())


@lru_cache(maxsize=512)
def compile_pattern(text: str) -> Pattern:
    """Compile `/.../ims` (any PCRE delimiter) or a bare pattern. Raises `PatternError`."""
    if text == "":
        raise PatternError("the pattern is empty", 0)
    compiled = php_regex.compile_pattern(text)
    if isinstance(compiled, php_regex.PatternError):
        raise PatternError(compiled.message, compiled.position)
    return Pattern(text, compiled.parts.pattern, compiled.parts.flags, compiled.regex, compiled.regex.groups)


@lru_cache(maxsize=256)
def compile_with_flags(text: str, flags: str) -> Pattern:
    """`compile_pattern(text)` with more flags ("i", "ms"). Raises `PatternError`."""
    plain = compile_pattern(text)
    if not flags:
        return plain
    # The delimiter is a character that no pattern has, so that nothing in the pattern needs a backslash.
    # A bare pattern knows the letters of all scripts.
    scripts = "u" if plain.body == text else ""
    compiled = php_regex.compile_pattern(f"\x01{plain.body}\x01{plain.flags}{scripts}{flags}")
    if isinstance(compiled, php_regex.PatternError):
        raise PatternError(compiled.message, 0)
    return Pattern(text, plain.body, plain.flags + flags, compiled.regex, compiled.regex.groups)
