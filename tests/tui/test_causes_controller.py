"""Which causes are listed, what is said of them, and what keys are for. No app, no widget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from failing import make
from msgspec.structs import replace

from agenteval_tui.history.store import Store
from agenteval_tui.tui.presenters.cause_rows import CauseRow
from agenteval_tui.tui.screens.causes_controller import CausesController, CauseScope, read_causes, read_example
from agenteval_tui.tui.styled_text import plain, width_of

NOON = 1_795_262_400_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "h.db") as opened:
        make(opened, "E1", started_ms=NOON - 86_400_000, smoke=["text", ""], refund=["tool"])
        make(opened, "E2", started_ms=NOON, smoke=["text", "text", ""], refund=["text", "down", "down"])
        yield opened


@pytest.fixture
def controller(store: Store) -> CausesController:
    made = CausesController()
    made.look_at(CauseScope())
    made.take(read_causes(store, made.looking, ()))
    assert made.arrange() == "", "other runs: from the first on"
    return made


def chosen(controller: CausesController, index: int = 0) -> CauseRow:
    row = controller.row_at(index)
    assert row is not None
    return row


def test_rows_say_shares_with_the_longest_bar_for_the_most_frequent(controller: CausesController) -> None:
    lines = [plain(controller.rows.line(n, 120, focused=False)) for n in range(controller.rows.count())]
    assert lines[0].startswith('    3 ▆▆▆▆▆▆▆▆▆▆▆▆ 60 %   The filter: "5000" is not in the text')
    assert lines[1].startswith("    2 ▆▆▆▆▆▆▆▆     40 % ! the agent failed (timeout)")
    assert "gone" in lines[2]
    assert "%" not in lines[2]
    assert "smoke, refund" in plain(controller.rows.line(0, 140, focused=False)), "wide lists name the tests"
    assert all(width_of(controller.rows.line(0, width, focused=True)) <= width for width in (20, 40, 78, 200))


def test_a_run_that_has_a_cause_twice_is_stepped_through_twice(controller: CausesController) -> None:
    row = chosen(controller)
    first, second, *_ = row.group.run_ids
    twice = replace(row, group=replace(row.group, run_ids=(first, first, second)))
    assert [controller.step(twice, 1) or controller.example(twice) for _ in range(2)] == [1, 2]


def test_the_title_names_the_tabs_and_how_much_is_open(controller: CausesController) -> None:
    left, right = controller.heading(140, 120)
    assert plain(left).startswith("[causes] review   5 failures = 2 causes   the newest runs of each test, compared")
    assert plain(right) == "2 open"
    assert plain(controller.heading(80, 120)[0]).endswith("causes   newest runs"), "nothing is cut off at 80 columns"
    controller.words, controller.only_open = "nobody", True
    controller.arrange()
    assert "No cause matches these words." in "".join(map(plain, controller.empty()))
    assert controller.row_at(0) is None


def test_an_example_is_read_once_and_stepped_through(controller: CausesController, store: Store) -> None:
    row = chosen(controller)
    wanted = controller.example_to_read(row)
    assert wanted is not None
    assert controller.example_to_read(row) is None, "it is read already"
    found = read_example(store, wanted[1], row.group.positions[0])
    assert controller.take_example(wanted, found)
    shown = "\n".join(map(plain, controller.detail(row, 80, NOON)))
    assert "example 1 of 3" in shown
    assert 'expected  "5000"' in shown
    assert "\\n" not in shown, "answers are texts, not strings with escapes"
    assert controller.step(row, -1) == "This is the first of its runs."
    assert (controller.step(row, 1), controller.step(row, 1)) == ("", "")
    assert controller.step(row, 1) == "This is the last of its runs."
    assert controller.run_to_open(row).run == row.group.run_ids[2]
    assert not controller.take_example(("another", ""), found)
    other = chosen(controller, 1).group
    assert controller.example_to_read(chosen(controller, 1)) == (other.cause.signature, other.run_ids[0])


def test_an_example_stays_when_runs_are_read_again(controller: CausesController, store: Store) -> None:
    row = chosen(controller)
    controller.step(row, 1)
    run = controller.run_to_open(row).run
    controller.take(read_causes(store, controller.looking, ()))
    controller.arrange()
    assert controller.run_to_open(chosen(controller)).run == run
    make(store, "E3", started_ms=NOON + 86_400_000, smoke=["text", "text"], refund=["text"])
    everything = CauseScope(everything=True)
    controller.take(read_causes(store, everything, ()))
    controller.arrange()
    assert chosen(controller).group.run_ids.index(run) > 1, "newer runs stand before it"
    assert controller.run_to_open(chosen(controller)).run == run
    assert controller.example_to_read(chosen(controller)) == (chosen(controller).group.cause.signature, run)


def test_only_keys_that_do_something_are_named(controller: CausesController) -> None:
    assert controller.key_names(chosen(controller)) == [
        "open", "fix", "accept", "quarantine", "label", "ignore", "next",
    ]  # fmt: skip
    assert "accept" not in controller.key_names(chosen(controller, 2)), "it is gone"
    assert controller.key_names(None) == ["scope", "review"]


def test_after_a_decision_the_next_open_cause_has_the_cursor(controller: CausesController) -> None:
    controller.go_on_after(chosen(controller))
    assert controller.arrange() == chosen(controller, 1).group.cause.signature
    assert controller.arrange() is None, "then it stays"


def test_the_key_for_other_runs_says_which_come_next() -> None:
    looking, names = CauseScope(), []
    for _ in range(3):
        looking = looking.next()
        names.append(looking.name)
    assert names == ["last execution", "all runs", "newest runs"]
    one = CauseScope(suites=("s",), tests=("smoke",))
    assert one.next() == CauseScope(), "of one test the next is of all tests"


def test_a_test_that_was_run_alone_hides_no_other(store: Store) -> None:
    make(store, "E3", started_ms=NOON + 1, smoke=["text"])
    found = read_causes(store, CauseScope(), ())
    assert {name for group in found.causes.present for name in group.test_names} == {"Smoke", "Refund"}
    assert (found.causes.failed, found.causes.ended) == (4, 4)
    assert CauseScope(tests=("smoke",)).words(found.causes.scope, short=False) == "the newest runs of smoke"


def test_what_is_kept_is_there_again(controller: CausesController) -> None:
    controller.look_at(CauseScope("", everything=True))
    controller.only_open = True
    again = CausesController()
    again.restore(controller.kept())
    assert (again.looking.everything, again.only_open) == (True, True)
    assert "looking for causes" in "".join(map(plain, again.empty()))
