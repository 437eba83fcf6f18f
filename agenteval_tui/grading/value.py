"""What a prototype class took out of a transcript: the value that metrics look at, and where it came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import cached_property

from agenteval_tui.grading.codes import Code, CodedError
from agenteval_tui.grading.results import Fields, Span
from agenteval_tui.text.quick_dataclass import dataclass
from agenteval_tui.transcripts.model import Transcript

SpanMap = Callable[[int, int], tuple[Span, ...]]


class Value:
    """An extracted text with the transcript it came from.

    `text` is made when it is first asked for: a tool check over 2,000 transcripts never formats their calls.
    """

    def __init__(self, transcript: Transcript, text: str | Callable[[], str], spans: SpanMap | None = None) -> None:
        self.transcript = transcript
        self._spans = spans
        if isinstance(text, str):
            self.text = text
        else:
            self._made = text

    @cached_property
    def text(self) -> str:
        """The extracted text."""
        return self._made()

    @cached_property
    def lower(self) -> str:
        """`text.lower()`; its length may differ from the text's (`lower_offsets`)."""
        return self.text.lower()

    @cached_property
    def _lower_map(self) -> list[int] | None:
        return offsets_of(self.text, str.lower)

    def in_text(self, start: int, end: int) -> tuple[int, int]:
        """Characters `start`..`end` of `lower`, as characters of `text`."""
        places = None if self.text.isascii() else self._lower_map
        return (start, end) if places is None else (places[start], places[end])

    def spans(self, start: int, end: int) -> tuple[Span, ...]:
        """Where characters `start`..`end` of the text stand in the transcript."""
        if self._spans is None:
            return (Span("value", 0, start, end),)
        return self._spans(start, end)


@dataclass(frozen=True, slots=True)
class NothingExtracted:
    """The prototype class found nothing: why, as a code with fields, or, of a plug-in, as a message; what was searched;
    the closest candidates."""

    message: str = ""
    searched: tuple[Span, ...] = ()
    near: tuple[Span, ...] = ()
    candidates: tuple[str, ...] = ()
    code: str = Code.NOTHING_EXTRACTED
    fields: Fields = field(default_factory=dict)


def offsets_of(text: str, fold: Callable[[str], str]) -> list[int] | None:
    """For each offset of `fold(text)` the offset in `text`; None when `fold` changes no lengths."""
    if text.isascii() or len(fold(text)) == len(text):
        return None
    places: list[int] = []
    for index, char in enumerate(text):
        places.extend([index] * len(fold(char)))
    places.append(len(text))
    return places


class ExtractionError(CodedError):
    """The value cannot be taken out, and nobody can say whether it is there: an error, not "nothing extracted"."""
