"""Rules of `Judge` that a change could break without a word: what it shows, what it reads, how it fails."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.core.numbers import median
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.metrics.judge_question import conversation, prompt_of, tools_of
from agenteval_tui.grading.metrics.judge_reply import UnreadableError, read_judgment
from agenteval_tui.grading.metrics.judge_scale import SCALES, read_verdict
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import score_phrase
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

TALK = Transcript(
    (
        Message("user", "First?"),
        Message("user", "Where is W1?"),
        Message("assistant", "", tool_calls=(0,)),
        Message("tool", "lost", tool_call=0),
        Message("assistant", "It is lost."),
    ),
    tool_calls=(ToolCall("c", "find", {"id": "W1"}, "lost", status="error"),),
    final_output="It is lost.",
)


def judged(reply: str, **config: Any) -> CriterionResult:
    metric = {"type": "Judge", "criteria": "Is it right?", **config}
    checker = compile_criterion(CriterionSpec("right", "TextResponse", {"metrics": [metric]}))
    replies: dict[str, Reply] = {}
    for _ in range(2):
        for request in checker.requests(TALK, {}, replies):
            replies[request.hash] = Reply(reply)
    return checker.check(TALK, {}, replies=replies)


def test_what_a_judge_is_shown_of_a_run() -> None:
    assert prompt_of(TALK) == "Where is W1?"
    assert conversation(TALK) == (
        'user: First?\n\nuser: Where is W1?\n\nassistant calls find(id="W1")\n\n'
        "tool find: lost\n\nassistant: It is lost."
    )
    assert tools_of(TALK) == '1. find(id="W1") (failed)\n-> lost'
    assert tools_of(Transcript((Message("user", "?"),))) == "(no tool was called)"


@pytest.mark.parametrize(
    ("reply", "code"), [('{"score": 11}', Code.OFF_SCALE), ("I can't say.", Code.UNREADABLE_REPLY)]
)
def test_a_score_off_the_scale_and_an_unreadable_reply_have_codes_of_their_own(reply: str, code: Code) -> None:
    result = judged(reply, scale="zero_to_ten")
    assert result.outcome is Outcome.ERROR
    assert code in {metric.code for metric in result.metrics}


def test_a_threshold_of_one_is_the_whole_scale_and_above_one_it_is_on_the_scale() -> None:
    assert judged('{"score": 4}', scale="one_to_five", pass_threshold=1).outcome is Outcome.FAILED
    assert judged('{"score": 5}', scale="one_to_five", pass_threshold=1).outcome is Outcome.PASSED
    assert judged('{"score": 2}', scale="one_to_five", pass_threshold=2).outcome is Outcome.PASSED


def test_a_verdict_without_a_score_is_one_on_pass_fail_only() -> None:
    assert read_judgment('{"pass": true}', SCALES["pass_fail"]).score == 1
    with pytest.raises(UnreadableError, match="has no `score`"):
        read_judgment('{"pass": true}', SCALES["zero_to_one"])


def test_reasons_are_read_in_the_forms_that_judges_use() -> None:
    read = read_judgment('{"score": 1, "reason": "x", "strengths": "short", "weaknesses": " "}', SCALES["pass_fail"])
    assert (read.reasoning, read.strengths, read.weaknesses) == ("x", ("short",), ())
    assert read_judgment('{"score": 1, "reasoning": {"a": 1}}', SCALES["pass_fail"]).reasoning == '{"a": 1}'
    assert read_judgment('{"score": 1, "reasoning": null}', SCALES["pass_fail"]).reasoning == ""


def test_medians_and_verdicts_in_figures() -> None:
    assert [median([3, 1]), median([5, 1, 2]), median([1, 2, 4, 9])] == [2, 2, 3]
    assert [read_verdict(1), read_verdict("0"), read_verdict(True)] == [True, False, True]
    assert score_phrase(("pass_fail", 0, 1), 1) == "pass"
    assert score_phrase(("pass_fail", 0, 1), 0) == "fail"
    assert score_phrase(("one_to_five", 1, 5), 4) == "4 of 1..5"
