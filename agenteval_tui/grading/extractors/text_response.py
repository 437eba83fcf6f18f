"""`TextResponse`: the final answer's text, or a piece of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, field_validator

from agenteval_tui.core.errors import line_of
from agenteval_tui.grading.code_fences import FencedBlock
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config.model import RegexText
from agenteval_tui.grading.extracted_value import NothingExtracted, Value
from agenteval_tui.grading.extractors.extractor import Extract, Prototype
from agenteval_tui.grading.near_miss import NearMatch
from agenteval_tui.grading.regex_search import Pattern, PatternError, SlowPatternError, compile_pattern
from agenteval_tui.grading.results import Span
from agenteval_tui.transcripts.model import Transcript

FENCE = "```"


class TextResponse(Prototype):
    """The text of the final answer.

    `extract_code_block` takes its n-th code block, and `extract_by_regex` takes what the pattern finds (in the code
    block, if both are set).
    """

    extract_by_regex: Annotated[str, RegexText()] | None = Field(
        None,
        min_length=1,
        description="A pattern: bare, or in PHP's style with delimiters and flags (`/total: (\\d+)/i`). The value is "
        "group 1, or the whole match if the pattern has no group.",
    )
    extract_match: int = Field(1, ge=1, description="Which match of `extract_by_regex` to take, counted from 1.")
    extract_code_block: int | None = Field(
        None, ge=1, description="Which code block (``` ... ```) to take, counted from 1."
    )
    with_block: bool = Field(
        False,
        description="Take the whole match: the code block with its fences, or all that the pattern matches, not "
        "only group 1.",
    )
    code_language: str | None = Field(
        None,
        min_length=1,
        description="Count only code blocks of this language (the word after the opening fence). The value then "
        "doesn't include that word and the line breaks around the code.",
    )

    @field_validator("extract_by_regex")
    @classmethod
    def _usable(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            compile_pattern(pattern)
        return pattern

    @property
    def can_find_nothing(self) -> bool:
        return self.extract_by_regex is not None or self._block_number is not None

    def extract(self, transcript: Transcript) -> Value | None:
        return self.compile()(transcript)

    def compile(self) -> Extract:
        if not self.can_find_nothing:
            return _final_answer
        steps = self

        def extract(transcript: Transcript) -> Value | None:
            piece = steps._piece(transcript.final_output)
            if piece is None:
                return None
            return _value(transcript, piece[0], piece[1])

        return extract

    @property
    def _block_number(self) -> int | None:
        # A language alone asks for the first block of it.
        return 1 if self.extract_code_block is None and self.code_language is not None else self.extract_code_block

    def _piece(self, text: str) -> tuple[int, int] | None:
        """Start and end of the value in `text`. Raises `SlowPatternError`."""
        start, end = 0, len(text)
        number = self._block_number
        if number is not None:
            block = nth_block(text, number, self.code_language)
            if block is None:
                return None
            start, end = (block.start, block.end) if self.with_block else (block.inner_start, block.inner_end)
        if self.extract_by_regex is not None:
            pattern = compile_pattern(self.extract_by_regex)
            match = pattern.search(text[start:end], self.extract_match)
            if match is None:
                return None
            group = 0 if self.with_block or not pattern.groups else 1
            left, right = match.span(group)
            if left < 0:
                return None
            start, end = start + left, start + right
        return start, end

    def why_nothing(self, transcript: Transcript) -> NothingExtracted:
        text = transcript.final_output
        searched = _spans(transcript, 0, len(text))
        if not text:
            return NothingExtracted("", searched, code=Code.EMPTY_ANSWER)
        start, end = 0, len(text)
        number = self._block_number
        if number is not None:
            blocks = code_blocks(text, self.code_language)
            if number > len(blocks):
                return self._no_block(transcript, number, searched)
            block = blocks[number - 1]
            start, end = (block.start, block.end) if self.with_block else (block.inner_start, block.inner_end)
            searched = _spans(transcript, start, end)
        return self._no_match(transcript, start, end, searched)

    def _no_block(self, transcript: Transcript, number: int, searched: tuple[Span, ...]) -> NothingExtracted:
        text = transcript.final_output
        there = code_blocks(text, None)
        near = tuple(span for block in there[:10] for span in _spans(transcript, block.start, block.end))
        blocks = [[block.language, line_of(text, block.start)] for block in there[:10]]
        fields: dict[str, Any] = {"position": number, "language": self.code_language}
        if there:
            fields |= {"count": len(there), "blocks": blocks}
        elif FENCE in text:
            at = text.index(FENCE)
            fields["line"] = line_of(text, at)
            near = _spans(transcript, at, at + 3)
            return NothingExtracted("", searched, near, code=Code.UNCLOSED_CODE_BLOCK, fields=fields)
        else:
            fields |= _size(text)
        return NothingExtracted("", searched, near, code=Code.NO_CODE_BLOCK, fields=fields)

    def _no_match(self, transcript: Transcript, start: int, end: int, searched: tuple[Span, ...]) -> NothingExtracted:
        assert self.extract_by_regex is not None
        text = transcript.final_output[start:end]
        pattern = compile_pattern(self.extract_by_regex)
        fields: dict[str, Any] = {"pattern": pattern.text, "position": self.extract_match}
        if self._block_number is not None:
            fields["block"] = True
        near: tuple[Span, ...] = ()
        candidates: tuple[str, ...] = ()
        try:
            count = len(pattern.matches(text, self.extract_match))
        except SlowPatternError as slow:
            return NothingExtracted("", searched, code=slow.code, fields=slow.fields)
        if count >= self.extract_match:
            fields["group"] = 1
        elif count:
            fields["count"] = count
        else:
            fields |= _size(text)
            miss = beginning(pattern, text)
            if miss is not None:
                fields["near"] = miss.fields
                near = _spans(transcript, start + miss.start, start + miss.end)
                candidates = (text[miss.start : miss.end],)
        return NothingExtracted("", searched, near, candidates, Code.NO_PATTERN_MATCH, fields)


def code_blocks(text: str, language: str | None) -> list[FencedBlock]:
    """The code blocks of `text`. With a `language` only those of it, and their value is the code alone."""
    blocks = (_block(text, start, end, language) for start, end in _fenced(text))
    return [block for block in blocks if block is not None]


def nth_block(text: str, number: int, language: str | None) -> FencedBlock | None:
    """The block `number` (from 1) of `code_blocks(text, language)`; None when there are fewer."""
    count = 0
    for start, end in _fenced(text):
        # Without a language every block counts: those before the wanted one need not be looked into.
        if language is None and count + 1 < number:
            count += 1
            continue
        block = _block(text, start, end, language)
        if block is not None:
            count += 1
            if count == number:
                return block
    return None


def _fenced(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of what Power UI's pattern /```([\\s\\S]*?)```/ matches; without the pattern, which is slow."""
    start = text.find(FENCE)
    while start >= 0:
        end = text.find(FENCE, start + 3)
        if end < 0:
            return
        yield start, end + 3
        start = text.find(FENCE, end + 3)


def _block(text: str, outer_start: int, outer_end: int, language: str | None) -> FencedBlock | None:
    # As Power UI documents it: the info string ("sql") belongs to the value unless `code_language` names it.
    start, end = outer_start + 3, outer_end - 3
    line_end = text.find("\n", start, end)
    info = "" if line_end < 0 else text[start:line_end].strip()
    name = info.split(None, 1)[0] if info else ""
    if language is not None:
        if not info or language.lower() not in (info.lower(), name.lower()):
            return None
        start = line_end + 1
        while start < end and text[start] in "\r\n":
            start += 1
        while end > start and text[end - 1] in "\r\n":
            end -= 1
    return FencedBlock(outer_start, outer_end, start, end, name)


def beginning(pattern: Pattern, text: str) -> NearMatch | None:
    """Where the longest beginning of the pattern that matches anything does."""
    nearest = longest_start(pattern, text)
    if nearest is None:
        return None
    part, start, end = nearest
    fields = {"is": "beginning", "part": part, "text": text[start:end][:100], "line": line_of(text, start)}
    return NearMatch(start, end, fields, len(part) / max(len(pattern.body), 1))


def longest_start(pattern: Pattern, text: str) -> tuple[str, int, int] | None:
    """The longest beginning of the pattern that matches something: it, and the match's start and end. Bounded work."""
    text = text[:20_000]
    letters = "".join(flag for flag in pattern.flags if flag in "imsx")
    for length in range(min(len(pattern.body) - 1, 60), 1, -1):
        part = pattern.body[:length]
        try:
            # In a group of its own: a beginning like `(a)` must not be read as having delimiters.
            match = compile_pattern(f"(?{letters}:{part})(?:)").search(text)
        except (PatternError, SlowPatternError):
            continue
        # A single character is in nearly every text.
        if match is not None and len(match[0].strip()) > 1:
            return part, match.start(), match.end()
    return None


def _final_answer(transcript: Transcript) -> Value | None:
    return _value(transcript, 0, len(transcript.final_output))


def _value(transcript: Transcript, start: int, end: int) -> Value:
    places: list[int | None] = []  # looked for once, and only where somebody asks

    def spans(left: int, right: int) -> tuple[Span, ...]:
        if not places:
            places.append(transcript.final_message)
        message = places[0]
        if message is None:
            return (Span("value", 0, left, right),)
        return (Span("message", message, start + left, start + right),)

    text = transcript.final_output
    return Value(transcript, text if end - start == len(text) else text[start:end], spans)


def _spans(transcript: Transcript, start: int, end: int) -> tuple[Span, ...]:
    message = transcript.final_message
    if message is None:
        return (Span("value", 0, start, end),)
    return (Span("message", message, start, end),)


def _size(text: str) -> dict[str, int]:
    return {"lines": text.count("\n") + 1, "characters": len(text)}
