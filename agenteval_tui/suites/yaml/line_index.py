"""Lines and columns of offsets, many times over the same text."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

from agenteval_tui.core.errors import Problem, Severity


class LineIndex:
    """1-based lines and columns (in characters) of a text; a line ends with "\\n"."""

    __slots__ = ("_starts", "length")

    def __init__(self, text: str) -> None:
        self.length = len(text)
        starts = [0]
        at = text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = text.find("\n", at + 1)
        self._starts = starts

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """The place of `offset`; outside of the text it is the nearest end."""
        offset = min(max(offset, 0), self.length)
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def problem(
        self,
        file: Path | str,
        code: str,
        start: int,
        end: int,
        message: str,
        fix: str | None = None,
        severity: Severity = "error",
    ) -> Problem:
        """What is wrong in the text of `file` between two offsets."""
        places = self.line_and_column(start), self.line_and_column(max(end, start))
        return Problem.at(file, places[0], code, message, fix, end=places[1], severity=severity)

    def offset(self, line: int, column: int) -> int:
        """The offset of a 1-based place, inside of the text."""
        line = min(max(line, 1), len(self._starts))
        return min(max(self._starts[line - 1] + column - 1, 0), self.length)


class ProblemReport:
    """A report (as `tree.compose` takes one) that keeps what is said of the text of `file`, with its places."""

    def __init__(self, text: str, file: Path | str) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._places = LineIndex(text)

    def __call__(self, code: str, start: int, end: int, message: str, fix: str | None) -> None:
        self.problems.append(self._places.problem(self._file, code, start, end, message, fix))
