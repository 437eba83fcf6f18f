"""Figures as short words: durations, counts, rates, costs, ages."""

from __future__ import annotations

from agenteval_tui.core import numbers


def duration(ms: float | None) -> str:
    """12 ms, 1.4 s, 2:05, 1:02:09; "" when not measured."""
    if ms is None:
        return ""
    if ms < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"


def clock(seconds: float | None) -> str:
    """A remaining time: 0:42; "–:––" when unknown."""
    if seconds is None:
        return "–:––"
    whole = max(round(seconds), 0)
    if whole >= 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
    return f"{whole // 60}:{whole % 60:02}"


def percent(rate: float | None) -> str:
    """40 %; "" when there is none."""
    return "" if rate is None else numbers.percent(rate)


def interval(low: float, high: float) -> str:
    """Both ends of an interval of shares, in percent: 12–40."""
    return "–".join(numbers.percent_interval(low, high))


def cost(dollars: float | None) -> str:
    """$0.002; "" when not known or nothing."""
    if not dollars:
        return ""
    if dollars >= 1:
        return f"${dollars:.2f}"
    if dollars < 0.00005:
        return "<$0.0001"
    # At least cents; below, as many digits as say something.
    return f"${dollars:.2f}" if round(dollars, 2) == round(dollars, 4) else f"${dollars:.4f}".rstrip("0")


def tokens(number: int | None) -> str:
    """312 tokens, 12.4k tokens; "" when not measured."""
    if number is None:
        return ""
    return f"{number:,} tokens" if number < 10_000 else f"{number / 1000:.1f}k tokens"


def date_time(ms: int | None) -> str:
    """2026-11-21 22:04, local time; "" for none."""
    return numbers.moment(ms) if ms else ""
