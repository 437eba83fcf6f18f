"""How two texts differ, by lines and words; and how the arguments of two calls differ, argument by argument."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from agenteval_tui.analysis.trajectory_alignment import arguments_json, matching_blocks
from agenteval_tui.core.document import Document

Span = tuple[int, int]

_TOKENS = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")
_WORD = re.compile(r"\w")
# Lines or words on both sides, multiplied, up to which they are compared one by one: 10 ms, and a bit of memory each.
_MOST = 40_000_000
_LEAST_ALIKE = 0.2  # below, marking single words says less than marking all
_DEEPEST = 50


class DiffSegment(Struct, frozen=True):
    """Characters of the left text beside those of the right; whole lines, their newline with them.

    Where they are not the `same`, `left_words` and `right_words` are the characters that differ.
    """

    same: bool
    left: Span
    right: Span
    left_words: tuple[Span, ...] = ()
    right_words: tuple[Span, ...] = ()


class ArgumentChange(Document, frozen=True):
    """An argument that two calls of a tool do not share. `state`: "changed", or "left" or "right" when only one call
    has it (the other value is None then)."""

    path: Annotated[str, Meta(description='keys and indexes with dots between them; "" when all of it differs')]
    state: Literal["changed", "left", "right"]
    left: Any = None
    right: Any = None


def compare_texts(left: str, right: str) -> tuple[DiffSegment, ...]:
    """The two texts in stretches of lines that are the same and that differ, in order; all characters once."""
    lines_left, lines_right = left.splitlines(keepends=True), right.splitlines(keepends=True)
    stretches: list[DiffSegment] = []
    at_left = at_right = 0
    for same, (start, end), (other, other_end) in _blocks(_bare(lines_left), _bare(lines_right)):
        span_left = (at_left, at_left + sum(map(len, lines_left[start:end])))
        two = (at_right, at_right + sum(map(len, lines_right[other:other_end])))
        at_left, at_right = span_left[1], two[1]
        if same:
            stretches.append(DiffSegment(True, span_left, two))
        else:
            words = compare_words(left[slice(*span_left)], right[slice(*two)])
            mine = tuple((start + span_left[0], end + span_left[0]) for start, end in words[0])
            theirs = tuple((start + two[0], end + two[0]) for start, end in words[1])
            stretches.append(DiffSegment(False, span_left, two, mine, theirs))
    return tuple(stretches)


def compare_words(left: str, right: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The characters of each text that the other has not, by whole words."""
    if not left.strip() or not right.strip():
        return _all_of(left), _all_of(right)
    words_left = [(match[0], match.span()) for match in _TOKENS.finditer(left)]
    words_right = [(match[0], match.span()) for match in _TOKENS.finditer(right)]
    blocks = list(_blocks([word for word, _ in words_left], [word for word, _ in words_right]))
    common = sum(
        len(word) for same, (start, end), _ in blocks if same for word, _ in words_left[start:end] if _WORD.match(word)
    )
    letters = max(sum(len(word) for word, _ in words if _WORD.match(word)) for words in (words_left, words_right))
    # Single words in common are chance: marked texts of which every second word is marked can't be read.
    if common < letters * _LEAST_ALIKE:
        return _all_of(left), _all_of(right)
    blocks = _without_crumbs(blocks, [word for word, _ in words_left])
    mine = [_span(words_left, start, end) for same, (start, end), _ in blocks if not same and end > start]
    theirs = [_span(words_right, start, end) for same, _, (start, end) in blocks if not same and end > start]
    return tuple(mine), tuple(theirs)


def compare_arguments(left: object, right: object) -> tuple[ArgumentChange, ...]:
    """What differs between two calls' arguments, in the left one's order, then what only the right one has."""
    return tuple(_changes(left, right, "", 0))


def in_order_of(model: Any, value: object, depth: int = 0) -> object:
    """`value` with the keys of its objects in the order in which `model` has them; new ones last."""
    if depth > _DEEPEST:
        return value
    if isinstance(model, Mapping) and isinstance(value, Mapping):
        keys = [key for key in model if key in value] + [key for key in value if key not in model]
        return {key: in_order_of(model.get(key), value[key], depth + 1) for key in keys}
    if isinstance(model, list) and isinstance(value, list):
        return [in_order_of(model[n] if n < len(model) else None, item, depth + 1) for n, item in enumerate(value)]
    return value


def _changes(left: object, right: object, path: str, depth: int) -> Iterator[ArgumentChange]:
    if arguments_json(left) == arguments_json(right) and isinstance(left, str) == isinstance(right, str):
        return
    if depth <= _DEEPEST and isinstance(left, Mapping) and isinstance(right, Mapping):
        yield from _inside(left, right, [*left, *(key for key in right if key not in left)], path, depth)
    elif depth <= _DEEPEST and isinstance(left, list) and isinstance(right, list):
        mine, theirs = dict(enumerate(left)), dict(enumerate(right))
        yield from _inside(mine, theirs, range(max(len(left), len(right))), path, depth)
    else:
        yield ArgumentChange(path, "changed", left, right)


def _inside(
    left: Mapping[Any, Any], right: Mapping[Any, Any], keys: Sequence[Any], path: str, depth: int
) -> Iterator[ArgumentChange]:
    for key in keys:
        below = f"{path}.{key}" if path else str(key)
        if key not in right:
            yield ArgumentChange(below, "left", left=left[key])
        elif key not in left:
            yield ArgumentChange(below, "right", right=right[key])
        else:
            yield from _changes(left[key], right[key], below, depth + 1)


def _blocks(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[bool, Span, Span]]:
    """(the same?, numbers in left, numbers in right), in order; what differs between two same ones is one block."""
    ends = min(len(left), len(right))
    # What is alike at both ends needs no search, which takes the product of both lengths.
    head = next((n for n in range(ends) if left[n] != right[n]), ends)
    tail = next((n for n in range(ends - head) if left[-1 - n] != right[-1 - n]), ends - head)
    if head:
        yield True, (0, head), (0, head)
    yield from _middle(left[head : len(left) - tail], right[head : len(right) - tail], head)
    if tail:
        yield True, (len(left) - tail, len(left)), (len(right) - tail, len(right))


def _middle(left: Sequence[str], right: Sequence[str], offset: int) -> Iterator[tuple[bool, Span, Span]]:
    if not left and not right:
        return
    codes: list[tuple[bool, Span, Span]] = []
    if not left or not right or len(left) * len(right) > _MOST:
        codes.append((False, (0, len(left)), (0, len(right))))
    else:
        for same, mine, other in matching_blocks(left, right):
            if codes and not same and not codes[-1][0]:
                _, before, before_other = codes.pop()
                mine, other = (before[0], mine[1]), (before_other[0], other[1])
            codes.append((same, mine, other))
    for same, mine, other in codes:
        yield same, (mine[0] + offset, mine[1] + offset), (other[0] + offset, other[1] + offset)


def _without_crumbs(blocks: Sequence[tuple[bool, Span, Span]], left: Sequence[str]) -> list[tuple[bool, Span, Span]]:
    """A space or a comma between two changes is part of one change: readers don't see it as unchanged text."""
    merged: list[tuple[bool, Span, Span]] = []
    for number, (same, mine, theirs) in enumerate(blocks):
        inside = 0 < number < len(blocks) - 1
        crumb = (
            same and inside and mine[1] - mine[0] <= 3 and not any(_WORD.match(token) for token in left[slice(*mine)])
        )
        newline = crumb and "\n" in left[slice(*mine)]
        if merged and not merged[-1][0] and ((crumb and not newline) or not same):
            _, before, before_theirs = merged.pop()
            merged.append((False, (before[0], mine[1]), (before_theirs[0], theirs[1])))
        else:
            merged.append((same, mine, theirs))
    return merged


def _bare(lines: Sequence[str]) -> list[str]:
    # The last line of one text may be a middle one of the other: its newline does not make it another line.
    return [line.rstrip("\r\n") for line in lines]


def _span(words: Sequence[tuple[str, Span]], start: int, end: int) -> Span:
    return words[start][1][0], words[end - 1][1][1]


def _all_of(text: str) -> tuple[Span, ...]:
    return ((0, len(text)),) if text else ()
