"""Reading one large JSON document by pulling: into what is asked for, past everything else, in bounded memory.

    for key in reader.members():
        if key == "samples":
            for _ in reader.elements():
                sample = reader.value()

What the loop's body does not take is skipped, and counted under its field (`passed_over`). What does not fit into a
window is never decoded to be skipped. A value that is too large is read without what makes it so, and each part that
was shortened or left out is said (`shortened`): a large field never takes a small one with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

from agenteval_tui.formats.importers.recording import Skipped
from agenteval_tui.formats.omitted_texts import has_words
from agenteval_tui.formats.stream.json_stream import LARGEST, RawText, UnreadableFile

WINDOW = 1 << 20
"""Characters that are looked at together. Smaller values are skipped by decoding them, which is fastest."""

LARGEST_TEXT = 16_000_000
"""Characters that are kept of one text; no reader needs more."""
LARGEST_PART = 20_000
"""A part of a value that is too large is still kept if it is at most this large."""
MOST_PARTS = 1_000
"""How many parts of one object or list are kept in that way."""

CUT_OFF = "the file ends in the middle of it"


class JsonReader:
    """A position in a JSON document. All methods raise `UnreadableFile`; after that nothing more can be read of it.

    `largest`: no value that is asked for may have more characters. Loops over `members` and `elements` must be run
    to their end, else the position is unknown.
    """

    def __init__(
        self,
        file: IO[bytes] | None = None,
        *,
        text: RawText | None = None,
        largest: int = LARGEST,
        window: int = WINDOW,
        longest: int = LARGEST_TEXT,
    ) -> None:
        if text is None:
            assert file is not None
            text = RawText(file, min(window, 1 << 18))
        self._text = text
        self._largest = largest
        self._longest = longest
        self._window = window
        self._taken = 0
        self._path: list[str | int] = []
        self.passed_over: Counter[str] = Counter()
        """The fields that were skipped though they say something: `samples[].store`; how often."""
        self.shortened: list[tuple[str, str]] = []
        """Where something was shortened or left out because it was too large (`samples[3].scores`), and what was."""

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
            raise UnreadableFile(CUT_OFF, cut_off=True)
        return self._text.value(self._largest)

    def small(self) -> tuple[bool, Any]:
        """(True, the value here) if it fits into the window; else (False, None), and it is skipped."""
        self._taken += 1
        if self._text.next_char() == "":
            raise UnreadableFile(CUT_OFF, cut_off=True)
        fits, value = self._text.take_small(self._window)
        if not fits:
            self.skip()
        return fits, value

    def bounded(self, room: int | None = None) -> Any:
        """The value here, without what makes it larger than `room` characters (default: the reader's `largest`).

        A long text is cut, with a word on that at its end; of an object or list the parts that are too large are left
        out, or kept in part in the same way. Each is said in `shortened`. What is small is always kept.
        """
        self._taken += 1
        self._next()
        return self._bounded(self._largest if room is None else room)[0]

    def picked(self, keys: frozenset[str]) -> Any:
        """The value here if it fits into the window; of an object that does not, these of its members (`bounded`)."""
        self._taken += 1
        self._next()
        fits, value = self._text.take_small(self._window)
        if fits:
            return value
        if self.kind() != "object":
            self._leave_out()
            return None
        values = {}
        for key in self.members():
            if key in keys:
                self._taken += 1
                values[key] = self._bounded(self._window)[0]
            else:
                self._leave_out(self._window)
        return values

    def _bounded(self, room: int) -> tuple[Any, int]:
        """(what is kept of the value here, how many characters of room that takes)."""
        self._text.next_char()
        before = self._text.consumed
        # What is small is kept however little room is left: it is what readers look for.
        fits, value = self._text.take_small(min(self._window, max(room, LARGEST_PART)))
        if fits:
            return value, self._text.consumed - before
        kind = self.kind()
        if kind == "object":
            return self._bounded_object(room)
        if kind == "list":
            return self._bounded_list(room)
        if self._text.next_char() != '"':
            return self._text.value(self._largest), 0  # a number at the end of the window, or what is wrong is said
        # However little room is left, a text keeps its beginning.
        most = max(LARGEST_PART, min(room, self._longest))
        begin = self._text.begin_of_string(most)
        whole = self._text.skip_string()
        if whole <= most:
            return begin, whole
        self.shortened.append((self._place(), f"shortened to {len(begin):,} of {whole:,} characters"))
        return f"{begin}… [{whole - most:,} more characters were left out]", most

    def _bounded_object(self, room: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        used = 0
        for key in self.members():
            # Both: small members are kept beyond the room, up to a number of them.
            if used >= room and len(members) >= MOST_PARTS:
                self._leave_out()
                continue
            members[key], took = self._part(room - used)
            used += took + len(key)
        return members, used

    def _bounded_list(self, room: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        used = left_out = 0
        for _ in self.elements():
            if used >= room and len(items) >= MOST_PARTS:
                self.skip()
                left_out += 1
                continue
            item, took = self._part(room - used)
            items.append(item)
            used += took
        if left_out:
            self.shortened.append((self._place(), f"shortened by {left_out:,} items: it is too large"))
        return items, used

    def _part(self, room: int) -> tuple[Any, int]:
        """A part of a large value: none takes more than half of what is left, so that all have some."""
        self._taken += 1
        if room > 0:
            return self._bounded(max(room // 2, LARGEST_PART))
        self._text.next_char()
        before = self._text.consumed
        fits, value = self._text.take_small(self._window)
        if not fits:
            return self._bounded(LARGEST_PART)
        size = self._text.consumed - before
        if size <= LARGEST_PART:
            return value, size
        self.shortened.append((self._place(), f"left out: {size:,} characters, too large"))
        return None, 0

    def _leave_out(self, larger_than: int = 0) -> None:
        before = self._text.consumed
        self.skip()
        size = self._text.consumed - before
        if size > larger_than:
            self.shortened.append((self._place(), f"left out: {size:,} characters, too large"))

    def _place(self) -> str:
        return _dotted(self._path)

    def members(self) -> Iterator[str]:
        """The keys of the object that begins here; at each the position is at its value. Nothing for other values."""
        if not self._enter("{"):
            return
        while (char := self._next()) != "}":
            if char == ",":
                self._text.step()
                continue
            if char != '"':
                raise UnreadableFile(f"not valid JSON: a key was expected, not {char!r}")
            key = self._text.value(self._largest)
            if self._next() != ":":
                raise UnreadableFile("not valid JSON: a colon was expected after a key")
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
                    raise UnreadableFile(f"not valid JSON: a value was expected, not {char!r}")
                self._text.step()
                depth -= 1
            # At the top of a value a comma is no value; inside of it commas and colons are only passed.
            elif char in ",:":
                if not depth:
                    raise UnreadableFile(f"not valid JSON: a value was expected, not {char!r}")
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
        self._path.append(what)
        yield what
        # The body of the loop took nothing: the position is still at the value.
        if self._taken == before:
            self._pass_over()
        self._path.pop()

    def _pass_over(self) -> None:
        """Skip a value that was not taken, and count its field if it holds words or is large."""
        fits, value = self.small()
        if not fits or has_words({str(self._path[-1]): value}):
            self.passed_over[_dotted([0 if isinstance(step, int) else step for step in self._path], items=False)] += 1

    def _next(self) -> str:
        char = self._text.next_char()
        if char == "":
            raise UnreadableFile(CUT_OFF, cut_off=True)
        return char


def reduced(text: RawText, largest: int) -> tuple[Any, tuple[tuple[str, str], ...]]:
    """The value that begins here, without what makes it too large, and where what was shortened (`bounded`)."""
    reader = JsonReader(text=text, largest=largest)
    value = reader.bounded()
    return value, tuple(reader.shortened)


def _dotted(path: list[str | int], *, items: bool = True) -> str:
    """`samples[3].scores`; without `items` `samples[].scores`, for all. Items are counted from 1."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step + 1}]" if items else "[]"
        else:
            text += f".{step}" if text else step
    return text


def skipped_by(reader: JsonReader, prefix: str = "", place: str = "") -> Iterator[Skipped]:
    """What a reader skipped, and what it shortened; `prefix`: the field in the file at which it started."""
    if reader.passed_over:
        yield Skipped("", counts=False, fields={f"{prefix}{key}": count for key, count in reader.passed_over.items()})
    for at, problem in reader.shortened:
        yield Skipped(f"`{prefix}{at}` was {problem}", counts=False, place=place)
