"""What a metric looks at: the value that a prototype class took out of a transcript, where it came from, and what a
check may know beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from agenteval_tui.grading.coded_error import CodedError
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.json_reading import JsonSource, SpanMap, compact
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import Fields, Span
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.model_request import ModelRequest

_SPANS = 50


class Value:
    """An extracted text with the transcript it came from.

    `text` is made when it is first asked for: a tool check over 2,000 transcripts never formats their calls.
    """

    counted: Sequence[ModelRequest] | None = None
    """Of a prototype class that looks at requests to models: those whose tokens are the value's; none of a part of a
    request, whose tokens aren't counted. None: the value is not of requests."""

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
        """`text.lower()`; its length may differ from the text's (`_lower_map`)."""
        return self.text.lower()

    @cached_property
    def _lower_map(self) -> list[int] | None:
        return lower_offsets(self.text)

    def in_text(self, start: int, end: int) -> tuple[int, int]:
        """Characters `start`..`end` of `lower`, as characters of `text`: whole ones, where one became two."""
        return unfolded(None if self.text.isascii() else self._lower_map, start, end)

    def spans(self, start: int, end: int) -> tuple[Span, ...]:
        """Where characters `start`..`end` of the text are in the transcript."""
        if self._spans is None:
            return (Span("value", 0, start, end),)
        return self._spans(start, end)


class NothingExtracted(Struct, frozen=True):
    """The prototype class found nothing: why, as a code with fields, or, of a plug-in, as a message; what was searched;
    the closest candidates."""

    message: str = ""
    searched: tuple[Span, ...] = ()
    near: tuple[Span, ...] = ()
    candidates: tuple[str, ...] = ()
    code: str = Code.NOTHING_EXTRACTED
    fields: Fields = field(default_factory=dict)


def lower_offsets(text: str) -> list[int] | None:
    """For each offset of `text.lower()` the offset in `text`; None if lower case changes no lengths (`İ` becomes two
    characters)."""
    if text.isascii() or len(text.lower()) == len(text):
        return None
    places: list[int] = []
    for index, char in enumerate(text):
        places.extend([index] * len(char.lower()))
    places.append(len(text))
    return places


def unfolded(places: list[int] | None, start: int, end: int) -> tuple[int, int]:
    """Characters `start`..`end` of a text in lower case, as those of the text itself. `places`: `lower_offsets`."""
    if places is None:
        return start, end
    return places[start], places[end - 1] + 1 if end > start else places[start]


class ExtractionError(CodedError):
    """The value can't be extracted, and whether it exists is unknown: an error, not "nothing extracted"."""


# Values that are more than text: JSON data, and lists of documents


class JsonValue(Value):
    """A value read as JSON. Its text is a string as it is, anything else as compact JSON."""

    def __init__(self, transcript: Transcript, data: Any, source: JsonSource | None) -> None:
        self.data = data
        self.source = source
        super().__init__(transcript, self._made, self._where)

    def _made(self) -> str:
        return self.data if isinstance(self.data, str) else compact(self.data)

    def _where(self, start: int, end: int) -> tuple[Span, ...]:
        source = self.source
        if source is None:
            return (Span("value", 0, start, end),)
        left, right = source.range(())
        written = source.text[left:right]
        # Exact where the source contains the value's text unchanged: no escapes, no other white space.
        shift = 1 if isinstance(self.data, str) and written[:1] == '"' else 0
        if written[shift : len(written) - shift] == self.text:
            return source.spans(left + shift + start, left + shift + end)
        return source.spans(left, right)


class ListValue(Value):
    """A list of texts (documents that were found), in order. Its text has one item per line.

    `place(number)` says where an item is in the transcript; it is called only when the place is shown.
    """

    def __init__(
        self, transcript: Transcript, items: tuple[str, ...], place: Callable[[int], tuple[Span, ...]]
    ) -> None:
        self.items = items
        self.place = place
        super().__init__(transcript, "\n".join(items), self._where)

    def _where(self, start: int, end: int) -> tuple[Span, ...]:
        spans: list[Span] = [Span("value", 0, start, end)]
        at = 0
        for number, item in enumerate(self.items):
            if at < max(end, start + 1) and start < at + len(item):
                spans.extend(self.place(number))
            at += len(item) + 1
            if at >= end or len(spans) > _SPANS:
                break
        return tuple(dict.fromkeys(spans))


class Context(Struct, frozen=True):
    """The expected value (the criterion's, else the row's variable `expected_value`) and the row's variables.

    `explain` is False when thousands of transcripts are graded at once: the metric then leaves evidence out and
    gives outcome and score only. `replies` holds what judges and other respondents said, by the hash of the question
    (`grading.remote`); None: nothing was asked. `criterion` is the name of the criterion that checks, `negate` and
    `pass_threshold` are what it makes of its metrics.
    """

    expected_value: Any = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    explain: bool = True
    replies: Mapping[str, Reply] | None = None
    criterion: str = ""
    negate: bool = False
    pass_threshold: float | None = None
