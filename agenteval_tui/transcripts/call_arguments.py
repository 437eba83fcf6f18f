"""The arguments of a tool call, as programs and servers write them."""

from __future__ import annotations

import json
from typing import Any


def decode_arguments(raw: object) -> tuple[Any, bool]:
    """(arguments, malformed): JSON text decoded; "" and None mean none; what is not JSON stays text, marked."""
    if raw is None or raw == "":
        return {}, False
    if not isinstance(raw, str):
        return raw, False
    try:
        return json.loads(raw), False
    except (ValueError, RecursionError):
        return raw, True
