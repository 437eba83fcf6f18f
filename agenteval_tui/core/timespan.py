"""Moments in the future: as people write them (`14d`, `2w`, `12h`, 2026-12-24), and those that a wrong clock made."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from agenteval_tui.core.ids import now_ms

IN_FUTURE = "begun in the future"
_SLACK_MS = 300_000  # clocks of two machines may differ by minutes

_SPAN = re.compile(r"(\d{1,4})\s*([hdw])", re.IGNORECASE)
_MS = {"h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}


def in_future(started_ms: int | None) -> bool:
    """Whether a stored start (milliseconds since 1970) lies ahead of this machine's clock, by five minutes or more."""
    return started_ms is not None and started_ms > now_ms() + _SLACK_MS


def moment_from(text: str, now: int) -> int:
    """Milliseconds since 1970; a day means its end, local time. Raises ValueError, with a sentence for people."""
    text = text.strip()
    if span := _SPAN.fullmatch(text):
        return now + int(span[1]) * _MS[span[2].lower()]
    try:
        day = datetime.fromisoformat(text)
        if len(text) <= 10:
            day += timedelta(days=1)
        return round(day.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is not a time: write 14d, 2w, 12h, or a day such as 2026-12-24") from None
