"""How well a name matches what a person types to find it, as in the lists of editors: words first, then beginnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

WORD, START, INITIALS, INSIDE, LETTERS = 1.0, 0.9, 0.6, 0.5, 0.3
"""What the best place of a typed word in the name is worth: a whole word there, the start of one, the first letters of
several, a part of one, and its first letter with some of the others in their order ("cmpr")."""
_AT_FRONT = 0.04  # for the first word of the name
_LONGEST = 0.05  # for how much of the name was typed
_LEAST_LETTERS = 3  # typed letters from which those of one word may be left out
_LEAST_SHARE = 0.55  # of a word's letters are typed then, at least


class NameMatch(Struct, frozen=True):
    """How well it matches, above 0 to 1, and the places of the letters in the name that were typed."""

    score: float
    places: frozenset[int]


def match(typed: str, name: str) -> NameMatch | None:
    """None: a word that was typed is not in the name. Upper and lower case are alike."""
    letters = [_lower(char) for char in name]
    low = "".join(letters)
    words = list(_words(letters))
    matches = [_best(word, low, words) for word in map(_lower_all, typed.split())]
    if not matches or any(word_match is None for word_match in matches):
        return None
    parts = [word_match for word_match in matches if word_match is not None]
    total = sum(worth + _AT_FRONT * (min(places) == 0) for worth, places in parts) / len(parts)
    share = sum(len(places) for _, places in parts) / len(name)
    score = (total + _LONGEST * min(share, 1.0)) / (WORD + _AT_FRONT + _LONGEST)
    return NameMatch(min(score, 1.0), frozenset(place for _, places in parts for place in places))


def _best(typed: str, low: str, words: Sequence[tuple[int, int]]) -> tuple[float, Sequence[int]] | None:
    starts = {start for start, _ in words}
    ends = {end for _, end in words}
    begins = -1
    at = low.find(typed)
    inside = at
    while at >= 0:
        if at in starts or not typed[0].isalnum():
            if at + len(typed) in ends:
                return WORD, range(at, at + len(typed))
            begins = at if begins < 0 else begins
        at = low.find(typed, at + 1)
    if begins >= 0:
        return START, range(begins, begins + len(typed))
    if len(typed) < 2:
        return None  # a letter is in the middle of every other word
    if (places := _initials(typed, low, words)) is not None:
        return INITIALS, places
    if inside >= 0:
        return INSIDE, range(inside, inside + len(typed))
    return _letters(typed, low, words)


def _initials(typed: str, low: str, words: Sequence[tuple[int, int]]) -> list[int] | None:
    """The places of first letters of words, in this order; words may be left out behind the first."""
    places: list[int] = []
    for start, _ in words:
        if len(places) < len(typed) and low[start] == typed[len(places)]:
            places.append(start)
        elif not places:
            return None
    return places if len(places) == len(typed) else None


def _letters(typed: str, low: str, words: Sequence[tuple[int, int]]) -> tuple[float, list[int]] | None:
    """The word that begins with the first letter and has the others in their order."""
    for start, end in words:
        if len(typed) < max(_LEAST_LETTERS, (end - start) * _LEAST_SHARE) or low[start] != typed[0]:
            continue
        places, at = [start], start
        for letter in typed[1:]:
            at = low.find(letter, at + 1, end)
            if at < 0:
                break
            places.append(at)
        else:
            return LETTERS, places
    return None


def _words(letters: Sequence[str]) -> Iterator[tuple[int, int]]:
    """From where to before where each word is."""
    start = -1
    for place, letter in enumerate(letters):
        if letter.isalnum():
            start = place if start < 0 else start
        elif start >= 0:
            yield start, place
            start = -1
    if start >= 0:
        yield start, len(letters)


def _lower(char: str) -> str:
    """One letter for one: of a few, lower case has two."""
    low = char.lower()
    return low if len(low) == 1 else char


def _lower_all(text: str) -> str:
    return "".join(map(_lower, text))
