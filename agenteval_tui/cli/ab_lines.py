"""The result of an A/B comparison, as lines of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval_tui.cli.output import Output, Style, dollars, duration, percent, percent_range, plural
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from agenteval_tui.analysis.ab import ABResult, Arm, MetricDelta

_TESTS = {"mcnemar": "McNemar's exact test", "sign-flip": "test by flipped signs"}
_MOST = 10


def print_ab(out: Output, found: ABResult, *, tests: bool = False) -> None:
    """Both arms, their difference with interval and test, and what may be said of it; with `tests` each test too.

    One is recommended only where the interval excludes 0.
    """
    _arm(out, "A", found.a)
    _arm(out, "B", found.b)
    if found.difference is not None and found.interval is not None:
        low, high = numbers.points_interval(*found.interval)
        said = f"B minus A: {numbers.points(found.difference)} points"
        span = f"  (95 % interval {low} to {high}, {plural(found.cases, 'case')}"
        span += f", {_TESTS[found.test]}: p = {found.p_value:.3g})" if found.p_value is not None else ")"
        out.line(said, (span, "dim"))
    pairs = found.pairs
    if pairs.only_a or pairs.only_b:
        out.line((f"pairs of runs: {pairs.both} passed both, {pairs.only_a} only A, {pairs.only_b} only B", "dim"))
    for name, one, shown in (
        ("cost", found.cost, lambda value: _signed(value, dollars)),
        ("tokens", found.tokens, lambda value: f"{value:+,.0f}"),
        ("time", found.latency_ms, lambda value: _signed(value, duration)),
    ):
        _measure(out, name, one, shown)
    if found.unpaired:
        out.line((f"{plural(found.unpaired, 'case')} decided under one of them only: left out", "warn"))
    if tests:
        _tests(out, found)
    style: Style = "good" if found.recommended else "bold"
    out.line((one_line(found.conclusion), style))
    if found.recommended:
        better = found.a if found.recommended == "A" else found.b
        out.line((f"recommended: {one_line(better.name)}", "good"))


def _arm(out: Output, letter: str, arm: Arm) -> None:
    low, high = arm.interval
    more = [f"{arm.errors} in error"] if arm.errors else []
    more += [f"{dollars(arm.cost)} a run"] if arm.cost else []
    more += [f"{duration(arm.latency_ms)} a run"] if arm.latency_ms is not None else []
    out.line(
        (f"{letter} ", "bold"),
        f"{one_line(arm.name, 40)}: {percent(arm.pass_rate)}, {arm.passed} of {arm.n} runs",
        (f"  ({percent_range(low, high)})  {', '.join(more)}", "dim"),
    )


def _measure(out: Output, name: str, one: MetricDelta | None, shown: Callable[[float], str]) -> None:
    if one is None or (one.difference == 0 and one.interval is None):
        return
    span = f"the same in all {plural(one.n, 'case')}"
    if one.interval is not None:
        low, high = one.interval
        span = f"{shown(low)} to {shown(high)}"
    out.line((f"{name} of a run, B minus A: {shown(one.difference)}  ({span})", "dim"))


def _tests(out: Output, found: ABResult) -> None:
    moved = sorted((one for one in found.tests if one.difference), key=lambda one: -abs(one.difference))
    for one in moved[:_MOST]:
        style: Style = "good" if one.difference > 0 else "bad"
        out.line(
            f"  {one_line(one.test, 40)}: ",
            (f"{numbers.points(one.difference)}", style),
            (f"  A {one.passed_a}/{one.n_a}, B {one.passed_b}/{one.n_b}", "dim"),
        )
    if len(moved) > _MOST:
        out.line((f"  and {len(moved) - _MOST} more tests", "dim"))


def _signed(value: float, shown: Callable[[float], str]) -> str:
    return ("-" if value < 0 else "+") + shown(abs(value))
