"""Server-sent events out of bytes, as they arrive: any line ending, cut anywhere, broken UTF-8 or not."""

from __future__ import annotations

import codecs
import re

from msgspec import Struct

LINE_END = re.compile(r"\r\n|\n|\r")
"""The ends of lines in a stream, also of JSON lines. What else `str.splitlines` knows may be within a line."""


class ServerEvent(Struct, frozen=True):
    """One event: its name ("" when the server gave none) and its data, the lines joined by newlines."""

    name: str
    data: str


class SseReader:
    """Feed it bytes, get the events that are complete. Comments and ids are left out; wrong UTF-8 becomes U+FFFD.

    Takes time in proportion to the bytes fed, also when a line comes in a thousand pieces. Nothing bounds the size
    of an event: the caller that feeds bytes limits them.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._started = False
        self._pieces: list[str] = []  # the line that has no end yet
        self._after_return = False
        self._name = ""
        self._data: list[str] = []
        self.cut = False
        """After `close`: the stream ended within a line that said nothing yet."""
        self.strange = ""
        """The first line that is none of server-sent events, as long as there was no event."""

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that `data` completes."""
        return self._take(self._decoder.decode(data))

    def close(self) -> list[ServerEvent]:
        """The end of the stream: a last event without its blank line counts (servers that hang up send such)."""
        events = self._take(self._decoder.decode(b"", final=True))
        # Servers that hang up leave out the last end of a line.
        if self._pieces:
            line = "".join(self._pieces)
            # A comment may end anywhere; data that has begun is judged by whoever reads it.
            field, _, value = line.partition(":")
            self.cut = field != "" and not (field == "data" and value.strip())
            self._line(line, events)
            self._pieces.clear()
        self._dispatch(events)
        return events

    def _take(self, text: str) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        if text and not self._started:
            self._started = True
            text = text.removeprefix("\ufeff")
        if self._after_return and text:
            # The carriage return at the end of the last piece ended a line; this newline belongs to it.
            self._after_return = False
            text = text.removeprefix("\n")
        start = 0
        if not self._pieces and not self._data and not self._name:
            start = self._whole_events(text, events)
        for end in LINE_END.finditer(text, start):
            self._pieces.append(text[start : end.start()])
            self._line("".join(self._pieces), events)
            self._pieces.clear()
            start = end.end()
        if start < len(text):
            self._pieces.append(text[start:])
        if text.endswith("\r"):
            self._after_return = True
        return events

    @staticmethod
    def _whole_events(text: str, events: list[ServerEvent]) -> int:
        """Take the events of one line of data each at the beginning: nearly every piece of nearly every stream is made
        of such. Gives where they end."""
        start = 0
        while text.startswith("data:", start):
            end = text.find("\n\n", start)
            if end < 0 or "\n" in text[start:end] or "\r" in text[start:end]:
                break
            events.append(ServerEvent("", text[start + (6 if text.startswith(" ", start + 5) else 5) : end]))
            start = end + 2
        return start

    def _line(self, line: str, events: list[ServerEvent]) -> None:
        if not line:
            self._dispatch(events)
            return
        # One space after the colon is no part of the value; any other is.
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        elif field not in ("", "id", "retry") and not self.strange:
            self.strange = line

    def _dispatch(self, events: list[ServerEvent]) -> None:
        # An event without data is none, as the specification has it.
        if self._data:
            events.append(ServerEvent(self._name, "\n".join(self._data)))
        self._data = []
        self._name = ""
