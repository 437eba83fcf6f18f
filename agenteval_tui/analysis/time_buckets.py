"""Pieces of time for trends: hours, days and weeks of the local clock, and windows as people write them."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Literal

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.trends import TimeBucket

By = Literal["execution", "hour", "day", "week"]

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS
_UNITS = {"m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": WEEK_MS}
_MOST = 5_000
"""Pieces of time in one answer: more than any screen or reader takes."""


class Bin(TimeBucket, frozen=True):
    """A period, numbered from 0; or an execution (`execution`: its id), by when its runs started."""

    execution: str = ""
    title: str = ""


def bucket_size(span_ms: int) -> By:
    """Hours for up to two days, days for up to a quarter of a year, else weeks."""
    if span_ms <= 2 * DAY_MS:
        return "hour"
    return "day" if span_ms <= 92 * DAY_MS else "week"


def bins_between(since_ms: int, until_ms: int, by: By) -> list[Bin]:
    """The hours, days or weeks (from Monday) that lie in this time, cut to it. A day is a day of the local clock: on
    those on which the clock is set it has 23 or 25 hours.

    Raises AgentevalError where there would be too many.
    """
    if until_ms <= since_ms:
        return []
    # The first piece is cut: it begins where the window does.
    edges = [since_ms]
    edge = _next(since_ms, by)
    while edge < until_ms:
        edges.append(edge)
        if len(edges) > _MOST:
            raise AgentevalError(f"that is more than {_MOST:,} {by}s", fix="choose a shorter window, or longer pieces")
        edge = _next(edge, by)
    ends = [*edges[1:], until_ms]
    return [Bin(number, low, high) for number, (low, high) in enumerate(zip(edges, ends, strict=True))]


def _next(at_ms: int, by: By) -> int:
    """The first edge after `at_ms`."""
    moment = datetime.fromtimestamp(at_ms / 1000)
    if by == "hour":
        into = (moment.minute * 60 + moment.second) * 1000 + moment.microsecond // 1000
        # Hours are of one length, also where the clock is set; days are not, and are looked up.
        return at_ms - into + HOUR_MS
    days = 1 if by == "day" else 7 - moment.weekday()
    return midnight_ms(moment.date() + timedelta(days=days))


def midnight_ms(day: date) -> int:
    """When a day of the local clock begins."""
    return round(datetime.combine(day, time.min).timestamp() * 1000)


def window_ms(text: str) -> int | None:
    """A window as people write it (`90m`, `24h`, `7d`, `4w`) in milliseconds; `all` is None. Raises AgentevalError."""
    folded = text.strip().casefold()
    if folded == "all":
        return None
    unit = _UNITS.get(folded[-1:])
    try:
        number = float(folded[:-1])
    except ValueError:
        number = 0.0
    # Beyond 300 years a date can't be reckoned with; `nan` is not within these limits, either.
    if unit is None or not 0 < number * unit < 1e13:
        raise AgentevalError(f"{text!r} is not a time window", fix="write 24h, 7d, 4w, 90m, or all")
    return round(number * unit)


def window_label(milliseconds: int | None) -> str:
    """`the last 24 h`, `the last 7 days`; `all time` for None."""
    if milliseconds is None:
        return "all time"
    for unit, singular, many in ((WEEK_MS, "week", "weeks"), (DAY_MS, "day", "days"), (HOUR_MS, "h", "h")):
        number = milliseconds / unit
        # 24 h stay 24 h, 14 days stay 14 days: people say what they mean.
        if number == int(number) and (unit != DAY_MS or number != 1) and (unit != WEEK_MS or number > 2):
            return f"the last {int(number)} {singular if number == 1 else many}"
    return f"the last {milliseconds / MINUTE_MS:g} min"


def bucket_label(bucket: Bin, by: By) -> str:
    """A bin in words, in local time: `2026-11-21`, `2026-11-21 14:00`, `week of 2026-11-16`."""
    moment = datetime.fromtimestamp(bucket.since_ms / 1000)
    if by == "day":
        return moment.strftime("%Y-%m-%d")
    if by == "week":
        return f"week of {moment:%Y-%m-%d}"
    return moment.strftime("%Y-%m-%d %H:%M")
