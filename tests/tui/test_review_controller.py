"""What the review queue holds, and how a person goes through it. No app, no widget."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agenteval_tui.analysis.labels import LabelSaved
from agenteval_tui.analysis.review_queue import QueueItem
from agenteval_tui.history.labels import Label
from agenteval_tui.tui.actions import BY_ID, keyed
from agenteval_tui.tui.screens.review_controller import ReviewController
from agenteval_tui.tui.styled_text import plain, width_of

ITEMS = [
    QueueItem(run, "Shop", "tone", "Tone", "needs_review", "needs_review", 0, "Kind", "Is it kind?") for run in "abc"
]


def saved(run: str, comment: str) -> LabelSaved:
    return LabelSaved(Label(run, None, "Kind", comment, "kim", 1, passed=True), 1, "passed")


@pytest.fixture
def controller() -> ReviewController:
    made = ReviewController()
    made.take(list(ITEMS))
    return made


def said(controller: ReviewController) -> str:
    return "\n".join(map(plain, keyed(controller.ended_lines(), {})))


def test_before_anything_is_read_it_says_that_it_looks() -> None:
    controller = ReviewController()
    assert controller.item is None
    assert "reading the queue" in plain(controller.heading(80)[0])
    assert (controller.question_lines(80), controller.evidence_lines(80, 0)) == ([], [])


def test_the_question_comes_first_and_fits(controller: ReviewController) -> None:
    assert [plain(line).strip() for line in controller.question_lines(80)] == [
        "? Kind   waits for a person", "Is it kind?",
    ]  # fmt: skip
    controller.comment = "a note"
    assert "a note" in plain(controller.question_lines(80)[-1])
    assert all(width_of(line) <= 12 for line in controller.question_lines(12))


def test_the_title_names_a_test_only_while_it_is_shown(controller: ReviewController) -> None:
    controller.opened = cast("Any", SimpleNamespace(row=SimpleNamespace(test_id="the-last-one")))
    assert "the-last-one" in plain(controller.heading(80)[0])
    controller.items = []
    assert "the-last-one" not in plain(controller.heading(80)[0])


def test_one_goes_on_and_back_and_the_comment_comes_back(controller: ReviewController) -> None:
    controller.go_on(saved("a", "curt"))
    controller.go_on(None)
    assert controller.item == ITEMS[2]
    assert plain(controller.heading(80)[1]) == "1 labelled, 1 skipped"
    assert "3 of 3" in plain(controller.heading(80)[0])
    assert controller.last is None
    controller.go_back()
    assert (controller.item, controller.comment) == (ITEMS[1], "")
    controller.go_back()
    assert (controller.item, controller.comment) == (ITEMS[0], "curt")
    assert not controller.can_undo


def test_what_was_gone_through_stays_and_what_is_shown_stays(controller: ReviewController) -> None:
    controller.go_on(saved("a", ""))
    newer = QueueItem("d", "Shop", "tone", "Tone", "needs_review", "needs_review")
    controller.take([newer, ITEMS[2], ITEMS[1]])
    assert controller.items == [ITEMS[0], ITEMS[1], newer, ITEMS[2]]
    assert controller.item == ITEMS[1]
    controller.begin_anew()
    assert controller.items is None
    assert not controller.can_undo


def test_only_keys_that_do_something_are_named(controller: ReviewController) -> None:
    assert "undo" not in controller.key_names()
    for _ in ITEMS:
        controller.go_on(None)
    assert controller.key_names() == ["failures", "differ", "sample", "agreement", "undo"]
    assert "All done: 0 labelled, 3 skipped." in said(controller)
    assert "u  go back to the previous one" in said(controller)
    controller.begin_anew()
    controller.take([])
    assert "Nothing is waiting for a person." in said(controller)
    assert "goes back" not in said(controller)


def test_keys_in_its_texts_are_those_of_the_screen(controller: ReviewController) -> None:
    for _ in ITEMS:
        controller.go_on(None)
    named = {text for line in keyed(controller.ended_lines(), {}) for text, style in line if style == "bold accent"}
    assert named == {BY_ID[f"review.{name}"].keys for name in controller.key_names()}


def test_what_is_in_the_queue_beside_what_waits_is_said_and_kept(controller: ReviewController) -> None:
    controller.include("failures")
    controller.include("sample")
    assert "with failures, 20 random runs" in plain(controller.heading(80)[0])
    again = ReviewController()
    again.restore(controller.kept())
    assert (again.review_filter.failures, again.review_filter.sample) == (True, 0), "a sample is drawn anew"
    controller.include("sample")
    controller.include("disagreements")
    assert (controller.review_filter.sample, controller.review_filter.disagreements) == (0, True)


def test_what_was_labelled_elsewhere_is_not_looked_at_any_more(controller: ReviewController) -> None:
    first, second, third = ITEMS
    assert controller.item == first
    controller.take([second, third])
    assert controller.item == second


def test_reading_again_while_a_verdict_is_written_skips_nothing(controller: ReviewController) -> None:
    first, second, third = ITEMS
    controller.is_writing = True
    controller.take([second, third])  # the verdict is in the history before its writer knows
    assert controller.item == first
    controller.go_on(saved("a", ""))
    assert (controller.item, controller.is_writing) == (second, False)
    controller.take([second, third])
    assert controller.item == second
