"""A moment in the future as people write it: `14d`, `2w`, `12h`, or a day (2026-12-24)."""

from __future__ import annotations

import re
from typing import Any

import click

_SPAN = re.compile(r"(\d{1,4})\s*([hdw])", re.IGNORECASE)
_MS = {"h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}


class Until(click.ParamType):
    """Milliseconds since 1970. A day means its end, local time."""

    name = "WHEN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from datetime import datetime, timedelta

        from agenteval_tui.text.identity import now_ms

        if isinstance(value, int):
            return value
        text = str(value).strip()
        if span := _SPAN.fullmatch(text):
            return now_ms() + int(span[1]) * _MS[span[2].lower()]
        try:
            day = datetime.fromisoformat(text)
            if len(text) <= 10:
                day += timedelta(days=1)
            return round(day.timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            self.fail(f"{text!r} is no time: write 14d, 2w, 12h, or a day such as 2026-12-24", param, ctx)
