"""Values that are more than text: JSON data, and lists of documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agenteval_tui.grading.json_text import JsonSource, compact
from agenteval_tui.grading.results import Span
from agenteval_tui.grading.value import Value
from agenteval_tui.transcripts.model import Transcript

_SPANS = 50


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
        # Exact where the value's text stands in the source as it is: no escapes, no other white space.
        shift = 1 if isinstance(self.data, str) and written[:1] == '"' else 0
        if written[shift : len(written) - shift] == self.text:
            return source.spans(left + shift + start, left + shift + end)
        return source.spans(left, right)


class ListValue(Value):
    """A list of texts (documents that were found), in order. Its text has one of them a line.

    `place(number)` says where an item stands in the transcript; it is asked for only when somebody looks.
    """

    def __init__(
        self, transcript: Transcript, items: tuple[str, ...], place: Callable[[int], tuple[Span, ...]]
    ) -> None:
        self.items = items
        self.place = place
        super().__init__(transcript, "\n".join(items), self._where)

    def _where(self, start: int, end: int) -> tuple[Span, ...]:
        found: list[Span] = [Span("value", 0, start, end)]
        at = 0
        for number, item in enumerate(self.items):
            if at < max(end, start + 1) and start < at + len(item):
                found.extend(self.place(number))
            at += len(item) + 1
            if at >= end or len(found) > _SPANS:
                break
        return tuple(dict.fromkeys(found))
