"""The middle pane of Inspect says what `why` says; the caret is under the character that differs, in any width."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agenteval_tui.analysis.run_facts import RunFacts
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.explain import explain
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.grading.results import CriterionResult, MetricResult, Outcome
from agenteval_tui.grading.sentences import evidence_sentence, own_criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.tui.presenters.evidence_pane import NO_EDIT, comparison_lines, looked_rows
from agenteval_tui.tui.styled_text import cell_len, plain, width_of
from agenteval_tui.views.comparison_text import comparison_text
from agenteval_tui.views.evidence import fact_tree
from agenteval_tui.views.evidence_comparison import Comparison, comparisons
from agenteval_tui.views.terminal import plain_text

TEXT = "Revenue: 5.000 EUR"
TRANSCRIPT = Transcript(
    (Message("user", "How much?"), Message("assistant", TEXT)),
    (ToolCall("a", "get_order", {"order_id": "W1"}),),
    final_output=TEXT,
)
# Of a run that nobody labelled: neither its row nor the history is read.
BENCH = Workbench(cast("Any", None), cast("Any", None), TRANSCRIPT, (), (), None, "")
MISS: dict[str, Any] = {"type": "TextMatch", "contains_all": ["Revenue", "5000"]}
HIT: dict[str, Any] = {"type": "TextMatch", "contains": "EUR"}
CALL: dict[str, Any] = {"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"order_id": "#W1"}}]}


@pytest.mark.parametrize(
    ("metrics", "options"),
    [
        ([MISS], {}),
        ([MISS, CALL], {}),
        ([HIT], {"negate": True}),
        ([MISS, HIT], {"pass_threshold": 0.9}),
        ([MISS, HIT], {"pass_threshold": 0.4}),
        ([{"type": "NoSuch"}], {}),
    ],
)
def test_every_reason_of_the_explanation_is_on_the_screen(metrics: list[Any], options: dict[str, Any]) -> None:
    result = compile_criterion(CriterionSpec("it", "TextResponse", {"metrics": metrics}, **options)).check(TRANSCRIPT)
    shown = ("".join(cell[0] for cell in line) for line in looked_rows(BENCH, 0, result, [result], 90).lines)
    screen = "".join(" ".join(shown).split())  # lines are broken anywhere
    compared = [(one, comparisons(one)) for metric in result.metrics for one in metric.evidence if one.passed is False]
    reasons = [own_criterion_sentence(result), *(evidence_sentence(one) for one, made in compared if not made)]
    assert any(reasons) or any(made for _, made in compared) or result.outcome == "passed"
    said = plain_text((fact_tree(explain([result])),))
    for reason in [*reasons, *(line.strip() for _, made in compared for line in comparison_text(made))]:
        assert reason in said
    on_screen = [*reasons]
    on_screen += [text or "" for _, made in compared for one in made for text in (one.expected, one.got, one.note)]
    for reason in on_screen:
        assert "".join(reason.split()) in screen


def test_a_criterion_that_checks_nothing_has_no_green_sign() -> None:
    """One that was just made, as on an imported run: nothing was looked at, so nothing passed."""
    result = compile_criterion(CriterionSpec("scratch", "TextResponse", {})).check(TRANSCRIPT)
    assert result.outcome == "passed"
    lines = looked_rows(BENCH, 0, result, [result], 60).lines
    assert "checks nothing" in plain(lines[0])
    assert not any("✓" in text or style == "passed" for line in lines for text, style in line)


def test_a_score_is_named_and_stands_alone() -> None:
    result = compile_criterion(CriterionSpec("it", "TextResponse", {"metrics": [MISS]})).check(TRANSCRIPT)
    lines = [plain(line) for line in looked_rows(BENCH, 0, result, [result], 60).lines]
    assert lines[0].endswith("failed  score 0.00")
    assert not any("rating" in line for line in lines)


def judged(outcome: Outcome, **fields: Any) -> CriterionResult:
    """The result of a judge of tone."""
    metric = MetricResult("Judge", "Judge", outcome, code=Code.UNREADABLE_REPLY, fields={"problem": "it is no JSON"})
    return CriterionResult("tone", outcome, None, criterion_hash="H", metrics=(metric,), **fields)


def test_the_error_of_a_judge_says_why_and_what_the_judge_replied() -> None:
    request = RemoteRequest("chat", "tone", {"messages": []})
    said = [Reply("Sure!\nIt is polite.", "m", "", 1, 1, None, 0), Reply("no\n" * 50, "m", "", 1, 1, None, 0)]
    result = judged(Outcome.ERROR)
    bench = Workbench(
        cast("Any", None), cast("Any", SimpleNamespace(status="error")), TRANSCRIPT, (result,), (), None, ""
    )
    for reply, more in zip(said, (False, True), strict=True):
        facts = RunFacts(replies=(StoredReply(request, "k", reply, "H"),))
        lines = [plain(line) for line in looked_rows(bench, 0, result, [result], 70, facts).lines]
        shown = "\n".join(lines)
        assert "neither of the judge's two replies" in shown
        assert "it is no JSON" in shown
        assert "the judge replied" in shown
        assert '" 1 reply' in shown
        assert reply.raw.split("\n")[0] in shown
        assert ("more lines" in shown) is more


def test_the_verdict_of_another_tool_comes_before_a_criterion_that_checks_nothing() -> None:
    scratch = compile_criterion(CriterionSpec("scratch", "TextResponse", {})).check(TRANSCRIPT)
    foreign = CriterionResult("faithful", Outcome.FAILED, 0.2, message="it made up a price", source="promptfoo")
    lines = [plain(line) for line in looked_rows(BENCH, 0, scratch, [scratch, foreign], 60).lines]
    assert lines[0].startswith("✗ faithful")
    assert any("it made up a price" in line for line in lines[:4])
    assert any(line.startswith("– scratch") for line in lines)


def test_edits_that_pass_are_offered_where_there_are_some() -> None:
    result = compile_criterion(CriterionSpec("Answer", "TextResponse", {"metrics": [MISS]})).check(TRANSCRIPT)

    def offered(has_edit: bool | None) -> tuple[int, str]:
        lines = [plain(line) for line in looked_rows(BENCH, 0, result, [], 60, has_edit=has_edit).lines]
        return next((row, line) for row, line in enumerate(lines) if "small" in line)

    assert offered(True)[1] == "F7 smallest edits that pass  A the first"
    assert offered(False)[1] == NO_EDIT
    assert offered(None)[1] == "F7 smallest edits", "what is not known is not said"
    assert len({offered(known)[0] for known in (True, False, None)}) == 1, "nothing moves"
    rows = [plain(line).strip() for line in looked_rows(BENCH, 0, result, [result], 60).lines]
    assert ("", "") not in pairwise(rows), "one row is left between the parts"


def test_what_did_not_hold_stands_first() -> None:
    metric = {"type": "TextMatch", "contains_all": ["Revenue", "5000"], "not_contains_any": ["EUR"]}
    result = compile_criterion(CriterionSpec("it", "TextResponse", {"metrics": [metric]})).check(TRANSCRIPT)
    shown = "\n".join(plain(line) for line in looked_rows(BENCH, 0, result, [result], 60).lines)
    assert shown.index("contains_all[1]") < shown.index("contains_all[0]")


def test_what_a_condition_expects_is_whole_in_a_narrow_pane() -> None:
    hit = {"type": "TextMatch", "contains_any": ["Revenue: 5.000 EUR"]}
    result = compile_criterion(CriterionSpec("it", "TextResponse", {"metrics": [hit]})).check(TRANSCRIPT)
    lines = [plain(line).rstrip() for line in looked_rows(BENCH, 0, result, [result], 28).lines]
    at = next(number for number, line in enumerate(lines) if "contains_any" in line)
    assert " ".join(" ".join(lines[at : at + 3]).split()).startswith('✓ contains_any "Revenue: 5.000 EUR"')


def test_in_a_narrow_pane_names_and_sentences_continue_below() -> None:
    name = "Asks for the right order, and only once"
    spec = CriterionSpec(name, "ToolResponse", {"metrics": [CALL]}, negate=False)
    result = compile_criterion(spec).check(TRANSCRIPT)
    passed = CriterionResult("Says where it is", Outcome.PASSED, 1.0)
    rows = looked_rows(BENCH, 0, result, [result, passed], 30)
    shown = [plain(line).rstrip() for line in rows.lines]
    assert not [line for line in shown if "…" in line]
    assert shown[:3] == ["✗ Asks for the      score 0.70", "  right order,", "  and only once"]
    assert shown[shown.index("  ✗ get_order") + 1] == "      1 of 1 argument differs"
    chosen = next(number for number, line in enumerate(shown) if line.startswith("▸"))
    assert shown[chosen : chosen + 4] == [
        "▸ ✗ Asks for the right    0.70",
        "    order, and only",
        "    once",
        "  ✓ Says where it is      1.00",
    ]
    assert [rows.targets[chosen + row] for row in range(4)] == [0, 0, 0, 1], (
        "each line of a name stands for its criterion"
    )


def test_the_nearest_of_several_calls_is_named_and_not_compared_twice() -> None:
    calls = tuple(ToolCall(str(number), "get_order", {"order_id": f"W{number}"}) for number in (1, 2))
    result = compile_criterion(CriterionSpec("it", "ToolResponse", {"metrics": [CALL]})).check(
        Transcript((Message("user", "How much?"),), calls)
    )
    shown = [plain(line) for line in looked_rows(BENCH, 0, result, [result], 80).lines]
    assert sum('got       "W' in line for line in shown) == 2
    assert any("get_order (1st call)" in line and "tools[0].nearest" in line for line in shown)


def test_of_many_conditions_the_first_are_shown_those_that_failed_before_others() -> None:
    metric = {"type": "TextMatch", "contains_all": [*["Revenue"] * 3, "5000"]}
    result = compile_criterion(CriterionSpec("it", "TextResponse", {"metrics": [metric]})).check(TRANSCRIPT)
    whole, some = (looked_rows(BENCH, 0, result, [], 90, most=most) for most in (None, 2))
    shown = [plain(line) for line in some.lines]
    assert sum("contains_all" in line for line in shown) == 2
    assert any("5000" in line for line in shown)
    assert any("… 2 more conditions" in line for line in shown)
    assert len([one for one in some.targets.values() if not isinstance(one, int)]) < len(whole.targets)


@pytest.mark.parametrize(
    ("prototype_class", "config", "is_shown"),
    [
        ("TextResponse", {"metrics": [MISS]}, False),
        ("ToolResponse", {"metrics": [CALL]}, False),
        ("TextResponse", {"extract_by_regex": "[0-9.]+", "metrics": [MISS]}, True),
        ("TextResponse", {"extract_by_regex": "R|e", "metrics": [MISS]}, True),  # both are in the name of the tool
    ],
)
def test_what_stands_in_the_transcript_is_not_repeated(
    prototype_class: str, config: dict[str, Any], is_shown: bool
) -> None:
    result = compile_criterion(CriterionSpec("it", prototype_class, config)).check(TRANSCRIPT)
    lines = [plain(line) for line in looked_rows(BENCH, 0, result, [result], 60).lines]
    assert any(line.startswith(f"{prototype_class} →") for line in lines) == is_shown


def test_an_empty_text_is_what_a_criterion_looked_at() -> None:
    transcript = Transcript((Message("user", "How much?"), Message("assistant", "")), TRANSCRIPT.tool_calls)
    bench = Workbench(cast("Any", None), cast("Any", None), transcript, (), (), None, "")
    result = compile_criterion(CriterionSpec("it", "TextResponse", {"metrics": [MISS]})).check(transcript)
    lines = [plain(line).strip() for line in looked_rows(bench, 0, result, [result], 60).lines]
    assert "TextResponse → empty text" in lines


LONG = "\"SELECT name, city FROM customers WHERE country = 'DE' AND revenue > 5.000 ORDER BY revenue DESC\""


def shown(made: Comparison, width: int, indent: int = 0) -> list[str]:
    lines = comparison_lines([made], width, indent)
    assert all(width_of(line) <= width for line in lines), [plain(line) for line in lines]
    return [plain(line).rstrip() for line in lines]


def pointed(lines: list[str]) -> str:
    """The character above the caret."""
    at = next(number for number, line in enumerate(lines) if "^" in line)
    column, used = cell_len(lines[at][: lines[at].index("^")]), 0
    for char in lines[at - 1]:
        if used <= column < used + cell_len(char):
            return char
        used += cell_len(char)
    return ""


def test_expected_stands_above_got() -> None:
    made = Comparison("order_id", '"#W1042"', '"W1042"', 1, "'#' is missing")
    assert shown(made, 60, 4) == [
        '    order_id   expected  "#W1042"',
        '               got       "W1042"',
        "                          ^ '#' is missing",
    ]


@pytest.mark.sweep
@pytest.mark.parametrize("width", [10, 20, 26, 31, 38, 60, 100])
@pytest.mark.parametrize(
    ("text", "char"), [(LONG, "5"), ('"Preis: 東京タウー ist nah bei 5.000 Leuten"', "ウ"), ('"a\tb\u202e\x1bcX"', "X")]
)
def test_the_caret_is_under_the_character_at_every_width(width: int, text: str, char: str) -> None:
    lines = shown(Comparison("", text, text, text.index(char), "it differs"), width)
    assert pointed(lines) == char
    assert "it differs" in " ".join(" ".join(lines).split())


def test_what_is_missing_at_the_end_is_pointed_at_behind_the_text() -> None:
    lines = shown(Comparison("", '"abc"', '"ab', 3, "'c' is missing"), 40)
    assert lines[1:] == ['got       "ab', "             ^ 'c' is missing"]


def test_a_long_text_shows_the_rows_around_the_difference() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    lines = shown(Comparison("", text, text, text.index("50"), "here"), 60)
    assert pointed(lines) == "5"
    # The row that differs and one on each side, so that both texts are in view together.
    assert [line[10:].split("  ")[0] for line in lines] == [
        "… 49 lines above", "line 49", "line 50", "line 51", "… 48 more lines",
        "… 49 lines above", "line 49", "line 50", "", "line 51", "… 48 more lines",
    ]  # fmt: skip


def test_a_tree_opens_only_what_differs() -> None:
    made = Comparison("filter", parts=(Comparison("country", '"DE"', '"AT"', 1, "'A' instead of 'D'"),), alike=3)
    assert shown(made, 60) == [
        "filter   3 alike",
        '  country   expected  "DE"',
        '            got       "AT"',
        "                       ^ 'A' instead of 'D'",
    ]


def test_short_lines_are_in_one_row_and_nothing_comes_between_them() -> None:
    made = Comparison("", '"SELECT"', '"sql\nSELECT"', 1, "the language tag 'sql' is before it", "line 2")
    assert shown(made, 80) == [
        'expected  "SELECT"',
        'nearest   "sql↵SELECT"   line 2',
        "           ^ the language tag 'sql' is before it",
    ]
    assert "sql↵" not in " ".join(shown(made, 10)), "where there is no room each line has a row"
