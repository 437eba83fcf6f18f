"""Figures stay true when they are rounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.analysis.statistics import wilson
from agenteval_tui.core.numbers import (
    about_dollars,
    age,
    clock,
    count,
    decimal,
    dollars,
    duration,
    file_size,
    least_points,
    moment,
    percent,
    percent_interval,
    percent_limit,
    points,
    points_interval,
    short_dollars,
    short_duration,
    short_number,
    token_count,
)


@pytest.mark.parametrize(
    ("share", "said"),
    [(1.0, "100 %"), (0.0, "0 %"), (0.999, "99.9 %"), (0.0004, "0.04 %"), (0.5, "50 %"), (2 / 3, "67 %")],
)
def test_a_share_is_all_or_nothing_only_where_it_is(share: float, said: str) -> None:
    assert percent(share) == said


@given(st.integers(1, 3_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.integers(0, 1_000))
def test_a_share_is_written_on_the_side_of_its_limit_where_it_is(counts: tuple[int, int], thousandths: int) -> None:
    share, limit = counts[0] / counts[1], thousandths / 1_000
    written, of_limit = percent(share, beside=limit), percent_limit(limit)
    rounded, exact = float(written.removesuffix(" %")), float(of_limit.removesuffix(" %"))
    assert exact == pytest.approx(100 * limit)
    if share != limit:
        assert (rounded < exact) == (share < limit), (written, of_limit)


def test_a_limit_is_written_as_somebody_set_it() -> None:
    assert [percent_limit(limit) for limit in (0.9, 0.985, 0.9875, 1.0, 0.0)] == [
        "90 %", "98.5 %", "98.75 %", "100 %", "0 %",
    ]  # fmt: skip
    assert [percent(share, beside=0.9) for share in (0.896, 0.9, 0.9004, 0.5)] == ["89.6 %", "90 %", "90.04 %", "50 %"]


def test_the_least_difference_that_can_be_seen_is_not_rounded_down() -> None:
    assert [least_points(least) for least in (0.0004, 0.01, 0.05, 0.0504, 0.32)] == [
        "1 point", "1 point", "5 points", "6 points", "32 points",
    ]  # fmt: skip


def test_the_interval_of_a_thousand_passes_is_no_point() -> None:
    assert percent_interval(*wilson(1000, 1000)) == ("99.6", "100")
    assert percent_interval(*wilson(0, 5000)) == ("0", "0.1")
    assert percent_interval(*wilson(3, 4)) == ("30", "95")
    assert percent_interval(0.4, 0.405, 1) == ("40", "40.5")


@given(st.integers(1, 200_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_ends_stay_apart_and_say_all_or_nothing_only_where_it_is(counts: tuple[int, int]) -> None:
    low, high = wilson(*counts)
    first, last = percent_interval(low, high)
    assert first != last
    assert float(first) < float(last)
    assert (first == "0") == (low == 0)
    assert (last == "100") == (high == 1)


def test_points() -> None:
    assert [points(one) for one in (0.12, -0.005, 0.0, 1.0, -0.0001, 1 / 3)] == [
        "+12", "-0.5", "0", "+100", "-0.01", "+33.3",
    ]  # fmt: skip
    assert points_interval(-0.0003, 0.0004) == ("-0.03", "+0.04")
    assert points_interval(-0.02, 0.25) == ("-2", "+25")


def test_figures_for_columns() -> None:
    assert [short_duration(x) for x in (None, 12, 1400, 125_000, 3_729_000)] == [
        "",
        "12 ms",
        "1.4 s",
        "2:05",
        "1:02:09",
    ]
    assert [clock(x) for x in (None, 42, 3700, -5)] == ["–:––", "0:42", "1:01:40", "0:00"]
    assert [short_dollars(x) for x in (None, 0, 0.002, 1.5)] == ["", "", "$0.002", "$1.50"]
    assert [percent(x) for x in (None, 0.4, 1)] == ["-", "40 %", "100 %"]
    assert [count(x, "criterion") for x in (None, 1, 31_000)] == ["0 criteria", "1 criterion", "31,000 criteria"]
    assert [token_count(x) for x in (None, 312, 12_400)] == ["", "312 tokens", "12.4k tokens"]
    assert [short_number(x) for x in (0, 1_234, 12_400, 3_400_000)] == ["", "1,234", "12k", "3.4M"]
    assert [moment(x) for x in (None, 0)] == ["", ""]
    now = 1_795_262_400_000
    ages = [age(now - seconds * 1000, now) for seconds in (1, 130, 7300, 200_000)]
    assert ages == ["just now", "2 min ago", "2 h ago", "2 d ago"]
    assert age(None, now) == ""
    assert age(now - 40 * 86_400_000, now).startswith("2026-10")


def test_a_size_is_in_the_unit_that_its_rounded_figure_has() -> None:
    sizes = (0, 1, 999, 1_500, 999_499, 999_500, 2_500_000, 999_949_000, 999_950_000, 3_210_000_000)
    assert [file_size(size) for size in sizes] == [
        "0 bytes", "1 byte", "999 bytes", "2 KB", "999 KB", "1.0 MB", "2.5 MB", "999.9 MB", "1.0 GB", "3.2 GB",
    ]  # fmt: skip


def test_a_time_is_in_the_unit_that_its_rounded_figure_has() -> None:
    times = (999.4, 999.6, 1_000, 59_949, 59_960, 60_000, 119_600, 3_599_700)
    assert [duration(time) for time in times] == [
        "999 ms", "1.0 s", "1.0 s", "59.9 s", "1 min 0 s", "1 min 0 s", "2 min 0 s", "60 min 0 s",
    ]  # fmt: skip
    # A column and a sentence say the same time.
    assert [short_duration(time) for time in times] == [
        "999 ms", "1.0 s", "1.0 s", "59.9 s", "1:00", "1:00", "2:00", "1:00:00",
    ]  # fmt: skip


def test_an_age_is_in_the_unit_that_its_rounded_figure_has() -> None:
    now = 1_795_262_400_000
    ages = [age(now - seconds * 1000, now) for seconds in (44, 45, 3_569, 3_575, 84_590, 84_700)]
    assert ages == ["just now", "1 min ago", "59 min ago", "1 h ago", "23 h ago", "1 d ago"]


def test_a_sum_of_which_parts_are_unknown_says_so() -> None:
    assert [about_dollars(cost) for cost in (0.00002, 0.018)] == ["less than $0.0001", "about $0.0180"]
    assert [dollars(cost, whole=False) for cost in (0.018, 0.0, None)] == ["at least $0.0180", "not known", ""]
    assert [short_dollars(cost, whole=False) for cost in (0.018, 0.0, None)] == ["≥$0.018", "", ""]


def test_a_score_is_on_its_side_of_0_of_1_and_of_its_limit() -> None:
    assert [decimal(score) for score in (0.0, 0.5, 1.0, 0.996, 0.004)] == ["0.00", "0.50", "1.00", "0.996", "0.004"]
    assert [decimal(score, beside=0.8) for score in (0.796, 0.8, 0.804, 0.7)] == ["0.796", "0.80", "0.804", "0.70"]
    assert decimal(0.1 + 0.2, beside=0.3) == "0.30"
    assert decimal(0.796, beside=0.799) == "0.796"
