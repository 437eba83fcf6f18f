"""Figures as people read and type them: shares and intervals have as many digits as it takes to stay true."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from math import ceil, isclose
from typing import overload

_MOST_DECIMALS = 6
_SECOND_MS, _MINUTE_MS = 999.5, 59_950
_MOST_DIGITS = 15  # Python refuses to read more than a few thousand, and nothing that is asked for has as many


def percent(share: float | None, decimals: int = 0, *, beside: float | None = None) -> str:
    """`42 %` of a share 0..1, with up to `decimals` digits behind the point; `-` where there is none.

    What is not all is never written as 100 %, and what is not nothing never as 0 %: 999 of 1,000 is 99.9 %. `beside`: a
    share that stands near it, as its limit, and is never written alike: 89.6 % is below 90 %.
    """
    return "-" if share is None else f"{_enough((share,) if beside is None else (share, beside), decimals)[0]} %"


def percent_limit(share: float) -> str:
    """A limit for shares 0..1 in percent, as exactly as somebody set it: `98.75 %`."""
    return percent(share, _MOST_DECIMALS)


def median(numbers: Iterable[float]) -> float:
    """The middle one, or the mean of the two in the middle. The module `statistics` takes too long to load for it:
    longer than a first page of the history to read."""
    ordered = sorted(numbers)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def rate_bar(rate: float, cells: int, *, unicode: bool = True) -> str:
    """A share 0..1 as a bar of this many characters: `━━━━━━━───`. It is full, or empty, only where the rate is 1, or
    0."""
    full, rest = ("━", "─") if unicode else ("=", "-")
    number = round(rate * cells)
    number = 0 if rate <= 0 else cells if rate >= 1 else min(max(number, 1), cells - 1)
    return full * number + rest * (cells - number)


def percent_interval(low: float, high: float, decimals: int = 0) -> tuple[str, str]:
    """Both ends of an interval of shares 0..1 as numbers of percent, without the sign: ("99.6", "100").

    Ends that differ stay apart, and an end is 0 or 100 only where it really is.
    """
    first, last = _enough((low, high), decimals)
    return first, last


def percent_span(low: float, high: float) -> str:
    """Both ends of an interval of shares 0..1, in percent without the sign: `12–40`."""
    return "–".join(percent_interval(low, high))


TOO_FEW = "too few"
"""Instead of an interval, where there are too few cases for one (`analysis.statistics.FEW`)."""


def interval_phrase(interval: tuple[float, float] | None, decimals: int = 0, of: str = "") -> str:
    """`95 % interval 12 % to 40 %`; None: `too few for an interval`. `of`: what it is over."""
    if interval is None:
        return f"{TOO_FEW} for an interval"
    low, high = percent_interval(*interval, decimals)
    return f"95 % interval {of}{low} % to {high} %"


def decimal(value: float, *, beside: float | None = None) -> str:
    """A score: `0.80`, with more digits where it takes them to tell it from 0, from 1, and from a limit `beside` it:
    0.796 is below 0.8."""
    edges, written = [0.0, 1.0, *([] if beside is None else [beside])], ""
    for decimals in range(2, _MOST_DECIMALS + 1):
        written = f"{value:.{decimals}f}"
        if all(_side(float(written), edge) == _side(value, edge) for edge in edges):
            break
    return written


def _side(value: float, edge: float) -> int:
    return 0 if isclose(value, edge, abs_tol=1e-9) else 1 if value > edge else -1


def points(difference: float, decimals: int = 1) -> str:
    """A difference of shares -1..1 in points: `+12`, `-0.5` where that says more; `0` only where there is none."""
    return _enough((difference,), decimals, "+")[0]


def least_points(difference: float) -> str:
    """The smallest difference of shares 0..1 that can be seen: `6 points`. Rounded up: a smaller one can't be."""
    return count(ceil(100 * difference - 1e-9), "point")


def points_interval(low: float, high: float, decimals: int = 1) -> tuple[str, str]:
    """Both ends of an interval of differences -1..1 in points: ("-0.4", "+12"). Ends that differ stay apart."""
    first, last = _enough((low, high), decimals, "+")
    return first, last


def count(number: int | None, noun: str) -> str:
    """`1 run`, `2,000 runs`, `3 criteria`; None counts as 0."""
    number = number or 0
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """`runs` of `run`. Of several words the last one counts."""
    for singular, many in _PLURALS.items():
        if noun.endswith(singular):
            return noun.removesuffix(singular) + many
    return noun + "s"


_PLURALS = {"criterion": "criteria", "reply": "replies", "branch": "branches", "repository": "repositories"}


def duration(milliseconds: float | None) -> str:
    """`340 ms`, `2.1 s`, `3 min 5 s`; "" for None."""
    if milliseconds is None:
        return ""
    # The limits are those of the rounded figures: 999.6 ms are not 1000 ms, and 59.97 s not 60.0 s.
    if milliseconds < _SECOND_MS:
        return f"{milliseconds:.0f} ms"
    if milliseconds < _MINUTE_MS:
        return f"{milliseconds / 1000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes} min {seconds} s"


def short_duration(milliseconds: float | None) -> str:
    """As `duration`, for columns: `340 ms`, `2.1 s`, `3:05`, `1:02:09`; "" for None."""
    if milliseconds is None:
        return ""
    return duration(milliseconds) if milliseconds < _MINUTE_MS else clock(milliseconds / 1000)


def clock(seconds: float | None) -> str:
    """A time that remains, or that may be taken: `0:42`, `1:02:09`; `–:––` where it is not known."""
    if seconds is None:
        return "–:––"
    minutes, rest = divmod(max(round(seconds), 0), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def spoken_seconds(seconds: float) -> str:
    """A wait as it was asked for, and in words where it is long: `7 s`, `86400 s (24 h)`, `600000 s (6.9 days)`."""
    exact = f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.3g} s"
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{exact} ({seconds / size:.3g} {unit})"
    return exact


def dollars(cost: float | None, *, whole: bool = True) -> str:
    """`$12.34`, `$0.0180`: of small sums the parts of a cent; `< $0.0001`; "" for None. `whole`: all of the cost is
    known; else `at least $0.0180`."""
    if cost is None:
        return ""
    if not whole:
        return f"at least {dollars(cost)}" if cost >= 0.0001 else "not known"
    if 0 < cost < 0.0001:
        return "< $0.0001"
    return f"${cost:,.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"


def about_dollars(cost: float) -> str:
    """An estimate: `about $0.0180`, `less than $0.0001`."""
    return "less than $0.0001" if cost < 0.0001 else f"about {dollars(cost)}"


def short_dollars(cost: float | None, *, whole: bool = True) -> str:
    """As `dollars`, for columns: `$1.50`, `$0.02`, `$0.0018`, `≥$0.02`; "" where it is not known or nothing."""
    if not cost:
        return ""
    if not whole:
        return f"≥{short_dollars(cost)}" if cost >= 0.00005 else ""
    if cost >= 1:
        return f"${cost:.2f}"
    if cost < 0.00005:
        return "<$0.0001"
    # At least cents; below, as many digits as say something.
    return f"${cost:.2f}" if round(cost, 2) == round(cost, 4) else f"${cost:.4f}".rstrip("0")


def short_number(number: int) -> str:
    """For columns: `1,234`, `12k`, `3.4M`; "" for 0."""
    if number >= 1_000_000:
        return f"{number / 1e6:.1f}M"
    return f"{number / 1e3:.0f}k" if number >= 10_000 else f"{number:,}" if number else ""


def token_count(number: int | None) -> str:
    """`312 tokens`, `12.4k tokens`; "" for None."""
    if number is None:
        return ""
    return f"{number:,} tokens" if number < 10_000 else f"{number / 1000:.1f}k tokens"


def file_size(size: int) -> str:
    """Bytes as `640 bytes`, `45 KB`, `2.5 MB`, `1.3 GB`."""
    if size < 1_000:
        return count(size, "byte")
    # Where the smaller unit would be rounded to a thousand, the larger one is meant.
    if size < 999_500:
        return f"{size / 1e3:.0f} KB"
    return f"{size / 1e6:.1f} MB" if size < 999_950_000 else f"{size / 1e9:,.1f} GB"


def age(then_ms: int | None, now_ms: int) -> str:
    """just now, 2 min ago, 3 h ago, 5 d ago, else the date."""
    if not then_ms:
        return ""
    seconds = (now_ms - then_ms) / 1000
    if seconds < 45:
        return "just now"
    # As in `duration`: nothing is 60 min or 24 h ago.
    if seconds < 59.5 * 60:
        return f"{max(round(seconds / 60), 1)} min ago"
    if seconds < 23.5 * 3600:
        return f"{seconds / 3600:.0f} h ago"
    if seconds < 14 * 86_400:
        return f"{seconds / 86_400:.0f} d ago"
    return date(then_ms)


def date(ms: int) -> str:
    """2026-11-21, local time."""
    return time.strftime("%Y-%m-%d", time.localtime(ms / 1000))


def moment(milliseconds: int | None) -> str:
    """`2026-12-01 09:00`, local time; "" for None and 0."""
    if not milliseconds:
        return ""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(milliseconds / 1000))


def typed_whole(text: str) -> int | None:
    """The whole number that a person typed; None for another text, or for more than 15 digits."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


def _enough(shares: tuple[float, ...], least: int, sign: str = "") -> list[str]:
    """Shares, or differences of shares, in percent: with the fewest digits that keep them apart, and that write none as
    nothing or as all that is not."""
    texts: list[str] = []
    for decimals in range(least, _MOST_DECIMALS + 1):
        texts = [_plain(100 * share, decimals, sign) for share in shares]
        true = all(
            share in (0.0, 1.0, -1.0) or text.lstrip("+-") not in ("0", "100")
            for text, share in zip(texts, shares, strict=True)
        )
        if true and len(set(texts)) == len(set(shares)):
            break
    return texts


def _plain(number: float, decimals: int, sign: str = "") -> str:
    text = f"{number:{sign}.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").removesuffix(".")
    return "0" if text in ("-0", "+0") else text


@overload
def iso(milliseconds: int) -> str: ...
@overload
def iso(milliseconds: int | None) -> str | None: ...
def iso(milliseconds: int | None) -> str | None:
    """ISO 8601, UTC, to the millisecond."""
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
