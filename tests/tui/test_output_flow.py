"""The terminal is asked whether it has the picture: what a lost, late or made-up answer does."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from terminal import ROOT, Terminal
from textual import events

from agenteval_tui.tui.terminal.minimal_redraw import _key_like
from agenteval_tui.tui.terminal.output_flow import (
    MISSES,
    MOST_PATIENCE_S,
    ON_ITS_WAY,
    PATIENCE_S,
    Arrival,
    modified_f3,
)
from agenteval_tui.tui.terminal.terminal_app import TerminalApp

PLACE = re.compile(r"\x1b\[(\d+);(\d+)H\x1b\[6n")
PICTURE = ON_ITS_WAY + 1


def place(question: str) -> tuple[int, int]:
    found = PLACE.fullmatch(question)
    assert found is not None, question
    return int(found[1]), int(found[2])


def asked(arrival: Arrival, now: float, size: int = PICTURE) -> tuple[int, int]:
    return place(arrival.sending(size, 80, 24, now))


def test_pictures_wait_for_an_answer_and_go_on_when_it_comes() -> None:
    arrival = Arrival()
    assert arrival.answered(*asked(arrival, 0.0), 0.01)
    there = asked(arrival, 1.0)
    assert arrival.is_behind(1.1)
    assert arrival.sending(PICTURE, 80, 24, 1.1) == "", "one question at a time"
    assert arrival.answered(*there, 1.2)
    assert not arrival.is_behind(1.2)
    assert arrival.asks_again(80, 24, 1.2), "more was sent meanwhile"


def test_a_lost_answer_is_waited_for_a_second_and_after_two_nobody_is_asked() -> None:
    arrival = Arrival()
    arrival.answered(*asked(arrival, 0.0), 0.01)
    frozen, now, questions = 0.0, 1.0, 0
    while now < 60:
        if arrival.is_behind(now):
            frozen += 0.03
        else:
            questions += bool(arrival.sending(PICTURE, 80, 24, now))
        now += 0.03
    assert questions == MISSES
    assert frozen <= MISSES * PATIENCE_S + 0.1


def test_a_terminal_that_never_answered_keeps_nobody_waiting() -> None:
    arrival = Arrival()
    questions = 0
    for tenth in range(600):
        questions += bool(arrival.sending(PICTURE, 80, 24, tenth / 10))
        assert not arrival.is_behind(tenth / 10)
        assert not arrival.is_awaited(tenth / 10)
    assert questions == MISSES


def test_a_line_is_slow_after_three_late_answers_until_one_comes_soon() -> None:
    arrival = Arrival()
    for number, slow in enumerate((False, False, True, True)):
        assert arrival.answered(*asked(arrival, 10.0 * number), 10.0 * number + 0.4)
        assert arrival.is_slow is slow
    assert arrival.answered(*asked(arrival, 50.0), 50.1)
    assert not arrival.is_slow


def test_a_slow_line_is_given_the_time_it_takes() -> None:
    arrival = Arrival()
    first = asked(arrival, 0.0)
    asked(arrival, 1.1)
    assert arrival.sending(PICTURE, 80, 24, 2.3) == "", "two were missed"
    assert arrival.answered(*first, 3.0), "late, and right"
    there = asked(arrival, 3.1)
    assert arrival.is_behind(6.0)
    assert arrival.answered(*there, 6.1)
    lost = asked(arrival, 7.0)
    assert lost != there
    assert not arrival.is_behind(7.0 + MOST_PATIENCE_S)
    asked(arrival, 30.0)
    assert arrival.is_behind(30.0 + PATIENCE_S - 0.1)
    assert not arrival.is_behind(30.0 + PATIENCE_S), "after one miss, a second"


@given(row=st.integers(0, 300), column=st.integers(0, 300))
def test_only_the_place_that_was_asked_for_is_an_answer(row: int, column: int) -> None:
    arrival = Arrival()
    assert not arrival.answered(row, column, 0.0)
    there = asked(arrival, 0.0)
    if (row, column) == there:
        return
    assert not arrival.answered(row, column, 0.1)
    assert not arrival.is_behind(0.1), "nothing has been learned"
    assert arrival.answered(*there, 0.2)
    assert not arrival.answered(*there, 0.3), "an answer counts once"


@given(columns=st.integers(1, 300), rows=st.integers(2, 100), number=st.integers(0, 40))
def test_questions_are_about_places_of_the_screen_that_no_key_has(columns: int, rows: int, number: int) -> None:
    arrival = Arrival()
    seen = set()
    for tick in range(number + 1):
        there = place(arrival.sending(PICTURE, columns, rows, 100.0 * tick))
        assert 1 <= there[0] <= rows
        assert 1 <= there[1] <= columns
        assert modified_f3(*there) is None
        seen.add(there)
        arrival.answered(*there, 100.0 * tick + 0.1)
    assert len(seen) == 1 + min(number, max(columns - 16, 1) - 1)


def test_a_new_size_begins_anew() -> None:
    arrival = Arrival()
    arrival.answered(*asked(arrival, 0.0), 0.01)
    asked(arrival, 1.0)
    arrival.forget()
    assert not arrival.is_behind(1.1)
    assert asked(arrival, 1.2)


@pytest.mark.parametrize(
    ("column", "key"),
    [(1, None), (2, "f15"), (3, "alt+f3"), (5, "ctrl+f3"), (6, "ctrl+f15"), (9, "super+f3"), (17, None)],
)
def test_f3_with_modifiers_is_a_key(column: int, key: str | None) -> None:
    made = _key_like(events.CursorPosition(column - 1, 0))
    assert (made.key if made is not None else None) == key
    assert _key_like(events.CursorPosition(column - 1, 1)) is None


async def test_a_key_of_that_shape_reaches_whoever_has_the_focus() -> None:
    pressed: list[str] = []

    class Listening(TerminalApp):
        def on_key(self, event: events.Key) -> None:
            pressed.append(event.key)

    app = Listening()
    async with app.run_test(size=(40, 10)) as pilot:
        for x, y in ((1, 0), (0, 0), (4, 0), (20, 0), (3, 7)):
            app.post_message(events.CursorPosition(x, y))
            await pilot.pause()
        await pilot.pause()
    assert pressed == ["f15", "ctrl+f3"]
    assert not app.awaits_terminal


@pytest.mark.sweep
@pytest.mark.e2e
@pytest.mark.xdist_group("terminals")
@pytest.mark.parametrize("noise", ["", "\x1b[1;1R", "\x1b[1;2R", "\x1b[7;9R" * 3])
def test_answers_that_stop_freeze_no_screen(noise: str, run_in_terminal: Callable[..., Terminal]) -> None:
    source = f"import sys; from agenteval_tui.__main__ import main; sys.exit(main([{str(ROOT / 'sample_suites')!r}]))"
    with run_in_terminal(source, columns=80, rows=24) as it:
        it.wait_for("help")
        it.settle()
        it.says_where = False
        before = it.written.count(b"\x1b[6n")
        for _ in range(3):
            for key, there in (("5", " execution"), ("8", " agents ──"), ("1", " suites ──")):
                if noise:
                    it.send(noise)
                it.send(key)
                it.wait_for(there)
        assert it.written.count(b"\x1b[6n") - before <= MISSES
        it.send("q")
        it.wait_for_end()
