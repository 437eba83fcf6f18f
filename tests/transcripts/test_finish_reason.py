"""What ended an answer: every server's word for it, and where it is said."""

from __future__ import annotations

import pytest

from agenteval_tui.grading.causes import cause_from, signatures
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.transcripts.finish_reason import ending_code, ending_of, with_ending
from agenteval_tui.transcripts.model import Message, RunError, Transcript
from agenteval_tui.tui.presenters.transcript_blocks import blocks_of

CUT = Transcript((Message("user", "a"), Message("assistant", "half")), finish_reason="length", final_output="half")


@pytest.mark.parametrize(
    ("word", "code"),
    [
        *[(word, "length") for word in ("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "max-tokens")],
        *[(word, "length") for word in ("FinishReason.MAX_TOKENS", "FINISH_REASON_MAX_TOKENS", " Length ")],
        *[(word, "length") for word in ("model_context_window_exceeded", "model_length", "Max Tokens")],
        *[(word, "content_filter") for word in ("content_filter", "refusal", "SAFETY", "RECITATION", "BLOCKLIST")],
        *[(word, "content_filter") for word in ("PROHIBITED_CONTENT", "SPII", "guardrail_intervened")],
        ("MALFORMED_FUNCTION_CALL", "malformed_call"),
        ("incomplete", "incomplete"),
        *[(word, None) for word in ("stop", "STOP", "end_turn", "tool_calls", "stop_sequence", "eos", "user_stop", "")],
    ],
)
def test_words_of_servers(word: str, code: str | None) -> None:
    assert ending_code(word) == code


def test_an_ending_comes_first() -> None:
    said = "the answer was cut by max_tokens"
    assert with_ending("says 42: it does not", CUT) == f"{said}; says 42: it does not"
    assert with_ending("", CUT) == said
    assert ending_of(CUT).description == f"{said} (finish reason: length)"
    (_, first), *_ = blocks_of(CUT)
    assert (first.key, first.text) == (("ending", 0), f"{said} (finish reason: length)")


def test_what_is_no_ending() -> None:
    empty = Transcript((Message("user", "a"),), finish_reason="stop")
    assert ending_of(empty).description == "the answer is empty (finish reason: stop)"
    assert with_ending("x", empty) == "x"
    assert ending_of(Transcript((Message("user", "a"),))) is None  # nobody said how it ended
    assert ending_of(Transcript(finish_reason="length", error=RunError("timeout", "x"))) is None


def _result(name: str, outcome: Outcome = Outcome.FAILED, severity: str = "error") -> CriterionResult:
    return CriterionResult(
        criterion=name, outcome=outcome, score=0.0, prototype_class="TextResponse", severity=severity
    )


@pytest.mark.parametrize("ending", ["length", "content_filter", "malformed_call", "incomplete"])
def test_an_ending_is_one_cause_for_all_that_failed(ending: str) -> None:
    results = [_result("a", Outcome.PASSED), _result("b"), _result("c"), _result("d", severity="warning")]
    made = signatures("failed", results, None, ending)
    assert made[0] is None
    assert made[2:] == ["", ""]
    cause = cause_from(made[1] or "")
    assert (cause.kind, cause.condition, cause.criterion) == ("ending", ending, "")
    assert cause.title.startswith(("the answer", "the model"))
    # Of other runs and other criteria it is the same cause.
    assert signatures("failed", [_result("z")], None, ending) == [made[1]]


def test_an_ending_that_did_no_harm_is_no_cause() -> None:
    assert signatures("passed", [_result("a", Outcome.PASSED)], None, "length") == [None]
    assert "ending" not in str(signatures("failed", [_result("a")], None, "empty"))
    assert "ending" not in str(signatures("error", [_result("a", Outcome.ERROR)], None, "length"))
