"""How deep JSON may be nested: the same for every version of Python, whose decoders go 1,000 to 10,000 levels deep."""

from __future__ import annotations

DEEPEST = 200
"""Levels of lists and objects in one another, in everything that is read from elsewhere."""


def is_too_deep(value: object) -> bool:
    """Whether a value of JSON is nested deeper than `DEEPEST`."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True
