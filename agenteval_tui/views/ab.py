"""What is shown of an A/B comparison: both arms, their difference, and what may be said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agenteval_tui.analysis.ab import ABResult, Arm, MetricDelta
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.views.comparison import TESTS
from agenteval_tui.views.model import Text, View, paragraphs, text

_MOST = 10


def ab_lines(found: ABResult, *, tests: bool = False) -> View:
    """Both arms, their difference with interval and test, and what may be said of it; with `tests` each test too.

    One is recommended only where the interval excludes 0.
    """
    return paragraphs(_lines(found, tests))


def _lines(found: ABResult, tests: bool) -> Iterator[Text]:
    yield _arm("A", found.a)
    yield _arm("B", found.b)
    if found.difference is not None and found.interval is not None:
        low, high = numbers.points_interval(*found.interval)
        span = f"  (95 % interval {low} to {high}, {numbers.count(found.cases, 'case')}"
        span += f", {TESTS[found.test][0]}: p = {found.p_value:.3g})" if found.p_value is not None else ")"
        yield text(f"B minus A: {numbers.points(found.difference)} points", (span, "dim"))
    pairs = found.pairs
    if pairs.only_a or pairs.only_b:
        yield text((f"pairs of runs: {pairs.both} passed both, {pairs.only_a} only A, {pairs.only_b} only B", "dim"))
    yield _metric("cost", found.cost, lambda value: _signed(value, numbers.dollars))
    yield _metric("tokens", found.tokens, lambda value: f"{value:+,.0f}")
    yield _metric("time", found.latency_ms, lambda value: _signed(value, numbers.duration))
    if found.unpaired:
        yield text((f"{numbers.count(found.unpaired, 'case')} decided under only one of them: left out", "warn"))
    if tests:
        yield from _tests(found)
    yield text((one_line(found.conclusion), "good" if found.recommended else "bold"))
    if found.recommended:
        better = found.a if found.recommended == "A" else found.b
        yield text((f"recommended: {one_line(better.name)}", "good"))


def _arm(letter: str, arm: Arm) -> Text:
    rate = "-" if arm.pass_rate is None else numbers.percent(arm.pass_rate)
    interval = " to ".join(f"{end} %" for end in numbers.percent_interval(*arm.interval))
    more = [f"{arm.errors} in error"] if arm.errors else []
    more += [f"{numbers.dollars(arm.cost)} a run"] if arm.cost else []
    more += [f"{numbers.duration(arm.latency_ms)} a run"] if arm.latency_ms is not None else []
    return text(
        (f"{letter} ", "bold"),
        f"{one_line(arm.name, 40)}: {rate}, {arm.passed} of {arm.n} runs",
        (f"  ({interval})  {', '.join(more)}", "dim"),
    )


def _metric(name: str, one: MetricDelta | None, shown: Callable[[float], str]) -> Text:
    if one is None or (one.difference == 0 and one.interval is None):
        return ()
    span = f"the same in all {numbers.count(one.n, 'case')}"
    if one.interval is not None:
        low, high = one.interval
        span = f"{shown(low)} to {shown(high)}"
    return text((f"{name} of a run, B minus A: {shown(one.difference)}  ({span})", "dim"))


def _tests(found: ABResult) -> Iterator[Text]:
    moved = sorted((one for one in found.tests if one.difference), key=lambda one: -abs(one.difference))
    for one in moved[:_MOST]:
        yield text(
            f"  {one_line(one.test, 40)}: ",
            (numbers.points(one.difference), "good" if one.difference > 0 else "bad"),
            (f"  A {one.passed_a}/{one.n_a}, B {one.passed_b}/{one.n_b}", "dim"),
        )
    if len(moved) > _MOST:
        yield text((f"  and {len(moved) - _MOST} more tests", "dim"))


def _signed(value: float, shown: Callable[[float], str]) -> str:
    return ("-" if value < 0 else "+") + shown(abs(value))
