"""What a program writes to standard output: events as JSON lines, or plain text that is the answer."""

from __future__ import annotations

import codecs
import json
from typing import Literal

from agenteval_tui.agents.interface import AgentEvent, TextDelta
from agenteval_tui.agents.programs.events import EventError, EventReader, is_event
from agenteval_tui.agents.programs.lines import Lines

_SHOWN = 80  # characters of a line that an error repeats
_BOM = b"\xef\xbb\xbf"


class OutputError(Exception):
    """The output can't be read. `cut_off`: its last line is not complete."""

    def __init__(self, what: str, mend: str, cut_off: bool = False) -> None:
        super().__init__(what)
        self.mend = mend
        self.cut_off = cut_off


class OutputReader:
    """Makes events of output, in order; at most `limit` bytes.

    "auto": events when the first line that is not empty is an event, else text. `done` is true once the program said
    `done` or `error`.
    """

    def __init__(self, form: Literal["auto", "jsonl", "text"], limit: int) -> None:
        self._form = form
        self._limit = limit
        self._size = 0
        self._number = 0
        self._begin = bytearray()  # what came before it was clear which form it has
        self._in_object = False  # its first line began with {, and is not over
        self._lines = Lines()
        self._events = EventReader()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def read(self) -> int:
        """Bytes of output that came."""
        return self._size

    @property
    def done(self) -> bool:
        """Whether the program said that it is done."""
        return self._events.ended

    def feed(self, data: bytes) -> list[AgentEvent]:
        """The events in the next bytes. Raises `OutputError`."""
        self._size += len(data)
        if self._size > self._limit:
            raise OutputError(f"it wrote more than {self._limit / 1e6:g} MB", "raise `max_reply_mb`, or make it brief")
        if self._form == "auto":
            self._begin += data
            if (self._in_object and b"\n" not in data) or not self._decide(final=False):
                return []
            data, self._begin = bytes(self._begin), bytearray()
        if self._form == "text":
            return self._text(self._decoder.decode(data))
        return self._read(self._lines.feed(data))

    def end(self) -> list[AgentEvent]:
        """The events in what is left at the end. Raises `OutputError`."""
        if self._form == "auto":
            self._decide(final=True)
            data, self._begin = bytes(self._begin), bytearray()
            self._size -= len(data)
            return [*self.feed(data), *self.end()]
        if self._form == "text":
            return self._text(self._decoder.decode(b"", final=True))
        return self._read([self._lines.rest], last=True)

    def _decide(self, final: bool) -> bool:
        """Say which form the output has, as soon as that can be told."""
        start = bytes(self._begin).removeprefix(_BOM).lstrip()
        line, end, _ = start.partition(b"\n")
        if line and not line.startswith(b"{"):
            self._form = "text"
        elif end or (final and line):
            self._form = "jsonl" if is_event(_json(line)) else "text"
        elif final:
            self._form = "text"
        self._in_object = bool(line)
        return self._form != "auto"

    def _text(self, text: str) -> list[AgentEvent]:
        return [TextDelta(text)] if text else []

    def _read(self, lines: list[bytes], last: bool = False) -> list[AgentEvent]:
        read: list[AgentEvent] = []
        for line in lines:
            self._number += 1
            if self._events.ended:
                break
            line = line.removeprefix(_BOM).strip() if self._number == 1 else line.strip()
            if not line:
                continue
            try:
                read += self._events.read(_json(line))
            except EventError as error:
                if last and _json(line) is None:
                    raise OutputError(
                        f"its last line, {self._number}, is cut off: {_shown(line)}",
                        "end each event with a newline",
                        True,
                    ) from None
                raise OutputError(
                    f"line {self._number} of its output is no event: {error}: {_shown(line)}",
                    "write one JSON object a line, and everything else to standard error; or set `output: text`",
                ) from None
        return read


def _json(line: bytes) -> object:
    """The line's value; None when it is no JSON."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
