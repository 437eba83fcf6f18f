"""What one reading may be: bounds that keep a run small, and the exception that says why there is no value."""

from __future__ import annotations

from typing import Any

from agenteval_tui.transcripts.state import Reading, ReadingProblem, unread

MOST_BYTES = 256_000
"""Of a value. A larger one is not kept in part: a criterion would look at something else than what is there."""
MOST_FILES = 1_000
MOST_ROWS = 10_000


class UnreadError(Exception):
    """A probe has no value: the problem and its fields (`transcripts.state.ReadingProblem`)."""

    def __init__(self, problem: ReadingProblem, **fields: Any) -> None:
        super().__init__(problem)
        self.problem = problem
        self.fields = fields

    @property
    def reading(self) -> Reading:
        """What is stored of it."""
        return unread(self.problem, **self.fields)


def too_large(**fields: Any) -> UnreadError:
    """A value of more than `MOST_BYTES`."""
    return UnreadError(ReadingProblem.TOO_LARGE, most=MOST_BYTES, **fields)


def decoded(data: bytes, **fields: Any) -> str:
    """Bytes as text: UTF-8, with or without its mark. Raises `UnreadError` where they are something else."""
    if b"\0" in data:
        raise UnreadError(ReadingProblem.NOT_TEXT, **fields)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadError(ReadingProblem.NOT_TEXT, **fields) from None
