"""The middle pane of Inspect says what `why` says."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.explain import explain
from agenteval_tui.grading.sentences import evidence_sentence, own_criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.tui.presenters.evidence_pane import looked_at
from agenteval_tui.tui.styled_text import plain
from agenteval_tui.views.evidence import fact_tree
from agenteval_tui.views.evidence_comparison import comparisons
from agenteval_tui.views.terminal import plain_text

TEXT = "Revenue: 5.000 EUR"
TRANSCRIPT = Transcript(
    (Message("user", "How much?"), Message("assistant", TEXT)),
    (ToolCall("a", "get_order", {"order_id": "W1"}),),
    final_output=TEXT,
)
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
    bench = cast("Any", None)  # only the transcript's own pane needs it
    shown = ("".join(cell[0] for cell in line) for line in looked_at(bench, 0, result, [result], 90))
    screen = "".join(" ".join(shown).split())  # lines are broken anywhere
    missed = [evidence_sentence(one) for metric in result.metrics for one in metric.evidence if one.passed is False]
    reasons = [own_criterion_sentence(result), *missed]
    assert any(reasons) or result.outcome == "passed"
    said = plain_text((fact_tree(explain([result])),))
    for reason in reasons:
        assert reason in said
    compared = [(one, comparisons(one)) for metric in result.metrics for one in metric.evidence if one.passed is False]
    on_screen = [own_criterion_sentence(result), *(evidence_sentence(one) for one, made in compared if not made)]
    on_screen += [text or "" for _, made in compared for one in made for text in (one.expected, one.got, one.note)]
    for reason in on_screen:
        assert "".join(reason.split()) in screen


def test_a_criterion_that_checks_nothing_has_no_green_sign() -> None:
    """One that was just made, as on an imported run: nothing was looked at, so nothing passed."""
    result = compile_criterion(CriterionSpec("scratch", "TextResponse", {})).check(TRANSCRIPT)
    assert result.outcome == "passed"
    lines = looked_at(cast("Any", None), 0, result, [result], 60)
    assert "checks nothing" in plain(lines[0])
    assert not any("✓" in text or style == "passed" for line in lines for text, style in line)


def test_a_score_is_named_and_stands_alone() -> None:
    result = compile_criterion(CriterionSpec("it", "TextResponse", {"metrics": [MISS]})).check(TRANSCRIPT)
    lines = [plain(line) for line in looked_at(cast("Any", None), 0, result, [result], 60)]
    assert lines[0].endswith("failed  score 0.00")
    assert not any("rating" in line for line in lines)
