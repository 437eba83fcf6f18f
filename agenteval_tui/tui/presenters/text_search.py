"""Where words are in a text, in whatever case, a piece of the text at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

PIECE = 100_000
"""Characters that are looked through at once: well under a millisecond."""


def occurrences(text: str, words: str) -> Iterator[list[tuple[int, int]]]:
    """The places of `words` in each piece of `text`, in order, none overlapping another; [] for a piece without any."""
    folded_words, size = words.lower(), len(words)
    at = begin = 0
    while begin < len(text) or begin == 0:
        end = min(begin + PIECE, len(text))
        # What begins in this piece may end in the next.
        piece = text[begin : end + size - 1] if size else ""
        places: list[tuple[int, int]] = []
        small = piece.lower()
        if len(small) != len(piece) or len(folded_words) != size:
            # A few letters change their length with their case: offsets would lie. Slower, and right.
            for match in re.compile(re.escape(words), re.IGNORECASE).finditer(piece, max(at - begin, 0)):
                places.append((begin + match.start(), begin + match.end()))
        else:
            start = small.find(folded_words, max(at - begin, 0))
            while start >= 0:
                places.append((begin + start, begin + start + size))
                start = small.find(folded_words, start + size)
        if places:
            at = places[-1][1]
        yield places
        begin = end
        if begin >= len(text):
            break
