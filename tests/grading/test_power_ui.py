"""What Power UI's own classes said of 290 cases: ratings, extracted values, formatted tool calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

CASES = [json.loads(line) for line in (Path(__file__).parent / "data" / "power_ui.jsonl").read_text().splitlines()]


def transcript_of(case: dict[str, Any]) -> Transcript:
    calls = tuple(
        ToolCall(f"call_{number}", call["name"], call["arguments"], message=0)
        for number, call in enumerate(case.get("tool_calls", ()))
    )
    message = Message("assistant", case["text"], tool_calls=tuple(range(len(calls))))
    return Transcript((message,), calls, final_output=case["text"])


def without_blank_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def test_all_cases_are_there() -> None:
    assert len(CASES) == 290


@pytest.mark.sweep("case")
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
@pytest.mark.parametrize("explain", [True, False])
def test_equal_to_power_ui(case: dict[str, Any], explain: bool) -> None:
    config = {**case.get("extraction", {}), "metrics": [case["metric"]] if "metric" in case else []}
    spec = CriterionSpec("it", case.get("prototype_class", "TextResponse"), config)
    result = compile_criterion(spec).check(transcript_of(case), explain=explain)
    assert result.outcome is not Outcome.ERROR, criterion_sentence(result)
    expect = case["expect"]
    if "rating" in expect:
        assert result.rating == expect["rating"]
        assert result.metrics[0].rating == expect["rating"]
    elif expect.get("no_match"):
        assert result.outcome is Outcome.FAILED
        assert criterion_sentence(result).startswith("nothing extracted")
    elif explain and case["id"].startswith("tf-"):
        assert without_blank_lines(result.value or "") == without_blank_lines(expect["value"])
    elif explain:
        assert result.value == expect["value"]
