"""Texts as a file or a database can hold them."""

from __future__ import annotations


def storable(text: str) -> str:
    """`text` with U+FFFD for each half of a surrogate pair: JSON may hold one, and UTF-8 has no bytes for it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Two halves that belong together become the character that they are.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
