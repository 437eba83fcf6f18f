"""Reading large JSON files value by value: a list's elements, or values one after another (JSON Lines).

No more than one element (and a little) is in memory at a time. What is broken or cut off is told, the rest is read.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import IO, Any

from msgspec import Struct

LARGEST = 64_000_000
"""No single element may be longer than this many characters: it would have to be in memory as a whole."""

NOT_UTF8 = "bytes that are not UTF-8 were replaced by \ufffd"

_CHUNK = 1 << 16
# Not strict: many programs write line breaks and tabs into strings as they are.
_DECODER = json.JSONDecoder(strict=False)
_OUTSIDE = re.compile(r'["\[\]{},]')
_IN_STRING = re.compile(r'(?:[^"\\]+|\\.)*', re.DOTALL)
_WHOLE_CHARS = re.compile(r'(?:[^"\\]+|\\u[0-9a-fA-F]{4}|\\[^u])*', re.DOTALL)  # of a string: no half escape
_INSIDE = re.compile(r'["\\\n]')
_LITERALS = ("true", "false", "null", "NaN", "-Infinity", "Infinity")
_WHITE = " \t\r\n"
_SPACE = re.compile(f"[{_WHITE}]*")


def wide_encoding(begin: bytes) -> str:
    """The encoding of JSON that is not UTF-8, told by its first bytes: JSON begins with ASCII. "": it is UTF-8."""
    encoding = json.detect_encoding(begin[:4]) if len(begin) >= 4 else ""
    return encoding if encoding.startswith(("utf-16", "utf-32")) else ""


class JsonElement(Struct, frozen=True):
    """One value of the file. `number` counts from 1; `line` is where it begins, from 1.

    `container` is the number (from 1) of the top-level list whose element it is; None: it is at the top itself.
    `shortened`: where in it something was left out because it was too large, and what.
    """

    value: Any
    number: int
    line: int
    container: int | None = None
    shortened: tuple[tuple[str, str], ...] = ()


class BrokenElement(Struct, frozen=True):
    """Something that could not be read, at `line`: why, in words. `cut_off`: the file ends in the middle of it.

    `note`: no value is missing for it; it is said of the file.
    """

    reason: str
    number: int
    line: int
    cut_off: bool = False
    note: bool = False
    container: int | None = None


Reduce = Callable[["RawText", int], tuple[Any, tuple[tuple[str, str], ...]]]
"""Reads the value at a position without what makes it too large: (value, where what was left out)."""


def read_values(
    file: IO[bytes], *, chunk: int = _CHUNK, largest: int = LARGEST, reduce: Reduce | None = None
) -> Iterator[JsonElement | BrokenElement]:
    """The values of a JSON or JSON Lines file, one after another, in constant memory.

    A list at the top level is opened: its elements are the values. Everything else at the top level is a value.
    A value that can't be read gives `BrokenElement`, and reading continues after it if its end can be found. `reduce`
    reads what is too large; without it such a value is broken.
    """
    text = RawText(file, chunk)
    number = 0
    container = 0
    while text.next_char():
        if text.next_char() == "[":
            container += 1
            for element in _elements(text, number, container, largest, reduce):
                number = max(number, element.number)
                yield element
            continue
        number += 1
        line = text.line
        try:
            value, shortened = _value(text, largest, reduce)
            yield JsonElement(value, number, line, None, shortened)
        except UnreadableFile as error:
            yield BrokenElement(error.reason, number, line, error.cut_off)
            # Where it ends is not known: the next line that begins like a value is where reading goes on.
            text.skip_to_next_top_value()
    if text.replaced:
        yield BrokenElement(NOT_UTF8, number, text.line, note=True)


def _value(text: RawText, largest: int, reduce: Reduce | None) -> tuple[Any, tuple[tuple[str, str], ...]]:
    try:
        return text.value(largest), ()
    except TooLarge:
        if reduce is None:
            raise
    return reduce(text, largest)


def _elements(
    text: RawText, number: int, container: int, largest: int, reduce: Reduce | None
) -> Iterator[JsonElement | BrokenElement]:
    text.step()
    while True:
        char = text.next_char()
        if char == "":
            yield BrokenElement("the file ends before its list is closed", number, text.line, True, True, container)
            return
        if char == "]":
            text.step()
            return
        # Commas are not counted: a list with one too many is read all the same.
        if char == ",":
            text.step()
            continue
        number += 1
        line = text.line
        try:
            value, shortened = _value(text, largest, reduce)
            yield JsonElement(value, number, line, container, shortened)
        except UnreadableFile as error:
            yield BrokenElement(error.reason, number, line, error.cut_off, container=container)
            if error.cut_off or not text.skip_element():
                if not error.cut_off:
                    yield BrokenElement("the end of a broken value was not found", number, line, True, True, container)
                text.skip_to_end()
                return


class UnreadableFile(Exception):  # noqa: N818  (part of the API)
    """Text that is not a JSON value, or ends in the middle of one (`cut_off`)."""

    def __init__(self, reason: str, *, cut_off: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cut_off = cut_off


class TooLarge(UnreadableFile):
    """A value has more characters than are read at once."""


class RawText:
    """A window of decoded text that moves over the file. `line` is that of the current position."""

    def __init__(self, file: IO[bytes], chunk: int) -> None:
        self._file = file
        self._chunk = chunk
        self._pending = b""
        self._wide: codecs.IncrementalDecoder | None = None
        self._text = ""
        self._at = 0
        self._ended = False
        self._dropped = 0
        self.line = 1
        self.replaced = False
        self._read(self._chunk)
        # Some editors on Windows begin a file so. It is no part of the JSON.
        if self._text.startswith("\ufeff"):
            self._at = 1

    @property
    def consumed(self) -> int:
        """Characters before the current position."""
        return self._dropped + self._at

    def next_char(self) -> str:
        """The next character that is not white space, without taking it; "" at the end of the file."""
        if self._at < len(self._text) and (char := self._text[self._at]) not in _WHITE:
            return char  # nearly always
        while True:
            match = _SPACE.match(self._text, self._at)
            assert match is not None
            self._move_to(match.end())
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read(self._chunk):
                return ""

    def step(self) -> None:
        """Take one character."""
        self.line += self._text.startswith("\n", self._at)
        self._at += 1

    def take_small(self, window: int) -> tuple[bool, Any]:
        """(True, the value at the current position) if it ends within `window` characters; else nothing is taken.

        Raises `UnreadableFile` when it is nested so deep that it can't be decoded.
        """
        while len(self._text) - self._at < window and self._read(self._chunk):
            pass
        try:
            value, end = _DECODER.raw_decode(self._text, self._at)
        # Python's decoder calls itself for each level.
        except RecursionError:
            raise UnreadableFile("nested too deep") from None
        except ValueError:
            return False, None
        # As in `value`: a number at the end of the window may go on.
        if not self._ended and end > len(self._text) - 3 and isinstance(value, (int, float)):
            return False, None
        self._move_to(end)
        return True, value

    def skip_string(self) -> int:
        """Move past the string that begins here, however long it is; returns its number of characters.

        Raises `UnreadableFile`.
        """
        self.step()
        length = 0
        while True:
            match = _IN_STRING.match(self._text, self._at)
            assert match is not None
            length += match.end() - self._at
            self._move_to(match.end())
            if self._at < len(self._text) and self._text[self._at] == '"':
                self.step()
                return length
            # The window ends here, in the middle of an escape or not.
            if not self._read(self._chunk):
                raise UnreadableFile("the file ends in the middle of it", cut_off=True)

    def begin_of_string(self, most: int) -> str:
        """The first `most` characters, as they are written, of the string that begins here; nothing is taken.

        Raises `UnreadableFile`: there is an escape in them that JSON does not know.
        """
        while len(self._text) - self._at <= most and self._read(self._chunk):
            pass
        match = _WHOLE_CHARS.match(self._text, self._at + 1, self._at + 1 + most)
        assert match is not None
        # A half escape at the end of the window is left for the next one; six characters that are no escape are wrong.
        if match.end() + 6 <= self._at + 1 + most and self._text.startswith("\\u", match.end()):
            raise UnreadableFile("not valid JSON: Invalid \\uXXXX escape")
        try:
            text: str = json.loads(f'"{match.group()}"', strict=False)
        except json.JSONDecodeError as error:
            raise UnreadableFile(f"not valid JSON: {error.msg}") from None
        return text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text  # half a character

    def value(self, largest: int) -> Any:
        """The JSON value at the current position. Raises `UnreadableFile` and stays where it is."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # Before what is wrong is said: of a file that ends too early people are told that.
                if self._ended and self._is_cut_off(error):
                    raise UnreadableFile("the file ends in the middle of it", cut_off=True) from None
                if self._ended or not self._may_go_on(error):
                    raise UnreadableFile(f"not valid JSON: {error.msg}") from None
            except RecursionError:
                raise UnreadableFile("nested too deep") from None
            except ValueError as error:
                raise UnreadableFile(f"not readable: {error}") from None
            else:
                # At the window's end a number may go on: "1" could be the beginning of "1e+5".
                if self._ended or end <= len(self._text) - 3 or not isinstance(value, (int, float)):
                    self._move_to(end)
                    return value
            have = len(self._text) - self._at
            if have > largest:
                raise TooLarge(f"larger than {largest:,} characters")
            self._read(max(self._chunk, have))  # doubling: the work stays proportional to the length

    def skip_element(self) -> bool:
        """Move to the comma or bracket behind a broken element of a list; False when there is none."""
        depth = 0
        in_string = False
        while True:
            match = (_INSIDE if in_string else _OUTSIDE).search(self._text, self._at)
            if match is None:
                self._move_to(len(self._text))
                if not self._read(self._chunk):
                    return False
                continue
            char = match.group()
            if not in_string and depth == 0 and char in ",]":
                self._move_to(match.start())
                return True
            self._move_to(match.end())
            if char == "\\":
                if self._at == len(self._text) and not self._read(self._chunk):
                    return False
                self.step()
            elif char in '"\n':
                # JSON has no newline within a string: one is a chance to find the way back after a lost quote.
                in_string = char == '"' and not in_string
            elif char in "[{":
                depth += 1
            elif char in "]}":
                # A closing bracket too many is part of what is broken, and ends nothing around it.
                depth = max(depth - 1, 0)

    def skip_to_next_top_value(self) -> None:
        """Move to the next line that begins with a bracket: where the next value of JSON Lines is."""
        while True:
            position = min(
                (at for at in (self._text.find("\n{", self._at), self._text.find("\n[", self._at)) if at >= 0),
                default=-1,
            )
            if position >= 0:
                self._move_to(position + 1)
                return
            # The newline may be the window's last character.
            self._move_to(max(self._at, len(self._text) - 1))
            if not self._read(self._chunk):
                self._move_to(len(self._text))
                return

    def skip_to_end(self) -> None:
        """Leave out the rest of the file."""
        self._move_to(len(self._text))
        while self._read(self._chunk):
            self._move_to(len(self._text))

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Whether more text could fix this error: only if it is at the window's end, or a string has no end yet."""
        # The longest literal, or an escape, that the window may have cut.
        near_end = error.pos >= len(self._text) - 16
        return near_end or error.msg.startswith("Unterminated string") or not self._text[error.pos :].strip()

    def _is_cut_off(self, error: json.JSONDecodeError) -> bool:
        """At the end of the file: did the text stop in the middle of a value (or is it wrong)?"""
        rest = self._text[error.pos :].strip()
        unfinished = error.msg.startswith("Unterminated string") or ("escape" in error.msg and len(rest) < 7)
        return unfinished or not rest or any(word.startswith(rest) for word in _LITERALS)

    def _move_to(self, position: int) -> None:
        self.line += self._text.count("\n", self._at, position)
        self._at = position

    def _read(self, size: int) -> bool:
        """Add `size` bytes to the window and drop what is behind; False at the end of the file."""
        while not self._ended:
            new = self._decoded(self._file.read(size))
            if new:
                self._dropped += self._at
                self._text = self._text[self._at :] + new
                self._at = 0
                return True
        return False

    def _decoded(self, raw: bytes) -> str:
        """The text of the next bytes: UTF-8, or UTF-16 or UTF-32 as some shells write it, with a mark or without."""
        # Only the first bytes of a file tell its encoding.
        first = not self._text and not self._at and not self._pending and self.line == 1
        self._ended = not raw
        if self._wide is None and first and (wide := wide_encoding(raw)):
            self._wide = codecs.getincrementaldecoder(wide)("replace")
        if self._wide is not None:
            return self._wide.decode(raw, self._ended)
        data = self._pending + raw
        try:
            # Not final: a character that the chunk cuts in two stays pending until the next one.
            new, used = codecs.utf_8_decode(data, "strict", self._ended)
        except UnicodeDecodeError:
            self.replaced = True
            new, used = codecs.utf_8_decode(data, "replace", self._ended)
        self._pending = data[used:]
        return new
