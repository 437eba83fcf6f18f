"""A comparison in the terminal, in Markdown and on the screen: the same words for the same facts."""

from __future__ import annotations

from msgspec.structs import replace

from agenteval_tui.analysis.attribution import Attributed, Reason
from agenteval_tui.analysis.comparison_model import Comparison, CriterionChange, Overall, Side, Tally, TestChange
from agenteval_tui.analysis.divergence import Action, StepChange
from agenteval_tui.analysis.statistics import PairedCounts
from agenteval_tui.tui.presenters.comparison import CompareRows, detail_lines, rows_of
from agenteval_tui.tui.styled_text import plain as plain_line
from agenteval_tui.views.comparison import (
    change_in_full,
    comparison_page,
    comparison_view,
    overall_view,
    sample_text,
    who_text,
)
from agenteval_tui.views.markdown import markdown
from agenteval_tui.views.model import plain
from agenteval_tui.views.terminal import lines

WAS, NOW = Tally(5, 5, 5, 0, 1.0), Tally(5, 5, 2, 0, 0.4)
CRITERION = CriterionChange(
    name="polite",
    was_name="kind",
    state="worse",
    was=WAS,
    now=NOW,
    versions_was=("aaaaaa1",),
    versions_now=("bbbbbb2",),
)
CHANGE = TestChange(
    suite_key="s",
    suite="S",
    test="greeting",
    name="Greets",
    variation="",
    state="worse",
    cases=1,
    was=WAS,
    now=NOW,
    difference=-0.6,
    score=None,
    p_value=0.17,
    criteria=(CRITERION,),
    pair=("a", "b"),
    pairs=(("a", "b"),),
)
NOTHING = Overall(
    rate=None, test="fisher", n=0, p_value=None, detectable=None, pairs=PairedCounts(0, 0, 0, 0), left_out=0
)
FOUND = Comparison(
    Side(kind="execution", name="old", reference="a", runs=()),
    Side(kind="execution", name="new", reference="b", runs=()),
    NOTHING,
    (CHANGE,),
)
ASKED = Action("call", ("call", "ask", "{}"), "ask", {})
KNOWN = {CHANGE.key: Attributed("unknown", Reason("no_criterion"), StepChange(1, ASKED, None), ())}


def media() -> dict[str, str]:
    (row,) = [one for one in rows_of(FOUND) if one.change is not None]
    screen = [
        CompareRows(rows_of(FOUND), KNOWN).line(1, 200, focused=False),
        *detail_lines(row, 200, KNOWN[CHANGE.key], {}),
    ]
    return {
        "terminal": "\n".join(map(plain, lines(comparison_view(FOUND, KNOWN)))),
        "markdown": markdown(comparison_page(FOUND, KNOWN)),
        "screen": "\n".join(map(plain_line, screen)),
    }


def test_every_medium_has_the_same_words() -> None:
    for name, shown in media().items():
        for words in ("greeting", "5/5", "2/5", "not known", "step 1: it called ask, now it goes no further"):
            assert words in shown, (name, words)
    for name in ("terminal", "screen"):
        for words in ("config changed aaaaaa → bbbbbb", "renamed, it was kind", "-60 points", "not comparable"):
            assert words in media()[name], (name, words)


def test_who_changed_it_is_unknown_until_it_was_looked_at() -> None:
    assert (who_text("unknown"), who_text("judge noise")) == ("not known", "judge noise")
    waiting = change_in_full(CHANGE, None, None, waiting=True)
    assert "…" in "\n".join(map(plain, lines(waiting)))
    versions = change_in_full(CHANGE, None, None, versions=True)
    assert "both versions judge the same outputs" in "\n".join(map(plain, lines(versions)))


def test_one_case_is_singular_and_no_rate_is_no_figure() -> None:
    assert sample_text(replace(NOTHING, n=1)) == "1 run on the smaller side"
    one = replace(NOTHING, left_out=1)
    assert list(map(plain, lines(overall_view(one)))) == [
        "no test has a verdict on both sides",
        "  1 case has a verdict on one side only and is left out",
    ]
