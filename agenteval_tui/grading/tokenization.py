"""Words and sentences of a text, for the metrics that count them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import regex


class Word(Struct, frozen=True):
    """A word and its characters `start`..`end` in the text."""

    text: str
    start: int
    end: int


def words(text: str) -> Iterator[Word]:
    """Runs of letters, digits, ' and - (page 3 of the contract); the typographic apostrophe counts as '."""
    for match in _runs().finditer(text):
        yield Word(match[0], match.start(), match.end())


def count_words(text: str) -> int:
    """How many words there are."""
    return len(_runs().findall(text))


def words_without_markup(text: str) -> list[Word]:
    """The words that have a letter or a digit: a lone dash is not read aloud."""
    return [Word(match[0], match.start(), match.end()) for match in _spoken(text.isascii()).finditer(text)]


def spoken_texts(text: str) -> list[str]:
    """The words of `spoken` without their places, which is several times as fast."""
    words: list[str] = _spoken(text.isascii()).findall(text)
    return words


def count_sentences(text: str) -> int:
    """Runs of . ! ? … at the end of a word or of the text end a sentence; what follows the last one is one too."""
    parts = _ends().split(text)
    return max(1, sum(any(char.isalnum() for char in part) for part in parts))


@cache
def _runs() -> regex.Pattern[str]:
    import regex

    return regex.compile(r"[\p{L}\p{M}\p{N}'’-]+")


@cache
def _spoken(ascii_only: bool) -> re.Pattern[str] | regex.Pattern[str]:
    if ascii_only:
        return re.compile(r"['-]*[A-Za-z0-9][A-Za-z0-9'-]*")
    import regex

    return regex.compile(r"['’-]*[\p{L}\p{N}][\p{L}\p{M}\p{N}'’-]*")


@cache
def _ends() -> regex.Pattern[str]:
    import regex

    return regex.compile(r"[.!?…。！？]+[\"'”’)\]]*(?=\s|$)|(?<=[。！？])")
