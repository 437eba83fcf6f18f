"""Labels in lines, as a table and on the screen: the same words, and foreign text in its place."""

from __future__ import annotations

from agenteval_tui.analysis.workbench import Agreement
from agenteval_tui.history.labels import Label
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import plain as plain_line
from agenteval_tui.views.label import (
    agreement_text,
    label_given,
    label_text,
    labelled_text,
    labels_view,
    said_last,
    subject_text,
)
from agenteval_tui.views.model import plain
from agenteval_tui.views.terminal import plain_text

TONE = Label("RUN", 2, "tone", "too rude", "kim", 1_000, passed=False)
WHOLE = Label("RUN", None, "", "", "", 1_000, passed=True)
UNKNOWN = Label("RUN", 4, "", "", "lee", 1_000, criterion_hash="abc")


def test_a_line_says_of_what_who_and_why() -> None:
    assert label_text(TONE) == "label of tone by kim: failed, 2 of 5: too rude"
    assert label_text(WHOLE) == "label of the run: passed"
    assert label_text(UNKNOWN) == "label (criterion unknown) by lee: 4 of 5"
    assert [subject_text(one) for one in (TONE, WHOLE, UNKNOWN)] == ["tone", "the run", "criterion unknown"]


def test_labels_stand_one_below_the_other_with_their_comments() -> None:
    labels = [(TONE, True), (WHOLE, False), (UNKNOWN, False)]
    lines = [
        "labels",
        " ▲ ✗ failed, 2 of 5  kim",
        "   too rude",
        " the run: ✓ passed",
        " criterion unknown: ✓ 4 of 5  lee",
    ]
    assert plain_text(labels_view(labels)).splitlines() == lines
    assert [plain_line(line) for line in view_lines(labels_view(labels), 60)] == lines
    old = plain_text(labels_view(labels, 121_000)).splitlines()
    assert (old[1], old[3]) == (" ▲ ✗ failed, 2 of 5  kim  2 min ago", " the run: ✓ passed  2 min ago")
    assert labels_view(()) == ()
    long = view_lines(labels_view([(Label("RUN", 1, "tone", "word " * 60), False)]), 30)
    assert len(long) > 10, "a long comment is not cut"


def test_what_came_of_a_label() -> None:
    assert plain(label_given(TONE, "needs_review")) == "tone: failed, 2 of 5; the run now counts as needs_review"
    assert plain(label_given(WHOLE, "failed", taken_back=True)) == (
        "the run: taken back: passed; the run now counts as failed"
    )
    assert said_last(TONE, 121_000) == "Last label by kim 2 min ago: failed, 2 of 5: too rude"
    assert labelled_text([UNKNOWN, TONE]) == "labelled failed, 2 of 5 by kim and 1 more"
    assert labelled_text(()) == ""


def test_how_verdicts_agree_with_labels() -> None:
    assert agreement_text(Agreement(), edited=True) == ()
    said = plain(agreement_text(Agreement(4, 3, 2, ["a"]), edited=True))
    assert said == "labels: 3 of 4 agree, 2 with this edit  ▲ 1 flip against a label"
    assert plain(agreement_text(Agreement(4, 3, 3), edited=False)) == "labels: 3 of 4 agree"
