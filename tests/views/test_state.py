"""What a run's probes read, line by line: what is equal side by side, what changed marked."""

from __future__ import annotations

from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.state import ProbeState, Reading, ReadingProblem, unread
from agenteval_tui.tui.presenters.run_tabs import state_rows
from agenteval_tui.tui.styled_text import width_of
from agenteval_tui.views.state import probe_views, state_lines

RUN = Transcript(
    state=(
        ProbeState("log", Reading("one\ntwo\nthree"), Reading("one\n2\nthree\nfour")),
        ProbeState("same", Reading({"a": 1}), Reading({"a": 1})),
        ProbeState("page", Reading("x"), unread(ReadingProblem.HTTP_STATUS, status=404)),
        ProbeState("odd\x1b[31m", Reading("\x1b]0;title\x07"), Reading(None)),
        ProbeState("old"),
    )
)


def test_lines_that_are_equal_are_side_by_side() -> None:
    log, same, page, odd, old = probe_views(RUN)
    assert [(row.before, row.after, row.changed) for row in log.rows] == [
        ("one", "one", False), ("two", "2", True), ("three", "three", False), (None, "four", True)
    ]  # fmt: skip
    assert (log.change, same.change, page.change, odd.change) == ("changed", "unchanged", "", "changed")
    assert page.after == "the server answered with status 404"
    assert (old.before, old.after) == ("it was not read", "it was not read")


def test_the_list_has_before_above_after_and_what_is_unchanged_once() -> None:
    lines = [(one.probe, one.moment, one.sign, one.text) for one in state_lines(RUN)]
    assert lines[:8] == [
        ("log", "", " ", ""),
        ("", "before", " ", "one"), ("", "", "-", "two"), ("", "", " ", "three"),
        ("", "after", " ", "one"), ("", "", "+", "2"), ("", "", " ", "three"), ("", "", "+", "four"),
    ]  # fmt: skip
    same = [one for one in lines if one[1] == "unchanged"]
    assert same == [("", "unchanged", " ", "{")]
    assert [one.text for one in state_lines(RUN, 1)][1:4] == ["one", "… 2 more lines", "one"]


def test_large_values_are_compared_in_bounded_work() -> None:
    numbers = list(map(str, range(9_000)))
    many = Transcript(state=(ProbeState("p", Reading("\n".join(numbers)), Reading("\n".join(reversed(numbers)))),))
    assert len(probe_views(many)[0].rows) == 9_000


def test_rows_fit_and_show_no_control_characters() -> None:
    for width in (12, 30, 60, 78, 90, 140):
        for line in state_rows(RUN, width):
            assert width_of(line) <= width
            assert all("\x1b" not in text and "\x07" not in text for text, _ in line)
    assert state_rows(Transcript(), 40)[1:]
