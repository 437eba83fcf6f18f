"""Small pieces of plain English that reasons are made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.encoder import encode_basestring

SHOWN = 60
"""Characters of a text that a reason quotes."""

_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode  # made once: `json.dumps` makes one a call


def nth(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, ..."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def cut(text: str, most: int) -> str:
    """The first `most` characters of `text`; where something is cut off, the last one is `…`."""
    return text if len(text) <= most else text[: most - 1] + "…"


def on_one_line(text: str, most: int) -> str:
    """Foreign text as part of a sentence: its white space as single spaces, cut to `most` characters with `…`."""
    return cut(" ".join(text.split()), most)


def quoted(text: str, limit: int = SHOWN) -> str:
    """`text` in quotation marks, line breaks as \\n, cut to `limit` characters with `…`."""
    return encode_basestring(cut(text, limit))


def shown(value: object, limit: int = SHOWN) -> str:
    """Any JSON value as a reason shows it: compact JSON, cut to `limit` characters."""
    if isinstance(value, str):
        return quoted(value, limit)
    text = _encode(value)
    return cut(text, limit)


def listed(names: Sequence[str], limit: int = 6, word: str = "and") -> str:
    """`a, b and c` (or another `word`); with more than `limit`, the first and how many more there are."""
    if len(names) > limit:
        names, word = [*names[:limit], f"{len(names) - limit} more"], "and"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def abridged(parts: Sequence[str], most: int, *, separator: str = ", ", rest: str = "more") -> str:
    """The first `most` parts, and how many there are besides: `a, b and 3 more`, `a; b; and 3 more tests`."""
    text, more = separator.join(parts[:most]), len(parts) - most
    # Behind a comma an "and" needs no further one; clauses with commas of their own are kept apart by the separator.
    return text if more <= 0 else f"{text}{'' if separator == ', ' else separator.rstrip()} and {more:,} {rest}"
