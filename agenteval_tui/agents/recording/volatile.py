"""What varies in equal requests, as a program makes it anew each time: a date in a prompt, an id."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

ANY = "any"
_MONTH = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"  # noqa: E501
_DAY = r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
PATTERNS: Mapping[str, re.Pattern[str]] = {
    "uuid": re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"),
    "date-time": re.compile(
        r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
    ),
    "date": re.compile(
        rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b"
        rf"|(?:\b{_DAY},? )?\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b"
        rf"|(?:\b{_DAY},? )?\b\d{{1,2}}\.? {_MONTH}\.?(?: \d{{4}})?\b|\b{_DAY}\b",
        re.IGNORECASE,
    ),
    "time": re.compile(r"\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?"),
    "hex": re.compile(r"\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b"),
    "id": re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])\w{12,}\b"),
    "number": re.compile(r"\d+(?:[.,]\d+)*"),
}
"""What varies, by the name that a cassette has for it; the most particular first."""


class Volatile(Struct, frozen=True, omit_defaults=True):
    """A part of requests that varies: `at` is its place ("messages[0].content", `[*]` for every item, "*" for every
    place), `like` the name of a pattern (then only what looks like that is left out), or "any": all of it."""

    at: str
    like: str = ANY

    def __post_init__(self) -> None:
        if self.like != ANY and self.like not in PATTERNS:
            raise ValueError(f"there is no pattern {self.like!r}")
