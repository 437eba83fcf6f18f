"""Reading one large JSON document by pulling: into what is asked for, past everything else, in bounded memory.

    for key in reader.members():
        if key == "samples":
            for _ in reader.elements():
                sample = reader.value()

What the loop's body does not take is skipped. What does not fit into a window is never decoded to be skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from agenteval_tui.exchange.json_stream import LARGEST, Text, Unreadable

WINDOW = 1 << 20
"""Characters that are looked at together. Smaller values are skipped by decoding them, which is fastest."""

CUT_OFF = "the file ends in the middle of it"


class JsonReader:
    """A position in a JSON document. All methods raise `Unreadable`; after that nothing more can be read of it.

    `largest`: no value that is asked for may have more characters. Loops over `members` and `elements` must be run
    to their end, else the position is unknown.
    """

    def __init__(self, file: IO[bytes], *, largest: int = LARGEST, window: int = WINDOW) -> None:
        self._text = Text(file, min(window, 1 << 18))
        self._largest = largest
        self._window = window
        self._taken = 0

    @property
    def line(self) -> int:
        """The line of the current position, from 1."""
        return self._text.line

    @property
    def replaced(self) -> bool:
        """Whether there were bytes that are not UTF-8; they were replaced."""
        return self._text.replaced

    def kind(self) -> str:
        """What begins here: "object", "list", "value", or "" at the end of the file."""
        char = self._text.next_char()
        return {"{": "object", "[": "list", "": ""}.get(char, "value")

    def value(self) -> Any:
        """The value at the current position."""
        self._taken += 1
        if self._text.next_char() == "":
            raise Unreadable(CUT_OFF, cut_off=True)
        return self._text.value(self._largest)

    def small(self) -> tuple[bool, Any]:
        """(True, the value here) if it fits into the window; else (False, None), and it is skipped."""
        self._taken += 1
        if self._text.next_char() == "":
            raise Unreadable(CUT_OFF, cut_off=True)
        fits, value = self._text.take_small(self._window)
        if not fits:
            self.skip()
        return fits, value

    def members(self) -> Iterator[str]:
        """The keys of the object that begins here; at each the position is at its value. Nothing for other values."""
        if not self._enter("{"):
            return
        while (char := self._next()) != "}":
            if char == ",":
                self._text.step()
                continue
            if char != '"':
                raise Unreadable(f"not valid JSON: a key was expected, not {char!r}")
            key = self._text.value(self._largest)
            if self._next() != ":":
                raise Unreadable("not valid JSON: a colon was expected behind a key")
            self._text.step()
            yield from self._at(key)
        self._text.step()

    def elements(self) -> Iterator[int]:
        """The indices of the list that begins here; at each the position is at the element. Nothing for others."""
        if not self._enter("["):
            return
        index = 0
        while (char := self._next()) != "]":
            if char == ",":
                self._text.step()
                continue
            yield from self._at(index)
            index += 1
        self._text.step()

    def skip(self) -> None:
        """Move behind the value that begins here."""
        self._taken += 1
        depth = 0
        while True:
            char = self._next()
            if char in "]}":
                if not depth:
                    raise Unreadable(f"not valid JSON: a value was expected, not {char!r}")
                self._text.step()
                depth -= 1
            elif char in ",:":
                if not depth:
                    raise Unreadable(f"not valid JSON: a value was expected, not {char!r}")
                self._text.step()
                continue
            elif not self._text.take_small(self._window)[0]:
                if char in "[{":
                    self._text.step()
                    depth += 1
                elif char == '"':
                    self._text.skip_string()
                else:
                    self._text.value(self._largest)  # a number at the end of the window, or what is wrong is said
            if not depth:
                return

    def _enter(self, opening: str) -> bool:
        if self._next() != opening:
            self.skip()
            return False
        self._taken += 1
        self._text.step()
        return True

    def _at(self, what: Any) -> Iterator[Any]:
        before = self._taken
        yield what
        if self._taken == before:
            self.skip()

    def _next(self) -> str:
        char = self._text.next_char()
        if char == "":
            raise Unreadable(CUT_OFF, cut_off=True)
        return char
