"""The lines of a dataset file, one after another in bounded memory, with what is wrong in their characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from agenteval_tui.text.problems import Problem

MAX_LINE = 16 * 1024 * 1024  # characters; also of a field with line ends in it

# What `surrogateescape` makes of bytes that are not UTF-8.
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


class LineTooLongError(Exception):
    """A line is longer than may be held; the problem is among the `Lines`' problems."""


class Lines:
    """An iterator of lines with their line ends. `number` is the line that came last, 1-based; 0 before the first.

    Bytes that are no UTF-8 and NUL characters go to `problems`, with the line as it is otherwise; whoever reads takes
    them from there. Raises `LineTooLongError`.
    """

    def __init__(self, stream: TextIO, path: Path) -> None:
        self._stream = stream
        self._file = str(path)
        self.number = 0
        self.header = 1  # the line where the header of a .csv begins
        self.characters = 0
        self.last = ""
        self.problems: list[Problem] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._stream.readline(MAX_LINE + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self.characters += len(line)
        self.last = line
        if len(line) > MAX_LINE:
            self.report("too-large", 1, 1, f"this line is longer than {MAX_LINE:,} characters", "split it into rows")
            raise LineTooLongError
        if not line.isascii() and (wrong := _NOT_UTF8.search(line)) is not None:
            at = wrong.start() + 1
            byte = ord(wrong.group()) - 0xDC00
            self.report("encoding", at, at + 1, f"the byte 0x{byte:02x} is not UTF-8", "save the file as UTF-8")
        if "\0" in line:
            at = line.index("\0") + 1
            self.report("bad-character", at, at + 1, "a NUL character can't stand in a dataset", "remove it")
        return line

    def report(
        self, code: str, column: int, end_column: int, message: str, fix: str | None, line: int | None = None
    ) -> None:
        """Note a problem on `line` (the last one if None)."""
        at = self.number if line is None else line
        self.problems.append(Problem(self._file, at, column, at, end_column, "error", code, message, fix))

    def taken(self) -> list[Problem]:
        """The problems since the last time this was asked."""
        problems, self.problems = self.problems, []
        return problems


def text_end(line: str) -> int:
    """The 1-based column behind the text of a line, without its line end."""
    return len(line.rstrip("\r\n")) + 1
