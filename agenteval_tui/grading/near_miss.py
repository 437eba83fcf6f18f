"""Near misses in text: the place that comes closest to what was looked for, and what would make it match.

The cost is bounded: long texts and needles are looked at in part. Nothing here decides a verdict. Text is folded only
to compare: what a near miss quotes is written as the agent, or the criterion, wrote it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import combinations
from operator import itemgetter
from typing import Any

from msgspec import Struct

from agenteval_tui.core.common_prefix import common_start
from agenteval_tui.core.errors import line_of
from agenteval_tui.grading.extracted_value import Value, lower_offsets, unfolded

TEXT_LIMIT = 20_000
NEEDLE_LIMIT = 400
_CUTOFF = 60.0
_WORD_REST = 6
_LONGEST_QUOTE = 100  # characters of a text that the fields keep; a sentence quotes fewer
_AROUND = 40
_LONG = 40  # characters of a piece that the fields keep whole; of a longer one those around the difference
BEFORE = 15
"""Characters before the difference that are kept of a long piece."""
_AFTER = 25

_QUOTES = str.maketrans(
    {char: plain for plain, chars in (('"', "„“”«»‟"), ("'", "‘’‚‛‹›′`´"), ("-", "‐‑‒–—―−")) for char in chars}
)
_IN_NUMBER = re.compile(r"(?<=\d)[.,'’ _](?=\d{3}(?!\d))")


class NearMatch(Struct, frozen=True):
    """The closest place: characters `start`..`end` of the value, and likeness 0..1 (for choosing).

    `fields`: how it misses. `is`: "elsewhere" (`line`, the text `before` and `after` it, and its own `text` where that
    is in another case), "form" (`text`,
    `line`, the `steps` that would make it match: keys of `sentences.STEPS`), or "alike" (`text`, `line`, where it is
    long `column`; what differs: `ends_before`, `goes_on`, or `found` and `expected`; `case`: case was made equal).
    Of a long text, `text` is the part around the first difference, and `at` is its place in the needle.
    """

    start: int
    end: int
    fields: dict[str, Any]
    likeness: float


def _unicode(text: str) -> str:
    if text.isascii():
        return text
    normal = unicodedata.normalize("NFKD", text)
    return "".join(char for char in normal if char.isascii() or unicodedata.category(char) != "Cf")


# What may be made equal on both sides, and its key in `sentences.STEPS`.
_STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("case", str.lower),
    ("white_space", lambda text: " ".join(text.split())),
    ("punctuation", lambda text: text.translate(_QUOTES)),
    ("unicode", _unicode),
    ("separators", lambda text: _IN_NUMBER.sub("", text)),
)
_UNICODE, _NUMBERS = 3, 4


def nearest(value: Value, needle: str, side: str, ignore_case: bool) -> NearMatch | None:
    """The closest miss of `needle`, which is not where `side` (contains, starts_with, ends_with, equals) wants it."""
    text = value.text
    if not text or not needle:
        return None
    if side != "contains":
        near_match = _elsewhere(text, needle, side, ignore_case)
        if near_match is not None:
            return near_match
    head = text[:TEXT_LIMIT] if side != "ends_with" else text[-TEXT_LIMIT:]
    offset = 0 if side != "ends_with" else len(text) - len(head)
    near_match = _normalised(head, needle, side)
    if near_match is None:
        near_match = _alike(head, needle, side, ignore_case)
        if near_match is not None and (len(head) < len(text) or len(needle) > NEEDLE_LIMIT):
            return _of_the_whole(near_match, text, needle, side, offset, ignore_case)
    if near_match is None or offset == 0:
        return near_match
    return NearMatch(near_match.start + offset, near_match.end + offset, near_match.fields, near_match.likeness)


def would_match(expected: str, actual: str) -> list[str]:
    """The fewest normalisations that make two texts equal (keys of `sentences.STEPS`); [] when none do."""
    if len(expected) > TEXT_LIMIT or len(actual) > TEXT_LIMIT:
        return []
    if actual.strip() == expected:
        return ["strip"]
    # Steps only take differences away: where all of them together don't make the texts equal, fewer don't.
    if _folded(expected, range(len(_STEPS))) != _folded(actual, range(len(_STEPS))):
        return []
    for size in range(1, len(_STEPS) + 1):
        for steps in combinations(range(len(_STEPS)), size):
            if _folded(expected, steps) == _folded(actual, steps):
                return [_STEPS[number][0] for number in steps]
    return []


def _elsewhere(text: str, needle: str, side: str, ignore_case: bool) -> NearMatch | None:
    """The needle is there, but not at the place where it must be."""
    searched, target = (text.lower(), needle.lower()) if ignore_case else (text, needle)
    start = searched.find(target) if side != "ends_with" else searched.rfind(target)
    if start < 0:
        return None
    start, end = unfolded(lower_offsets(text) if ignore_case else None, start, start + len(target))
    before = text[:start] if side in ("equals", "starts_with") else ""
    after = text[end:] if side in ("equals", "ends_with") else ""
    # White space is named as such and in part, so its beginning is enough; for other text, its neighbour.
    fields: dict[str, Any] = {
        "is": "elsewhere",
        "line": line_of(text, start),
        "before": before[:_AROUND] if before.isspace() else before[-_AROUND:],
        "after": after[:_AROUND],
    }
    if text[start:end] != needle:
        fields["text"] = text[start:end][:_LONGEST_QUOTE]
    return NearMatch(start, end, fields, 0.99)


def _normalised(text: str, needle: str, side: str) -> NearMatch | None:
    """The fewest normalisations after which the needle is where it must be, and the place."""
    useful = list(range(_UNICODE))
    if not (text.isascii() and needle.isascii()):
        useful.append(_UNICODE)
    if any(char.isdigit() for char in needle):
        useful.append(_NUMBERS)
    # As in `would_match`: one look that rules most needles out.
    if not _fits(_folded_text(text, tuple(useful)), _folded(needle, useful), side):
        return None
    for size in range(1, len(useful) + 1):
        for steps in combinations(useful, size):
            if _fits(_folded_text(text, steps), _folded(needle, steps), side):
                start, end = _place(text, needle, steps, side)
                fields: dict[str, Any] = {
                    "is": "form",
                    "text": text[start:end],
                    "line": line_of(text, start),
                    "steps": [_STEPS[number][0] for number in steps],
                }
                if end - start > _LONGEST_QUOTE:
                    fields["at"] = common_start(needle, text[start:end])
                    fields["text"] = part_around(text, start + fields["at"], start, end)
                return NearMatch(start, end, fields, 0.98 - 0.01 * size)
    return None


def part_around(text: str, at: int, start: int, end: int) -> str:
    """As much as near misses keep of a long text: of the piece `start`..`end` the part around the character `at`."""
    first, last = max(start, at - BEFORE), min(end, at + _AFTER)
    return "…" * (first > start) + text[first:last] + "…" * (last < end)


def _folded(text: str, steps: Iterable[int]) -> str:
    for number in steps:
        text = _STEPS[number][1](text)
    return text


# One text is looked at for many needles.
_folded_text = lru_cache(maxsize=32)(_folded)


def _fits(text: str, needle: str, side: str) -> bool:
    if not needle:
        return False
    return {
        "contains": needle in text,
        "equals": needle == text,
        "starts_with": text.startswith(needle),
        "ends_with": text.endswith(needle),
    }[side]


def _place(text: str, needle: str, steps: tuple[int, ...], side: str) -> tuple[int, int]:
    """Where in `text` the folded needle is: the shortest piece whose folded form still fits."""
    folded = _folded(needle, steps)
    if side == "equals":
        return 0, len(text)
    # Folding is monotone in length: the end is the shortest prefix that holds the needle, the start likewise.
    start, end = 0, len(text)
    if side != "ends_with":
        end = _smallest(1, len(text), lambda cut: folded in _folded(text[:cut], steps))
    if side != "starts_with":
        start = end - _smallest(1, end, lambda size: folded in _folded(text[end - size : end], steps))
    return start, end


def _smallest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _alike(text: str, needle: str, side: str, ignore_case: bool) -> NearMatch | None:
    """The place with the smallest difference, and the first character that differs."""
    edge = needle[:NEEDLE_LIMIT] if side != "ends_with" else needle[-NEEDLE_LIMIT:]
    exact = None if ignore_case else _aligned(text, edge, text, edge, side, False)
    if exact is not None and exact.likeness > 0.8:
        return exact
    folded = _aligned(text.lower(), edge.lower(), text, edge, side, not ignore_case)
    if exact is None or (folded is not None and folded.likeness > exact.likeness + 0.1):
        return folded
    return exact


def _aligned(searched: str, needle: str, text: str, own_needle: str, side: str, case: bool) -> NearMatch | None:
    """The closest piece of `searched` (the text, or its lower case) to `needle` (the needle, or its lower case), if it
    is close enough."""
    from rapidfuzz import fuzz

    if side == "equals" or len(needle) >= len(searched):
        likeness = fuzz.ratio(searched, needle)
        if likeness < _CUTOFF and side != "equals":
            return None
        return _first_difference(
            searched,
            needle,
            text=text,
            needle=own_needle,
            start=0,
            end=len(searched),
            likeness=likeness / 100,
            case=case,
        )
    if side == "starts_with":
        likeness = fuzz.ratio(searched[: len(needle)], needle)
        if likeness >= _CUTOFF:
            end = min(len(needle), len(searched))
            return _first_difference(
                searched, needle, text=text, needle=own_needle, start=0, end=end, likeness=likeness / 100, case=case
            )
    alignment = fuzz.partial_ratio_alignment(needle, searched, score_cutoff=_CUTOFF)
    if alignment is None:
        return None
    start, end = _best_edges(
        searched, needle, *_within_a_line(searched, needle, alignment.dest_start, alignment.dest_end)
    )
    likeness = fuzz.ratio(searched[start:end], needle)
    return _first_difference(
        searched, needle, text=text, needle=own_needle, start=start, end=end, likeness=likeness / 100, case=case
    )


def _of_the_whole(
    near_match: NearMatch, text: str, needle: str, side: str, offset: int, ignore_case: bool
) -> NearMatch:
    """The same place, with the first difference of the whole needle and text: only a part of each was looked at."""
    start, end = near_match.start + offset, near_match.end + offset
    if side == "equals":
        start, end = 0, len(text)
    elif len(needle) > NEEDLE_LIMIT:
        start = max(len(text) - len(needle), 0) if side == "ends_with" else start
        end = min(start + len(needle), len(text))
    case = bool(near_match.fields.get("case"))
    if not (case or ignore_case):
        return _first_difference(
            text, needle, text=text, needle=needle, start=start, end=end, likeness=near_match.likeness, case=False
        )
    first, last = len(text[:start].lower()), len(text[:end].lower())
    return _first_difference(
        text.lower(),
        needle.lower(),
        text=text,
        needle=needle,
        start=first,
        end=last,
        likeness=near_match.likeness,
        case=case,
    )


def _within_a_line(text: str, needle: str, start: int, end: int) -> tuple[int, int]:
    """The part of the window in one of its lines, where that is closer than the whole and the needle has one line.

    The window has the needle's length: where the text is shorter, it is filled up with the next line's beginning.
    """
    from rapidfuzz import fuzz

    if "\n" in needle:
        return start, end
    best, at = (fuzz.ratio(text[start:end], needle), start, end), start
    for line in text[start:end].split("\n"):
        best = max(best, (fuzz.ratio(line, needle), at, at + len(line)), key=itemgetter(0))
        at += len(line) + 1
    return best[1], best[2]


def _best_edges(text: str, needle: str, start: int, end: int) -> tuple[int, int]:
    """Move the edges a little: the aligned window has the needle's length, the closest piece may be longer."""
    from rapidfuzz import fuzz

    reach = min(8, max(2, len(needle) // 4))
    best = (fuzz.ratio(text[start:end], needle), -abs(end - start - len(needle)), start, end)
    for left in range(max(0, start - reach), min(start + reach, end - 1) + 1):
        for right in range(max(left + 1, end - reach), min(len(text), end + reach) + 1):
            score = fuzz.ratio(text[left:right], needle)
            if score > best[0]:
                best = (score, 0, left, right)
    return _whole_words(text, needle, best[2], best[3])


def _whole_words(text: str, needle: str, start: int, end: int) -> tuple[int, int]:
    """A piece that cuts a word short at either edge takes the rest of it in, where the needle ends in a word too."""
    left, right = start, end
    while left > 0 and start - left < _WORD_REST and needle[0].isalnum() and text[left - 1 : left + 1].isalnum():
        left -= 1
    while (
        right < len(text)
        and right - end < _WORD_REST
        and needle[-1].isalnum()
        and text[right - 1 : right + 1].isalnum()
    ):
        right += 1
    return (left if start - left < _WORD_REST else start), (right if right - end < _WORD_REST else end)


def _first_difference(
    searched: str, target: str, text: str, needle: str, start: int, end: int, likeness: float, case: bool
) -> NearMatch:
    """`start` and `end` are characters of `searched`, the text or its lower case; `target` is the needle or its lower
    case. What differs is said in the characters of the text and of the needle."""
    text_places = lower_offsets(text) if searched is not text else None
    needle_places = lower_offsets(needle) if target is not needle else None
    piece = searched[start:end]
    common = common_start(target, piece)
    is_whole_piece, is_whole_needle = common == len(piece), common == len(target)
    # Lower case makes several characters of some, such as İ: a place between them is none in the text.
    while _within_a_character(text_places, start + common) or _within_a_character(needle_places, common):
        common -= 1
        is_whole_piece = is_whole_needle = False
    at, place = (unfolded(places, n, n)[0] for places, n in ((text_places, start + common), (needle_places, common)))
    start, end = unfolded(text_places, start, end)
    fields: dict[str, Any] = {"is": "alike", "text": text[start:end], "line": line_of(text, at)}
    if end - start > _LONG:
        fields["text"] = part_around(text, at, start, end)
        fields["column"] = at - text.rfind("\n", 0, at)
        fields["at"] = place
    if is_whole_piece:
        fields["ends_before"] = needle[place : place + _LONGEST_QUOTE]
    elif is_whole_needle:
        fields["goes_on"] = text[at:end][:_LONGEST_QUOTE]
    else:
        fields["found"], fields["expected"] = text[at], needle[place]
    if case:
        fields["case"] = True
    return NearMatch(start, end, fields, likeness)


def _within_a_character(places: list[int] | None, offset: int) -> bool:
    """Whether lower case made several characters of one, and the offset is between them."""
    return places is not None and 0 < offset < len(places) and places[offset] == places[offset - 1]
