"""Times in documents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import overload


@overload
def iso(milliseconds: int) -> str: ...
@overload
def iso(milliseconds: int | None) -> str | None: ...
def iso(milliseconds: int | None) -> str | None:
    """ISO 8601, UTC, to the millisecond."""
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
