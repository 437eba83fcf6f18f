"""What is shown of an A/B comparison: both arms, their difference, and what may be said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agenteval_tui.analysis.ab import ABResult, Arm, MetricDelta
from agenteval_tui.analysis.statistics import FEW
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.views.comparison import TESTS, p_value_text
from agenteval_tui.views.model import Text, View, paragraphs, text

_MOST = 10


def ab_view(result: ABResult, *, tests: bool = False) -> View:
    """Both arms, their difference with interval and test, and what may be said of it; with `tests` each test too.

    One is recommended only where the interval excludes 0.
    """
    return paragraphs(_lines(result, tests))


def _lines(result: ABResult, tests: bool) -> Iterator[Text]:
    yield _arm("A", result.a)
    yield _arm("B", result.b)
    if result.difference is not None:
        yield text(f"B minus A: {numbers.points(result.difference)} points", (f"  ({_certainty(result)})", "dim"))
    pairs = result.pairs
    if pairs.only_a or pairs.only_b:
        passed = f"{pairs.both:,} passed both, {pairs.only_a:,} only A, {pairs.only_b:,} only B"
        yield text((f"pairs of runs: {passed}", "dim"))
    yield _metric("cost", result.cost, lambda value: _signed(value, numbers.dollars))
    yield _metric("tokens", result.tokens, lambda value: f"{value:+,.0f}")
    yield _metric("time", result.latency_ms, lambda value: _signed(value, numbers.duration))
    if result.unpaired:
        yield text((f"{numbers.count(result.unpaired, 'case')} decided on one side only: left out", "warn"))
    if tests:
        yield from _tests(result)
    yield text((one_line(result.conclusion), "good" if result.recommended else "bold"))
    if result.recommended:
        better = result.a if result.recommended == "A" else result.b
        yield text((f"recommended: {one_line(better.name)}", "good"))


def _certainty(result: ABResult) -> str:
    """How sure the difference is: the interval, the cases and the test; of few cases, that there are too few."""
    cases = numbers.count(result.cases, "case")
    if result.one_case:
        cases += f", {result.tests[0].n_a} and {result.tests[0].n_b} repetitions"
    if result.interval is None:
        return f"{cases}: too few to show how sure this is"
    low, high = numbers.points_interval(*result.interval)
    tested = f", {TESTS[result.test][0]}: {p_value_text(result.p_value)}" if result.p_value is not None else ""
    return f"95 % interval {low} to {high}{' for this case alone' if result.one_case else ''}, {cases}{tested}"


def _arm(letter: str, arm: Arm) -> Text:
    rate = "-" if arm.pass_rate is None else numbers.percent(arm.pass_rate)
    interval = ""
    if arm.interval is not None:
        interval = "(" + " to ".join(f"{end} %" for end in numbers.percent_interval(*arm.interval)) + ")"
    more = [f"{arm.errors:,} in error"] if arm.errors else []
    more += [f"{numbers.dollars(arm.cost)} a run"] if arm.cost else []
    more += [f"{numbers.duration(arm.latency_ms)} a run"] if arm.latency_ms is not None else []
    return text(
        (f"{letter} ", "bold"),
        f"{one_line(arm.name, 40)}: {rate}, {arm.passed:,} of {numbers.count(arm.n, 'run')}",
        ("".join(f"  {part}" for part in (interval, ", ".join(more)) if part), "dim"),
    )


def _metric(name: str, delta: MetricDelta | None, formatted: Callable[[float], str]) -> Text:
    if delta is None or (delta.difference == 0 and delta.interval is None):
        return ()
    span = numbers.count(delta.n, "case") if delta.n < FEW else f"the same in all {numbers.count(delta.n, 'case')}"
    if delta.interval is not None:
        low, high = delta.interval
        span = f"{formatted(low)} to {formatted(high)}"
    return text((f"{name} of a run, B minus A: {formatted(delta.difference)}  ({span})", "dim"))


def _tests(result: ABResult) -> Iterator[Text]:
    moved = sorted((test for test in result.tests if test.difference), key=lambda case: -abs(case.difference))
    for case in moved[:_MOST]:
        yield text(
            f"  {one_line(case.test, 40)}: ",
            (numbers.points(case.difference), "good" if case.difference > 0 else "bad"),
            (f"  A {case.passed_a}/{case.n_a}, B {case.passed_b}/{case.n_b}", "dim"),
        )
    if len(moved) > _MOST:
        yield text((f"  and {numbers.count(len(moved) - _MOST, 'more test')}", "dim"))


def _signed(value: float, formatted: Callable[[float], str]) -> str:
    return ("-" if value < 0 else "+") + formatted(abs(value))
