"""`JsonResponse`: a value out of the final answer read as JSON."""

from __future__ import annotations

from itertools import islice
from typing import Any

from msgspec import Struct
from pydantic import Field, field_validator

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.errors import line_of
from agenteval_tui.grading.code_fences import fenced_blocks
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import ExtractionError, JsonValue, NothingExtracted, Value
from agenteval_tui.grading.extractors.extractor import Prototype
from agenteval_tui.grading.extractors.text_response import code_blocks
from agenteval_tui.grading.json_paths import PathFailedError, compile_path, usable_path, walk
from agenteval_tui.grading.json_reading import (
    JsonSource,
    NotJsonError,
    UnreadableJsonError,
    compact,
    content_fields,
    embedded_json,
    read_json,
)
from agenteval_tui.grading.results import Span
from agenteval_tui.transcripts.model import Transcript

_BLOCKS = 20
_LANGUAGES = ("json", "jsonc", "json5", "")


class _Found(Struct, frozen=True):
    """JSON in the final answer: its value, and the characters that it takes."""

    data: Any
    start: int
    end: int


class JsonResponse(Prototype):
    """A value from the final answer, which is read as JSON. The JSON may be in a fenced code block.

    Metrics on text get a string as it is, and any other value as compact JSON.
    """

    extract_path: str | None = Field(
        None,
        min_length=1,
        description="A JMESPath expression for the value (`order.items[0].price`). Default: the whole JSON. If the "
        "expression finds nothing (null), nothing is extracted.",
    )

    _usable = field_validator("extract_path")(usable_path)

    @property
    def can_find_nothing(self) -> bool:
        return True

    def extract(self, transcript: Transcript) -> Value | None:
        text = transcript.final_output
        try:
            document = _read(text)
            if self.extract_path is None:
                return JsonValue(transcript, document.data, _source(transcript, document, ()))
            path = compile_path(self.extract_path)
            data = path.search(document.data)
            if data is None:
                return None
            if path.steps is None:
                compact(data)  # an expression can make much out of little
            return JsonValue(transcript, data, _source(transcript, document, path.steps))
        except NotJsonError:
            return None
        except (UnreadableJsonError, PathFailedError) as problem:
            raise ExtractionError(code=problem.code, **problem.fields) from None

    def why_nothing(self, transcript: Transcript) -> NothingExtracted:
        text = transcript.final_output
        searched = _spans(transcript, 0, len(text))
        if not text:
            return NothingExtracted("", searched, code=Code.EMPTY_ANSWER)
        try:
            document = _read(text)
        except UnreadableJsonError as problem:
            return NothingExtracted("", searched, code=problem.code, fields=problem.fields)
        except NotJsonError as problem:
            return _no_json(transcript, problem, searched)
        assert self.extract_path is not None
        searched = _spans(transcript, document.start, document.end)
        path = compile_path(self.extract_path)
        if path.steps is None:
            return NothingExtracted("", searched, code=Code.NOTHING_AT_PATH, fields={"pattern": path.text})
        depth, last = walk(document.data, path.steps)
        near = JsonSource(
            text[document.start : document.end], lambda a, b: _spans(transcript, document.start + a, document.start + b)
        )
        place = near.place(path.steps[:depth])
        fields: dict[str, Any] = {"pattern": path.text, "path": list(path.steps[:depth])}
        if depth == len(path.steps):
            fields["null"] = True
            return NothingExtracted("", searched, place, code=Code.NOTHING_AT_PATH, fields=fields)
        fields["there"] = content_fields(last)
        step = path.steps[depth]
        meant = closest(step, last) if isinstance(last, dict) else None
        if meant is None:
            return NothingExtracted("", searched, place, (), Code.NOTHING_AT_PATH, fields)
        steps = (*path.steps[:depth], meant)
        fields["meant"] = list(steps)
        return NothingExtracted("", searched, near.place(steps), (meant,), Code.NOTHING_AT_PATH, fields)


def _read(text: str) -> _Found:
    """The whole answer as JSON, or a fenced block of it. Raises `NotJsonError`, `UnreadableJsonError`."""
    try:
        return _Found(read_json(text), 0, len(text))
    except NotJsonError as problem:
        for start, end in _fenced(text):
            try:
                return _Found(read_json(text[start:end]), start, end)
            except NotJsonError:
                continue
        # The first mistake, of the whole answer: blocks in it may be of other languages.
        raise problem


def _fenced(text: str) -> list[tuple[int, int]]:
    """The code of blocks that may hold JSON: those that say so first. Blocks as Markdown has them come before what
    is between three backticks anywhere (```{"a": 1}``` in a line), which is never looked for inside a block."""
    if not any(fence in text for fence in ("```", "~~~")):
        return []
    blocks = list(islice(fenced_blocks(text), _BLOCKS))
    named = [(block.inner_start, block.inner_end) for block in blocks if block.language.lower() in _LANGUAGES[:-1]]
    others = [(block.inner_start, block.inner_end) for block in blocks if not block.language]
    places = named + others
    for block in code_blocks(text, None)[:_BLOCKS]:
        if any(other.start < block.start < other.end for other in blocks):
            continue
        line_end = text.find("\n", block.inner_start, block.inner_end)
        # Without a line of its own, what follows the backticks is the JSON and no language.
        if line_end < 0 or text[block.inner_start : line_end].lstrip()[:1] in tuple('{["'):
            places.append((block.inner_start, block.inner_end))
        elif block.language.lower() in _LANGUAGES:
            places.append((line_end, block.inner_end))
    return places


def _no_json(transcript: Transcript, problem: NotJsonError, searched: tuple[Span, ...]) -> NothingExtracted:
    text = transcript.final_output
    blocks = _fenced(text)
    if blocks:
        start, end = blocks[0]
        try:
            read_json(text[start:end])
        except NotJsonError as inside:
            at = start + inside.position
            place = _spans(transcript, at, min(at + 1, end))
            fields: dict[str, Any] = {"in": "block", **inside.fields}
            return NothingExtracted("", _spans(transcript, start, end), place, code=Code.NOT_JSON, fields=fields)
        except UnreadableJsonError as unreadable:
            return NothingExtracted("", searched, code=unreadable.code, fields=unreadable.fields)
    part = embedded_json(text)
    if part is not None:
        piece = text[part[0] : part[1]]
        fields = {"part": piece[:100], "part_line": line_of(text, part[0])}
        return NothingExtracted("", searched, _spans(transcript, *part), (piece[:300],), Code.NOT_JSON, fields)
    at = min(problem.position, max(len(text) - 1, 0))
    place = _spans(transcript, at, min(at + 1, len(text)))
    return NothingExtracted("", searched, place, code=Code.NOT_JSON, fields=dict(problem.fields))


def _source(transcript: Transcript, document: _Found, steps: tuple[str | int, ...] | None) -> JsonSource | None:
    if steps is None:
        return None  # a computed value has no place in the text

    def spans(start: int, end: int) -> tuple[Span, ...]:
        return _spans(transcript, document.start + start, document.start + end)

    if transcript.final_message is None:
        return None
    return JsonSource(transcript.final_output[document.start : document.end], spans, steps)


def _spans(transcript: Transcript, start: int, end: int) -> tuple[Span, ...]:
    message = transcript.final_message
    return () if message is None else (Span("message", message, start, end),)
