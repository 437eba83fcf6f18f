"""A whole number as a person types it into a form."""

from __future__ import annotations

_MOST_DIGITS = 15  # Python refuses to read more than a few thousand, and nothing that is asked for has as many


def typed_whole(text: str) -> int | None:
    """The whole number that `text` is; None where it is another text, or has too many digits."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None
