"""How a variation's configuration is laid over an agent's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def deep_merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `over` laid over it; neither is changed.

    Objects merge key by key, everything else replaces: lists too, so that an empty list means none. A null in `over`
    sets null. A key that `over` does not have is inherited.
    """
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(value, Mapping):
            merged[key] = deep_merge(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged
