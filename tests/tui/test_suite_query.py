"""The filter language of Suites, and the order with the worst first."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from agenteval_tui.analysis.overview import Overview, SuiteOverview
from agenteval_tui.history.records import TestSummary
from agenteval_tui.suites.load import load_text
from agenteval_tui.tui.presenters.suite_query import Query
from agenteval_tui.tui.presenters.suite_tree import SuiteTree
from agenteval_tui.tui.presenters.test_status import (
    counted,
    is_flaky,
    last_outcomes,
    outcome_of,
    recent_rate,
    sort_weight,
)
from agenteval_tui.tui.styled_text import plain, width_of

CRITERIA = "criteria: [{name: c, prototype_class: TextResponse, config_uxon: '{}'}]"


def suite(name: str, recent: dict[str, tuple[str, ...]]) -> SuiteOverview:
    tests = "".join(f"  - {{id: {one}, name: {one}, prompt: p, tags: [t-{one}], {CRITERIA}}}\n" for one in recent)
    loaded = load_text(f"name: {name}\nagent: shop/x\ntests:\n{tests}", Path(f"{name}.suite.yaml"))
    assert loaded.suite is not None, loaded.problems
    summaries = {
        one: TestSummary(one, len(runs), runs.count("passed"), 0, runs, None, None, None, {})
        for one, runs in recent.items()
        if runs
    }
    return SuiteOverview(loaded, (), summaries)


def test_runs_of_another_agent_or_with_other_criteria_make_nobody_flaky() -> None:
    one = TestSummary("t", 4, 2, 0, (F, F, P, P), None, None, None, {}, settings=("old", "old", "new", "new"))
    assert not is_flaky(one)
    assert outcome_of(one) == "passed"
    assert is_flaky(replace(one, settings=("old", "new", "new", "new")))


P, F, E = "passed", "failed", "error"


@pytest.fixture
def tree() -> SuiteTree:
    good = suite("Good", {"fine": (P, P), "new": ()})
    bad = suite("Bad one", {"sound": (P, P), "shaky": (F, P), "broken": (F, F), "dead": (E, E)})
    return SuiteTree(Overview((good, bad)))


def shown(tree: SuiteTree, text: str) -> list[str]:
    tree.query = Query.parse(text)
    tree.arrange()
    return [node.test.id for node in tree.shown_tests() if node.test]


def test_fields_and_words(tree: SuiteTree) -> None:
    assert shown(tree, "outcome:failed") == ["broken"]
    assert shown(tree, "outcome:fl") == shown(tree, "flaky:yes") == ["shaky"]
    assert shown(tree, "flaky:no suite:bad sound") == ["sound"]
    assert shown(tree, 'suite:"bad one" outcome:err') == ["dead"]
    assert shown(tree, "outcome:new") == ["new"]
    assert shown(tree, "TAG:T-fine agent:shop") == ["fine"]
    assert len(shown(tree, "tag: outcome:")) == 6  # nothing behind the colon yet


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tga:x", "did you mean tag:?"),
        ("outcome:failing2", "there is no outcome failing2; outcomes: passed, failed"),
        ("flaky:maybe", "flaky: needs yes or no"),
        ("category:happy_end", "there is no category happy_end"),
        ("http://x", 'to search for the text, quote it: "http://x"'),
    ],
)
def test_what_is_not_understood_is_said_and_filters_nothing(tree: SuiteTree, text: str, said: str) -> None:
    assert said in Query.parse(text).problem
    assert len(shown(tree, text)) == 6
    assert shown(tree, f"{text} broken") == ["broken"]
    assert Query.parse(f'"{text}"').words == (text,)


def test_worst_first(tree: SuiteTree) -> None:
    tree.worst_first = True
    tree.arrange()
    names = [row.test.id if row.test else row.suite.loaded.path.name for row in tree.rows]
    assert names == ["Bad one.suite.yaml", "dead", "broken", "shaky", "sound", "Good.suite.yaml", "fine", "new"]
    tree.worst_first = False
    tree.arrange()
    assert [row.test.id for row in tree.rows if row.test] == ["fine", "new", "sound", "shaky", "broken", "dead"]


def test_figures_are_of_runs_with_the_newest_agent_and_criteria() -> None:
    of = ("a\x1f1", "b\x1f1", "a\x1f", "a\x1f2", "a\x1f2", "a\x1f", "a\x1f2")
    one = TestSummary(
        "t", 7, 4, 2, (P, P, E, F, P, E, P), None, None, None, {}, settings=of, executions=(1, 1, 1, 1, 2, 2, 2)
    )
    assert counted(one) == (False, False, False, True, True, True, True)
    assert recent_rate(one) == (2, 3)
    assert last_outcomes(one) == (P, E, P)
    assert sort_weight(one)[0] == 0.5, "an error passed nothing"
    only_errors = replace(one, recent=(E, E), settings=(), executions=())
    assert (counted(only_errors), recent_rate(only_errors)) == ((True, True), (0, 0))


def test_a_suite_whose_tests_ended_in_errors_has_no_rate() -> None:
    dead = suite("Dead", {"dead": (P, P, E), "too": (E,)})
    line = plain(SuiteTree(Overview((dead,))).line(0, 70, focused=False))
    assert "! 2" in line
    assert "%" not in line
    half = suite("Half", {"dead": (P, P, E), "fine": (P, F)})
    assert plain(SuiteTree(Overview((half,))).line(0, 70, focused=False)).split() == [
        "▾", "Half", "!", "1", "~", "1", "50", "%", "━━━━────",
    ]  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("width", [40, 66, 120])
def test_figures_stand_below_their_heads(tree: SuiteTree, width: int) -> None:
    tree.set_open(tree.rows[1], True)
    heads = " " * (width - width_of(tree.heading(width))) + plain(tree.heading(width))
    for index, row in enumerate(tree.rows):
        line = plain(tree.line(index, width, focused=False))
        assert len(line) == width
        if "%" in line:
            assert line.index("%") + 1 == heads.index("rate") + len("rate")
        if row.kind == "test" and "/" in line:
            assert line.index("/") + 2 == heads.index("    rate")


def test_runs_are_a_glyph_each_and_those_that_do_not_count_are_dim() -> None:
    made = suite("One", {"t": (P, F, P, F)})
    one = replace(made.summaries["t"], settings=("old", "old", "new", "new"), executions=(1, 1, 2, 2), answer="no")
    tree = SuiteTree(Overview((replace(made, summaries={"t": one}),)))
    cells = tree.line(1, 66, focused=False)
    assert [cell for cell in cells if set(cell[0]) <= {"✓", "✗", "~"}] == [
        ("~", "flaky"), ("✓", "dim"), ("✗", "dim"), ("✓", "passed"), ("✗", "failed"),
    ]  # fmt: skip
    assert "1/2" in plain(cells)
    assert "no" not in plain(cells)
    assert " no " in plain(tree.line(1, 100, focused=False)), "a wide list says what the last run says"


def test_a_suite_is_closed_and_opened_under_a_filter_too_and_the_next_one_opens_all() -> None:
    tree = SuiteTree(Overview((suite("One", {"t": (P,)}), suite("Two", {"t": (P,)}))))
    tree.set_open(tree.rows[0], False)
    assert len(tree.rows) == 3
    tree.query = Query.parse("t")
    tree.arrange()
    assert [tree.is_open(node) for node in tree.rows if node.kind == "suite"] == [True, True], "what is found is shown"
    tree.toggle(tree.rows[0])
    assert [node.kind for node in tree.rows] == ["suite", "suite", "test"]
    assert not tree.is_open(tree.rows[0])
    tree.query = Query.parse("t ")
    tree.arrange()
    assert len(tree.rows) == 4
    tree.query = Query()
    tree.arrange()
    assert len(tree.rows) == 3, "without a filter as before"


def test_a_test_has_the_sign_that_history_gives_it() -> None:
    """Of its last execution: both verdicts are `~`, and what ended in an error last says so."""
    for runs, state in (
        ((P, P, F), "flaky"),
        ((F, P), "flaky"),
        ((P, F, E), "error"),
        ((F, F), "failed"),
        ((P, P), "passed"),
    ):
        summary = suite("One", {"t": runs}).summaries["t"]
        assert outcome_of(replace(summary, executions=(7,) * len(runs))) == state, runs
    summary = suite("One", {"t": (P, P, F, F)}).summaries["t"]
    assert outcome_of(replace(summary, executions=(1, 1, 2, 2))) == "failed", "a step is not both"
