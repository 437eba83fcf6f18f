"""A server that takes only so many at once is worked through, and its limit is found."""

from __future__ import annotations

import heapq

from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.runs.throttle import MOST_BURSTS, Throttle


@given(st.integers(1, 12), st.integers(1, 40), st.integers(1, 60))
def test_every_run_is_served_by_a_server_that_takes_only_so_many(takes: int, wanted: int, runs: int) -> None:
    """A simulation: answers take a second, refusals none; what is refused waits until `until`."""
    throttle, now, begun = Throttle(), 0.0, 0
    busy: list[tuple[float, float]] = []  # (end, began) of those that are served
    left, refusals = runs, 0
    while left or busy:
        limit = wanted if throttle.limit is None else min(wanted, throttle.limit)
        assert limit >= 1
        while left and len(busy) < limit and now >= throttle.until:
            begun += 1
            if len(busy) < takes:
                heapq.heappush(busy, (now + 1, now))
                left -= 1
            else:
                refusals += 1
                throttle.refused(now, now, len(busy) + 1, 0.25)
                limit = min(wanted, throttle.limit or wanted)
        assert not throttle.rejects_all
        next_end = busy[0][0] if busy else float("inf")
        if left and throttle.until > now and throttle.until < next_end:
            now = throttle.until
        elif busy:
            now, began = heapq.heappop(busy)
            throttle.accepted(began, wanted)
        else:
            now = throttle.until
    assert begun == runs + refusals
    assert refusals <= 3 * runs + 12


def test_a_burst_cuts_once() -> None:
    throttle = Throttle()
    assert throttle.refused(0.0, 1.0, 16, 0.5)
    assert throttle.limit == 8
    for _ in range(11):  # the others of the same burst
        assert not throttle.refused(0.5, 1.1, 16, 0.5)
    assert (throttle.limit, throttle.until) == (8, 1.6)
    assert not throttle.refused(0.5, 1.2, 16, 9.0)  # it asks for more time all the same
    assert throttle.until == 10.2
    assert throttle.refused(10.3, 10.4, 3, 0.1)  # asked after the cut, with three at once
    assert throttle.limit == 1


def test_as_many_successes_as_the_limit_raise_it_by_one_until_all_is_as_it_was() -> None:
    throttle = Throttle()
    throttle.refused(0.0, 1.0, 4, 0.0)
    raised = [throttle.accepted(2.0, 4) for _ in range(5)]
    assert (raised, throttle.limit) == ([False, True, False, False, True], None)
    assert not throttle.accepted(3.0, 4)


def test_what_was_asked_before_the_cut_says_nothing_of_the_new_limit() -> None:
    throttle = Throttle()
    throttle.refused(0.0, 1.0, 2, 0.0)
    assert not any(throttle.accepted(0.5, 8) for _ in range(5))
    assert throttle.limit == 1


def test_a_server_that_refuses_everybody_is_given_up() -> None:
    throttle = Throttle()
    for burst in range(MOST_BURSTS):
        assert not throttle.rejects_all
        assert throttle.number(float(burst)) == burst + 1
        throttle.refused(float(burst), float(burst), 1, 0.0)
    assert throttle.rejects_all
    throttle.accepted(0.0, 8)
    assert not throttle.rejects_all


def test_a_lone_refusal_says_nothing_of_the_server_and_a_second_one_soon_after_does() -> None:
    throttle = Throttle()
    assert throttle.is_isolated(16)
    throttle.count_isolated()
    assert not throttle.is_isolated(15)
    assert throttle.refused(0.0, 1.0, 15, 0.5)
    assert throttle.limit == 8, "sixteen were on their way, with the one before"
    for _ in range(31):
        throttle.accepted(2.0, 16)
    assert not throttle.is_isolated(16)
    throttle.accepted(2.0, 16)
    assert throttle.is_isolated(16)


def test_what_was_answered_together_at_the_cut_is_what_the_server_takes() -> None:
    throttle = Throttle()
    throttle.refused(0.0, 1.0, 16, 0.5)
    assert [throttle.accepted(0.0, 16) for _ in range(13)][-1]
    assert throttle.limit == 13
