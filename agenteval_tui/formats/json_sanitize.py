"""Foreign values as they may be kept: numbers that JSON has no word for are texts, and nothing is too deep."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from agenteval_tui.core.json_values import DEEPEST


def replace_non_finite(value: object) -> Any:
    """`value` with "NaN", "Infinity" for such numbers, and its JSON text for what lies deeper than `DEEPEST` levels."""
    return value if _is_finite(value, 0) else _made_finite(value, 0)


def _is_finite(value: Any, depth: int) -> bool:
    """Whether a value is JSON that may be kept as it is; nearly all are."""
    # Exact classes, and no isinstance: every value of every file passes here.
    kind = value.__class__
    if kind is str or kind is int or value is None or kind is bool:
        return True
    if kind is dict:
        if not all(key.__class__ is str for key in value):
            return False
        inner = value.values()
    elif kind is list:
        inner = value
    else:
        return kind is float and math.isfinite(value)
    return depth < DEEPEST and all(item.__class__ is str or _is_finite(item, depth + 1) for item in inner)


def _made_finite(value: object, depth: int) -> object:
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping | list | tuple):
        if depth >= DEEPEST:
            return _text(value)
        if isinstance(value, Mapping):
            return {str(key): _made_finite(item, depth + 1) for key, item in value.items()}
        return [_made_finite(item, depth + 1) for item in value]
    return value


def _text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError, TypeError):
        return "[nested too deep]"
